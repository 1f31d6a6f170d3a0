#!/usr/bin/env python3
"""Records the goldens testdata/golden/ from the reference; the format is in testdata/README.md.

Every record runs alone: no batch, no padding, no cache. Torch runs on one thread, so the bytes are the
same on every run on one machine; another CPU may differ in the last bits of the floats (ids, spans
and texts never).
"""
import argparse
import json
import os
import sys

import numpy as np

import cases
import reference
from reference import Encoder, Model

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FULL_ROWS = 115                    # up to this many tokens every row is kept
BORDERS = [0, 1, 2, 3, 4, 62, 63, 64, 65, 126, 127, 128, 129, 255, 256, 257, 511, 512, 513, 1023, 1024, 1025,
           2047, 2048, 2049]


def rows_of(record):
    n = len(record["ids"])
    if n <= FULL_ROWS:
        return np.arange(n, dtype=np.int32)
    span = record["questions"][0]["span"]
    keep = {r for r in BORDERS if r < n} | {n - 1, span[0], max(span[1] - 1, 0)}
    return np.array(sorted(keep), dtype=np.int32)


def margin(p):
    top = sorted(p, reverse=True)
    return top[0] - top[1] if len(top) > 1 else 1.0


def floats(t):
    return [float(x) for x in t]


def write_json(path, value):
    with open(path, "w", encoding="utf-8") as f:
        f.write("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}"
                                   for k, v in value.items()) + "\n}\n")


def record_case(model, toy, name, out):
    from safetensors.numpy import save_file
    encoder = Encoder(os.path.join(model.folder, "tokenizer.json"))
    text, options = cases.build(name, lambda t: len(encoder.encode(json.loads(t))["ids"]))
    base = os.path.join(out, f"{toy}.{name}")
    head = dict(toy=toy, case=name, policy=options.get("policy", "reference"),
                max_length=options.get("max_length", 16384),
                max_state_tokens=options.get("max_state_tokens"), request=text)
    arms = cases.arms_of(toy, name, model.net.config.tie_word_embeddings)
    try:
        r = model.run(json.loads(text), arms=arms, **options)
    except ValueError as e:
        write_json(base + ".json", dict(head, error=str(e)))
        return f"{toy}.{name}: {e}"
    rows = rows_of(r)
    doc = dict(head, ids=r["ids"], tokens=r["tokens"], state_total=r["state_total"],
               questions=r["questions"], logits=floats(r["logits"]),
               probs=[p for q in r["probs"] for p in q], margins=[margin(p) for p in r["probs"]],
               answer=r["answer"])
    if arms:
        doc["arms"] = {a: floats(v) for a, v in r["arms"].items()}
    write_json(base + ".json", doc)
    tensors = {f"hidden.{i}": x.numpy()[rows] for i, x in enumerate(r["stream"])}
    tensors["hidden.final"] = r["final"].numpy()[rows]
    tensors["memory"] = r["memory"].numpy()[rows]
    tensors.update(R=r["R"].numpy(), F=r["F"].numpy(), rows=rows)
    save_file({k: np.ascontiguousarray(v) for k, v in tensors.items()}, base + ".safetensors")
    os.chmod(base + ".safetensors", 0o644)
    return f"{toy}.{name}: {len(r['ids'])} tokens, margins {' '.join('%.3f' % m for m in doc['margins'][:8])}"


def record_rope(out):
    """inv_freq in fp32 as torch computes it, as bit patterns; transformers uses the same expression."""
    torch = reference.torch
    entries = []
    shapes = {(1e7, 64)}
    for toy in toys():
        text = json.load(open(os.path.join(ROOT, "testdata", toy, "config.json")))["text_config"]
        rope = text["rope_parameters"]
        shapes.add((rope["rope_theta"], int(text["head_dim"] * rope["partial_rotary_factor"])))
    for theta, dims in sorted(shapes):
        f = 1.0 / (theta ** (torch.arange(0, dims, 2, dtype=torch.int64).to(dtype=torch.float) / dims))
        entries.append(dict(theta=int(theta), dims=dims, inv_freq=floats(f),
                            bits=[f"{b & 0xffffffff:08x}" for b in f.view(torch.int32).tolist()]))
    write_json(os.path.join(out, "rope.json"), dict(torch=torch.__version__.split("+")[0], entries=entries))


def toys():
    data = os.path.join(ROOT, "testdata")
    return sorted(d for d in os.listdir(data) if d.startswith("toy-"))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--out", default=os.path.join(ROOT, "testdata", "golden"))
    ap.add_argument("--toy", action="append", help="only this toy (repeatable)")
    ap.add_argument("--case", action="append", help="only this case (repeatable)")
    args = ap.parse_args()
    os.makedirs(args.out, exist_ok=True)
    for toy in args.toy or toys():
        model = Model(os.path.join(ROOT, "testdata", toy))
        for name in cases.for_toy(toy):
            if not args.case or name in args.case:
                print(record_case(model, toy, name, args.out), flush=True)
    record_rope(args.out)
    with open(os.path.join(args.out, "cases.txt"), "w") as f:
        f.writelines(f"{n[:-5]}\n" for n in sorted(os.listdir(args.out))
                     if n.startswith("toy-") and n.endswith(".json"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
