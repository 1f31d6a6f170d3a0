#!/usr/bin/env python3
"""Makes the pictures of testdata/media/ and records what the reference makes of them.

    build/oracle-venv/bin/python tools/oracle/record_media.py PHOTO [LATER]

PHOTO is grace_hopper.jpg of the Debian package python-matplotlib-data (a portrait by the United States
Navy, in the public domain); a smaller copy of it goes into several files. LATER is a wheel of transformers
5.15 or later: its smart_resize for videos is recorded beside that of 5.10.2. Without it the recorded
values of that function are kept.

What comes out (testdata/README.md has the forms):
  *.png *.jpg *.webp   the pictures, and full goldens NAME.rgb.png of what is stored with loss
  images.json          for every picture Pillow's RGB, and per way of processing the grid, the resized bytes
                       and the patch rows, as SHA-256
  resize.json          sizes and both libraries' results, on pictures that a formula makes
  sizes.json           smart_resize of images and of videos
  exact.avi rising.mp4 clips for builds with video, made by Debian's ffmpeg
  videos.json          frames taken, timestamps, and whole videos through the processor
"""
import ast
import hashlib
import io
import json
import math
import os
import random
import struct
import subprocess
import sys
import zipfile
import zlib

import numpy as np
import torch
from PIL import Image, ImageOps
from torchvision.transforms.v2 import functional as F
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor, smart_resize
from transformers.models.qwen3_vl.processing_qwen3_vl import Qwen3VLProcessor
from transformers.models.qwen3_vl.video_processing_qwen3_vl import Qwen3VLVideoProcessor
from transformers.models.qwen3_vl.video_processing_qwen3_vl import smart_resize as smart_resize_video
from transformers.video_utils import VideoMetadata

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OUT = os.path.join(ROOT, "testdata", "media")
COMMON = dict(patch_size=16, temporal_patch_size=2, merge_size=2, image_mean=[0.5] * 3, image_std=[0.5] * 3)
IMAGE_SIZE = {"shortest_edge": 65536, "longest_edge": 16777216}
VIDEO_SIZE = {"shortest_edge": 4096, "longest_edge": 25165824}
Image.MAX_IMAGE_PIXELS = None
torch.set_num_threads(1)


def sha(data):
    return hashlib.sha256(data).hexdigest()


def write_rows(name, **members):
    """One row a line, so that a difference can be read."""
    with open(os.path.join(OUT, name), "w", encoding="utf-8") as f:
        f.write("{\n")
        for i, (key, value) in enumerate(members.items()):
            if isinstance(value, list):
                body = "[\n" + ",\n".join("  " + json.dumps(v) for v in value) + "\n]"
            else:
                body = json.dumps(value)
            f.write(f"{json.dumps(key)}: {body}{',' if i + 1 < len(members) else ''}\n")
        f.write("}\n")


# ---- pictures -----------------------------------------------------------------------------------

def noise(h, w, c, seed, top=256):
    """The formula that the C tests use too: a linear congruential generator's third byte."""
    out = np.empty(h * w * c, np.int64)
    x = seed
    for i in range(out.size):
        x = (x * 1664525 + 1013904223) % 2**32
        out[i] = x >> 16
    return (out % top).reshape(h, w, c)


def smooth(h, w):
    y, x = np.mgrid[0:h, 0:w]
    return np.stack([x * 255 // max(w - 1, 1), y * 255 // max(h - 1, 1), (x * 3 + y * 5) % 256], -1).astype(np.uint8)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def pack_rows(samples, depth):
    """Filter type 0 rows of [h, w, c] samples."""
    h, w, c = samples.shape
    rows = []
    for row in samples.reshape(h, w * c):
        if depth == 16:
            body = row.astype(">u2").tobytes()
        elif depth == 8:
            body = row.astype(np.uint8).tobytes()
        else:
            bits = "".join(format(v, f"0{depth}b") for v in row)
            bits += "0" * (-len(bits) % 8)
            body = bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8))
        rows.append(b"\0" + body)
    return b"".join(rows)


