"""bench/compare/attention.py runs, agrees with its peer, and leaves its record."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch")

SCRIPT = pathlib.Path(__file__).parents[2] / "bench/compare/attention.py"


def test_a_part_of_the_comparison(tmp_path):
    command = [sys.executable, SCRIPT, "--kinds", "decode", "dropout", "--dtypes", "f32", "--threads", "1", "--rounds", "1", "--output", tmp_path]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    (record,) = tmp_path.glob("*.attention.json")
    rows = json.loads(record.read_text())["rows"]
    assert len(rows) == 22 and all(row["ratio"] > 0 for row in rows)
    assert record.with_suffix(".md").is_file() and record.with_suffix(".svg").read_text().startswith("<svg")
