// Shows one pair at a time and says what was answered. The server keeps everything; nothing stays in the browser.
const place = (id) => document.getElementById(id);
const word = location.hash.slice(1);
let now = null; // what the server said last
let about = null; // what leaves, in words
let busy = false;
let keys = keep("halftruth-label-keys") !== "off";

async function ask(what, content = {}) {
  const reply = await fetch(what, {
    method: "POST", cache: "no-store", body: JSON.stringify(content),
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${word}` },
  });
  const told = await reply.json();
  if (!reply.ok) throw Object.assign(new Error(told.error), { told: true, old: reply.status === 409 });
  return told;
}

// One thing at a time; what went wrong is said, and nothing is shown that is not kept.
async function act(what, content, said) {
  if (busy) return;
  busy = true;
  try {
    show(await ask(what, content), true);
    say("lost", "");
    if (said) say("said", `${said} ${now.pair ? `Pair ${now.pair.number} of ${now.counts.all}.` : "No pair is left."}`);
  } catch (error) {
    lost(error);
    if (error.old) show(await ask("state"), true); // another tab went on
  }
  busy = false;
}

function lost(error) {
  const silent = "Nobody answers: halftruth label has ended. Start it again, and open the address that it prints.";
  say("lost", error.told ? `${error.message[0].toUpperCase()}${error.message.slice(1)}.` : silent);
  place("looking").hidden = true;
}

function say(id, text) {
  if (place(id).textContent !== text) place(id).textContent = text;
}

const many = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;
const short = (text) => (text.length > 70 ? `${text.slice(0, 67)}…` : text);
const answered = (kind, side) => ({ tie: "About equal.", skip: "Skipped." }[kind] ?? `Chosen: ${short(side.text)}.`);

function give(kind, side) {
  if (now?.pair) act("answer", { pair: now.pair.key, answer: kind }, answered(kind, side));
}

function show(told, moved) {
  const had = document.activeElement, other = now?.pair?.key !== told.pair?.key;
  now = told;
  place("all").hidden = false;
  place("looking").hidden = true;
  pair(told.pair, told.counts);
  place("undo").disabled = !told.undo;
  release(told.counts);
  node(told.node, told.counts);
  spent(told.spent, told.counts);
  if (place("review").open) review();
  if (moved && other) {
    scrollTo({ top: 0 });
    if (!told.pair || had?.closest?.("#asking") || had?.closest?.("#answers")) place("heading").focus({ preventScroll: true });
  }
}

function pair(one, counts) {
  const done = counts.all - counts.left;
  place("progress").max = counts.all;
  place("progress").value = done;
  say("progress-words", `${one ? `Pair ${count(one.number)}, ` : ""}${count(done)} of ${count(counts.all)} done`);
  place("asking").classList.toggle("done", !one);
  for (const id of ["question", "sides", "tie", "skip"]) place(id).hidden = !one;
  if (!one) {
    say("heading", counts.all ? "Every pair is done" : "There are no pairs");
    return;
  }
  say("heading", "Which do you prefer?");
  place("question").replaceChildren(...one.question.map(({ head, text }) =>
    el("div", { class: "asked" }, head ? el("span", { class: "quiet small" }, head) : null, el("p", {}, text))));
  one.sides.forEach((side, i) => {
    const long = side.text.length > 60;
    place(`side-${i}`).classList.toggle("long", long);
    place(`side-${i}`).classList.toggle("chosen", one.answer === side.answer);
    say(`text-${i}`, side.text);
    place(`text-${i}`).scrollTop = 0;
    place(`choose-${i}`).setAttribute("aria-label", `Choose this: ${short(side.text)}`);
  });
  for (const kind of ["tie", "skip"]) place(kind).classList.toggle("chosen", one.answer === kind);
}

function release(counts) {
  const some = counts.answered > 0;
  place("release").hidden = !some;
  place("release").textContent = `Release ${many(counts.answered, "answer")} …`;
  const parts = [];
  if (counts.released) parts.push(`${count(counts.released)} released`);
  if (some) parts.push(`${many(counts.answered, "answer")} on this machine only`);
  else if (!counts.released) parts.push("nothing to release yet");
  if (counts.skipped) parts.push(`${count(counts.skipped)} skipped`);
  if (counts.left) parts.push(`${count(counts.left)} to go`);
  const text = `${parts.join(", ")}.`;
  say("held", text[0].toUpperCase() + text.slice(1));
}

function node(one, counts) {
  const lines = [];
  if (counts.released && one.runs) lines.push(el("p", {}, `Your node is up and answers the server at ${one.address}, while this page's program runs.`));
  else if (counts.released) {
    if (one.ended.length) lines.push(el("p", { class: "warn" }, `Your node ended: ${one.ended.join(" ")}`));
    const button = el("button", { type: "button", onclick: () => copy(one.command, button) }, "Copy");
    lines.push(el("p", {}, "Your node is not up. This starts it:"), el("pre", {}, el("code", { id: "command" }, one.command)),
      el("div", { class: "tools" }, button));
  }
  fillIn("node", lines);
}

function spent(one, counts) {
  if (!counts.released) return fillIn("spent", []);
  const most = one.of === null ? "no limit" : `at most ${one.of}`;
  const lines = [el("dl", { class: "facts" },
    el("dt", {}, "Sent so far"),
    el("dd", {}, one.asked.length ? el("ul", {}, one.asked.map((line) => el("li", {}, line))) : "Nothing: no server has asked yet."),
    el("dt", {}, "Spent"),
    el("dd", {}, `Epsilon ${one.answer} of ${most} by one answer${one.all ? `, and ${one.all} by all of yours together` : ""}.`))];
  if (one.trouble) lines.push(el("p", { class: "warn" }, one.trouble));
  return fillIn("spent", lines);
}

// Only what changed is put there anew: a person may be reading it, or has the focus in it.
const shown = {};
function fillIn(id, elements) {
  const text = elements.map((one) => one.outerHTML).join("");
  if (shown[id] === text) return;
  shown[id] = text;
  place(id).replaceChildren(...elements);
}

async function review() {
  let pairs;
  try {
    ({ pairs } = await ask("review"));
  } catch (error) {
    lost(error);
    return;
  }
  const words = { tie: "about equal", skip: "skipped" };
  place("answers").replaceChildren(...pairs.map((one) => {
    const won = { first: 0, second: 1 }[one.answer];
    const sides = one.sides.map((text, i) => el(won === i ? "strong" : "span", {}, short(text)));
    if (won) sides.reverse();
    const what = [one.answer ? words[one.answer] : "not answered", one.released ? "released" : null].filter(Boolean).join(", ");
    return el("li", {}, el("span", { class: "both" }, sides[0], el("span", { class: "quiet" }, won === undefined ? " or " : " over "), sides[1]),
      el("span", { class: "quiet small" }, what),
      one.released ? null :
        el("button", { type: "button", onclick: () => act("state", { pair: one.key }), "aria-label": `${one.answer ? "Change" : "Answer"}: ${short(one.sides[0])} or ${short(one.sides[1])}` }, one.answer ? "Change" : "Answer"));
  }));
}

function sure() {
  const { answered: n, skipped, left } = now.counts;
  const lines = [`Servers can then ask for ${many(n, "answer")}. After this, undo ends: ${n === 1 ? "it stays as it is" : "they stay as they are"}.`, ...about.sure];
  const missing = skipped + left;
  if (missing) lines.push(`${many(missing, "pair")} ${missing === 1 ? "is" : "are"} left out, ${count(skipped)} skipped and ${count(left)} not reached. A server sees which.`);
  place("sure").replaceChildren(...lines.map((line) => el("li", {}, line)));
  place("dialog").showModal();
}

const pick = (i) => now?.pair && give(now.pair.sides[i].answer, now.pair.sides[i]);
const undo = () => now?.undo && act("undo", {}, "Taken back.");
[0, 1].forEach((i) => {
  const side = place(`side-${i}`);
  side.addEventListener("click", (event) => {
    if (event.detail > 1 || (event.target.closest("button") === null && getSelection().toString())) return; // no double click, no marked text
    pick(i);
  });
});
place("tie").addEventListener("click", () => give("tie"));
place("skip").addEventListener("click", () => give("skip"));
place("undo").addEventListener("click", undo);
place("release").addEventListener("click", sure);
place("no").addEventListener("click", () => place("dialog").close());
place("yes").addEventListener("click", () => {
  const { answered: n, skipped } = now.counts;
  place("dialog").close();
  act("release", { answered: n, skipped }, `${many(n, "answer")} released.`);
});
place("review").addEventListener("toggle", () => place("review").open && review());

function setKeys() {
  place("keys").textContent = `Keys: ${keys ? "on" : "off"}`;
  place("keys").setAttribute("aria-pressed", keys);
  document.body.classList.toggle("keys", keys);
  keep("halftruth-label-keys", keys ? "on" : "off");
}
place("keys").addEventListener("click", () => { keys = !keys; setKeys(); });

const SHORTCUTS = { ArrowLeft: () => pick(0), ArrowRight: () => pick(1), "=": () => give("tie"), e: () => give("tie"),
  s: () => give("skip"), Backspace: undo, u: undo };
document.addEventListener("keydown", (event) => {
  const todo = SHORTCUTS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!keys || !todo || event.repeat || event.ctrlKey || event.metaKey || event.altKey || place("dialog").open) return;
  if (event.target.closest("input, select, textarea, pre")) return;
  event.preventDefault();
  todo();
});

async function begin() {
  setKeys();
  try {
    about = await ask("about");
    place("leaves").replaceChildren(...about.leaves.flatMap(({ head, text, warns }) =>
      [el("dt", { class: warns ? "warn" : null }, head), el("dd", { class: warns ? "warn" : null }, text)]));
    say("tie-more", about.tie);
    show(await ask("state"), false);
  } catch (error) {
    lost(error);
  }
}

// After a release a server may ask at any time: what was sent is looked at again.
setInterval(async () => {
  if (!now?.counts.released || busy || document.hidden) return;
  try {
    const told = await ask("state", now.pair ? { pair: now.pair.key } : {});
    if (!busy) show(told, false);
    say("lost", "");
  } catch (error) {
    lost(error);
  }
}, 2000);

begin();
