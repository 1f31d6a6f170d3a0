#!/usr/bin/env python3
"""Records what the int8 scheme of src/checkpoint/int8.c has to give, in testdata/int8.tsv.

Usage: tools/int8/record.py > testdata/int8.tsv

Written from the scheme's definition with exact fractions; only the roundings to F32 and F16 are
CPython's (struct), and round() is its own half-to-even. Nothing of the C code enters. Columns: a
name, 32 F32 weights (hex of their bits), the F16 scale (hex), 32 codes."""
import random
import struct
from fractions import Fraction

BLOCK = 32


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def f16(x):
    return struct.unpack("<e", struct.pack("<e", x))[0]


def bits(fmt, x):
    return struct.pack(">" + fmt, x).hex()


def bf16(x):
    return struct.unpack(">f", struct.pack(">f", x)[:2] + b"\0\0")[0]


def to_f32(x):
    """A fraction, rounded once to F32: a double quotient would round twice."""
    near = f32(float(x))
    step = abs(f32(near * (1 + 2**-23)) - near) or 2.0**-149
    best = min((near - step, near, near + step), key=lambda c: abs(Fraction(c) - x))
    return f32(best)


def quantise(weights):
    x = [f16(w) for w in weights]
    most = max(abs(v) for v in x)
    scale = f16(max(to_f32(Fraction(most) / 127), 2.0**-23))
    codes = []
    for v in x:
        code = round(Fraction(to_f32(Fraction(v) / Fraction(scale))))
        codes.append(max(-127, min(127, code)))
    return scale, codes


def blocks():
    r = random.Random(7)
    yield "zeros", [0.0] * BLOCK
    yield "minus zeros", [-0.0] * BLOCK
    # The scale is 1/8: codes are eights, and odd sixteenths lie half way between two.
    yield "halves", [15.875, -15.875] + [(i - 15) / 16 for i in range(30)]
    yield "halves of a large block", [127 * 256.0] + [(2 * i - 31) * 128.0 for i in range(31)]
    yield "all at the ends", [(-1) ** i * 3.0 for i in range(BLOCK)]
    yield "one value", [0.0] * 9 + [-0.75] + [0.0] * 22
    yield "the largest of F16", [65504.0, -65504.0] + [r.uniform(-65504, 65504) for _ in range(30)]
    yield "a = 2^-20", [2.0**-20] + [r.uniform(-1, 1) * 2.0**-20 for _ in range(31)]
    for e in range(-26, -8):  # through the scales that are subnormal, and clipped ones among them
        yield f"subnormal {e}", [r.uniform(-1, 1) * 2.0**e for _ in range(BLOCK)]
    for i in range(60):
        yield f"gauss {i}", [bf16(r.gauss(0, 0.02 * 2 ** (i % 7))) for _ in range(BLOCK)]
    for i in range(40):
        yield f"tails {i}", [bf16(r.gauss(0, 0.02) / max(0.05, r.random())) for _ in range(BLOCK)]
    for i in range(40):
        yield f"f32 {i}", [f32(r.gauss(0, 1.0)) for _ in range(BLOCK)]


print("# tools/int8/record.py")
for name, weights in blocks():
    weights = [f32(w) for w in weights]
    scale, codes = quantise(weights)
    print(name, " ".join(bits("f", w) for w in weights), bits("e", scale),
          " ".join(map(str, codes)), sep="\t")
