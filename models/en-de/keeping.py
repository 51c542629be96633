#!/usr/bin/env python3
"""Does a translator keep numbers and names? 200 English sentences, half with a number, half with a name, and the count.

usage: keeping.py write SENTENCES.txt             writes the sentences, one a line; always the same
       keeping.py check TRANSLATIONS.txt [-v]     counts the lines that show what their sentence did; -v prints the others

A number is kept where its digits stand in the translation, written as German writes them (1,250 is 1.250, 1 250 or 1250;
2.5 is 2,5; 7:45 is 7:45 or 7.45), with no other digit beside them; a number in words does not count. A name is kept where
it stands letter for letter, at most with the s of a genitive behind it. Neither the sentences nor the names have a part in
augment.py's.
"""
import random
import re
import sys

NUMBERS = """My uncle bought his first car in {year}.
The museum opened its doors in {year}.
She has lived in this house since {year}.
Nobody knew about it before {year}.
The team won the championship in {year}.
They built the station in {year}, after the war.
We met each other in the winter of {year}.
The painter finished the picture in {year}.
The doctor will see you at {time}.
My flight lands at {time}.
We had breakfast at {time} yesterday.
The concert ended at {time}.
I waited for her until {time}.
This coat cost {price}.
My brother sold his bicycle for {price}.
The repair will cost about {price}.
He lost {price} playing cards.
A cup of coffee costs {cents} here.
The garden is {decimal} meters wide.
The dog weighed {decimal} kilos.
The river is {decimal} kilometers from our house.
I counted {small} birds in the tree.
The hospital has {large} beds.
More than {large} people came to the festival.
His stamp collection has {large} stamps.
She drove {small} miles in the rain.
The old man turned {small} last week.
The library owns {large} books about history.
Our hotel room is number {small}.
The ship carried {large} passengers.
They planted {small} trees along the road.
He answered {small} of the questions.
The train was {small} minutes late.
We sold {large} tickets in one day.
The mountain is {large} meters high.""".split("\n")

NAMES = """{person} forgot her umbrella at the office.
Yesterday I played chess with {person}.
{person} is afraid of dogs.
Do you know where {person} works?
I borrowed this book from {person}.
{person} wants to learn how to swim.
Everybody likes {person}.
{person} told me that you were sick.
I think {person} is right.
Did {person} write this letter?
{person} has been waiting for an hour.
We invited {person} to dinner.
{person} and I went to the same school.
I can't remember when I last saw {person}.
{person} does not drink coffee.
Mr. {family} bought a new house.
Mrs. {family} has three children.
Did you talk to Mr. {family} about it?
I received a letter from Mrs. {family}.
My sister lives in {place}.
We spent our holidays in {place}.
How far is it to {place}?
The weather in {place} is terrible.
I would like to visit {place} again.
He was arrested in {place}.
{place} is not far from here.
The hotel in {place} was very expensive.
She flew to {place} last week.
My parents got to know each other in {place}.
There is a famous castle in {place}.""".split("\n")

