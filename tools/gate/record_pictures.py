#!/usr/bin/env python3
"""Turns recorded cases of testdata/vision into a fixture of the gate with pictures beside it:
testdata/gate/toy-vision-pictures.json and the files of testdata/gate/pictures/.

As published fixtures do, it names the pictures and does not hold them; unlike them it states their
SHA-256, so that the gate can tell a wrong file from a wrong tower.
"""
import base64
import hashlib
import json
import os

from record_fixture import ROOT, questions_of

CASES = ["images-1", "images-2", "images-3", "images-0"]


def main():
    out = os.path.join(ROOT, "testdata", "gate")
    os.makedirs(os.path.join(out, "pictures"), exist_ok=True)
    records = []
    for name in CASES:
        case = json.load(open(os.path.join(ROOT, "testdata", "vision", f"toy-vision.{name}.json"), encoding="utf-8"))
        request = json.loads(case["request"])
        files, hashes = [], []
        for url in request.pop("images"):
            raw = base64.b64decode(url.split(",", 1)[1])
            hashes.append(hashlib.sha256(raw).hexdigest())
            files.append(hashes[-1][:8] + ".png")
            with open(os.path.join(out, "pictures", files[-1]), "wb") as f:
                f.write(raw)
        assert not request.pop("videos")
        tokens = sum(t * h * w // 4 for t, h, w in case["grids"])
        records.append(dict(id=f"toy-vision.{name}", arm="image" if files else "text", source="testdata/vision",
                            request=request, tokens=len(case["ids"]), n_image_tokens=tokens, image_files=files,
                            image_sha256=hashes, state_tokens=case["tokens"]["state"], ids=case["ids"],
                            questions=questions_of(case), response=json.loads(case["answer"])))
    with open(os.path.join(out, "toy-vision-pictures.json"), "w", encoding="utf-8") as f:
        f.write('{"schema": "coreai-clef-flash-fixtures/1",\n"model": "toy-vision",\n"records": [\n')
        f.write(",\n".join(json.dumps(r, ensure_ascii=False) for r in records))
        f.write("\n]}\n")
    print(f"{len(records)} runs, {sum(len(r['image_files']) for r in records)} pictures")


if __name__ == "__main__":
    main()
