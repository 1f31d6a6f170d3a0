#!/usr/bin/env python3
"""Records the goldens testdata/vision/ of records with pictures and videos; the format is in
testdata/README.md.

Pictures pass the processor classes of transformers (torchvision backend) as the vendor's code calls
them: all media of a record in one text of its own, whose ids go between prefix and state. Tower,
positions and backbone are transformers' own; every record runs alone in float32 on one thread.

The pictures are drawn here and stand in the request as PNG data URLs, so a golden reaches from the
request's bytes to the probabilities; the uint8 pixels after resizing stand in the tensors, so the
tower can be compared without a decoder.
"""
import argparse
import base64
import io
import json
import os
import sys

import numpy as np
from PIL import Image

import cases
import reference
from record import floats, margin, write_json
from reference import Encoder, Model

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TOYS = ["toy-vision", "toy-vision-72"]
START, END, IMAGE, VIDEO = "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"


# ---- pictures --------------------------------------------------------------------------------------

def picture(seed, width, height):
    """Waves, a few boxes and a little noise: nothing flat, and small as a PNG."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    out = np.empty((height, width, 3))
    for c in range(3):
        fx, fy, phase = rng.uniform(-0.2, 0.2), rng.uniform(-0.2, 0.2), rng.uniform(0, 6)
        out[..., c] = 127 + 100 * np.sin(fx * x + fy * y + phase)
    for _ in range(4):
        x0, y0 = rng.integers(0, width), rng.integers(0, height)
        out[y0:y0 + max(height // 3, 1), x0:x0 + max(width // 4, 1)] = rng.integers(0, 256, 3)
    return Image.fromarray((np.clip(out, 0, 255) // 8 * 8).astype(np.uint8))


def frames(seed, n, width, height):
    """Frame i: a box that moves over a fixed ground."""
    ground = np.asarray(picture(seed, width, height)) // 64 * 64
    out = []
    for i in range(n):
        f = ground.copy()
        x, y = (i * 5) % width, (i * 3) % height
        f[y:y + height // 3, x:x + width // 3] = [(i * 37) % 256, (i * 91) % 256, 255 - (i * 17) % 256]
        out.append(Image.fromarray(f))
    return out


def data_url(image):
    raw = io.BytesIO()
    image.save(raw, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(raw.getvalue()).decode()


SIZES = [(96, 64), (64, 64), (160, 32), (70, 50), (32, 128), (100, 140), (64, 96), (1, 1), (200, 33)]


def build(name):
    """(state, images, videos, media_kwargs) of a case."""
    one = lambda k: picture(k, *SIZES[k])
    if name.startswith("images-"):
        return "What is shown?", [one(k) for k in range(int(name[7:]))], [], {}
    if name == "video-all-5":
        return "Look.", [], [frames(7, 5, 96, 64)], dict(do_sample_frames=False)
    if name.startswith("video-"):
        n = int(name[6:])
        size = (64, 96) if n < 100 else (64, 32)
        return "What moves?", [], [frames(100 + n, n, *size)], {}
    if name == "videos-2":
        return "Compare.", [], [frames(8, 3, 64, 64), frames(9, 6, 96, 64)], {}
    if name == "mix":
        return dict(order=4711, note="see both"), [one(0), one(3)], [frames(10, 4, 96, 64)], {}
    if name == "long-state":
        return cases.prose(5, 88), [one(0)], [], {}
    if name == "size":
        return "Small.", [picture(20, 300, 200)], [], dict(size=dict(shortest_edge=4096, longest_edge=16384))
    raise KeyError(name)


def cases_of(toy):
    names = ["images-0", "images-1", "images-3", "images-9", "video-1", "video-2", "video-5", "mix"]
    if toy == "toy-vision":
        names += ["images-2", "video-3", "video-8", "video-41", "video-300", "videos-2", "video-all-5",
                  "long-state", "size"]
    return names


def request_text(state, images, videos, kwargs):
    text = json.loads(cases.basic(state))
    media = dict(images=[data_url(i) for i in images], videos=[[data_url(f) for f in v] for v in videos])
    if kwargs:
        media["media_kwargs"] = kwargs
    return cases.dump({**text, **media})


# ---- the run ---------------------------------------------------------------------------------------

def processor_of(folder):
    """The processor from its classes. The tokenizer is the toy's own file: the class that the library would
    choose for it brings a split pattern of its own, which none of the media's words meets."""
    from transformers import (Qwen2VLImageProcessor, Qwen2TokenizerFast, Qwen3VLProcessor,
                              Qwen3VLVideoProcessor)
    doc = json.load(open(os.path.join(folder, "processor_config.json")))
    image = {k: v for k, v in doc["image_processor"].items() if k != "image_processor_type"}
    video = {k: v for k, v in doc["video_processor"].items() if k != "video_processor_type"}
    return Qwen3VLProcessor(image_processor=Qwen2VLImageProcessor(**image),
                            tokenizer=Qwen2TokenizerFast.from_pretrained(folder),
                            video_processor=Qwen3VLVideoProcessor(**video))


