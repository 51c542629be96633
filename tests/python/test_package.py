"""The package as such: names, types, documentation, doctor, other arrays with DLPack."""
import ast
import doctest
import importlib.util
import json
import operator
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import multihead

FOLDER = pathlib.Path(multihead.__file__).parent
COMPILED = [name for name in multihead.__all__ if getattr(multihead, name).__module__ == "multihead._core"]
FUNCTIONS = [name for name in COMPILED if not isinstance(getattr(multihead, name), type)]


def test_no_framework_is_imported_and_the_version_is_told():
    code = "import multihead, sys; print(multihead.__version__, [m for m in ('torch', 'jax', 'transformers') if m in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert re.fullmatch(r"\d+\.\d+\.\d+ \[\]\n", said)
    info = multihead.build_info()
    assert info["version"] == multihead.__version__ and info["compiler"] and info["nanobind"]


METHODS = ["Model.translate", "Model.translations", "Model.align", "Model.attention", "Tokenizer.train"]


@pytest.mark.parametrize("name", [*multihead.__all__, *METHODS])
def test_docstring_examples_run(name, monkeypatch):
    monkeypatch.chdir(pathlib.Path(__file__).parents[2])
    thing = operator.attrgetter(name)(multihead)
    assert thing.__doc__ and len(thing.__doc__) > 20
    tests = doctest.DocTestFinder(recurse=False).find(thing, name, globs={})
    examples = doctest.DocTestParser().get_examples(thing.__doc__)
    for test in tests or []:
        assert doctest.DocTestRunner().run(test).failed == 0
    if examples and not tests:
        made = doctest.DocTestParser().get_doctest(thing.__doc__, {}, name, None, 0)
        assert doctest.DocTestRunner().run(made).failed == 0


def stubs():
    return ast.parse((FOLDER / "_core.pyi").read_text())


def test_every_name_has_types():
    assert (FOLDER / "py.typed").is_file()
    named = {node.name for node in stubs().body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    assert len(COMPILED) > 30 and set(COMPILED) <= named


@pytest.mark.parametrize("name", FUNCTIONS)
def test_types_name_the_arguments_there_are(name):
    said = getattr(multihead, name).__nb_signature__[0][0]
    inside = said[said.index("(") + 1:said.rindex(")")]
    runtime = re.findall(r"(?:^|, )(\*{0,2}\w+)(?=:|,|$)", inside)
    node = next(n for n in stubs().body if isinstance(n, ast.FunctionDef) and n.name == name)
    typed = [a.arg for a in node.args.args + node.args.kwonlyargs]
    typed += ["**" + node.args.kwarg.arg] if node.args.kwarg else []
    assert [a for a in runtime if a != "*"] == typed


def test_doctor():
    text = subprocess.run([sys.executable, "-m", "multihead", "doctor"], capture_output=True, text=True, check=True).stdout
    assert multihead.__version__ in text and "good" in text and re.search(rf"  {multihead.rung()} +in use", text)
    facts = json.loads(subprocess.check_output([sys.executable, "-m", "multihead", "doctor", "--json"]))
    assert facts["rung"] == multihead.rung() and facts["error"] < 1e-5


class Plain:
    """An array of a library nobody knows: DLPack is all it has."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class WithNamespace(Plain):
    """The same, with the array API's way to make more of its kind."""

    def __array_namespace__(self):
        return WithNamespace

    @staticmethod
    def from_dlpack(other):
        return WithNamespace(np.from_dlpack(other))


def test_anything_with_dlpack(randn):
    q, k, v = randn(3, 1, 2, 16, 8)
    want = multihead.attention(q, k, v)
    got = multihead.attention(WithNamespace(q), Plain(k), Plain(v))
    assert isinstance(got, WithNamespace) and np.array_equal(got.array, want)
    plain = multihead.attention(Plain(q), k, v, mask=multihead.keep(Plain(np.ones((16, 16), bool))))
    assert isinstance(plain, np.ndarray) and np.array_equal(plain, want)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="nanobind's stable ABI begins with Python 3.12")
def test_one_wheel_serves_later_pythons():
    assert multihead._core.__file__.endswith(".abi3.so")


def test_jax_arrays_come_back_as_jax_arrays(randn):
    jax = pytest.importorskip("jax")
    q, k, v = (jax.numpy.asarray(x) for x in randn(3, 1, 2, 16, 8))
    o = multihead.attention(q, k, v)
    assert isinstance(o, jax.Array)
    assert np.array_equal(np.asarray(o), multihead.attention(*(np.asarray(x) for x in (q, k, v))))


@pytest.mark.parametrize("page", ["docs/python.md", "docs/python_models.md", "README.md"])
def test_pages_run(page, monkeypatch):
    """Every block of Python on the page runs, in order, as one program."""
    monkeypatch.chdir(pathlib.Path(__file__).parents[2])
    text = (pathlib.Path(__file__).parents[2] / page).read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    assert blocks
    for peer in ("torch", "transformers"):
        if importlib.util.find_spec(peer) is None:
            blocks = [b for b in blocks if f"import {peer}" not in b]
    exec(compile("\n".join(blocks), page, "exec"), {})
