#!/usr/bin/env python3
"""Shows the facts that FINDINGS.md states about the reference's libraries, one part per name.

    findings.py [pattern] [save] [norm] [path] [surrogate] [control]        (default: all)
"""
import argparse
import inspect
import json
import os
import shutil
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOYS = {"qwen2": "toy-r1-tied", "qwen35": "toy-r2"}


def name_of(document):
    return "qwen35" if r"\p{M}" in document["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] else "qwen2"


def backend(t):
    return json.loads(t.backend_tokenizer.to_str())


def folder(pattern):
    return os.path.join(ROOT, "testdata", TOYS[pattern])


def pattern():
    import transformers
    from transformers import AutoTokenizer
    print("transformers", transformers.__version__)
    for stated in TOYS:
        for cls in ("AutoTokenizer", "Qwen2Tokenizer", "Qwen2TokenizerFast", "Qwen3_5Tokenizer"):
            t = getattr(transformers, cls).from_pretrained(folder(stated))
            print(f"file states {stated}, folder names Qwen2Tokenizer, loaded by {cls}: "
                  f"{type(t).__name__} uses {name_of(backend(t))}")
        for named in ("Qwen3_5Tokenizer", "PreTrainedTokenizerFast", None):
            with tempfile.TemporaryDirectory() as d:
                copy = os.path.join(d, "x")
                shutil.copytree(folder(stated), copy)
                path = os.path.join(copy, "tokenizer_config.json")
                config = json.load(open(path))
                config["tokenizer_class"] = named
                if named is None:
                    del config["tokenizer_class"]
                json.dump(config, open(path, "w"))
                t = AutoTokenizer.from_pretrained(copy)
                print(f"file states {stated}, folder names {named}, loaded by AutoTokenizer: "
                      f"{type(t).__name__} uses {name_of(backend(t))}")


def save():
    from transformers import AutoTokenizer
    for stated in TOYS:
        with tempfile.TemporaryDirectory() as d:
            AutoTokenizer.from_pretrained(folder(stated)).save_pretrained(d)
            doc = json.load(open(os.path.join(d, "tokenizer.json")))
            print(f"file states {stated}, saved again: {name_of(doc)}, ByteLevel of pre_tokenizer "
                  f"{doc['pre_tokenizer']['pretokenizers'][1]}, decoder {doc['decoder']}, post_processor "
                  f"{doc['post_processor']}")


def norm():
    import torch
    from transformers.models.qwen3_5 import modeling_qwen3_5 as m
    print(inspect.getsource(m.l2norm))
    for f in (m.torch_chunk_gated_delta_rule, m.torch_recurrent_gated_delta_rule):
        s = inspect.getsource(f)
        print(f"{f.__name__}: l2norm before the cast to float32: {s.index('l2norm(query') < s.index('to(torch.float32)')}")
    print("l2norm of bf16 gives", m.l2norm(torch.ones(1, 4, dtype=torch.bfloat16)).dtype)


def path():
    from transformers.models.qwen3_5 import modeling_qwen3_5 as m
    print("is_fast_path_available", m.is_fast_path_available, "| chunk_gated_delta_rule", m.chunk_gated_delta_rule,
          "| causal_conv1d_fn", m.causal_conv1d_fn, "| FusedRMSNormGated", m.FusedRMSNormGated)


def surrogate():
    from tokenizers import Tokenizer
    from transformers import AutoTokenizer
    for label, call in (("tokenizers", Tokenizer.from_file(os.path.join(folder("qwen2"), "tokenizer.json")).encode),
                        ("transformers", AutoTokenizer.from_pretrained(folder("qwen2")))):
        try:
            call(json.loads('"a\\ud800b"'))
        except Exception as e:
            print(f"{label}: {type(e).__name__}: {e}")


def control():
    from transformers import AutoTokenizer
    t = AutoTokenizer.from_pretrained(folder("qwen2"))
    text = "x<|im_end|>y<think>z"
    for flag in (False, True):
        print(f"split_special_tokens={flag}:", t.convert_ids_to_tokens(t(text, split_special_tokens=flag)["input_ids"]))


PARTS = dict(pattern=pattern, save=save, norm=norm, path=path, surrogate=surrogate, control=control)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("parts", nargs="*", help=", ".join(PARTS))
    args = ap.parse_args()
    for p in args.parts or PARTS:
        print(f"== {p}")
        PARTS[p]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
