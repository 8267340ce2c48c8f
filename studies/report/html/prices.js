// Labelers needed against epsilon: the answer of a study, as a picture. Its table stands in the page already.
const TRUST_LOOKS = { local: { colour: "vermillion", marker: "D" }, central: { colour: "blue", marker: "v" }, distributed: { colour: "green", marker: "P" }, shuffled: { colour: "purple", marker: "s" } };

const SHIFT = 7; // pixels between points of different studies at one place
const ARROWS = { more: "up", less: "down" }; // a bound: the ratio is beyond what the grid of n can show

function prices(studies, host) {
  const several = studies.length > 1, series = [], spare = ["vermillion", "blue", "green", "purple", "orange", "sky"];
  studies.forEach((study, s) => {
    for (const trust of new Set(study.prices.map((price) => price.trust))) {
      const told = study.prices.filter((one) => one.trust === trust && one.ratio !== null && study.levels[one.level].epsilon !== null);
      if (!told.length) continue;
      const look = several ? { colour: spare[s % spare.length], marker: TRUST_LOOKS[trust]?.marker ?? "o" } : TRUST_LOOKS[trust] ?? { colour: "grey", marker: "o" };
      const points = told.map((one) => ({ x: study.levels[one.level].epsilon, y: one.ratio, low: one.low, high: one.high, marker: one.beyond ? ARROWS[one.beyond] : null,
        lines: [`${one.beyond && `${one.beyond} than `}${number(one.ratio)} times the ${study.people}`, one.low === null ? "" : `95 % interval ${between(one.low, one.high)}`, `${study.levels[one.level].title}: ${one.arm} against ${one.reference}`].filter(Boolean) }));
      series.push({ ...look, shift: several ? SHIFT * (s - (studies.length - 1) / 2) : 0, hollow: s % 2 === 1, label: several ? `${study.title}: ${trust}` : trust, style: "dash", points: points.map((p) => ({ ...p, loose: Boolean(p.marker) })) });
    }
  });
  const ticksAt = [...new Set(series.flatMap((one) => one.points.map((p) => p.x)))];
  if (!ticksAt.length) return;
  const caption = `${host.getAttribute("data-caption")}${series.some((one) => one.points.some((p) => p.marker)) ? " An arrow is a bound: the grid of n shows no more." : ""}`;
  const name = `${host.getAttribute("data-finding") ?? ""} ${caption}`.trim(), place = el("div");
  const x = { label: "privacy level ε (more private →)", log: true, reverse: true, ticks: ticksAt }, y = { log: true, whole: true, must: [1] };
  const rules = [{ y: 1, label: "as many", colour: "grey" }];
  // Of one study the level that is looked at is marked.
  const draw = () => place.replaceChildren(chart({ name, flat: true, x: { ...x, at: several ? null : studies[0].levels[levelOf(studies[0]).at].epsilon }, y, series, rules, intervals: true }));
  if (!several) levelOf(studies[0]).followers.push(draw);
  draw();
  host.append(el("figure", { class: "panel" }, place, namesBelow(series), el("figcaption", {}, caption)));
}
