#!/usr/bin/env python3
"""Makes the toy checkpoints testdata/toy-*/ in the layout of the released folder.

Every file is a pure function of this script, corpus.txt and the pinned library versions: random
weights come from one seed per tensor name, so adding a tensor moves no other. Weights are BF16 as in
the release (one toy stores two kinds of tensors as F32, as the base checkpoints do).

The sizes are odd on purpose (52, 68, 76, ...: no multiple of a vector width) and the scales are
chosen so that nothing is degenerate: the residual stream grows over the layers, the decays of the
delta rule spread over 0.05 to 0.999 (tails beyond both ends), attention is far from uniform, option margins are both tiny and
large. `check.py` reports all of this.
"""
import argparse
import hashlib
import json
import math
import os
import shutil

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

PATTERNS = {
    "qwen2": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
             r"|\s*[\r\n]+|\s+(?!\S)|\s+",
    "qwen35": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
              r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}

# The added tokens of the release, in id order from 248044; the second member is the `special` flag.
ADDED = [("<|endoftext|>", 1), ("<|im_start|>", 1), ("<|im_end|>", 1), ("<|object_ref_start|>", 1),
         ("<|object_ref_end|>", 1), ("<|box_start|>", 1), ("<|box_end|>", 1), ("<|quad_start|>", 1),
         ("<|quad_end|>", 1), ("<|vision_start|>", 1), ("<|vision_end|>", 1), ("<|vision_pad|>", 1),
         ("<|image_pad|>", 1), ("<|video_pad|>", 1), ("<tool_call>", 0), ("</tool_call>", 0),
         ("<|fim_prefix|>", 0), ("<|fim_middle|>", 0), ("<|fim_suffix|>", 0), ("<|fim_pad|>", 0),
         ("<|repo_name|>", 0), ("<|file_sep|>", 0), ("<tool_response>", 0), ("</tool_response>", 0),
         ("<think>", 0), ("</think>", 0), ("<|audio_start|>", 1), ("<|audio_end|>", 1),
         ("<tts_pad>", 1), ("<tts_text_bos>", 1), ("<tts_text_eod>", 1),
         ("<tts_text_bos_single>", 1), ("<|audio_pad|>", 1)]

# Entries that no merge produces, as the release has 201: a whole-word lookup would find them.
UNREACHABLE = [" Japón", "镜片还没", " insufficient evidence", "ありがとう", " customers'", "zzyzx"]

# The texts every prompt repeats, weighted so that the fixed pieces stay near their real lengths.
PROMPT = ["system\nRead the complete state and schema. Decide every field jointly. Each answer must be "
          "exactly one of that field's allowed options.", "user\nSTATE:\n", "\n\nSCHEMA FIELDS:\n",
          "\nFIELD 1\nID: decision\nTYPE: choice\nINSTRUCTION: ", "\nALLOWED OPTIONS:\n", "OPTION 1: ",
          "END FIELD\n", "assistant\n", "\n\n", "\n\nJOINT SCHEMA DECISIONS:", "TYPE: noul\n", "TYPE: score\n",
          '{"description":"', '","option_id":"']

