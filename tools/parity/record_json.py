#!/usr/bin/env python3
"""Records what CPython 3.11 makes of numbers and JSON texts, into testdata/json/.

    record_json.py [--contract contract-vectors.json]

The same interpreter gives the same bytes. Rows are lines, fields are separated by tabs. In
documents.tsv and errors.tsv a field's backslashes and all bytes outside 0x20 .. 0x7E are written
\\xNN.

    doubles.tsv     bits of the double, repr
    readings.tsv    spelling, bits of float(spelling)
    roundings.tsv   bits of x, digits n, bits of round(x, n)
    documents.tsv   JSON text, dumps in the prompt style, dumps in the answer style
    errors.tsv      text that json.loads refuses, byte offset of the error, CPython's words

--contract copies the render and round vectors (computed, not taken from other people's records)
from the file of recorded runs to testdata/contract/render.json.
"""
import argparse
import json
import math
import pathlib
import random
import struct
import sys
from fractions import Fraction

import json_parity

TESTDATA = pathlib.Path(__file__).resolve().parents[2] / "testdata"


def bits(x):
    return struct.pack(">d", x).hex()


def write_rows(name, rows):
    path = TESTDATA / "json" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="ascii")
    print(f"{path.name}: {len(rows)} rows")


def escape(text):
    return "".join(chr(b) if 0x20 <= b < 0x7F and b != 0x5C else f"\\x{b:02x}" for b in text.encode())


def doubles():
    rng = random.Random("record doubles")
    values = [2.0**e for e in range(-1074, 1024)]
    values += [float(f"1e{e}") for e in range(-323, 309)]
    values += [json_parity.neighbour(2.0**e, s) for e in range(-1073, 1024, 7) for s in (-1, 1)]
    values += [struct.unpack("<d", struct.pack("<Q", b))[0] for b in (1, 2, 3, 9, 10, 11, 2**51, 2**52 - 1, 2**52)]
    values += [sys.float_info.max, 2.0**53 - 1, 2.0**53 + 2, 0.1, 0.3, 2 / 3, 100000.0, 1e15, 123456789012345680.0]
    values += [abs(json_parity.random_double(rng)) for _ in range(1500)]
    values += [0.0, -0.0, -1.5e-9, -2.0, math.inf, -math.inf, math.nan]
    return [(bits(x), json.dumps(x)) for x in values]


def readings():
    """Spellings on and beside the middle of two doubles, long ones, and the borders of the range."""
    rng = random.Random("record readings")
    texts = ["0.0", "0e5", "0e99999999999999999999", "-0.0", "0.0000e-5", "1e400", "-1e400", "1e-400", "-1e-400",
             "1e99999999999999999999", "1e-99999999999999999999", "9007199254740993.0", "9007199254740995.0",
             "1e309", "1.7976931348623157e308", "1.7976931348623158e308", "1.7976931348623159e308", "5e-324",
             "2e-324", "3e-324", "2.2250738585072011e-308", "2.2250738585072012e-308", "2.2250738585072014e-308",
             "0." + "0" * 400 + "1e400", "1" + "0" * 400 + "e-400", "0." + "3" * 900, "123456789" * 100 + "e-880",
             "1e23", "9.999999999999999e22", "8.5e22", "1.0E+5", "0.1e1", "1e0000000005", "1e-0000000005"]
    middles = [0.0, 5e-324, 2.0**-1022, json_parity.neighbour(2.0**-1022, -1), 1.0, 2.0**53, 0.1, 1e22,
               sys.float_info.max, json_parity.neighbour(1.0, -1), 2.0**-1073 * 3]
    middles += [abs(json_parity.random_double(rng)) for _ in range(40)]
    for x in middles:
        if not math.isfinite(x):
            continue
        after = json_parity.neighbour(x, 1)
        step = Fraction(2) ** 971 if math.isinf(after) else Fraction(after) - Fraction(x)
        digits, exponent = json_parity.exact_decimal(Fraction(x) + step / 2)
        texts += [f"{digits}e{exponent}", f"{digits}0001e{exponent - 4}", f"{digits * 1000 - 1}e{exponent - 3}"]
        text = str(digits)
        texts.append(f"{text[0]}.{text[1:] or '0'}{'0' * 800}1e{exponent + len(text) - 1}")
    return [(text, bits(float(text))) for text in texts]