def media_of(processor, encoder, images, videos, kwargs):
    """Ids, types, pixel matrices and grids of the media text; empty when there are none."""
    if not images and not videos:
        return dict(ids=[], types=[], items=[], text="")
    text = (START + IMAGE + END) * len(images) + (START + VIDEO + END) * len(videos) + "\n"
    given = {}
    if images:
        given["images"] = images
    if videos:
        given["videos"] = [np.stack([np.asarray(f) for f in v]) for v in videos]
    out = processor(text=[text], return_tensors="pt", **given, **kwargs)
    ids = out["input_ids"][0].tolist()
    types = out["mm_token_type_ids"][0].tolist()
    shown = processor.tokenizer.decode(ids)
    assert encoder.own(shown) == ids, "the processor's tokenizer and the toy's differ"
    items = []
    for kind, grids, pixels in (("image", "image_grid_thw", "pixel_values"),
                                ("video", "video_grid_thw", "pixel_values_videos")):
        if grids not in out:
            continue
        at = 0
        for grid in out[grids].tolist():
            n = grid[0] * grid[1] * grid[2]
            items.append(dict(kind=kind, grid=grid, patches=out[pixels][at:at + n]))
            at += n
        assert at == len(out[pixels])
    return dict(ids=ids, types=types, items=items, text=shown)


