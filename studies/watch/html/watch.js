// Asks the server what there is, again and again, and shows it. What a person chose stays chosen.
const place = (id) => document.getElementById(id);
const { every } = JSON.parse(place("data").textContent);
const chosen = { n: null, level: null };
const TRUST = { clear: "black", local: "vermillion", central: "blue", distributed: "green", shuffled: "purple" };
let shape = "";

// Text of a live region changes only where it is another one: nobody hears the same twice.
function say(id, text) {
  if (place(id).textContent !== text) place(id).textContent = text;
}

const sum = (rows, key) => rows.reduce((total, row) => total + row[key], 0);

function units(rows) {
  const [done, all] = [sum(rows, "repetitions_finished"), sum(rows, "repetitions")];
  Object.assign(place("whole"), { max: all, value: done });
  place("share").textContent = `${Math.floor((100 * done) / all)} %`;
  place("units").replaceChildren(...rows.map((row) => el("tr", {},
    el("th", { scope: "row" }, count(row.n)),
    el("td", { class: "text" }, el("progress", {
      max: row.units, value: row.finished, "aria-label": `n = ${count(row.n)}: ${row.finished} of ${row.units} units` })),
    el("td", { class: "less" }, `${count(row.finished)} of ${count(row.units)}`),
    el("td", {}, `${count(row.repetitions_finished)} of ${count(row.repetitions)}`))));
}

function kinds(told) {
  place("kinds-part").hidden = !told.kinds.length;
  place("kinds").replaceChildren(...told.kinds.map(([kind, words, last, all]) => {
    const news = kind === "answered" ? "" : all ? "some" : "none";
    return el("tr", { class: news },
      el("th", { scope: "row" }, words),
      el("td", {}, kind === "answered" ? `${count(last)} of ${count(told.nodes)}` : count(last)),
      el("td", {}, count(all)));
  }));
}

const unique = (values) => [...new Set(values)];
let deltas = false; // whether there are several
const key = (one) => (one.epsilon === null ? null : `ε = ${one.epsilon}${deltas ? `, δ = ${one.delta}` : ""}`);
// The level that it opens with: epsilon = 1, or the nearest.
const usual = (errors) => errors.filter((one) => one.epsilon !== null).sort((a, b) => Math.abs(Math.log(a.epsilon)) - Math.abs(Math.log(b.epsilon)))[0];

function controls(errors) {
  deltas = unique(errors.map((one) => one.delta).filter((delta) => delta !== null)).length > 1;
  const ns = unique(errors.map((one) => one.n)).sort((a, b) => b - a);
  const levels = unique(errors.map(key).filter((name) => name !== null));
  if (JSON.stringify([ns, levels]) === shape) return;
  shape = JSON.stringify([ns, levels]);
  if (!ns.includes(chosen.n)) [chosen.n] = ns;
  if (!levels.includes(chosen.level)) chosen.level = levels.length ? key(usual(errors)) : null;
  const set = (name, values) => (i) => { chosen[name] = values[i]; rows(shown); };
  place("controls").replaceChildren(
    choose("Number of labels or records", ns.map((n) => `n = ${count(n)}`), ns.indexOf(chosen.n), set("n", ns)),
    ...(levels.length ? [choose("Privacy level", levels, levels.indexOf(chosen.level), set("level", levels))] : []));
}

// 1, 2 and 5 times powers of ten within the axis, as many as have room in its head.
function ticks(least, most) {
  const found = [], room = (Math.log(most / least) * 38) / Math.max(80, place("axis").clientWidth);
  for (let power = Math.floor(Math.log10(least)); power <= Math.log10(most); power += 1) for (const digit of [1, 2, 5]) {
    const value = digit * 10 ** power;
    if (value < least * 0.999 || value > most * 1.001) continue;
    if (!found.length || Math.log(value / found.at(-1)) > room) found.push(value);
  }
  return found;
}