ADAM7 = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]


def png(samples, color, depth, interlace=False, before=b"", after=b""):
    """A PNG file of [h, w, c] samples; Pillow does not write every depth and never interlaces."""
    h, w, _ = samples.shape
    if interlace:
        parts = [samples[y::dy, x::dx] for y, x, dy, dx in ADAM7]
        data = b"".join(pack_rows(p, depth) for p in parts if p.size)
    else:
        data = pack_rows(samples, depth)
    head = struct.pack(">IIBBBBB", w, h, depth, color, 0, 0, int(interlace))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + before + chunk(b"IDAT", zlib.compress(data, 9)) + after +
            chunk(b"IEND", b""))


def saved(image, format, **options):
    out = io.BytesIO()
    image.save(out, format, **options)
    return out.getvalue()


def exif(orientation, big=False):
    mark, e = (b"MM\0*", ">") if big else (b"II*\0", "<")
    return mark + struct.pack(e + "IHHHIHHI", 8, 1, 0x0112, 3, 1, orientation, 0, 0)


def ycck(image):
    """A JPEG whose four channels are stored as Y, Cb, Cr, K. Pillow stores C, M, Y, K inverted and untouched,
    so it is given inverted Y, Cb, Cr, K, and the Adobe marker is told of the transform."""
    cmyk = np.asarray(image.convert("CMYK"))
    inverted = Image.fromarray(255 - cmyk[..., :3], "RGB").convert("YCbCr")
    planes = np.dstack([np.asarray(inverted), 255 - cmyk[..., 3] // 2])
    data = saved(Image.fromarray(255 - planes.astype(np.uint8), "CMYK"), "JPEG", quality=92)
    at = data.index(b"Adobe") + 11
    assert data[at] == 0
    return data[:at] + b"\2" + data[at + 1:]


def cut_scans(image):
    return saved(image, "JPEG", quality=85, progressive=True)


def pictures(photo):
    """name -> bytes, in the order of images.json."""
    files = {}
    palette = bytes(noise(1, 256, 3, 11).astype(np.uint8).tobytes())
    for depth in (1, 2, 4, 8, 16):
        files[f"gray{depth}.png"] = png(noise(37, 61, 1, depth, 2**depth), 0, depth)
    files["gray16_low.png"] = png(noise(20, 33, 1, 3, 300), 0, 16)
    for depth in (8, 16):
        files[f"gray_alpha{depth}.png"] = png(noise(23, 19, 2, depth, 2**depth), 4, depth)
        files[f"rgb{depth}.png"] = png(noise(29, 31, 3, depth, 2**depth), 2, depth)
        files[f"rgba{depth}.png"] = png(noise(31, 29, 4, depth, 2**depth), 6, depth)
    for depth in (1, 2, 4, 8):
        files[f"palette{depth}.png"] = png(noise(21, 27, 1, depth, 2**depth), 3, depth,
                                           before=chunk(b"PLTE", palette[:3 * 2**depth]))
    files["palette_short.png"] = png(noise(17, 18, 1, 5, 256), 3, 8, before=chunk(b"PLTE", palette[:30]))
    files["palette_trns.png"] = png(noise(17, 18, 1, 5, 16), 3, 4, before=chunk(b"PLTE", palette[:48]) +
                                    chunk(b"tRNS", bytes(range(0, 160, 10))))
    files["gray_trns.png"] = png(noise(12, 13, 1, 6, 4), 0, 8, before=chunk(b"tRNS", b"\0\2"))
    files["rgb_trns.png"] = png(noise(12, 13, 3, 6, 3), 2, 8, before=chunk(b"tRNS", b"\0\1\0\1\0\1"))
    for name, color, depth, c in (("gray1", 0, 1, 1), ("gray16", 0, 16, 1), ("palette4", 3, 4, 1), ("rgb8", 2, 8, 3),
                                  ("rgba16", 6, 16, 4)):
        files[f"{name}_interlaced.png"] = png(noise(13, 11, c, 7, 2**depth), color, depth, interlace=True,
                                              before=chunk(b"PLTE", palette[:48]) if color == 3 else b"")
    files["gamma_profile.png"] = png(noise(9, 10, 3, 8), 2, 8, before=chunk(b"gAMA", struct.pack(">I", 100000)) +
                                     chunk(b"iCCP", b"x\0\0" + zlib.compress(b"no profile")) +
                                     chunk(b"tEXt", b"Comment\0" + b"x" * 300))
    frames = [Image.fromarray(noise(14, 15, 3, s).astype(np.uint8)) for s in (21, 22)]
    files["animated.png"] = saved(frames[0], "PNG", save_all=True, append_images=frames[1:], duration=50)
    files["turned.png"] = png(noise(16, 24, 3, 9), 2, 8, after=chunk(b"eXIf", exif(8, big=True)))
    for h, w in ((1, 1), (1, 200), (200, 1), (3, 5), (31, 33), (239, 239), (112, 343), (16, 3000), (4000, 30),
                 (30, 4000), (255, 257), (256, 256), (448, 448), (480, 640), (15, 2999), (600, 33)):
        files[f"smooth_{w}x{h}.png"] = saved(Image.fromarray(smooth(h, w)), "PNG", optimize=True)
    files["noise_200x300.png"] = saved(Image.fromarray(noise(300, 200, 3, 4).astype(np.uint8) // 64 * 85), "PNG",
                                       optimize=True)
    files["ratio_201x1.png"] = saved(Image.fromarray(smooth(1, 201)), "PNG")
    files["photo.png"] = saved(photo, "PNG", optimize=True)
    small = photo.crop((60, 20, 121, 57))
    for name, options in (("420", {}), ("422", dict(subsampling=1)), ("444", dict(subsampling=0)),
                          ("progressive", dict(progressive=True)), ("restart", dict(restart_marker_blocks=2)),
                          ("rough", dict(quality=15)), ("rgb", dict(keep_rgb=True))):
        files[f"{name}.jpg"] = saved(small, "JPEG", **{"quality": 90, **options})
    files["gray.jpg"] = saved(small.convert("L"), "JPEG", quality=90)
    files["cmyk.jpg"] = saved(small.convert("CMYK"), "JPEG", quality=90)
    files["ycck.jpg"] = ycck(small)
    files["photo.jpg"] = saved(photo, "JPEG", quality=88)
    files["photo_progressive.jpg"] = cut_scans(photo)
    files["tail.jpg"] = files["420.jpg"] + b"what some cameras leave behind"
    for k in range(1, 9):
        files[f"turned{k}.jpg"] = saved(small.crop((0, 0, 24, 16)), "JPEG", quality=95, subsampling=0,
                                        exif=b"Exif\0\0" + exif(k, big=k % 2 == 0))
    files["lossless.webp"] = saved(small, "WEBP", lossless=True)
    files["lossy.webp"] = saved(small, "WEBP", quality=70)
    alpha = small.copy().convert("RGBA")
    alpha.putalpha(Image.fromarray(noise(37, 61, 1, 2).astype(np.uint8)[..., 0]))
    files["alpha.webp"] = saved(alpha, "WEBP", quality=80)
    files["alpha_lossless.webp"] = saved(alpha, "WEBP", lossless=True, exact=True)
    files["animated.webp"] = saved(frames[0], "WEBP", save_all=True, append_images=frames[1:], lossless=True)
    files["turned.webp"] = saved(small, "WEBP", lossless=True, exif=b"Exif\0\0" + exif(6))
    files["photo.webp"] = saved(photo, "WEBP", quality=82)
    return files


# ---- the reference ------------------------------------------------------------------------------

def spied(processor):
    """Keeps what `resize` gives, the reference's uint8 pixels."""
    resize = processor.resize

    def spy(*args, **kwargs):
        processor.seen = resize(*args, **kwargs)
        return processor.seen
    processor.resize = spy
    return processor


TV = spied(Qwen2VLImageProcessor(size=dict(IMAGE_SIZE), **COMMON))
PIL = spied(Qwen2VLImageProcessorPil(size=dict(IMAGE_SIZE), **COMMON))
VIDEO = spied(Qwen3VLVideoProcessor(size=dict(VIDEO_SIZE), **COMMON))


def hwc(a):
    """[..., C, H, W] of either library to bytes of [..., H, W, C]."""
    a = np.asarray(a)
    assert a.dtype == np.uint8
    return np.ascontiguousarray(np.moveaxis(a, -3, -1)).tobytes()


def processed(processor, image, tensors):
    try:
        out = processor(images=[image], return_tensors=tensors)
    except ValueError as e:
        return dict(error=str(e))
    rows = np.asarray(out["pixel_values"])
    assert rows.dtype == np.float32
    return dict(grid=np.asarray(out["image_grid_thw"])[0].tolist(), rgb=sha(hwc(processor.seen)),
                rows=sha(rows.tobytes()))


def lossy(name):
    return name.endswith(".jpg") or name in ("lossy.webp", "alpha.webp", "photo.webp")


def record_images(files):
    rows = []
    for name, data in files.items():
        with open(os.path.join(OUT, name), "wb") as f:
            f.write(data)
        opened = Image.open(io.BytesIO(data))
        rgb = opened.convert("RGB")
        row = dict(file=name, mode=opened.mode, w=rgb.width, h=rgb.height, lossy=lossy(name),
                   rgb=sha(rgb.tobytes()))
        turned = ImageOps.exif_transpose(opened).convert("RGB")
        if turned.size != rgb.size or turned.tobytes() != rgb.tobytes():
            row["turned"] = [turned.width, turned.height, sha(turned.tobytes())]
        if lossy(name):
            rgb.save(os.path.join(OUT, name + ".rgb.png"), optimize=True)
        row["native"] = processed(TV, opened, "pt")
        row["pil"] = processed(PIL, opened, "np")
        for side in (256, 448):
            row[f"g{side}"] = processed(TV, rgb.resize((side, side), Image.BICUBIC), "pt")
        rows.append(row)
    write_rows("images.json", images=rows)
    return rows


def record_resize():
    rng = random.Random(4)
    shapes = [(a, b, c, d) for a, b, c, d in (
        (1, 1, 32, 32), (5, 4, 8, 6), (8, 6, 5, 4), (33, 7, 33, 64), (7, 33, 64, 33), (64, 64, 64, 64), (200, 3, 32, 32),
        (3, 200, 32, 32), (97, 89, 32, 64), (300, 2, 64, 64), (2, 300, 64, 64), (130, 238, 64, 192), (279, 198, 32, 96),
        (120, 100, 96, 96), (60, 60, 61, 59))]
    shapes += [tuple(rng.randint(1, rng.choice((9, 40, 150))) for _ in range(2)) +
               tuple(32 * rng.randint(1, 5) for _ in range(2)) for _ in range(100)]
    rows = []
    for i, (h, w, oh, ow) in enumerate(shapes):
        top = 256 if i % 3 else 2
        a = (noise(h, w, 3, i, top) * (1 if top == 256 else 255)).astype(np.uint8)
        pillow = np.asarray(Image.fromarray(a).resize((ow, oh), Image.BICUBIC))
        t = torch.stack([F.pil_to_tensor(Image.fromarray(a))])
        aten = F.resize(t, [oh, ow], interpolation=F.InterpolationMode.BICUBIC, antialias=True)[0]
        rows.append(dict(h=h, w=w, out_h=oh, out_w=ow, seed=i, top=top, pillow=sha(pillow.tobytes()),
                         aten=sha(hwc(aten))))
    write_rows("resize.json", resize=rows)


def later_smart_resize(wheel):
    path = "transformers/models/qwen3_vl/video_processing_qwen3_vl.py"
    tree = ast.parse(zipfile.ZipFile(wheel).read(path))
    names = dict(math=math)
    body = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "smart_resize"]
    exec(compile(ast.Module(body, []), path, "exec"), names)
    return names["smart_resize"]


def tried(f, **kwargs):
    try:
        return list(f(**kwargs))
    except ValueError:
        return None


def record_sizes(wheel):
    rng = random.Random(9)
    # The traps come first: sizes whose ceilings and halves rounding noise decides.
    sides = [(1, 1), (1, 200), (200, 1), (1, 201), (201, 1), (10, 10), (10, 2000), (10, 2001), (16, 16), (48, 48),
             (80, 80), (239, 239), (112, 343), (343, 112), (224, 224), (200, 300), (480, 640), (1080, 1920),
             (3000, 4000), (20000, 20000), (65535, 65535), (33, 31), (255, 257)]
    sides += [(h, w) for h in range(1, 400) for w in range(h, 400) if trap(h, w)]
    sides += [(rng.randint(1, 3000), rng.randint(1, 3000)) for _ in range(200)]
    bounds = [(65536, 16777216)] * 3 + [(4096, 1000000), (1, 1), (300000, 300000)]
    images = []
    for i, (h, w) in enumerate(sides):
        lo, hi = bounds[i % len(bounds)] if i >= 23 else bounds[0]
        images.append(dict(h=h, w=w, min=lo, max=hi,
                           out=tried(smart_resize, height=h, width=w, factor=32, min_pixels=lo, max_pixels=hi)))
    shapes = [(5, 64, 64, 4096, 20000), (9, 64, 64, 4096, 36000), (1, 64, 64, 4096, 25165824),
              (4, 31, 64, 4096, 25165824), (3, 20, 4000, 4096, 25165824), (7, 30, 30, 4096, 25165824),
              (768, 1080, 1920, 4096, 25165824), (2, 32, 6400, 4096, 25165824), (2, 32, 6401, 4096, 25165824)]
    shapes += [(rng.randint(1, 60), rng.randint(20, 900), rng.randint(20, 900), 4096,
                rng.choice((25165824, 500000, 100000))) for _ in range(150)]
    later = later_smart_resize(wheel) if wheel else None
    path = os.path.join(OUT, "sizes.json")
    kept = None if wheel else {tuple(v[k] for k in ("n", "h", "w", "min", "max")): v["later"]
                               for v in json.load(open(path))["videos"]}
    videos = []
    for n, h, w, lo, hi in shapes:
        how = dict(num_frames=n, height=h, width=w, temporal_factor=2, factor=32, min_pixels=lo, max_pixels=hi)
        videos.append(dict(n=n, h=h, w=w, min=lo, max=hi, out=tried(smart_resize_video, **how),
                           later=tried(later, **how) if later else kept[n, h, w, lo, hi]))
    write_rows("sizes.json", images=images, videos=videos)


def trap(h, w):
    """Whether float32, or integers, would round a ceiling the other way than double does."""
    if round(h / 32) * round(w / 32) * 1024 >= 65536:
        return False
    beta = math.sqrt(65536 / (h * w))
    exact = [math.isqrt(65536 * a * 2**80 // (b * 2**10)) for a, b in ((h, w), (w, h))]  # side * beta / 32 * 2^40
    rounded = [-(-(v - 4) // 2**40) for v in exact]
    return [math.ceil(h * beta / 32), math.ceil(w * beta / 32)] != rounded


def stamps(indices, fps):
    return [f"<{t:.1f} seconds>" for t in Qwen3VLProcessor._calculate_timestamps(None, list(indices), fps, 2)]


def record_videos(files):
    samples = []
    cases = [(n, None, None, None) for n in (1, 2, 3, 4, 5, 8, 24, 41, 47, 48, 49, 300)]
    cases += [(300, 30.0, None, None), (300, 29.97, None, None), (41, 10.0, None, None), (205, 25.0, None, 41),
              (205, 10.0, 2.0, None), (100, 25.0, 0.5, None), (10, 24.0, None, 1), (10, None, None, 7),
              (3, None, None, 8), (100000, 25.0, None, None), (2000, 1.0, 30.0, None), (7, 0.3, None, None)]
    for total, source, fps, num in cases:
        about = VideoMetadata(total_num_frames=total, fps=source)
        indices = VIDEO.sample_frames(about, num_frames=num, fps=None if num else fps or 2)
        indices = [int(i) for i in indices]
        samples.append(dict(total=total, source_fps=source, fps=fps, num_frames=num, indices=indices,
                            stamps=stamps(indices, source or 24)))
    videos = []
    for name, n, h, w, kwargs in (
            ("one", 1, 64, 64, {}), ("two", 2, 40, 50, {}), ("three", 3, 33, 47, {}), ("five", 5, 64, 64, {}),
            ("eight", 8, 64, 96, {}), ("all", 41, 32, 48, dict(do_sample_frames=False)),
            ("thirty", 90, 32, 32, dict(video_metadata=[dict(total_num_frames=90, fps=30.0)])),
            ("seven of ten", 10, 48, 32, dict(num_frames=7, fps=None)),
            ("small", 4, 64, 64, dict(size=dict(shortest_edge=1024, longest_edge=9000))),
            ("told", 3, 32, 64, dict(do_sample_frames=False, video_metadata=[
                dict(total_num_frames=300, fps=25.0, frames_indices=[0, 100, 299])]))):
        frames = np.stack([noise(h, w, 3, 100 + i).astype(np.uint8) for i in range(n)])
        out = VIDEO(videos=[frames], return_tensors="pt", return_metadata=True, **kwargs)
        rows = np.asarray(out["pixel_values_videos"])
        about = out["video_metadata"][0]
        indices = [int(i) for i in about.frames_indices]
        pixels = hwc(np.asarray(VIDEO.seen).reshape(-1, *VIDEO.seen.shape[-3:]))
        videos.append(dict(name=name, n=n, h=h, w=w, seed=100, media_kwargs=kwargs,
                           grid=np.asarray(out["video_grid_thw"])[0].tolist(), frames=len(indices), rgb=sha(pixels),
                           rows=sha(rows.tobytes()), stamps=stamps(indices, about.fps or 24)))
    write_rows("videos.json", samples=samples, videos=videos)


def record_clips():
    """Two small files for builds with video: noise stored without loss, and gray that rises frame by frame, in
    a codec that reorders frames. They say what they hold, so no golden is needed."""
    size = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", "32x48", "-r", "10", "-i", "-", "-map_metadata", "-1",
            "-fflags", "+bitexact", "-flags:v", "+bitexact", "-threads", "1"]
    exact = b"".join(noise(48, 32, 3, 300 + i, 4).astype(np.uint8).tobytes() for i in range(20))
    rising = b"".join(bytes([10 * i + 10]) * (32 * 48 * 3) for i in range(20))
    for name, frames, codec in (("exact.avi", exact, ["-c:v", "ffv1", "-pix_fmt", "bgr0"]),
                                ("rising.mp4", rising, ["-c:v", "libx264", "-bf", "3", "-pix_fmt", "yuv420p",
                                                        "-qp", "1", "-colorspace", "smpte170m"])):
        subprocess.run(["ffmpeg", "-v", "error", "-y", *size, *codec, os.path.join(OUT, name)], input=frames, check=True)


def main():
    os.makedirs(OUT, exist_ok=True)
    photo = Image.open(sys.argv[1]).convert("RGB").resize((212, 248), Image.BICUBIC)
    wheel = sys.argv[2] if len(sys.argv) > 2 else None
    files = pictures(photo)
    record_images(files)
    record_resize()
    record_sizes(wheel)
    record_videos(files)
    record_clips()


main()
