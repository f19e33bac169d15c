"""Compressed text for the tests, made from a seed: difficult texts in every form in which users compress them.

A variant is a function of bytes and a random generator that returns a whole compressed file. `VARIANTS` has those of
each codec; `HADOOP` names the classes with which Hadoop writes the others (compressed_calls.py). The programs are
Debian's gzip, bzip2, zstd and lz4; what bgzip, pigz and pzstd write is made here.
"""

import bz2
import gzip
import re
import struct
import subprocess
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from datasets import CONTENTS, MARK

Variant = Callable[[bytes, Random], bytes]


def lines_of(text: bytes) -> list[bytes]:
    """The lines of a file by the rules of Hadoop's LineRecordReader."""
    lines = re.split(rb"\r\n|\r|\n", text.removeprefix(MARK))
    return lines if lines[-1] else lines[:-1]


def log_lines(rng: Random, count: int) -> bytes:
    """Lines that compress to about a fifth."""
    words = [bytes(rng.choices(b"abcdefghij", k=rng.randrange(3, 9))) for _ in range(40)]
    return b"".join(
        b"%08d %s %x\n" % (number, b" ".join(rng.choices(words, k=6)), rng.randrange(1 << 32))
        for number in range(count)
    )


def wide_lines(rng: Random, count: int) -> bytes:
    """Lines of 1 KB that compress to about a fortieth."""
    rest = bytes(rng.choices(b"abcdefghijklmnopqrstuvwxyz ", k=1000))
    return b"".join(b"%08d %014x %s\n" % (number, rng.getrandbits(56), rest) for number in range(count))


def random_text(rng: Random, pieces: int) -> bytes:
    """Line breaks of all kinds between runs of text and of bytes that no codec makes shorter."""
    kinds = [b"\n", b"\r", b"\r\n", MARK, "é".encode(), b"\xff", b"word ", b"a" * 65_536, rng.randbytes(30_000)]
    return b"".join(rng.choices(kinds, [60, 30, 60, 2, 40, 10, 200, 1, 1], k=pieces))


def texts(rng: Random) -> dict[str, bytes]:
    return {
        **CONTENTS,
        "log": log_lines(rng, 6000),
        "random": random_text(rng, 2000),
        "incompressible": rng.randbytes(300_000),
        "megabytes": b"first\n" + b"x" * 3_000_000 + b"\r\nlast",
    }


def pieces_of(text: bytes, rng: Random) -> list[bytes]:
    """The text in at least two pieces, cut anywhere, also within a line break."""
    cuts = sorted(rng.randrange(len(text) + 1) for _ in range(rng.randrange(1, 6)))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def command(*words: str) -> Variant:
    return lambda text, _: subprocess.run(words, input=text, capture_output=True, check=True).stdout


def pieces(variant: Variant, between: bytes = b"") -> Variant:
    """Members, streams or frames one after another."""
    return lambda text, rng: between.join(variant(piece, rng) for piece in pieces_of(text, rng))


def deflated(
    text: bytes,
    level: int = 6,
    strategy: int = zlib.Z_DEFAULT_STRATEGY,
    flush: int = zlib.Z_NO_FLUSH,
    every: int = 20_000,
) -> bytes:
    """Deflate without a header; flushed after each `every` bytes if `flush` says so."""
    compressor = zlib.compressobj(level, zlib.DEFLATED, -15, 9, strategy)
    parts = []
    for start in range(0, len(text), every):
        parts += [compressor.compress(text[start : start + every]), compressor.flush(flush) if flush else b""]
    return b"".join(parts) + compressor.flush()


