"""Tiny folders of Hugging Face's form, with a tokenizer of as many words as the models have."""
import json
import pathlib
import shutil

FAMILIES = pathlib.Path(__file__).parents[1] / "models/golden/families"
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "anna", "lives", "in", "bonn", "é", "a", "b", "c", "d", "e", "f", "g", "h", "[MASK]"]


def tokenizer_json():
    piece = lambda name, type_id: {"SpecialToken": {"id": name, "type_id": type_id}}
    part = lambda name, type_id: {"Sequence": {"id": name, "type_id": type_id}}
    single = [piece("[CLS]", 0), part("A", 0), piece("[SEP]", 0)]
    special = lambda n, w: {"id": n, "content": w, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [special(n, w) for n, w in enumerate(WORDS) if w.startswith("[")],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": False, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing", "single": single, "pair": [*single, part("B", 1), piece("[SEP]", 1)],
                           "special_tokens": {w: {"id": w, "ids": [WORDS.index(w)], "tokens": [w]} for w in ("[CLS]", "[SEP]")}},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
                  "vocab": {w: n for n, w in enumerate(WORDS)}},
    })  # fmt: skip


def put_folder(folder, name):
    """tests/models/golden/families/NAME with the tokenizer, as FOLDER/NAME."""
    shutil.copytree(FAMILIES / name, folder / name)
    (folder / name / "tokenizer.json").write_text(tokenizer_json())
    return folder / name
