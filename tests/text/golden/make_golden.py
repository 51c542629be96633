#!/usr/bin/env python3
"""Writes the golden files beside it, by Hugging Face's tokenizers: what it trains, saves, encodes and decodes.

usage: make_golden.py FOLDER   where FOLDER holds Tatoeba's {valid,test}.en-{de,fr,es,zh}.tsv (data/README.md)
Made with tokenizers 0.23.3. Its normaliser knows Unicode 9: the texts keep to characters that are older.
"""
import json
import pathlib
import random
import sys
import unicodedata

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).parent
SPECIALS = ["<pad>", "<s>", "</s>", "<unk>"]
ODD = ["a", "b", "Z", "é", "ß", "e\u0301", "\u0130", "Σ", "ς", "ﬁ", "Å", "\u212b", "1", "٣", "Ⅷ", "²", "½", "!", "'", "'s",
       "'re", "'LL", "'ll", "'ve", "'t", "'m", "'d", "’s", " ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u2003", "\u3000",
       "\u200b", "\u200d", "\ufeff", "\u0085", "\u180e", "\x00", "\x01", "\x1c", "\x7f", "\u0e33", "नमस्ते", "你好", "日本語",
       "안녕", "😀", "👩‍👩‍👧", "🇩🇪", "\ufffd", "\uffff", "\U0010ffff", "<s>", "</s>", "<pad>", "Ġ", "Ċ", "Ã", "_", "-", "...",
       "the", " the", "Tom"]


def columns(path, pairs):
    lines = path.read_text(encoding="utf-8").split("\n")[:pairs]
    return [column for line in lines for column in line.split("\t")]


def train(lines, vocabulary, normaliser, pre_tokenizer, decoder):
    tokenizer = Tokenizer(models.BPE())
    if normaliser:
        tokenizer.normalizer = normaliser
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizer, decoder
    tokenizer.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=vocabulary, min_frequency=2, special_tokens=SPECIALS, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.encode_special_tokens = True
    return tokenizer


def tokenizers_of(lines):
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    strip = decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])
    fold = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    compose = normalizers.Sequence([normalizers.NFC(), normalizers.Prepend(" ")])
    return {
        "plain": train(lines, 1000, normalizers.Prepend(" "), byte_level, strip),
        "folded": train(lines, 500, fold, byte_level, decoders.ByteLevel()),
        "composed": train(lines, 300, compose, byte_level, strip),
        "spaced": train(lines, 300, None, pre_tokenizers.ByteLevel(add_prefix_space=True), decoders.ByteLevel()),
    }


def old_character():
    while True:
        code = random.choice([random.randrange(0x80), random.randrange(0x800), random.randrange(0x10000),
                              random.randrange(0x20000)])
        if not 0xD800 <= code < 0xE000 and unicodedata.ucd_3_2_0.category(chr(code)) != "Cn":
            return chr(code)


def texts_of(folder):
    random.seed(1)
    texts = ["", " ", "  ", "a", " a", "  a", "a ", "don't we'll I'VE it's", "1,000.50 in 1984", "x" * 200, "ab" * 150]
    for language in ("de", "fr", "es", "zh"):
        texts += columns(folder / f"test.en-{language}.tsv", 20)
    texts += ["".join(random.choices(ODD, k=random.randint(1, 10))) for _ in range(200)]
    texts += ["".join(old_character() for _ in range(random.randint(1, 8))) for _ in range(100)]
    return texts


def main():
    folder = pathlib.Path(sys.argv[1])
    lines = columns(folder / "valid.en-de.tsv", 400)
    (HERE / "lines.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    made = tokenizers_of(lines)
    for name, tokenizer in made.items():
        tokenizer.save(str(HERE / f"{name}.json"))
    with open(HERE / "encoded.jsonl", "w", encoding="utf-8") as out:
        for text in texts_of(folder):
            row = {"text": text}
            for name, tokenizer in made.items():
                ids = tokenizer.encode(text, add_special_tokens=False).ids
                row[name] = {"ids": ids, "decoded": tokenizer.decode(ids)}
            out.write(json.dumps(row, ensure_ascii=True) + "\n")


if __name__ == "__main__":
    main()