def literals(text: bytes) -> bytes:
    """Deflate as one block of literals with fixed codes, whatever the length; zlib would begin another block."""
    codes = [f"{0x30 + byte:08b}" if byte < 144 else f"{0x190 + byte - 144:09b}" for byte in range(256)]
    bits = "110" + "".join(map(codes.__getitem__, text)) + "0000000"
    return int(bits[::-1], 2).to_bytes((len(bits) + 7) // 8, "little")


def member(
    text: bytes,
    deflate: bytes,
    extra: bytes | None = None,
    name: bytes = b"",
    comment: bytes = b"",
    checked: bool = False,
) -> bytes:
    """A gzip member; its header has the optional fields that are given."""
    flags = (extra is not None) * 4 + bool(name) * 8 + bool(comment) * 16 + checked * 2
    header = struct.pack("<4BIBB", 31, 139, 8, flags, 1_600_000_000, 0, 255)
    if extra is not None:
        header += struct.pack("<H", len(extra)) + extra
    header += (name and name + b"\0") + (comment and comment + b"\0")
    if checked:
        header += struct.pack("<H", zlib.crc32(header) & 0xFFFF)
    return header + deflate + struct.pack("<2I", zlib.crc32(text), len(text) & 0xFFFFFFFF)


def gzipped(
    extra: bytes | None = None, name: bytes = b"", comment: bytes = b"", checked: bool = False, **options
) -> Variant:
    return lambda text, _: member(text, deflated(text, **options), extra, name, comment, checked)


def bgzf(text: bytes, rng: Random | None = None) -> bytes:
    """As bgzip writes it: members of at most 64 KB that contain their sizes, and an empty one at the end."""
    parts = []
    for start in [*range(0, len(text), 65_280), len(text)]:
        block = text[start : start + 65_280]
        body = deflated(block)
        # The header has 18 bytes with this field, and the size is less by one.
        parts.append(member(block, body, extra=struct.pack("<2s2H", b"BC", 2, len(body) + 25)))
    return b"".join(parts)


def skippable(content: bytes, kind: int = 0) -> bytes:
    """A frame that readers of Zstandard and LZ4 pass over."""
    return struct.pack("<2I", 0x184D2A50 + kind, len(content)) + content


def seekable(text: bytes, rng: Random, parts: list[bytes] | None = None) -> bytes:
    """Zstandard frames with a seek table."""
    parts = [(zstd(piece, rng), len(piece)) for piece in parts or pieces_of(text, rng)]
    return b"".join(frame for frame, _ in parts) + seek_table([(len(frame), size) for frame, size in parts])


def seek_table(sizes: list[tuple[int, int]]) -> bytes:
    entries = b"".join(struct.pack("<2I", *pair) for pair in sizes)
    return skippable(entries + struct.pack("<IBI", len(sizes), 0, 0x8F92EAB1), kind=14)


def pzstd(text: bytes, rng: Random) -> bytes:
    """As pzstd writes it: before each frame another with its size."""
    frames = [zstd(piece, rng) for piece in pieces_of(text, rng)]
    return b"".join(skippable(struct.pack("<I", len(frame))) + frame for frame in frames)


zstd, lz4 = command("zstd", "-qc"), command("lz4", "-qzc")
VARIANTS: dict[str, dict[str, Variant]] = {
    "gz": {
        "gzip-1": command("gzip", "-1"),
        "gzip-9": command("gzip", "-9"),
        "stored": gzipped(level=0),
        "fixed": gzipped(strategy=zlib.Z_FIXED),
        "huffman": gzipped(strategy=zlib.Z_HUFFMAN_ONLY),
        "giant-block": lambda text, _: member(text, literals(text)),
        "synced": gzipped(flush=zlib.Z_SYNC_FLUSH),
        "independent": gzipped(flush=zlib.Z_FULL_FLUSH, every=5000),
        "fields": gzipped(extra=b"AB\3\0abc", name=b"na\xefve", comment=b"a comment\n", checked=True),
        "members": pieces(lambda text, _: gzip.compress(text)),
        "empty-members": pieces(gzipped(name=b"n"), between=gzip.compress(b"") * 2),
        "bgzf": bgzf,
    },
    "bz2": {
        "bzip2-1": command("bzip2", "-1"),
        "bzip2-9": command("bzip2", "-9"),
        "streams": pieces(lambda text, rng: bz2.compress(text, rng.randrange(1, 10))),
        "empty-streams": pieces(command("bzip2", "-1"), between=bz2.compress(b"")),
    },
    "zst": {
        "zstd": zstd,
        "zstd-19": command("zstd", "-qc", "-19"),
        "fast": command("zstd", "-qc", "--fast=5"),
        "long": command("zstd", "-qc", "--long=27"),
        "unchecked": command("zstd", "-qc", "--no-check"),
        "frames": pieces(zstd),
        "empty-frames": pieces(zstd, between=zstd(b"", Random())),
        "skippable": lambda text, rng: (
            skippable(b"before") + pieces(zstd, between=skippable(b"", 15))(text, rng) + skippable(b"x" * 70_000, 3)
        ),
        "seekable": seekable,
        "pzstd": pzstd,
    },
    "lz4": {
        "lz4": lz4,
        "lz4-9": command("lz4", "-9qzc"),
        "linked": command("lz4", "-qzc", "-BD"),
        "small-blocks": command("lz4", "-qzc", "-B4", "-BD"),
        "block-checks": command("lz4", "-qzc", "-BX"),
        "unchecked": command("lz4", "-qzc", "--no-frame-crc"),
        "frames": pieces(lz4),
        "empty-frames": pieces(lz4, between=lz4(b"", Random())),
        "legacy": command("lz4", "-qzcl"),
        "skippable": lambda text, rng: skippable(b"before") + pieces(lz4, between=skippable(b"", 15))(text, rng),
    },
    "deflate": {
        "zlib": lambda text, _: zlib.compress(text),
        "stored": lambda text, _: zlib.compress(text, 0),
        "zlib-9": lambda text, _: zlib.compress(text, 9),
    },
    "snappy": {},
    "hadoop-lz4": {},
}
ENDINGS = {codec: "lz4" if codec == "hadoop-lz4" else codec for codec in VARIANTS}
HADOOP = {
    "gz": "GzipCodec",
    "bz2": "BZip2Codec",
    "deflate": "DefaultCodec",
    "snappy": "SnappyCodec",
    "hadoop-lz4": "Lz4Codec",
}
"""The class below org.apache.hadoop.io.compress, if stock Spark can write the codec."""


@dataclass(frozen=True)
class Corpus:
    """The same tree twice: with compressed files, and with plain ones whose names lack the extension."""

    codec: str
    root: Path

    @property
    def compressed(self) -> Path:
        return self.root / "compressed"

    @property
    def plain(self) -> Path:
        return self.root / "plain"

    def add(self, name: str, text: bytes, compressed: bytes | None) -> None:
        """Writes a file in both trees; with None, Hadoop will write the compressed one (`of_hadoop`)."""
        for path, content in (
            (self.plain / name, text),
            (self.compressed / f"{name}.{ENDINGS[self.codec]}", compressed),
        ):
            path.parent.mkdir(parents=True, exist_ok=True)
            if content is not None:
                path.write_bytes(content)

    def of_hadoop(self) -> dict[str, str]:
        """The plain files that Hadoop has yet to compress, and where to."""
        pairs = [
            (path, self.compressed / f"{path.relative_to(self.plain)}.{ENDINGS[self.codec]}")
            for path in self.plain.rglob("*")
            if path.is_file()
        ]
        return {str(plain): str(compressed) for plain, compressed in pairs if not compressed.exists()}


FEW = ("lf", "cr", "crlf", "mixed", "unended", "empty", "mark", "not-utf8", "log")


def csv_text(rng: Random, rows: int) -> bytes:
    end = rng.choice([b"\n", b"\r\n"])
    quoted = [b"plain", b'"a, b"', b'"say ""x"""', b"", "é".encode(), b'" "']
    return (
        b"id,amount,what"
        + end
        + b"".join(b"%d,%d.5,%s" % (number, rng.randrange(1000), rng.choice(quoted)) + end for number in range(rows))
    )


def json_text(rng: Random, rows: int) -> bytes:
    values = [b'"text"', b"null", b'"\\u00e9\\n"', b'"a b"']
    text = b"\n".join(
        b'{"id": %d, "amount": %d.5, "what": %s}' % (number, rng.randrange(1000), rng.choice(values))
        for number in range(rows)
    )
    return text + rng.choice([b"", b"\n", b"\r\n"])


def variants_of(codec: str) -> dict[str, Variant]:
    """All variants; that of Hadoop returns None."""
    return VARIANTS[codec] | ({"hadoop": lambda text, rng: None} if codec in HADOOP else {})


def build(corpus: Corpus, seed: int) -> None:
    """Makes the trees `text`, `few`, `csv`, `json`, `table` and `many` of a codec, but for the files that Hadoop
    writes.
    """
    rng = Random(f"{seed} {corpus.codec}")
    variants = variants_of(corpus.codec)
    for variant, compress in variants.items():
        for name, text in texts(rng).items():
            corpus.add(f"text/{variant}-{name}", text, compress(text, rng))
            if name in FEW:
                corpus.add(f"few/{variant}-{name}", text, compress(text, rng))
                corpus.add(f"table/k={name}/{variant}", text, compress(text, rng))
        for name, made in (("csv", csv_text), ("json", json_text)):
            text = made(rng, 300)
            corpus.add(f"{name}/{variant}", text, compress(text, rng))
    for number in range(200):
        text = log_lines(rng, number % 7)
        corpus.add(f"many/{number:03}", text, rng.choice(list(variants.values()))(text, rng))


def mix(corpora: list[Corpus], mixed: Corpus) -> None:
    """Links to the files `few` of all corpora in the directories `text` and `few`, and plain files next to them."""
    for corpus in corpora:
        for source, target in ((corpus.compressed, mixed.compressed), (corpus.plain, mixed.plain)):
            for directory in ("text", "few"):
                (target / directory).mkdir(parents=True, exist_ok=True)
                for file in (source / "few").iterdir():
                    (target / directory / f"{corpus.codec}-{file.name}").hardlink_to(file)
    for name in FEW:
        for directory in ("text", "few"):
            for root in (mixed.plain, mixed.compressed):
                (root / directory / f"plain-{name}").write_bytes(texts(Random(0))[name])


def swapped(data: bytes, at: int, count: int = 4) -> bytes:
    """With other bytes from a position on, which may be negative."""
    at %= len(data)
    return data[:at] + bytes(byte ^ 0x5A for byte in data[at : at + count]) + data[at + count :]


DAMAGES: dict[str, Callable[[bytes, Random], bytes]] = {
    "truncated": lambda file, rng: file[: len(file) * 2 // 3],
    "truncated in the header": lambda file, rng: file[:5],
    "truncated by one byte": lambda file, rng: file[:-1],
    "corrupt": lambda file, rng: swapped(file, len(file) // 2),
    "corrupt for long": lambda file, rng: swapped(file, len(file) // 2, 5000),
    "corrupt at the start": lambda file, rng: swapped(file, 0),
    "corrupt at the end": lambda file, rng: swapped(file, -20, 8),
    "a hole": lambda file, rng: file[: len(file) // 3] + bytes(len(file) // 3) + file[len(file) // 3 * 2 :],
    "garbage after it": lambda file, rng: file + rng.randbytes(1000),
    "text after it": lambda file, rng: file + b"some text\n",
    "a zero after it": lambda file, rng: file + b"\0",
    "zeros after it": lambda file, rng: file + bytes(1000),
    "half of it after it": lambda file, rng: file + file[: len(file) // 2],
    "empty": lambda file, rng: b"",
    "plain text": lambda file, rng: b"plain 1\nplain 2\n",
    "zeros": lambda file, rng: bytes(1000),
}
"""Damages to a file of any codec."""
CHECKS: dict[str, dict[str, Callable[[bytes, Random], bytes]]] = {
    "gz": {
        "wrong checksum": lambda file, rng: swapped(file, -8),
        "wrong size": lambda file, rng: swapped(file, -4),
        "wrong checksum of the first of two": lambda file, rng: swapped(file, -8) + file,
        "wrong size of the first of two": lambda file, rng: swapped(file, -4) + file,
        "wrong checksum of the header": lambda file, rng: swapped(
            gzipped(name=b"n", checked=True)(gzip.decompress(file), rng), 12, 2
        ),
        "reserved flags": lambda file, rng: file[:3] + b"\xe0" + file[4:],
        "another method": lambda file, rng: file[:2] + b"\7" + file[3:],
    },
    "bz2": {
        "wrong checksum of a block": lambda file, rng: swapped(file, 10),
        "wrong checksum": lambda file, rng: swapped(file, -3, 1),
        "wrong checksum of the first of two": lambda file, rng: swapped(file, 10) + file,
    },
    "zst": {
        "wrong checksum": lambda file, rng: swapped(file, -4),
        "wrong checksum of the first of two": lambda file, rng: swapped(file, -4) + file,
        "wrong seek table": lambda file, rng: file + file + seek_table([(len(file), 10), (len(file), 1 << 30)]),
        "seek table of too many": lambda file, rng: file + seek_table([(len(file), 1)] * 7),
        "endless skippable frame": lambda file, rng: file + struct.pack("<2I", 0x184D2A50, 0xFFFFFFFF),
        "a dictionary": lambda file, rng: swapped(file, 4, 1),
    },
    "lz4": {
        "wrong checksum": lambda file, rng: swapped(file, -4),
        "wrong checksum of the header": lambda file, rng: swapped(file, 6, 1),
        "wrong checksum of the first of two": lambda file, rng: swapped(file, -4) + file,
    },
    "deflate": {"wrong checksum": lambda file, rng: swapped(file, -4)},
    "snappy": {"endless chunk": lambda file, rng: file + b"\0\xff\xff\xff\0\xff\xff\xff"},
    "hadoop-lz4": {"endless chunk": lambda file, rng: file + b"\0\xff\xff\xff\0\xff\xff\xff"},
}
"""Damages to what is checked in the files of a codec."""
USUAL = {
    "gz": "gzip-9",
    "bz2": "bzip2-1",
    "zst": "zstd",
    "lz4": "small-blocks",
    "deflate": "zlib",
    "snappy": "hadoop",
    "hadoop-lz4": "hadoop",
}
"""The variant of each codec that is damaged."""


def damages_of(codec: str) -> dict[str, Callable[[bytes, Random], bytes]]:
    return DAMAGES | CHECKS[codec]


def meant(damage: str, text: bytes) -> bytes:
    """The text of a damaged file for a reader that ignores the damage."""
    return b"" if damage == "empty" else text * 2 if "two" in damage or damage == "wrong seek table" else text
