// Points with intervals, lines and rules on two axes. Pointer and arrow keys reach every point; its text is read out.
const SHAPES = {
  o: "M-4.2,0a4.2,4.2 0 1,0 8.4,0a4.2,4.2 0 1,0 -8.4,0z", s: "M-3.8,-3.8h7.6v7.6h-7.6z", D: "M0,-5.2L5.2,0L0,5.2L-5.2,0z",
  d: "M0,-5.6L3.6,0L0,5.6L-3.6,0z", "^": "M0,-5L4.7,3.6H-4.7z", v: "M0,5L4.7,-3.6H-4.7z", "<": "M-5,0L3.6,-4.7V4.7z",
  ">": "M5,0L-3.6,-4.7V4.7z", P: "M-1.6,-4.8h3.2v3.2h3.2v3.2h-3.2v3.2h-3.2v-3.2h-3.2v-3.2h3.2z", x: "M-4,-4L4,4M-4,4L4,-4",
  X: "M-4.6,-2.6L-2.6,-4.6L0,-2L2.6,-4.6L4.6,-2.6L2,0L4.6,2.6L2.6,4.6L0,2L-2.6,4.6L-4.6,2.6L-2,0z",
  "*": "M0,-5.6L1.4,-1.9L5.3,-1.7L2.3,0.7L3.3,4.5L0,2.4L-3.3,4.5L-2.3,0.7L-5.3,-1.7L-1.4,-1.9z",
  h: "M0,-5L4.3,-2.5V2.5L0,5L-4.3,2.5V-2.5z", p: "M0,-5L4.8,-1.5L2.9,4H-2.9L-4.8,-1.5z", 8: "M-2,-4.8H2L4.8,-2V2L2,4.8H-2L-4.8,2V-2z",
};
SHAPES.up = "M0,4V-9M-4.5,-4L0,-9.5L4.5,-4";
SHAPES.down = "M0,-4V9M-4.5,4L0,9.5L4.5,4";
const mark = (look, transform = null) =>
  svg("path", { class: `mark${look.hollow ? " hollow" : ""}`, d: SHAPES[look.marker] ?? "", transform });

// A piece of a series' line, for legends.
function swatch(look, style) {
  const line = svg("line", { class: `line ${style}`, x1: 1, x2: 33, y1: 8, y2: 8 });
  return svg("svg", { class: `chart ${look.colour}`, viewBox: "0 0 34 16", "aria-hidden": "true" }, line, mark(look, "translate(17,8)"));
}

// Names of series, for windows that are too narrow for names at the border.
const namesBelow = (series) => el("div", { class: "legend narrow", "aria-hidden": "true" },
  series.map((one) => el("div", { class: "static" }, swatch(one, one.style), one.label)));

function scale(axis, low, high, start, end) {
  const f = axis.log ? Math.log10 : (v) => v;
  const [a, b] = axis.reverse ? [f(high), f(low)] : [f(low), f(high)];
  return (v) => start + ((f(v) - a) / (b - a || 1)) * (end - start);
}

function ticks(low, high, log) {
  if (!log) {
    const rough = (high - low) / 5, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= rough);
    const first = Math.ceil(low / step);
    return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => (first + i) * step);
  }
  const found = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e += 1) for (const k of [1, 2, 5]) found.push(k * 10 ** e);
  const inside = found.filter((v) => v >= low * 0.999 && v <= high * 1.001);
  return inside.length > 9 ? inside.filter((v) => /^1/.test(v.toExponential())) : inside;
}

const plain = (v) => (Math.abs(v) >= 1000 ? v.toLocaleString("en") : String(Number(v.toPrecision(4))));

// Heights for labels that are `gap` apart, as near to the wanted ones as that lets them.
function apart(wanted, gap, low, high) {
  const order = wanted.map((y, i) => i).sort((a, b) => wanted[a] - wanted[b]);
  const placed = [...wanted];
  for (let round = 0; round < 60; round += 1) {
    for (let k = 1; k < order.length; k += 1) {
      const [a, b] = [order[k - 1], order[k]], missing = gap - (placed[b] - placed[a]);
      if (missing > 0.01) { placed[a] -= missing / 2; placed[b] += missing / 2; }
    }
    if (order.length) {
      placed[order[0]] = Math.max(placed[order[0]], low);
      placed[order.at(-1)] = Math.min(placed[order.at(-1)], high);
    }
  }
  return placed;
}

