#!/usr/bin/env python3
"""Training pairs with numbers and names exchanged, letters' case changed, sentences joined and tokens to copy.

usage: augment.py TRAIN.tsv OUT.tsv [--rounds 4] [--seed 1] [--held-out VALID.tsv]

Every round writes every pair of TRAIN.tsv as it is, and once more about 0.65 times as many made from them; what is drawn
differs from round to round. The same arguments write the same bytes. `--held-out` gets 600 pairs made of sentences that
OUT.tsv then lacks, with names drawn apart: what a run is validated on beside clean pairs.
"""
import argparse
import multiprocessing
import random
import re

from names import CITIES, CODAS, ENDINGS, EXONYMS, MEN, ONSETS, SURNAMES, VOWELS, WOMEN
from phrases import PHRASES

MONTHS = "January February March April May June July August September October November December".split()
WORDS = dict(pair.split("/") for pair in """two/zwei three/drei four/vier five/fünf six/sechs seven/sieben eight/acht
nine/neun ten/zehn eleven/elf twelve/zwölf thirteen/dreizehn fifteen/fünfzehn twenty/zwanzig thirty/dreißig forty/vierzig
fifty/fünfzig sixty/sechzig seventy/siebzig eighty/achtzig ninety/neunzig""".split())
NUMBER = re.compile(r"\d[\d.,:]*\d|\d")
# English name, and what it is called in the German sentences; "s" may follow there.
KNOWN = {"Tom": ("Tom", "man"), "John": ("John|Johannes", "man"), "Mary": ("Maria|Mary|Marie", "woman"),
         "Boston": ("Boston", "place"), "London": ("London", "place"), "Japan": ("Japan", "place"),
         "Australia": ("Australien", "place"), "Paris": ("Paris", "place")}
KNOWN = [(re.compile(rf"\b{name}\b"), re.compile(rf"\b(?:{german})(s?)\b"), kind)
         for name, (german, kind) in KNOWN.items()]


HALVES = [name for name in MEN + WOMEN + SURNAMES + CITIES if len(name) > 3 and "_" not in name]


class Draw:
    """What stands in a place: one method a kind, each giving the English and the German spelling."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, *choices):
        return self.random.choice(choices)

    def invented(self):
        """A word that no dictionary has: two names' halves, or syllables."""
        r = self.random
        if r.random() < 0.4:
            first, second = r.choice(HALVES), r.choice(HALVES)
            word = first[: r.randint(2, 4)] + second[-r.randint(2, 5):].lower()
            return word[0].upper() + word[1:]
        while True:
            parts = [r.choice(ONSETS) + r.choice(VOWELS) + r.choice(CODAS) for _ in range(r.choice((1, 1, 2, 2, 2, 3)))]
            word = "".join(parts) + r.choice(ENDINGS)
            if 3 <= len(word) <= 12:
                return word[0].upper() + word[1:]

    def one_of(self, names, known):
        return self.random.choice(names) if self.random.random() < known else self.invented()

    def surname(self):
        name = self.one_of(SURNAMES, 0.4)
        extra = self.random.random()
        if extra < 0.04:
            name = self.pick("Mc", "Mac", "O'", "De", "Van ", "von ", "de ") + name
        elif extra < 0.08:
            name += "-" + self.one_of(SURNAMES, 0.5)
        return name

    def person(self, names):
        name = self.one_of(names, 0.45)
        if self.random.random() < 0.05:
            name += "-" + self.one_of(names, 0.5)
        if self.random.random() < 0.15:
            name += " " + self.surname()
        return name, name

    def man(self):
        return self.person(MEN)

    def woman(self):
        return self.person(WOMEN)

    def place(self):
        if self.random.random() < 0.35:
            return tuple(self.random.choice(EXONYMS))
        name = self.one_of(CITIES, 0.45).replace("_", " ")
        if self.random.random() < 0.06:
            name = self.pick("San ", "Bad ", "New ", "Port ", "St. ", "El ", "Los ") + name
        return name, name

    def digits(self, count):
        return self.pick(*"123456789") + "".join(self.pick(*"0123456789") for _ in range(count - 1))

    def whole(self):
        count = self.random.choices((2, 3, 4, 5, 6, 7), (40, 25, 18, 8, 6, 3))[0]
        digits = self.digits(count)
        if count == 2 and int(digits) < 13:
            digits = str(int(digits) + 13)
        if count < 4 or self.random.random() < 0.3:
            return digits, digits
        return f"{int(digits):,}", f"{int(digits):,}".replace(",", ".")

    def decimal(self):
        text = self.digits(self.random.choices((1, 2, 3), (5, 4, 1))[0]) + "." + self.pick(*"123456789")
        text += self.pick("", "", *"123456789")
        return text, text.replace(".", ",")

    def year(self):
        text = str(self.random.choices((self.random.randint(1400, 1899), self.random.randint(1900, 2069)), (1, 3))[0])
        return text, text

    def time(self):
        hour, minute = self.random.randint(0, 23), self.random.randint(0, 59)
        if self.random.random() < 0.6:
            minute -= minute % 5
        text = f"{hour}:{minute:02}"
        return text, text if self.random.random() < 0.5 else text.replace(":", ".")

    def price(self):
        english, german = self.whole() if self.random.random() < 0.6 else self.cents()
        sign, word, spelled = self.pick(("$", "Dollar", "dollars"), ("€", "Euro", "euros"), ("£", "Pfund", "pounds"))
        return (sign + english if self.random.random() < 0.5 else f"{english} {spelled}"), f"{german} {word}"

    def cents(self):
        text = self.digits(self.random.choice((1, 2, 3))) + "." + self.pick("20", "50", "75", "80", "95", "99", "49", "15")
        return text, text.replace(".", ",")

    def house(self):
        text = self.digits(self.random.choice((2, 3, 3, 4))) + self.pick("", "", "", "", "a", "b", "B")
        return text, text

    def telephone(self):
        groups = [self.pick("", "+", "0") + self.digits(self.random.choice((2, 3, 4)))]
        groups += [self.digits(self.random.choice((3, 4, 5))) for _ in range(self.random.choice((1, 1, 2)))]
        text = self.pick(" ", "-", "/", " ").join(groups)
        return text, text

    def letters(self, least, most):
        return "".join(self.pick(*"abcdefghijklmnopqrstuvwxyz") for _ in range(self.random.randint(least, most)))

    def code(self):
        text = self.letters(1, 4).upper() + self.pick("", "-", "-", " ", "/") + self.digits(self.random.randint(2, 5))
        text += self.pick("", "", "-" + self.letters(1, 2).upper(), self.letters(1, 1).upper())
        return text, text

    def label(self):
        return self.pick(self.invented().lower(), self.letters(3, 8), self.invented().lower() + self.pick("-", "") +
                         self.letters(2, 4)).encode("ascii", "ignore").decode() or "x"

    def domain(self):
        return self.label() + self.pick(".com", ".de", ".org", ".net", ".co.uk", ".at", ".eu", ".io")

    def web(self):
        text = self.pick("https://", "http://", "www.", "https://www.", "") + self.domain()
        text += self.pick("", "", "/" + self.label(), f"/{self.label()}/{self.digits(3)}", f"/{self.label()}.html")
        return text, text

    def mail(self):
        text = self.label() + self.pick("", "." + self.label(), self.digits(2), "_" + self.label()) + "@" + self.domain()
        return text, text

    def file(self):
        text = self.pick(self.label(), self.label() + "_" + self.digits(2), self.invented())
        text += self.pick(".txt", ".pdf", ".jpg", ".doc", ".zip", ".csv", ".py", ".mp3", ".xlsx")
        return text, text

    def family(self):
        name = self.surname()
        return name, name


