// The table of all estimates is made when it is opened, a part at a time; #row=N opens it at a row.
(() => {
  const box = document.getElementById("all-estimates");
  if (!box) return;
  const { el } = RP, step = 10;
  const make = async () => {
    const { columns, names, rows, run, explained } = await RP.chunk("estimates");
    const search = el("input", { type: "search", placeholder: "such as: focal replay J", "aria-label": "Search the estimates" });
    const count = el("p", { class: "count", role: "status" }), body = el("tbody", {});
    const command = el("code", {}), traced = el("p", { hidden: true }, "What this row depends on: ", command);
    const more = el("button", { type: "button" });
    // All that a number depends on stands in one column, so that the table fits the page.
    const own = ["experiment", "quantity"].map((name) => columns.indexOf(name));
    const others = columns.map((_, at) => at).filter((at) => at > 0 && at < names && !own.includes(at));
    const places = [0, ...own, -1, ...columns.map((_, at) => at).filter((at) => at >= names)];
    const conditions = (row) => others.filter((at) => row[at]).map((at) => row[at]).join(" · ");
    const read = (row, place) => (place < 0 ? conditions(row) : row[place]);
    const help = (place) => (place < 0 ? "Memory, order, model and everything else that the number depends on." : null);
    let found = [], drawn = 0;
    const cell = (row) => (place) => {
      const text = read(row, place);
      if (!place) return el("th", { scope: "row" }, el("a", { href: `#row=${text}` }, text));
      return el("td", { class: place < names ? "name" : "number", title: place < 0 ? others.filter((at) => row[at]).map((at) => `${columns[at]}: ${row[at]}`).join("\n") : null }, text);
    };
    const draw = () => {
      for (const row of found.slice(drawn, drawn + step)) body.append(el("tr", {}, places.map(cell(row))));
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
    const heads = places.map((place) => el("th", { scope: "col", class: place >= names ? "number" : null, "data-help": help(place) || explained[place] }, place < 0 ? "conditions" : columns[place]));
    const exhibit = el("div", { class: "exhibit", "data-table": "estimates" }, el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "All estimates" },
      el("table", {}, el("thead", {}, el("tr", {}, heads)), body)));
    RP.enhance(exhibit, {
      columns: () => columns, rows: () => found,
      sort: (at, sign) => list([...found].sort((one, other) => sign * RP.order(read(one, places[at]), read(other, places[at])))),
    });
    box.append(el("p", {}, search), count, traced, exhibit, more);
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
  box.addEventListener("toggle", () => { if (box.open) RP.whenOpen(box, opened); });
  if (box.open) RP.whenOpen(box, opened);
  window.addEventListener("hashchange", follow);
  follow();
})();
