"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const hidden = { labels: new Set(), seeds: new Set() };
  const charts = [];
  let threshold = data.start;
  let score = "max_p";

  // Rows travel as columns; a column of few values as these values and places among them.
  function unpack(packed) {
    const names = Object.keys(packed).filter((name) => name !== "n");
    const columns = names.map((name) => {
      const column = packed[name];
      return Array.isArray(column) ? column : column.at.map((place) => column.of[place]);
    });
    const rows = new Array(packed.n);
    for (let i = 0; i < packed.n; i++) {
      const row = {};
      for (let c = 0; c < names.length; c++) if (columns[c][i] !== null) row[names[c]] = columns[c][i];
      rows[i] = row;
    }
    return rows;
  }

  // Lay panels out for the width there is.
  function fit(chart, width) {
    const spec = structuredClone(chart.spec);
    const meta = spec.usermeta || {};
    const extra = meta.extra || 50;
    const margin = meta.margin || 0;
    let count = 1;
    if (spec.concat) {
      if (meta.children) {
        const shown = meta.children.map((child) => !hidden.labels.has(child.label));
        spec.concat.forEach((child, i) => retitle(child, meta.children[i]));
        spec.concat = spec.concat.filter((_, i) => shown[i]);
      }
      count = spec.concat.length;
    } else if (spec.facet) {
      count = meta.children.filter((child) => !hidden.labels.has(child.label)).length;
    }
    if (!count) return null;
    const room = width - margin;
    const most = Math.min(count, meta.columns || 4);
    let columns = Math.max(1, Math.min(most, Math.floor((room + 20) / (meta.cell + extra + 20))));
    columns = Math.ceil(count / Math.ceil(count / columns));
    const spacing = (columns - 1) * (spec.spacing || 20);
    let side = Math.floor((room - spacing) / columns) - extra;
    side = Math.max(110, Math.min(side, meta.limit || (count === 1 && !spec.concat && !spec.facet ? 1100 : 520)));
    if (meta.square) side = Math.min(side, 300);
    if (columns === 1 && count > 1 && meta.children) side = Math.min(side, 280);
    const resize = (unit) => {
      for (const part of unit.vconcat || [unit]) {
        part.width = side;
        if (meta.square) part.height = side;
      }
    };
    if (spec.concat) { spec.columns = columns; spec.concat.forEach(resize); }
    else if (spec.facet) { spec.columns = columns; resize(spec.spec); }
    else resize(spec);
    if (meta.renderer === "canvas") {
      // Style sheets do not reach into a canvas: its words are grey enough for light and dark.
      const grey = "#8a8f98";
      Object.assign(spec.config.axis, { labelColor: grey, titleColor: grey });
      Object.assign(spec.config.legend, { labelColor: grey, titleColor: grey });
      spec.config.header.labelColor = grey;
    }
    spec.config.legend.columns = Math.max(2, Math.floor(width / 120));
    for (const param of spec.params || []) {
      if (param.name === "threshold" && !meta.still) param.value = snap(chart.experiment);
      if (param.name === "score") param.value = score;
      if (param.name === "hidden_labels") param.value = [...hidden.labels];
      if (param.name === "hidden_seeds") param.value = [...hidden.seeds];
    }
    spec.datasets = Object.fromEntries(chart.sets.map((name) => [name, unpack(data.sets[name])]));
    return spec;
  }

  function retitle(child, about) {
    if (!about.ece) return;
    const shown = Object.entries(about.ece).filter(([seed]) => !hidden.seeds.has(Number(seed)));
    if (!shown.length) return;
    const mean = shown.reduce((sum, [, value]) => sum + value, 0) / shown.length;
    child.title = `${about.label} · ECE ${mean.toFixed(3)}`;
  }

  // The position of the slider on the grid of an experiment: its first threshold that is not below.
  function place(experiment) {
    const grid = data.live[experiment] ? data.live[experiment].grid : [];
    const at = grid.findIndex((t) => t >= threshold - 1e-12);
    return at < 0 ? grid.length - 1 : at;
  }
  function snap(experiment) {
    const at = place(experiment);
    return at < 0 ? threshold : data.live[experiment].grid[at];
  }

  async function draw(chart) {
    const width = chart.box.clientWidth;
    if (!width) return;
    const turn = ++chart.turn;
    if (chart.width !== width) chart.over = 0;
    const spec = fit(chart, width - chart.over);
    chart.width = width;
    chart.stale = false;
    if (!spec) { chart.box.textContent = "Everything is filtered out."; chart.view = null; return; }
    const options = {
      mode: "vega-lite",
      renderer: (chart.spec.usermeta || {}).renderer || "svg",
      actions: { export: true, source: false, compiled: false, editor: false },
      downloadFileName: chart.name,
    };
    const result = await vegaEmbed(chart.box, spec, options);
    if (turn !== chart.turn) return;
    if (chart.result) chart.result.finalize();
    chart.result = result;
    chart.view = result.view;
    chart.box.dataset.done = "1";
    // Only now it is known how wide the words beside the panels are.
    const over = chart.box.scrollWidth - chart.box.clientWidth;
    if (over > 1 && !chart.over) { chart.over = over + 2; await draw(chart); }
  }

  // What can be seen is drawn first, the rest when the browser has time (so that print has all).
  const waiting = new Set();
  let busy = false;
  const idle = window.requestIdleCallback ? (f) => requestIdleCallback(f, { timeout: 300 }) : (f) => setTimeout(f, 30);
  function distance(chart) {
    const box = chart.box.getBoundingClientRect();
    return box.bottom < 0 ? -box.bottom + 4000 : Math.max(0, box.top - innerHeight);
  }
  async function work() {
    if (busy) return;
    busy = true;
    while (waiting.size) {
      const next = [...waiting].sort((a, b) => distance(a) - distance(b))[0];
      waiting.delete(next);
      if (distance(next) > 0) { ready(); await new Promise(idle); }
      try { await draw(next); } catch (error) { console.error(next.name, error); }
    }
    busy = false;
    ready();
    document.documentElement.dataset.drawn = "all";
  }
  function ready() { document.documentElement.dataset.ready = "1"; }
  function redraw(some) { some.forEach((chart) => waiting.add(chart)); delete document.documentElement.dataset.drawn; work(); }

  // The numbers beside the slider.
  const percent = (x) => (x === null || x === undefined ? "–" : `${(100 * x).toFixed(1)} %`);
  const mean = (values) => {
    const known = values.filter((x) => x !== null && x !== undefined);
    return known.length ? known.reduce((a, b) => a + b, 0) / known.length : null;
  };
  function numbers() {
    for (const table of document.querySelectorAll("table.live")) {
      const experiment = table.dataset.experiment;
      const live = data.live[experiment];
      const at = place(experiment);
      for (const row of table.tBodies[0].rows) {
        const label = row.dataset.label;
        row.hidden = hidden.labels.has(label);
        const runs = live.runs.filter((run) => run.label === label && !hidden.seeds.has(run.seed));
        for (const cell of row.querySelectorAll("td")) {
          const of = (run) => cell.dataset.set === undefined ? run[cell.dataset.value] : (run.mixed[cell.dataset.set] || {}).through;
          const values = runs.map((run) => (of(run) || [])[at]);
          const value = mean(values);
          cell.querySelector("b").textContent = percent(value);
          cell.dataset.exact = value === null ? "" : String(value);
          const known = values.filter((x) => x !== null && x !== undefined);
          const spread = known.length > 1 ? `${(100 * Math.min(...known)).toFixed(1)} to ${(100 * Math.max(...known)).toFixed(1)}` : "";
          cell.querySelector("small").textContent = spread;
          cell.querySelector(".meter i").style.width = `${100 * (value || 0)}%`;
        }
      }
    }
  }

  let asked = false;
  function move() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      numbers();
      for (const chart of charts) {
        if (chart.view && chart.linked) chart.view.signal("threshold", snap(chart.experiment)).runAsync();
      }
    });
  }

  function filter() {
    numbers();
    const again = [];
    for (const chart of charts) {
      if ((chart.spec.usermeta || {}).children) again.push(chart);
      else if (chart.view) chart.view.signal("hidden_labels", [...hidden.labels]).signal("hidden_seeds", [...hidden.seeds]).runAsync();
    }
    const button = document.querySelector(".menu > summary");
    const count = hidden.labels.size + hidden.seeds.size;
    if (button) button.textContent = count ? `Filter (${count} hidden)` : "Filter";
    redraw(again);
  }

  // One score at a time, in the tables and the charts that are by score.
  function rescore() {
    for (const table of document.querySelectorAll("table.ood")) {
      let shown = 0;
      for (const row of table.tBodies[0].rows) {
        if (row.className === "none") continue;
        row.hidden = row.dataset.score !== score;
        if (!row.hidden) shown++;
      }
      table.querySelector("tr.none").hidden = shown > 0;
    }
    for (const chart of charts) {
      if (chart.view && chart.scored) chart.view.signal("score", score).runAsync();
    }
  }

  function controls() {
    const scores = document.getElementById("score");
    if (scores) {
      scores.value = score;
      scores.addEventListener("change", () => { score = scores.value; rescore(); });
    }
    const slider = document.getElementById("threshold");
    const output = document.getElementById("threshold-value");
    if (slider) {
      const set = () => {
        threshold = data.grid[Number(slider.value)];
        output.textContent = String(threshold);
        slider.setAttribute("aria-valuetext", `threshold ${threshold}`);
        move();
      };
      slider.addEventListener("input", set);
      set();
    }
    for (const box of document.querySelectorAll("input[data-filter]")) {
      box.checked = true;
      box.addEventListener("change", () => {
        const set = hidden[box.dataset.filter];
        const value = box.dataset.filter === "seeds" ? Number(box.value) : box.value;
        if (box.checked) set.delete(value); else set.add(value);
        filter();
      });
    }
    const menu = document.querySelector(".menu");
    if (menu) {
      document.addEventListener("click", (event) => { if (!menu.contains(event.target)) menu.open = false; });
      menu.addEventListener("keydown", (event) => { if (event.key === "Escape") { menu.open = false; menu.querySelector("summary").focus(); } });
    }
    const toggle = document.getElementById("theme");
    const dark = () => document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    const name = () => { toggle.textContent = dark() ? "Light" : "Dark"; };
    toggle.addEventListener("click", () => { document.documentElement.dataset.theme = dark() ? "light" : "dark"; name(); });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name);
    name();
  }

  for (const box of document.querySelectorAll(".chart")) {
    const about = data.charts[Number(box.dataset.chart)];
    // A chart on another scale than the slider's stands still.
    const linked = !(about.spec.usermeta || {}).still && (about.spec.params || []).some((param) => param.name === "threshold");
    const scored = (about.spec.params || []).some((param) => param.name === "score");
    charts.push({ ...about, box, linked, scored, turn: 0, over: 0, view: null });
  }
  controls();
  if (!charts.length) ready();
  redraw(charts);
  let pending = 0;
  addEventListener("resize", () => {
    clearTimeout(pending);
    pending = setTimeout(() => redraw(charts.filter((chart) => Math.abs(chart.box.clientWidth - chart.width) > 4)), 150);
  });
})();
