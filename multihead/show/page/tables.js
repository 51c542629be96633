// Tables: the row of the chosen token, the numbers of all heads; and what can be saved.
const MOST_ROWS = 20;

function showChosen(matrix, row) {
  const n = Math.min(row, matrix.n - 1);
  const order = Array.from({ length: matrix.m }, (_, j) => [matrix.at(n, j), j]).sort((a, b) => b[0] - a[0] || a[1] - b[1]).slice(0, MOST_ROWS);
  const body = make("tbody");
  for (const [w, j] of order) {
    if (w === 0) break;
    const bar = make("span", { className: "weight" });
    bar.style.width = `${(5 * w).toFixed(2)}rem`;
    body.append(make("tr", {}, make("td", {}, plain(matrix.columns.names[j], 60)), make("td", { className: "number" }, String(j + 1)),
      make("td", { className: "number" }, shortNumber(w)), make("td", {}, bar)));
  }
  const head = ["token", "place", "weight", ""].map((name, n) => (name ? make("th", { scope: "col", className: n === 0 ? "" : "number" }, name) : make("td")));
  $("chosen").replaceChildren(make("table", {}, make("caption", {}, `What “${plain(matrix.rows.names[n], 60)}” (${n + 1}) reads: ${nameOfHead()}`),
    make("thead", {}, make("tr", {}, ...head)), body));
  const best = order[0];
  say(`${nameOfHead()}: ${plain(matrix.rows.names[n])} reads ${plain(matrix.columns.names[best[1]])} ${best[0].toFixed(2)}`);
}

const COLUMNS = [
  { name: "layer", of: (e) => e.l + 1, digits: 0 },
  { name: "head", of: (e) => e.h + 1, digits: 0 },
  { name: "entropy", of: (e) => e.s[ENTROPY], digits: 3, about: "nats; 0: one token has all the weight" },
  { name: "largest", of: (e) => e.s[LARGEST], digits: 3, about: "largest weight of a row, mean over rows" },
  { name: "distance", of: (e) => e.s[DISTANCE], digits: 2, self: true, about: "tokens between reader and read" },
  { name: "previous", of: (e) => e.s[PREVIOUS], digits: 3, self: true, about: "weight on the token before" },
  { name: "itself", of: (e) => e.s[ITSELF], digits: 3, self: true, about: "weight on the token itself" },
  { name: "next", of: (e) => e.s[NEXT], digits: 3, self: true, about: "weight on the token behind" },
  { name: "first", of: (e) => e.s[FIRST], digits: 3, about: "weight on the first token" },
  { name: "last", of: (e) => e.s[LAST], digits: 3, about: "weight on the last token" },
];
const sorting = { column: null, down: true };

function statisticsRows() {
  const group = data.groups[state.group], columns = COLUMNS.filter((column) => group.self || !column.self);
  const rows = group.layers.flatMap((layer, l) => layer.map((head, h) => ({ l, h, s: head.statistics })));
  const by = columns.find((column) => column.name === sorting.column);
  if (by) rows.sort((a, b) => (sorting.down ? -1 : 1) * (by.of(a) - by.of(b)));
  return { columns, rows };
}

function showStatistics(panel) {
  const { columns, rows } = statisticsRows();
  const headings = columns.map((column) => {
    const sorted = sorting.column === column.name, arrow = sorted ? (sorting.down ? " ↓" : " ↑") : "";
    const button = make("button", { type: "button", title: column.about || "" }, column.name + arrow);
    button.addEventListener("click", () => {
      sorting.down = sorted ? !sorting.down : column.digits > 0;
      sorting.column = column.name;
      showStatistics(panel);
      panel.querySelector(`[data-column="${column.name}"] button`).focus();
    });
    const cell = make("th", { scope: "col", className: "number" }, button);
    cell.dataset.column = column.name;
    cell.setAttribute("aria-sort", sorted ? (sorting.down ? "descending" : "ascending") : "none");
    return cell;
  });
  const body = make("tbody");
  for (const row of rows) {
    const line = make("tr", {}, ...columns.map((column, n) => {
      const text = column.of(row).toFixed(column.digits);
      if (n !== 1) return make("td", { className: "number" }, text);
      const button = make("button", { type: "button", onclick: () => choose({ layer: row.l, head: row.h, view: "lines" }) }, text);
      button.setAttribute("aria-label", `look at layer ${row.l + 1}, head ${text}`);
      return make("td", { className: "number" }, button);
    }));
    line.classList.toggle("here", row.l === state.layer && row.h === state.head);
    body.append(line);
  }
  panel.replaceChildren(make("table", { className: "statistics" }, make("caption", {}, "All heads: means over the rows"),
    make("thead", {}, make("tr", {}, ...headings)), body));
  $("chosen").replaceChildren();
}

