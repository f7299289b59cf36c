// The list of questions: search, filters, links of the form #q=ID&policy=…&schedule=…, keys.
(() => {
  const root = document.getElementById("prism");
  const data = RP.read("rp-questions");
  if (!root || !data || !data.index.length) return;
  const { el } = RP, flags = data.flags, step = 20;
  const lost = flags["lost-on-route"] | flags["lost-on-forward"];
  const tests = { sources: [flags.sources, "records changed"], context: [flags.context, "text changed"], lost: [lost, "lost evidence"], answer: [flags.answer, "answer flipped"], restored: [flags.restored, "restored"] };
  const any = (bits) => data.index.some((entry) => entry.flags.some((flag) => flag & bits));
  const kinds = [...new Set(data.index.map((entry) => entry.kind))].filter((kind) => kind).sort();
  const select = (name, all, values, field = name) => el("label", {}, name, el("select", { "data-filter": field }, all === null ? null : el("option", { value: "" }, all), values.map((value, at) => el("option", { value: String(at) }, RP.short(value, 60)))));
  const search = document.getElementById("search"), panel = root.closest(".panel");
  const policy = select("policy", "every policy", data.policies), schedule = select("order", "every order", data.orders.map(([, name]) => name), "schedule"), kind = select("kind", "every kind", kinds);
  const checks = Object.entries(tests).filter(([, [bits]]) => any(bits)).map(([name, [, words]]) => el("label", {}, el("input", { type: "checkbox", value: name, "data-filter": name }), words));
  const found = el("ul", { class: "found", "aria-label": "Questions" }), count = el("p", { class: "count", role: "status" });
  const pane = el("article", { class: "question", "aria-label": "The question", tabindex: -1 });
  root.append(el("div", { class: "browser" },
    el("div", { class: "finder" },
      el("div", { class: "filters" }, el("div", { class: "two" }, policy, schedule), kinds.length > 1 ? kind : null,
        checks.length ? el("fieldset", { class: "checks", "aria-label": "Show only questions with" }, checks) : null),
      count, found), pane));
  const value = (label) => label.querySelector("select").value;
  const haystack = data.index.map((entry) => `${entry.id}\n${data.users[entry.user]}\n${entry.kind}\n${entry.text}`.toLowerCase());
  const byId = new Map(data.index.map((entry, at) => [entry.id, at]));
  const wide = data.schedules.length;
  const pairsFor = () => {
    const own = [];
    for (let p = 0; p < data.policies.length; p++) for (let s = 0; s < wide; s++) {
      if ((value(policy) === "" || value(policy) === String(p)) && (value(schedule) === "" || value(schedule) === String(s))) own.push(p * wide + s);
    }
    return own;
  };
  const wanted = () => checks.map((label) => label.firstChild).filter((box) => box.checked).map((box) => tests[box.value][0]);
  // Failures come first: evidence lost with another result, evidence lost, another answer, other records.
  const ranks = [[flags["lost-on-route"], 16], [flags.correctness, 8], [flags.answer, 4], [flags.sources, 2], [flags.context, 1]];
  const rank = (bits) => ranks.reduce((sum, [bit, weight]) => sum + (bits & bit ? weight : 0), 0);
  const fits = (entry, own, bits) => own.filter((pair) => bits.every((bit) => entry.flags[pair] & bit))
    .reduce((best, pair) => (best === undefined || rank(entry.flags[pair]) > rank(entry.flags[best]) ? pair : best), undefined);
  let matching = [], drawn = 0, current = { at: -1, policy: 0, schedule: 0 };
  const link = (entry, pair) => {
    const named = new URLSearchParams({ q: entry.id });
    if (pair !== undefined) { named.set("policy", data.policies[Math.floor(pair / wide)]); named.set("schedule", data.schedules[pair % wide]); }
    return "#" + named.toString();
  };
  const marks = (entry, own) => {
    const bits = own.reduce((sum, pair) => sum | entry.flags[pair], 0), list = [];
    if (bits & flags.sources) list.push(["", "records"]); else if (bits & flags.context) list.push(["", "text"]);
    if (bits & lost) list.push(["lost", "lost evidence"]);
    if (bits & flags.answer) list.push(["flip", "answer flipped"]);
    return el("span", { class: "marks" }, list.map(([cls, words]) => el("span", { class: "mark " + cls }, words)));
  };
  const more = () => {
    const own = pairsFor();
    found.querySelector(".more")?.remove();
    for (const [at, pair] of matching.slice(drawn, drawn + step)) {
      const entry = data.index[at];
      found.append(el("li", {}, el("a", { href: link(entry, pair), "data-at": at, "aria-current": at === current.at ? "true" : null },
        el("span", { class: "text" }, RP.short(entry.text.trim(), 240)), el("span", { class: "meta" }, RP.short(`${entry.id} · ${data.users[entry.user]}${entry.kind ? " · " + entry.kind : ""}`, 140)), marks(entry, own))));
    }
    drawn = Math.min(drawn + step, matching.length);
    if (drawn < matching.length) found.append(el("li", { class: "more" }, el("button", { type: "button", on: { click: more } }, `Show ${Math.min(step, matching.length - drawn)} more`)));
  };
  const filter = () => {
    const text = search.value.trim().toLowerCase().split(/\s+/).filter((word) => word), own = pairsFor(), bits = wanted(), chosen = value(kind);
    matching = [];
    data.index.forEach((entry, at) => {
      if (chosen !== "" && kinds.length > 1 && entry.kind !== kinds[Number(chosen)]) return;
      if (!text.every((word) => haystack[at].includes(word))) return;
      const pair = fits(entry, own, bits);
      if (pair !== undefined) matching.push([at, pair]);
    });
    const weights = matching.map(([at, pair]) => rank(data.index[at].flags[pair]));
    matching = matching.map((one, at) => [one, weights[at]]).sort((one, other) => other[1] - one[1]).map(([one]) => one);
    drawn = 0;
    found.replaceChildren();
    count.textContent = `${matching.length} of ${data.index.length} questions`;
    more();
  };
  const show = async (at, p, s, focus) => {
    current = { at, policy: p, schedule: s };
    const entry = data.index[at];
    found.querySelectorAll("a[aria-current]").forEach((other) => other.removeAttribute("aria-current"));
    found.querySelector(`a[data-at="${at}"]`)?.setAttribute("aria-current", "true");
    let chunk;
    if (!document.getElementById("rp-chunk-" + entry.user)) {
      pane.replaceChildren(el("h3", {}, RP.short(entry.text.trim(), 2000)), el("p", {}, "The texts of this pool are not in this page, to keep it small. They are in the run; routeprism report RUN --megabytes N makes room for more."));
      pane.dataset.question = entry.id;
      return;
    }
    try { chunk = await RP.chunk(entry.user); } catch (error) {
      pane.replaceChildren(el("p", {}, "This browser cannot unpack the question: it needs DecompressionStream (Chromium 103, Firefox 113, Safari 16.4, or newer)."));
      return;
    }
    if (current.at !== at || current.policy !== p || current.schedule !== s) return;
    const choose = (name, values, chosen, call) => el("label", {}, name, el("select", { "data-choose": name, on: { change: (event) => call(Number(event.target.value)) } }, values.map((text, number) => el("option", { value: number, selected: number === chosen }, RP.short(text, 60)))));
    const go = (number) => el("button", { type: "button", disabled: !neighbour(number), "data-go": number, on: { click: () => walk(number) } }, number < 0 ? "← Previous" : "Next →");
    pane.replaceChildren(
      el("div", { class: "steps" }, choose("policy", data.policies, p, (to) => open(at, to, s)), choose(`order compared with ${data.orders[s][0]}`, data.orders.map(([, name]) => name), s, (to) => open(at, p, to)), el("span", { class: "go" }, go(-1), go(1))),
      el("h3", { tabindex: 0 }, entry.text.trim()), el("p", { class: "count id" }, RP.short(`${entry.id} · user ${data.users[entry.user]}${entry.kind ? " · " + entry.kind : ""}`, 400)),
      RP.question(data, chunk, entry, p, s));
    RP.reachable(pane);
    pane.dataset.question = entry.id;
    if (focus) { pane.focus({ preventScroll: true }); pane.scrollIntoView({ block: "start" }); }
  };
  const open = (at, p, s) => { location.hash = link(data.index[at], p * wide + s); };
  const neighbour = (number) => matching[matching.findIndex(([at]) => at === current.at) + number];
  const walk = (number) => {
    const next = matching.findIndex(([at]) => at === current.at) + number;
    if (!matching[next]) return;
    while (drawn <= next) more();
    open(matching[next][0], current.policy, current.schedule);
    found.querySelector(`a[data-at="${matching[next][0]}"]`)?.scrollIntoView({ block: "nearest" });
  };
  const follow = (focus) => {
    if (!location.hash.startsWith("#q=")) return false;
    const named = new URLSearchParams(location.hash.slice(1));
    const at = byId.get(named.get("q"));
    if (at === undefined) { pane.replaceChildren(el("p", {}, `This run has no question ${RP.short(named.get("q") || "", 120)}.`)); if (focus) pane.scrollIntoView(); return true; }
    const place = (list, name) => { const number = list.indexOf(named.get(name)); return number >= 0 ? number : 0; };
    show(at, place(data.policies, "policy"), place(data.schedules, "schedule"), focus);
    return true;
  };
  root.querySelector(".filters").addEventListener("input", filter);
  search.addEventListener("input", () => { RP.openTab(panel); filter(); });
  window.addEventListener("hashchange", () => follow(true));
  // Arrows move through the list from the search; Enter opens what has the focus.
  const stepTo = (from, number) => {
    const all = [...found.querySelectorAll("a")], at = all.indexOf(from) + number;
    if (at < 0) search.focus();
    if (at >= all.length && drawn < matching.length) { more(); stepTo(from, number); return; }
    if (all[at]) all[at].focus();
  };
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/" && !typing) { event.preventDefault(); RP.openTab(panel); search.focus(); }
    if ((event.key === "j" || event.key === "k") && !typing) walk(event.key === "j" ? 1 : -1);
    if (event.key === "Escape" && event.target === search) { search.value = ""; filter(); }
    const number = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (number && (event.target === search || found.contains(event.target))) { event.preventDefault(); RP.openTab(panel); stepTo(event.target, number); }
    if (event.key === "Enter" && event.target === search && matching.length) { event.preventDefault(); RP.openTab(panel); stepTo(search, 1); document.activeElement.click(); }
  });
  filter();
  if (!follow(true)) {
    RP.whenOpen(root, () => {
      if (current.at >= 0 || !matching.length || !data.policies.length || !wide) return;
      const [at, pair] = matching[0];
      show(at, Math.floor(pair / wide), pair % wide, false);
    });
  }
})();
