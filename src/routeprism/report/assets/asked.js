// What was asked and what was said: the answers of every draw, and the prompts they were given to.
const optionText = (question, letter) => {
  const at = letter.length === 1 ? letter.charCodeAt(0) - 97 : -1;
  return question.options[at] !== undefined ? question.options[at] : "";
};
const drawNodes = (question, said, right) => RP.el("span", { class: "draws" }, said.map((answer, draw) => {
  const verdict = right && right.length ? (right[draw] ? "right" : "wrong") : "";
  const mark = verdict === "right" ? " ✓" : verdict === "wrong" ? " ✗" : "";
  return RP.el("span", { class: "draw " + verdict, title: RP.short(optionText(question, answer) || answer, 300), "data-verdict": verdict },
    RP.short(answer || "(empty)", 400) + mark, verdict ? RP.el("span", { class: "skip" }, ` (${verdict})`) : null);
}));

// A prompt piece by piece: its frame, its padding as a number, its blocks with their records.
const NO_ROLE = ["", ""];
const pieceNode = (chunk, piece, roles) => {
  const text = chunk.texts[piece[0]];
  if (piece.length === 3) return RP.el("div", { class: "block frame" }, `padding: “${text.trim()}” × ${piece[2]}`);
  if (piece.length === 1) return text.trim() ? RP.el("div", { class: "block frame" }, RP.text(text.trim(), 90)) : null;
  const [cls, note] = (roles && piece[1].map((at) => roles.get(at)).find((role) => role)) || NO_ROLE;
  const names = piece[1].map((at) => recordId(chunk, at)).join(", ") || "no record";
  return RP.el("div", { class: "block " + cls, "data-record": piece[1].map((at) => chunk.records[at][0]).join(" "), "data-role": cls },
    RP.el("div", { class: "from" }, RP.el("span", {}, (piece[1].length > 1 ? "records " : "record ") + names), note ? RP.el("strong", {}, note) : null),
    RP.text(text, 260));
};
const promptNode = (chunk, question, one, at, about, roles) => {
  const side = one.sides[at];
  return RP.el("div", { class: "condition", "data-condition": side.name },
    RP.el("h5", {}, RP.short(about[0], 60)), RP.el("p", { class: "count" }, `${about[1] ? about[1] + "; " : ""}${side.tokens} tokens`),
    one.answers.map((answers) => RP.el("p", { class: "says" }, RP.el("span", { class: "count" }, RP.short(answers.model, 40) + " "), drawNodes(question, answers.said[at], answers.right[at]))),
    side.pieces.length ? side.pieces.map((piece) => pieceNode(chunk, piece, roles)) : RP.el("p", { class: "count" }, "The text of this prompt is not kept."));
};
// Texts of prompts enter the page when they are asked for.
const laterNode = (title, open, make) => {
  const box = RP.el("details", { open }, RP.el("summary", {}, title));
  const fill = () => { if (box.open && box.children.length === 1) box.append(RP.el("div", { class: "conditions" }, make())); };
  box.addEventListener("toggle", fill);
  fill();
  return box;
};

const EXPERIMENTS = {
  routes: (data, one) => (one.arm ? `instruction ${one.arm}` : "routes" + (data.instructions.length > 1 ? `, instruction ${data.instructions[0]}` : "")),
  display: (data, one) => (one.arm === "source" ? "display: source order" : "display: blocks reversed"),
};
const experimentName = (data, one) => (EXPERIMENTS[one.experiment] ? EXPERIMENTS[one.experiment](data, one) : one.experiment + (one.arm ? ", " + one.arm : ""));
// The cells of a display are a route and a layout; their names say so.
const sideName = (one, name, orders) => {
  if (one.experiment !== "display") return one.sides[0].name === name ? orders[0] : orders[1];
  const at = name.indexOf("-");
  return `${orders[name.slice(0, at) === "route" ? 1 : 0]}, ${name.slice(at + 1)}`;
};

