// The table of all estimates is made when it is opened, a part at a time; #row=N opens it at a row.
(() => {
  const box = document.getElementById("all-estimates");
  if (!box) return;
  const { el } = RP, step = 200;
  const make = async () => {
    const { columns, names, rows, run } = await RP.chunk("estimates");
    const search = el("input", { type: "search", placeholder: "such as: focal replay J", "aria-label": "Search the estimates" });
    const count = el("p", { class: "count", role: "status" }), body = el("tbody", {});
    const command = el("code", {}), traced = el("p", { hidden: true }, "What this row rests on: ", command);
    const more = el("button", { type: "button" });
    let found = [], drawn = 0;
    const cell = (text, at) => {
      if (!at) return el("th", { scope: "row" }, el("a", { href: `#row=${text}` }, text));
      return el("td", { class: at < names ? (text.length > 40 ? "long" : null) : "number" }, text);
    };
    const draw = () => {
      for (const row of found.slice(drawn, drawn + step)) body.append(el("tr", {}, row.map(cell)));
      drawn = Math.min(drawn + step, found.length);
      more.hidden = drawn >= found.length;
      more.textContent = `Show ${Math.min(step, found.length - drawn)} more`;
    };
    const list = (chosen) => {
      found = chosen;
      count.textContent = `${found.length} of ${rows.length} rows`;
      drawn = 0;
      body.replaceChildren();
      draw();
    };
    const filter = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter((word) => word);
      traced.hidden = true;
      list(rows.filter((row) => { const text = row.join(" ").toLowerCase(); return words.every((word) => text.includes(word)); }));
    };
    search.addEventListener("input", filter);
    more.addEventListener("click", draw);
    box.append(el("p", {}, search), count, traced,
      el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "All estimates" },
        el("table", {}, el("thead", {}, el("tr", {}, columns.map((name) => el("th", { scope: "col" }, name)))), body)), more);
    filter();
    return (number) => {
      search.value = "";
      list(rows.slice(number - 1, number));
      if (!found.length) count.textContent = `This run has no row ${number}: it has ${rows.length}.`;
      command.textContent = `routeprism trace ${run} --row ${number}`;
      traced.hidden = !found.length;
      search.focus({ preventScroll: true });
      box.scrollIntoView();
    };
  };
  let made = null;
  const opened = () => (made ??= make());
  const follow = async () => {
    const named = /^#row=([1-9]\d*)$/.exec(location.hash);
    if (!named) return;
    box.open = true;
    (await opened())(Number(named[1]));
  };
  box.addEventListener("toggle", () => { if (box.open) opened(); });
  window.addEventListener("hashchange", follow);
  follow();
})();