KINDS = dict(Y=Draw.year, T=Draw.time, N=Draw.whole, P=Draw.price, D=Draw.decimal, O=Draw.house, S=Draw.telephone,
             M=Draw.man, W=Draw.woman, L=Draw.family, C=Draw.place, U=Draw.web, E=Draw.mail, K=Draw.code, F=Draw.file)


def filled(pair, draw):
    """A pair of phrases with its places filled in."""
    places = {place: KINDS[place[0]](draw) for place in sorted(set(re.findall(r"{(\w+)}", pair[0])))}
    return tuple(re.sub(r"{(\w+)}", lambda m: places[m[1]][side], pair[side]) for side in (0, 1))


def named(pair, draw):
    """The pair with its names exchanged for others; None where it has none that both sides show alike."""
    english, german = pair
    found = False
    for here, there, kind in KNOWN:
        if not here.search(english) or len(here.findall(english)) != len(there.findall(german)):
            continue
        new_english, new_german = getattr(draw, kind)()
        if new_german[-1] in "sßxz" and any(there.findall(german)):
            continue
        english = here.sub(lambda _: new_english, english)
        german = there.sub(lambda m: new_german + m[1], german)
        found = True
    return (english, german) if found else None


def proper_nouns(pairs):
    """Words that both sides of some pair write with a capital and that English never writes without one."""
    small, capital = set(), {}
    for english, german in pairs:
        small.update(re.findall(r"\b[a-z]+\b", english))
        shared = set(re.findall(r"(?<=[a-z,] )[A-Z][a-z]{3,}\b", english)) & set(re.findall(r"\b[A-Z][a-z]{3,}\b", german))
        for word in shared:
            capital[word] = capital.get(word, 0) + 1
    return {word for word in capital if word.lower() not in small and word not in MONTHS}


def renamed(pair, nouns, draw):
    """The pair with one of `nouns` exchanged for a word nobody knows."""
    shared = [word for word in re.findall(r"\b[A-Z][a-z]{3,}\b", pair[0]) if word in nouns and re.search(rf"\b{word}\b", pair[1])]
    if not shared:
        return None
    new = draw.invented()
    return tuple(re.sub(rf"\b{shared[0]}\b", new, side) for side in pair)


