#!/usr/bin/env python3
"""Compares src/text (json, pyjson, decimal) with CPython on seeded random input.

    json_parity.py --echo build/tools/json_echo [--doubles N] [--roundings N] [--documents N]
                   [--seed N]

CPython is the oracle: json.loads, json.dumps, repr, float and round. Every difference is printed
(the first ten in full) and makes the exit status 1. What is compared:

  doubles      repr of a double, and reading: of its repr, of more digits than are needed, of the
               exact middle to its neighbour and of that middle moved in its last digit
  roundings    round(x, 4) of doubles near and on ties; a tenth with 0 to 17 digits
  documents    random JSON texts, two fifths of them damaged: both styles of the parsed value, or the
               byte offset of CPython's error. Texts that only we refuse must hold the lone
               surrogate that we name.
"""
import argparse
import json
import math
import random
import re
import struct
import subprocess
import sys
from fractions import Fraction

sys.set_int_max_str_digits(0)

BATCH = 20000


def ask(echo, questions):
    """Answers of the C program, [(status, payload)], to [(letter, payload)]."""
    sent = b"".join(q.encode() + struct.pack("<I", len(p)) + p for q, p in questions)
    got = subprocess.run([echo], input=sent, stdout=subprocess.PIPE, check=True).stdout
    answers, at = [], 0
    while at < len(got):
        status, n = struct.unpack_from("<BI", got, at)
        answers.append((status, got[at + 5 : at + 5 + n]))
        at += 5 + n
    if len(answers) != len(questions):
        raise SystemExit(f"{len(answers)} answers to {len(questions)} questions")
    return answers


class Tally:
    def __init__(self):
        self.differences = 0

    def differ(self, what, given, wanted, got):
        self.differences += 1
        if self.differences <= 10:
            print(f"{what}: {given!r}: CPython {wanted!r}, clef {got!r}")


def bits_of(x):
    return struct.pack("<d", x)


# ---- doubles ------------------------------------------------------------------------------------


def random_double(rng):
    kind = rng.randrange(8)
    sign = -1 if rng.random() < 0.3 else 1
    if kind == 0:  # any bits
        return struct.unpack("<d", rng.randbytes(8))[0]
    if kind == 1:  # looks like a person's number
        return sign * rng.randrange(10 ** rng.randint(1, 9)) / 10 ** rng.randint(0, 8)
    if kind == 2:  # few significant digits, any exponent
        return sign * float(f"{rng.randrange(1, 10 ** rng.randint(1, 17))}e{rng.randint(-340, 300)}")
    if kind == 3:  # short binary fractions: exact ties of the writer
        return sign * math.ldexp(rng.randrange(1, 1 << rng.randint(1, 30)), -rng.randint(0, 60))
    if kind == 4:  # around a power of two or of ten
        base = 2.0 ** rng.randint(-1074, 1023) if rng.random() < 0.5 else float(f"1e{rng.randint(-323, 308)}")
        return sign * neighbour(base, rng.randint(-3, 3))
    if kind == 5:  # subnormal
        return sign * struct.unpack("<d", struct.pack("<Q", rng.getrandbits(rng.randint(1, 52))))[0]
    if kind == 6:  # large integers
        return sign * float(rng.getrandbits(rng.randint(40, 120)))
    return sign * rng.random()


def neighbour(x, steps):
    bits = struct.unpack("<q", bits_of(x))[0] + steps
    return struct.unpack("<d", struct.pack("<q", max(bits, 0)))[0]


def exact_decimal(f):
    """A Fraction with a power of two below, as DIGITSeEXPONENT."""
    twos = f.denominator.bit_length() - 1
    return f.numerator * 5**twos, -twos


def spellings(rng, x):
    """Spellings around x >= 0, finite: its repr, longer ones, the middle to the next double."""
    yield repr(x)
    digits, exponent = exact_decimal(Fraction(x))
    yield f"{x:.{rng.randint(1, 40)}e}"
    if rng.random() < 0.25:
        after = neighbour(x, 1)
        step = Fraction(x) - Fraction(neighbour(x, -1)) if math.isinf(after) else Fraction(after) - Fraction(x)
        digits, exponent = exact_decimal(Fraction(x) + step / 2)
        yield f"{digits}e{exponent}"
        shift = rng.randint(1, 900)
        yield f"{digits}{'0' * shift}{rng.choice('01')}e{exponent - shift - 1}"
        yield f"{digits * 10 ** shift - 1}e{exponent - shift}"
        text = str(digits)
        point = rng.randint(1, len(text))
        yield f"{text[:point]}.{text[point:] or '0'}E+{exponent + len(text) - point}".replace("+-", "-")


