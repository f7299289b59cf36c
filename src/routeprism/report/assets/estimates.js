// The table of all estimates is made when it is opened, a part at a time.
(() => {
  const box = document.getElementById("all-estimates");
  if (!box) return;
  const { el } = RP, step = 200;
  box.addEventListener("toggle", async () => {
    if (!box.open || box.dataset.made) return;
    box.dataset.made = "true";
    const { columns, names, rows } = await RP.chunk("estimates");
    const search = el("input", { type: "search", placeholder: "such as: focal replay J", "aria-label": "Search the estimates" });
    const count = el("p", { class: "count", role: "status" }), body = el("tbody", {});
    const more = el("button", { type: "button" });
    let found = [], drawn = 0;
    const draw = () => {
      for (const row of found.slice(drawn, drawn + step)) {
        body.append(el("tr", {}, row.map((cell, at) => (at ? el("td", { class: at < names ? (cell.length > 40 ? "long" : null) : "number" }, cell) : el("th", { scope: "row" }, cell)))));
      }
      drawn = Math.min(drawn + step, found.length);
      more.hidden = drawn >= found.length;
      more.textContent = `Show ${Math.min(step, found.length - drawn)} more`;
    };
    const filter = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter((word) => word);
      found = rows.filter((row) => { const text = row.join(" ").toLowerCase(); return words.every((word) => text.includes(word)); });
      count.textContent = `${found.length} of ${rows.length} rows`;
      drawn = 0;
      body.replaceChildren();
      draw();
    };
    search.addEventListener("input", filter);
    more.addEventListener("click", draw);
    box.append(el("p", {}, search), count,
      el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "All estimates" },
        el("table", {}, el("thead", {}, el("tr", {}, columns.map((name) => el("th", { scope: "col" }, name)))), body)), more);
    filter();
  });
})();
