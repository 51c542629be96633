#!/usr/bin/env python3
"""Writes encodings.jsonl beside it: BPE of every kind and others, with ids, offsets, words and windows as Hugging Face's tokenizers give them.

usage: make_encodings.py   Made with tokenizers 0.23.3, which counts offsets in code points. Vocabularies are learned from lines.txt.
"""
import base64
import json
import pathlib
import random

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

import make_pipelines as made

HERE = pathlib.Path(__file__).parent
SPECIALS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
BYTES = [f"<0x{b:02X}>" for b in range(256)]
ODD = made.ODD + ["<mask>", " <mask>", "<s>", "<unk>", "Ġ", "it's", "I'LL", "ſ", "K", "  x", "12345", "1 234", "\n\n", "\r\n\r\n x",
                  "a\u0301\u0327", "e\u0301\u0301", "Å\u0327", "ﬁ\u0301", "㍿", "가\u11a8", "ｶﾞ", "한글", "ä" * 9, "x" * 40, "é\u0301", "©\u200d", "\u200d😀", "\u1100\u1161", "\u0301\u0301", "\u0600x", "🇩🇪", "e\u0301\u0301", "x\u0327", "\u200bx", "\u11a8", "ﬁ", "k", "kK", "Tom", " Tom"]


def learned(lines, size, pre, normaliser=None, specials=SPECIALS, alphabet=None, **model):
    tokenizer = Tokenizer(models.BPE(**model))
    tokenizer.pre_tokenizer = pre
    if normaliser:
        tokenizer.normalizer = normaliser
    kept = {k: v for k, v in model.items() if k in ("continuing_subword_prefix", "end_of_word_suffix")}
    tokenizer.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=size, min_frequency=2, special_tokens=specials, show_progress=False, initial_alphabet=alphabet or [], **kept))
    out = json.loads(tokenizer.to_str())
    out["added_tokens"] = [made.added(t, i) for i, t in enumerate(SPECIALS)]
    return out


def byte_level(space=False, trim=True, regex=True):
    return {"type": "ByteLevel", "add_prefix_space": space, "trim_offsets": trim, "use_regex": regex}


def template(single, pair):
    parts = lambda text: [{"Sequence": {"id": p[0], "type_id": int(p[2:] or 0)}} if p[0] in "AB" else
                          {"SpecialToken": {"id": p, "type_id": 0}} for p in text.split()]
    return {"type": "TemplateProcessing", "single": parts(single), "pair": parts(pair),
            "special_tokens": {t: {"id": t, "ids": [i], "tokens": [t]} for i, t in enumerate(SPECIALS)}}


