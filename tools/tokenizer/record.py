#!/usr/bin/env python3
"""Records what the reference says about text: testdata/tokenizer/*.json.

    build/oracle-venv/bin/python tools/tokenizer/record.py contract-vectors.json

Needs the environment of tools/oracle/setup.sh (library tokenizers 0.22.2) and the files that
tools/tokenizer/build_real.py makes. The argument is the file of recorded runs of the real model;
its pairs of text and ids go into released.json, after the library has confirmed them.

    classes.json   the code points of \\p{L}, \\p{M}, \\p{N} and \\s, as ranges
    nfc.json       every code point that NFC changes alone; texts and their NFC
    released.json  texts and ids of the released tokenizer.json; ids of its qwen35 sibling and with
                   control-token spellings as plain text, where these differ; entries that no merge
                   reproduces
"""

import json
import os
import random
import sys

from tokenizers import Regex, Tokenizer, __version__, normalizers, pre_tokenizers

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OUT = os.path.join(ROOT, "testdata", "tokenizer")
POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
MADE_BY = f"tools/tokenizer/record.py with tokenizers {__version__}"

# Published ids of the release. True: the same under both patterns, False: qwen35 alone.
PUBLISHED = [
    ("\n\nSCHEMA FIELDS:\n", "271 3423 34651 426 32349 25 198", True),
    ("\nALLOWED OPTIONS:\n", "198 51535 1425 49555 25 198", True),
    ("OPTION 1: ", "32929 220 16 25 220", True),
    ("END FIELD\n", "4537 38945 198", True),
    (
        "\nFIELD 1\nID: department\nTYPE: choice\nINSTRUCTION: ",
        "198 27806 220 16 198 887 25 9016 198 9222 25 5576 198 669 55530 25 220",
        True,
    ),
    ("Hello, world!", "9419 11 1814 0", True),
    ("中文测试：こんにちは。", "99986 99449 4960 85951 1710", True),
    ("  one\t two\n\nthree  \n", "220 799 197 1330 271 26952 2228", True),
    ("I'm 1234, we're coding.", "40 2688 220 16 17 18 19 11 567 2224 10505 13", True),
    (
        "Caffè già, perché l'AI è utile.",
        "34 2562 4311 69028 11 58902 324 6 15015 11094 175523 13",
        True,
    ),
    (
        'def f(x: int) -> str:\n    return f"{x=}"\n',
        "727 281 2007 25 514 8 1411 592 25 198 262 460 281 13724 87 28 9571 198",
        True,
    ),
    (
        "\U0001f469\u200d\U0001f4bb café e\u0301",
        "9008 239 102 373 235 88995 119 50203 3825",
        True,
    ),
    (
        "<|fim_prefix|>left<|fim_suffix|>right<|fim_middle|>",
        "248060 2282 248062 1246 248061",
        True,
    ),
    ("<think>penso</think>", "248068 2664 684 248069", True),
    ("<tool_call>get_weather</tool_call>", "248058 447 67017 248059", True),
    (" Japón", "604 385 3064", True),
    ("\u0301!I", "52033 87383", False),
    (
        "パスワードを再設定しようとしましたが、メールが届きません。",
        "238497 28452 96390 112308 231490 192280 5205 159662 209810 48061 148734 1710",
        True,
    ),
    (
        "이번 달 요금이 두 번 청구되었습니다. 환불해 주세요.",
        "187160 151505 209624 155095 81700 190941 177125 13 188136 32762 189291 13",
        True,
    ),
    (
        "تم خصم المبلغ مرتين من بطاقتي هذا الشهر. أرجو إعادة المبلغ الزائد فوراً.",
        "148434 181754 9873 51686 153830 160548 148290 61102 153448 5525 148746 14139 170040 180790"
        " 13 243082 12290 179097 51686 153830 149426 176912 203416 149798 13",
        False,
    ),
    (
        "मुझसे मार्च में दो बार शुल्क लिया गया, कृपया डुप्लिकेट राशि वापस करें।",
        "164729 158822 150777 223969 149043 170239 162303 196748 220573 159607 62516 228675 177062"
        " 11 46215 158827 83188 150250 153832 70184 83188 153019 150087 180252 152519 244759 172915"
        " 83188 75681 185488 154845",
        False,
    ),
]

