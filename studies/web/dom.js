// Elements and numbers. Text goes in as text: no string ever becomes markup.
const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

const el = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
const svg = (name, attributes = {}, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

// Three digits, and commas from a thousand on.
function number(value) {
  if (value === null || value === undefined) return "";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString("en");
  if (size < 0.0001) return value.toExponential(2);
  const decimals = Math.max(0, Math.min(6, 2 - Math.floor(Math.log10(size))));
  return value.toFixed(decimals);
}

const count = (value) => value.toLocaleString("en");
const between = (low, high) => (low === null || high === null ? "" : `${number(low)} to ${number(high)}`);

// A group of radio buttons (few choices) or a list (many); `change` gets the index, and its `pick` chooses one silently.
let groups = 0;
function choose(label, options, chosen, change) {
  const name = `choice-${(groups += 1)}`;
  if (options.length > 6 || options.join("").length > 48) {
    const list = el("select", { id: name, onchange: () => change(list.selectedIndex) },
      options.map((text, i) => el("option", { selected: i === chosen }, text)));
    return Object.assign(el("div", {}, el("label", { class: "label", for: name }, label), list), { pick: (i) => { list.selectedIndex = i; } });
  }
  const boxes = options.map((_, i) => el("input", { type: "radio", name, checked: i === chosen, onchange: () => change(i) }));
  const group = el("fieldset", {}, el("legend", {}, label), el("div", { class: "choices" }, options.map((text, i) => el("label", {}, boxes[i], text))));
  return Object.assign(group, { pick: (i) => { boxes[i].checked = true; } });
}

const tick = (label, checked, change) => {
  const box = el("input", { type: "checkbox", checked, onchange: () => change(box.checked) });
  return el("label", {}, box, label);
};

async function copy(text, button) {
  const said = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    const area = el("textarea", { class: "unseen", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    button.textContent = document.execCommand("copy") ? "Copied" : "Your browser does not let pages copy";
    area.remove();
  }
  setTimeout(() => { button.textContent = said; }, 1600);
}

for (const button of document.querySelectorAll("button[data-copy]")) {
  button.addEventListener("click", () => copy(document.getElementById(button.dataset.copy).textContent, button));
}