def rgb_of(item, patch=16, merge=2):
    """The uint8 pixels [frames, H, W, 3] behind normalised patch rows; checked by normalising them again."""
    t, h, w = item["grid"]
    rows = item["patches"].numpy()
    u8 = np.rint(rows * 127.5 + 127.5)
    assert (u8 >= 0).all() and (u8 <= 255).all()
    again = (u8.astype(np.float32) - np.float32(127.5)) / np.float32(127.5)
    assert np.abs(again - rows).max() < 1e-6
    u8 = u8.astype(np.uint8).reshape(t, h // merge, w // merge, merge, merge, 3, 2, patch, patch)
    u8 = u8.transpose(0, 6, 1, 3, 7, 2, 4, 8, 5).reshape(2 * t, h * patch, w * patch, 3)
    if item["kind"] == "image":
        assert (u8[0] == u8[1]).all()
        u8 = u8[:1]
    return np.ascontiguousarray(u8)


def tower(net, item):
    """Embedded rows, rows after each block, merged rows of one item."""
    torch, visual, seen = reference.torch, net.model.visual, []
    hooks = [visual.blocks[0].register_forward_pre_hook(lambda m, a: seen.append(a[0].clone()))]
    hooks += [b.register_forward_hook(lambda m, a, out: seen.append(out.clone())) for b in visual.blocks]
    out = visual(item["patches"], grid_thw=torch.tensor([item["grid"]]))
    for h in hooks:
        h.remove()
    return seen, out.pooler_output


def raster(item):
    """The item with its patches in raster order: a fault that real ports have had."""
    t, h, w = item["grid"]
    blocks = reference.torch.arange(t * h * w).reshape(t, h // 2, w // 2, 2, 2)
    order = blocks.transpose(2, 3).reshape(-1)      # by row and column: the row of the matrix
    return dict(item, patches=item["patches"][order])


def hidden(model, ids, types, items, merged, positions):
    """[embedding rows with the pictures laid in] and the final rows, as the multimodal entry computes them."""
    torch, net = reference.torch, model.net
    embeds = net.model.get_input_embeddings()(torch.tensor([ids])).clone()
    rows = {1: [m for i, m in zip(items, merged) if i["kind"] == "image"],
            2: [m for i, m in zip(items, merged) if i["kind"] == "video"]}
    for kind, list_ in rows.items():
        mask = torch.tensor([types]) == kind
        if list_:
            embeds[mask] = torch.cat(list_)
        else:
            assert not mask.any()
    final = model.text(inputs_embeds=embeds, position_ids=positions, use_cache=False,
                       attention_mask=torch.ones(1, len(ids), dtype=torch.long)).last_hidden_state[0]
    return embeds[0], final


def grids(items, kind):
    list_ = [i["grid"] for i in items if i["kind"] == kind]
    return reference.torch.tensor(list_) if list_ else None


def jump_positions(types, items):
    """The rule of the reference with the jump behind a picture one too long."""
    torch = reference.torch
    todo = {1: [i["grid"][1:] for i in items if i["kind"] == "image"],
            2: [i["grid"][1:] for i in items if i["kind"] == "video" for _ in range(i["grid"][0])]}
    out, cur, at = [], 0, 0
    while at < len(types):
        end = at
        while end < len(types) and types[end] == types[at]:
            end += 1
        if types[at] == 0:
            out += [(cur + k,) * 3 for k in range(end - at)]
            cur += end - at
        else:
            h, w = (x // 2 for x in todo[types[at]].pop(0))
            out += [(cur, cur + k // w, cur + k % w) for k in range(end - at)]
            cur += max(h, w) + 1
        at = end
    return torch.tensor(out).T[:, None]


def full_forward(model, ids, types, items):
    torch = reference.torch
    given = dict(input_ids=torch.tensor([ids]), mm_token_type_ids=torch.tensor([types]), use_cache=False,
                 attention_mask=torch.ones(1, len(ids), dtype=torch.long))
    for kind, grid, pixels in (("image", "image_grid_thw", "pixel_values"),
                               ("video", "video_grid_thw", "pixel_values_videos")):
        if grids(items, kind) is not None:
            given[grid] = grids(items, kind)
            given[pixels] = torch.cat([i["patches"] for i in items if i["kind"] == kind])
    return model.net.model(**given).last_hidden_state[0]


def record_case(model, processor, toy, name, out):
    from safetensors.numpy import save_file
    torch = reference.torch
    encoder = Encoder(os.path.join(model.folder, "tokenizer.json"), "plain")
    state, images, videos, kwargs = build(name)
    text = request_text(state, images, videos, kwargs)
    request = json.loads(text)
    media = media_of(processor, encoder, images, videos, kwargs)
    items = media["items"]
    record = encoder.encode(request, media_ids=media["ids"])
    ids, before = record["ids"], record["tokens"]["prefix"]
    types = [0] * before + media["types"] + [0] * (len(ids) - before - len(media["types"]))
    table = torch.tensor(ids)

    towers = [tower(model.net, i) for i in items]
    merged = [m for _, m in towers]
    plain = torch.arange(len(ids))[None, None].expand(3, 1, -1)
    positions = plain
    if items:
        positions, _ = model.net.model.get_rope_index(
            table[None], torch.tensor([types]), grids(items, "image"), grids(items, "video"))
    embeds, final = hidden(model, ids, types, items, merged, positions)
    if items:
        far = (full_forward(model, ids, types, items) - final).abs().max()
        assert far < 1e-4, far

    def logits_of(rows):
        return model.head(rows, table, model.table, record["questions"])

    result = logits_of(final)
    assert torch.isfinite(result["logits"]).all()
    probs, at = [], 0
    for q in record["questions"]:
        n = len(q["options"])
        probs.append([float(p) for p in torch.softmax(result["logits"][at:at + n], 0)])
        at += n
    doc = dict(toy=toy, case=name, request=text, media=media["text"], ids=ids, tokens=record["tokens"],
               grids=[i["grid"] for i in items], kinds=[i["kind"] for i in items],
               questions=record["questions"], logits=floats(result["logits"]),
               probs=[p for q in probs for p in q], margins=[margin(p) for p in probs],
               answer=reference.answer(request, record["questions"], probs, len(ids)))
    if name in ("images-1", "images-3", "mix", "video-5"):
        zero = [torch.zeros_like(m) for m in merged]
        wrong = [tower(model.net, raster(i))[1] for i in items]
        faults = dict(rows_zeroed=(zero, positions), raster_order=(wrong, positions),
                      swapped_positions=(merged, positions[[0, 2, 1]]),
                      long_jump=(merged, jump_positions(types, items)))
        doc["arms"] = {arm: floats(logits_of(hidden(model, ids, types, items, m, p)[1])["logits"])
                       for arm, (m, p) in faults.items()}
        moved = {a: max(abs(x - y) for x, y in zip(v, doc["logits"])) for a, v in doc["arms"].items()}
        print("   arms move a logit by", {a: round(m, 4) for a, m in moved.items()})
    base = os.path.join(out, f"{toy}.{name}")
    write_json(base + ".json", doc)

    keep = np.arange(len(ids)) if len(ids) <= 300 else np.array(
        sorted({0, before, before + 1, len(ids) // 2, len(ids) - 1} | set(range(before, before + 40))))
    tensors = dict(rows=keep.astype(np.int32), positions=positions[:, 0].numpy().astype(np.int32))
    tensors["hidden.0"] = embeds.numpy()[keep]
    tensors["hidden.final"] = final.numpy()[keep]
    whole = name in ("images-1", "images-3", "video-2", "video-5", "mix")
    for k, (item, (seen, rows)) in enumerate(zip(items, towers)):
        tensors[f"rgb.{k}"] = rgb_of(item)
        tensors[f"merged.{k}"] = rows.numpy()
        for b, x in enumerate(seen if whole else []):
            tensors[f"tower.{k}.{b}"] = x.numpy()
    save_file({k: np.ascontiguousarray(v) for k, v in tensors.items()}, base + ".safetensors")
    os.chmod(base + ".safetensors", 0o644)
    return (f"{toy}.{name}: {len(ids)} tokens, {record['tokens']['media']} of media, grids {doc['grids']}, margins "
            + " ".join("%.3f" % m for m in doc["margins"]))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--out", default=os.path.join(ROOT, "testdata", "vision"))
    ap.add_argument("--toy", action="append", help="only this toy (repeatable)")
    ap.add_argument("--case", action="append", help="only this case (repeatable)")
    args = ap.parse_args()
    os.makedirs(args.out, exist_ok=True)
    for toy in args.toy or TOYS:
        folder = os.path.join(ROOT, "testdata", toy)
        model = Model(folder)
        processor = processor_of(folder)
        for name in cases_of(toy):
            if not args.case or name in args.case:
                print(record_case(model, processor, toy, name, args.out), flush=True)
    with open(os.path.join(args.out, "cases.txt"), "w") as f:
        f.writelines(f"{n[:-5]}\n" for n in sorted(os.listdir(args.out))
                     if n.startswith("toy-") and n.endswith(".json"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