def check_doubles(echo, rng, n, tally):
    while n > 0:
        batch = [random_double(rng) for _ in range(min(n, BATCH))]
        questions = [("s", bits_of(x)) for x in batch]
        wanted = [json.dumps(x).encode() for x in batch]
        for x in batch:
            if math.isfinite(x):
                for text in spellings(rng, abs(x)):
                    questions.append(("d", text.encode()))
                    wanted.append(bits_of(float(text)))
        for (letter, payload), want, (_, got) in zip(questions, wanted, ask(echo, questions)):
            if want != got:
                tally.differ("spelling" if letter == "s" else "reading", payload, want, got)
        n -= len(batch)


# ---- rounding -----------------------------------------------------------------------------------


def random_rounding(rng):
    digits = 4 if rng.random() < 0.9 else rng.randint(0, 17)
    kind = rng.randrange(6)
    if kind == 0:
        x = rng.random()
    elif kind == 1:  # a probability: float32, widened
        x = struct.unpack("<f", struct.pack("<f", rng.random()))[0]
    elif kind == 2:  # next to a decimal tie
        x = neighbour((rng.randrange(10**5) * 10 + 5) / 10 ** (digits + 1), rng.randint(-2, 2))
    elif kind == 3:  # exact ties
        x = rng.randrange(1 << 20) / (1 << rng.randint(1, 20))
    elif kind == 4:
        x = rng.uniform(-1e6, 1e6)
    else:
        x = random_double(rng)
    return (-x if rng.random() < 0.2 else x), digits


def check_roundings(echo, rng, n, tally):
    while n > 0:
        batch = [random_rounding(rng) for _ in range(min(n, BATCH))]
        questions = [("r", bytes([digits]) + bits_of(x)) for x, digits in batch]
        for (x, digits), (_, got) in zip(batch, ask(echo, questions)):
            want = x if not math.isfinite(x) else round(x, digits)
            if bits_of(want) != got:
                tally.differ("rounding", (x, digits), want, struct.unpack("<d", got)[0])
        n -= len(batch)


# ---- documents ----------------------------------------------------------------------------------

CHARACTERS = ['"', "\\", "/", "\b", "\f", "\n", "\r", "\t", "\0", "\x01", "\x1f", "\x7f", "\x80", "é",
              "\u2028", "\ufeff", "\uff5e", "\ue000", "\U0001f600", "\U0010ffff", "a", "z", " ", "{", "}"]
ESCAPES = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def random_text(rng, n):
    return "".join(rng.choice(CHARACTERS) if rng.random() < 0.5 else chr(rng.randrange(32, 127)) for _ in range(n))


def spell_string(rng, text):
    out = []
    for c in text:
        must = c in '"\\' or c < " "
        how = rng.random()
        if c in ESCAPES and (how < 0.6 or (must and how < 0.8)):
            out.append(ESCAPES[c])
        elif must or how < 0.2:
            units = c.encode("utf-16-be")
            for i in range(0, len(units), 2):
                code = f"{units[i] << 8 | units[i + 1]:04x}"
                out.append("\\u" + (code.upper() if rng.random() < 0.5 else code))
        else:
            out.append(c)
    return '"' + "".join(out) + '"'


def spell_number(rng):
    kind = rng.randrange(6)
    sign = rng.choice(["", "", "-"])
    if kind == 0:
        return sign + str(rng.randrange(10 ** rng.randint(1, 40)))
    if kind == 1:
        return sign + "0"
    if kind == 2:
        return sign + f"{rng.randrange(1000)}.{rng.randrange(10 ** rng.randint(1, 20))}"
    if kind == 3:
        return sign + f"{rng.randrange(100)}{rng.choice(['', '.5', '.000'])}{rng.choice('eE')}{rng.choice(['', '+', '-'])}{rng.randrange(400)}"
    if kind == 4:
        return rng.choice(["NaN", "Infinity", "-Infinity"])
    return json.dumps(random_double(rng))


