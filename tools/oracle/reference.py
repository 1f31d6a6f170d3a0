#!/usr/bin/env python3
"""The reference: a toy folder and a request in, the answer and everything on the way out.

The backbone is transformers' own Qwen3_5ForConditionalGeneration in float32 on the CPU with the BF16
weights widened; a text record goes straight through its language model, alone, without padding or
cache. Text becomes ids with the `tokenizers` library and the pattern that tokenizer.json states.
The head, the prompt and the answer are written here as MODEL.md (sections 1, 3 and 4) states them and
share nothing with the C code.

    reference.py TOY REQUEST.json [--policy reference|plain] [--max-length N] [--max-state-tokens N]
    reference.py --check-vectors contract-vectors.json [--tokenizer tokenizer.json]

The first form prints the answer as json.dumps(..., ensure_ascii=False); the second checks the
encoder and the answer against the recorded runs of the real model, see `vectors.py`.
"""
import argparse
import json
import math
import os
import sys

from tokenizers import Tokenizer

PREFIX = ("<|im_start|>system\nRead the complete state and schema. Decide every field jointly. Each answer "
          "must be exactly one of that field's allowed options.<|im_end|>\n<|im_start|>user\nSTATE:\n")
HEADER = "\n\nSCHEMA FIELDS:\n"
ALLOWED = "\nALLOWED OPTIONS:\n"
END = "END FIELD\n"
SUFFIX = "\n<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\nJOINT SCHEMA DECISIONS:"
TYPES = {"noul": 0, "choice": 1, "score": 2}
NOUL = {"true": "The proposition is true or the answer is yes.",
        "false": "The proposition is false or the answer is no."}


# ---- request to ids and spans (MODEL.md section 1) -------------------------------------------------

def render(value):
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def options_of(question):
    """[(option id, description)] in scoring order."""
    criteria = question.get("criteria")
    if question["type"] == "noul":
        texts = dict(NOUL)
        for key in texts:
            if criteria and key in criteria:
                texts[key] = criteria[key]
        return list(texts.items())
    if question["type"] == "choice":
        return sorted(criteria.items())
    return [(str(i), c) for i, c in enumerate(criteria)]


def check_request(request):
    if not isinstance(request.get("model"), str) or "state" not in request:
        raise ValueError("model and state are required")
    questions = request.get("questions")
    if not isinstance(questions, dict) or not questions:
        raise ValueError("at least one question is required")
    for qid, q in questions.items():
        if q.get("type") not in TYPES:
            raise ValueError(f"{qid}: type must be noul, choice, or score")
        if q["type"] != "noul" and not q.get("criteria"):
            raise ValueError(f"{qid}: criteria must not be empty")


class Encoder:
    """Pieces to ids. `policy` says what a control-token spelling in user text becomes."""

    def __init__(self, tokenizer_json, policy="reference"):
        self.full = Tokenizer.from_file(tokenizer_json)
        doc = json.load(open(tokenizer_json, encoding="utf-8"))
        self.pattern = doc["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"]
        self.user = self.full
        if policy == "plain":
            doc["added_tokens"] = []
            self.user = Tokenizer.from_str(json.dumps(doc))
        elif policy != "reference":
            raise ValueError("policy: reference or plain")

    def own(self, text):
        return self.full.encode(text, add_special_tokens=False).ids

    def theirs(self, text):
        return self.user.encode(text, add_special_tokens=False).ids

    def encode(self, request, max_length=16384, max_state_tokens=None, media_ids=()):
        """Returns {ids, tokens, questions}; the state is cut from its end when it does not fit."""
        check_request(request)
        schema, questions = self.own(HEADER), []
        for k, (qid, q) in enumerate(request["questions"].items(), 1):
            # One piece: the id stands between our words, so all of it is user text.
            schema += self.theirs(f"\nFIELD {k}\nID: {qid}\nTYPE: {q['type']}\nINSTRUCTION: ")
            text = q.get("instructions")
            if text is None or text == "":
                text = qid
            begin = len(schema)
            schema += self.theirs(render(text))
            entry = dict(id=qid, type=q["type"], span=[begin, len(schema)], options=[])
            schema += self.own(ALLOWED)
            for j, (oid, description) in enumerate(options_of(q), 1):
                schema += self.own(f"OPTION {j}: ")
                option = dict(option_id=oid)
                if description is not None:
                    option["description"] = description
                begin = len(schema)
                schema += self.theirs(render(option))
                entry["options"].append(dict(id=oid, span=[begin, len(schema)]))
                schema += self.own("\n")
            schema += self.own(END)
            questions.append(entry)
        prefix, suffix, media = self.own(PREFIX), self.own(SUFFIX), list(media_ids)
        state = self.theirs(render(request["state"]))
        state_total = len(state)
        fixed = len(prefix) + len(media) + len(schema) + len(suffix)
        if max_state_tokens is not None:
            state = state[:max_state_tokens]
        if fixed > max_length:
            raise ValueError(f"schema requires {fixed} tokens before state; maximum is {max_length}")
        state = state[:max_length - fixed]
        shift = len(prefix) + len(media) + len(state)
        for entry in questions:
            entry["span"] = [x + shift for x in entry["span"]]
            for option in entry["options"]:
                option["span"] = [x + shift for x in option["span"]]
        return dict(ids=prefix + media + state + schema + suffix, questions=questions,
                    tokens=dict(prefix=len(prefix), media=len(media), state=len(state),
                                schema=len(schema), suffix=len(suffix)), state_total=state_total)


