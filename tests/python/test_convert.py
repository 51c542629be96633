"""`multihead convert` beside PyTorch and transformers: every bit of torch.save's two forms, the README's translations."""
import re

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors.torch")

from program import MODEL, ROOT, needs_program, run

TYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool]


def state():
    torch.manual_seed(1)
    out = {str(kind): (torch.randn(3, 5) * 3).abs().to(kind) for kind in TYPES}
    out["parameter"] = torch.nn.Parameter(torch.randn(4, 3))
    out["turned"], out["part"] = torch.randn(6, 5).t(), torch.randn(20)[3:11:2]
    out["scalar"], out["nothing"] = torch.tensor(2.5), torch.empty(0, 3)
    out["tied"] = out["parameter"]
    return out


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)


@needs_program
@pytest.mark.parametrize("zipped", [True, False])
def test_every_tensor_of_both_forms(tmp_path, zipped):
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    torch.save(state(), old / "pytorch_model.bin", _use_new_zipfile_serialization=zipped)
    (old / "config.json").write_text('{"model_type": "bert"}')
    run("convert", old, new)
    made = safetensors.load_file(new / "model.safetensors")
    expected = state()
    assert set(made) == set(expected) - {"tied"}
    assert all(same(made[name], expected[name].detach()) for name in made)


@needs_program
def test_transformers_translates_as_the_readme_says(tmp_path):
    run("convert", MODEL, tmp_path / "out", "--to", "huggingface")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "out")
    assert type(model).__name__ == "PegasusForConditionalGeneration" and model.dtype == torch.float32
    rows = re.search(r"^\| \| \|\n\|---\|---\|\n((?:\| .* \| .* \|\n)+)", (ROOT / "README.md").read_text(), re.M).group(1)
    pairs = [row.strip("|\n ").split(" | ") for row in rows.splitlines()]
    pairs = [(source.strip(), target.strip()) for source, target in pairs if not re.search(r"[.!?] \S", source)]
    assert len(pairs) >= 8
    for source, target in pairs:
        ids = model.generate(**tokenizer(source, return_tensors="pt", return_token_type_ids=False))
        assert tokenizer.decode(ids[0], skip_special_tokens=True) == target
