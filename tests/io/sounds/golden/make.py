#!/usr/bin/env python3
"""Writes recordings and, by numpy's Fourier transform, their log-mel frames (numpy, safetensors)."""
import pathlib
import struct

import numpy
from safetensors.numpy import save_file

folder = pathlib.Path(__file__).parent
random = numpy.random.default_rng(11)


def riff(*chunks):
    body = b"WAVE" + b"".join(kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2) for kind, data in chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def form(coding, channels, rate, bits):
    each = channels * bits // 8
    return struct.pack("<HHIIHH", coding, channels, rate, rate * each, each, bits)


def log_mel(samples, rate, mels=40):
    window, hop = round(0.025 * rate), round(0.010 * rate)
    size = 1 << (window - 1).bit_length()
    samples = numpy.pad(samples, (0, max(0, window - len(samples))))
    frames = numpy.lib.stride_tricks.sliding_window_view(samples, window)[::hop]
    shape = 0.5 - 0.5 * numpy.cos(2 * numpy.pi * numpy.arange(window) / window)
    power = numpy.abs(numpy.fft.rfft(frames * shape, size)) ** 2
    top = 2595 * numpy.log10(1 + rate / 2 / 700)
    edges = 700 * (10 ** (numpy.linspace(0, top, mels + 2) / 2595) - 1)
    hertz = numpy.fft.rfftfreq(size, 1 / rate)[:, None]
    low, middle, high = edges[:-2], edges[1:-1], edges[2:]
    filters = numpy.minimum((hertz - low) / (middle - low), (high - hertz) / (high - middle)).clip(0)
    y = numpy.log(numpy.maximum(1e-10, power @ filters))
    return ((y - y.mean()) / (y.std() + 1e-5)).astype(numpy.float32)


golden = {}
for name, rate, count in (("low", 8000, 1100), ("high", 16000, 1500), ("short", 8000, 90)):
    time = numpy.arange(count) / rate
    wave = 0.5 * numpy.sin(2 * numpy.pi * 440 * time * (1 + time)) + 0.1 * random.standard_normal(count)
    whole = (wave.clip(-1, 1) * 32767).astype("<i2")
    (folder / f"{name}.wav").write_bytes(riff((b"fmt ", form(1, 1, rate, 16)), (b"data", whole.tobytes())))
    golden[f"{name}.mel"] = log_mel(whole / 32768, rate)

two = random.integers(-2**31, 2**31, (20, 2))
forms = {
    "pcm8": (1, 8, ((two >> 24) + 128).astype("u1").tobytes(), (two >> 24) / 2**7),
    "pcm16": (1, 16, (two >> 16).astype("<i2").tobytes(), (two >> 16) / 2**15),
    "pcm24": (1, 24, b"".join(struct.pack("<i", x)[1:] for x in two.ravel()), (two >> 8) / 2**23),
    "pcm32": (1, 32, two.astype("<i4").tobytes(), two / 2**31),
    "float32": (3, 32, (two / 2**31).astype("<f4").tobytes(), (two / 2**31).astype("f4").astype("f8")),
    "float64": (3, 64, (two / 2**31).astype("<f8").tobytes(), two / 2**31),
}
for name, (coding, bits, data, values) in forms.items():
    chunks = [(b"LIST", b"odd"), (b"fmt ", form(coding, 2, 22050, bits)), (b"data", data), (b"more", b"1234")]
    (folder / f"{name}.wav").write_bytes(riff(*chunks))
    golden[name] = values.mean(axis=1).astype(numpy.float32)
guid = struct.pack("<H", 1) + bytes.fromhex("000000001000800000aa00389b71")
extensible = form(0xFFFE, 2, 22050, 16) + struct.pack("<HHI", 22, 16, 3) + guid
(folder / "extensible.wav").write_bytes(riff((b"data", forms["pcm16"][2]), (b"fmt ", extensible)))
golden["extensible"] = golden["pcm16"]
save_file(golden, folder / "golden.safetensors")
