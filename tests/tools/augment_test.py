#!/usr/bin/env python3
"""models/en-de/augment.py and keeping.py: what is exchanged, what is held apart, what counts as kept. usage: augment_test.py"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parents[2] / "models" / "en-de"
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True
import augment  # noqa: E402
import keeping  # noqa: E402
import names  # noqa: E402
import phrases  # noqa: E402


class Exchanges(unittest.TestCase):
    def setUp(self):
        self.draw = augment.Draw(1)

    def test_names_change_on_both_sides_alike(self):
        for _ in range(200):
            english, german = augment.named(("I think Tom's dog likes Mary.", "Ich denke, Toms Hund mag Maria."), self.draw)
            man, woman = re.fullmatch(r"I think (.+)'s dog likes (.+)\.", english).groups()
            self.assertIn(german, (f"Ich denke, {man}s Hund mag {woman}.", f"Ich denke, Toms Hund mag {woman}.",
                                   f"Ich denke, {man}s Hund mag Maria."))

    def test_pairs_that_do_not_match_stay(self):
        self.assertIsNone(augment.named(("Tom came.", "Er kam."), self.draw))
        self.assertIsNone(augment.named(("She came.", "Sie kam."), self.draw))
        self.assertIsNone(augment.renumbered(("I get up at 7:00.", "Ich stehe um sieben Uhr auf."), self.draw))
        self.assertIsNone(augment.renumbered(("It is three o'clock.", "Es ist drei Uhr."), self.draw))

    def test_numbers_change_alike_and_keep_their_shape(self):
        for _ in range(200):
            english, german = augment.renumbered(("He sold 12,500 of 300.", "Er verkaufte 12.500 von 300."), self.draw)
            a, b = re.fullmatch(r"He sold (\d\d,\d{3}) of (\d{3})\.", english).groups()
            self.assertEqual(german, f"Er verkaufte {a.replace(',', '.')} von {b}.")
        english, german = augment.renumbered(("I have three books.", "Ich habe drei Bücher."), self.draw)
        number = re.fullmatch(r"I have ([\d,]+) books\.", english)[1]
        self.assertEqual(german, f"Ich habe {number.replace(',', '.')} Bücher.")

    def test_times_and_decimals_are_valid(self):
        for _ in range(300):
            hour, minute = map(int, self.draw.time()[0].split(":"))
            self.assertTrue(hour < 24 and minute < 60)
            english, german = self.draw.decimal()
            self.assertEqual(float(english), float(german.replace(",", ".")))
            english, german = augment.renumbered(("Come at 2:30.", "Komm um 2.30 Uhr."), self.draw)
            hour, minute = re.fullmatch(r"Come at (\d):([0-5]\d)\.", english).groups()
            self.assertEqual(german, f"Komm um {hour}.{minute} Uhr.")

    def test_phrases_are_filled_alike(self):
        for pair in phrases.PHRASES:
            self.assertEqual(len(pair), 2, pair)
            self.assertEqual(sorted(re.findall(r"{(\w+)}", pair[0])), sorted(re.findall(r"{(\w+)}", pair[1])), pair)
            self.assertNotIn("{", "".join(augment.filled(pair, self.draw)))

    def test_shouting_is_answered_by_shouting(self):
        seen = {augment.recased(("Good morning.", "Guten Morgen."), self.draw) for _ in range(300)}
        self.assertEqual(seen, {("GOOD MORNING.", "GUTEN MORGEN."), ("good morning.", "Guten Morgen."),
                                ("Good Morning.", "Guten Morgen."), ("Good morning", "Guten Morgen"),
                                ("good morning", "Guten Morgen")})


class Whole(unittest.TestCase):
    PAIRS = "".join(f"Tom has {n} dogs.\tTom hat {n} Hunde.\nWe like it, {n}.\tEs gefällt uns, {n}.\n" for n in range(20, 320))

    def run_on(self, folder, *more):
        source, out = pathlib.Path(folder, "in.tsv"), pathlib.Path(folder, "out.tsv")
        source.write_text(self.PAIRS, encoding="utf-8")
        subprocess.run([sys.executable, HERE / "augment.py", source, out, *more], check=True)
        return out.read_text(encoding="utf-8").splitlines()

    def test_every_pair_is_kept_and_others_are_made(self):
        with tempfile.TemporaryDirectory() as folder:
            lines = self.run_on(folder, "--rounds", "2")
            again = self.run_on(folder, "--rounds", "2")
            other = self.run_on(folder, "--rounds", "2", "--seed", "2")
        self.assertEqual(lines, again)
        self.assertNotEqual(lines, other)
        for pair in self.PAIRS.splitlines():
            self.assertGreaterEqual(lines.count(pair), 2)
        self.assertGreater(len(lines), 2 * 1.5 * 600)
        for line in lines:
            self.assertEqual(line.count("\t"), 1)
        self.assertTrue(any(line.split("\t")[0].count(". ") >= 2 for line in lines))  # joined

    def test_held_out_sentences_are_not_trained_on(self):
        with tempfile.TemporaryDirectory() as folder:
            lines = self.run_on(folder, "--rounds", "1", "--held-out", f"{folder}/held.tsv")
            held = pathlib.Path(folder, "held.tsv").read_text(encoding="utf-8").splitlines()
        missing = set(self.PAIRS.splitlines()) - set(lines)
        self.assertGreater(len(missing), 0)
        self.assertGreater(len(held), 0)
        self.assertTrue(all(line.count("\t") == 1 for line in held))


class Keeping(unittest.TestCase):
    def test_half_are_numbers_half_names_and_always_the_same(self):
        wanted = keeping.sentences()
        self.assertEqual(wanted, keeping.sentences())
        self.assertEqual(len(wanted), 200)
        self.assertEqual([what[0].isdigit() for _, what in wanted], [True] * 100 + [False] * 100)
        for sentence, what in wanted:
            self.assertIn(what, sentence)

    def test_nothing_of_it_is_trained_on(self):
        known = set(names.MEN + names.WOMEN + names.SURNAMES + names.CITIES) | {n for pair in names.EXONYMS for n in pair}
        self.assertFalse(known & set(keeping.PEOPLE + keeping.FAMILIES + keeping.PLACES))
        blank = lambda text: re.sub(r"{\w+}", "_", text)  # noqa: E731
        self.assertFalse({blank(pair[0]) for pair in phrases.PHRASES} & {blank(s) for s in keeping.NUMBERS + keeping.NAMES})

    def test_what_is_kept(self):
        for what, fine, wrong in (
                ("1987", ["Er kam 1987.", "1987 war gut."], ["Er kam 1978.", "Es sind 19870.", "1.987 kamen", "21987"]),
                ("2,393", ["2.393 Leute", "2393 Leute", "2 393 Leute"], ["2,393 Leute", "2.39 Leute", "12.393", "2.393.000"]),
                ("7.94 euros", ["7,94 Euro"], ["7.94 Euro", "794 Euro", "7,940 Euro"]),
                ("14:07", ["um 14:07 Uhr", "um 14.07 Uhr"], ["um 14 Uhr", "um 1407", "um 14:0"]),
                ("Ursula", ["Ursula kam.", "Ursulas Hund"], ["Ursul kam.", "ursula", "Ursulaner"]),
                ("Mr. X", ["(Mr. X)"], ["Mr. Xy", "MrX X"])):
            for text in fine:
                self.assertTrue(keeping.kept(what, text), (what, text))
            for text in wrong:
                self.assertFalse(keeping.kept(what, text), (what, text))

    def test_translations_of_another_text_are_refused(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            print("eins", file=file, flush=True)
            done = subprocess.run([sys.executable, HERE / "keeping.py", "check", file.name], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("has 1 lines; expected 200", done.stderr)


if __name__ == "__main__":
    unittest.main()
