// The error of one arm in several studies, at one level. Repetitions of different studies have nothing in common.
function compared(studies, host) {
  const holders = (name) => studies.filter((study) => study.arms.some((arm) => arm.name === name)).length;
  const labels = new Map(studies.flatMap((study) => study.arms.filter((arm) => !arm.zero).map((arm) => [arm.name, `${arm.label} (${arm.trust})`])));
  const names = [...labels.keys()].sort((a, b) => holders(b) - holders(a));
  const titles = [...new Set(studies.flatMap((study) => study.levels.map((level) => level.title)))];
  const colours = ["vermillion", "blue", "green", "purple", "orange", "sky"], markers = ["o", "s", "^", "D", "v", "P"];
  const state = { arm: Math.max(0, names.findIndex((name) => name.startsWith("local"))), level: titles.indexOf(studies[0].levels[usual(studies[0])].title), logX: true, logY: true };
  const controls = el("div", { class: "controls" }), figure = el("figure"), table = el("div");
  const set = (key) => (value) => { state[key] = value; draw(); };

  function draw() {
    const rows = studies.flatMap((study) => {
      const arm = study.arms.findIndex((one) => one.name === names[state.arm]), at = finder(study);
      const level = study.levels.findIndex((one) => one.title === titles[state.level]);
      return arm < 0 || level < 0 ? [] : study.counts.flatMap((n, i) => { const s = at("error_l2", arm, i, level); return s ? [{ study, n, s }] : []; });
    });
    const series = studies.map((study, i) => ({ label: study.title, colour: colours[i % 6], marker: markers[i % 6], style: "dash", shift: SHIFT * (i - (studies.length - 1) / 2),
      points: rows.filter((row) => row.study === study).map(({ n, s }) => ({ x: n, y: s.mean, low: s.low, high: s.high, lines: [`error ${number(s.mean)}`, s.low === null ? "" : `95 % interval ${between(s.low, s.high)}`, `n = ${count(n)}`].filter(Boolean) })) })).filter((one) => one.points.length);
    const said = series.map((one) => `${number(one.points.at(-1).y)} in ${one.label} (n = ${count(one.points.at(-1).x)})`).join(", ");
    const text = series.length ? `L2 error of ${labels.get(names[state.arm])} at ${titles[state.level]}: ${said}.` : `No study has ${labels.get(names[state.arm])} at ${titles[state.level]}.`;
    figure.replaceChildren(series.length ? chart({ name: text, x: { label: "n", log: state.logX, ticks: [...new Set(rows.map((row) => row.n))] }, y: { log: state.logY, zero: true, whole: true }, series, rules: [], intervals: true }) : "", namesBelow(series), el("figcaption", {}, text));
    table.replaceChildren(grid(`L2 error of ${labels.get(names[state.arm])} at ${titles[state.level]}`, [
      { head: "study", text: true, value: (r) => r.study.title }, { head: "n", value: (r) => r.n, show: (r) => count(r.n) },
      ...[["mean", "mean"], ["standard error", "se"], ["95 % from", "low"], ["95 % to", "high"]].map(([head, key]) => ({ head, value: (r) => r.s[key], show: (r) => number(r.s[key]) })),
    ], rows));
  }

  controls.append(choose("Arm", names.map((name) => labels.get(name)), state.arm, set("arm")), choose("Privacy level", titles, state.level, set("level")),
    el("fieldset", {}, el("legend", {}, "Axes"), el("div", { class: "ticks" }, tick("log x", true, set("logX")), tick("log y", true, set("logY")))));
  host.append(controls, el("div", { class: "panel" }, figure), el("details", {}, el("summary", {}, "Numbers behind this figure"), table));
  draw();
}