TOYS = {
    # name: text sizes, head sizes, tokenizer, shards, specials
    "toy-r1-tied": dict(
        seed=11, hidden=52, inter=76, layers=4, heads=3, kv=1, head_dim=20, rotary=0.4, mrope=[2, 1, 1],
        nk=2, nv=2, dk=12, dv=12, tied=True, width=36, head_heads=3, ff=84, vocab_tok="qwen2", shards=1),
    "toy-r2": dict(
        seed=22, hidden=60, inter=100, layers=8, heads=4, kv=2, head_dim=24, rotary=0.5, mrope=[2, 2, 2],
        nk=2, nv=4, dk=16, dv=16, tied=False, width=44, head_heads=4, ff=92, vocab_tok="qwen35", shards=1,
        a_log_top=0.8),  # eight layers of heads that forget at once would be all rounding noise
    "toy-r3-sharded": dict(
        seed=33, hidden=68, inter=92, layers=5, heads=4, kv=1, head_dim=20, rotary=0.3, mrope=[1, 1, 1],
        nk=2, nv=6, dk=12, dv=12, tied=False, width=36, head_heads=3, ff=60, vocab_tok="qwen2", shards=3),
    "toy-explicit": dict(
        seed=44, hidden=50, inter=70, layers=3, heads=3, kv=3, head_dim=18, rotary=0.34, mrope=[1, 1, 1],
        nk=3, nv=3, dk=10, dv=14, tied=True, width=30, head_heads=2, ff=50, vocab_tok="qwen35", shards=1,
        layer_types=["full_attention", "linear_attention", "full_attention"], f32_small=True, mtp=True,
        dropout=0.1),
    "toy-real-heads": dict(
        seed=55, hidden=72, inter=104, layers=4, heads=2, kv=1, head_dim=256, rotary=0.25,
        mrope=[11, 11, 10], nk=1, nv=2, dk=128, dv=128, tied=False, width=64, head_heads=4, ff=96,
        vocab_tok="qwen2", shards=1),
    "toy-two-layers": dict(
        seed=66, hidden=44, inter=60, layers=2, heads=6, kv=2, head_dim=16, rotary=0.5, mrope=[2, 1, 1],
        nk=2, nv=6, dk=8, dv=8, tied=True, width=28, head_heads=2, ff=44, vocab_tok="qwen35", shards=1,
        layer_types=["linear_attention", "full_attention"], joint_scale=5.0, gate=-4.0),
    "toy-vision": dict(
        seed=77, hidden=52, inter=76, layers=4, heads=3, kv=1, head_dim=32, rotary=0.5, mrope=[3, 3, 2],
        nk=2, nv=4, dk=12, dv=12, tied=False, width=36, head_heads=3, ff=84, vocab_tok="qwen2", shards=1,
        layer_types=["full_attention", "linear_attention", "full_attention", "linear_attention"],
        tower=dict(depth=3, hidden=36, inter=52, heads=3, side=7)),
    "toy-vision-72": dict(
        seed=88, hidden=44, inter=60, layers=2, heads=4, kv=2, head_dim=24, rotary=0.5, mrope=[2, 2, 2],
        nk=2, nv=2, dk=8, dv=8, tied=True, width=28, head_heads=2, ff=44, vocab_tok="qwen35", shards=2,
        layer_types=["linear_attention", "full_attention"],
        tower=dict(depth=2, hidden=144, inter=116, heads=2, side=12)),
}

# What the toys with a tower say about pictures: small bounds, so that a picture is a few tokens.
PROCESSOR = dict(
    image_processor=dict(
        do_convert_rgb=True, do_normalize=True, do_rescale=True, do_resize=True, image_mean=[0.5] * 3,
        image_processor_type="Qwen2VLImageProcessor", image_std=[0.5] * 3, merge_size=2, patch_size=16,
        resample=3, rescale_factor=1 / 255, size=dict(shortest_edge=4096, longest_edge=262144),
        temporal_patch_size=2),
    processor_class="Qwen3VLProcessor",
    video_processor=dict(
        do_convert_rgb=True, do_normalize=True, do_rescale=True, do_resize=True, do_sample_frames=True,
        fps=2, image_mean=[0.5] * 3, image_std=[0.5] * 3, max_frames=768, merge_size=2, min_frames=4,
        patch_size=16, resample=3, rescale_factor=1 / 255, return_metadata=False,
        size=dict(shortest_edge=4096, longest_edge=524288), temporal_patch_size=2,
        video_processor_type="Qwen3VLVideoProcessor"))

VOCAB = {"qwen2": 1100, "qwen35": 860}     # base entries, unreachable ones included


# ---- tokenizer ----------------------------------------------------------------------------------

def byte_alphabet():
    """Byte -> the character that spells it in the vocabulary."""
    plain = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    rest = [b for b in range(256) if b not in plain]
    table = {b: chr(b) for b in plain}
    table.update({b: chr(256 + i) for i, b in enumerate(rest)})
    return table


