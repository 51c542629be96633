"""Types: the checkers accept the documented calls, the stubs say what the module has, signatures can be read."""
import inspect
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import multihead

HERE = pathlib.Path(__file__).parent
CALLS = HERE / "typed_calls.py"
FUNCTIONS = [name for name in multihead.__all__ if not isinstance(getattr(multihead, name), type)]


def tool(*command, folder):
    """From a folder of its own: next to the sources it would find a package without its compiled part."""
    done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, cwd=folder)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def page(tmp_path):
    """The documentation's blocks as one program, and the calls of this folder."""
    for page, file in (("docs/python.md", "page.py"), ("docs/python_models.md", "models_page.py")):
        blocks = re.findall(r"^```python\n(.*?)^```$", (HERE.parents[1] / page).read_text(), re.M | re.S)
        (tmp_path / file).write_text("\n".join(blocks))
    shutil.copy(CALLS, tmp_path)
    return tmp_path


def test_mypy_accepts_the_documented_calls(page):
    pytest.importorskip("mypy")
    pytest.importorskip("torch")
    config = "[mypy]\nstrict = True\n[mypy-torch.*,transformers.*]\nfollow_imports = skip\n"
    (page / "mypy.ini").write_text(config)
    code, said = tool("mypy", "typed_calls.py", "page.py", "models_page.py", folder=page)
    assert code == 0, said


def test_pyright_accepts_the_documented_calls(page):
    pytest.importorskip("pyright")
    pytest.importorskip("torch")
    code, said = tool("pyright", "--pythonpath", sys.executable, "typed_calls.py", "page.py", "models_page.py", folder=page)
    assert code == 0, said


def test_the_stubs_are_those_of_the_module(tmp_path):
    """But that nanobind's functions are of a type of its own, which stubtest does not count among functions."""
    pytest.importorskip("mypy")
    _, said = tool("mypy.stubtest", "multihead._core", folder=tmp_path)
    errors = [line for line in said.splitlines() if line.startswith("error:")]
    assert errors and [line for line in errors if not line.endswith(" is not a function")] == [], said


def test_mypy_accepts_the_package_itself(tmp_path):
    pytest.importorskip("mypy")
    code, said = tool("mypy", "--strict", *(arg for name in ("folders", "generation", "model", "padding", "page", "pretrained", "task_model", "task_results", "text_model", "tokenizer", "training") for arg in ("-m", f"multihead.{name}")), folder=tmp_path)
    assert code == 0, said


@pytest.mark.parametrize("wrong", ["multihead.load('x').translate('a', whole=2)", "multihead.train(3)", "multihead.attention(1, return_lse=2)", "multihead.window('a', 0)", "multihead.KVCache(1)"])
def test_mypy_refuses_what_is_wrong(tmp_path, wrong):
    pytest.importorskip("mypy")
    (tmp_path / "wrong.py").write_text(f"import multihead\n{wrong}\n")
    code, said = tool("mypy", "--strict", "wrong.py", folder=tmp_path)
    assert code == 1 and "wrong.py:2" in said, said


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signatures_can_be_read(name):
    signature = inspect.signature(getattr(multihead, name))
    assert f"{name}(" in f"{name}{signature}"


def test_what_signatures_say():
    said = inspect.signature(multihead.attention).parameters
    assert list(said)[:4] == ["q", "k", "v", "mask"] and said["v"].default is None and said["softcap"].default == 0.0
    assert said["mask"].kind is inspect.Parameter.KEYWORD_ONLY and said["q"].default is inspect.Parameter.empty
    assert str(inspect.signature(multihead.window)) == "(left, right)"
    assert str(inspect.signature(multihead.KVCache.append)) == "(self, k, v, sequences=None)"
    made = inspect.signature(multihead.KVCache)
    assert list(made.parameters) == ["batch", "key_heads", "key_width", "value_width", "capacity", "dtype", "page"]
    bound = inspect.signature(multihead.KVCache(1, 1, 8, capacity=4).truncate)
    assert list(bound.parameters) == ["sequence", "length"]
    assert inspect.signature(multihead.attention_weights).parameters["options"].kind is inspect.Parameter.VAR_KEYWORD
