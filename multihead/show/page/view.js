// What every view uses: the state and its link, elements, text as text, colours, the note beside the pointer.
const $ = (id) => document.getElementById(id);
const VIEWS = ["lines", "matrix", "text", "statistics", "alignment"];
const VIEW_NAMES = { lines: "Lines", matrix: "Matrix", text: "Text", statistics: "Statistics", alignment: "Alignment" };
const TOGETHER = { one: "one head", mean: "mean of the layer", max: "maximum of the layer", marked: "marked heads" };
const state = {
  group: 0, layer: 0, head: 0, view: "lines", together: "one", join: false, least: 0.05,
  token: 0, pinned: false, side: "reads", theme: "", marks: new Set(),
};

function writeHash() {
  const parts = [`group=${state.group + 1}`, `layer=${state.layer + 1}`, `head=${state.head + 1}`, `view=${state.view}`];
  if (state.together !== "one") parts.push(`heads=${state.together}`);
  if (state.marks.size) parts.push(`marks=${[...state.marks].map((m) => m.split(".").map((x) => +x + 1).join(".")).join(",")}`);
  if (state.join) parts.push("words=1");
  if (state.least !== 0.05) parts.push(`from=${state.least}`);
  if (state.pinned) parts.push(`token=${state.token + 1}`);
  if (state.side !== "reads") parts.push(`side=${state.side}`);
  if (state.theme) parts.push(`theme=${state.theme}`);
  history.replaceState(null, "", `#${parts.join("&")}`);
}

function readHash() {
  const said = new URLSearchParams(location.hash.slice(1));
  const whole = (name, most, standard) => {
    const value = Number(said.get(name));
    return said.has(name) && Number.isInteger(value) && value >= 1 && value <= most ? value - 1 : standard;
  };
  const among = (name, choices, standard) => (choices.includes(said.get(name)) ? said.get(name) : standard);
  state.group = whole("group", data.groups.length, 0);
  const group = data.groups[state.group];
  state.layer = whole("layer", group.layers.length, Math.max(0, group.layers.length - (group.self ? 1 : 2)));
  state.head = whole("head", group.layers[state.layer].length, 0);
  state.view = among("view", viewsOf(group), "lines");
  state.together = among("heads", Object.keys(TOGETHER), "one");
  state.marks = new Set((said.get("marks") || "").split(",").map((mark) => mark.split(".").map((x) => x - 1))
    .filter(([l, h]) => group.layers[l] && group.layers[l][h]).map((mark) => mark.join(".")));
  state.join = said.get("words") === "1";
  const least = Number(said.get("from"));
  state.least = said.has("from") && least >= 0 && least <= 0.5 ? least : 0.05;
  state.pinned = said.has("token");
  state.token = whole("token", group.rows.tokens.length, 0);
  state.side = among("side", ["reads", "read"], "reads");
  state.theme = among("theme", ["light", "dark"], "");
}

const viewsOf = (group) => VIEWS.filter((view) => view !== "alignment" || !group.self);

function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element && name !== "list") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

function makeSvg(tag, attributes = {}, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

// Text that is only ever text: signs that cannot be seen, or turn the direction of others, are spelled.
function plain(text, most = 28) {
  let out = "";
  for (const sign of text) {
    const code = sign.codePointAt(0);
    if (code < 0x20) out += String.fromCharCode(0x2400 + code);
    else if (code === 0x7f) out += "␡";
    else if (/[\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\u0080-\u009f]/.test(sign))
      out += `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
    else out += sign;
    if (out.length > most) return `${out}…`;
  }
  out = out.replace(/^ +| +$/g, (spaces) => "·".repeat(spaces.length));
  return out === "" ? "∅" : out;
}

const shortNumber = (weight) => (weight >= 0.0005 || weight === 0 ? weight.toFixed(3) : "<0.001");
const nameOfHead = () => {
  const group = data.groups[state.group], word = group.head_word;
  if (state.together === "marked" && state.marks.size) return `Mean of ${state.marks.size} marked heads`;
  if (word !== "head") return `${group.name} ${word} ${state.head + 1}`;
  if (state.together === "mean" || state.together === "max")
    return `Layer ${state.layer + 1}, ${state.together === "mean" ? "mean" : "maximum"} of its heads`;
  return `Layer ${state.layer + 1}, head ${state.head + 1}`;
};

const RAMPS = {
  light: [[255, 255, 255], [253, 232, 214], [249, 180, 144], [226, 96, 108], [150, 40, 122], [58, 13, 84]],
  dark: [[24, 23, 34], [56, 28, 98], [126, 36, 128], [212, 66, 108], [254, 150, 104], [252, 245, 191]],
};
const isDark = () => document.documentElement.dataset.theme === "dark";
// Colours of the bytes √w · 255, as numbers a pixel takes.
function palette() {
  const ramp = RAMPS[isDark() ? "dark" : "light"];
  return Uint32Array.from({ length: 256 }, (_, byte) => {
    const at = byte / 255 * (ramp.length - 1), n = Math.min(Math.floor(at), ramp.length - 2), t = at - n;
    const [r, g, b] = ramp[n].map((from, k) => Math.round(from + t * (ramp[n + 1][k] - from)));
    return (255 << 24 | b << 16 | g << 8 | r) >>> 0;
  });
}
const wash = (weight) => (weight > 0.002 ? `rgb(var(--wash) / ${(0.06 + 0.5 * Math.sqrt(weight)).toFixed(3)})` : "");

function applyTheme() {
  const dark = state.theme ? state.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}

function tip(text, x, y) {
  const note = $("tip");
  note.hidden = !text;
  if (!text) return;
  note.textContent = text;
  note.style.left = `${Math.min(x + 14, innerWidth - note.offsetWidth - 8)}px`;
  note.style.top = `${y + 40 > innerHeight ? y - 34 : y + 16}px`;
}

const say = (text) => { $("live").textContent = text; };
