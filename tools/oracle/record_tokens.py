#!/usr/bin/env python3
"""Records texts, words and ids of the tokenizers: testdata/golden/tokens-*.json.

tokens-toy-qwen2.json, tokens-toy-qwen35.json: the toys' two tokenizers. tokens-released.json: the released
vocabulary under both patterns, for runs that have the released file (released_tokenizer.py makes it).
The `tokenizers` library is the oracle. Random texts have a fixed seed.
"""
import argparse
import json
import os
import random
import sys
import tempfile

from tokenizers import Tokenizer

import cases
import make_toys
import released_tokenizer

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# Texts for each rule of the split patterns and of NFC, their neighbours, and hostile ones.
TEXTS = [
    "", " ", "a", "Hello, world!", "   \n  a", "a  ", "\t\ta", " 12", "½x", "1\u0301", "\n\u0301a", "!\n\n x", "''s",
    " 's", "‘s’s", "a\u2028b", "a\u0085b", "\u180ea", "a\u180eb c", "'ſx", "I'M we'Re they'LL D'D 'T", "x'sy", "''''re",
    "\r\n\r\n", "\n \n \n", " \n \r\n  ", "\u00a0a", "a\u00a0\u00a0b", "\u3000\u3000中", "\u200b\u200ba", "\u202f1",
    "a\u0000b", "\u0000", "\ufeffa", "\u007f\u0001", "12345 ->(x):\n\n  \t ===;; 3.14e10", "ⅣⅤ²³½१२", "１２３",
    "e\u0301", "e\u0301e\u0323", "é", "e\u0323\u0301", "Z\u0301\u0302\u0303", "\u0301!I", "\u1e9b\u0323", "가각", "\u1100\u1161\u11a8",
    "\u212b\u2126", "\u0958", "\u0344", "\u09c7\u09be", "\u1b06\u1b35", "\U0001d15e", "\u0f73", "\u2adc", "\ufb1d", "\u0c3c\u0c4d", "a\u1ac7\u0301",
    "\U00011935\U00011930", "a\u08ca\u0301", "नमस्ते दुनिया", "ไทยภาษา", "สวัสดีครับ", "ก็", "مُحَمَّد", "مَرْحَبًا", "বাংলা", "שָׁלוֹם",
    "#️⃣!", "❤️ ☂️", "👩‍💻 👍🏽", "🇮🇹🇩🇪", "中文测试：こんにちは。", "パスワードを再設定しようとしましたが、メールが届きません。",
    "이번 달 요금이 두 번 청구되었습니다. 환불해 주세요.", "Caffè già, perché l'AI è utile.",
    "تم خصم المبلغ مرتين من بطاقتي هذا الشهر. أرجو إعادة المبلغ الزائد فوراً.",
    "मुझसे मार्च में दो बार शुल्क लिया गया, कृपया डुप्लिकेट राशि वापस करें।", "  one\t two\n\nthree  \n", "I'm 1234, we're coding.",
    'def f(x: int) -> str:\n    return f"{x=}"\n', "a" * 300, " " * 70, "\r\n" * 40, "e" + "\u0301" * 40, "=-" * 60, "中" * 80,
    " they", "they", " Japón", "镜片还没", " insufficient evidence", "ありがとう", " customers'", "zzyzx", "人力资源和社会保障", " является",
    "<|im_start|>", "x<|im_end|>y", "<<think>>", "<|im_end|><|im_end|>", "<think>penso</think>", "<|fim_prefix|>left<|fim_suffix|>right<|fim_middle|>",
    "<tool_call>get_weather</tool_call>", "<|im_start", "<|IM_START|>", "<tts_text_bos_single>", "<tts_text_bos>_single", "<|im_end|>\u0301", "e<|im_end|>\u0301",
    " <|endoftext|> ", "<think", "< think>", "<|\u0301im_end|>", cases.prose(1, 16), json.loads(cases.UNICODE)["state"], json.loads(cases.CONTROL)["state"],
] + [c for c, _ in make_toys.ADDED] + [c[:-1] for c, _ in make_toys.ADDED]


