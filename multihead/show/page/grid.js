// Small pictures of all heads: layers down, heads across.
let drawing = 0; // of the grid that is being filled

function buildGrid() {
  const group = data.groups[state.group], grid = $("grid"), heads = group.head_word === "head";
  $("overview-name").textContent = heads ? "All heads" : group.name;
  $("about").textContent = group.about;
  const whole = group.layers.every((layer) => layer.every((head) => head.whole));
  $("note").hidden = whole;
  $("note").textContent = "The text is long: of most heads this page holds a picture and the 16 largest weights of each token.";
  grid.replaceChildren();
  grid.setAttribute("aria-rowcount", group.layers.length);
  group.layers.forEach((layer, l) => {
    const cells = make("div", { className: "cells", role: "presentation" });
    cells.style.gridTemplateColumns = `repeat(${Math.min(layer.length, 16)}, minmax(14px, 72px))`;
    layer.forEach((head, h) => {
      const canvas = make("canvas", { width: 1, height: 1 });
      canvas.setAttribute("aria-hidden", "true");
      const cell = make("div", { className: "cell", role: "gridcell", tabIndex: -1 }, canvas);
      cell.setAttribute("aria-label", heads ? `layer ${l + 1}, head ${h + 1}: ${characterOf(group, head)}` : `${group.head_word} ${h + 1}`);
      cell.dataset.layer = l;
      cell.dataset.head = h;
      cells.append(cell);
    });
    const label = make("span", { role: "rowheader" }, heads ? String(l + 1) : "");
    label.setAttribute("aria-label", `layer ${l + 1}`);
    const line = make("div", { className: "line", role: "row" }, label, cells);
    grid.append(line);
  });
  markGrid();
  fillGrid();
}

// The layer that is looked at first, then the others, a layer at a time: the page answers in between.
async function fillGrid() {
  const mine = ++drawing, group = data.groups[state.group], g = state.group;
  const order = [state.layer, ...group.layers.keys()].filter((l, n, all) => all.indexOf(l) === n);
  for (const l of order) {
    const bytes = await openLayer(g, l);
    if (mine !== drawing) return;
    const colours = palette();
    for (const cell of $("grid").querySelectorAll(`[data-layer="${l}"]`)) {
      const picture = pictureOf(headMatrix(g, l, Number(cell.dataset.head), bytes));
      const canvas = cell.firstElementChild, image = new ImageData(picture.across, picture.down);
      const pixels = new Uint32Array(image.data.buffer);
      for (let n = 0; n < pixels.length; ++n) pixels[n] = colours[picture.bytes[n]];
      canvas.width = picture.across;
      canvas.height = picture.down;
      canvas.getContext("2d").putImageData(image, 0, 0);
    }
    await new Promise((resolve) => setTimeout(resolve));
    if (mine !== drawing) return;
  }
  document.documentElement.dataset.filled = g + 1;
}

function markGrid() {
  for (const cell of $("grid").querySelectorAll(".cell")) {
    const here = Number(cell.dataset.layer) === state.layer && Number(cell.dataset.head) === state.head;
    cell.setAttribute("aria-selected", here);
    cell.tabIndex = here ? 0 : -1;
    cell.classList.toggle("marked", state.marks.has(`${cell.dataset.layer}.${cell.dataset.head}`));
  }
}

// What a head does, in a word or two, where the numbers are clear.
function characterOf(group, head) {
  const s = head.statistics, m = group.columns.tokens.length;
  const last = group.columns.tokens[m - 1];
  const kinds = group.self
    ? [[PREVIOUS, "the token before"], [NEXT, "the token behind"], [ITSELF, "itself"], [FIRST, "the first token"], [LAST, `the last, ${plain(last)}`]]
    : [[FIRST, "the first token"], [LAST, `the last, ${plain(last)}`]];
  const [best, name] = kinds.reduce((a, b) => (s[b[0]] > s[a[0]] ? b : a));
  if (s[best] > 0.4 && m > 2) return `mostly reads ${name} (${s[best].toFixed(2)})`;
  if (m > 4 && s[ENTROPY] > 0.85 * Math.log(m)) return "reads everything about equally";
  if (s[LARGEST] > 0.7) return "sharp: mostly one token at a time";
  return "mixed";
}

function gridKey(event) {
  const group = data.groups[state.group];
  const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
  const cell = event.target.closest(".cell");
  if (!cell) return;
  let l = Number(cell.dataset.layer), h = Number(cell.dataset.head);
  if (step) [l, h] = [l + step[0], h + step[1]];
  else if (event.key === "Home") h = 0;
  else if (event.key === "End") h = group.layers[l].length - 1;
  else return;
  event.preventDefault();
  if (!group.layers[l] || !group.layers[l][h]) return;
  choose({ layer: l, head: h });
  $("grid").querySelector('[aria-selected="true"]').focus();
}
