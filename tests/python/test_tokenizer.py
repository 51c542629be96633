"""multihead.Tokenizer: files, ids, training; beside Hugging Face's where that is installed."""
import copy
import json
import pickle

import pytest

import multihead
from multihead import Tokenizer
from program import MODEL, needs_program, run

FILE = MODEL / "tokenizer.json"
TEXTS = ["Where is the station?", "", "  two  spaces ", "naïve café, 東京 😀", "Tom's 3.14\ttabs\nand lines", "x" * 300]
LINES = ["the cat sat on the mat", "the dog sat on the log", "a cat and a dog"] * 5


@pytest.fixture(scope="module")
def shipped():
    return Tokenizer.from_file(FILE)


@pytest.fixture(scope="module")
def wordpiece():
    """A small BERT: special tokens around a text, and types of a pair."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "cat", "sat", "##s", "##t", "on", "mat", ".", "a"]
    added = [
        {"id": n, "content": w, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
        for n, w in enumerate(words[:4])
    ]
    piece = lambda name, type_id: {"SpecialToken": {"id": name, "type_id": type_id}}
    part = lambda name, type_id: {"Sequence": {"id": name, "type_id": type_id}}
    single = [piece("[CLS]", 0), part("A", 0), piece("[SEP]", 0)]
    return json.dumps({
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": single,
            "pair": [*single, part("B", 1), piece("[SEP]", 1)],
            "special_tokens": {w: {"id": w, "ids": [words.index(w)], "tokens": [w]} for w in ("[CLS]", "[SEP]")},
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {w: n for n, w in enumerate(words)},
        },
    })


def test_there_and_back(shipped):
    for text in TEXTS:
        coded = shipped.encode(text)
        assert shipped.decode(coded.ids) == text and len(coded) == len(coded.tokens) == len(coded.type_ids) == len(coded.offsets)
        assert [shipped.token_to_id(token) for token in coded.tokens] == coded.ids
        assert [shipped.id_to_token(id) for id in coded.ids] == coded.tokens
    assert shipped.encode_batch(TEXTS) == [shipped.encode(text) for text in TEXTS]
    assert shipped.encode_batch(iter(TEXTS)) == shipped.encode_batch(TEXTS)
    assert shipped.decode_batch([c.ids for c in shipped.encode_batch(TEXTS)]) == TEXTS


@needs_program
def test_ids_are_those_of_the_program(shipped):
    lines = [text for text in TEXTS if "\n" not in text]
    said = run("tokenizer", "encode", FILE, text="".join(line + "\n" for line in lines)).splitlines()
    assert [" ".join(map(str, shipped.encode(line).ids)) for line in lines] == said


def test_what_it_tells_of_its_tokens(shipped):
    assert shipped.vocab_size == len(shipped) == 8000 and repr(shipped) == "multihead.Tokenizer(vocab_size=8000)"
    assert shipped.token_to_id("</s>") == 2 and shipped.is_special(2) and not shipped.is_special(300)
    assert shipped.token_to_id("no such token") is None and shipped.id_to_token(8000) is None
    assert shipped.decode([1, 2]) == ""


def test_text_may_be_only_text(shipped):
    assert shipped.encode("a</s>").ids[-1] == 2
    coded = shipped.encode("a</s>", find_special_tokens=False)
    assert 2 not in coded.ids and shipped.decode(coded.ids) == "a</s>"


def test_pairs_and_types(wordpiece):
    t = Tokenizer.from_json(wordpiece)
    pair = t.encode("The cat", "sat on a mat.")
    assert pair.tokens == ["[CLS]", "the", "cat", "[SEP]", "sat", "on", "a", "mat", ".", "[SEP]"]
    assert pair.type_ids == [0, 0, 0, 0, 1, 1, 1, 1, 1, 1]
    assert t.encode("The cat", "sat on a mat.", max_length=7).tokens == ["[CLS]", "the", "cat", "[SEP]", "sat", "on", "[SEP]"]
    assert t.encode("The cats", add_special_tokens=False).tokens == ["the", "cat", "##s"]
    assert t.encode_batch(["a", "the"], ["cat", "mat"]) == [t.encode("a", "cat"), t.encode("the", "mat")]
    with pytest.raises(ValueError, match="2 texts and 1 pairs"):
        t.encode_batch(["a", "b"], ["c"])


def test_training(tmp_path):
    (tmp_path / "a").write_text("\n".join(LINES[:8]) + "\n")
    (tmp_path / "b").write_text("\n".join(f"{line}\tignored words" for line in LINES[8:]) + "\n")
    whole = Tokenizer.train_from_iterator(LINES, 280)
    assert Tokenizer.train([tmp_path / "a", str(tmp_path / "b")], 280, columns=[1]) == whole
    assert whole.vocab_size == 280 and whole.id_to_token(0) == "<pad>" and "Ġthe" in whole.encode("the cat").tokens
    other = Tokenizer.train(tmp_path / "a", 280, special_tokens=["[X]"], lowercase=True, prefix_space=False, normalisation="nfc")
    assert other.id_to_token(0) == "[X]" and other.encode("THE").ids == other.encode("the").ids


def test_saving_pickling_copying(shipped, tmp_path):
    shipped.save(tmp_path / "t.json")
    assert (tmp_path / "t.json").read_text(encoding="utf-8") == shipped.to_json()
    again = Tokenizer.from_file(tmp_path / "t.json")
    for same in (again, pickle.loads(pickle.dumps(shipped)), copy.copy(shipped), copy.deepcopy(shipped)):
        assert same == shipped and hash(same) == hash(shipped) and same.encode(TEXTS[3]) == shipped.encode(TEXTS[3])
    assert shipped != Tokenizer.train_from_iterator(LINES, 270)


def test_refusals(shipped, tmp_path):
    with pytest.raises(TypeError, match="from_file"):
        Tokenizer()
    with pytest.raises(OSError, match="none.json"):
        Tokenizer.from_file(tmp_path / "none.json")
    with pytest.raises(ValueError):
        Tokenizer.from_json("{}")
    with pytest.raises(TypeError, match=r"texts\[1\] is a int"):
        shipped.encode_batch(["a", 1])
    with pytest.raises(TypeError, match="several texts"):
        shipped.encode_batch("abc")
    with pytest.raises(ValueError, match="surrogates"):
        shipped.encode("\udc80")
    with pytest.raises(ValueError, match="8000 is not a token"):
        shipped.decode([8000])
    with pytest.raises(TypeError, match="expected an integer"):
        shipped.decode(["a"])
    with pytest.raises(ValueError, match="no text"):
        Tokenizer.train_from_iterator([])
    with pytest.raises(ValueError, match="vocabulary|vocab"):
        Tokenizer.train_from_iterator(LINES, 10)
    with pytest.raises(ValueError, match="normalisation"):
        Tokenizer.train_from_iterator(LINES, 300, normalisation="nfd")
    (tmp_path / "t.tsv").write_text("one column\n")
    with pytest.raises(ValueError, match="t.tsv:1: this line has 1 columns; columns asks for number 2"):
        Tokenizer.train(tmp_path / "t.tsv", 300, columns=[2])


def test_broken_lines_are_skipped_with_a_warning(tmp_path):
    (tmp_path / "t").write_bytes(b"good line\nbroken \xff\ngood line\n")
    with pytest.warns(UserWarning, match="skipped 1 of 3 lines"):
        assert Tokenizer.train(tmp_path / "t", 265).vocab_size <= 265


def test_hugging_faces_tokenizers_give_the_same_ids(shipped, wordpiece):
    tokenizers = pytest.importorskip("tokenizers")
    bert = Tokenizer.from_json(wordpiece)
    for mine, theirs in ((shipped, tokenizers.Tokenizer.from_file(str(FILE))), (bert, tokenizers.Tokenizer.from_str(wordpiece))):
        for text in [*TEXTS, "The cats sat on a MAT. [SEP]"]:
            want = theirs.encode(text)
            got = mine.encode(text)
            assert (got.ids, got.tokens, got.type_ids) == (want.ids, want.tokens, want.type_ids)
        assert mine.vocab_size == theirs.get_vocab_size()
    want = tokenizers.Tokenizer.from_str(wordpiece).encode("the cat", "sat on")
    assert (bert.encode("the cat", "sat on").ids, bert.encode("the cat", "sat on").type_ids) == (want.ids, want.type_ids)


def test_hugging_faces_trainer_learns_the_same(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    theirs = tokenizers.Tokenizer.from_str(Tokenizer.train_from_iterator(LINES, 264).to_json())
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<pad>", "<s>", "</s>", "<unk>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        min_frequency=2,
        show_progress=False,
    )
    theirs.train_from_iterator([" " + line for line in LINES], trainer)
    mine = Tokenizer.train_from_iterator(LINES, 300)
    assert [mine.id_to_token(n) for n in range(len(mine))] == [theirs.id_to_token(n) for n in range(theirs.get_vocab_size())]