def bpe_files(lines):
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    plain = learned(lines, 350, pre_tokenizers.ByteLevel(add_prefix_space=False), alphabet=alphabet)
    roberta = {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0], "trim_offsets": True, "add_prefix_space": False}
    decoder = byte_level()
    def change(file, **parts):
        model = {**file["model"], **parts.pop("model", {})}
        return {**file, "decoder": decoder, **parts, "model": model}
    mask = [made.added(t, i, lstrip=t == "<mask>", rstrip=t == "<pad>", normalized=t == "<unk>") for i, t in enumerate(SPECIALS)]
    yield change(plain, pre_tokenizer=byte_level(), post_processor=roberta, added_tokens=mask)
    yield change(plain, pre_tokenizer=byte_level(True), post_processor={**roberta, "add_prefix_space": True}, added_tokens=mask)
    yield change(plain, pre_tokenizer=byte_level(True), post_processor=byte_level(True))
    yield change(plain, normalizer={"type": "NFKC"}, pre_tokenizer=byte_level(), post_processor=made.sequence("processors", byte_level(True), template("<s> A", "<s> A <s> B:1")))
    yield change(plain, normalizer={"type": "NFC"}, pre_tokenizer=byte_level(), post_processor=template("<s> A </s>", "<s> A </s> B:1 </s>"), model={"ignore_merges": True, "merges": plain["model"]["merges"][::2]})
    digits = {"type": "Digits", "individual_digits": True}
    yield change(plain, pre_tokenizer=made.sequence("pretokenizers", digits, byte_level()))
    some = {t: i for t, i in plain["model"]["vocab"].items()}
    lost = [t for t in some if t in "qzXÃ"]
    kept = {t: i for i, t in enumerate(t for t in some if not any(c in t for c in lost))}
    merges = [m for m in plain["model"]["merges"] if all(t in kept for t in (*m, "".join(m)))]
    yield change(plain, pre_tokenizer=byte_level(), model={"vocab": kept, "merges": merges})
    yield change(plain, pre_tokenizer=byte_level(), post_processor=byte_level(), model={"vocab": kept, "merges": merges, "unk_token": "<unk>"})
    meta = made.metaspace("first", False)
    spaces = [pre_tokenizers.Metaspace(prepend_scheme="always")]
    llama = learned(lines, 400, spaces[0], specials=SPECIALS + BYTES, alphabet=list("▁äöü"), byte_fallback=True, fuse_unk=True, unk_token="<unk>")
    strip = made.sequence("decoders", {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0})
    prepend = made.sequence("normalizers", {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"})
    yield {**llama, "pre_tokenizer": meta, "decoder": strip, "post_processor": template("<s> A", "<s> A <s> B:1")}
    yield {**llama, "normalizer": prepend, "pre_tokenizer": None, "decoder": strip, "post_processor": template("<s> A", "<s> A <s> B:1")}
    few = {**llama["model"], "vocab": {t: i for i, t in enumerate(t for t in llama["model"]["vocab"] if t != "<0xC3>")}}
    yield {**llama, "pre_tokenizer": made.metaspace("always"), "model": few, "decoder": made.metaspace("always")}
    yield {**llama, "pre_tokenizer": made.metaspace("always"), "model": {**llama["model"], "byte_fallback": False}, "decoder": made.metaspace("always")}
    yield {**llama, "pre_tokenizer": made.metaspace("always"), "model": {**llama["model"], "byte_fallback": False, "fuse_unk": False, "unk_token": None}}
    clip = learned([l.lower() for l in lines], 570, pre_tokenizers.ByteLevel(add_prefix_space=False), alphabet=alphabet, end_of_word_suffix="</w>", unk_token="<unk>")
    ends = {c + "</w>" for c in alphabet} - clip["model"]["vocab"].keys()
    clip["model"]["vocab"].update({t: len(clip["model"]["vocab"]) + i for i, t in enumerate(sorted(ends))})
    yield {**clip, "normalizer": made.sequence("normalizers", {"type": "NFC"}, {"type": "Lowercase"}), "post_processor": {**roberta, "trim_offsets": False}, "decoder": {"type": "BPEDecoder", "suffix": "</w>"},
           "pre_tokenizer": made.sequence("pretokenizers", {"type": "WhitespaceSplit"}, byte_level(False))}
    bert = learned(lines, 250, pre_tokenizers.BertPreTokenizer(), continuing_subword_prefix="##", unk_token="<unk>")
    yield {**bert, "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": template("<s> A </s>", "<s> A </s> B:1 </s>")}
    yield {**bert, "pre_tokenizer": {"type": "Whitespace"}, "model": {**bert["model"], "fuse_unk": True}, "decoder": {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "a", "cleanup": True}}


def charsmap(replaced):
    """A map of Precompiled as SentencePiece stores it: a double-array trie over bytes, and the replacements."""
    trie, blob = {}, b""
    for what, to in replaced.items():
        node = trie
        for byte in what.encode():
            node = node.setdefault(byte, {})
        node[None] = len(blob)
        blob += to.encode() + b"\0"
    units, used = {}, {0}

    def place(node, at, label):
        children = ([0] if None in node else []) + [b for b in node if b is not None]
        base = next(b for b in range(1, 1 << 16) if not any(b ^ c in used for c in children))
        used.update(base ^ c for c in children)
        units[at] = (base ^ at) << 10 | (None in node) << 8 | label
        if None in node:
            units[base] = node[None] | 1 << 31
        for byte in (b for b in node if b is not None):
            place(node[byte], base ^ byte, byte)

    place(trie, 0, 0)
    size = (max(used) // 256 + 1) * 256
    words = [size * 4, *(units.get(i, 0) for i in range(size))]
    return base64.b64encode(b"".join(w.to_bytes(4, "little") for w in words) + blob).decode()


def mapped_files():
    chars = {"ﬁ": "fi", "é": "e", "e\u0301": "é", "ｶ": "カ", "ｶﾞ": "ガ", "\u00a0": " ", "\u200b": "", "\t": " ", "½": "1⁄2", "㍿": "株式会社", "©": "(c)", "\r\n": "\n",
             "…": "...", "A": "a", "\x01": "", "\u1100": "\u1101", "가": "나", "\u11a8": "x", "\u0600": "?", "x": "xx", "👩": "w", "🇩": "D", "\u0301": "'", "한": "", "ä": "ae", "K": "kk", "k": ""}
    step = {"type": "Precompiled", "precompiled_charsmap": charsmap(chars)}
    spaces = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
    split = {"type": "Split", "pattern": {"Regex": r"\s+|\p{L}+|\p{N}{1,2}"}, "behavior": "Isolated", "invert": False}
    yield {**made.spelled(step, None)}
    yield made.file(made.unigram(), made.sequence("normalizers", step, spaces), made.metaspace("always"), made.template(), made.metaspace("always"))
    yield made.file(made.unigram(True), made.sequence("normalizers", {"type": "Strip", "strip_left": False, "strip_right": True}, step), made.metaspace("first"))
    for behaviour, invert in (("Removed", True), ("MergedWithPrevious", False), ("Contiguous", False)):
        yield made.file(made.word_level(), {"type": "ByteLevel"} if invert else spaces, {**split, "behavior": behaviour, "invert": invert})


def texts():
    chance = random.Random(5)
    out = ["", " ", "  the dog ", "Tom's dog is here, isn't he?", "Tom <mask> is <s>here</s>.", "\x01 Tom", "\u0301Tom", "ÀÉ\u0301Î ﬁ ½", " x  y\n\n z"]
    return out + ["".join(chance.choices(ODD, k=chance.randint(1, 7))) for _ in range(24)]


def tokens_of(encoding):
    sequences = [-1 if s is None else s for s in encoding.sequence_ids]
    words = [-1 if w is None else w for w in encoding.word_ids]
    return [encoding.ids, [x for o in encoding.offsets for x in o], words, sequences, encoding.type_ids]


def case(tokenizer, text, other, number):
    plain = tokenizer.encode(text, add_special_tokens=False)
    pair = tokenizer.encode(text, other)
    strategy = ("longest_first", "only_first", "only_second")[number % 3]
    windows = None
    try:
        tokenizer.enable_truncation(max_length=9 + number % 5, stride=number % 3, strategy=strategy)
        cut = tokenizer.encode(text, other)
        windows = [tokens_of(e)[:2] for e in [cut, *cut.overflowing]]
    except BaseException:  # a stride or a text that is too short: refused
        pass
    tokenizer.no_truncation()
    return [text, other, tokens_of(plain)[:3], tokenizer.decode(plain.ids, skip_special_tokens=True), tokens_of(pair), windows]


def main():
    lines = (HERE / "lines.txt").read_text(encoding="utf-8").splitlines()
    files = list(bpe_files(lines)) + list(mapped_files()) + [f for i, f in enumerate(made.with_models()) if i in (0, 1, 2, 3, 4, 5, 7, 14, 27, 28, 29, 31, 34, 36, 37)]
    chosen = texts()
    with open(HERE / "encodings.jsonl", "w", encoding="utf-8") as out:
        for number, file in enumerate(files):
            tokenizer = Tokenizer.from_str(json.dumps(file))
            some = chosen[:9] + chosen[9 + number % 3::3]
            cases = [case(tokenizer, text, chosen[-1 - i % 11], i) for i, text in enumerate(some)]
            out.write(json.dumps({"file": file, "cases": cases}, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
