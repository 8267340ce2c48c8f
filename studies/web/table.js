// A table that sorts by any column and copies as CSV. A column: {head, text (optional), value(row), show(row)}.
function grid(caption, columns, rows) {
  const body = el("tbody");
  const heads = columns.map((column, i) => el("th", { scope: "col", class: column.text ? "text" : null },
    el("button", { type: "button", onclick: () => sortBy(i) }, column.head)));
  const plain = (column, row) => column.value(row) ?? "";
  let order = [...rows];

  function draw() {
    body.replaceChildren(...order.map((row) => el("tr", {}, columns.map((column, i) =>
      el(i === 0 ? "th" : "td", { scope: i === 0 ? "row" : null, class: column.text ? "text" : null },
        (column.show ?? column.value)(row) ?? "")))));
  }

  function sortBy(i) {
    const down = heads[i].getAttribute("aria-sort") === "ascending";
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    heads[i].setAttribute("aria-sort", down ? "descending" : "ascending");
    const sign = down ? -1 : 1;
    order = [...rows].sort((a, b) => {
      const [x, y] = [plain(columns[i], a), plain(columns[i], b)];
      if (x === "" || y === "") return x === y ? 0 : x === "" ? 1 : -1; // what is empty comes last
      return sign * (typeof x === "number" ? x - y : String(x).localeCompare(String(y)));
    });
    draw();
  }

  const csv = () => [columns.map((c) => c.head), ...order.map((row) => columns.map((c) => plain(c, row)))]
    .map((cells) => cells.map(quoted).join(",")).join("\n") + "\n";
  const button = el("button", { type: "button", onclick: () => copy(csv(), button) }, "Copy as CSV");
  draw();
  return el("div", {},
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
      el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, heads)), body)),
    el("div", { class: "tools" }, button));
}

// A cell that a spreadsheet takes for text, never for a formula.
function quoted(value) {
  const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
