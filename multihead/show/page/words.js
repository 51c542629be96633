// The text itself, coloured by what one token reads or by who reads it; and which words belong together.
function showText(panel, matrix) {
  const reads = () => state.side === "reads";
  const count = () => (reads() ? matrix.n : matrix.m);
  const radio = (side, label) => {
    const input = make("input", { type: "radio", name: "side", value: side, checked: state.side === side });
    input.addEventListener("change", () => { state.side = side; writeHash(); render(); });
    return make("label", {}, input, ` ${label}`);
  };
  const slider = make("input", { type: "range", min: 1, step: 1 });
  slider.setAttribute("aria-label", "Token");
  const play = make("button", { type: "button" }, "▶");
  play.setAttribute("aria-label", "Play: one token after the other");
  const sides = make("fieldset", {}, make("legend", { className: "unseen" }, "Direction"), radio("reads", "what it reads"), radio("read", "who reads it"));
  const step = make("div", { className: "step" }, play, slider, sides);
  const box = make("div", { className: "text" }, step);
  panel.replaceChildren(box);

  const paragraph = (title, names, words, kind) => {
    const list = make("p", { role: "listbox" });
    list.setAttribute("aria-label", title);
    names.forEach((name, n) => {
      if (n > 0 && (words[n] < 0 || words[n] !== words[n - 1])) list.append(" ");
      const token = make("span", { className: "token", role: "option", tabIndex: -1, dir: "auto" }, plain(name, 60));
      token.setAttribute("aria-selected", "false");
      token.dataset[kind] = n;
      list.append(token);
    });
    if (title) box.append(make("h3", {}, title));
    box.append(list);
    return [...list.children];
  };
  let queries, keys, before = [];
  if (matrix.self) {
    queries = keys = paragraph("Text", matrix.rows.names, matrix.rows.words, "both");
  } else {
    queries = paragraph("Written", matrix.rows.names, matrix.rows.words, "query");
    keys = paragraph("Source", matrix.columns.names, matrix.columns.words, "key");
  }
  let key = 0;
  const chosen = () => Math.min(reads() || matrix.self ? state.token : key, count() - 1);
  const render = () => {
    for (const token of before) { token.style.background = ""; token.classList.remove("on"); token.tabIndex = -1; token.setAttribute("aria-selected", "false"); }
    const n = chosen(), [from, to] = reads() ? [queries, keys] : [keys, queries];
    before = [from[n]];
    for (let k = 0; k < to.length; ++k) {
      const w = reads() ? matrix.at(n, k) : matrix.at(k, n);
      if (w > 0.002) { to[k].style.background = wash(w); before.push(to[k]); }
    }
    from[n].classList.add("on");
    from[n].tabIndex = 0;
    from[n].setAttribute("aria-selected", "true");
    slider.max = count();
    slider.value = n + 1;
    if (reads()) showChosen(matrix, n);
  };
  const pick = (n) => {
    if (n < 0 || n >= count()) return;
    if (reads() || matrix.self) choose({ token: n, pinned: true }, false);
    else key = n;
    render();
  };
  slider.addEventListener("input", () => pick(slider.value - 1));
  let clock = 0;
  play.addEventListener("click", () => {
    clearInterval(clock);
    clock = clock ? 0 : setInterval(() => {
      if (!play.isConnected) clearInterval(clock);
      else pick((chosen() + 1) % count());
    }, 700);
    play.textContent = clock ? "❚❚" : "▶";
  });
  const place = (event) => {
    const token = event.target.closest(".token");
    return token && { token, query: token.dataset.query ?? token.dataset.both, key: token.dataset.key ?? token.dataset.both };
  };
  box.addEventListener("click", (event) => {
    const at = place(event);
    if (!at) return;
    if (!matrix.self && at.query === undefined) { state.side = "read"; key = +at.key; }
    else if (!matrix.self) state.side = "reads";
    for (const input of sides.querySelectorAll("input")) input.checked = input.value === state.side;
    pick(+(reads() ? at.query : at.key));
  });
  box.addEventListener("pointerover", (event) => {
    const at = place(event), n = chosen();
    if (!at) { tip(""); return; }
    const [i, j] = reads() ? [n, at.key] : [at.query, n];
    if (i === undefined || j === undefined) { tip(""); return; }
    tip(`${plain(matrix.rows.names[i], 60)} → ${plain(matrix.columns.names[j], 60)}: ${shortNumber(matrix.at(+i, +j))}`, event.clientX, event.clientY);
  });
  box.addEventListener("pointerleave", () => tip(""));
  box.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (!move || !event.target.closest(".token")) return;
    event.preventDefault();
    pick(chosen() + move);
    (reads() ? queries : keys)[chosen()].focus();
  });
  render();
  return render;
}

// For every word written the word of the source that got the most attention, over all heads of the layer.
async function alignment() {
  const group = data.groups[state.group], bytes = await openLayer(state.group, state.layer);
  const heads = group.layers[state.layer].map((_, h) => headMatrix(state.group, state.layer, h, bytes));
  const rows = wordsOf(group.rows), columns = wordsOf(group.columns), matrix = joined(together(heads, "mean"), rows, columns);
  const isWord = (text, words) => words.names.map((_, n) => text.words[words.part.indexOf(n)] >= 0);
  const fromWord = isWord(group.rows, rows), toWord = isWord(group.columns, columns), pairs = [];
  for (let i = 0; i < matrix.n; ++i) {
    let best = -1;
    for (let j = 0; j < matrix.m; ++j) if (toWord[j] && (best < 0 || matrix.at(i, j) > matrix.at(i, best))) best = j;
    if (fromWord[i] && best >= 0) pairs.push([i, best, matrix.at(i, best)]);
  }
  return { rows, columns, pairs };
}

async function showAlignment(panel) {
  const { rows, columns, pairs } = await alignment();
  const place = (names, y) => {
    let x = 8;
    return names.map((name) => {
      const text = plain(name, 24), width = 9 * [...text].length + 14, at = { x: x + width / 2, y, text };
      x += width;
      at.end = x;
      return at;
    });
  };
  const top = place(columns.names, 24), bottom = place(rows.names, 166);
  const width = Math.max(top.at(-1).end, bottom.at(-1).end) + 8;
  const svg = makeSvg("svg", { viewBox: `0 0 ${width} 190`, width, height: 190, role: "img", "aria-label": "Words that belong together" });
  for (const [i, j, w] of pairs) {
    const a = top[j], b = bottom[i];
    svg.append(makeSvg("path", { d: `M${a.x} 34 C${a.x} 90 ${b.x} 100 ${b.x} 148`, "stroke-opacity": Math.min(1, 0.25 + w).toFixed(2), "stroke-width": (1 + 3 * w).toFixed(2) }));
  }
  for (const each of [...top, ...bottom]) svg.append(makeSvg("text", { x: each.x, y: each.y, "text-anchor": "middle" }, each.text));
  const body = make("tbody", {}, ...pairs.map(([i, j, w]) => make("tr", {},
    make("td", {}, plain(rows.names[i], 60)), make("td", {}, plain(columns.names[j], 60)), make("td", { className: "number" }, shortNumber(w)))));
  const head = make("thead", {}, make("tr", {}, ...["written", "source", "weight"].map((name) => make("th", { scope: "col" }, name))));
  panel.replaceChildren(make("div", { className: "words" }, svg, make("table", {}, make("caption", {},
    "Of each written word the source word with the most attention, mean over the layer's heads"), head, body)));
}
