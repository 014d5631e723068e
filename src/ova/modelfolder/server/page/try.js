// The page to try a model. What the server says is only ever set as text.
"use strict";

const NONE = "none of the above";
const SHOWN = 10; // bars
const $ = (id) => document.getElementById(id);
let token = "";
let facts = null;
let said = null; // the answer that is shown
let limit = null; // confidence to answer above; null: the model's own rule
let asked = 0; // requests so far, so that a late answer does not cover a newer one

function made(tag, text, parts = {}) {
  const element = document.createElement(tag);
  if (text) element.textContent = text;
  Object.assign(element, parts);
  return element;
}

async function fetched(path, options = {}) {
  const headers = { ...options.headers, ...(token && { Authorization: `Bearer ${token}` }) };
  let reply;
  try {
    reply = await fetch(path, { ...options, headers });
  } catch {
    throw new Error("The server does not answer. Is it still running?");
  }
  const content = await reply.json().catch(() => ({}));
  if (!reply.ok) {
    const error = new Error(content.error || `The server answered ${reply.status}.`);
    error.status = reply.status;
    throw error;
  }
  return content;
}

function complain(text) {
  $("error").textContent = text;
  $("error").hidden = !text;
}

async function start() {
  complain("");
  try {
    facts = await fetched("model");
  } catch (error) {
    if (error.status === 401) {
      $("about").textContent = "";
      $("key").hidden = false;
      if (token) complain("That is not the token.");
      $("token").focus();
    } else complain(error.message);
    return;
  }
  $("key").hidden = true;
  const classes = facts.classes.length;
  const names = facts.classes.slice(0, 12).join(", ") + (classes > 12 ? ", ..." : "");
  $("about").textContent = `A model of ${facts.kind}s, ${facts.formulation}, with ${classes} classes: ${names}`;
  $("promise").textContent = facts.promise.join("\n");
  ({ texts: askText, rows: askRow, images: askImage })[facts.inputs]();
  $("ask").hidden = false;
  document.documentElement.dataset.ready = "yes";
}

function askText() {
  const box = made("textarea", "", { id: "text", maxLength: facts.limits.letters, placeholder: "Type a sentence ..." });
  $("ask").append(made("label", "A sentence", { htmlFor: "text" }), box, made("button", "Ask the model"));
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      $("ask").requestSubmit();
    }
  });
  $("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    if (box.value.trim()) ask({ texts: [box.value] });
    else complain("Type a sentence first.");
  });
}

function askRow() {
  const fields = made("div", "", { className: "fields" });
  const cells = facts.columns.map((column) => {
    let cell;
    if (column.words.length) {
      cell = made("select");
      for (const word of column.words) cell.append(made("option", word || "(missing)", { value: word }));
    } else cell = made("input", "", { type: "text", inputMode: "decimal", placeholder: "missing", autocomplete: "off" });
    const label = made("label", column.name);
    label.append(cell);
    fields.append(label);
    return [column, cell];
  });
  $("ask").append(fields, made("button", "Ask the model"));
  $("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    const values = cells.map(([column, cell]) => [column.name, cell.value.trim() || null]);
    ask({ rows: [Object.fromEntries(values)] });
  });
}

function askImage() {
  const drop = made("div", "", { className: "drop" });
  const pick = made("input", "", { type: "file", accept: "image/*", id: "file" });
  drop.append(made("label", "Drop an image here, or choose one", { htmlFor: "file" }), pick);
  $("ask").append(drop);
  const send = (file) => {
    if (!file) return;
    const form = new FormData();
    form.append("images", file);
    ask(form, file);
  };
  pick.addEventListener("change", () => send(pick.files[0]));
  for (const name of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", name === "dragover");
      if (name === "drop") send(event.dataTransfer.files[0]);
    });
  }
  $("ask").addEventListener("submit", (event) => event.preventDefault());
}

async function ask(content, file) {
  const mine = ++asked;
  complain("");
  const json = !(content instanceof FormData);
  const options = { method: "POST", body: json ? JSON.stringify(content) : content };
  if (json) options.headers = { "Content-Type": "application/json" };
  try {
    const reply = await fetched(`predict?classes=${SHOWN}&explain=${facts.nearest}`, options);
    if (mine !== asked) return;
    said = reply.answers[0];
  } catch (error) {
    if (mine !== asked) return;
    $("answer").hidden = true;
    complain(error.message);
    return;
  }
  limit = null;
  show(file);
}

function show(file) {
  const picture = $("picture");
  if (picture.src) URL.revokeObjectURL(picture.src);
  picture.hidden = !file;
  if (file) {
    picture.alt = file.name;
    picture.src = URL.createObjectURL(file);
  } else picture.removeAttribute("src");
  $("threshold").value = said.confidence;
  const notes = ["as the network gives them"];
  if (facts.classes.length > said.classes.length) notes.push(`the largest ${said.classes.length} of ${facts.classes.length}`);
  $("note").textContent = notes.join(", ");
  $("bars").replaceChildren(...said.classes.map(bar));
  $("near").hidden = !said.nearest;
  $("examples").replaceChildren(...(said.nearest || []).map(example));
  $("small").textContent = `Answer ${said.id} of model ${facts.model}. Score ${facts.score}: ${said.score.toPrecision(4)}.`;
  decide();
  $("answer").hidden = false;
  $("answer").dataset.id = said.id;
}

function bar({ label, p }) {
  const row = made("li");
  const track = made("div", "", { className: "track" });
  const fill = made("div", "", { className: "bar" });
  fill.style.width = `${100 * p}%`;
  track.append(fill);
  row.append(made("span", label, { className: "name", title: label }), track, made("span", p.toFixed(3), { className: "p" }));
  return row;
}

function example({ example: name, distance }) {
  const row = made("li");
  row.append(made("span", name), made("span", distance.toFixed(3), { className: "distance" }));
  return row;
}

function decide() {
  const own = limit === null;
  const label = own ? said.label : said.confidence > limit ? said.best_guess : null;
  const sure = `${said.best_guess} with confidence ${said.confidence.toFixed(3)}${facts.calibrated ? "" : " (uncalibrated)"}`;
  const then = `then ${said.runner_up} with ${said.runner_up_confidence.toFixed(3)}`;
  $("label").textContent = label === null ? NONE : label;
  $("answer").toggleAttribute("data-none", label === null);
  let why = label === null ? `Its best guess is ${sure}, ${then}. ` : `It is ${sure}, ${then}. `;
  if (own && said.refused) why += `Refused: ${said.refused}.`;
  if (!own) why += "By your threshold: what the model promises is then void.";
  $("why").textContent = why;
  $("value").textContent = own ? "its own rule" : limit.toFixed(3);
  $("own").hidden = own;
}

$("threshold").addEventListener("input", () => {
  limit = Number($("threshold").value);
  decide();
});
$("own").addEventListener("click", () => {
  limit = null;
  $("threshold").value = said.confidence;
  decide();
});
$("key").addEventListener("submit", (event) => {
  event.preventDefault();
  token = $("token").value;
  start();
});
start();
