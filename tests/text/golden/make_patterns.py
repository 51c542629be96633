#!/usr/bin/env python3
"""Writes patterns.jsonl beside it: where regular expressions of tokenizers match, as Hugging Face's tokenizers (Oniguruma) find it.

usage: make_patterns.py   Made with tokenizers 0.23.3. A line is a pattern with its texts, and of each the parts as offsets in code points:
once with the matches, once without them.
"""
import json
import pathlib
import random

from tokenizers import Regex, pre_tokenizers

HERE = pathlib.Path(__file__).parent
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CL100K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CL100K_POSSESSIVE = r"(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s*+[\r\n]|\s+(?!\S)|\s+"
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
         r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CLIP = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
DEEPSEEK = r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
OTHERS = [r" {2,}", r"\s+", r"\d+", r"\w+|[^\w\s]+", r"[一-龥぀-ゟ゠-ヿ]+", r"\p{N}{1,3}", r"[\r\n]", r"a|ab", r"ab|a", r"(?:ab|a)b", r"(a|b)+?c", r"a{2,3}", r"a{2,3}?", r"a{2}",
          r"(?>a+)b", r"a++b|a", r"a+?b", r"x(?=y)", r"\p{Han}+", r"[\p{Han}&&[^一]]+", r"[^\p{L}&&[^\s]]+", r"[[a-c][x-z]]+", r"[a-]+", r"[]-a]+|\]", r"(?i:k|s)", r"\P{L}+", r"\p{^L}+",
          r"(?:a|(?:b|c)+d)+", r"\p{Lu}\p{Ll}*", r"[\s\S]", r".", r"(?=ab)\w", r"(?!ab)\w", r"[,.!?;:] ?", r"(?:\r?\n)+(?!\r?\n)", r"\p{Lo}+|\p{M}|\p{Zs}", r"`{2}", r"\.\.\.", r"\*|\+|\{"]
WORDS = ["the", "The", "THE", "dog", "HTTPServer", "iPhone", "a", "b", "ab", "aab", "aaab", "abbc", "bcd", "xy", "xz", "k", "K", "\u212a", "ſ", "S", "'s", "'S", "'ſ", "'re", "'LL", "I'm",
         "1", "12", "1234567", "٣", "Ⅷ", "½", "²", "é", "e\u0301", "É", "ǅ", "ʰ", "ß", "你好", "一", "日本語", "ひらがな", "カタカナ", "한글", "नमस्ते", "א", " ", "  ", "   ", "\t", "\n", "\r\n",
         "\n\n", " \n ", "\u00a0", "\u3000", "\u200b", "!", "?!", "...", ". ", "-", "_", "/", "//", "``", "\"", "<|endoftext|>", "😀", "👩‍👩‍👧", "€", "+", "{", "]", "\\", "*", "|", "~", "\U000e0100", "\ufffd", "\u0085"]


def parts(pattern, behaviour, text):
    return [x for _, span in pre_tokenizers.Split(Regex(pattern), behaviour).pre_tokenize_str(text) for x in span]


def main():
    chance = random.Random(11)
    with open(HERE / "patterns.jsonl", "w", encoding="utf-8") as out:
        for pattern in [GPT2, CL100K, CL100K_POSSESSIVE, O200K, QWEN2, CLIP, DEEPSEEK, *OTHERS]:
            texts = ["".join(chance.choices(WORDS, k=chance.randint(1, 12))) for _ in range(60 if len(pattern) > 60 else 15)]
            cases = [[text, parts(pattern, "isolated", text), parts(pattern, "removed", text)] for text in texts]
            out.write(json.dumps([pattern, cases], ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