def roundings():
    rng = random.Random("record roundings")
    cases = [(k / 2**m, n) for n in range(18) for m in range(1, 12) for k in (1, 3, 5, 2**m - 1)]
    cases += [(2.675, 2), (0.5, 0), (1.5, 0), (2.5, 0), (-0.5, 0), (-1e-9, 4), (1e308, 4), (5e-324, 17), (2.0**52 + 0.5, 0),
              (123456789.987654321, 17), (math.inf, 4), (-0.0, 4), (2.0**53, 4), (4503599627370495.5, 0), (9e15, 17)]
    cases += [json_parity.random_rounding(rng) for _ in range(2000)]
    return [(bits(x), str(n), bits(round(x, n) if math.isfinite(x) else x)) for x, n in cases]


def documents():
    rng = random.Random("record documents")
    texts = ['{"n":[1250,1250.0,1.10,1E5,1e15,1e16,0.0001,1e-5,5e-324,-0,-0.0]}',
             '{"id":123456789012345678901234567890,"k":9007199254740993}',
             '{"\uff5e":1,"\U0001f600":2}', '{"t":"<b> & \\u2028 \\u007f \\u0001 \\/"}', '"\\ud83d\\ude00"',
             json.dumps("".join(map(chr, range(128)))), '"' + "".join(map(chr, range(0x80, 0x100))) + '\u2028\ufeff"',
             '"\\uD83D\\uDE00\\u0041\\u00e9\\uffff\\b\\f\\n\\r\\t\\"\\\\\\/"', '{"\\u0061":1,"b":2,"a":3}',
             '{"a":{"x":1,"y":2},"b":0,"a":{"y":3}}', '{"":1,"\\u0000":2,"":3}', " \t\r\n[ ] ", "{}", "[[],{},[{}]]",
             '{"b":1,"a":2,"c":{"z":[{"q":1,"p":2}],"y":null}}', "[NaN,Infinity,-Infinity]", "-0", "0", '""',
             "[" * 200 + "]" * 200, '{"a":' * 200 + "1" + "}" * 200,
             "{" + ",".join(f'"k{i * 7919 % 100}":{i}' for i in range(300)) + "}", "9" * 4300,
             "{" + ",".join(f'"{c}{d}":0' for c in "zyxwvéÀ\uffee\U00010000a" for d in ("", "a", "ab", "\\u0000")) + "}"]
    texts += [json_parity.random_document(rng) for _ in range(120)]
    rows = []
    for text in texts:
        value = json.loads(text)
        rows.append((escape(text), escape(json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))),
                     escape(json.dumps(value, ensure_ascii=False))))
    return rows


def errors():
    rng = random.Random("record errors")
    texts = ["", " ", "\ufeff1", "{", "[", "]", "}", '"', '"a', '"\\', '"\\u', '"\\u12', '"\\u1234', '"\\u12g4"', '"\\x41"',
             '"a\tb"', '"a\nb"', '"\x00"', "\x00", "1\x00", "01", "-", "-a", "+1", ".5", "1.", "1.e5", "1e", "1e+", "1x", "--1",
             "[1,]", "[,1]", "[1 2]", "[1,,2]", "[1", "[1,", '{"a"}', '{"a":}', '{"a":1', '{"a":1,', '{"a":1,}', '{"a" 1}',
             "{,}", "{1:2}", "{'a':1}", "{a:1}", '{"a":1 "b":2}', '{"a":1]', "[1}", "tru", "True", "nul", "truex", "nan", "inf",
             "-Infinit", "-NaN", "1 2", "{}x", "[]]", "// c\n1", "1_000", "0x10", '{"a":1,"b"', '{"a":1,"b":', '"é\t"',
             '["\U0001f600",x]', "{:", '"\\ud83d\\u"', "[" * 50]
    while len(texts) < 400:
        text = json_parity.damage(rng, json_parity.random_document(rng))
        if len(text) < 200 and not json_parity.LONE.search(text):
            texts.append(text)
    rows = []
    for text in texts:
        try:
            json.loads(text)
        except json.JSONDecodeError as e:
            rows.append((escape(text), str(len(text[: e.pos].encode())), escape(e.msg)))
    return rows


def copy_contract(source):
    vectors = json.loads(pathlib.Path(source).read_text(encoding="utf-8"))
    picked = {key: vectors[key] for key in ("render_vectors", "round_vectors")}
    path = TESTDATA / "contract" / "render.json"
    path.write_text(json.dumps(picked, ensure_ascii=True, indent=1) + "\n", encoding="ascii")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--contract")
    options = parser.parse_args()
    if sys.version_info[:2] != (3, 11):
        raise SystemExit("CPython 3.11 is the reference: later ones place some errors elsewhere")
    write_rows("doubles.tsv", doubles())
    write_rows("readings.tsv", readings())
    write_rows("roundings.tsv", roundings())
    write_rows("documents.tsv", documents())
    write_rows("errors.tsv", errors())
    if options.contract:
        copy_contract(options.contract)


if __name__ == "__main__":
    main()
