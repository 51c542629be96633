// Puts the views together: what is chosen, by mouse, by key and by link.
let redraw = null, showing = 0;

function tabs(box, names, chosen, pick) {
  box.replaceChildren(...names.map((name, n) => {
    const tab = make("button", { type: "button", role: "tab", tabIndex: n === chosen ? 0 : -1, onclick: () => pick(n) }, name);
    tab.setAttribute("aria-selected", n === chosen);
    return tab;
  }));
  box.onkeydown = (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    pick((chosen + step + names.length) % names.length);
    box.querySelector('[aria-selected="true"]').focus();
  };
}

async function showView() {
  const mine = ++showing, group = data.groups[state.group], panel = $("panel"), views = viewsOf(group);
  const head = group.layers[state.layer][state.head], heads = group.head_word === "head";
  tabs($("views"), views.map((view) => VIEW_NAMES[view]), views.indexOf(state.view), (n) => choose({ view: views[n] }));
  $("head-name").textContent = nameOfHead();
  $("head-facts").textContent = state.together === "one" && heads
    ? `${characterOf(group, head)} · entropy ${head.statistics[ENTROPY].toFixed(2)} nats · largest weight ${head.statistics[LARGEST].toFixed(2)}`
    : "";
  $("together").value = state.together;
  $("together").parentElement.hidden = !heads || ["statistics", "alignment"].includes(state.view);
  $("join").checked = state.join;
  $("join").parentElement.hidden = ["statistics", "alignment"].includes(state.view);
  $("least-label").hidden = state.view !== "lines";
  $("least").value = state.least * 100;
  $("least-value").textContent = state.least.toFixed(2);
  tip("");
  if (state.view === "statistics") { redraw = null; showStatistics(panel); }
  else if (state.view === "alignment") { redraw = null; $("chosen").replaceChildren(); await showAlignment(panel); }
  else {
    const matrix = await shownMatrix(state);
    if (mine !== showing) return;
    if (state.view === "text") redraw = showText(panel, matrix);
    else redraw = (state.view === "matrix" ? showMatrix : showLines)(panel, matrix);
    showChosen(matrix, state.token);
  }
  document.documentElement.dataset.shown = `${state.group + 1}.${state.layer + 1}.${state.head + 1}.${state.view}`;
}

// Changes the state; `again`: whether the view is built anew.
function choose(change, again = true) {
  const group = data.groups[change.group ?? state.group];
  const moved = change.group !== undefined && change.group !== state.group;
  const looked = change.layer !== undefined || change.head !== undefined;
  Object.assign(state, change);
  if (moved) Object.assign(state, { token: 0, pinned: false, marks: new Set(), together: "one" });
  state.layer = Math.min(state.layer, group.layers.length - 1);
  state.head = Math.min(state.head, group.layers[state.layer].length - 1);
  if (looked && state.together === "marked") state.together = "one";
  if (!viewsOf(group).includes(state.view)) state.view = "lines";
  writeHash();
  if (moved) { showGroups(); buildGrid(); }
  if (looked) markGrid();
  if (again) return showView();
  if (change.token !== undefined) shownMatrix(state).then((matrix) => showChosen(matrix, state.token));
}

function showGroups() {
  tabs($("groups"), data.groups.map((group) => group.name), state.group, (n) => choose({ group: n }));
}

function mark(l, h) {
  const name = `${l}.${h}`;
  if (!state.marks.delete(name)) state.marks.add(name);
  markGrid();
  say(`layer ${l + 1}, head ${h + 1} ${state.marks.has(name) ? "marked" : "no longer marked"}`);
  choose({ together: state.marks.size ? "marked" : "one" });
}

function everything() {
  applyTheme();
  showGroups();
  buildGrid();
  showView();
}

function nextTheme() {
  state.theme = isDark() ? "light" : "dark";
  applyTheme();
  writeHash();
  fillGrid();
  if (redraw) redraw();
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open) return;
  if (event.target.matches("input[type=range], select")) return;
  const group = data.groups[state.group], layers = group.layers.length, heads = group.layers[state.layer].length;
  const ways = Object.keys(TOGETHER).filter((way) => way !== "marked" || state.marks.size);
  const does = {
    "[": () => choose({ layer: (state.layer + layers - 1) % layers }),
    "]": () => choose({ layer: (state.layer + 1) % layers }),
    ",": () => choose({ head: (state.head + heads - 1) % heads }),
    ".": () => choose({ head: (state.head + 1) % heads }),
    g: () => choose({ group: (state.group + 1) % data.groups.length }),
    a: () => choose({ together: ways[(ways.indexOf(state.together) + 1) % ways.length] }),
    w: () => choose({ join: !state.join }),
    m: () => mark(state.layer, state.head),
    t: nextTheme,
    "?": () => $("keys").showModal(),
    Escape: () => choose({ pinned: false }),
  }[event.key];
  const view = viewsOf(group)[Number(event.key) - 1];
  if (does) does();
  else if (view) choose({ view });
  else return;
  event.preventDefault();
}

$("title").textContent = plain(data.title || "Attention", 300);
$("subtitle").textContent = plain(data.subtitle, 200);
$("subtitle").hidden = !data.subtitle;
$("together").append(...Object.entries(TOGETHER).map(([value, name]) => make("option", { value }, name)));
$("together").addEventListener("change", (event) => choose({ together: event.target.value }));
$("join").addEventListener("change", (event) => choose({ join: event.target.checked, token: 0, pinned: false }));
$("least").addEventListener("input", (event) => {
  state.least = Number(event.target.value) / 100;
  $("least-value").textContent = state.least.toFixed(2);
  writeHash();
  if (redraw) redraw();
});
$("grid").addEventListener("click", (event) => {
  const cell = event.target.closest(".cell");
  if (!cell) return;
  const [l, h] = [Number(cell.dataset.layer), Number(cell.dataset.head)];
  if (event.shiftKey) mark(l, h);
  else choose({ layer: l, head: h });
});
$("grid").addEventListener("keydown", gridKey);
$("export").addEventListener("click", (event) => {
  if (!event.target.dataset.save) return;
  $("export").open = false;
  save(event.target.dataset.save);
});
$("theme").addEventListener("click", nextTheme);
$("help").addEventListener("click", () => $("keys").showModal());
addEventListener("keydown", pressed);
addEventListener("hashchange", () => { readHash(); everything(); });
let wide = 0;
new ResizeObserver(([entry]) => {
  if (wide && wide !== entry.contentRect.width && redraw) redraw();
  wide = entry.contentRect.width;
}).observe($("panel"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { applyTheme(); fillGrid(); if (redraw) redraw(); });
readHash();
everything();
