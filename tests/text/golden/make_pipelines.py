#!/usr/bin/env python3
"""Writes pipelines.jsonl beside it: tokenizer.json files of many components, and what Hugging Face's tokenizers make of texts.

usage: make_pipelines.py   Made with tokenizers 0.23.3. A line is a tokenizer with its texts; the walk over all code points is
kept as a hash for each block of 4,096, so that a difference names its place.
"""
import json
import pathlib
import random

from tokenizers import Tokenizer

HERE = pathlib.Path(__file__).parent
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PIECES = ["the", "dog", "un", "##aff", "##able", "##s", "a", "##a", "b", "##b", "##1", "1", "2", "##2", "is", "n", "##n", "'", "t",
          ".", ",", "!", "?", "-", "cafe", "café", "naive", "straße", "strasse", "über", "uber", "你", "好", "日", "本", "ß", "é",
          "e", "##e", "i", "##i", "i̇", "σ", "##σ", "привет", "##т", "при", "##вет", "안", "녕", "안녕", "नमस", "##्", "ह", "##म",
          "مر", "##حبا", "😀", "do", "not", "m", "s", "ve", "re", "I", "The", "x", "##x", "y", "##y", "lower", "##case", "[", "]"]
ODD = ["the", "The", "dogs", "unaffable", "a", "b", "ab", "aab1", "1", "12", "２", "½", "Ⅷ", "٣", "café", "cafe\u0301", "CAFÉ",
       "naïve", "Straße", "ÜBER", "İ", "I", "Σ", "ς", "ﬁ", "Å", "\u212b", "你好", "日本語", "안녕", "\u1112\u1161\u11ab", "नमस्ते",
       "привет", "مرحبا", "😀", "👩‍👩‍👧", " ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u2003", "\u3000", "\u200b", "\u200d", "\ufeff",
       "\u0085", "\u180e", "\x00", "\x01", "\x0b", "\x7f", "\ufffd", "\uffff", "\U0002b820", "\U0002b930", "\u0301", "\u0345\u0327",
       "\U00011935\U00011930", "\u1abf\u0315", ".", ",", "!", "?", "don't", "'s", "-", "...", "_", "$", "^", "`", "«", "—", "、",
       "[MASK]", "[SEP]", "[mask]", "<x>", "<X>", " <x> ", "new word", "▁", "▁▁", "``", "''", "x" * 101, "[", "]"]


def bert(**change):
    return {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
            "lowercase": True, **change}


def added(content, id, **change):
    return {"id": id, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
            "special": True, **change}


def template():
    part = lambda kind, id, type: {kind: {"id": id, "type_id": type}}
    single = [part("SpecialToken", "[CLS]", 0), part("Sequence", "A", 0), part("SpecialToken", "[SEP]", 0)]
    return {"type": "TemplateProcessing", "single": single,
            "pair": single + [part("Sequence", "B", 1), part("SpecialToken", "[SEP]", 1)],
            "special_tokens": {t: {"id": t, "ids": [SPECIALS.index(t)], "tokens": [t]} for t in ("[CLS]", "[SEP]")}}


def file(model, normaliser=None, splitter=None, post=None, decoder=None, more=()):
    tokens = [added(t, i) for i, t in enumerate(SPECIALS)] + list(more)
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": tokens, "normalizer": normaliser,
            "pre_tokenizer": splitter, "post_processor": post, "decoder": decoder, "model": model}


def wordpiece(pieces=PIECES, **change):
    return {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
            "vocab": {t: i for i, t in enumerate(SPECIALS + pieces)}, **change}


def word_level():
    words = [p for p in PIECES if not p.startswith("##")] + ["ab", "12", "don", "...", "_", "dogs", "▁the", "▁a", "▁"]
    return {"type": "WordLevel", "vocab": {t: i for i, t in enumerate(SPECIALS + words)}, "unk_token": "[UNK]"}


def unigram(bytes_too=False):
    chance = random.Random(3)
    words = [p.replace("##", "") for p in PIECES] + ["▁", "▁the", "▁dog", "▁a", "ab", "aa", "▁▁", "▁the▁dog", "aab", "<0x41>", "ba"]
    words += [f"<0x{b:02X}>" for b in range(256) if b != 0x41] if bytes_too else []
    pieces = [[t, 0.0] for t in SPECIALS] + [[t, -chance.randint(2, 24) / 2] for t in dict.fromkeys(words)]
    return {"type": "Unigram", "unk_id": 1, "vocab": pieces, "byte_fallback": bytes_too}


def metaspace(scheme, split=True):
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, "split": split}


def sequence(kind, *steps):
    return {"type": "Sequence", kind: list(steps)}


def literal(text):
    return {"String": text}


