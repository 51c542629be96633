// The data of the page: texts, numbers about heads, and the weights, which are opened a layer at a time.
const data = JSON.parse(document.getElementById("data").textContent);
const PICTURE = 64, TOP = 16, MOST_OPEN = 96 << 20;
const weightOf = Float32Array.from({ length: 256 }, (_, byte) => (byte / 255) ** 2);
const [ENTROPY, LARGEST, DISTANCE, PREVIOUS, ITSELF, NEXT, FIRST, LAST] = [0, 1, 2, 3, 4, 5, 6, 7];

for (const group of data.groups) {
  group.rows = data.texts[group.queries];
  group.columns = data.texts[group.keys];
  group.self = group.queries === group.keys;
}

const opened = new Map(); // "group-layer" -> promise of bytes, the one used last at the end

async function inflate(base64) {
  const packed = atob(base64), bytes = new Uint8Array(packed.length);
  for (let n = 0; n < packed.length; ++n) bytes[n] = packed.charCodeAt(n);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function bytesOfHead(group, head) {
  const n = group.rows.tokens.length, m = group.columns.tokens.length;
  return head.whole ? n * m : Math.min(PICTURE, n) * Math.min(PICTURE, m) + n * TOP * 5;
}

function openLayer(g, l) {
  const key = `${g}-${l}`;
  const bytes = opened.get(key) || inflate(document.getElementById(`block-${key}`).textContent);
  opened.delete(key);
  opened.set(key, bytes);
  let size = 0;
  for (const each of [...opened.keys()].reverse()) {
    const [og, ol] = each.split("-").map(Number), group = data.groups[og];
    size += group.layers[ol].reduce((sum, head) => sum + bytesOfHead(group, head), 0);
    if (size > MOST_OPEN && each !== key) opened.delete(each);
  }
  return bytes;
}

// A matrix of weights: n rows, m columns, at(i, j); rows() and columns() name them.
function headMatrix(g, l, h, bytes) {
  const group = data.groups[g], head = group.layers[l][h];
  const n = group.rows.tokens.length, m = group.columns.tokens.length;
  const begin = group.layers[l].slice(0, h).reduce((sum, each) => sum + bytesOfHead(group, each), 0);
  if (head.whole) return { n, m, whole: true, at: (i, j) => weightOf[bytes[begin + i * m + j]] };
  const keys = begin + Math.min(PICTURE, n) * Math.min(PICTURE, m), weights = keys + n * TOP * 4;
  const at = (i, j) => {
    for (let t = 0; t < TOP; ++t) {
      const p = keys + (i * TOP + t) * 4, w = bytes[weights + i * TOP + t];
      if (w && (bytes[p] | bytes[p + 1] << 8 | bytes[p + 2] << 16) === j) return weightOf[w];
    }
    return 0;
  };
  return { n, m, whole: false, at, picture: bytes.subarray(begin, keys) };
}

// The picture of a head, at most PICTURE cells each way: the largest weight of each part, as bytes.
function pictureOf(matrix) {
  const across = Math.min(PICTURE, matrix.m), down = Math.min(PICTURE, matrix.n);
  if (matrix.picture) return { across, down, bytes: matrix.picture };
  const bytes = new Uint8Array(across * down);
  for (let i = 0; i < matrix.n; ++i) {
    const row = Math.floor(i * down / matrix.n) * across;
    for (let j = 0; j < matrix.m; ++j) {
      const cell = row + Math.floor(j * across / matrix.m), byte = Math.round(255 * Math.sqrt(matrix.at(i, j)));
      if (byte > bytes[cell]) bytes[cell] = byte;
    }
  }
  return { across, down, bytes };
}

function together(matrices, how) {
  const { n, m } = matrices[0], sums = new Float32Array(n * m);
  for (const matrix of matrices)
    for (let i = 0, p = 0; i < n; ++i)
      for (let j = 0; j < m; ++j, ++p)
        sums[p] = how === "max" ? Math.max(sums[p], matrix.at(i, j)) : sums[p] + matrix.at(i, j) / matrices.length;
  return { n, m, whole: matrices.every((each) => each.whole), at: (i, j) => sums[i * m + j] };
}

// Of each token the number of its part on the page, and the text of the parts: words, with tokens of no word alone.
function wordsOf(text) {
  const part = [], names = [];
  text.tokens.forEach((token, n) => {
    const word = text.words[n];
    if (n > 0 && word >= 0 && word === text.words[n - 1]) names[names.length - 1] += token;
    else names.push(token);
    part.push(names.length - 1);
  });
  return { part, names, words: names.map((_, n) => n) };
}

// Sub-words joined: a word is read as much as its parts together, and reads what its parts read on average.
function joined(matrix, rows, columns) {
  const n = rows.names.length, m = columns.names.length, sums = new Float32Array(n * m), parts = new Float32Array(n);
  for (let i = 0; i < matrix.n; ++i) ++parts[rows.part[i]];
  for (let i = 0; i < matrix.n; ++i)
    for (let j = 0; j < matrix.m; ++j)
      sums[rows.part[i] * m + columns.part[j]] += matrix.at(i, j) / parts[rows.part[i]];
  return { n, m, whole: matrix.whole, at: (i, j) => sums[i * m + j] };
}

// What the state of the page asks for, with the names of rows and columns.
async function shownMatrix(state) {
  const group = data.groups[state.group], heads = group.layers[state.layer];
  let matrix;
  if (state.together === "marked" && state.marks.size > 0) {
    const marked = [...state.marks].map((mark) => mark.split(".").map(Number));
    matrix = together(await Promise.all(marked.map(async ([l, h]) =>
      headMatrix(state.group, l, h, await openLayer(state.group, l)))), "mean");
  } else {
    const bytes = await openLayer(state.group, state.layer);
    matrix = state.together === "one" || state.together === "marked"
      ? headMatrix(state.group, state.layer, state.head, bytes)
      : together(heads.map((_, h) => headMatrix(state.group, state.layer, h, bytes)), state.together);
  }
  let rows = { names: group.rows.tokens, words: group.rows.words };
  let columns = { names: group.columns.tokens, words: group.columns.words };
  if (state.join) {
    rows = wordsOf(group.rows);
    columns = wordsOf(group.columns);
    matrix = joined(matrix, rows, columns);
  }
  return { ...matrix, rows, columns, self: group.self };
}
