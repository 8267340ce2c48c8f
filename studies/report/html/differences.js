// Paired differences to one arm at one n and level: repetitions share their coins, so these are sharper than two bars.
function differences(study, host) {
  const metrics = study.metrics.filter((metric) => study.pairs[metric.key]);
  const at = finder(study), last = study.counts.length - 1;
  const state = { metric: 0, n: last, level: usual(study), arm: best() };
  const controls = el("div", { class: "controls" }), figure = el("figure"), table = el("div");
  const set = (key) => (value) => { state[key] = value; draw(); };
  const arms = study.arms.map((arm, i) => i);

  function best() {
    const means = study.arms.map((arm, i) => (arm.zero || arm.trust === "clear" ? Infinity : at("error_l2", i, last, usual(study))?.mean ?? Infinity));
    const least = means.indexOf(Math.min(...means));
    return Math.max(0, least);
  }

  function rows() {
    const { key } = metrics[state.metric];
    return study.pairs[key].flatMap(([left, right, n, level, mean, se, low, high]) => {
      if (n !== state.n || (level !== state.level && level !== -1) || (left !== state.arm && right !== state.arm)) return [];
      const turned = left === state.arm; // as printed: other - chosen
      return [turned ? { arm: study.arms[right], mean: -mean, se, low: high === null ? null : -high, high: low === null ? null : -low } : { arm: study.arms[left], mean, se, low, high }];
    });
  }

  function draw() {
    const metric = metrics[state.metric], chosen = study.arms[state.arm], found = rows();
    const clear = (row) => row.low !== null && (row.low > 0 || row.high < 0);
    const worse = found.filter((row) => clear(row) && (metric.more ? row.mean < 0 : row.mean > 0)).length, better = found.filter(clear).length - worse;
    const text = `At n = ${count(study.counts[state.n])}, ${study.levels[state.level].title}, against ${chosen.label} (${chosen.trust}): of ${found.length} other arms ${worse} ${worse === 1 ? "is" : "are"} worse and ${better} better beyond the 95 % interval.`;
    figure.replaceChildren(forest(found, `${metric.label}: other arm − ${chosen.label}`, text), el("figcaption", {}, text));
    table.replaceChildren(grid(`${metric.label}: paired difference to ${chosen.label}`, [
      { head: "arm", text: true, value: (r) => r.arm.label }, { head: "trust", text: true, value: (r) => r.arm.trust },
      { head: "difference", value: (r) => r.mean, show: (r) => number(r.mean) }, { head: "standard error", value: (r) => r.se, show: (r) => number(r.se) },
      { head: "95 % from", value: (r) => r.low, show: (r) => number(r.low) }, { head: "95 % to", value: (r) => r.high, show: (r) => number(r.high) },
    ], found));
  }

  controls.append(
    choose("Compared with", arms.map((i) => `${study.arms[i].label} (${study.arms[i].trust})`), state.arm, set("arm")),
    choose("What", metrics.map((metric) => metric.label), 0, set("metric")),
    chooseLevel(study),
    choose(`Number of ${study.rows}`, study.counts.map(count), last, set("n")));
  if (metrics.length < study.metrics.length) controls.append(el("div", { class: "quiet" }, "Other metrics: paired.csv, which halftruth report writes."));
  host.append(controls, el("div", { class: "panel" }, figure), el("details", {}, el("summary", {}, "Numbers behind this figure"), table));
  levelOf(study).followers.push(set("level"));
  draw();
}

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

// A row for each difference: name, interval, and the line of no difference.
function forest(rows, label, name) {
  const host = el("div", { class: "holder forest" });
  const ordered = [...rows].sort((a, b) => a.mean - b.mean);
  let width = 0;
  new ResizeObserver(() => {
    const now = Math.round(host.clientWidth);
    if (!now || now === width) return;
    width = now;
    const narrow = width < 720, step = narrow ? 44 : 28, left = narrow ? 8 : 290, bottom = 12 + step * ordered.length;
    const right = width - (narrow ? 14 : 190), usual = 8 * median(ordered.map((row) => Math.abs(row.mean)));
    const near = ordered.filter((row) => Math.abs(row.mean) <= usual);
    const ends = [0, ...near.flatMap((row) => [row.mean, row.low ?? row.mean, row.high ?? row.mean])];
    const [low, high] = [Math.min(...ends), Math.max(...ends)], room = (high - low || 1) * 0.05;
    const place = scale({}, low - room, high + room, left, right), X = (v) => Math.min(right, Math.max(left, place(v)));
    const root = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${bottom + 44}`, role: "img", "aria-label": name });
    for (const v of ticks(low - room, high + room, false)) {
      root.append(svg("line", { class: "grid", x1: X(v), x2: X(v), y1: 4, y2: bottom }), svg("text", { x: X(v), y: bottom + 17, "text-anchor": "middle" }, plain(v)));
    }
    root.append(svg("line", { class: "axis", x1: X(0), x2: X(0), y1: 4, y2: bottom }));
    ordered.forEach((row, i) => {
      const y = 10 + step * (i + 0.5) + (narrow ? 8 : 0);
      root.append(svg("text", { class: "name", x: narrow ? left : left - 12, y: narrow ? y - 14 : y + 4, "text-anchor": narrow ? "start" : "end" }, `${row.arm.label} (${row.arm.trust})`));
      const g = svg("g", { class: row.arm.colour });
      const off = !near.includes(row); // an arrow at the border stands for what is far off, so that the rest can be seen
      if (row.low !== null && !off) g.append(svg("line", { class: "bar", x1: X(row.low), x2: X(row.high), y1: y, y2: y }));
      const turn = off ? ` rotate(${row.mean > 0 ? 90 : -90})` : "";
      g.append(mark({ hollow: off || row.arm.hollow, marker: off ? "up" : row.arm.marker || "o" }, `translate(${X(row.mean).toFixed(1)},${y})${turn}`));
      const said = `${number(row.mean)}${row.low === null ? "" : ` (${between(row.low, row.high)})`}`;
      root.append(g, svg("text", { x: width - 2, y: narrow ? y - 14 : y + 4, "text-anchor": "end" }, narrow ? number(row.mean) : said));
    });
    root.append(svg("text", { class: "name", x: (left + right) / 2, y: bottom + 38, "text-anchor": "middle" }, label));
    host.replaceChildren(root);
  }).observe(host);
  return host;
}
