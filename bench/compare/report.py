"""Tables of figures, printed and written as Markdown and JSON under the machine's name."""
import json
import pathlib

from machine import slug


def table(heads, rows):
    return [f"| {' | '.join(cells)} |" for cells in [heads, ["---"] * len(heads), *rows]]


def ratio_table(judged):
    """judged: (what, ratio, bar or None, whether it holds)."""
    return table(["ratio", "measured", "bar", ""], [[what, f"{ratio:.2f}", "" if bar is None else f"{bar:g}",
                                                     "" if bar is None else "holds" if holds else "missed"]
                                                    for what, ratio, bar, holds in judged])


def write(folder, kind, lines, record, judged):
    """Prints `lines`, and keeps them and the record in folder/<machine>.<kind>.md and .json."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{slug()}.{kind}"
    record = {**record, "ratios": {what: round(ratio, 3) for what, ratio, *_ in judged}}
    path.with_name(path.name + ".json").write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    path.with_name(path.name + ".md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines) + f"\n\nwritten: {path}.json and .md")