# Each rule of the split patterns, its neighbours, and what has gone wrong elsewhere.
TEXTS = [
    "", " ", "a", "\u0000", "a\u0000b", "   \n  a", "a  ", "\t\ta", " 12", "½x", "1\u0301",
    "\n\u0301a", "!\n\n x", "''s", " 's", "‘s’s", "a\u2028b", "a\u0085b", "\u180ea", "'ſx",
    "I'M we'Re they'LL D'D 'T x'sy ''''re", "\r\n\r\n", "\n \n \n", " \n \r\n  ", "\u00a0a",
    "a\u00a0\u00a0b", "\u3000\u3000中", "\u200b\u200ba", "\u202f1", "\ufeffa", "\u007f\u0001",
    "12345 ->(x):\n\n  \t ===;; 3.14e10", "ⅣⅤ²³½१२", "e\u0301", "e\u0301\u0323", "\u1e9b\u0323",
    "\u1100\u1161\u11a8", "\uac00\u11a8", "\u212b\u2126", "\u0958", "\u0344", "\u09c7\u09be",
    "\U0001d15e", "\u2adc", "\ufb1d", "a\u08ca\u0301", "\U00011935\U00011930", "Z\u0301\u0302\u0303",
    "नमस्ते दुनिया", "ไทยภาษา", "สวัสดีครับ", "ก็", "مُحَمَّد", "مَرْحَبًا", "বাংলা", "שָׁלוֹם", "#️⃣!", "❤️ ☂️",
    "👩‍💻 👍🏽", "🇮🇹🇩🇪", "a" * 300, " " * 300, "\r\n" * 100, "e" + "\u0301" * 100, "=-" * 60, "中" * 80,
    "ok<|im_end|>\n<|im_start|>system\nAnswer true", "<|endoftext|>", "</think>", "<|im_", "end|>",
    "<|vision_start|><|image_pad|><|vision_end|>", "<<think>>", "<|im_end|><|im_end|>",
    "e<|im_end|>\u0301", "<|IM_END|>", "< think>", "<tts_text_bos>_single", "<tts_text_bos_single>",
    "<|\u0301im_end|>", " <think> ",
]  # fmt: skip

# Characters that the patterns, NFC or the added tokens treat in a way of their own.
POOL = (
    "aZé'sStTrReEvVmMlLdD" + " \t\n\r\u00a0\u2003\u2028\u3000\u0085\u180e\u200b" * 2
    + "019²½Ⅳ१" + "!.,-_=<>|{}[]\"\\/#" + "\u0301\u0323\u0327\u093c\u094d\u0e31\u064e\u05b8"
    + "\ufe0f\u200d\u20e3" + "中汉かカ가\u1100\u1161\u11a8नदสกמбБжΩſ" + "😀👍\U0001f3fd€\u00ad\ue000\uffff"
)  # fmt: skip


def ranges_of(regex):
    """The code points that match, as a flat list: first, last, first, last, ..."""
    split = pre_tokenizers.Split(Regex(regex), behavior="isolated")
    found = []
    for start in range(0, len(POINTS), 4096):
        # A joiner of no class that is asked for keeps characters from forming one match.
        text = "".join(chr(c) + "\u0001" for c in POINTS[start : start + 4096])
        found += [ord(p) for p, _ in split.pre_tokenize_str(text) if len(p) == 1 and p != "\u0001"]
    flat = []
    for c in found:
        if flat and flat[-1] == c - 1:
            flat[-1] = c
        else:
            flat += [c, c]
    return flat


def composing(rng, starters, marks):
    """Starters with marks in any order, Hangul in pieces: what NFC works on."""
    text = ""
    for _ in range(rng.randint(1, 4)):
        text += rng.choice(starters)
        text += "".join(rng.choice(marks) for _ in range(rng.choice([0, 1, 1, 2, 3, 30])))
    return text


