#!/usr/bin/env python3
"""Writes words.json and characters.json beside it: what Hugging Face's WordLevelTrainer learns from lines.txt.

usage: make_words.py   Made with tokenizers 0.23.3.
"""
import pathlib

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).parent


def main():
    lines = (HERE / "lines.txt").read_text(encoding="utf-8").splitlines()
    for name, size in (("words", 200), ("characters", 60)):
        tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
        if name == "words":
            tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.WhitespaceSplit()
        else:
            tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated"), decoders.Fuse()
        tokenizer.train_from_iterator(lines, trainers.WordLevelTrainer(vocab_size=size, special_tokens=["<pad>", "<s>", "</s>", "<unk>"], show_progress=False))
        (HERE / f"{name}.json").write_text(tokenizer.to_str(pretty=True), encoding="utf-8")


if __name__ == "__main__":
    main()