PEOPLE = """Agnes Amelie Bartholomew Beatrice Bruno Cedric Chloe Cornelia Damian Desmond Dominik Edith Eleanor Elmar Ernesto
Eugene Fabian Florian Gertrud Gideon Gunnar Gustav Harriet Hildegard Holger Ignatius Imogen Isolde Jasper Jolanda Kasimir
Korbinian Leopold Lorenz Ludmila Magnus Malte Matilda Meike Mirjam Nikolai Norbert Olaf Ophelia Pascal Philippa Quentin Rafael
Roderick Rosalind Rupert Siegfried Silas Tamara Thaddeus Thelma Torben Ulrike Ursula Valeska Volker Wilma Xaver Zacharias
Alpesh Babatunde Chidi Dmitri Emeka Faiza Giulia Haruto Jelena Keiko Lakshmi Malik Ngozi Oksana Priya Ravindra""".split()
FAMILIES = """Abernathy Achterberg Baumgartner Birkenfeld Chatterjee Cunningham Dombrowski Ellsworth Eichendorff Finkelstein
Fitzgerald Grabowski Greenwood Hausleitner Hetherington Ishikawa Jankowski Kirchhoff Koslowski Lindqvist Lockhart Mahoney
Montague Natarajan Niedermeyer Obermann Okonkwo Papadopoulos Pettigrew Quispe Reichelt Rosenthal Saarinen Schellenberg
Stavros Thornton Tschirner Ullmann Vasquez Waldmann Winterbottom Yoshida Zielinski""".split()
PLACES = """Aberdeen Albuquerque Antalya Bamberg Bournemouth Bregenz Bogota Cardiff Casablanca Charlotte Cottbus Eisenach Galway
Goslar Greifswald Halifax Inverness Jacksonville Konstanz Lahore Laramie Ludwigsburg Lusaka Malaga Marburg Missoula
Mombasa Nantes Newcastle Odessa Oldenburg Passau Pforzheim Plymouth Rosenheim Reykjavik Rotterdam Sacramento Schwerin Sheffield
Tallahassee Tacoma Tarragona Trondheim Villach Wichita Worcester Wolfsburg Zwickau""".split()


def number(kind, r):
    return {"year": lambda: str(r.randint(1780, 2025)), "time": lambda: f"{r.randint(6, 22)}:{r.randint(1, 59):02}",
            "price": lambda: f"{r.randint(13, 950)} {r.choice(('dollars', 'euros'))}", "cents": lambda: f"{r.randint(2, 9)}.{r.randint(11, 99)} euros",
            "decimal": lambda: f"{r.randint(2, 60)}.{r.randint(1, 9)}", "small": lambda: str(r.randint(13, 99)),
            "large": lambda: f"{r.randint(101, 9_999):,}"}[kind]()


def name(kind, r):
    if kind == "person":
        return r.choice(PEOPLE) + (f" {r.choice(FAMILIES)}" if r.random() < 0.3 else "")
    return r.choice({"family": FAMILIES, "place": PLACES}[kind])


def sentences():
    """200 of (sentence, what it must keep)."""
    r, out = random.Random(200), []
    for phrases, draw in ((NUMBERS, number), (NAMES, name)):
        for i in range(100):
            phrase = phrases[i % len(phrases)]
            kind = re.search(r"{(\w+)}", phrase)[1]
            what = draw(kind, r)
            out.append((phrase.replace("{" + kind + "}", what), what))
    return out


def kept(what, translation):
    if not what[0].isdigit():
        return re.search(rf"(?<!\w){re.escape(what)}s?(?!\w)", translation) is not None
    digits = what.split(" ")[0]
    pattern = re.escape(digits)
    for english, german in ((",", "[. ]?"), (r"\.", ","), (":", "[:.]")):
        if english in pattern:
            pattern = pattern.replace(english, german)
            break
    return re.search(rf"(?<!\d)(?<!\d[.,:]){pattern}(?![.,:]?\d)", translation) is not None


def check(path, verbose):
    """Prints the counts. Returns whether there is a translation for each sentence."""
    with open(path, encoding="utf-8") as lines:
        translations = [line.rstrip("\n") for line in lines]
    wanted = sentences()
    if len(translations) != len(wanted):
        print(f"keeping: {path} has {len(translations)} lines; expected {len(wanted)}", file=sys.stderr)
        return False
    good = [kept(what, translation) for (_, what), translation in zip(wanted, translations)]
    if verbose:
        for fine, (sentence, _), translation in zip(good, wanted, translations):
            if not fine:
                print(f"{sentence}\t{translation}")
    print(f"kept: {sum(good)} of {len(good)} ({100 * sum(good) / len(good):.1f} %); "
          f"numbers {sum(good[:100])} of 100, names {sum(good[100:])} of 100")
    return True


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "write":
        with open(arguments[1], "w", encoding="utf-8") as out:
            out.writelines(sentence + "\n" for sentence, _ in sentences())
    elif arguments[1:] and arguments[0] == "check" and arguments[2:] in ([], ["-v"]):
        return 0 if check(arguments[1], arguments[2:] == ["-v"]) else 1
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
