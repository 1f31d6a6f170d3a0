#!/usr/bin/env python3
"""Turns recorded cases of testdata/golden into fixtures of the gate, testdata/gate/TOY-SET.json.

The numbers are the reference's (tools/oracle/record.py, torch in float32), copied. Two sets a toy: `chosen` for choosing a
format, `heldout` for accepting it, which no choice may look at. Their cases do not overlap.
"""
import argparse
import json
import os

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOYS = ["toy-r2", "toy-real-heads", "toy-two-layers"]
SETS = {"chosen": ["basic", "choices", "scores", "structured", "minimal", "tiny-128"],
        "heldout": ["basic-other", "noul", "instructions", "repeated", "unicode", "short", "len-512"]}


def questions_of(case):
    out, at = [], 0
    for q in case["questions"]:
        n = len(q["options"])
        probs = case["probs"][at:at + n]
        top = sorted(probs, reverse=True)
        margin = top[0] - top[1] if n > 1 else 1.0
        best = max(range(n), key=lambda i: probs[i])
        out.append(dict(question_id=q["id"], type=q["type"], question_span=q["span"],
                        option_spans=[o["span"] for o in q["options"]],
                        option_ids=[o["id"] for o in q["options"]],
                        logits=case["logits"][at:at + n], probs=probs, argmax_index=best,
                        argmax_id=q["options"][best]["id"], top2_margin=margin, near_tie=margin <= 0.02))
        at += n
    return out


def record_of(case):
    assert case["policy"] == "reference" and case["max_length"] == 16384 and case["max_state_tokens"] is None
    return dict(id=f"{case['toy']}.{case['case']}", arm="text", source="testdata/golden",
                request=json.loads(case["request"]), tokens=len(case["ids"]), n_image_tokens=0,
                state_tokens=case["tokens"]["state"], ids=case["ids"], questions=questions_of(case),
                response=json.loads(case["answer"]))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--out", default=os.path.join(ROOT, "testdata", "gate"))
    args = ap.parse_args()
    os.makedirs(args.out, exist_ok=True)
    for toy in TOYS:
        for name, cases in SETS.items():
            records = []
            for case in cases:
                path = os.path.join(ROOT, "testdata", "golden", f"{toy}.{case}.json")
                if os.path.exists(path):
                    records.append(record_of(json.load(open(path, encoding="utf-8"))))
            with open(os.path.join(args.out, f"{toy}-{name}.json"), "w", encoding="utf-8") as f:
                f.write('{"schema": "coreai-clef-flash-fixtures/1",\n"model": ' + json.dumps(toy) + ',\n"records": [\n')
                f.write(",\n".join(json.dumps(r, ensure_ascii=False) for r in records))
                f.write("\n]}\n")
            margins = [q["top2_margin"] for r in records for q in r["questions"]]
            print(f"{toy}-{name}: {len(records)} runs, {len(margins)} questions, "
                  f"{sum(m <= 0.02 for m in margins)} near ties")


if __name__ == "__main__":
    main()
