#!/usr/bin/env python3
"""Checks the goldens against a second implementation and reports that nothing in the toys is degenerate.

The second implementation is NumPy in double precision, written from the formulas alone (MODEL.md sections 2
and 3): the delta rule as the plain recurrence (the reference runs the chunked form), attention row by row, the
head without torch modules. It prints, per toy, the greatest difference from the recorded hidden rows and logits,
the decays e^g, the residual's RMS per layer, attention entropy, the margins, and how far each red arm moves the
logits. Exit status 1 when a difference is too large or a spread too small.
"""
import argparse
import json
import math
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(os.path.dirname(os.path.dirname(HERE)), "testdata")
erf = np.vectorize(math.erf)


def load(path):
    """A safetensors file as {name: float64 array} (rows stay integers); no library involved."""
    raw = open(path, "rb").read()
    n = int.from_bytes(raw[:8], "little")
    out = {}
    for name, t in json.loads(raw[8:8 + n]).items():
        if name == "__metadata__":
            continue
        a, b = t["data_offsets"]
        data = raw[8 + n + a:8 + n + b]
        if t["dtype"] == "BF16":
            v = (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        elif t["dtype"] == "F32":
            v = np.frombuffer(data, "<f4").astype(np.float64)
        else:
            v = np.frombuffer(data, "<i4")
        out[name] = v.reshape(t["shape"])
    return out


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def rms1(x, w):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * (1 + w)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Backbone:
    def __init__(self, folder):
        self.c = json.load(open(os.path.join(folder, "config.json")))["text_config"]
        self.w = {}
        for f in sorted(os.listdir(folder)):
            if f.startswith("model") and f.endswith(".safetensors"):
                self.w.update(load(os.path.join(folder, f)))
        self.decay, self.entropy = [], []

    def lexical(self):
        return self.w.get("lm_head.weight", self.w["model.language_model.embed_tokens.weight"])

    def delta(self, y, w):
        c = self.c
        nk, nv, dk, dv = (c["linear_num_key_heads"], c["linear_num_value_heads"],
                          c["linear_key_head_dim"], c["linear_value_head_dim"])
        n, r = len(y), nv // nk
        qkv = y @ w["in_proj_qkv.weight"].T
        z = (y @ w["in_proj_z.weight"].T).reshape(n, nv, dv)
        beta = sigmoid(y @ w["in_proj_b.weight"].T)
        g = -np.exp(w["A_log"]) * np.log1p(np.exp(y @ w["in_proj_a.weight"].T + w["dt_bias"]))
        self.decay.append(np.exp(g))
        past = np.vstack([np.zeros((3, qkv.shape[1])), qkv])
        conv = silu(sum(w["conv1d.weight"][:, 0, k] * past[k:k + n] for k in range(4)))
        q, k, v = np.split(conv, [nk * dk, 2 * nk * dk], axis=1)
        q, k, v = q.reshape(n, nk, dk), k.reshape(n, nk, dk), v.reshape(n, nv, dv)
        q = q / np.sqrt((q * q).sum(-1, keepdims=True) + 1e-6) / math.sqrt(dk)
        k = k / np.sqrt((k * k).sum(-1, keepdims=True) + 1e-6)
        out = np.zeros((n, nv, dv))
        for m in range(nv):
            s = np.zeros((dk, dv))
            for t in range(n):
                kt, qt = k[t, m // r], q[t, m // r]
                s *= math.exp(g[t, m])
                s += np.outer(kt, beta[t, m] * (v[t, m] - s.T @ kt))
                out[t, m] = s.T @ qt
        out = out / np.sqrt((out * out).mean(-1, keepdims=True) + 1e-6) * w["norm.weight"] * silu(z)
        return out.reshape(n, nv * dv) @ w["out_proj.weight"].T

    def attention(self, y, w):
        c = self.c
        nh, nkv, hd = c["num_attention_heads"], c["num_key_value_heads"], c["head_dim"]
        n = len(y)
        qg = (y @ w["q_proj.weight"].T).reshape(n, nh, 2, hd)
        q, gate = rms1(qg[:, :, 0], w["q_norm.weight"]), qg[:, :, 1]
        k = rms1((y @ w["k_proj.weight"].T).reshape(n, nkv, hd), w["k_norm.weight"])
        v = (y @ w["v_proj.weight"].T).reshape(n, nkv, hd)
        dims = int(hd * c["rope_parameters"]["partial_rotary_factor"])
        half = dims // 2
        f = np.float32(1) / np.float32(c["rope_parameters"]["rope_theta"]) ** (
            np.arange(0, dims, 2, dtype=np.float32) / np.float32(dims))
        a = (f[None] * np.arange(n, dtype=np.float32)[:, None]).astype(np.float64)[:, None]
        cos, sin = np.cos(a), np.sin(a)

        def rotate(x):
            x1, x2 = x[..., :half], x[..., half:dims]
            return np.concatenate([x1 * cos - x2 * sin, x2 * cos + x1 * sin, x[..., dims:]], -1)

        q, k = rotate(q), rotate(k)
        out = np.zeros((n, nh, hd))
        mask = np.triu(np.full((n, n), -np.inf), 1)
        for h in range(nh):
            b = h // (nh // nkv)
            p = softmax(q[:, h] @ k[:, b].T / math.sqrt(hd) + mask)
            out[:, h] = p @ v[:, b]
            with np.errstate(divide="ignore", invalid="ignore"):
                e = -np.nansum(np.where(p > 0, p * np.log(p), 0), -1)
            self.entropy.append(np.exp(e[n // 2:]) / np.arange(n // 2 + 1, n + 1))
        return (out * sigmoid(gate)).reshape(n, nh * hd) @ w["o_proj.weight"].T

    def run(self, ids):
        base = "model.language_model."
        x = self.w[base + "embed_tokens.weight"][ids]
        stream = [x]
        for i, kind in enumerate(self.c["layer_types"]):
            p = f"{base}layers.{i}."
            w = {n[len(p):]: v for n, v in self.w.items() if n.startswith(p)}
            y = rms1(x, w["input_layernorm.weight"])
            name, mixer = ("self_attn.", self.attention) if kind == "full_attention" else ("linear_attn.", self.delta)
            x = x + mixer(y, {n[len(name):]: v for n, v in w.items() if n.startswith(name)})
            y = rms1(x, w["post_attention_layernorm.weight"])
            x = x + (silu(y @ w["mlp.gate_proj.weight"].T) * (y @ w["mlp.up_proj.weight"].T)) @ w["mlp.down_proj.weight"].T
            stream.append(x)
        return stream, rms1(x, self.w[base + "norm.weight"])


class Head:
    def __init__(self, folder):
        self.c = json.load(open(os.path.join(folder, "joint_head_config.json")))
        self.w = load(os.path.join(folder, "joint_head.safetensors"))

    def norm(self, name, x):
        m = x.mean(-1, keepdims=True)
        var = ((x - m) ** 2).mean(-1, keepdims=True)
        return (x - m) / np.sqrt(var + 1e-5) * self.w[name + ".weight"] + self.w[name + ".bias"]

    def project(self, name, x):
        return x @ self.w[name + "_projection.weight"].T

    def feed(self, first, second, x):
        y = x @ self.w[first + ".weight"].T + self.w[first + ".bias"]
        y = y * 0.5 * (1 + erf(y / math.sqrt(2)))
        return y @ self.w[second + ".weight"].T + self.w[second + ".bias"]

    def mha(self, name, a, b):
        n, w = self.c["heads"], self.c["width"]
        q, k, v = (src @ m.T + bias for src, m, bias in zip(
            (a, b, b), np.split(self.w[name + "in_proj_weight"], 3), np.split(self.w[name + "in_proj_bias"], 3)))
        d, out = w // n, np.zeros((len(a), w))
        for h in range(n):
            c = slice(h * d, (h + 1) * d)
            out[:, c] = softmax(q[:, c] @ k[:, c].T / math.sqrt(d)) @ v[:, c]
        return out @ self.w[name + "out_proj.weight"].T + self.w[name + "out_proj.bias"]

    def run(self, hidden, ids, table, questions):
        code = {"noul": 0, "choice": 1, "score": 2}
        x = self.norm("hidden_norm", hidden)
        memory, g = self.project("memory", x), x[-1]
        q = np.array([x[a:b].mean(0) for a, b in (e["span"] for e in questions)])
        spans = [o["span"] for e in questions for o in e["options"]]
        own = np.array([i for i, e in enumerate(questions) for _ in e["options"]])
        lex = np.array([table[ids[a:b]].mean(0) for a, b in spans])
        r = (self.project("option_context", np.array([x[a:b].mean(0) for a, b in spans]))
             + self.project("option_lexical", lex) + self.project("option_question", q[own]))
        for e in range(self.c["routing_layers"]):
            p = f"evidence_layers.{e}."
            r = r + self.mha(p + "attention.", self.norm(p + "query_norm", r), self.norm(p + "memory_norm", memory))
            r = r + self.feed(p + "feedforward.0", p + "feedforward.3", self.norm(p + "feedforward_norm", r))
        f = []
        for i, entry in enumerate(questions):
            base = self.project("question", q[i])
            w = softmax(r[own == i] @ base / math.sqrt(self.c["width"]))
            f.append(base + self.norm("option_summary_norm", w @ r[own == i]) + self.project("global", g)
                     + self.w["type_embedding.weight"][code[entry["type"]]])
        f = np.array(f)
        for d in range(self.c["layers"]):
            p = f"layers.{d}."
            y = self.norm(p + "norm1", f)
            f = f + self.mha(p + "self_attn.", y, y)
            f = f + self.mha(p + "multihead_attn.", self.norm(p + "norm2", f), memory)
            f = f + self.feed(p + "linear1", p + "linear2", self.norm(p + "norm3", f))
        fn, on = self.norm("field_norm", f)[own], self.norm("option_norm", r)

        def unit(v):
            return v / np.linalg.norm(v, axis=-1, keepdims=True)

        prior = np.exp(min(self.w["prior_logit_scale"], math.log(100))) * (unit(lex) * unit(q + g)[own]).sum(-1)
        joint = (np.exp(min(self.w["joint_logit_scale"], math.log(100))) * (unit(fn) * unit(on)).sum(-1)
                 + self.feed("residual_scorer.0", "residual_scorer.3",
                             np.concatenate([fn, on, fn * on, np.abs(fn - on)], -1))[:, 0])
        return memory, r, f, prior + sigmoid(self.w["residual_gate"]) * joint


def relative(a, b):
    return float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30))


def check_toy(toy, names):
    folder, bad = os.path.join(DATA, toy), []
    print(f"== {toy}")
    net, head, margins = Backbone(folder), Head(folder), []
    for name in sorted(os.listdir(os.path.join(DATA, "golden"))):
        if name.startswith(toy + ".") and name.endswith(".json"):
            margins += json.load(open(os.path.join(DATA, "golden", name))).get("margins", [])
    for name in names:
        if not os.path.exists(os.path.join(DATA, "golden", f"{toy}.{name}.safetensors")):
            continue
        base = os.path.join(DATA, "golden", f"{toy}.{name}")
        doc, gold = json.load(open(base + ".json")), load(base + ".safetensors")
        ids, rows = np.array(doc["ids"]), gold["rows"]
        stream, final = net.run(ids)
        worst = max(relative(x[rows], gold[f"hidden.{i}"]) for i, x in enumerate(stream))
        memory, r, f, logits = head.run(final, ids, net.lexical(), doc["questions"])
        parts = dict(stream=worst, final=relative(final[rows], gold["hidden.final"]),
                     memory=relative(memory[rows], gold["memory"]), R=relative(r, gold["R"]), F=relative(f, gold["F"]),
                     logits=float(np.abs(logits - doc["logits"]).max()))
        print(f"  {name}: " + " ".join(f"{k} {v:.1e}" for k, v in parts.items()))
        bad += [f"{name} {k}" for k, v in parts.items() if v > 2e-4]
        if name == "basic":
            rms = [float(np.sqrt((x * x).mean())) for x in stream]
            print("  residual RMS per layer: " + " ".join(f"{v:.2f}" for v in rms))
            if rms[-1] < 1.5 * rms[0]:
                bad.append("the residual does not grow")
            if "arms" in doc:
                print("  arms, max |logit change|: " + ", ".join(
                    f"{k} {np.abs(np.array(v) - doc['logits']).max():.3f}" for k, v in doc["arms"].items()))
    d = np.concatenate([x.ravel() for x in net.decay])
    qs = np.quantile(d, [0, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1])
    print("  decay e^g, quantiles 0 .01 .1 .25 .5 .75 .9 .99 1: " + " ".join(f"{v:.4f}" for v in qs))
    if qs[0] > 0.05 or qs[2] > 0.75 or qs[-1] < 0.998:
        bad.append("decays do not spread")
    e = np.concatenate(net.entropy)
    print(f"  attention perplexity / length, median {np.median(e):.3f}, range {e.min():.3f} to {e.max():.3f}")
    m = np.array([x for x in margins if x < 1.0])
    print(f"  margins of {len(m)} questions: {np.sum(m < 0.02)} below 0.02, {np.sum(m > 0.5)} above 0.5")
    if np.sum(m > 0.5) < 1:
        bad.append("no large margins")
    for b in bad:
        print(f"  BAD: {b}")
    return not bad


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--toy", action="append")
    ap.add_argument("--case", action="append", help="cases to run; default: minimal basic repeated")
    args = ap.parse_args()
    toys = args.toy or sorted(d for d in os.listdir(DATA) if d.startswith("toy-"))
    results = [check_toy(t, args.case or ["minimal", "basic", "repeated"]) for t in toys]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
