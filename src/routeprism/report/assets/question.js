// One question: the prism, the two contexts, what was asked and said, the events.
const recordId = (chunk, at) => `'${RP.short(chunk.records[at][0], 40)}'`;

const legend = (names) => {
  const sample = (cls) => RP.svg("svg", { class: "prism", width: 30, height: 10, style: "display:inline;width:30px", "aria-hidden": "true" },
    RP.svg("line", { class: `line ${cls}`, x1: 2, y1: 5, x2: 28, y2: 5 }));
  return RP.el("ul", { class: "key" },
    RP.el("li", {}, sample("forward exposed"), `shown in ${RP.short(names[0], 40)}`),
    RP.el("li", {}, sample("route exposed"), `shown in ${RP.short(names[1], 40)}`),
    RP.el("li", {}, sample("forward retained"), "kept but not shown"),
    RP.el("li", {}, sample("dropped"), "dropped"),
    RP.el("li", {}, "★ evidence"));
};

// Longest common subsequence over blocks that have the same text.
const aligned = (one, other) => {
  const long = one.map(() => new Array(other.length + 1).fill(0)).concat([new Array(other.length + 1).fill(0)]);
  for (let a = one.length - 1; a >= 0; a--) {
    for (let b = other.length - 1; b >= 0; b--) {
      long[a][b] = one[a] === other[b] ? long[a + 1][b + 1] + 1 : Math.max(long[a + 1][b], long[a][b + 1]);
    }
  }
  const steps = [];
  let a = 0, b = 0;
  while (a < one.length || b < other.length) {
    if (a < one.length && b < other.length && one[a] === other[b]) steps.push([a++, b++]);
    else if (b >= other.length || (a < one.length && long[a + 1][b] >= long[a][b + 1])) steps.push([a++, -1]);
    else steps.push([-1, b++]);
  }
  return steps;
};

const words = (text) => text.split(/(\s+)/).filter((word) => word !== "");
const wordDiff = (before, after) => {
  const one = words(before), other = words(after);
  if (one.length * other.length > 1500000) return null;
  const parts = [[], []];
  let kinds = ["", ""], runs = ["", ""];
  const push = (side, kind, word) => {
    if (kinds[side] !== kind && runs[side]) { parts[side].push(kinds[side] ? RP.el(kinds[side], {}, runs[side]) : runs[side]); runs[side] = ""; }
    kinds[side] = kind; runs[side] += word;
  };
  for (const [a, b] of aligned(one, other)) {
    if (a >= 0 && b >= 0) { push(0, "", one[a]); push(1, "", other[b]); }
    else if (a >= 0) push(0, "del", one[a]);
    else push(1, "ins", other[b]);
  }
  return parts.map((part, side) => { if (runs[side]) part.push(kinds[side] ? RP.el(kinds[side], {}, runs[side]) : runs[side]); return part; });
};

const blockNode = (chunk, block, support, cls, note, body) => RP.el("div", { class: "block " + cls },
  RP.el("div", { class: "from" },
    RP.el("span", {}, `${block[0]} from ${block[2].map((at) => recordId(chunk, at)).join(", ") || "no record"}`),
    block[2].some((at) => support.has(at)) ? RP.el("span", { class: "supports" }, "★ evidence") : null,
    note ? RP.el("span", {}, note) : null),
  body || RP.text(chunk.texts[block[1]], 420));

const diffNode = (chunk, contexts, support, names) => {
  const [one, other] = contexts.map((context) => context.blocks);
  const texts = [one, other].map((blocks) => blocks.map((block) => block[1]));
  const node = RP.el("div", { class: "diff" },
    RP.el("div", { class: "side forward" }, "− " + RP.short(names[0], 60)), RP.el("div", { class: "side route" }, "+ " + RP.short(names[1], 60)));
  if (!one.length && !other.length) node.append(RP.el("p", {}, "The question is shown nothing in either order."));
  const sameSources = (a, b) => String(one[a][2]) === String(other[b][2]);
  const waiting = [[], []];
  const single = (side, at, moved) => {
    const block = side ? other[at] : one[at];
    return blockNode(chunk, block, support, side ? "route" : "forward", (side ? "+ " : "− ") + (moved ? "moved" : `only in ${RP.short(names[side], 40)}`));
  };
  // What differs between two blocks that are the same stands side by side.
  const flush = () => {
    for (let row = 0; row < Math.max(waiting[0].length, waiting[1].length); row++) {
      const [a, b] = [waiting[0][row], waiting[1][row]];
      const parts = a !== undefined && b !== undefined && sameSources(a, b) ? wordDiff(chunk.texts[one[a][1]], chunk.texts[other[b][1]]) : null;
      if (parts) {
        node.append(blockNode(chunk, one[a], support, "forward", "− rewritten", RP.el("div", { class: "body" }, parts[0])),
          blockNode(chunk, other[b], support, "route", "+ rewritten", RP.el("div", { class: "body" }, parts[1])));
        continue;
      }
      [a, b].forEach((at, side) => node.append(at === undefined
        ? RP.el("div", { class: "block gap", "aria-hidden": "true" }, "nothing")
        : single(side, at, texts[1 - side].includes((side ? other : one)[at][1]))));
    }
    waiting[0].length = waiting[1].length = 0;
  };
  for (const [a, b] of aligned(...texts)) {
    if (a >= 0 && b >= 0) { flush(); node.append(blockNode(chunk, one[a], support, "both", "= in both")); }
    else waiting[a >= 0 ? 0 : 1].push(a >= 0 ? a : b);
  }
  flush();
  return node;
};