# ---- answer (MODEL.md section 4) --------------------------------------------------------------------

def answer(request, questions, probs, n_tokens):
    """`probs`: per question a list of floats (widened fp32) in scoring order."""
    answers = {}
    for entry, p in zip(questions, probs):
        q = request["questions"][entry["id"]]
        by_id = {o["id"]: x for o, x in zip(entry["options"], p)}
        if q["type"] == "noul":
            answers[entry["id"]] = dict(type="noul", noul=round(by_id["true"], 4))
        elif q["type"] == "choice":
            best = max(q["criteria"], key=lambda name: by_id[name])   # the first of equals
            answers[entry["id"]] = dict(
                type="choice", choice=best, confidence=round(by_id[best], 4),
                probabilities={name: round(by_id[name], 4) for name in q["criteria"]})
        else:
            answers[entry["id"]] = dict(
                type="score", score=round(sum(i * x for i, x in enumerate(p)), 4),
                confidence=round(max(p), 4),
                legend={str(i): c for i, c in enumerate(q["criteria"])},
                probabilities={str(i): round(x, 4) for i, x in enumerate(p)})
    return json.dumps(dict(model=request["model"], answers=answers,
                           usage=dict(input_tokens=n_tokens, output_tokens=0)), ensure_ascii=False)


# ---- network ---------------------------------------------------------------------------------------

def _torch():
    global torch, nn, F
    import torch
    import torch.nn as nn
    import torch.nn.functional as F
    torch.set_num_threads(1)                 # one order of summation, the same bits on every run
    torch.set_grad_enabled(False)


def joint_head(folder):
    """The head of MODEL.md section 3 as a module with the released tensor names."""
    from safetensors.torch import load_file

    class EvidenceLayer(nn.Module):
        def __init__(self, w, heads, ff):
            super().__init__()
            self.query_norm, self.memory_norm, self.feedforward_norm = (nn.LayerNorm(w) for _ in "123")
            self.attention = nn.MultiheadAttention(w, heads, batch_first=True)
            self.feedforward = nn.Sequential(nn.Linear(w, ff), nn.GELU(), nn.Dropout(0.0),
                                             nn.Linear(ff, w), nn.Dropout(0.0))

        def forward(self, r, memory):
            m = self.memory_norm(memory)
            r = r + self.attention(self.query_norm(r), m, m, need_weights=False)[0]
            return r + self.feedforward(self.feedforward_norm(r))

    class JointHead(nn.Module):
        def __init__(self, hidden_size, width, routing_layers, layers, heads, feedforward, dropout=0.0):
            super().__init__()
            h, w = hidden_size, width
            self.hidden_norm = nn.LayerNorm(h)
            for name in ("memory", "question", "option_question", "global", "option_context",
                         "option_lexical"):
                setattr(self, name + "_projection", nn.Linear(h, w, bias=False))
            self.type_embedding = nn.Embedding(3, w)
            self.evidence_layers = nn.ModuleList(EvidenceLayer(w, heads, feedforward)
                                                 for _ in range(routing_layers))
            self.option_summary_norm = nn.LayerNorm(w)
            self.layers = nn.ModuleList(
                nn.TransformerDecoderLayer(w, heads, feedforward, dropout=dropout, activation="gelu",
                                           batch_first=True, norm_first=True) for _ in range(layers))
            self.field_norm, self.option_norm = nn.LayerNorm(w), nn.LayerNorm(w)
            self.residual_scorer = nn.Sequential(nn.Linear(4 * w, w), nn.GELU(), nn.Dropout(dropout),
                                                 nn.Linear(w, 1))
            self.prior_logit_scale = nn.Parameter(torch.zeros(()))
            self.joint_logit_scale = nn.Parameter(torch.zeros(()))
            self.residual_gate = nn.Parameter(torch.zeros(()))

        def forward(self, hidden, ids, table, questions, arm=None):
            """hidden [T, H]; table: the lexical rows. Returns logits [O] and the intermediates."""
            x = self.hidden_norm(hidden)
            memory = self.memory_projection(x)[None]
            g = x[-1]
            late = 1 if arm == "spans_late" else 0
            spans = [[a + late, b + late] for q in questions for a, b in (o["span"] for o in q["options"])]
            own = torch.tensor([i for i, q in enumerate(questions) for _ in q["options"]])
            if arm == "membership_rotated":
                own = own.roll(1)            # own'(o) = own(o - 1), the first takes the last's
            q_vec = torch.stack([x[q["span"][0] + late:q["span"][1] + late].mean(0) for q in questions])
            context = torch.stack([x[a:b].mean(0) for a, b in spans])
            lexical = torch.stack([table[ids[a:b]].mean(0) for a, b in spans])
            if arm == "lexical_zero":
                lexical = torch.zeros_like(lexical)

            r = (self.option_context_projection(context) + self.option_lexical_projection(lexical)
                 + self.option_question_projection(q_vec[own]))[None]
            for layer in self.evidence_layers:
                r = layer(r, memory)
            r = r[0]

            base = self.question_projection(q_vec)
            fields = []
            for i, q in enumerate(questions):
                mine = r[own == i]
                w = torch.softmax(mine @ base[i] / math.sqrt(base.shape[1]), 0)
                fields.append(base[i] + self.option_summary_norm(w @ mine) + self.global_projection(g)
                              + self.type_embedding.weight[TYPES[q["type"]]])
            f = torch.stack(fields)[None]
            for layer in self.layers:
                f = layer(f, memory)
            f = f[0]

            fn, on = self.field_norm(f)[own], self.option_norm(r)
            anchor = F.normalize(q_vec + g, dim=-1, eps=1e-12)[own]
            clamp = math.log(100.0)
            prior = (self.prior_logit_scale.clamp(max=clamp).exp()
                     * (F.normalize(lexical, dim=-1, eps=1e-12) * anchor).sum(-1))
            cos = (F.normalize(fn, dim=-1, eps=1e-8) * F.normalize(on, dim=-1, eps=1e-8)).sum(-1)
            residual = self.residual_scorer(torch.cat([fn, on, fn * on, (fn - on).abs()], -1))[:, 0]
            joint = self.joint_logit_scale.clamp(max=clamp).exp() * cos + residual
            logits = prior + torch.sigmoid(self.residual_gate) * joint
            return dict(logits=logits, memory=memory[0], R=r, F=f, prior=prior, joint=joint)

    config = json.load(open(os.path.join(folder, "joint_head_config.json")))
    head = JointHead(**config)
    state = {k: v.float() for k, v in load_file(os.path.join(folder, "joint_head.safetensors")).items()}
    head.load_state_dict(state, strict=True)
    return head.eval()


