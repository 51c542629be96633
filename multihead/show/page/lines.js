// Tokens left and right, weights as lines between them; hovering shows one token's, a click pins it.
const LINE = 24, MOST_LINES = 3000;

// The pairs to draw: of one row or column, or all of them from the smallest weight on, the largest first.
function pairsOf(matrix, row, column, least) {
  const pairs = [];
  const add = (i, j, from) => { const w = matrix.at(i, j); if (w >= from && w > 0) pairs.push([i, j, w]); };
  if (row !== null) for (let j = 0; j < matrix.m; ++j) add(row, j, 0.004);
  else if (column !== null) for (let i = 0; i < matrix.n; ++i) add(i, column, 0.004);
  else for (let i = 0; i < matrix.n; ++i) for (let j = 0; j < matrix.m; ++j) add(i, j, Math.max(least, 0.004));
  pairs.sort((a, b) => b[2] - a[2]);
  pairs.length = Math.min(pairs.length, MOST_LINES);
  return pairs;
}

const linePath = (i, j, width) => {
  const a = (i + 0.5) * LINE, b = (j + 0.5) * LINE;
  return `M0 ${a} C${width * 0.45} ${a} ${width * 0.55} ${b} ${width} ${b}`;
};

function showLines(panel, matrix) {
  const column = (names, title, kind) => {
    const list = make("div", { className: "column", role: "listbox" }, make("h3", { role: "presentation" }, title));
    list.setAttribute("aria-label", title);
    names.forEach((name, n) => {
      const token = make("div", { className: "token", role: "option", tabIndex: -1, dir: "auto" }, plain(name));
      token.setAttribute("aria-selected", "false");
      token.dataset[kind] = n;
      const row = kind === "key" ? make("div", { className: "row", role: "presentation" }, token, make("span")) : token;
      list.append(row);
    });
    return list;
  };
  const left = column(matrix.rows.names, matrix.self ? "reads" : "written", "query");
  const right = column(matrix.columns.names, matrix.self ? "is read" : "source", "key");
  const height = Math.max(matrix.n, matrix.m) * LINE;
  const svg = makeSvg("svg", { height, preserveAspectRatio: "none", "aria-hidden": "true" });
  panel.replaceChildren(make("div", { className: "lines" }, left, svg, right));
  const queries = [...left.querySelectorAll(".token")], keys = [...right.querySelectorAll(".token")];
  const outputs = [...right.querySelectorAll(".row > span")];
  queries[Math.min(state.token, queries.length - 1)].tabIndex = 0;
  keys[0].tabIndex = 0;
  const touched = new Set();

  const draw = (row, other) => {
    const width = svg.clientWidth || 200;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const alone = row !== null || other !== null;
    const paths = pairsOf(matrix, row, other, state.least).map(([i, j, w]) => makeSvg("path", {
      d: linePath(i, j, width), "stroke-width": (0.75 + 4 * w).toFixed(2),
      "stroke-opacity": Math.min(1, (alone ? 0.15 : 0.04) + 0.9 * w).toFixed(3),
    }));
    svg.replaceChildren(...paths.reverse());
    for (const token of touched) {
      token.style.background = "";
      token.classList.remove("on", "pinned");
      if (token.dataset.key) outputs[token.dataset.key].textContent = "";
      token.setAttribute("aria-selected", "false");
    }
    touched.clear();
    const colour = (token, w) => { token.style.background = wash(w); touched.add(token); };
    const pick = (token) => {
      token.classList.add("on");
      if (state.pinned) token.classList.add("pinned");
      token.setAttribute("aria-selected", "true");
      touched.add(token);
    };
    if (row !== null) {
      pick(queries[row]);
      keys.forEach((token, j) => {
        const w = matrix.at(row, j);
        if (w < 0.002) return;
        colour(token, w);
        outputs[j].textContent = w.toFixed(3);
      });
    } else if (other !== null) {
      pick(keys[other]);
      queries.forEach((token, i) => { if (matrix.at(i, other) >= 0.002) colour(token, matrix.at(i, other)); });
    }
  };
  const settle = () => (state.pinned && state.side === "reads" ? draw(Math.min(state.token, matrix.n - 1), null) : draw(null, null));
  const at = (event) => {
    const token = event.target.closest(".token");
    return token ? [token.dataset.query === undefined ? null : +token.dataset.query, token.dataset.key === undefined ? null : +token.dataset.key] : null;
  };
  const box = panel.firstElementChild;
  box.addEventListener("pointerover", (event) => { const place = at(event); if (place) draw(...place); });
  box.addEventListener("pointerleave", settle);
  box.addEventListener("focusin", (event) => { const place = at(event); if (place) draw(...place); });
  const pin = (place) => {
    if (!place || place[0] === null) return;
    const same = state.pinned && state.token === place[0];
    choose({ token: place[0], pinned: !same }, false);
    draw(place[0], null);
  };
  box.addEventListener("click", (event) => pin(at(event)));
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); pin(at(event)); return; }
    const place = at(event), step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!place || !step && !["ArrowLeft", "ArrowRight"].includes(event.key)) return;
    event.preventDefault();
    let list = place[0] === null ? keys : queries, n = (place[0] ?? place[1]) + (step || 0);
    if (event.key === "ArrowRight") list = keys;
    if (event.key === "ArrowLeft") list = queries;
    if (!step) n = Math.min(n, list.length - 1);
    if (!list[n]) return;
    list[n].focus();
    if (list === queries) { state.token = n; showChosen(matrix, n); }
  });
  settle();
  return settle;
}
