// Tabs: one part of the page at a time. Links to what is inside a part open it; paper has them all.
(() => {
  const panels = [...document.querySelectorAll("main > .panel")];
  const links = [...document.querySelectorAll("nav.tabs a")];
  const waiting = [];
  RP.whenOpen = (node, call) => { if (node.closest(".panel[hidden]")) waiting.push([node, call]); else call(); };
  const wake = () => waiting.splice(0).forEach(([node, call]) => RP.whenOpen(node, call));
  const panelOf = (link) => document.getElementById(link.hash.slice(1));
  RP.openTab = (panel) => {
    if (!panel || !panels.includes(panel)) return;
    for (const link of links) {
      const chosen = panelOf(link) === panel;
      link.setAttribute("aria-selected", chosen ? "true" : "false");
      link.tabIndex = chosen ? 0 : -1;
    }
    panels.forEach((other) => { other.hidden = other !== panel; });
    wake();
  };
  if (!links.length) return;
  document.documentElement.classList.add("scripted");
  document.querySelector("nav.tabs ul").setAttribute("role", "tablist");
  document.querySelectorAll("nav.tabs li").forEach((item) => item.setAttribute("role", "presentation"));
  for (const link of links) {
    const panel = panelOf(link);
    link.id = "for-" + panel.id;
    link.setAttribute("role", "tab");
    link.setAttribute("aria-controls", panel.id);
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", link.id);
    panel.tabIndex = -1;
    link.addEventListener("click", (event) => { event.preventDefault(); history.pushState(null, "", link.hash); RP.openTab(panel); scrollTo(0, 0); });
    link.addEventListener("keydown", (event) => {
      const at = links.indexOf(link), last = links.length - 1;
      const to = { ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at ? at - 1 : last, Home: 0, End: last }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      links[to].focus();
      links[to].click();
    });
  }
  const parts = { "#q=": "questions", "#row=": "estimates" };
  const follow = () => {
    const start = Object.keys(parts).find((prefix) => location.hash.startsWith(prefix));
    const target = document.getElementById(start ? parts[start] : location.hash.slice(1));
    const panel = target && target.closest(".panel");
    if (!panel) return false;
    RP.openTab(panel);
    if (panel === target) scrollTo(0, 0);
    else if (!start) target.scrollIntoView();
    return true;
  };
  window.addEventListener("hashchange", follow);
  window.addEventListener("popstate", follow);
  if (!follow()) RP.openTab(panels[0]);
  else window.addEventListener("load", () => { if (/^#tab-/.test(location.hash)) scrollTo(0, 0); });
  let before = null;
  window.addEventListener("beforeprint", () => { before = panels.find((panel) => !panel.hidden); panels.forEach((panel) => { panel.hidden = false; }); wake(); });
  window.addEventListener("afterprint", () => RP.openTab(before));
})();
