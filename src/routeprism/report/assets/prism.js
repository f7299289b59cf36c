// The prism: a pool's records in a column, the two orders beside it, lines from each record to its
// place of arrival. A thick line means exposed, a dashed one retained only, a dotted one dropped.
const PRISM = { row: 34, top: 40, most: 60 };

RP.states = (chunk, route, context) => {
  const retained = new Set(route ? route.retained : []);
  const exposed = new Set(context ? context.sources : []);
  return chunk.records.map((_, at) => (exposed.has(at) ? "exposed" : retained.has(at) ? "retained" : "dropped"));
};

RP.prism = (chunk, sides, support, names, width, open) => {
  const states = sides.map((side) => RP.states(chunk, side.route, side.context));
  let shown = chunk.records.map((_, at) => at);
  if (shown.length > PRISM.most) {
    shown = shown.filter((at) => support.has(at) || states.some((state) => state[at] !== "dropped"));
  }
  const narrow = width < 560;
  const middle = narrow ? Math.min(150, width * 0.4) : Math.min(300, width * 0.36);
  const left = narrow ? 22 : 60, right = width - left;
  const boxes = { from: (width - middle) / 2, to: (width + middle) / 2 };
  const rows = new Map(shown.map((record, row) => [record, row]));
  const places = sides.map((side) => {
    // Arrivals in order; records that are left out of the picture leave no gap.
    const order = side.route ? side.route.order.filter((record, at, all) => rows.has(record) && all.indexOf(record) === at) : [];
    return new Map(order.map((record, at) => [record, at]));
  });
  const y = (row) => PRISM.top + row * PRISM.row + PRISM.row / 2;
  const height = PRISM.top + shown.length * PRISM.row + 8;
  const svg = RP.svg("svg", { class: "prism", viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": RP.told(chunk, states, support, names) });
  const label = (x, anchor, cls, text) => RP.svg("text", { x, y: 18, "text-anchor": anchor, class: cls }, text);
  svg.append(
    label(narrow ? 2 : left - 40, "start", "title-forward", RP.short(names[0], narrow ? 10 : 24)),
    label(width / 2, "middle", "faint", narrow ? "records" : "records in source order ↓"),
    label(narrow ? width - 2 : right + 40, "end", "title-route", RP.short(names[1], narrow ? 10 : 24)),
  );
  if (!narrow) {
    svg.append(
      RP.svg("text", { x: left - 40, y: 33, class: "faint number", style: "text-anchor:start" }, "order of arrival ↓"),
      RP.svg("text", { x: right + 40, y: 33, class: "faint number", style: "text-anchor:end" }, "order of arrival ↓"),
    );
  }
  const rank = { dropped: 0, retained: 1, exposed: 2 };
  const drawn = [];
  sides.forEach((side, which) => {
    const cls = which ? "route" : "forward";
    for (const [record, at] of places[which]) {
      const state = states[which][record];
      const from = which ? boxes.to : boxes.from, to = which ? right - 13 : left + 13;
      const bend = (from + to) / 2, one = y(rows.get(record)), other = y(at);
      drawn.push([rank[state], RP.svg("path", {
        class: `line ${cls} ${state}`, d: `M${from} ${one}C${bend} ${one} ${bend} ${other} ${to} ${other}`,
        "data-record": chunk.records[record][0], "data-side": cls, "data-state": state, "data-arrival": at,
      })]);
    }
  });
  drawn.sort((one, other) => one[0] - other[0]).forEach(([, line]) => svg.append(line));
  sides.forEach((side, which) => {
    const cls = which ? "route" : "forward", x = which ? right : left;
    for (const [record, at] of places[which]) {
      const state = states[which][record];
      svg.append(
        RP.svg("circle", { class: `slot ${cls} ${state}`, cx: x, cy: y(at), r: 12 }),
        RP.svg("text", { class: "number" + (state === "exposed" ? " exposed-number" : state === "dropped" ? " faint" : ""), x, y: y(at) + 4 }, String(at + 1)),
      );
    }
  });
  for (const [record, row] of rows) {
    const id = chunk.records[record][0];
    const supports = support.has(record);
    const said = RP.recordTold(chunk, record, states, supports, names);
    const room = Math.floor((middle - (supports ? 40 : 20)) / 7), name = RP.short(id, room);
    const text = chunk.texts[chunk.records[record][2]].replace(/\s+/g, " ").trim();
    svg.append(
      RP.svg("rect", { class: "record" + (supports ? " support" : ""), x: boxes.from, y: y(row) - 13, width: middle, height: 26, rx: 6, "data-record": id, "data-support": supports ? "true" : "false" }),
      // A nested picture cuts what is wider than the box.
      RP.svg("svg", { x: boxes.from, y: y(row) - 13, width: middle - (supports ? 24 : 6), height: 26 },
        RP.svg("text", { x: 10, y: 17.5 }, name, room - name.length > 9 ? RP.svg("tspan", { class: "faint", dx: 8 }, text.slice(0, 80)) : "")),
      supports ? RP.svg("text", { class: "star", x: boxes.to - 20, y: y(row) + 5 }, "★") : "",
      RP.svg("rect", {
        class: "hit", x: boxes.from, y: y(row) - 14, width: middle, height: 28, tabindex: 0, role: "button", "aria-label": said,
        on: {
          click: () => open(record),
          keydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(record); } },
        },
      }, RP.svg("title", {}, said)),
    );
  }
  const hidden = chunk.records.length - shown.length;
  return RP.el("div", {}, svg, hidden ? RP.el("p", { class: "count" }, `${hidden} more records that neither order keeps are not drawn.`) : null);
};

const WORDS = { exposed: "shown", retained: "kept but not shown", dropped: "dropped" };
RP.recordTold = (chunk, record, states, supports, names) =>
  `Record ${chunk.records[record][3]}${supports ? ", evidence" : ""}: ` +
  names.map((name, which) => `${WORDS[states[which][record]]} in ${RP.short(name, 40)}`).join(", ") + ". Open its text.";

RP.told = (chunk, states, support, names) => {
  const count = (which, places) => places.filter((at) => states[which][at] === "exposed").length;
  const [first, second] = names.map((name) => RP.short(name, 40));
  const say = (what, places) => `Of ${places.length} ${places.length === 1 ? "record" : "records"}${what}, the question is shown ${count(0, places)} in ${first} and ${count(1, places)} in ${second}.`;
  const evidence = support.size ? ` ${say(" with evidence", [...support])}` : "";
  return say("", [...chunk.records.keys()]) + evidence;
};

RP.prismTable = (chunk, sides, support, names) => {
  const states = sides.map((side) => RP.states(chunk, side.route, side.context));
  return RP.enhance(RP.el("div", { class: "exhibit", "data-table": "records" }, RP.el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Records in both orders" },
    RP.el("table", {},
      RP.el("thead", {}, RP.el("tr", {}, ["record", "evidence", ...names].map((name) => RP.el("th", { scope: "col" }, name)))),
      RP.el("tbody", {}, chunk.records.map((record, at) => RP.el("tr", {},
        RP.el("th", { scope: "row" }, record[3]),
        RP.el("td", {}, support.has(at) ? "★ yes" : "no"),
        states.map((state) => RP.el("td", {}, WORDS[state[at]])))))))));
};
