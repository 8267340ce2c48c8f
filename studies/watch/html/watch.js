// Asks the server what there is, again and again, and shows it. What a person chose stays chosen.
const place = (id) => document.getElementById(id);
const { every } = JSON.parse(place("data").textContent);
const chosen = { n: null, level: null };
let shape = "";

// Text of a live region changes only where it is another one: nobody hears the same twice.
function say(id, text) {
  if (place(id).textContent !== text) place(id).textContent = text;
}

function units(rows) {
  place("units").replaceChildren(...rows.map((row) => el("tr", {},
    el("th", { scope: "row" }, count(row.n)),
    el("td", { class: "text" }, el("progress", {
      max: row.units, value: row.finished, "aria-label": `n = ${count(row.n)}: ${row.finished} of ${row.units} units` })),
    el("td", {}, `${count(row.finished)} of ${count(row.units)}`),
    el("td", {}, `${count(row.repetitions_finished)} of ${count(row.repetitions)}`))));
}

const unique = (values) => [...new Set(values)];
let deltas = false; // whether there are several
const key = (one) => (one.epsilon === null ? null : `ε = ${one.epsilon}${deltas ? `, δ = ${one.delta}` : ""}`);

function controls(errors) {
  deltas = unique(errors.map((one) => one.delta).filter((delta) => delta !== null)).length > 1;
  const ns = unique(errors.map((one) => one.n)).sort((a, b) => b - a);
  const levels = unique(errors.map(key).filter((name) => name !== null));
  if (JSON.stringify([ns, levels]) === shape) return;
  shape = JSON.stringify([ns, levels]);
  if (!ns.includes(chosen.n)) [chosen.n] = ns;
  if (!levels.includes(chosen.level)) chosen.level = levels[0] ?? null;
  const show = () => rows(errors_now);
  place("controls").replaceChildren(
    choose("Number of labels or records", ns.map((n) => `n = ${count(n)}`), ns.indexOf(chosen.n), (i) => { chosen.n = ns[i]; show(); }),
    ...(levels.length ? [choose("Privacy", levels, levels.indexOf(chosen.level), (i) => { chosen.level = levels[i]; show(); })] : []));
}

let errors_now = [];
function rows(errors) {
  errors_now = errors;
  const own = errors.filter((one) => one.n === chosen.n && (key(one) === null || key(one) === chosen.level));
  const ends = own.flatMap((one) => [one.mean, one.low, one.high]).filter((value) => value !== null && value > 0);
  const [least, most] = [Math.log(Math.min(...ends)), Math.log(Math.max(...ends))];
  const x = (value) => (value > 0 ? 3 + 194 * (most > least ? (Math.log(value) - least) / (most - least) : 0.5) : 0);
  place("errors").replaceChildren(...own.map((one) => el("tr", {},
    el("th", { scope: "row" }, one.arm.split("/").flatMap((part, i) => (i ? ["/", el("wbr"), part] : [part]))),
    el("td", {}, number(one.mean)),
    el("td", {}, between(one.low, one.high)),
    el("td", {}, count(one.repetitions)),
    el("td", {}, svg("svg", { class: "interval", viewBox: "0 0 200 12", preserveAspectRatio: "none", "aria-hidden": "true" },
      one.low === null ? null : svg("line", { x1: x(one.low), x2: x(one.high), y1: 6, y2: 6 }),
      svg("rect", { x: x(one.mean) - 1.5, y: 1, width: 3, height: 10 }))))));
}

function show(told) {
  say("state", told.head);
  place("run").hidden = told.state === null;
  if (told.state === null) return;
  units(told.units);
  place("errors-part").hidden = !told.errors.length;
  if (told.errors.length) {
    controls(told.errors);
    rows(told.errors);
  }
  place("lines-part").hidden = !told.lines.length;
  place("lines").replaceChildren(...told.lines.map((line) => el("li", {}, line)));
}

async function look() {
  let wait = every;
  try {
    const reply = await fetch("seen.json", { cache: "no-store" });
    if (!reply.ok) throw new Error(String(reply.status));
    const told = await reply.json();
    say("lost", "");
    show(told);
  } catch {
    say("lost", "Nobody answers: what is here may be old. This page tries again.");
    wait = Math.max(every, 2);
  }
  setTimeout(look, 1000 * wait);
}

look();