def with_models():
    pre, wp = {"type": "BertPreTokenizer"}, {"type": "WordPiece", "prefix": "##", "cleanup": True}
    size, levels = len(SPECIALS) + len(PIECES), len(word_level()["vocab"])
    roberta = {"type": "RobertaProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2], "trim_offsets": True, "add_prefix_space": False}
    old = {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}
    odd = [added("<x>", size, special=False, lstrip=True, rstrip=True), added("New word", size + 1, special=False, normalized=True),
           added("ab", size + 2, special=False, single_word=True), added("<X>y", size + 3, special=False, normalized=True)]
    yield file(wordpiece(), bert(), pre, template(), wp)
    yield file(wordpiece(), bert(lowercase=False), pre, old, {**wp, "cleanup": False})
    yield file(wordpiece(), bert(strip_accents=False), pre, roberta, wp, odd)
    yield file(wordpiece(max_input_chars_per_word=3), bert(clean_text=False, handle_chinese_chars=False, strip_accents=True), pre)
    more = [added("<x>", levels, special=False, normalized=True, lstrip=True)]
    behaviours = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
    for splitter in ([{"type": "Whitespace"}, {"type": "WhitespaceSplit"}, metaspace("always", False), None,
                      {"type": "Digits", "individual_digits": True}, {"type": "Digits", "individual_digits": False},
                      {"type": "CharDelimiterSplit", "delimiter": "a"}]
                     + [{"type": "Punctuation", "behavior": b} for b in behaviours]
                     + [{"type": "Split", "pattern": literal("a"), "behavior": b, "invert": i} for b in behaviours for i in (False, True)]):
        yield file(word_level(), None, splitter, None, None, more)
    white = {"type": "WhitespaceSplit"}
    for scheme in ("always", "first", "never"):
        strip = {"type": "Strip", "strip_left": True, "strip_right": scheme == "first"}
        yield file(unigram(scheme == "never"), None, metaspace(scheme), template(), metaspace(scheme))
        yield file(unigram(), strip, sequence("pretokenizers", white, metaspace(scheme)), None, metaspace(scheme))
        yield file(unigram(), strip, metaspace(scheme), None, metaspace(scheme))
    replace = {"type": "Replace", "pattern": literal("▁"), "content": " "}
    llama = sequence("decoders", replace, {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0})
    spaces = sequence("normalizers", {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": literal(" "), "content": "▁"})
    yield file(unigram(True), spaces, None, template(), llama)
    yield file(unigram(), sequence("normalizers", {"type": "Nmt"}, {"type": "NFKC"}, {"type": "Lowercase"}), metaspace("always"), None, {"type": "BPEDecoder", "suffix": "b"})


def normalisers():
    for type in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt"):
        yield {"type": type}
    yield {"type": "Strip", "strip_left": True, "strip_right": True}
    yield sequence("normalizers", {"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"})
    yield bert()
    yield bert(lowercase=False)


def splitters():
    yield from ({"type": t} for t in ("BertPreTokenizer", "Whitespace", "WhitespaceSplit"))
    yield {"type": "Punctuation", "behavior": "Isolated"}
    yield {"type": "Digits", "individual_digits": True}


def texts():
    chance = random.Random(1)
    out = ["", " ", "  the dog", "The dog's unaffable.", "the dog [SEP] a<x>", "\x01 the", "\u0301the dog", "I don't do not, 've !", "  a b "]
    return out + ["".join(chance.choices(ODD, k=chance.randint(1, 7))) for _ in range(60)]


def case(tokenizer, text, other):
    row = {"text": text}
    tokenizer.encode_special_tokens = True
    row["plain"] = tokenizer.encode(text, add_special_tokens=False).ids
    tokenizer.encode_special_tokens = False
    row["decoded"] = tokenizer.decode(row["plain"])
    one, two = tokenizer.encode(text), tokenizer.encode(text, other)
    row["ids"], row["pair"], row["types"] = one.ids, two.ids, two.type_ids
    tokenizer.enable_truncation(max_length=9)
    row["short"] = tokenizer.encode(text, other).ids
    tokenizer.no_truncation()
    return row


def walk(tokenizer):
    """A hash over the ids of a<c>a<c> for every code point of each block of 4,096."""
    out = []
    for block in range(0, 0x110000, 4096):
        hash = 14695981039346656037
        for code in range(block, block + 4096):
            if 0xD800 <= code < 0xE000:
                continue
            for id in tokenizer.encode("a" + chr(code) + "a" + chr(code), add_special_tokens=False).ids + [0xFFFF]:
                hash = (hash ^ id) * 1099511628211 % 2**64
        out.append(f"{hash:x}")
    return out


def spelled(normaliser, splitter):
    """A byte of UTF-8 is a token: ids show what a normaliser leaves and where a splitter cuts."""
    vocabulary = [["<unk>", -100.0]] + [[f"<0x{b:02X}>", -50.0] for b in range(256)]
    model = {"type": "Unigram", "unk_id": 0, "vocab": vocabulary, "byte_fallback": True}
    marked = sequence("pretokenizers", splitter, metaspace("always", False)) if splitter else None
    return {**file(model, normaliser, marked), "added_tokens": []}


def main():
    chosen = texts()
    with open(HERE / "pipelines.jsonl", "w", encoding="utf-8") as out:
        for number, made in enumerate(with_models()):
            tokenizer = Tokenizer.from_str(json.dumps(made))
            some = chosen if number < 4 else chosen[:9] + chosen[9 + number % 5::5]
            cases = [case(tokenizer, text, chosen[-1 - i % 7]) for i, text in enumerate(some)]
            out.write(json.dumps({"file": made, "cases": [[c["text"], chosen[-1 - i % 7], *list(c.values())[1:]] for i, c in enumerate(cases)]}, ensure_ascii=False, separators=(",", ":")) + "\n")
    with open(HERE / "walks.jsonl", "w", encoding="utf-8") as out:
        for made in [spelled(n, None) for n in normalisers()] + [spelled(None, s) for s in splitters()]:
            hashes = walk(Tokenizer.from_str(json.dumps(made)))
            out.write(json.dumps({"normalizer": made["normalizer"], "pre_tokenizer": made["pre_tokenizer"], "hashes": hashes}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