// Names of tokens as a cell of a table: quoted, and never a formula of a spreadsheet.
const csvCell = (text) => `"${(/^[=+\-@\t\r]/.test(text) ? "'" : "") + text.replace(/"/g, '""')}"`;

async function csvNow() {
  if (state.view === "statistics") {
    const { columns, rows } = statisticsRows();
    return [columns.map((c) => c.name), ...rows.map((row) => columns.map((c) => c.of(row).toFixed(c.digits)))].map((row) => row.join(",")).join("\n");
  }
  const matrix = await shownMatrix(state), lines = [["", ...matrix.columns.names.map(csvCell)].join(",")];
  for (let i = 0; i < matrix.n; ++i) {
    const row = [csvCell(matrix.rows.names[i])];
    for (let j = 0; j < matrix.m; ++j) row.push(matrix.at(i, j).toFixed(4));
    lines.push(row.join(","));
  }
  return lines.join("\n");
}

// A picture that stands alone: lines in the view of lines, else the matrix.
async function svgNow() {
  const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(name).trim();
  const matrix = await shownMatrix(state), lines = state.view === "lines";
  const label = (x, y, text, more = {}) => makeSvg("text", { x, y, "font-family": "system-ui, sans-serif", "font-size": 13, fill: colour("--ink"), ...more }, plain(text, 24));
  const svg = makeSvg("svg", { xmlns: "http://www.w3.org/2000/svg" });
  let width, height;
  if (lines) {
    width = 560;
    height = Math.max(matrix.n, matrix.m) * LINE + 50;
    const row = state.pinned ? Math.min(state.token, matrix.n - 1) : null;
    const body = makeSvg("g", { transform: "translate(200 40)" });
    for (const [i, j, w] of pairsOf(matrix, row, null, state.least).reverse())
      body.append(makeSvg("path", { d: linePath(i, j, 160), fill: "none", stroke: colour("--accent"), "stroke-width": (0.75 + 4 * w).toFixed(2), "stroke-opacity": Math.min(1, 0.04 + 0.9 * w).toFixed(3) }));
    matrix.rows.names.forEach((name, i) => body.append(label(-8, i * LINE + 16, name, { "text-anchor": "end" })));
    matrix.columns.names.forEach((name, j) => body.append(label(168, j * LINE + 16, name)));
    svg.append(body);
  } else {
    const size = Math.max(1, Math.min(24, 900 / Math.max(matrix.n, matrix.m))), [left, top] = size >= 8 ? [150, 150] : [10, 40], colours = palette();
    width = left + matrix.m * size + 10;
    height = top + matrix.n * size + 10;
    for (let i = 0; i < matrix.n; ++i)
      for (let j = 0; j < matrix.m; ++j) {
        const w = matrix.at(i, j), c = colours[Math.round(255 * Math.sqrt(w))];
        if (w > 0) svg.append(makeSvg("rect", { x: left + j * size, y: top + i * size, width: size, height: size, fill: `rgb(${c & 255} ${c >> 8 & 255} ${c >> 16 & 255})` }));
      }
    if (size >= 8) {
      matrix.rows.names.forEach((name, i) => svg.append(label(left - 6, top + (i + 0.7) * size, name, { "text-anchor": "end", "font-size": Math.min(13, size) })));
      matrix.columns.names.forEach((name, j) => svg.append(label(0, 0, name, { "font-size": Math.min(13, size), transform: `translate(${left + (j + 0.7) * size} ${top - 6}) rotate(-90)` })));
    }
  }
  svg.prepend(makeSvg("rect", { width, height, fill: colour("--card") }), label(10, 22, nameOfHead(), { "font-weight": 650 }));
  svg.setAttribute("width", width);
  svg.setAttribute("height", height);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  return { text: new XMLSerializer().serializeToString(svg), width, height };
}

async function save(kind) {
  let blob;
  if (kind === "csv") blob = new Blob([await csvNow()], { type: "text/csv" });
  else {
    const picture = await svgNow();
    blob = new Blob([picture.text], { type: "image/svg+xml" });
    if (kind === "png") {
      const image = new Image(), address = URL.createObjectURL(blob), scale = Math.min(2, 8000 / picture.height);
      image.src = address;
      await image.decode();
      const canvas = make("canvas", { width: picture.width * scale, height: picture.height * scale });
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      URL.revokeObjectURL(address);
      blob = await new Promise((resolve) => canvas.toBlob(resolve));
    }
  }
  const address = URL.createObjectURL(blob);
  make("a", { href: address, download: `attention-${state.layer + 1}-${state.head + 1}.${kind}` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
  say(`saved as ${kind.toUpperCase()}`);
}
