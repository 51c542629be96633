"""Three programs that translate with the same weights, each behind the same two calls: settings and run."""
import subprocess
import threading
import time

import ctranslate2
import torch
from safetensors.torch import load_file

import decode
from seq2seq import EOS, Seq2Seq

MAX_LENGTH = 256


class Ours:
    """The program itself, standing warm: text in, text out. The way through its pipes is counted."""
    name, stride = "multihead f32", 1

    def __init__(self, program, folder, threads):
        self.program, self.folder, self.threads, self.open = program, folder, threads, {}

    def settings(self, alone):
        return [{"alone": alone, "threads": n} for n in (sorted({1, self.threads}) if alone else [self.threads])]

    def process(self, beam, threads):
        if (beam, threads) not in self.open:
            command = [self.program, "translate", self.folder, "--whole", "--beam", beam, "--precision", "f32", "--threads",
                       threads]
            self.open[beam, threads] = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE,
                                                        stdout=subprocess.PIPE, text=True)
            self.run(["Hello."], beam, {"threads": threads, "alone": True})  # by now the model is loaded
        return self.open[beam, threads]

    def run(self, texts, beam, setting):
        process = self.process(beam, setting["threads"])

        def write(lines):
            process.stdin.write("".join(line + "\n" for line in lines))
            process.stdin.flush()

        began = time.perf_counter()
        if setting["alone"]:
            found = []
            for text in texts:
                write([text])
                found.append(process.stdout.readline())
        else:
            writer = threading.Thread(target=write, args=(texts,))
            writer.start()
            found = [process.stdout.readline() for _ in texts]
            writer.join()
        seconds = time.perf_counter() - began
        if process.poll() is not None:
            raise SystemExit(f"translate_speed: `{' '.join(process.args)}` ended with {process.returncode}")
        return [line.rstrip("\n") for line in found], seconds


class CTranslate2:
    """Tokens in, tokens out: what it takes to make them of text is not counted. It sorts sentences by length and cuts
    batches itself, of so many sentences or, padding counted, so many tokens."""
    name, stride = "CTranslate2 f32", 1

    def __init__(self, converted, tokenizer, threads):
        self.path, self.tokenizer, self.threads, self.open = str(converted), tokenizer, threads, {}

    def settings(self, alone):
        n = self.threads
        if alone:
            return [{"inter": 1, "intra": i, "batch": 1, "of": "examples"} for i in sorted({1, n})]
        kinds = [("examples", 32), ("examples", 64), ("examples", 128), ("tokens", 1024), ("tokens", 2048)]
        return [{"inter": n, "intra": 1, "batch": batch, "of": kind} for kind, batch in kinds] + [
            {"inter": 1, "intra": n, "batch": 128, "of": "examples"}]

    def translator(self, setting):
        key = setting["inter"], setting["intra"]
        if key not in self.open:
            self.open[key] = ctranslate2.Translator(self.path, compute_type="float32", inter_threads=key[0],
                                                    intra_threads=key[1])
        return self.open[key]

    def run(self, texts, beam, setting):
        translator = self.translator(setting)
        tokens = [e.tokens for e in self.tokenizer.encode_batch(texts, add_special_tokens=False)]
        groups = [[t] for t in tokens] if setting["batch"] == 1 else [tokens]
        began = time.perf_counter()
        found = [result for group in groups
                 for result in translator.translate_batch(group, beam_size=beam, max_batch_size=setting["batch"],
                                                          batch_type=setting["of"], max_decoding_length=MAX_LENGTH,
                                                          length_penalty=1)]
        seconds = time.perf_counter() - began
        return [[self.tokenizer.token_to_id(t) for t in result.hypotheses[0]] for result in found], seconds


class PyTorch:
    """The twin's own decoding: ids in, ids out, with cached keys and values."""
    name = "PyTorch f32"

    def __init__(self, folder, settings, tokenizer, threads, stride=1):
        self.tokenizer, self.threads, self.stride = tokenizer, threads, stride
        self.model = Seq2Seq(settings["model"]).eval()
        self.model.load_state_dict(load_file(folder / "model.safetensors"))

    def settings(self, alone):
        if alone:
            return [{"threads": n, "batch": 1} for n in sorted({1, self.threads})]
        return [{"threads": self.threads, "batch": batch} for batch in (32, 128)]

    def run(self, texts, beam, setting):
        torch.set_num_threads(setting["threads"])
        sources = [e.ids + [EOS] for e in self.tokenizer.encode_batch(texts, add_special_tokens=False)]
        began = time.perf_counter()
        found = decode.translate(self.model, sources, beam=beam, batch=setting["batch"], max_length=MAX_LENGTH)
        return found, time.perf_counter() - began