def random_texts(n):
    """Letters, marks, digits, spaces, breaks, symbols and controls of many scripts in random order."""
    pool = ("aZé'sStTrReEvVmMlLdD" + " \t\n\r\u00a0\u2003\u2028\u3000\u0085\u180e\u200b" * 2 + "019²½Ⅳ१" + "!.,-_=<>|{}[]\"\\/#"
            + "\u0301\u0323\u0327\u093c\u094d\u0e31\u064e\u05b8\ufe0f\u200d\u20e3" + "中汉かカ가\u1100\u1161नदสกمבБжΩſ" + "😀👍\U0001f3fd€\u00ad\ue000\uffff")
    rng = random.Random(2026)
    texts = ["".join(rng.choice(pool) for _ in range(rng.randint(2, 24))) for _ in range(n)]
    for _ in range(n // 4):                  # any code points at all
        texts.append("".join(chr(c) for c in (rng.randrange(0x110000) for _ in range(6)) if not 0xD800 <= c < 0xE000))
        texts.append("".join(chr(rng.randrange(0x20, 0x3000)) for _ in range(8)))
    return texts


def words_of(tok, text):
    """The words BPE works in, after NFC; control spellings are ordinary text here."""
    bytes_of = {c: b for b, c in make_toys.byte_alphabet().items()}
    pieces = tok.pre_tokenizer.pre_tokenize_str(tok.normalizer.normalize_str(text))
    return [bytes(bytes_of[c] for c in p).decode("utf-8") for p, _ in pieces]


def without_added(path):
    doc = json.load(open(path, encoding="utf-8"))
    doc["added_tokens"] = []
    return Tokenizer.from_str(json.dumps(doc))


def write(name, out, head, rows):
    with open(os.path.join(out, name), "w", encoding="utf-8") as f:
        f.write("{\n" + "".join(f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)},\n" for k, v in head.items())
                + '"cases": [\n' + ",\n".join(json.dumps(r) for r in rows) + "\n]\n}\n")
    print(f"{name}: {len(rows)} texts")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--out", default=os.path.join(ROOT, "testdata", "golden"))
    args = ap.parse_args()
    texts = TEXTS + random_texts(240)
    for pattern, toy in (("qwen2", "toy-r1-tied"), ("qwen35", "toy-r2")):
        path = os.path.join(ROOT, "testdata", toy, "tokenizer.json")
        full, plain = Tokenizer.from_file(path), without_added(path)
        rows = []
        for text in texts:
            row = dict(text=text, words=words_of(full, text), ids=full.encode(text, add_special_tokens=False).ids)
            other = plain.encode(text, add_special_tokens=False).ids
            if other != row["ids"]:
                row["plain"] = other
            rows.append(row)
        write(f"tokens-toy-{pattern}.json", args.out, dict(tokenizer=f"{toy}/tokenizer.json", pattern=pattern), rows)
    toks = {}
    for pattern in ("qwen2", "qwen35"):
        text, orphans, late = released_tokenizer.rebuild(pattern)
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as f:
            f.write(text)
            f.flush()
            toks[pattern] = Tokenizer.from_file(f.name)
            if pattern == "qwen2":
                plain = without_added(f.name)
    rows = []
    for text in texts[:len(TEXTS) + 120]:
        row = dict(text=text, qwen2=toks["qwen2"].encode(text, add_special_tokens=False).ids,
                   qwen35=toks["qwen35"].encode(text, add_special_tokens=False).ids,
                   plain=plain.encode(text, add_special_tokens=False).ids)
        for other in ("qwen35", "plain"):    # plain: pattern qwen2, control spellings as text
            if row[other] == row["qwen2"]:
                del row[other]
        rows.append(row)
    ranks = released_tokenizer.load_ranks()
    write("tokens-released.json", args.out, dict(
        sha256=released_tokenizer.SHA256, unreachable=[ranks[t] for t in orphans], late_parts=[ranks[t] for t in late]), rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