def train_tokenizer(pattern, n_base):
    """Returns (vocab, merges) of a byte-level BPE over corpus.txt, unreachable entries mixed in."""
    text = open(os.path.join(HERE, "corpus.txt"), encoding="utf-8").read()
    tok = Tokenizer(models.BPE())
    tok.normalizer = normalizers.NFC()
    tok.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(PATTERNS[pattern]), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    alphabet = byte_alphabet()
    trainer = trainers.BpeTrainer(vocab_size=n_base - len(UNREACHABLE), min_frequency=1,
                                  show_progress=False, initial_alphabet=list(alphabet.values()))
    tok.train_from_iterator([text] + PROMPT * 60, trainer)
    model = json.loads(tok.to_str())["model"]
    order = [k for k, _ in sorted(model["vocab"].items(), key=lambda kv: kv[1])]
    merges = [m if isinstance(m, list) else m.split(" ") for m in model["merges"]]
    # As for 31 entries of the release: three entries come, with their merge, before one of their parts.
    made = {a + b: i for i, (a, b) in enumerate(merges)}
    late = [i for i, (a, b) in enumerate(merges) if len(a) > 2 and a in made and i > 300][::12][:3]
    assert len(late) == 3
    for i in late:
        part = made[merges[i][0]]
        x, y = order.index("".join(merges[i])), order.index(merges[i][0])
        order[x], order[y] = order[y], order[x]
        merges[i], merges[part] = merges[part], merges[i]
        made = {a + b: i for i, (a, b) in enumerate(merges)}
    extra = ["".join(alphabet[b] for b in s.encode("utf-8")) for s in UNREACHABLE]
    assert not set(extra) & set(order), "an unreachable entry is reachable"
    for i, s in enumerate(extra):           # between reachable ones, as in the release
        order.insert(300 + 97 * i, s)
    return {k: i for i, k in enumerate(order)}, merges


def tokenizer_document(pattern, vocab, merges):
    """The text of a tokenizer.json: the form of the release for `qwen2`, of its sibling for `qwen35`."""
    n, saved = len(vocab), pattern == "qwen2"
    added = [dict(id=n + i, content=c, single_word=False, lstrip=False, rstrip=False, normalized=False,
                  special=bool(s)) for i, (c, s) in enumerate(ADDED)]

    def byte_level(prefix, trim, regex):
        return dict(type="ByteLevel", add_prefix_space=prefix, trim_offsets=trim, use_regex=regex)

    doc = dict(
        version="1.0", truncation=None, padding=None, added_tokens=added, normalizer=dict(type="NFC"),
        pre_tokenizer=dict(type="Sequence", pretokenizers=[
            dict(type="Split", pattern=dict(Regex=PATTERNS[pattern]), behavior="Isolated", invert=False),
            byte_level(False, saved, False)]),
        post_processor=byte_level(False, False, False), decoder=byte_level(saved, saved, saved),
        model=dict(type="BPE", dropout=None, unk_token=None, continuing_subword_prefix="",
                   end_of_word_suffix="", fuse_unk=False, byte_fallback=False, ignore_merges=False,
                   vocab=vocab, merges=merges))
    return json.dumps(doc, ensure_ascii=False, indent=2)


def write_tokenizer(folder, pattern):
    vocab, merges = train_tokenizer(pattern, VOCAB[pattern])
    n = len(vocab)
    path = os.path.join(folder, "tokenizer.json")
    with open(path, "w", encoding="utf-8") as f:
        f.write(tokenizer_document(pattern, vocab, merges))
    tok = Tokenizer.from_file(path)
    for s in UNREACHABLE:
        assert len(tok.encode(s, add_special_tokens=False).ids) > 1, s
    write_json(folder, "tokenizer_config.json", dict(
        add_prefix_space=False, backend="tokenizers", bos_token=None, clean_up_tokenization_spaces=False,
        eos_token="<|im_end|>", errors="replace", model_max_length=262144, pad_token="<|endoftext|>",
        split_special_tokens=False, tokenizer_class="Qwen2Tokenizer", unk_token=None))
    return {c: n + i for i, (c, _) in enumerate(ADDED)}, n + len(ADDED)


# ---- weights ------------------------------------------------------------------------------------

