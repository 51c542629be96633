#!/usr/bin/env python3
"""Writes the JSON files beside it: what other programs compute of random and of odd cases.

usage: make_golden.py        needs scikit-learn, scipy, seqeval, rouge-score, nltk, pycocoevalcap, jiwer (README.md)
SQuAD's exact match and F1 are written here anew from the definition that its scripts publish.
"""
import collections
import json
import math
import pathlib
import random
import re
import string
import warnings

import jiwer
import numpy
import scipy.stats
import sklearn.metrics
from nltk.stem.porter import PorterStemmer
from pycocoevalcap.cider.cider import Cider
from rouge_score.rouge_scorer import RougeScorer
from seqeval.metrics import f1_score, precision_score, recall_score
from seqeval.metrics.sequence_labeling import get_entities

HERE = pathlib.Path(__file__).parent
warnings.filterwarnings("ignore")


def write(name, cases):
    text = "[\n" + ",\n".join(json.dumps(case, ensure_ascii=False, separators=(",", ":")) for case in cases) + "\n]\n"
    (HERE / f"{name}.json").write_text(text, encoding="utf-8")


def number(value):
    return None if math.isnan(value) else float(value)


def classification():
    lists = [([0], [0]), ([1], [0]), ([0, 0, 0], [0, 0, 0]), ([1, 1, 1], [1, 1, 1]), ([0, 1, 0], [1, 0, 1]),
             ([0, 0, 0], [0, 1, 0]), ([0, 1, 2], [1, 2, 0]), ([2, 2, 4], [4, 4, 2])]
    for classes in [2, 3, 5]:
        for items in [4, 30]:
            references = [random.randrange(classes) for _ in range(items)]
            lists.append(([random.choice([r, r, random.randrange(classes)]) for r in references], references))
    for predictions, references in lists:
        labels = list(range(max(predictions + references + [1]) + 1))
        precision, recall, f1, _ = sklearn.metrics.precision_recall_fscore_support(
            references, predictions, labels=labels, zero_division=0)
        yield {"predictions": predictions, "references": references, "classes": len(labels),
               "matrix": sklearn.metrics.confusion_matrix(references, predictions, labels=labels).ravel().tolist(),
               "accuracy": sklearn.metrics.accuracy_score(references, predictions),
               "precision": precision.tolist(), "recall": recall.tolist(), "f1": f1.tolist(),
               "macro_f1": sklearn.metrics.f1_score(references, predictions, average="macro", zero_division=0),
               "matthews": float(sklearn.metrics.matthews_corrcoef(references, predictions))}