class Model:
    """A toy folder ready to run."""

    def __init__(self, folder):
        _torch()
        from transformers import Qwen3_5ForConditionalGeneration
        from transformers.utils import logging
        logging.set_verbosity_error()
        torch.manual_seed(0)
        self.folder = folder
        net = Qwen3_5ForConditionalGeneration.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager").eval()
        self.net = net
        self.text = net.model.language_model
        self.table = net.lm_head.weight      # the embedding table itself when tied
        self.embedding = self.text.embed_tokens.weight
        self.head = joint_head(folder)

    def hidden(self, ids):
        """[embedding rows, the stream after each layer, ...] and the final normed rows, each [T, H]."""
        stream = []
        hooks = [self.text.layers[0].register_forward_pre_hook(
            lambda m, a, k=None: stream.append(a[0][0].clone()))]
        for layer in self.text.layers:
            hooks.append(layer.register_forward_hook(
                lambda m, a, out: stream.append((out[0] if isinstance(out, tuple) else out)[0].clone())))
        final = self.text(input_ids=torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long),
                          use_cache=False).last_hidden_state[0]
        for h in hooks:
            h.remove()
        assert len(stream) == len(self.text.layers) + 1
        return stream, final

    def run(self, request, policy="reference", max_length=16384, max_state_tokens=None, arms=()):
        encoder = Encoder(os.path.join(self.folder, "tokenizer.json"), policy)
        record = encoder.encode(request, max_length, max_state_tokens)
        ids = torch.tensor(record["ids"])
        stream, final = self.hidden(record["ids"])
        out = self.head(final, ids, self.table, record["questions"])
        assert torch.isfinite(out["logits"]).all()
        probs, at = [], 0
        for q in record["questions"]:
            n = len(q["options"])
            probs.append([float(p) for p in torch.softmax(out["logits"][at:at + n], 0)])
            at += n
        record.update(out, stream=stream, final=final, probs=probs, arms={})
        for arm in arms:
            table = self.embedding if arm == "embedding_rows" else self.table
            record["arms"][arm] = self.head(final, ids, table, record["questions"], arm)["logits"]
        record["answer"] = answer(request, record["questions"], probs, len(record["ids"]))
        return record


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("toy", nargs="?", help="checkpoint folder")
    ap.add_argument("request", nargs="?", help="request file, - for standard input")
    ap.add_argument("--policy", default="reference", choices=["reference", "plain"])
    ap.add_argument("--max-length", type=int, default=16384)
    ap.add_argument("--max-state-tokens", type=int)
    ap.add_argument("--check-vectors", metavar="FILE")
    ap.add_argument("--tokenizer", metavar="FILE", help="tokenizer.json for --check-vectors; default: "
                    "the release's, rebuilt")
    args = ap.parse_args()
    if args.check_vectors:
        import vectors
        return vectors.check(args.check_vectors, args.tokenizer)
    if not args.toy or not args.request:
        ap.error("a folder and a request are needed")
    text = sys.stdin.read() if args.request == "-" else open(args.request, encoding="utf-8").read()
    try:
        print(Model(args.toy).run(json.loads(text), args.policy, args.max_length,
                                  args.max_state_tokens)["answer"])
    except ValueError as e:
        print(e, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