let shown = null;
function rows(told) {
  shown = told;
  const here = told.errors.filter((one) => one.n === chosen.n && (key(one) === null || key(one) === chosen.level));
  const own = told.arms.flatMap(([arm, label, trust]) => here.filter((one) => one.arm === arm).map((one) => ({ ...one, label, trust, colour: TRUST[trust] ?? "grey" })));
  const ends = own.flatMap((one) => [one.mean, one.low, one.high]).filter((value) => value !== null && value > 0);
  const [low, high] = ends.length ? [Math.min(...ends), Math.max(...ends)] : [1, 1];
  const [least, most] = high > low ? [low, high] : [low / 2, low * 2];
  const x = (value) => `${(value > 0 ? 3 + (94 * Math.log(value / least)) / Math.log(most / least) : 0).toFixed(2)}%`;
  const marks = ticks(least, most), hidden = { class: "plot", "aria-hidden": "true" };
  const grid = () => marks.map((value) => svg("line", { class: "grid", x1: x(value), x2: x(value), y1: 0, y2: "100%" }));
  place("axis").replaceChildren(el("span", { class: "unseen" }, "on a logarithmic axis"), svg("svg", hidden,
    marks.map((value) => svg("text", { x: x(value), y: 19 }, number(value).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "")))));
  place("errors").replaceChildren(...own.map((one) => el("tr", {},
    el("th", { scope: "row", title: one.arm }, one.label, el("span", {}, one.trust === "none" ? "asks nobody" : one.trust)),
    el("td", { class: "value" }, number(one.mean), el("span", {}, between(one.low, one.high))),
    el("td", { class: "axis" }, svg("svg", { ...hidden, class: `plot ${one.colour}` }, grid(),
      one.low === null ? null : svg("line", { x1: x(one.low), x2: x(one.high), y1: "50%", y2: "50%" }),
      svg("circle", { cx: x(one.mean), cy: "50%", r: 4 }))),
    el("td", { class: "less" }, count(one.repetitions)))));
}

function budgets(told) {
  place("budgets-part").hidden = !told.totals.length && !told.budget_lines.length;
  place("totals").replaceChildren(...told.totals.map(([node, total, spent, cap, left, used, share]) => el("tr", {},
    el("th", { scope: "row" }, node),
    el("td", { class: "text" }, total),
    ...[spent, cap, left, used].map((word) => el("td", {}, word)),
    el("td", { class: "text" }, share === null ? "" : el("progress", { class: share < 1 ? "" : "full", max: 1, value: share, "aria-label": `${total}: ${spent} of ${cap}` })))));
  place("budget-lines").replaceChildren(...told.budget_lines.map((line) => el("li", {}, line)));
}

function show(told) {
  const state = place("state"), words = told.standing;
  say("state", words[0].toUpperCase() + words.slice(1));
  state.dataset.state = told.state ?? "none";
  place("run").hidden = told.state === null;
  budgets(told);
  if (told.state === null) return;
  say("name", told.study);
  say("where", told.runtimes.join(", "));
  document.title = `${place("share").textContent} ${told.study}: halftruth watch`.trim();
  units(told.units);
  kinds(told);
  place("errors-part").hidden = !told.errors.length;
  if (told.errors.length) {
    controls(told.errors);
    rows(told);
  }
  place("lines-part").hidden = !told.lines.length;
  place("lines").replaceChildren(...told.lines.map((line) => el("li", {}, line)));
}

// What the server says; null where nobody answers.
async function asked() {
  try {
    const reply = await fetch("seen.json", { cache: "no-store" });
    return reply.ok ? await reply.json() : null;
  } catch {
    return null;
  }
}

async function look() {
  const told = await asked();
  setTimeout(look, 1000 * (told ? every : Math.max(every, 2)));
  say("lost", told ? "" : "Nobody answers: what is here may be old. This page tries again.");
  if (told) show(told);
}

look();
