// Computes attention in double precision and shows every step; each number knows how it was made.
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const inputs = ["x", "query", "key", "value", "out"];
let given;
const start = () => { given = Object.fromEntries(inputs.map((name) => [name, data[name].map((row) => [...row])])); };
start();

const show = (value) => (value === -Infinity ? "−∞" : (Math.abs(value) < 0.0005 ? 0 : value).toFixed(3).replace("-", "−"));
const short = (value) => String(Math.round(value * 1000) / 1000).replace("-", "−");
const sumOf = (pairs, total) => `${pairs.map(([a, b]) => `${short(a)}·${short(b)}`).join(" + ")} = ${show(total)}`;
const product = (a, b) => a.map((row) => b[0].map((_, j) => row.reduce((sum, value, k) => sum + value * b[k][j], 0)));

function computed() {
  const width = data.x[0].length / data.heads, causal = $("causal").checked;
  const divisor = $("scale").value === "root" ? Math.sqrt(width) : 1;
  const q = product(given.x, given.query), k = product(given.x, given.key), v = product(given.x, given.value);
  const heads = [];
  for (let h = 0; h < data.heads; ++h) {
    const part = (rows) => rows.map((row) => row.slice(h * width, (h + 1) * width));
    const [qh, kh, vh] = [q, k, v].map(part);
    const scores = qh.map((a) => kh.map((b) => a.reduce((sum, value, d) => sum + value * b[d], 0) / divisor));
    const masked = scores.map((row, i) => row.map((score, j) => (causal && j > i ? -Infinity : score)));
    const weights = masked.map((row) => {
      const most = Math.max(...row), exps = row.map((score) => Math.exp(score - most)), sum = exps.reduce((a, b) => a + b);
      return exps.map((value) => value / sum);
    });
    heads.push({ q: qh, k: kh, v: vh, scores, masked, weights, mixed: product(weights, vh) });
  }
  const joined = given.x.map((_, i) => heads.flatMap((head) => head.mixed[i]));
  return { q, k, v, heads, joined, output: product(joined, given.out), divisor };
}

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

// A matrix as a table. `why(i, j)` explains a number; `input`: the name of the matrix that the reader may change.
function table(name, rows, { columns, why, input, colour, lines = data.tokens, id }) {
  const body = make("tbody");
  rows.forEach((row, i) => {
    const line = make("tr", {}, lines ? make("th", { scope: "row" }, lines[i]) : "");
    row.forEach((value, j) => {
      const cell = make("td");
      if (input) {
        const field = make("input", { type: "number", step: 0.5, value: String(value) });
        field.setAttribute("aria-label", `${name}, row ${i + 1}, column ${j + 1}`);
        field.addEventListener("input", () => {
          const number = Number(field.value);
          given[input][i][j] = Number.isFinite(number) ? number : 0;
          render(input);
        });
        cell.append(field);
      } else {
        cell.textContent = show(value);
        cell.tabIndex = 0;
        const tell = () => {
          document.querySelectorAll("td.on").forEach((each) => each.classList.remove("on"));
          cell.classList.add("on");
          $("why").textContent = why(i, j);
        };
        cell.addEventListener("pointerenter", tell);
        cell.addEventListener("focus", tell);
        if (colour) cell.style.background = value > 0 ? `rgb(var(--wash) / ${(0.5 * Math.sqrt(Math.min(1, value))).toFixed(3)})` : "";
      }
      line.append(cell);
    });
    body.append(line);
  });
  const out = make("table", {}, make("caption", {}, name));
  if (columns) out.append(make("thead", {}, make("tr", {}, make("td"), ...columns.map((each) => make("th", { scope: "col" }, each)))));
  out.append(body);
  if (id) out.id = id;
  return out;
}

function fill(step, ...tables) {
  document.querySelector(`[data-step="${step}"]`).replaceChildren(...tables);
}

