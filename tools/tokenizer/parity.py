#!/usr/bin/env python3
"""Compares our tokenizer with the library `tokenizers` on the released vocabulary.

    build/oracle-venv/bin/python tools/tokenizer/parity.py [--strings N] [--seed N]

Needs build/tools/tokenize (make tools), the files of tools/tokenizer/build_real.py and the
environment of tools/oracle/setup.sh. Under each of the two split patterns:

  points     every code point alone and between letters; those of the planes in use also behind an
             apostrophe, "'l", a space and white space, before a mark, between "!" and a line end
  strings    N random strings of mixed scripts, with added tokens; a fifth of them in plain mode
  long       runs of hundreds of letters, symbols or blanks, where the merge loop takes its heap

Every difference counts, the first ten are printed; the exit status is 1 when there is one.
"""

import argparse
import json
import os
import random
import struct
import subprocess
import sys

from tokenizers import Tokenizer, __version__

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.path.join(ROOT, "build", "tools", "tokenize")
DATA = os.path.join(ROOT, "build", "data")
BATCH = 50000
POINTS = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]

# Ranges to draw characters from; a string mixes a few of them.
SCRIPTS = [
    (0x20, 0x7F), (0x61, 0x7B), (0x30, 0x3A), (0x20, 0x30), (0xA0, 0x100), (0x100, 0x250),
    (0x250, 0x300), (0x300, 0x370), (0x370, 0x530), (0x531, 0x600), (0x600, 0x780), (0x780, 0x900),
    (0x900, 0xE00), (0xE00, 0x1100), (0x1100, 0x1200), (0x1200, 0x1E00), (0x1E00, 0x2000),
    (0x2000, 0x2070), (0x2070, 0x2C00), (0x2C00, 0x3000), (0x3000, 0x3130), (0x3130, 0x3400),
    (0x3400, 0xA000), (0xA000, 0xAC00), (0xAC00, 0xD7A4), (0xF900, 0xFB00), (0xFB00, 0xFE00),
    (0xFE00, 0x10000), (0x10000, 0x11000), (0x11000, 0x12000), (0x12000, 0x17000),
    (0x1D000, 0x1E000), (0x1E000, 0x1F000), (0x1F000, 0x1FB00), (0x20000, 0x2FA20),
    (0xE0000, 0xE01F0), (0, 0x110000),
]  # fmt: skip
SPICE = list(" \t\n\r'’-.,<>|/{}\"") + [
    "  ", "\r\n", " \n ", "'s", "'S", "'re", "'LL", "'ſ", "\u00a0", "\u2028", "\u3000", "\u0085",
    "\u180e", "\u200b", "\ufeff", "\0", "e\u0301", "\u0301", "\u0323", "\u093f", "\ufe0f", "\u200d",
    "\u1100\u1161\u11a8", "<|im_end|>", "<think>", "</think>", "<|image_pad|>", "<tts_text_bos>",
    "<|im_", "end|>", " the", " and", "ing", "12345", " Japón", "人力资源", "नमस्ते", "한국어", "ไทย",
]  # fmt: skip


def random_string(rng):
    scripts = rng.sample(SCRIPTS, rng.randint(1, 3))
    out = []
    for _ in range(rng.randint(1, 24)):
        kind = rng.random()
        if kind < 0.3:
            out.append(rng.choice(SPICE))
        elif kind < 0.4:
            out.append(rng.choice(SPICE) * rng.randint(1, 6))
        else:
            low, high = rng.choice(scripts)
            point = rng.randrange(low, high)
            if not 0xD800 <= point < 0xE000:
                out.append(chr(point) * (1 if kind < 0.97 else rng.randint(2, 5)))
    return "".join(out)


def long_string(rng):
    low, high = rng.choice(SCRIPTS[:-1])
    few = [chr(rng.randrange(low, high)) for _ in range(rng.randint(1, 40))]
    words = ["the", "and", "er", "ness", "  ", "\n\n", "==", "/*", "数据", "ция"]
    pool = rng.choice([few, few + words, words])
    text = "".join(rng.choice(pool) for _ in range(rng.randint(50, 600)))
    return "".join(c for c in text if not 0xD800 <= ord(c) < 0xE000)


def point_texts():
    for form in ("{}", "a{}b"):
        yield from (form.format(c) for c in POINTS)
    for form in ("'{}", "'l{}", " {}", "{}\u0301", " \n {}", "!{}\n"):
        yield from (form.format(c) for c in POINTS if ord(c) < 0x33480 or 0xE0000 <= ord(c) < 0xE0200)


def ours(path, control, texts):
    sent = bytearray()
    for text in texts:
        data = text.encode()
        sent += struct.pack("<I", len(data)) + data
    done = subprocess.run(
        [TOOL, path, "file", control], input=bytes(sent), capture_output=True, check=True
    )
    words = memoryview(done.stdout).cast("i")
    ids, at = [], 0
    while at < len(words):
        ids.append(words[at + 1 : at + 1 + words[at]].tolist())
        at += 1 + words[at]
    return ids


class Comparison:
    def __init__(self, pattern):
        self.pattern = pattern
        self.path = os.path.join(DATA, f"tokenizer-{pattern}.json")
        with open(self.path, encoding="utf-8") as f:
            document = json.load(f)
        document["added_tokens"] = []
        self.theirs = {
            "reference": Tokenizer.from_file(self.path),
            "plain": Tokenizer.from_str(json.dumps(document)),
        }
        self.differences = 0

    def compare(self, what, control, texts):
        n = 0
        batch = []

        def flush():
            found = ours(self.path, control, batch)
            assert len(found) == len(batch)
            wanted = self.theirs[control].encode_batch_fast(batch, add_special_tokens=False)
            for text, mine, their in zip(batch, found, wanted):
                if mine == their.ids:
                    continue
                self.differences += 1
                if self.differences <= 10:
                    print(f"{self.pattern}, {control}: {ascii(text)}: {mine}, wanted {their.ids}")
            batch.clear()

        for text in texts:
            batch.append(text)
            n += 1
            if len(batch) == BATCH:
                flush()
        flush()
        print(f"{self.pattern}: {what}, {control}: {n} texts, {self.differences} differences so far")
        sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--strings", type=int, default=500000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    print(f"tokenizers {__version__}, seed {args.seed}")
    failed = False
    for pattern in ("qwen2", "qwen35"):
        rng = random.Random(args.seed)
        c = Comparison(pattern)
        c.compare("points", "reference", point_texts())
        c.compare("strings", "reference", (random_string(rng) for _ in range(args.strings)))
        c.compare("strings", "plain", (random_string(rng) for _ in range(args.strings // 5)))
        c.compare("long", "reference", (long_string(rng) for _ in range(args.strings // 50)))
        failed = failed or c.differences > 0
    sys.exit(failed)


if __name__ == "__main__":
    main()
