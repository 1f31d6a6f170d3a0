#!/usr/bin/env python3
"""Writes src/text/unicode_tables.c: the character data of the tokenizer.

    python3 -m venv build/unicode-venv
    build/unicode-venv/bin/pip install unicodedata2==16.0.0
    build/unicode-venv/bin/pip download --no-deps --no-binary :all: -d build unicodedata2==9.0.0
    build/unicode-venv/bin/python tools/unicode/make_tables.py build/unicodedata2-9.0.0.tar.gz

The reference mixes two versions of Unicode, and so do the tables:
  - classes of the split pattern: general categories of Unicode 16.0 (its regular expressions);
  - NFC: Unicode 9.0 (its normalisation crate). The package of that version builds with no current
    Python, so its tables are read from the C source in the archive instead.
The composition exclusions come from the 16.0 data: the stability policy of the standard keeps the
normal form of every string of characters that 9.0 knew.
"""

import hashlib
import os
import re
import sys
import tarfile

import unicodedata2 as new

ARCHIVE_SHA256 = "586bc036686734c0eb47f3516a884e537df60e2ae355d2de59e9962ed6bbac1f"
N_POINTS = 0x110000
SHIFT = 7
HANGUL = range(0xAC00, 0xD7A4)
JAMO_VOWELS = range(0x1161, 0x1176)
JAMO_FINALS = range(0x11A8, 0x11C3)
OTHER, LETTER, MARK, NUMBER, SPACE, NEWLINE = range(6)


class Unicode9:
    """Category, combining class and decomposition as the C tables of the archive state them."""

    def __init__(self, path):
        with open(path, "rb") as f:
            data = f.read()
        if hashlib.sha256(data).hexdigest() != ARCHIVE_SHA256:
            sys.exit(f"{path}: not the pinned archive, whose sha256 is {ARCHIVE_SHA256}")
        with tarfile.open(path) as tar:
            name = "unicodedata2-9.0.0/unicodedata2/unicodedata_db.h"
            self.text = tar.extractfile(name).read().decode("ascii")
        records = re.search(r"_PyUnicode_Database_Records\[\] = \{(.*?)\n\};", self.text, re.S)
        self.records = [
            tuple(int(n) for n in row.split(","))
            for row in re.findall(r"\{([^}]*)\}", records.group(1))
        ]
        self.record1, self.record2 = self.numbers("index1"), self.numbers("index2")
        self.decomp = self.numbers("decomp_data")
        self.decomp1, self.decomp2 = self.numbers("decomp_index1"), self.numbers("decomp_index2")

    def numbers(self, name):
        body = re.search(r" %s\[\] = \{(.*?)\}" % name, self.text, re.S).group(1)
        return [int(n, 0) for n in re.findall(r"\w+", body)]

    def combining(self, point):
        record = self.record2[(self.record1[point >> SHIFT] << SHIFT) + (point & 127)]
        return self.records[record][1]

    def canonical(self, point):
        """The canonical decomposition, one step; an empty list when there is none."""
        at = self.decomp2[(self.decomp1[point >> SHIFT] << SHIFT) + (point & 127)]
        count, prefix = self.decomp[at] >> 8, self.decomp[at] & 255
        return self.decomp[at + 1 : at + 1 + count] if prefix == 0 else []


def class_of(point):
    category = new.category(chr(point))
    if point in (0x0A, 0x0D):
        return NEWLINE
    if category[0] == "Z" or 0x09 <= point <= 0x0D or point == 0x85:
        return SPACE
    return {"L": LETTER, "M": MARK, "N": NUMBER}.get(category[0], OTHER)


def two_stage(values):
    """Index of blocks and the distinct blocks, in order of first use."""
    blocks, index = {}, []
    for at in range(0, N_POINTS, 1 << SHIFT):
        block = tuple(values[at : at + (1 << SHIFT)])
        index.append(blocks.setdefault(block, len(blocks)))
    assert len(blocks) <= 256
    return index, [n for block in blocks for n in block]


