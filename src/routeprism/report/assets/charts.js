// Charts are drawn when they come into view, in the page's colours, without evaluating any code.
document.addEventListener("DOMContentLoaded", () => {
  const data = RP.read("rp-charts"), vega = document.getElementById("rp-vega");
  if (!data || !vega) return;
  const load = () => { if (!window.vegaEmbed) document.head.append(RP.el("script", {}, vega.textContent)); };
  const drawn = new Map();
  const config = (width) => {
    const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(name).trim();
    const axis = { labelColor: colour("--ink"), titleColor: colour("--muted"), domainColor: colour("--line"), tickColor: colour("--line"), gridColor: colour("--grid"), titleFontWeight: "normal" };
    return {
      background: null, font: "system-ui, sans-serif", view: { stroke: null }, axis, axisX: { labelFontSize: 12, labelFlush: false, labelSeparation: 6 },
      axisY: { labelFontSize: 12, labelLimit: Math.round(Math.min(460, width * (width < 480 ? 0.6 : 0.45))) },
      legend: { labelColor: colour("--ink"), labelLimit: Math.round(width * 0.8), labelFontSize: 12 },
      range: { category: [colour("--forward"), colour("--route"), "#009E73", "#CC79A7", "#E69F00", "#56B4E9"] },
      point: { color: colour("--forward") }, circle: { color: colour("--forward") }, rule: { color: colour("--ink") }, bar: { color: colour("--forward") }, line: { color: colour("--forward") }, text: { color: colour("--ink") },
    };
  };
  // What Vega-Lite makes of the width "container". Asked for it, it warns of every chart whose rows have a height.
  const across = "isFinite(containerSize()[0]) ? containerSize()[0] : 200";
  const fitted = ({ width, ...vega }) => ({
    ...vega, autosize: { type: "fit-x", contains: "padding" },
    signals: [{ name: "width", init: across, on: [{ update: across, events: "window:resize" }] }, ...(vega.signals || [])],
  });
  const draw = async (node) => {
    load();
    const [template, values] = data.charts[node.dataset.chart];
    const spec = { ...data.templates[template], datasets: { ...data.templates[template].datasets, values }, width: node.clientWidth };
    const before = drawn.get(node);
    if (before) before.finalize();
    // Vega names its own element; the one around it says in words what the chart shows.
    const inner = RP.el("div", { "aria-hidden": "true", style: "width:100%" });
    node.replaceChildren(inner);
    const made = await window.vegaEmbed(inner, spec, { actions: false, renderer: "svg", ast: true, logLevel: 1, patch: fitted, config: config(node.clientWidth) });
    drawn.set(node, made);
    inner.removeAttribute("role");
    inner.removeAttribute("aria-label");
    node.dataset.drawn = "true";
  };
  const seen = new IntersectionObserver((entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => { seen.unobserve(entry.target); draw(entry.target); }), { rootMargin: "300px" });
  document.querySelectorAll(".chart[data-chart]").forEach((node) => seen.observe(node));
  document.querySelectorAll("select[data-choice]").forEach((choice) => choice.addEventListener("change", () => {
    const node = choice.closest("figure").querySelector(".chart");
    node.dataset.chart = choice.value;
    node.setAttribute("aria-label", choice.selectedOptions[0].dataset.alternative);
    draw(node);
  }));
  window.addEventListener("beforeprint", () => document.querySelectorAll(".chart[data-chart]:not([data-drawn])").forEach((node) => { if (!node.closest("details:not([open])")) { seen.unobserve(node); draw(node); } }));
  RP.themed.push(() => [...drawn.keys()].forEach(draw));
});
