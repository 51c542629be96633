// One head as a matrix: rows read, columns are read. Zoom, pan, the exact weight under the pointer.
function showMatrix(panel, matrix) {
  const canvas = make("canvas", { tabIndex: 0, role: "application" });
  canvas.setAttribute("aria-label", "Matrix of weights: arrows move from cell to cell, plus and minus zoom");
  const said = make("p", { className: "said" }, "Point at a cell.");
  const zoomBy = (sign, label, factor) => {
    const button = make("button", { type: "button", onclick: () => zoom(factor) }, sign);
    button.setAttribute("aria-label", label);
    return button;
  };
  panel.replaceChildren(make("div", { className: "matrix" }, canvas,
    make("div", { className: "zoom" }, zoomBy("+", "Zoom in", 1.6), zoomBy("−", "Zoom out", 1 / 1.6), zoomBy("⤢", "Whole matrix", 0)), said));
  const context = canvas.getContext("2d");
  const most = Math.min(560, Math.max(280, innerHeight - 330));
  let cell = 1, x0 = 0, y0 = 0, left = 0, top = 0, width = 0, height = 0, cursor = null, fitting = 1;

  const labelWidth = (names, font) => {
    context.font = font;
    return Math.min(130, Math.max(...names.slice(0, 400).map((name) => context.measureText(plain(name, 18)).width)) + 12);
  };
  const measure = () => {
    const full = canvas.parentElement.clientWidth;
    left = labelWidth(matrix.rows.names, "13px system-ui");
    top = Math.min(100, labelWidth(matrix.columns.names, "13px system-ui"));
    width = Math.max(40, full - left - 1);
    fitting = Math.min(48, width / matrix.m, Math.max(most / matrix.n, width / matrix.m > most / matrix.n ? most / matrix.n : 0));
    if (fitting * matrix.n < 60) fitting = Math.min(width / matrix.m, 48);
    height = Math.min(most, Math.max(40, fitting * matrix.n));
    return full;
  };
  const keep = () => {
    x0 = Math.max(0, Math.min(x0, matrix.m - width / cell));
    y0 = Math.max(0, Math.min(y0, matrix.n - height / cell));
  };
  // Each pixel, or each cell where cells are larger, takes the largest weight of its part.
  const draw = () => {
    const ratio = devicePixelRatio || 1, full = measure();
    canvas.width = Math.round(full * ratio);
    canvas.height = Math.round((height + top) * ratio);
    canvas.style.height = `${height + top}px`;
    context.scale(ratio, ratio);
    keep();
    const colours = palette(), style = getComputedStyle(document.documentElement);
    const columns = Math.min(matrix.m - Math.floor(x0), Math.ceil(width / cell) + 1), rows = Math.min(matrix.n - Math.floor(y0), Math.ceil(height / cell) + 1);
    const per = Math.max(1, Math.floor(1 / (cell * ratio))), across = Math.ceil(columns / per), down = Math.ceil(rows / per);
    const image = new ImageData(across, down), pixels = new Uint32Array(image.data.buffer), largest = new Float32Array(across * down);
    for (let i = 0; i < rows; ++i)
      for (let j = 0, row = Math.floor(i / per) * across; j < columns; ++j) {
        const w = matrix.at(Math.floor(y0) + i, Math.floor(x0) + j), p = row + Math.floor(j / per);
        if (w > largest[p]) largest[p] = w;
      }
    for (let n = 0; n < pixels.length; ++n) pixels[n] = colours[Math.round(255 * Math.sqrt(largest[n]))];
    const sheet = make("canvas", { width: across, height: down });
    sheet.getContext("2d").putImageData(image, 0, 0);
    context.save();
    context.beginPath();
    context.rect(left, top, Math.min(width, matrix.m * cell), Math.min(height, matrix.n * cell));
    context.clip();
    context.imageSmoothingEnabled = false;
    context.drawImage(sheet, left - (x0 % 1) * cell, top - (y0 % 1) * cell, across * per * cell, down * per * cell);
    context.strokeStyle = style.getPropertyValue("--edge");
    if (cell > 14) {
      context.globalAlpha = 0.7;
      context.beginPath();
      for (let j = 0; j <= columns; ++j) { context.moveTo(left + (j - x0 % 1) * cell, top); context.lineTo(left + (j - x0 % 1) * cell, top + height); }
      for (let i = 0; i <= rows; ++i) { context.moveTo(left, top + (i - y0 % 1) * cell); context.lineTo(left + width, top + (i - y0 % 1) * cell); }
      context.stroke();
      context.globalAlpha = 1;
    }
    if (cursor) {
      context.strokeStyle = style.getPropertyValue("--focus");
      context.lineWidth = 2;
      context.strokeRect(left + (cursor[1] - x0) * cell, top + (cursor[0] - y0) * cell, Math.max(cell, 3), Math.max(cell, 3));
    }
    context.restore();
    context.fillStyle = style.getPropertyValue("--ink");
    context.font = `${Math.min(13, Math.max(10, cell - 1))}px system-ui`;
    context.textBaseline = "middle";
    if (cell < 10) return;
    for (let i = Math.ceil(y0 - 0.5); i < y0 + height / cell - 0.4 && i < matrix.n; ++i) {
      context.textAlign = "right";
      context.fillText(plain(matrix.rows.names[i], 18), left - 6, top + (i - y0 + 0.5) * cell, left - 8);
    }
    for (let j = Math.ceil(x0 - 0.5); j < x0 + width / cell - 0.4 && j < matrix.m; ++j) {
      context.save();
      context.translate(left + (j - x0 + 0.5) * cell, top - 6);
      context.rotate(-Math.PI / 2);
      context.textAlign = "left";
      context.fillText(plain(matrix.columns.names[j], 18), 0, 0, top - 8);
      context.restore();
    }
  };
  const point = (i, j, event) => {
    cursor = [i, j];
    const text = `${plain(matrix.rows.names[i], 60)} → ${plain(matrix.columns.names[j], 60)}: ${shortNumber(matrix.at(i, j))}`;
    said.textContent = `${text} (row ${i + 1}, column ${j + 1})`;
    if (event) tip(text, event.clientX, event.clientY);
    else say(text);
    draw();
  };
  const placeOf = (event) => {
    const box = canvas.getBoundingClientRect();
    const j = Math.floor((event.clientX - box.left - left) / cell + x0), i = Math.floor((event.clientY - box.top - top) / cell + y0);
    return i >= 0 && i < matrix.n && j >= 0 && j < matrix.m && event.clientX - box.left >= left && event.clientY - box.top >= top ? [i, j] : null;
  };
  const zoom = (factor, around) => {
    const [i, j] = around || cursor || [y0 + height / cell / 2, x0 + width / cell / 2];
    const before = cell;
    cell = factor === 0 ? fitting : Math.min(64, Math.max(fitting, cell * factor));
    x0 = j - (j - x0) * before / cell;
    y0 = i - (i - y0) * before / cell;
    draw();
  };
  let drag = null;
  canvas.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, y: event.clientY, x0, y0, moved: false }; });
  canvas.addEventListener("pointermove", (event) => {
    if (drag && event.buttons) {
      const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
      drag.moved = drag.moved || Math.abs(dx) + Math.abs(dy) > 5;
      [x0, y0] = [drag.x0 - dx / cell, drag.y0 - dy / cell];
      if (drag.moved) { tip(""); draw(); }
      return;
    }
    const place = placeOf(event);
    if (place) point(...place, event);
    else tip("");
  });
  canvas.addEventListener("pointerup", (event) => {
    const place = placeOf(event);
    if (drag && !drag.moved && place) choose({ token: place[0], pinned: true }, false);
    drag = null;
  });
  canvas.addEventListener("pointerleave", () => { tip(""); drag = null; });
  canvas.addEventListener("dblclick", (event) => zoom(2, placeOf(event)));
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.25 : 0.8, placeOf(event));
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (step) {
      event.preventDefault();
      const [i, j] = cursor || [0, -step[1]];
      const next = [Math.min(matrix.n - 1, Math.max(0, i + step[0])), Math.min(matrix.m - 1, Math.max(0, j + step[1]))];
      if (next[1] < x0) x0 = next[1];
      if (next[1] + 1 > x0 + width / cell) x0 = next[1] + 1 - width / cell;
      if (next[0] < y0) y0 = next[0];
      if (next[0] + 1 > y0 + height / cell) y0 = next[0] + 1 - height / cell;
      point(...next);
    } else if (event.key === "+" || event.key === "=") zoom(1.6);
    else if (event.key === "-") zoom(1 / 1.6);
    else if (event.key === "0") zoom(0);
    else if (event.key === "Enter" && cursor) choose({ token: cursor[0], pinned: true }, false);
  });
  measure();
  cell = fitting;
  draw();
  return draw;
}