def array(declaration, numbers, form=str):
    lines, line = [], ""
    for n in numbers:
        item = form(n) + ","
        if len(line) + len(item) > 99:
            lines.append(line)
            line = ""
        line += item
    return f"const {declaration} = {{\n" + "\n".join(lines + [line]) + "\n};\n"


def main():
    old = Unicode9(sys.argv[1])
    assert new.unidata_version == "16.0.0"

    full = {}  # point -> full canonical decomposition, Hangul left to arithmetic

    def expand(point):
        parts = old.canonical(point)
        return [q for p in parts for q in expand(p)] if parts else [point]

    for point in range(N_POINTS):
        if old.canonical(point):
            full[point] = expand(point)

    pairs = {}  # (first, second) -> composite
    for point in full:
        parts = old.canonical(point)
        text = "".join(map(chr, parts))
        if len(parts) == 2 and new.normalize("NFC", text) == chr(point):
            pairs[tuple(parts)] = point
    seconds = {second for _, second in pairs} | set(JAMO_VOWELS) | set(JAMO_FINALS)
    composites = set(pairs.values())

    # What the quick check needs: combining class, and whether a point may change under NFC.
    records, nfc = {(0, 0): 0}, []
    for point in range(N_POINTS):
        changes = point in seconds or (point in full and point not in composites)
        key = (old.combining(point), int(changes))
        nfc.append(records.setdefault(key, len(records)))
        if key == (0, 0) and point in full:  # such a point must be a boundary: see unicode.c
            assert old.combining(full[point][0]) == 0 and full[point][0] not in seconds
    assert all(len(parts) <= 4 for parts in full.values())

    class_index, class_blocks = two_stage([class_of(p) for p in range(N_POINTS)])
    nfc_index, nfc_blocks = two_stage(nfc)
    parts = [q for point in sorted(full) for q in full[point]]
    starts, at = [], 0
    for point in sorted(full):
        starts.append(at)
        at += len(full[point])
    hexa = "0x{:X}".format

    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with open(os.path.join(root, "src/text/unicode_tables.c"), "w") as f:
        f.write(
            "/* unicode_tables.c - character data of the tokenizer; made by"
            " tools/unicode/make_tables.py.\n *\n"
            " * Classes from Unicode 16.0, normalisation from Unicode 9.0: the versions that the"
            " reference\n * tokenizer has. The arrays are described in unicode_tables.h. */\n"
            '#include "text/unicode_tables.h"\n\n/* clang-format off */\n'
        )
        f.write(array("uint8_t unicode_class_index[]", class_index))
        f.write(array("uint8_t unicode_class_blocks[]", class_blocks))
        f.write(array("uint8_t unicode_nfc_index[]", nfc_index))
        f.write(array("uint8_t unicode_nfc_blocks[]", nfc_blocks))
        f.write(
            array("unicode_nfc_record unicode_nfc_records[]", records, lambda r: "{%d,%d}" % r)
        )
        f.write(f"const uint32_t unicode_n_decompositions = {len(full)};\n")
        f.write(array("uint32_t unicode_decomposed[]", sorted(full), hexa))
        f.write(array("uint16_t unicode_decomposition_start[]", starts + [len(parts)]))
        f.write(array("uint32_t unicode_decomposition_parts[]", parts, hexa))
        f.write(f"const uint32_t unicode_n_compositions = {len(pairs)};\n")
        f.write(
            array(
                "unicode_composition unicode_compositions[]",
                sorted((a, b, c) for (a, b), c in pairs.items()),
                lambda t: "{0x%X,0x%X,0x%X}" % t,
            )
        )
        f.write("/* clang-format on */\n")
    print(
        f"{len(class_blocks) // 128} class blocks, {len(nfc_blocks) // 128} nfc blocks,"
        f" {len(records)} records, {len(full)} decompositions, {len(pairs)} compositions"
    )


if __name__ == "__main__":
    main()
