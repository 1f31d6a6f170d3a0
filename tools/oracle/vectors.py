#!/usr/bin/env python3
"""Checks the encoder and the answer of reference.py against recorded runs of the real model.

    vectors.py contract-vectors.json [--tokenizer tokenizer.json]

All records: ids and spans reproduced, softmax(logits) = probs, the answer follows from the probabilities
byte for byte. Also the token, render and rounding pairs of the file.

Without --tokenizer it runs twice: with the released tokenizer.json (pattern qwen2) as released_tokenizer.py
rebuilds it, and with its qwen35 sibling.
"""
import argparse
import json
import os
import sys
import tempfile

import numpy as np

import released_tokenizer
from reference import Encoder, answer, render


def rebuilt(pattern):
    handle, path = tempfile.mkstemp(suffix=".json")
    with os.fdopen(handle, "w", encoding="utf-8") as f:
        f.write(released_tokenizer.rebuild(pattern)[0])
    return path


def check(vectors, tokenizer=None):
    doc = json.load(open(vectors, encoding="utf-8"))
    failed = 0
    for pattern in ["given"] if tokenizer else ["qwen2", "qwen35"]:
        path = tokenizer or rebuilt(pattern)
        encoder = Encoder(path)
        ok = dict(ids=0, spans=0, options=0, probs=0, answer=0)
        for r in doc["records"]:
            media = encoder.own("<|vision_start|>" + "<|image_pad|>" * r["n_image_tokens"] + "<|vision_end|>\n"
                                ) if r["n_image_tokens"] else ()
            got = encoder.encode(r["request"], media_ids=media)
            want = r["questions"]
            probs = [q["probs"] for q in want]
            ok["ids"] += got["ids"] == r["ids"]
            ok["spans"] += all(g["span"] == q["question_span"] and [o["span"] for o in g["options"]] == q["option_spans"]
                               for g, q in zip(got["questions"], want))
            ok["options"] += all([o["id"] for o in g["options"]] == q["option_ids"] for g, q in zip(got["questions"], want))
            ok["answer"] += (answer(r["request"], got["questions"], probs, len(r["ids"]))
                             == json.dumps(r["response"], ensure_ascii=False))
            logits = [np.array(q["logits"], dtype=np.float32) for q in want]
            soft = [np.exp(x - x.max()) / np.exp(x - x.max()).sum() for x in logits]
            ok["probs"] += all(np.abs(s - p).max() < 1e-6 for s, p in zip(soft, probs))
        n = len(doc["records"])
        print(f"{pattern}: of {n} records " + ", ".join(f"{k} {v}" for k, v in ok.items()))
        failed += sum(n - v for v in ok.values())
        pairs = doc["token_vectors"]["pairs"]
        good = sum(encoder.own(t) == ids for t, ids in pairs)
        print(f"{pattern}: token pairs {good} of {len(pairs)}")
        failed += len(pairs) - good
        japon = encoder.own(" Japón")
        print(f"{pattern}: ' Japón' -> {japon}")
        failed += japon != [604, 385, 3064]
        if not tokenizer:
            os.unlink(path)
    pairs = doc["render_vectors"]["pairs"]
    good = sum(render(json.loads(a)) == b for a, b in pairs)
    print(f"render pairs {good} of {len(pairs)}")
    failed += len(pairs) - good
    pairs = doc["round_vectors"]["pairs"]
    good = sum(repr(round(float(a), 4)) == b for a, b in pairs)
    print(f"round pairs {good} of {len(pairs)}")
    failed += len(pairs) - good
    return 1 if failed else 0


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("vectors")
    ap.add_argument("--tokenizer", metavar="FILE")
    args = ap.parse_args()
    return check(args.vectors, args.tokenizer)


if __name__ == "__main__":
    sys.exit(main())
