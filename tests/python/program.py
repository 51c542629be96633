"""The multihead program of this tree, for tests that compare the package with it."""
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]
MODEL = ROOT / "models/en-de"
PROGRAM = pathlib.Path(os.environ.get("MULTIHEAD_PROGRAM", ROOT / "build/release/bin/multihead"))

needs_program = pytest.mark.skipif(not PROGRAM.is_file(), reason=f"{PROGRAM} is not built")


def run(*arguments, text=""):
    done = subprocess.run([PROGRAM, *map(str, arguments)], input=text, capture_output=True, text=True, check=True)
    return done.stdout