def regression():
    lists = [([1, 2], [2, 1]), ([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [5, 5, 5]), ([1, 1, 2, 2], [1, 2, 1, 3]),
             ([1e200, 2e200, 2.5e200], [1, 3, 2]), ([1e-200, 2e-200, 5e-200], [1, 3, 2]), ([1e9 + 1, 1e9 + 2, 1e9 + 4], [1, 2, 3])]
    for items in [3, 10, 40]:
        references = [random.gauss(2, 1) for _ in range(items)]
        lists.append(([r + random.gauss(0, 0.5) for r in references], references))
        lists.append(([random.randrange(4) for _ in range(items)], [random.randrange(5) for _ in range(items)]))
    for predictions, references in lists:
        x, y = numpy.array(predictions, float), numpy.array(references, float)
        yield {"predictions": x.tolist(), "references": y.tolist(),
               "mse": float(sklearn.metrics.mean_squared_error(y, x)) if max(x) < 1e100 else None,
               "pearson": number(scipy.stats.pearsonr(x, y)[0]), "spearman": number(scipy.stats.spearmanr(x, y)[0])}


def entities():
    usual = ["O", "O", "B-PER", "I-PER", "B-LOC", "I-LOC", "I-PER"]
    odd = usual + ["E-PER", "S-LOC", "B", "I", "E", "S", "B-A-B", "I-A-B", "BX-PER", "X", "X-PER", "é-PER", ".", ".-LOC",
                   "O-PER", "I-", "B-Ö"]
    corpora = [([], []), ([[]], [[]]), ([["O", "O"]], [["O", "O"]]), ([["O"]], [["B-PER"]]), ([["B-PER"]], [["O"]]),
               ([["B-PER", "I-PER"]], [["B-LOC", "I-LOC"]]), ([["I-PER"], ["I-PER"]], [["B-PER"], ["B-PER"]])]
    for tags in [usual] * 8 + [odd] * 16:
        expected = [[random.choice(tags) for _ in range(random.choice([0, 1, 3, 8]))] for _ in range(random.choice([1, 2, 5]))]
        corpora.append(([[random.choice([tag, tag, tag, random.choice(tags)]) for tag in line] for line in expected], expected))
    for predictions, references in corpora:
        scores = [score(references, predictions) for score in (precision_score, recall_score, f1_score)] if any(references) else [0] * 3
        yield {"predictions": predictions, "references": references, "scores": [float(score) for score in scores],
               "entities": [[list(entity) for entity in get_entities(line)] for line in predictions]}


def normalised(text):
    text = "".join(c for c in text.lower() if c not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def question(prediction, answers, version):
    def f1(words, expected):
        if version == 2 and not (words and expected):
            return float(words == expected)
        shared = sum((collections.Counter(words) & collections.Counter(expected)).values())
        if shared == 0:
            return 0.0
        precision, recall = shared / len(words), shared / len(expected)
        return 2 * precision * recall / (precision + recall)
    if version == 2:
        answers = [answer for answer in answers if normalised(answer)] or [""]
    ours = normalised(prediction)
    return [max(float(ours == normalised(answer)) for answer in answers),
            max(f1(ours.split(), normalised(answer).split()) for answer in answers)]


PIECES = ["a", "an", "the", "The", "A-", "theory", "an.", "U.S.", "1,000", "don't", "x_y", "cat", "cat", "dog", "Straße", "naïve",
          "a\u0301", "éa", "the–end", "–", "“the”", "你好", "²", "٣", "İ", "ΟΔΟΣ", "\u212a", "\u00a0", "\u3000", "\u200b", "\x1c", "\t",
          "!", "$%&", "~", "`", "😀", "a😀an"]


def phrase(most):
    return random.choice(["", " ", " "]).join(random.choice(PIECES) for _ in range(random.randint(0, most)))


def answers():
    cases = [("", [""]), ("the", ["a"]), ("the", [""]), ("", ["cat"]), ("cat", [""]), ("The Cat!", ["cat"]), ("cat", ["dog", "a cat", ""]),
             ("cat cat dog", ["cat dog dog"]), ("", []), ("cat", []), ("a", [])]
    for _ in range(90):
        expected = [phrase(5) for _ in range(random.randint(1, 3))]
        cases.append((random.choice([phrase(5), random.choice(expected).upper(), " ".join(random.choice(expected).split(" ")[1:])]), expected))
    for prediction, expected in cases:
        yield {"prediction": prediction, "answers": expected, "normalised": normalised(prediction),
               "v1_1": question(prediction, expected, 1) if expected else None, "v2": question(prediction, expected, 2)}


LINES = (HERE.parent.parent / "text/golden/lines.txt").read_text(encoding="utf-8").split("\n")
WORDS = sorted({word for line in LINES for word in re.findall("[a-z]{4,}", line.lower())})


def rouge():
    def summary():
        return random.choice(["\n", "\n", " "]).join(" ".join(random.choices(SOME, k=random.randint(0, 7))) for _ in range(random.randint(1, 3)))
    global SOME
    SOME = ["running", "runs", "ran", "relational", "relation", "hopeful", "hoping", "cat", "cats", "Naïve", "it's", "3.5", "\u212aelvin",
            "skies", "The", "the", "of", "happily", "happy", "generalization", "generally", "你好", "x_y"]
    pairs = [("", [""]), ("a", [""]), ("", ["a"]), ("a", ["b"]), ("a b c", ["a b c"]), ("c b a", ["a b c"]), ("\n\n", ["\n"]),
             ("a b\nc d", ["a b c d"]), ("w1 w2 w3\nw1 w4", ["w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5"]), ("a a a", ["a a", "a"]), ("!?", ["!?"]),
             ("was it", ["wa it"])]
    for _ in range(40):
        targets = [summary() for _ in range(random.randint(1, 2))]
        words = re.split("( |\n)", targets[0])
        random.shuffle(words)
        pairs.append((random.choice([summary(), "".join(words), targets[0][3:]]), targets))
    kinds = ["rouge1", "rouge2", "rougeL", "rougeLsum"]
    for prediction, targets in pairs:
        case = {"prediction": prediction, "targets": targets}
        for stem in [False, True]:
            scores = RougeScorer(kinds, use_stemmer=stem).score_multi(targets, prediction)
            case["stems" if stem else "words"] = [[float(part) for part in scores[kind]] for kind in kinds]
        yield case


def stems():
    ends = ["s", "sses", "ies", "ied", "eed", "ed", "ing", "y", "alli", "ally", "logy", "logi", "ational", "tional", "izer", "bly", "ently",
            "ization", "ation", "ator", "alism", "iveness", "fulness", "fully", "ality", "ivity", "bility", "icate", "ative", "icity",
            "ical", "ful", "ness", "ance", "ence", "able", "ement", "ment", "sion", "tion", "nion", "ou", "ous", "ive", "e", "ll", "lle"]
    starts = ["", "t", "ho", "hop", "hopp", "fall", "fizz", "conflat", "troubl", "siz", "yy", "syzyg", "boy", "tox", "snow", "commun", "r2"]
    irregular = "sky skies dying lying tying news innings outing cannings howe proceed exceed succeed dies died".split()
    made = sorted({start + end for start in starts for end in ends})
    words = sorted({*random.sample(WORDS, 250), *random.sample(made, 450), *irregular})
    stemmer = PorterStemmer()
    return [[word, stemmer.stem(word)] for word in words]


def cider():
    corpora = [([["a"]], [[["a"]]]), ([["a"], []], [[["a"]], [["b", "c"], []]]), ([["x"], ["y"]], [[["a", "b"]], [["b"]]])]
    words = ["a", "a", "dog", "cat", "on", "the", "mat", "red", "ünder"]
    for images in [2, 5, 12]:
        references = [[random.choices(words, k=random.randint(1, 9)) for _ in range(random.randint(1, 4))] for _ in range(images)]
        corpora.append(([[random.choice([w, w, random.choice(words)]) for w in random.choice(each)] for each in references], references))
    for hypotheses, references in corpora:
        score, scores = Cider().compute_score({i: [" ".join(words) for words in each] for i, each in enumerate(references)},
                                              {i: [" ".join(words)] for i, words in enumerate(hypotheses)})
        yield {"hypotheses": hypotheses, "references": references, "score": float(score), "scores": [float(s) for s in scores]}


def ranking():
    for items, k in [(3, 1), (10, 5), (10, 10), (20, 10)]:
        scores = [random.sample(range(100), items) for _ in range(8)]
        relevant = [random.randrange(items) for _ in scores]
        truth = [[float(i == item) for i in range(items)] for item in relevant]
        top = [sorted(range(items), key=lambda i: -row[i])[:k] for row in scores]
        yield {"scores": scores, "relevant": relevant, "k": k, "ndcg": float(sklearn.metrics.ndcg_score(truth, scores, k=k)),
               "hit_rate": sum(item in best for item, best in zip(relevant, top)) / len(scores),
               "mrr": float(sklearn.metrics.label_ranking_average_precision_score(truth, scores))}


def word_errors():
    words = ["one", "two", "three", "Two", "two.", "vier"]
    texts = [(["one"], ["one"]), ([""], ["one"]), (["one two three"], ["four"]), (["two one"], ["one two"])]
    for lines in [1, 3, 6]:
        references = [" ".join(random.choices(words, k=random.randint(1, 9))) for _ in range(lines)]
        texts.append(([" ".join(random.choices(words, k=random.randint(0, 9))) for _ in range(lines)], references))
        texts.append(([" ".join(w for w in line.split() if random.random() < 0.7) for line in references], references))
    for hypotheses, references in texts:
        yield {"hypotheses": hypotheses, "references": references, "rate": jiwer.wer(references, hypotheses)}


for metric in (classification, regression, entities, answers, rouge, stems, cider, ranking, word_errors):
    random.seed(11)
    write(metric.__name__, metric())