def random_document(rng):
    """A JSON text; built with a stack, so depth costs nothing."""
    size = rng.choice([1, 3, 10, 30, 100])
    deep = rng.random() < 0.1
    blank = lambda: rng.choice(["", "", "", " ", "\n", "\t", "\r\n", "  "])
    names = [random_text(rng, rng.randint(0, 4)) for _ in range(rng.randint(1, 40))]
    out = [blank()]
    stack = []
    while True:
        if stack and stack[-1] == "{":
            out += [spell_string(rng, rng.choice(names)), blank(), ":", blank()]
        opens = size > 0 and len(stack) < 200 and rng.random() < (0.8 if deep else 0.4)
        size -= 1
        if opens:
            bracket = rng.choice("[{")
            out += [bracket, blank()]
            if rng.random() < 0.9:
                stack.append(bracket)
                continue
            out.append("]" if bracket == "[" else "}")
        else:
            out.append(rng.choice([spell_number, lambda r: spell_string(r, random_text(r, r.randint(0, 12))),
                                   lambda r: r.choice(["true", "false", "null"])])(rng))
        while True:
            out.append(blank())
            if not stack:
                return "".join(out)
            if size > 0 and rng.random() < 0.8:
                out += [",", blank()]
                break
            out.append("]" if stack.pop() == "[" else "}")


def damage(rng, text):
    at = rng.randrange(len(text) + 1)
    kind = rng.randrange(5)
    if kind == 0:
        return text[:at]
    if kind == 1:
        return text[:at] + text[at + 1 :]
    piece = rng.choice(['"', "\\", ",", ":", "]", "}", "[", "{", "0", ".", "e", "-", "+", "x", "\x01", "\0", "\\u",
                        "\\ud800", "\\udc00", "\\u12", "\\ud83d\\ude00", "\\x", "'", "\ufeff", "tru", "//", "é"])
    if kind == 2:
        return text[:at] + piece + text[at + 1 :]
    return text[:at] + piece + text[at:]


LONE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][c-fC-F][0-9a-fA-F]{2}")


def lone_surrogate_at(text, offset):
    return LONE.match(text.encode()[offset:].decode()) is not None


def check_documents(echo, rng, n, tally):
    refused = lone = 0
    while n > 0:
        batch = []
        for _ in range(min(n, BATCH)):
            text = random_document(rng)
            while rng.random() < 0.4:
                text = damage(rng, text)
            batch.append(text)
        questions = [(letter, text.encode()) for text in batch for letter in "pa"]
        answers = ask(echo, questions)
        for i, text in enumerate(batch):
            (status, prompt), (_, answer) = answers[2 * i], answers[2 * i + 1]
            error = prompt.decode() if status else ""
            if "lone surrogate" in error:
                lone += 1
                if not lone_surrogate_at(text, int(error.split()[2].rstrip(":"))):
                    tally.differ("document", text, "no lone surrogate there", error)
                continue
            try:
                value = json.loads(text)
            except json.JSONDecodeError as e:
                refused += 1
                want = f"text: byte {len(text[: e.pos].encode())}:"
                if not error.startswith(want):
                    tally.differ("document", text, f"{want} {e.msg}", error or prompt)
                continue
            want = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
            if status or prompt.decode() != want:
                tally.differ("document", text, want, error or prompt)
            want = json.dumps(value, ensure_ascii=False)
            if status or answer.decode() != want:
                tally.differ("document", text, want, error or answer)
        n -= len(batch)
    print(f"  of the documents {refused} were refused by both, {lone} by us for a lone surrogate")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--echo", required=True)
    parser.add_argument("--doubles", type=int, default=1000000)
    parser.add_argument("--roundings", type=int, default=1000000)
    parser.add_argument("--documents", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    failed = False
    for name, check in [("doubles", check_doubles), ("roundings", check_roundings), ("documents", check_documents)]:
        n, tally = getattr(options, name), Tally()
        check(options.echo, random.Random(f"{options.seed} {name}"), n, tally)
        print(f"{name}: {n} compared, {tally.differences} differences")
        failed = failed or tally.differences > 0 or n < 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