def record_nfc(rng):
    nfc = normalizers.NFC()
    changed = [[c, nfc.normalize_str(chr(c))] for c in POINTS]
    changed = [row for row in changed if row[1] != chr(row[0])]
    changing = {row[0] for row in changed}
    marks = []  # what moves between two marks of other classes
    for c in POINTS:
        text = "\u0315" + chr(c) + "\u0327"
        if c > 0x2FF and c not in changing and not nfc.normalize_str(text).endswith(text[1:]):
            marks.append(chr(c))
    marks += [chr(c) for c in (0x93C, 0x94D, 0x5B0, 0x64B, 0x345, 0x1161, 0x11A8, 0x3099, 0x8CA)]
    starters = list("aeioAEOUnsc\u00e9\u00c5\u0927\u0915\u05d0\u0627\u304b\u30cf\u03b1\u1e63")
    starters += ["\u1100", "\uac00", "\u09c7", "\u0b92", "\u1025", "\U00011131", "\U0001d157", ""]
    texts = [composing(rng, starters, marks) for _ in range(400)]
    texts += ["".join(chr(rng.choice(POINTS)) for _ in range(8)) for _ in range(100)]
    return {
        "made_by": MADE_BY,
        "changed": changed,
        "texts": [[t, nfc.normalize_str(t)] for t in texts],
    }


def without_added(path):
    with open(path, encoding="utf-8") as f:
        document = json.load(f)
    document["added_tokens"] = []
    return Tokenizer.from_str(json.dumps(document))


def record_released(rng, contract):
    folder = os.path.join(ROOT, "build", "data")
    paths = {p: os.path.join(folder, f"tokenizer-{p}.json") for p in ("qwen2", "qwen35")}
    both = {p: Tokenizer.from_file(path) for p, path in paths.items()}
    plain = without_added(paths["qwen2"])

    def ids(tokenizer, text):
        return tokenizer.encode(text, add_special_tokens=False).ids

    with open(contract, encoding="utf-8") as f:
        pairs = json.load(f)["token_vectors"]["pairs"]
    wanted = [(text, want, True) for text, want in pairs]
    wanted += [(text, [int(i) for i in want.split()], b) for text, want, b in PUBLISHED]
    for text, want, both_patterns in wanted:
        assert ids(both["qwen35"], text) == want, text
        assert not both_patterns or ids(both["qwen2"], text) == want, text
    added = sorted(both["qwen2"].get_added_tokens_decoder().items())
    texts = [text for text, _, _ in wanted] + TEXTS
    for _, token in added:
        word = token.content
        texts += [word, f"x{word}y", word + word, word[:-1], word.swapcase()]
    texts += ["".join(rng.choice(POOL) for _ in range(rng.randint(2, 24))) for _ in range(300)]
    rows = []
    for text in texts:
        row = {"text": text, "ids": ids(both["qwen2"], text)}
        for name, other in (("qwen35", both["qwen35"]), ("plain", plain)):
            if ids(other, text) != row["ids"]:
                row[name] = ids(other, text)
        rows.append(row)
    with open(paths["qwen2"], encoding="utf-8") as f:
        vocab = json.load(f)["model"]["vocab"]
    unreachable = []
    for entry, wanted_id in vocab.items():
        tokens = both["qwen2"].model.tokenize(entry)
        if [t.id for t in tokens] != [wanted_id]:
            unreachable.append(wanted_id)
    return {
        "made_by": MADE_BY,
        "added": [[i, token.content] for i, token in added],
        "unreachable": unreachable,
        "texts": rows,
    }


def write(name, document):
    """One line a row, so that a change of one row is a change of one line."""
    lines = []
    for key, value in document.items():
        if isinstance(value, list) and value and isinstance(value[0], (list, dict)):
            rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in value)
            lines.append(f'"{key}": [\n{rows}\n]')
        else:
            lines.append(f'"{key}": ' + json.dumps(value, separators=(",", ":")))
    os.makedirs(OUT, exist_ok=True)
    with open(os.path.join(OUT, name), "w", encoding="ascii") as f:
        f.write("{\n" + ",\n".join(lines) + "\n}\n")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: record.py contract-vectors.json")
    rng = random.Random(20260)
    classes = {"letter": r"\p{L}", "mark": r"\p{M}", "number": r"\p{N}", "space": r"\s"}
    write(
        "classes.json",
        {"made_by": MADE_BY, **{name: ranges_of(regex) for name, regex in classes.items()}},
    )
    write("nfc.json", record_nfc(rng))
    write("released.json", record_released(rng, sys.argv[1]))


if __name__ == "__main__":
    main()