const DONE = { add: "is added", merge: "is merged into what is there", overwrite: "is overwritten", evict: "is evicted", skip: "is skipped" };
const timelineNode = (chunk, sides, names) => RP.el("div", { class: "timeline" }, sides.map((side, which) => {
  const arrivals = (side.route ? side.route.order : []).map((record, at) => RP.el("li", {}, RP.el("span", { class: "id" }, chunk.records[record][3]), " arrives: ",
    side.route.events.filter((event) => event[3] === at).map(([kind, what, by], number) => [number ? ", " : "",
      RP.el("span", { class: "event " + (DONE[kind] ? kind : "") }, kind), what === by ? "" : what < 0 ? " a record" : " " + recordId(chunk, what)])));
  return RP.el("div", {}, RP.el("h5", {}, RP.short(names[which], 60)), RP.el("ol", {}, arrivals));
}));

RP.question = (data, chunk, entry, policy, schedule) => {
  const question = chunk.questions[entry.id];
  const pair = policy * data.schedules.length + schedule;
  const names = data.orders[schedule];
  const shown = question.shown[pair] || [null, null];
  const sides = [data.references[schedule], schedule + 1].map((at, which) => ({ route: (chunk.routes[policy] || [])[at], context: shown[which] === null ? null : chunk.contexts[shown[which]] }));
  const labels = question.support[data.labels] || [];
  const support = new Set(labels);
  const asked = question.asked[pair] || [], decided = question.eligibility[pair];
  const node = RP.el("div", {});
  const isLost = entry.flags[pair] & data.flags["lost-on-route"];
  const causes = question.causes[pair].length ? question.causes[pair] : isLost ? ["Why this question loses evidence was not examined."] : [];
  if (causes.length) node.append(RP.el("div", { class: "causes", role: "note", "aria-label": "Cause" }, causes.map((cause) => RP.el("p", {}, cause))));
  if (question.options.length) {
    node.append(RP.el("ul", { class: "options", "aria-label": "Options" }, question.options.map((option, at) => {
      const letter = String.fromCharCode(97 + at), gold = letter === question.gold;
      return RP.el("li", { class: gold ? "gold" : "" }, `${letter}) ${option}`, gold ? RP.el("strong", {}, "  ✓ right answer") : null);
    })));
  } else if (question.gold !== null) {
    node.append(RP.el("ul", { class: "options" }, RP.el("li", { class: "gold" }, question.gold, RP.el("strong", {}, "  ✓ right answer"))));
  }
  const recordText = RP.el("div", { "aria-live": "polite" });
  const open = (record) => recordText.replaceChildren(RP.el("div", { class: "block" },
    RP.el("div", { class: "from" }, RP.el("strong", {}, "record " + recordId(chunk, record)), chunk.records[record][1] ? RP.el("span", {}, chunk.records[record][1]) : null),
    RP.text(chunk.texts[chunk.records[record][2]], 1500)));
  const picture = RP.el("div", {});
  const states = sides.map((side) => RP.states(chunk, side.route, side.context));
  node.append(RP.el("p", { class: "says" }, RP.told(chunk, states, support, names),
    labels.length ? null : " This question has no evidence labels."), picture, legend(names), recordText,
    RP.el("details", {}, RP.el("summary", {}, "The same as a table"), RP.prismTable(chunk, sides, support, names)));
  let drawn = 0;
  new ResizeObserver(() => {
    const width = Math.max(280, Math.floor(picture.clientWidth));
    if (width !== drawn) { drawn = width; picture.replaceChildren(RP.prism(chunk, sides, support, names, width, open)); }
  }).observe(picture);
  if (sides[0].context && sides[1].context) {
    const same = sides[0].context.sha256 === sides[1].context.sha256;
    node.append(RP.el("h4", {}, same ? "The context, the same in both orders" : "The two contexts"), diffNode(chunk, sides.map((side) => side.context), support, names));
  }
  const routed = asked.filter((one) => one.experiment !== "restoration");
  if (routed.length) node.append(RP.el("h4", {}, "The answers of every draw"), answersNode(data, chunk, entry, routed, names));
  if (decided || asked.some((one) => one.experiment === "restoration")) {
    node.append(RP.el("h4", {}, "Putting the record back"), restorationNode(chunk, question, asked, decided));
  }
  if (sides.some((side) => side.route && side.route.events.length)) {
    node.append(RP.el("h4", {}, "What each arrival did"), timelineNode(chunk, sides, names));
  }
  const other = [...question.findings, ...chunk.findings].filter((one) => (!one.policy || one.policy === data.policies[policy]) && (!one.schedule || one.schedule === data.schedules[schedule] || !data.schedules.includes(one.schedule)));
  if (other.length) {
    // What has a sentence is said; the rest is there as it is kept.
    node.append(RP.el("h4", {}, "More findings"), ...other.filter((one) => one.value && one.value.sentence).map((one) => RP.el("p", { class: "says" }, one.value.sentence)),
      ...other.map((one) => RP.el("details", {},
        RP.el("summary", {}, RP.short(`${one.experiment}: ${one.name.replaceAll("_", " ")}${one.schedule ? ", " + one.schedule : ""}`, 120)), RP.el("pre", { tabindex: 0 }, JSON.stringify(one.value, null, 1).slice(0, 20000)))));
  }
  return node;
};