// `changed`: the input that is being typed in, whose table stays.
function render(changed) {
  const c = computed(), h = Number($("head").value), head = c.heads[h], words = data.tokens, digits = ["1", "2", "3", "4"];
  const column = (matrix, j) => matrix.map((row) => row[j]);
  const times = (what, a, b, result) => (i, j) => `${what}, row “${words[i]}”, column ${j + 1}: ${sumOf(a[i].map((value, k) => [value, column(b, j)[k]]), result[i][j])}`;
  if (!changed) {
    fill("x", table("X", given.x, { columns: digits, input: "x", id: "x" }));
    fill("projections", ...[["query", "Q"], ["key", "K"], ["value", "V"]].map(([name, letter]) => {
      const pair = make("div", {}, table(`W_${letter}`, given[name], { columns: digits, lines: digits, input: name }));
      pair.append(make("div", { id: `made-${name}` }));
      return pair;
    }));
    fill("output", make("div", { id: "joined-box" }), table("W_O", given.out, { columns: digits, lines: digits, input: "out" }), make("div", { id: "output-box" }));
  }
  for (const [name, letter, rows] of [["query", "Q", c.q], ["key", "K", c.k], ["value", "V", c.v]])
    $(`made-${name}`).replaceChildren(table(`${letter} = X·W_${letter}`, rows, { columns: digits, why: times(letter, given.x, given[name], rows) }));
  const divided = c.divisor === 1 ? "" : " / √2";
  fill("scores", table(`Q of head ${h + 1}`, head.q, { why: (i, j) => `Column ${h * 2 + j + 1} of Q.` }), table(`K of head ${h + 1}`, head.k, { why: (i, j) => `Column ${h * 2 + j + 1} of K.` }),
    table(`Scores Q Kᵀ${divided}`, head.scores, {
      columns: words, id: "scores",
      why: (i, j) => `“${words[i]}” asks, “${words[j]}” offers: (${head.q[i].map((a, d) => `${short(a)}·${short(head.k[j][d])}`).join(" + ")})${divided} = ${show(head.scores[i][j])}`,
    }));
  const exponent = (i) => head.masked[i].map((score) => Math.exp(score));
  fill("weights", table("Masked scores", head.masked, { columns: words, why: (i, j) => (head.masked[i][j] === -Infinity ? `“${words[j]}” stands behind “${words[i]}”: masked.` : "Not masked: the score stays.") }),
    table(`Weights of head ${h + 1}`, head.weights, {
      columns: words, colour: true, id: "weights",
      why: (i, j) => `“${words[i]}” reads “${words[j]}”: exp(${show(head.masked[i][j])}) / (${exponent(i).map(short).join(" + ")}) = ${show(head.weights[i][j])}; the row sums to 1`,
    }));
  fill("mixed", table(`Weights of head ${h + 1}`, head.weights, { columns: words, colour: true, why: (i, j) => `Weight of “${words[j]}” for “${words[i]}”.` }),
    table(`V of head ${h + 1}`, head.v, { why: (i, j) => `Column ${h * 2 + j + 1} of V.` }),
    table(`Read by head ${h + 1}`, head.mixed, { id: "mixed", why: (i, j) => `What “${words[i]}” has read, column ${j + 1}: ${sumOf(head.weights[i].map((p, n) => [p, head.v[n][j]]), head.mixed[i][j])}` }));
  $("joined-box").replaceChildren(table("Both heads", c.joined, { columns: ["1", "1", "2", "2"], id: "joined", why: (i, j) => `Column ${j % 2 + 1} of head ${Math.floor(j / 2) + 1}.` }));
  $("output-box").replaceChildren(table("Output", c.output, { columns: digits, id: "output", why: times("Output", c.joined, given.out, c.output) }));
  // For the tests: all that was computed, with all digits.
  document.documentElement.dataset.numbers = JSON.stringify({ weights: c.heads.map((each) => each.weights), joined: c.joined, output: c.output });
}

const dark = matchMedia("(prefers-color-scheme: dark)");
const theme = (name) => { document.documentElement.dataset.theme = name; };
theme(new URLSearchParams(location.hash.slice(1)).get("theme") === "dark" || dark.matches ? "dark" : "light");
$("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
$("reset").addEventListener("click", () => { start(); $("causal").checked = false; $("scale").value = "root"; render(); });
for (const id of ["causal", "scale", "head"]) $(id).addEventListener("change", () => render());
render();
