"""multihead.train: events, stops, resumed runs, refusals."""
import hashlib
import os
import pathlib
import signal
import threading
import time

import pytest

import multihead

NUMBERS = "zero one two three four five six seven eight nine".split()
ZAHLEN = "null eins zwei drei vier fünf sechs sieben acht neun".split()


@pytest.fixture
def interrupts():
    """SIGINT raises KeyboardInterrupt; a shell ignores it in what it runs in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def config(tmp_path):
    """A model that says numbers in German."""
    pairs = [(f"{NUMBERS[a]} {NUMBERS[b]}", f"{ZAHLEN[a]} {ZAHLEN[b]}") for a in range(10) for b in range(10)]
    (tmp_path / "pairs.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in pairs * 4), encoding="utf-8")
    return {
        "model": {"width": 32, "heads": 4, "feed_forward": 64, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0},
        "tokenizer": {"vocabulary": 320},
        "data": {"train": tmp_path / "pairs.tsv", "hold_out": 20, "tokens_per_batch": 256},
        "optimizer": {"learning_rate": 0.01, "warmup": 20},
        "train": {"output": tmp_path / "model", "steps": 30, "validate_every": 10, "save_every": 10},
    }


def digest(folder):
    return hashlib.sha256((pathlib.Path(folder) / "model.safetensors").read_bytes()).hexdigest()


def test_it_learns_and_tells_of_it(config):
    heard = []
    done = multihead.train({**config, "train": {**config["train"], "steps": 150, "validate_every": 50}}, callback=heard.append)
    kinds = [type(event).__name__ for event in heard]
    start = next(e for e in heard if isinstance(e, multihead.TrainStart))
    steps = [e for e in heard if isinstance(e, multihead.TrainStep)]
    checks = [e for e in heard if isinstance(e, multihead.TrainValidation)]
    assert start.steps == 150 and start.train == 380 and start.valid == 20 and start.examples == "pairs"
    assert [e.step for e in steps] == list(range(1, 151)) and steps[-1].loss < steps[0].loss / 2
    assert [e.step for e in checks] == [50, 100, 150] and done.best_validation == min(e.loss for e in checks)
    assert all(e.metrics["loss"] == e.loss and {"perplexity", "bleu", "chrf"} <= set(e.metrics) for e in checks)
    assert "TrainCheckpoint" in kinds and done.steps == 150 and not done.stopped
    assert done.model.translate("three seven") == "drei sieben"


def test_a_file_and_a_dict_train_the_same_model(config, tmp_path):
    first = multihead.train(config)
    text = (tmp_path / "model/config.toml").read_text(encoding="utf-8")
    (tmp_path / "run.toml").write_text(text, encoding="utf-8")
    second = multihead.train(tmp_path / "run.toml", set={"train.output": tmp_path / "again"})
    assert digest(first.folder) == digest(second.folder) and second.folder == str(tmp_path / "again")


def test_false_stops_and_resume_ends_with_the_same_bits(config, tmp_path):
    whole = multihead.train({**config, "train": {**config["train"], "output": tmp_path / "whole"}})

    def until_seven(event):
        return not (isinstance(event, multihead.TrainStep) and event.step == 7)

    stopped = multihead.train(config, callback=until_seven)
    assert stopped.stopped and stopped.steps == 7
    assert isinstance(stopped.model.translate("one two"), str)
    with pytest.raises(ValueError, match="resume"):
        multihead.train(config)
    resumed = multihead.train(config, resume=True)
    assert resumed.steps == 30 and not resumed.stopped and digest(resumed.folder) == digest(whole.folder)


def test_what_a_callback_raises_comes_out_and_a_model_remains(config):
    def fails(event):
        if isinstance(event, multihead.TrainStep) and event.step == 5:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        multihead.train(config, callback=fails)
    assert isinstance(multihead.load(config["train"]["output"]).translate("one two"), str)
    assert multihead.train(config, resume=True, callback=lambda e: None).steps == 30


def test_before_the_first_step_an_exception_ends_the_run_at_once(config):
    def fails(event):
        raise LookupError(type(event).__name__)

    with pytest.raises(LookupError):
        multihead.train(config, callback=fails)
    assert multihead.train(config, resume=True).steps == 30


def test_control_c_saves_and_goes_on_as_an_exception(config, interrupts):
    seen = []

    def press(event):
        if isinstance(event, multihead.TrainStep):
            seen.append(event.step)
            if event.step == 4:
                os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        multihead.train(config, callback=press)
    assert seen[-1] in (4, 5)
    assert isinstance(multihead.load(config["train"]["output"]).translate("one two"), str)


def test_other_threads_run_while_it_trains(config):
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0.0005)

    other = threading.Thread(target=count)
    other.start()
    # Wide enough that a step takes longer than the switch interval of the GIL.
    multihead.train({**config, "model": {"width": 128, "encoder_layers": 2, "decoder_layers": 2}})
    stop.set()
    other.join()
    assert counted[0] > 30, "no more turns than steps"


def test_a_bar_is_drawn_where_asked_for(config, capsys):
    multihead.train(config)
    assert capsys.readouterr().err == ""
    multihead.train({**config, "train": {**config["train"], "output": config["train"]["output"] / "second"}}, progress=True)
    said = capsys.readouterr().err
    assert "30/30" in said and "validation loss" in said and "saved " in said and said.endswith("\r\033[K")


def test_messages_reach_the_log(config, caplog):
    with open(config["data"]["train"], "ab") as file:
        file.write(b"broken \xff\tline\n")
    multihead.train(config)
    assert any("not UTF-8" in record.message for record in caplog.records)


REFUSED = {
    "key": ({"model": {"widht": 8}}, {}, ValueError, "config: there is no key model.widht; did you mean model.width?"),
    "section": ({"modle": {}}, {}, ValueError, "config: there is no section [modle]; did you mean [model]?"),
    "value": ({"model": {"width": -1}}, {}, ValueError, "config: model.width is -1; expected"),
    "type": ({"model": {"width": [1]}}, {}, TypeError, "model.width is a list; expected a bool, a number or a str"),
    "flat": ({"width": 8}, {}, TypeError, "width is a int; expected a dict"),
    "no data": ({"train": {"output": "x"}}, {}, ValueError, "data.train is not given"),
    "override": ({}, {"model.widht": 8}, ValueError, "there is no key model.widht"),
    "heads": ({"data": {"train": "x"}, "train": {"output": "x"}, "model": {"width": 30, "heads": 4}}, {}, ValueError, "model.heads 4"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    config, over, kind, text = REFUSED[name]
    with pytest.raises(kind) as caught:
        multihead.train(config, set=over)
    assert text in str(caught.value)


def test_missing_files_are_os_errors(config, tmp_path):
    with pytest.raises(OSError, match="none.toml"):
        multihead.train(tmp_path / "none.toml")
    config["data"]["train"] = tmp_path / "none.tsv"
    with pytest.raises(OSError, match="none.tsv"):
        multihead.train(config)


def test_a_language_model_trains(tmp_path):
    (tmp_path / "text.txt").write_text("the cat sat on the mat\n" * 300, encoding="utf-8")
    heard = []
    done = multihead.train(
        {
            "task": {"kind": "language_model", "samples": 2},
            "model": {"width": 16, "heads": 2, "feed_forward": 32, "decoder_layers": 1, "max_length": 32},
            "tokenizer": {"vocabulary": 270},
            "data": {"train": tmp_path / "text.txt", "hold_out": 20},
            "train": {"output": tmp_path / "lm", "steps": 20, "validate_every": 10},
        },
        callback=heard.append,
    )
    checks = [e for e in heard if isinstance(e, multihead.TrainValidation)]
    assert not done.translates and done.steps == 20 and (tmp_path / "lm/model.safetensors").exists()
    assert isinstance(done.model, multihead.TaskModel) and isinstance(done.model("the cat", max_new_tokens=4), str)
    assert checks[-1].loss < checks[0].loss and "perplexity" in checks[0].metrics and len(checks[0].samples) == 2