def renumbered(pair, draw):
    """The pair with the digits of its numbers drawn anew, or a number in words exchanged for one in digits."""
    english, german = pair
    plain = [[re.sub(r"\D", "", n) for n in NUMBER.findall(side)] for side in pair]
    if plain[0] and sorted(plain[0]) == sorted(plain[1]) and len(set(plain[0])) == len(plain[0]):
        new = {digits: fresh_digits(digits, english, draw) for digits in plain[0]}
        return tuple(NUMBER.sub(lambda m: in_shape(new[re.sub(r"\D", "", m[0])], m[0]), side) for side in pair)
    found = [word for word in WORDS if re.search(rf"(?<![-\w]){word} (?!hundred|thousand|million|o'clock|and|or|to)[a-z]", english)]
    if plain[0] or plain[1] or len(found) != 1 or len(re.findall(rf"\b{found[0]}\b", english)) != 1:
        return None
    here = re.compile(rf"\b{WORDS[found[0]]}(?= (?!Uhr|Prozent|Millionen|Milliarden)[A-ZÄÖÜ])", re.IGNORECASE)
    if len(here.findall(german)) != 1:
        return None
    new_english, new_german = draw.whole()
    return re.sub(rf"\b{found[0]}\b", new_english, english, flags=re.IGNORECASE), here.sub(new_german, german)


def fresh_digits(digits, english, draw):
    if re.search(rf"\b{digits[:-2]}:{digits[-2:]}\b", english):
        minute = draw.random.randint(0, 59)
        return str(draw.random.randint(1, 9) if len(digits) == 3 else draw.random.randint(10, 23)) + f"{minute:02}"
    if len(digits) == 4 and "," not in english:
        return draw.year()[0]
    return draw.digits(len(digits)) if digits != "1" else "1"


def in_shape(digits, number):
    """`digits` with the points, commas and colons of `number` between them."""
    given = iter(digits)
    return "".join(next(given) if sign.isdigit() else sign for sign in number)


def recased(pair, draw):
    """Casing noise: the German stays as it is, unless the English shouts; or both lose the mark at their end."""
    english, german = pair
    kind = draw.random.choices(("lower", "upper", "title", "first", "unmarked", "both"), (30, 22, 10, 10, 20, 8))[0]
    if kind == "upper":
        return english.upper(), german.upper()
    if kind == "title":
        return " ".join(word[:1].upper() + word[1:] for word in english.split(" ")), german
    if kind == "first":
        return english[:1].lower() + english[1:], german
    if kind == "lower":
        return english.lower(), german
    if not re.search(r"\w[.!?]$", english) or not re.search(r"\w[.!?]$", german):
        return None
    return (english[:-1].lower() if kind == "both" else english[:-1]), german[:-1]


def bare(draw):
    """A token that stands alone on both sides."""
    english, german = KINDS[draw.pick(*"YNDSMWLCUEKFMWC")](draw)
    return english, german


def joined(pool, draw):
    parts = draw.random.sample(pool, draw.random.choices((2, 3, 4), (5, 3, 2))[0])
    return tuple(" ".join(part[side].strip() for part in parts) for side in (0, 1))


def made(pairs, nouns, draw):
    """The pairs one round adds to `pairs`."""
    out = [new for pair in pairs if (new := named(pair, draw))]
    out += [new for pair in pairs if (new := renamed(pair, nouns, draw))]
    numbers = [new for _ in range(3) for pair in pairs if (new := renumbered(pair, draw))]
    out += numbers
    share = len(pairs) // 100
    out += [filled(draw.random.choice(PHRASES), draw) for _ in range(9 * share)]
    out += [new for _ in range(17 * share) if (new := recased(draw.random.choice(pairs if draw.random.random() < 0.8 else out),
                                                              draw))]
    pool = pairs[:: max(1, len(pairs) // 40000)] + out
    out += [joined(pool, draw) for _ in range(6 * share)]
    out += [bare(draw) for _ in range(2 * share)]
    return out


def read_pairs(path):
    with open(path, encoding="utf-8", newline="\n") as lines:
        return [tuple(line.rstrip("\r\n").split("\t")[:2]) for line in lines]


def write_pairs(path, pairs):
    with open(path, "w", encoding="utf-8", newline="\n") as out:
        out.writelines(f"{english}\t{german}\n" for english, german in pairs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train")
    parser.add_argument("out")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--held-out")
    options = parser.parse_args()

    pairs = read_pairs(options.train)
    nouns = proper_nouns(pairs)
    if options.held_out:
        apart = set(pair[0] for pair in random.Random(options.seed).sample(pairs, len(pairs) // 100))
        kept = [pair for pair in pairs if pair[0] in apart]
        draw = Draw(f"{options.seed} apart")
        candidates = [p for p in made(kept, nouns, draw) if p[0] not in apart]
        write_pairs(options.held_out, draw.random.sample(candidates, min(600, len(candidates))))
        pairs = [pair for pair in pairs if pair[0] not in apart]
    with multiprocessing.Pool() as pool:
        rounds = [pool.apply_async(made, (pairs, nouns, Draw(f"{options.seed} {number}"))) for number in range(options.rounds)]
        write_pairs(options.out, (pair for part in rounds for pair in pairs + part.get()))


if __name__ == "__main__":
    main()