const answersNode = (data, chunk, entry, asked, orders) => {
  const question = chunk.questions[entry.id], rows = [];
  for (const one of asked) {
    const name = RP.short(experimentName(data, one), 60);
    if (one.reason) rows.push(RP.el("tr", {}, RP.el("td", { colspan: 5 }, `${name}, filler ${one.filler}: ${one.reason}`)));
    for (const answers of one.answers) {
      one.sides.forEach((side, at) => rows.push(RP.el("tr", { "data-side": side.name, "data-experiment": one.experiment },
        RP.el("th", { scope: "row" }, RP.short(answers.model + (answers.batch ? ` (${answers.batch})` : ""), 60)),
        RP.el("td", {}, name), RP.el("td", {}, one.filler),
        RP.el("td", {}, RP.short(sideName(one, side.name, orders), 60)), RP.el("td", {}, drawNodes(question, answers.said[at], answers.right[at])))));
    }
  }
  const node = RP.el("div", {});
  if (chunk.anchor) {
    node.append(RP.el("p", { class: "says", "data-reuse": chunk.anchor === entry.id ? "anchor" : "target" }, chunk.anchor === entry.id
      ? "Reuse: this is the anchor. The state of each order counts as built for it, and its own answers are left out there."
      : `Reuse: a target. It was asked of the state that stands for the anchor ${RP.short(chunk.anchor, 80)}; its answers there are those of the two orders.`));
  }
  node.append(RP.enhance(RP.el("div", { class: "exhibit", "data-table": "answers" }, RP.el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Answers of every draw" }, RP.el("table", {},
    RP.el("thead", {}, RP.el("tr", {}, ["model", "experiment", "filler", "order", "draws"].map((name) => RP.el("th", { scope: "col" }, name)))),
    RP.el("tbody", {}, rows))))));
  for (const one of asked.filter((one) => one.sides.length)) {
    node.append(laterNode(`What the model read: ${RP.short(experimentName(data, one), 60)}, filler ${one.filler}`, false,
      () => one.sides.map((side, at) => promptNode(chunk, question, one, at, [sideName(one, side.name, orders), ""], null))));
  }
  return node;
};

const ABOUT = {
  present: "the order that still has the record", absent: "the order that lost it",
  restored: "Absent, with the displaced record put back", replacement: "Absent, with a matched record without evidence instead",
};
const restorationNode = (chunk, question, asked, decided) => {
  const found = asked.filter((one) => one.experiment === "restoration");
  const place = new Map(chunk.records.map((record, at) => [record[0], at]));
  const node = RP.el("div", {});
  if (!found.length) {
    if (decided) node.append(RP.el("p", {}, `Not eligible: ${decided.single.reason || "its prompts were not asked"}.`));
    return node;
  }
  // Which record a condition is about, and in which way.
  const roles = (arm, condition) => {
    const told = decided ? (arm === "bundle" ? decided.bundle : arm === "identity-swap" ? decided.swap : decided.single) : null;
    if (!told) return new Map();
    if (told.missing) return new Map(told.missing.map((id) => [place.get(id), ["highlight", "missing evidence"]]));
    const about = {
      present: [told.support, "highlight", "the record that the other order lost"], absent: [told.removed, "removed", "stands in its place"],
      restored: [told.support, "highlight", "put back"], replacement: [told.replacement, "matched", "matched record without evidence"],
    }[condition];
    return about && about[0] !== undefined ? new Map([[place.get(about[0]), about.slice(1)]]) : new Map();
  };
  for (const one of found) {
    node.append(laterNode(`${one.arm ? RP.short(one.arm, 40) : "single record"}, filler ${one.filler}`, one === found[0],
      () => one.sides.map((side, at) => promptNode(chunk, question, one, at, [side.name, ABOUT[side.name] || "a step of the bundle"], roles(one.arm, side.name)))));
  }
  return node;
};