def normal(seed, name, shape, scale=1.0, mean=0.0):
    """Reproducible normal values: the seed is the toy's and the tensor's name alone."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    rng = np.random.Generator(np.random.PCG64(int.from_bytes(digest[:8], "little")))
    return (mean + scale * rng.standard_normal(shape)).astype(np.float32)


class Weights(dict):
    def __init__(self, seed):
        super().__init__()
        self.seed = seed

    def put(self, name, values, dtype=torch.bfloat16):
        self[name] = torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32)).to(dtype)

    def linear(self, name, out, inp, gain=1.0):
        self.put(name, normal(self.seed, name, (out, inp), gain / math.sqrt(inp)))

    def vector(self, name, n, mean=0.0, scale=0.2):
        self.put(name, normal(self.seed, name, (n,), scale, mean))

    def layer_norm(self, name, n):
        self.vector(name + ".weight", n, 1.0, 0.15)
        self.vector(name + ".bias", n, 0.0, 0.1)


def layer_types(t):
    return t.get("layer_types") or ["full_attention" if i % 4 == 3 else "linear_attention"
                                    for i in range(t["layers"])]


def backbone(t, rows):
    w = Weights(t["seed"])
    h, hd = t["hidden"], t["head_dim"]
    small = torch.float32 if t.get("f32_small") else torch.bfloat16
    base = "model.language_model."
    w.put(base + "embed_tokens.weight", normal(t["seed"], "embed", (rows, h), 0.7))
    w.vector(base + "norm.weight", h, 0.1, 0.25)
    if not t["tied"]:
        w.put("lm_head.weight", normal(t["seed"], "lm_head", (rows, h), 0.5))
    for i, kind in enumerate(layer_types(t)):
        p = f"{base}layers.{i}."
        grow = 1.0 + 0.35 * i                # later layers write more: the stream grows
        w.vector(p + "input_layernorm.weight", h, 0.2, 0.25)
        w.vector(p + "post_attention_layernorm.weight", h, 0.2, 0.25)
        w.linear(p + "mlp.gate_proj.weight", t["inter"], h, 1.2)
        w.linear(p + "mlp.up_proj.weight", t["inter"], h, 1.2)
        w.linear(p + "mlp.down_proj.weight", h, t["inter"], 1.0 * grow)
        if kind == "full_attention":
            p += "self_attn."
            w.linear(p + "q_proj.weight", 2 * t["heads"] * hd, h)
            w.linear(p + "k_proj.weight", t["kv"] * hd, h)
            w.linear(p + "v_proj.weight", t["kv"] * hd, h, 1.5)
            w.linear(p + "o_proj.weight", h, t["heads"] * hd, 2.5 * grow)
            # q and k of unit RMS give scores of about sqrt(head_dim) times a cosine; the offsets
            # keep the spread of the scores near 2, whatever the head size.
            gain = math.sqrt(2.0) - 1.0
            w.vector(p + "q_norm.weight", hd, gain, 0.2)
            w.vector(p + "k_norm.weight", hd, gain, 0.2)
            continue
        p += "linear_attn."
        nk, nv, dk, dv = t["nk"], t["nv"], t["dk"], t["dv"]
        channels = 2 * nk * dk + nv * dv
        w.linear(p + "in_proj_qkv.weight", channels, h, 1.5)
        w.linear(p + "in_proj_z.weight", nv * dv, h, 1.2)
        w.linear(p + "in_proj_a.weight", nv, h, 0.8)
        w.linear(p + "in_proj_b.weight", nv, h, 1.2)
        w.put(p + "conv1d.weight", normal(t["seed"], p + "conv1d.weight", (channels, 1, 4), 0.4)
              + np.array([0.1, 0.2, 0.3, 0.8], dtype=np.float32))
        # -exp(A_log) softplus(a + dt_bias): from heads that forget at once to heads that never do.
        spread = (np.arange(nv) + 0.5 * (i % 2)) / max(nv - 0.5, 1)
        top = t.get("a_log_top", 1.6)
        w.put(p + "A_log", (top - 4.0 * spread).astype(np.float32), small)
        w.put(p + "dt_bias", normal(t["seed"], p + "dt_bias", (nv,), 0.6, -1.6))
        w.put(p + "norm.weight", normal(t["seed"], p + "norm.weight", (dv,), 0.2, 1.0), small)
        w.linear(p + "out_proj.weight", h, nv * dv, 2.0 * grow)
    if t.get("tower"):
        tower(w, t["tower"], h)
    if t.get("mtp"):                         # present in base checkpoints, must be ignored
        w.vector("mtp.norm.weight", h)
        w.linear("mtp.fc.weight", h, 2 * h)
    return w


def tower(w, v, out):
    """The vision tower: scales as in the backbone, so that attention is far from uniform."""
    h, base = v["hidden"], "model.visual."

    def linear(name, n_out, n_in, gain):
        w.linear(base + name + ".weight", n_out, n_in, gain)
        w.vector(base + name + ".bias", n_out, 0.0, 0.1)

    name = base + "patch_embed.proj"
    w.put(name + ".weight", normal(w.seed, name + ".weight", (h, 3, 2, 16, 16), 3.0 / math.sqrt(1536)))
    w.vector(name + ".bias", h, 0.0, 0.1)
    w.put(base + "pos_embed.weight", normal(w.seed, base + "pos_embed.weight", (v["side"] ** 2, h), 0.7))
    for i in range(v["depth"]):
        p = f"blocks.{i}."
        w.layer_norm(base + p + "norm1", h)
        w.layer_norm(base + p + "norm2", h)
        linear(p + "attn.qkv", 3 * h, h, 1.4)
        linear(p + "attn.proj", h, h, 1.5)
        linear(p + "mlp.linear_fc1", v["inter"], h, 1.3)
        linear(p + "mlp.linear_fc2", h, v["inter"], 1.3)
    w.layer_norm(base + "merger.norm", h)
    linear("merger.linear_fc1", 4 * h, 4 * h, 1.3)
    linear("merger.linear_fc2", out, 4 * h, 1.2)


def joint_head(t):
    w = Weights(t["seed"] + 1000)
    h, wd, ff = t["hidden"], t["width"], t["ff"]

    def attention(p):
        w.linear(p + "in_proj_weight", 3 * wd, wd, 1.3)
        w.vector(p + "in_proj_bias", 3 * wd, 0.0, 0.2)
        w.linear(p + "out_proj.weight", wd, wd, 1.5)
        w.vector(p + "out_proj.bias", wd, 0.0, 0.1)

    def feed(p0, p1):
        w.linear(p0 + ".weight", ff, wd, 1.2)
        w.vector(p0 + ".bias", ff, 0.0, 0.2)
        w.linear(p1 + ".weight", wd, ff, 1.2)
        w.vector(p1 + ".bias", wd, 0.0, 0.1)

    w.layer_norm("hidden_norm", h)
    for name in ("memory", "question", "option_question", "global", "option_context", "option_lexical"):
        w.linear(name + "_projection.weight", wd, h, 1.8 if name == "option_lexical" else 1.2)
    w.put("type_embedding.weight", normal(t["seed"], "type_embedding", (3, wd), 0.5))
    for e in range(2):
        p = f"evidence_layers.{e}."
        for n in ("query_norm", "memory_norm", "feedforward_norm"):
            w.layer_norm(p + n, wd)
        attention(p + "attention.")
        feed(p + "feedforward.0", p + "feedforward.3")
    w.layer_norm("option_summary_norm", wd)
    for d in range(4):
        p = f"layers.{d}."
        attention(p + "self_attn.")
        attention(p + "multihead_attn.")
        feed(p + "linear1", p + "linear2")
        for n in ("norm1", "norm2", "norm3"):
            w.layer_norm(p + n, wd)
    w.layer_norm("field_norm", wd)
    w.layer_norm("option_norm", wd)
    w.linear("residual_scorer.0.weight", wd, 4 * wd, 1.5)
    w.vector("residual_scorer.0.bias", wd, 0.0, 0.2)
    w.linear("residual_scorer.3.weight", 1, wd, 3.0)
    w.vector("residual_scorer.3.bias", 1)
    w.put("prior_logit_scale", np.float32(math.log(10.0)))
    w.put("joint_logit_scale", np.float32(t.get("joint_scale", 1.5)))    # one toy is above ln 100
    w.put("residual_gate", np.float32(t.get("gate", -0.75)))
    assert len(w) == 122, len(w)
    return w


# ---- folder -------------------------------------------------------------------------------------

def write_json(folder, name, value):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        json.dump(value, f, ensure_ascii=False, indent=2)
        f.write("\n")


def write_backbone(folder, weights, shards):
    meta = {"format": "pt"}
    if shards == 1:
        save_file(dict(weights), os.path.join(folder, "model.safetensors"), metadata=meta)
        return
    names, index, total = sorted(weights), {}, 0
    cut = [names[i * len(names) // shards:(i + 1) * len(names) // shards] for i in range(shards)]
    for i, part in enumerate(cut):
        file = f"model-{i + 1:05d}-of-{shards:05d}.safetensors"
        save_file({n: weights[n] for n in part}, os.path.join(folder, file), metadata=meta)
        index.update({n: file for n in part})
        total += sum(weights[n].numel() * weights[n].element_size() for n in part)
    write_json(folder, "model.safetensors.index.json",
               dict(metadata=dict(total_size=total), weight_map=dict(sorted(index.items()))))


def make(name, t, out):
    folder = os.path.join(out, name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    ids, n_tokens = write_tokenizer(folder, t["vocab_tok"])
    rows = n_tokens + 7 + t["layers"]        # padding rows that no text reaches
    text = dict(
        attention_bias=False, attention_dropout=0.0, attn_output_gate=True, bos_token_id=None,
        dtype="bfloat16", eos_token_id=ids["<|endoftext|>"], full_attention_interval=4,
        head_dim=t["head_dim"], hidden_act="silu", hidden_size=t["hidden"], initializer_range=0.02,
        intermediate_size=t["inter"], layer_types=layer_types(t), linear_conv_kernel_dim=4,
        linear_key_head_dim=t["dk"], linear_num_key_heads=t["nk"], linear_num_value_heads=t["nv"],
        linear_value_head_dim=t["dv"], mamba_ssm_dtype="float32", max_position_embeddings=262144,
        mlp_only_layers=[], model_type="qwen3_5_text", mtp_num_hidden_layers=0,
        mtp_use_dedicated_embeddings=False, num_attention_heads=t["heads"],
        num_hidden_layers=t["layers"], num_key_value_heads=t["kv"], pad_token_id=None,
        partial_rotary_factor=t["rotary"], rms_norm_eps=1e-06,
        rope_parameters=dict(mrope_interleaved=True, mrope_section=t["mrope"],
                             partial_rotary_factor=t["rotary"], rope_theta=10000000,
                             rope_type="default"),
        tie_word_embeddings=t["tied"], use_cache=True, vocab_size=rows)
    vision = dict(
        deepstack_visual_indexes=[], depth=1, dtype="bfloat16", hidden_act="gelu_pytorch_tanh",
        hidden_size=16, in_channels=3, initializer_range=0.02, intermediate_size=24,
        model_type="qwen3_5", num_heads=2, num_position_embeddings=16, out_hidden_size=t["hidden"],
        patch_size=4, spatial_merge_size=2, temporal_patch_size=2)
    if t.get("tower"):
        v = t["tower"]
        vision.update(depth=v["depth"], hidden_size=v["hidden"], intermediate_size=v["inter"],
                      num_heads=v["heads"], num_position_embeddings=v["side"] ** 2, patch_size=16)
        write_json(folder, "processor_config.json", PROCESSOR)
    write_json(folder, "config.json", dict(
        architectures=["Qwen3_5ForConditionalGeneration"], dtype="bfloat16",
        image_token_id=ids["<|image_pad|>"], model_type="qwen3_5", text_config=text,
        tie_word_embeddings=t["tied"], transformers_version="5.10.2",
        video_token_id=ids["<|video_pad|>"], vision_config=vision,
        vision_end_token_id=ids["<|vision_end|>"], vision_start_token_id=ids["<|vision_start|>"]))
    write_json(folder, "joint_head_config.json", dict(
        hidden_size=t["hidden"], width=t["width"], routing_layers=2, layers=4, heads=t["head_heads"],
        feedforward=t["ff"], **({"dropout": t["dropout"]} if "dropout" in t else {})))
    write_backbone(folder, backbone(t, rows), t["shards"])
    save_file(dict(joint_head(t)), os.path.join(folder, "joint_head.safetensors"),
              metadata={"format": "pt"})
    for f in os.listdir(folder):
        os.chmod(os.path.join(folder, f), 0o644)
    size = sum(os.path.getsize(os.path.join(folder, f)) for f in os.listdir(folder))
    print(f"{name}: {size} bytes, {n_tokens} tokens, {rows} rows")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    ap.add_argument("--out", default=os.path.join(ROOT, "testdata"), help="where the folders go")
    ap.add_argument("toys", nargs="*", help="names; default: all of " + ", ".join(TOYS))
    args = ap.parse_args()
    for name in args.toys or TOYS:
        make(name, TOYS[name], args.out)


if __name__ == "__main__":
    main()
