// Every table sorts, explains its headers, and can be copied or downloaded as CSV.
(() => {
  const { el } = RP;
  const tip = el("div", { class: "tip", role: "tooltip", id: "tip", hidden: true });
  document.querySelector("main").append(tip);
  const explain = (button, text) => {
    const show = () => {
      tip.textContent = text;
      tip.hidden = false;
      const box = button.getBoundingClientRect();
      tip.style.left = Math.max(8, Math.min(box.left, innerWidth - tip.offsetWidth - 8)) + "px";
      const below = box.bottom + 6;
      tip.style.top = (below + tip.offsetHeight > innerHeight ? box.top - tip.offsetHeight - 6 : below) + "px";
      button.setAttribute("aria-describedby", "tip");
    };
    const hide = () => { tip.hidden = true; button.removeAttribute("aria-describedby"); };
    for (const kind of ["mouseenter", "focus"]) button.addEventListener(kind, show);
    for (const kind of ["mouseleave", "blur"]) button.addEventListener(kind, hide);
    button.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  };
  document.addEventListener("scroll", () => { tip.hidden = true; }, true);

  // A spreadsheet may run what begins like a formula, as in spreadsheets.py; numbers may have a sign.
  const formula = /^'*(?:[\t\r\n]|[\s\p{Cc}\p{Default_Ignorable_Code_Point}\u2800]*[=+\-@＝＋－＠﹦﹢﹣﹫])/u;
  const guard = (text) => (formula.test(text) && !/^[+\-]?[\d.,%\s[\]()–−-]+$/.test(text) ? "'" + text : text);
  const plain = (text) => text.replaceAll("\u00a0", " ").trim();
  const quote = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const csv = (rows) => rows.map((row) => row.map((cell) => quote(guard(cell))).join(",")).join("\r\n") + "\r\n";
  const copy = async (text) => {
    try { await navigator.clipboard.writeText(text); } catch (error) {
      const area = el("textarea", { "aria-hidden": "true" });
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
  };
  const download = (name, text) => {
    const address = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv" }));
    const link = el("a", { href: address, download: name + ".csv" });
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  };
  const value = (text) => { const number = parseFloat(text); return Number.isNaN(number) ? null : number; };
  RP.order = (one, other) => {
    const [a, b] = [value(one), value(other)];
    if (a !== null && b !== null) return a - b;
    if ((a === null) !== (b === null)) return a === null ? 1 : -1;
    return one.localeCompare(other, "en", { numeric: true });
  };

  // `source` gives the columns and rows of a table that is not all on the page, and sorts it.
  RP.enhance = (box, source) => {
    const table = box.querySelector("table"), body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
    const text = (cell) => plain(cell.querySelector(".skip, .severity") ? [...cell.childNodes].filter((node) => !(node.classList && node.classList.contains("severity"))).map((node) => node.textContent).join("") : cell.textContent);
    const names = heads.map((head) => plain(head.textContent));
    const given = source || {
      columns: () => names,
      rows: () => [...body.rows].map((row) => [...row.cells].map(text)),
      sort: (at, sign) => {
        const rows = [...body.rows].map((row) => [row.cells[at] ? text(row.cells[at]) : "", row]);
        rows.sort((one, other) => sign * RP.order(one[0], other[0]));
        body.append(...rows.map(([, row]) => row));
        mark();
      },
    };
    const all = [...body.rows], long = all.filter((row) => row.classList.contains("beyond")).length, shown = all.length - long;
    const mark = () => { if (long) [...body.rows].forEach((row, at) => row.classList.toggle("beyond", at >= shown)); };
    heads.forEach((head, at) => {
      const button = el("button", { type: "button", class: "sort" }, ...head.childNodes);
      head.replaceChildren(button);
      explain(button, head.dataset.help || names[at]);
      button.addEventListener("click", () => {
        const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
        heads.forEach((one) => one.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
        given.sort(at, sign);
      });
    });
    const status = el("span", { "aria-live": "polite", class: "copied" });
    const tools = el("div", { class: "tools" });
    if (long) {
      const more = el("button", { type: "button", class: "quiet", "aria-expanded": "false" }, `Show all ${all.length} rows`);
      more.addEventListener("click", () => {
        const whole = box.classList.toggle("whole");
        more.setAttribute("aria-expanded", String(whole));
        more.textContent = whole ? `Show ${shown} rows` : `Show all ${all.length} rows`;
      });
      tools.append(more);
    }
    const label = table.closest("[aria-label]") ? table.closest("[aria-label]").getAttribute("aria-label") : "table";
    tools.append(
      el("button", { type: "button", class: "quiet", "data-tool": "copy", "aria-label": `Copy: ${label}`, on: { click: async () => {
        await copy([given.columns(), ...given.rows()].map((row) => row.map(guard).join("\t")).join("\n"));
        status.textContent = "Copied";
      } } }, "Copy"),
      el("button", { type: "button", class: "quiet", "data-tool": "csv", "aria-label": `Download as CSV: ${label}`, on: { click: () => download(box.dataset.table || "table", csv([given.columns(), ...given.rows()])) } }, "CSV"),
      status);
    box.append(tools);
    return box;
  };
  document.querySelectorAll(".exhibit").forEach((box) => RP.enhance(box));
})();
