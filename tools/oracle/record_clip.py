#!/usr/bin/env python3
"""Records testdata/media/blocks.avi and blocks.avi.sha256: a clip of MPEG-4 whose colours change at
every eighth pixel, and the SHA-256 of its RGB frames as PyAV gives them, one behind the other.

PyAV is what the reference's load_video decodes with; hard edges show which filter spreads the
halved chroma. Usage: record_clip.py, with av 18.1.0 and numpy."""
import hashlib
import os

import av
import numpy as np

OUT = os.path.join(os.path.dirname(__file__), "../../testdata/media/blocks.avi")
W, H, FRAMES = 96, 80, 6


def main():
    colours = np.random.default_rng(1).integers(0, 256, (H // 8, W // 8, 3)).astype(np.uint8)
    with av.open(OUT, "w") as clip:
        stream = clip.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = W, H, "yuv420p"
        for i in range(FRAMES):
            rgb = np.kron(np.roll(colours, i, 1), np.ones((8, 8, 1), np.uint8))
            clip.mux(stream.encode(av.VideoFrame.from_ndarray(rgb, format="rgb24")))
        clip.mux(stream.encode(None))
    digest = hashlib.sha256()
    with av.open(OUT) as clip:
        frames = [f.to_ndarray(format="rgb24") for f in clip.decode(video=0)]
    assert len(frames) == FRAMES
    for frame in frames:
        digest.update(frame.tobytes())
    with open(OUT + ".sha256", "w") as f:
        f.write(digest.hexdigest() + "\n")


main()
