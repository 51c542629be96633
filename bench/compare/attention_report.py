"""The record of the comparison: merged, judged, and shown as tables and a plot."""
import json
import pathlib
import statistics
from collections import defaultdict

from machine import has_amx, slug, versions
from report import ratio_table, table, write

KEYS = ("kind", "dtype", "D", "T", "mask", "batch", "heads", "threads", "peer")
# By (kind, dtype): without AMX, with AMX; None: no bar.
BARS = {("forward", "f32"): (1.7, 1.25), ("backward", "f32"): (1.4, 1.05), ("forward", "bf16"): (1.7, 2.5),
        ("backward", "bf16"): (3, 3), ("decode", "f32"): (1.5, 1.2), ("decode", "bf16"): (5, 1.2),
        ("dropout", "f32"): (2.5, 2.5), ("widths", "f32"): (2.5, 2.5), ("dropout", "bf16"): (2.5, 2.5),
        ("widths", "bf16"): (2.5, 2.5), ("weights", "f32"): (3, 3), ("weights", "bf16"): (3, 3)}
NAMES = {"forward": "forward", "backward": "backward", "decode": "decoding", "dropout": "forward with dropout",
         "widths": "forward, Dk ≠ Dv", "weights": "MultiheadAttention with weights", "encoder": "BERT-base-shaped encoder"}


def merged(folder, rows):
    """The rows of the record that were not measured again, and the new ones."""
    path = pathlib.Path(folder) / f"{slug()}.attention.json"
    kept = {tuple(r[k] for k in KEYS): r for r in json.loads(path.read_text())["rows"]} if path.is_file() else {}
    kept.update({tuple(r[k] for k in KEYS): r for r in rows})
    return [{**r, "us": round(r["us"], 2), "peer_us": round(r["peer_us"], 2), "ratio": round(r["peer_us"] / r["us"], 3)}
            for _, r in sorted(kept.items(), key=lambda item: tuple(map(str, item[0])))]


def geomeans(rows):
    groups = defaultdict(list)
    for r in rows:
        if r["kind"] in NAMES:
            groups[r["kind"], r["dtype"]].append(r["ratio"])
    order = list(NAMES)
    return {key: statistics.geometric_mean(groups[key]) for key in sorted(groups, key=lambda k: (order.index(k[0]), k[1] != "f32"))}


def judged(rows):
    out = []
    for (kind, dtype), ratio in geomeans(rows).items():
        bar = BARS.get((kind, dtype), (None, None))[has_amx()]
        out.append((f"{NAMES[kind]}, {dtype}", ratio, bar, bar is None or ratio >= bar))
    return out


def slow_cells(rows):
    """Cells below 0.95 that are large enough to count."""
    return [r for r in rows if r["kind"] in ("forward", "backward", "decode") and r["ratio"] < 0.95
            and (r["T"] >= 128 or r["batch"] * r["heads"] >= 8)]


def plot(rows):
    """Bars of the geometric means, as SVG."""
    bars = [(f"{NAMES[kind]}, {dtype}", ratio) for (kind, dtype), ratio in geomeans(rows).items()]
    top = max([ratio for _, ratio in bars] + [2])
    left, width, step = 270, 420, 26
    scale = width / top
    height = 40 + step * len(bars)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 60}" height="{height}" font-family="sans-serif" font-size="13">',
             '<style>text{fill:#333}.v{font-weight:bold}@media(prefers-color-scheme:dark){text{fill:#ddd}}</style>',
             f'<text x="{left}" y="16">times as fast as PyTorch (geometric mean)</text>']
    for n, (name, ratio) in enumerate(bars):
        y = 28 + step * n
        lines.append(f'<text x="{left - 8}" y="{y + 14}" text-anchor="end">{name}</text>')
        lines.append(f'<rect x="{left}" y="{y}" width="{ratio * scale:.1f}" height="{step - 8}" fill="#3b78b5" rx="2"/>')
        lines.append(f'<text class="v" x="{left + ratio * scale + 6:.1f}" y="{y + 14}">{ratio:.2f}</text>')
    x = left + scale
    lines.append(f'<line x1="{x:.1f}" y1="22" x2="{x:.1f}" y2="{height - 8}" stroke="#999" stroke-dasharray="4 3"/>')
    return "\n".join(lines + ["</svg>"]) + "\n"


def cell_tables(rows):
    """Ratios by length, for each kind, type and number of threads."""
    lines = []
    for kind in NAMES:
        for dtype in ("f32", "bf16"):
            for threads in sorted({r["threads"] for r in rows}):
                chosen = [r for r in rows if (r["kind"], r["dtype"], r["threads"]) == (kind, dtype, threads)]
                if not chosen:
                    continue
                lengths = sorted({r["T"] for r in chosen})
                groups = defaultdict(dict)
                for r in chosen:
                    groups[r["batch"] * r["heads"], r["D"], r["mask"]][r["T"]] = f"{r['ratio']:.2f}"
                body = [[str(heads), str(D), mask, *(groups[heads, D, mask].get(T, "") for T in lengths)] for heads, D, mask in sorted(groups)]
                lines += ["", f"## {NAMES[kind]}, {dtype}, {threads} threads" if threads > 1 else f"## {NAMES[kind]}, {dtype}, one thread", "",
                          *table(["B·H", "D", "mask", *(f"T {T}" for T in lengths)], body)]
    return lines


def other_table(rows):
    chosen = [r for r in rows if r["kind"] == "others"]
    if not chosen:
        return []
    groups = defaultdict(list)
    for r in chosen:
        groups[r["peer"], r["threads"]].append(r["ratio"])
    body = [[peer, str(threads), f"{statistics.geometric_mean(ratios):.2f}", f"{min(ratios):.2f}", f"{max(ratios):.2f}"]
            for (peer, threads), ratios in sorted(groups.items())]
    return ["", "## Others: f32 forward, 8 heads of 64, T 128 to 2048, full and causal", "",
            *table(["peer", "threads", "ratio", "smallest", "largest"], body)]


def one_row_a_line(record):
    """JSON that a reader, and a diff, can follow."""
    head = json.dumps({**record, "rows": None}, indent=1, ensure_ascii=False)
    rows = ",\n".join("  " + json.dumps(row) for row in record["rows"])
    return head.replace('"rows": null', f'"rows": [\n{rows}\n ]') + "\n"


def finish(folder, rows):
    """Merges, judges, writes. Whether every bar holds."""
    rows = merged(folder, rows)
    verdicts, slow = judged(rows), slow_cells(rows)
    packages = {**versions(), "amx": has_amx()}
    lines = ["# Attention beside PyTorch's scaled_dot_product_attention", "",
             ", ".join(f"{name} {value}" for name, value in packages.items()), "",
             "Times as fast: the peer's median time over ours, taking turns in one process; geometric means over the cells below.", "",
             *ratio_table(verdicts), "",
             f"Cells below 0.95 with T ≥ 128 or B·H ≥ 8: {len(slow)} of {len(rows)}."]
    lines += [f"* {r['kind']} {r['dtype']} B·H {r['batch'] * r['heads']} T {r['T']} D {r['D']} {r['mask']}, {r['threads']} threads: {r['ratio']:.2f}" for r in slow]
    record = {"machine": packages, "rows": rows}
    write(folder, "attention", lines + other_table(rows) + cell_tables(rows), record, verdicts)
    path = pathlib.Path(folder) / f"{slug()}.attention.json"
    path.write_text(one_row_a_line(json.loads(path.read_text())))
    path.with_suffix(".svg").write_text(plot(rows))
    return all(holds for *_, holds in verdicts) and not slow
