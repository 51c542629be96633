#!/usr/bin/env python3
"""Writes the pictures of this folder, and what Pillow reads and resizes them to (pillow, numpy, safetensors)."""
import pathlib

import numpy
from PIL import Image
from safetensors.numpy import save_file

folder = pathlib.Path(__file__).parent
random = numpy.random.default_rng(7)
y, x = numpy.mgrid[0:17, 0:23]
smooth = numpy.stack([x * 11, y * 14, (x + y) * 6], axis=-1) + random.integers(0, 14, (17, 23, 3))
picture = Image.fromarray(smooth.clip(0, 255).astype(numpy.uint8))
alpha = picture.copy()
alpha.putalpha(Image.fromarray(random.integers(0, 256, (17, 23)).astype(numpy.uint8)))

picture.save(folder / "rgb.png")
alpha.save(folder / "alpha.png")
picture.convert("L").save(folder / "grey.png")
picture.convert("L").convert("1").save(folder / "bits.png")
picture.quantize(12).save(folder / "palette.png")
picture.save(folder / "colours.ppm")
picture.convert("L").save(folder / "grey.pgm")
picture.save(folder / "halved.jpg", quality=80)
picture.save(folder / "progressive.jpg", quality=90, progressive=True, subsampling=0)
picture.convert("L").save(folder / "grey.jpg")
picture.convert("CMYK").save(folder / "inks.jpg")

golden = {}
for path in sorted(folder.glob("*.*")):
    if path.suffix in (".png", ".jpg", ".ppm", ".pgm") and path.stem != "inks":
        golden[path.name] = numpy.asarray(Image.open(path).convert("RGB"))
for filter in (0, 1, 2, 3):
    for width, height in ((7, 5), (40, 31), (23, 4), (50, 17), (1, 1), (5, 60)):
        golden[f"resized {filter} {height} {width}"] = numpy.asarray(picture.resize((width, height), filter))
golden["grey of rgb"] = numpy.asarray(picture.convert("L"))
save_file({name: numpy.ascontiguousarray(array) for name, array in golden.items()}, folder / "golden.safetensors")
