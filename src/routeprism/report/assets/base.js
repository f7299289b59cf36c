"use strict";
// What all parts share. Text only ever enters the page as text: no markup is made from strings.
const RP = {};

RP.read = (id) => {
  const block = document.getElementById(id);
  return block ? JSON.parse(block.textContent) : null;
};

// Characters that turn the direction of the words around them are shown as their names.
RP.reveal = (text) => text.replace(/[\u202a-\u202e\u2066-\u2069]/g, (character) => `⟨U+${character.charCodeAt(0).toString(16).toUpperCase()}⟩`);

const SVG = "http://www.w3.org/2000/svg";
const fill = (node, attributes, children) => {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "on") {
      for (const [kind, call] of Object.entries(value)) node.addEventListener(kind, call);
    } else if (value === true) {
      node.setAttribute(name, "");
    } else if (value !== null && value !== undefined && value !== false) {
      node.setAttribute(name, String(value));
    }
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined).map((child) => (typeof child === "string" ? RP.reveal(child) : child)));
  return node;
};
RP.el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
RP.svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

RP.short = (text, most) => {
  if (text.length <= most) return text;
  const half = Math.floor((most - 1) / 2);
  return text.slice(0, most - 1 - half) + "…" + text.slice(text.length - half);
};

// A chunk is JSON, deflated, in base64; it is unpacked when a question of its pool is opened.
const unpacked = new Map();
RP.chunk = (name) => {
  if (!unpacked.has(name)) unpacked.set(name, unpack(name));
  return unpacked.get(name);
};
const unpack = async (name) => {
  const packed = atob(document.getElementById("rp-chunk-" + name).textContent);
  const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return JSON.parse(await new Response(stream).text());
};

// What is too long for its place can be scrolled, so the keyboard has to reach it.
const sized = new ResizeObserver((entries) => entries.forEach(({ target }) => {
  if (target.scrollHeight > target.clientHeight + 1 || target.scrollWidth > target.clientWidth + 1) target.tabIndex = 0;
  else target.removeAttribute("tabindex");
}));
RP.reachable = (root) => root.querySelectorAll("dd, figcaption, .card h3, .action h3, .options li, .draw").forEach((node) => sized.observe(node));
document.addEventListener("DOMContentLoaded", () => RP.reachable(document));

// Long texts are cut; the rest is a press of a button away.
RP.text = (text, most = 700) => {
  const body = RP.el("div", { class: "body" });
  sized.observe(body);
  if (text.length <= most) {
    body.textContent = RP.reveal(text);
    return body;
  }
  const more = RP.el("button", { type: "button", class: "linkish" });
  let whole = false;
  const show = () => {
    body.textContent = RP.reveal(whole ? text : text.slice(0, most) + "…");
    more.textContent = whole ? "Show less" : `Show all ${text.length.toLocaleString("en")} characters`;
  };
  more.addEventListener("click", () => { whole = !whole; show(); });
  show();
  return RP.el("div", {}, body, more);
};

// Light, dark, or as the system has it.
RP.themed = [];
RP.dark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};
const themeButton = document.getElementById("theme");
const themes = ["auto", "light", "dark"];
let theme = 0;
const changed = () => RP.themed.forEach((call) => call());
if (themeButton) {
  themeButton.addEventListener("click", () => {
    theme = (theme + 1) % themes.length;
    themeButton.textContent = "Theme: " + themes[theme];
    if (theme === 0) delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = themes[theme];
    changed();
  });
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