function chart(spec) {
  const tip = el("div", { class: "tip", hidden: true });
  const host = el("div", { class: "holder" }, tip);
  let width = 0, id = (chart.last = (chart.last ?? 0) + 1);
  const observer = new ResizeObserver(() => {
    const now = Math.round(host.clientWidth);
    if (now && now !== width) draw((width = now));
  });
  observer.observe(host);

  function draw() {
    host.querySelector("svg")?.remove();
    const named = width > 760, points = spec.series.flatMap((one) => one.points);
    const right = named ? Math.min(330, 44 + 6.7 * Math.max(0, ...ends().map((one) => one.label.length))) : 12;
    const box = { left: 56, right: width - right, top: 14, bottom: Math.max(220, Math.min(spec.flat ? 330 : 460, width * 0.52)) };
    const xs = [...points.map((p) => p.x), ...spec.x.ticks], ys = domain(points);
    const pad = spec.x.log ? (Math.min(...xs) === Math.max(...xs) ? 2 : (Math.max(...xs) / Math.min(...xs)) ** 0.04) : 0;
    const room = spec.x.log ? 0 : (Math.max(...xs) - Math.min(...xs)) * 0.04 || 1;
    const [x0, x1] = spec.x.log ? [Math.min(...xs) / pad, Math.max(...xs) * pad] : [Math.min(...xs) - room, Math.max(...xs) + room];
    const X = scale(spec.x, x0, x1, box.left, box.right), Y = scale(spec.y, ys[0], ys[1], box.bottom, box.top);
    const inside = (v) => Math.min(box.bottom, Math.max(box.top, v));
    const root = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${box.bottom + 46}`, role: "group", "aria-label": spec.name });
    root.append(svg("clipPath", { id: `clip-${id}` }, svg("rect", { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top })));
    axes(root, box, X, Y, ys);
    const clipped = svg("g", { "clip-path": `url(#clip-${id})`, "aria-hidden": "true" });
    root.append(clipped);
    const path = (line, shift = 0) => line.filter(([, y]) => !spec.y.log || y > 0).map(([x, y], i) => `${i ? "L" : "M"}${(X(x) + shift).toFixed(1)},${Y(y).toFixed(1)}`).join("");
    for (const rule of spec.rules) clipped.append(svg("line", { class: `line dots ${rule.colour}`, x1: box.left, x2: box.right, y1: Y(rule.y), y2: Y(rule.y) }));
    for (const one of spec.series) {
      const d = one.curve ? path(one.curve) : path(one.points.filter((p) => !p.loose).map((p) => [p.x, p.y]), one.shift);
      if (d) clipped.append(svg("path", { class: `line ${one.style} ${one.colour}`, d }));
    }
    const drawn = [];
    for (const one of spec.series) for (const p of one.points) {
      if (spec.y.log && !(p.y > 0)) continue;
      const at = { p, one, x: X(p.x) + (one.shift ?? 0), y: Y(p.y) };
      const bar = spec.intervals && p.low !== null && svg("line", { class: "bar", x1: at.x, x2: at.x, y1: inside(Y(spec.y.log ? Math.max(p.low, p.y / 10) : p.low)), y2: inside(Y(p.high)) });
      at.node = svg("g", { class: `point ${one.colour}`, role: "img", tabindex: -1, "aria-label": [one.label, ...p.lines].join(", ") },
        bar || null, svg("circle", { class: "halo", cx: at.x, cy: at.y, r: 9 }), mark(p.marker ? { ...one, marker: p.marker, hollow: true } : one, `translate(${at.x.toFixed(1)},${at.y.toFixed(1)})`));
      at.node.addEventListener("focus", () => show(at));
      at.node.addEventListener("blur", hide);
      drawn.push(at);
      root.append(at.node);
    }
    if (named) nameEnds(root, box, X, Y);
    listen(root, drawn);
    host.prepend(root);
  }

  function domain(points) {
    const all = [...points.flatMap((p) => (spec.y.whole && spec.intervals && p.low !== null ? [p.y, p.low, p.high] : [p.y])), ...spec.rules.map((r) => r.y), ...(spec.y.must ?? [])];
    const usable = spec.y.log ? all.filter((v) => v > 0) : all;
    const [low, high] = [Math.min(...usable), Math.max(...usable)];
    if (spec.y.log) return [low * 0.75, high * 1.3];
    return spec.y.zero ? [0, high * 1.06] : [low - (high - low || 1) * 0.08, high + (high - low || 1) * 0.08];
  }

  function axes(root, box, X, Y, ys) {
    const g = svg("g", { "aria-hidden": "true" });
    for (const v of ticks(ys[0], ys[1], spec.y.log)) {
      g.append(svg("line", { class: "grid", x1: box.left, x2: box.right, y1: Y(v), y2: Y(v) }));
      g.append(svg("text", { x: box.left - 8, y: Y(v) + 4, "text-anchor": "end" }, plain(v)));
    }
    let last = -Infinity;
    for (const v of [...spec.x.ticks].sort((a, b) => X(a) - X(b))) {
      g.append(svg("line", { class: "axis", x1: X(v), x2: X(v), y1: box.bottom, y2: box.bottom + 5 }));
      if (X(v) - last < 46) continue;
      last = X(v);
      g.append(svg("text", { x: last, y: box.bottom + 20, "text-anchor": "middle" }, plain(v)));
    }
    if (spec.x.at) g.append(svg("rect", { class: "at", x: X(spec.x.at) - 22, y: box.top, width: 44, height: box.bottom - box.top }));
    g.append(svg("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
    g.append(svg("text", { class: "name", x: (box.left + box.right) / 2, y: box.bottom + 40, "text-anchor": "middle" }, spec.x.label));
    root.append(g);
  }

  // What has a name at the right border: the last point of each series, and the end of each rule.
  function ends() {
    const last = spec.x.reverse ? (a, b) => (b.x < a.x ? b : a) : (a, b) => (b.x > a.x ? b : a);
    const named = spec.series.map((one) => {
      const from = one.points.length ? one.points : (one.curve ?? []).map(([x, y]) => ({ x, y }));
      return from.length ? { ...from.reduce(last), label: one.label, colour: one.colour, shift: one.shift } : null;
    });
    return [...named, ...spec.rules.map((rule) => ({ x: null, ...rule }))].filter((end) => end && (!spec.y.log || end.y > 0));
  }

  function nameEnds(root, box, X, Y) {
    const found = ends().filter((end) => Y(end.y) > box.top - 2 && Y(end.y) < box.bottom + 2);
    const placed = apart(found.map((end) => Y(end.y)), 16, box.top + 4, box.bottom - 2);
    const g = svg("g", { "aria-hidden": "true" });
    found.forEach((end, i) => {
      const from = end.x === null ? box.right : Math.min(box.right, X(end.x) + 8 + (end.shift ?? 0));
      g.append(svg("path", { class: `lead ${end.colour}`, d: `M${from},${Y(end.y)}L${box.right + 6},${Y(end.y)}L${box.right + 22},${placed[i]}H${box.right + 28}` }));
      g.append(svg("text", { class: "name", x: box.right + 33, y: placed[i] + 4 }, end.label));
    });
    root.append(g);
  }

  function listen(root, drawn) {
    if (!drawn.length) return;
    drawn[0].node.setAttribute("tabindex", 0);
    root.addEventListener("pointermove", (event) => {
      const frame = root.getBoundingClientRect(), [x, y] = [event.clientX - frame.left, event.clientY - frame.top];
      const near = drawn.reduce((a, b) => (Math.hypot(b.x - x, b.y - y) < Math.hypot(a.x - x, a.y - y) ? b : a));
      if (Math.hypot(near.x - x, near.y - y) < 44) show(near);
      else hide();
    });
    root.addEventListener("pointerleave", hide);
    root.addEventListener("keydown", (event) => {
      const at = drawn.find((one) => one.node === document.activeElement);
      if (event.key === "Escape") hide();
      if (!at) return;
      const row = drawn.filter((one) => one.one === at.one).sort((a, b) => a.x - b.x);
      const column = drawn.filter((one) => one.p.x === at.p.x).sort((a, b) => a.y - b.y);
      const step = (list, by) => list[Math.min(list.length - 1, Math.max(0, list.indexOf(at) + by))];
      const moves = { ArrowRight: [row, 1], ArrowLeft: [row, -1], ArrowDown: [column, 1], ArrowUp: [column, -1], Home: [row, -1e9], End: [row, 1e9] };
      if (!moves[event.key]) return;
      event.preventDefault();
      const next = step(...moves[event.key]);
      drawn.forEach((one) => one.node.setAttribute("tabindex", one === next ? 0 : -1));
      next.node.focus();
    });
  }

  function show(at) {
    hide();
    at.node.classList.add("near");
    tip.replaceChildren(el("strong", {}, at.one.label), ...at.p.lines.map((line) => el("div", {}, line)));
    tip.hidden = false;
    const left = at.x + 16 + tip.offsetWidth > width ? Math.max(0, at.x - 16 - tip.offsetWidth) : at.x + 16;
    tip.style.left = `${left}px`;
    tip.style.top = `${Math.max(0, at.y - tip.offsetHeight - 10)}px`;
  }

  function hide() {
    tip.hidden = true;
    for (const node of host.querySelectorAll(".near")) node.classList.remove("near");
  }

  return host;
}
