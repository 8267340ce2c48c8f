// Errors of one study: which metric, against n or epsilon, at which level; arms can be hidden.
const TRUSTS = { clear: "clear", local: "local", central: "central", distributed: "distributed", shuffled: "shuffled" };
const FIELDS = ["mean", "se", "low", "high", "median", "lower", "upper", "boundary", "coverage"];

// Summaries by metric, arm, n and level; an arm without a claim answers at every level.
function finder(study) {
  const found = new Map();
  for (const [metric, rows] of Object.entries(study.summaries)) for (const [arm, n, level, ...values] of rows) {
    found.set([metric, arm, n, level].join(), Object.fromEntries(FIELDS.map((name, i) => [name, values[i]])));
  }
  return (metric, arm, n, level) => found.get([metric, arm, n, level].join()) ?? found.get([metric, arm, n, -1].join());
}

function errors(study, host) {
  const at = finder(study);
  const many = new Set(study.levels.map((level) => level.epsilon)).size > 1;
  const state = { metric: 0, axis: study.counts.length > 1 || !many ? 0 : 1, level: usual(study), n: study.counts.length - 1, logX: true, logY: true, intervals: true, theory: true, rules: true, hidden: new Set() };
  const controls = el("div", { class: "controls" }), figure = el("figure"), legend = el("div", { class: "legend" }), table = el("div"), levels = chooseLevel(study);
  const title = host.getAttribute("data-title");
  host.append(controls, el("div", { class: "panel" }, figure, legend), el("details", {}, el("summary", {}, "Numbers behind this figure"), table));

  const set = (key) => (value) => { state[key] = value; draw(); };
  function tools() {
    const byN = state.axis === 0;
    controls.replaceChildren(
      choose("What", study.metrics.map((metric) => metric.label), state.metric, (i) => { state.metric = i; state.logY = !study.metrics[i].more; tools(); draw(); }),
      study.counts.length > 1 && many ? choose("Against", [`${study.rows} n`, "privacy ε"], state.axis, (i) => { state.axis = i; tools(); draw(); }) : "",
      byN ? levels : choose(`Number of ${study.rows}`, study.counts.map(count), state.n, set("n")),
      el("fieldset", {}, el("legend", {}, "Show"), el("div", { class: "ticks" },
        tick("log x", state.logX, set("logX")), tick("log y", state.logY, set("logY")), tick("95 % intervals", state.intervals, set("intervals")),
        tick("theory", state.theory, set("theory")), tick("answer 0 and bounds", state.rules, set("rules")))));
  }

  const main = () => study.metrics[state.metric].key === "error_l2";
  // (x, n, level) of each point: over n at the chosen level, or over the first delta's epsilons at the chosen n.
  function places() {
    if (state.axis === 0) return study.counts.map((n, i) => ({ x: n, n: i, level: state.level }));
    const seen = new Set();
    return study.levels.map((level, i) => ({ x: level.epsilon, n: state.n, level: i })).filter(({ x }) => x !== null && !seen.has(x) && seen.add(x));
  }

  function series() {
    const metric = study.metrics[state.metric], shown = places();
    const found = study.arms.flatMap((arm, i) => {
      if (arm.zero || state.hidden.has(i)) return [];
      const points = shown.flatMap(({ x, n, level }) => {
        const s = at(metric.key, i, n, level);
        return s ? [{ x, y: s.mean, low: s.low, high: s.high, lines: lines(metric, s, n, level) }] : [];
      });
      const law = main() && state.theory ? study.theory[i] : null;
      const curve = law ? (state.axis === 0 ? law.by_n[state.level] : law.by_epsilon[state.n]) : null;
      return points.length ? [{ ...arm, points, style: curve?.length ? "" : "dash", curve: curve?.length ? curve : null }] : [];
    });
    const bounds = main() && state.rules ? study.bounds : [];
    return [...found, ...bounds.map((one) => ({ ...one, label: `${one.trust} ${one.label.includes("rate") ? "worst law" : "lower bound"}`, points: [], style: "dots", curve: state.axis === 0 ? one.by_n[state.level] : one.by_epsilon[state.n] }))];
  }

  function lines(metric, s, n, level) {
    const zero = metric.key === "error_l2" ? [`${number(s.mean / study.zero)} of the error of the answer 0`] : [];
    const interval = s.low === null ? [] : [`95 % interval ${between(s.low, s.high)}`];
    return [`${metric.label} ${number(s.mean)}`, ...interval, `n = ${count(study.counts[n])}, ${study.levels[level].title}`, ...zero];
  }

  // The figure's finding: the best of each trust model where the curves end.
  function finding() {
    const metric = study.metrics[state.metric], end = state.axis === 0 ? { n: study.counts.length - 1, level: state.level } : { n: state.n, level: usual(study) };
    const best = new Map();
    study.arms.forEach((arm, i) => {
      const s = at(metric.key, i, end.n, end.level);
      const better = (a, b) => (metric.more ? a > b : a < b);
      if (s && TRUSTS[arm.trust] && (!best.has(arm.trust) || better(s.mean, best.get(arm.trust).mean))) best.set(arm.trust, { mean: s.mean, label: arm.label });
    });
    const parts = [...best].map(([trust, { mean, label }]) => `${number(mean)} ${trust === "clear" ? "in clear" : trust} (${label})`);
    const zero = main() ? ` The answer 0 errs by ${number(study.zero)}.` : "";
    return `With ${count(study.counts[end.n])} ${study.rows} at ${study.levels[end.level].title}, the best ${metric.label} is ${parts.join(", ")}.${zero}`;
  }

  function draw() {
    const metric = study.metrics[state.metric], all = series();
    const positive = all.every((one) => one.points.every((p) => p.y > 0));
    const ticksAt = [...new Set(places().map((one) => one.x))];
    const x = state.axis === 0 ? { label: `${study.rows} n`, reverse: false } : { label: "privacy level ε (more private →)", reverse: true };
    const rules = main() && state.rules ? [{ y: study.zero, label: "answer 0", colour: "grey" }] : [];
    const text = finding();
    figure.replaceChildren(
      chart({ name: `${title}: ${text}`, x: { ...x, log: state.logX, ticks: ticksAt }, y: { log: state.logY && positive, zero: !metric.more }, series: all, rules, intervals: state.intervals }),
      el("figcaption", {}, text, state.logY && !positive ? " Some values are not positive: the axis is linear." : ""));
    table.replaceChildren(numbers(metric));
    names(all);
  }

  function numbers(metric) {
    const rows = study.arms.flatMap((arm, i) => places().flatMap(({ n, level }) => {
      const s = at(metric.key, i, n, level);
      return s ? [{ arm, s, n: study.counts[n], level: study.levels[level] }] : [];
    }));
    return grid(`${metric.label}: mean over ${count(study.repetitions)} repetitions`, [
      { head: "arm", text: true, value: (r) => r.arm.label }, { head: "trust", text: true, value: (r) => r.arm.trust },
      { head: "n", value: (r) => r.n, show: (r) => count(r.n) }, { head: "level", text: true, value: (r) => r.level.title },
      ...[["mean", "mean"], ["standard error", "se"], ["95 % from", "low"], ["95 % to", "high"], ["median", "median"], ["quartile", "lower"], ["upper quartile", "upper"], ["on the ball", "boundary"], ["coverage of intervals", "coverage"]]
        .map(([head, key]) => ({ head, value: (r) => r.s[key], show: (r) => (["boundary", "coverage"].includes(key) && r.s[key] !== null ? `${(100 * r.s[key]).toFixed(1)} %` : number(r.s[key])) })),
    ], rows);
  }

  function names(all) {
    if (!legend.childElementCount) for (const group of study.groups) {
      const arms = group.arms.filter((i) => !study.arms[i].zero);
      if (!arms.length) continue;
      legend.append(el("fieldset", {}, el("legend", {}, group.heading), arms.map((i) => {
        const box = tick("", true, (on) => { if (on) state.hidden.delete(i); else state.hidden.add(i); draw(); });
        box.append(swatch(study.arms[i], study.theory[i] ? "" : "dash"), study.arms[i].label);
        return box;
      })));
    }
    legend.querySelector(".key")?.remove();
    const keys = [["", "theory, nothing fitted", Object.keys(study.theory).length && main() && state.theory], ["dash", "joins means", all.some((one) => one.style === "dash")], ["dots", "answer 0, lower bounds", main() && state.rules]].filter((key) => key[2]);
    legend.append(el("div", { class: "key" }, el("div", { class: "small quiet" }, "lines"), keys.map(([style, text]) => el("div", { class: "static" }, swatch({ colour: "grey", marker: "" }, style), text))));
  }

  levelOf(study).followers.push(set("level"));
  tools();
  draw();
}
