"""
Compressed text for readers that ask Hadoop for a codec: Hive tables, RDDs of Hadoop's input formats, whole files, csv
and json of many lines, streams, and compaction.
"""

import json
import struct
import zipfile
from random import Random

import pyspark
import pytest
from compressed_files import log_lines, pieces, swapped, variants_of
from hadoop_codec_calls import FORMS
from sessions import Session

SEED = 23
HIVE = {"spark.sql.catalogImplementation": "hive"}
OURS = [f"io.millstream.hadoop.{name}FileCodec" for name in ("Lz4", "Snappy", "Zstd")]
COUNT = 4000
"""Lines of a file, of which there are many blocks of 64 KB."""


def masked_crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return (crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF


def snappy_framing(text, _):
    """As snzip writes text that does not compress."""
    chunks = [text[start : start + 65_536] for start in range(0, len(text), 65_536)]
    framed = (
        struct.pack("<I", (len(chunk) + 4) << 8 | 1) + struct.pack("<I", masked_crc32c(chunk)) + chunk
        for chunk in chunks
    )
    return b"\xff\x06\0\0sNaPpY" + b"".join(framed)


# By extension, forms that Hadoop's own codecs do not read, or not everywhere.
FILES = {
    "lz4": {
        name: variants_of("lz4")[name] for name in ("lz4", "linked", "small-blocks", "frames", "legacy", "skippable")
    },
    "zst": {name: variants_of("zst")[name] for name in ("zstd", "frames", "skippable")},
    "snappy": {"framing": snappy_framing, "framings": pieces(snappy_framing)},
}


@pytest.fixture(scope="module")
def sessions(tmp_path_factory):
    """A stock session and one with Millstream, with Hive."""
    top = tmp_path_factory.mktemp("codecs")
    found = {name: Session(top / name, millstream=name == "ours", conf=HIVE) for name in ("stock", "ours")}
    yield found
    for session in found.values():
        session.close()


@pytest.fixture(scope="module")
def trees(sessions, tmp_path_factory):
    """The lines of files, and their directory by extension: in all forms of the extension, including Hadoop's."""
    made = {}

    def tree(ending):
        if ending not in made:
            top, rng = tmp_path_factory.mktemp(ending), Random(f"{SEED} {ending}")
            (top / "files").mkdir()
            lines = []
            for number, (name, compress) in enumerate(FILES[ending].items()):
                text = log_lines(rng, COUNT - number)
                lines += text.decode().splitlines()
                (top / "files" / f"{name}.{ending}").write_bytes(compress(text, rng))
            if ending != "zst":
                text = log_lines(rng, COUNT)
                lines += text.decode().splitlines()
                (top / "plain").write_bytes(text)
                codec = {"lz4": "Lz4Codec", "snappy": "SnappyCodec"}[ending]
                files = {str(top / "plain"): str(top / "files" / f"hadoop.{ending}")}
                assert sessions["stock"].call("compressed_calls:encode", codec=codec, files=files) is None
            made[ending] = top / "files", sorted(lines)
        return made[ending]

    return tree


@pytest.mark.parametrize("ending", FILES)
@pytest.mark.parametrize("form", FORMS)
def test_all_rows_of_all_forms_of_files(sessions, trees, form, ending):
    path, lines = trees(ending)
    assert sessions["ours"].call("hadoop_codec_calls:read", form=form, path=str(path)) == lines


def test_json_of_many_lines(sessions, tmp_path):
    for name, (ending, compress) in {
        "a": ("lz4", FILES["lz4"]["linked"]),
        "b": ("lz4", FILES["lz4"]["legacy"]),
        "c": ("zst", FILES["zst"]["zstd"]),
    }.items():
        text = json.dumps({"id": len(name), "what": name * 100_000}, indent=1).encode()
        for directory, file in (("plain", text), ("compressed", compress(text, Random(SEED)))):
            (tmp_path / directory).mkdir(exist_ok=True)
            (tmp_path / directory / f"{name}.{ending if directory == 'compressed' else 'json'}").write_bytes(file)
    expected = sessions["stock"].call("hadoop_codec_calls:json_of_many_lines", path=str(tmp_path / "plain"))
    assert len(expected) == 3
    assert sessions["ours"].call("hadoop_codec_calls:json_of_many_lines", path=str(tmp_path / "compressed")) == expected


# Hive's and Spark's readers differ at the premature end of a file.
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("lz4", lambda file: file[:-1]),
        ("lz4", lambda file: file[: len(file) // 2]),
        ("linked", lambda file: swapped(file, len(file) // 2)),
        ("legacy", lambda file: file[:-1]),
        ("lz4", lambda file: file + b"text\n"),
        ("lz4", lambda file: b"plain text\n"),
    ],
    ids=["truncated by one byte", "truncated", "corrupt", "truncated legacy", "text after it", "plain text"],
)
def test_damage_is_an_error_that_names_it(sessions, tmp_path, form, name, damage):
    file = FILES["lz4"][name](log_lines(Random(SEED), COUNT), Random(SEED))
    (tmp_path / "f.lz4").write_bytes(damage(file))
    answer = sessions["ours"].call("hadoop_codec_calls:read", form=form, path=str(tmp_path))
    assert isinstance(answer, dict) and "damaged lz4 data at byte" in str(answer), answer


def test_codecs_are_found_by_the_names_of_files_and_writers_get_those_of_hadoop(sessions):
    ours = {"lz4": "Lz4FileCodec", "snappy": "SnappyFileCodec", "zst": "ZstdFileCodec"}
    hadoops = {name: name for name in ("Lz4Codec", "SnappyCodec", "ZStandardCodec")}
    assert sessions["ours"].call("hadoop_codec_calls:codecs") == {
        "set": ",".join(OURS),
        **ours,
        "gz": "GzipCodec",
        **hadoops,
    }


def test_lz4_is_written_as_stock_spark_writes_it(sessions, tmp_path):
    for name, session in sessions.items():
        assert session.call("hadoop_codec_calls:write_lz4", path=str(tmp_path / name)) == 30_000
    for directory in ("frame", "rdd"):
        stock, ours = (
            [file.read_bytes() for file in sorted((tmp_path / name / directory).glob("part-*"))] for name in sessions
        )
        assert len(stock) == 1 and ours == stock, directory
    sequence = next((tmp_path / "ours" / "sequence").glob("part-*")).read_bytes()
    assert b"org.apache.hadoop.io.compress.Lz4Codec" in sequence[:300]


@pytest.mark.parametrize("ending", FILES)
def test_compaction_of_all_forms_of_files(sessions, trees, tmp_path, ending):
    path, lines = trees(ending)
    summary = sessions["ours"].call("compact_calls:compact", src=str(path), dst=str(tmp_path / "out"), codec="none")
    assert not summary.get("error") and not summary["left"], summary
    assert (
        sorted(
            line
            for file in (tmp_path / "out").iterdir()
            if file.suffix == ".txt" or not file.name.startswith(("_", "."))
            for line in file.read_text().splitlines()
        )
        == lines
    )


def test_compaction_in_place_keeps_the_codec_of_the_files(sessions, tmp_path):
    """In the form that Hadoop writes, which stock Spark reads."""
    text = log_lines(Random(SEED), COUNT)
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt.lz4").write_bytes(FILES["lz4"]["lz4"](text, Random(SEED)))
    summary = sessions["ours"].call("compact_calls:compact", src=str(tmp_path), in_place=True, plain_files=True)
    assert not summary.get("error") and not summary["left"], summary
    assert [file.suffixes for file in tmp_path.iterdir() if not file.name.startswith(("_", "."))] == [[".txt", ".lz4"]]
    lines = sessions["stock"].call("hadoop_codec_calls:read", form="hadoop file", path=str(tmp_path))
    assert lines == sorted(text.decode().splitlines() * 2)


# Hadoop's codecs return some of these without an error, with fewer lines.
@pytest.mark.parametrize(("ending", "kept"), [("lz4", -1), ("zst", -1), ("snappy", -1), ("bz2", 1000), ("gz", -1)])
def test_damaged_files_are_not_compacted(sessions, tmp_path, ending, kept):
    text = log_lines(Random(SEED), COUNT)
    compress = next(iter((FILES.get(ending) or variants_of(ending)).values()))
    file = compress(text, Random(SEED))
    (tmp_path / f"a.{ending}").write_bytes(file)
    (tmp_path / f"b.{ending}").write_bytes(file[:kept])
    summary = sessions["ours"].call(
        "compact_calls:compact", src=str(tmp_path), in_place=True, plain_files=True, codec="none"
    )
    assert "the file ends too early" in json.dumps(summary), summary
    assert [(tmp_path / f"{name}.{ending}").read_bytes() for name in "ab"] == [file, file[:kept]]


def test_codecs_of_the_user_stay(tmp_path):
    """Hadoop's PassthroughCodec, here for .lz4: it returns a file as it is. Spark's Hadoop, which is shaded, has
    another key.
    """
    passthrough, key = "org.apache.hadoop.io.compress.PassthroughCodec", "io.compress.passthrough.extension"
    conf = {
        **HIVE,
        "spark.hadoop.io.compression.codecs": passthrough,
        f"spark.hadoop.{key}": ".lz4",
        f"spark.hadoop.org.apache.hadoop.shaded.{key}": ".lz4",
    }
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "f.lz4").write_text("one\ntwo\n")
    session = Session(tmp_path / "home", millstream=True, conf=conf)
    try:
        found = session.call("hadoop_codec_calls:codecs")
        assert found["set"] == ",".join([passthrough, *OURS[1:]])
        assert (found["lz4"], found["zst"]) == ("PassthroughCodec", "ZstdFileCodec")
        for form in ("hive table", "csv of many lines", "stream of text"):
            assert session.call("hadoop_codec_calls:read", form=form, path=str(tmp_path / "data")) == ["one", "two"], (
                form
            )
    finally:
        session.close()


@pytest.mark.parametrize("switches", [("codecs",), ("codecs", "read")])
def test_the_switch_leaves_files_to_the_codecs_of_hadoop_but_no_compaction_loses_lines(
    sessions, trees, tmp_path, switches
):
    path, lines = trees("lz4")
    conf = {f"spark.millstream.{switch}.enabled": "false" for switch in switches}
    session = Session(tmp_path / "home", millstream=True, conf=conf)
    try:
        found = session.call("hadoop_codec_calls:codecs")
        assert found["set"] is None and found["lz4"] == "Lz4Codec"
        for format in ("text", "parquet"):
            out = str(tmp_path / format)
            summary = session.call("compact_calls:compact", src=str(path), dst=out, format=format, codec="none")
            assert not summary.get("error") and not summary["left"], summary
            assert [row[1] for row in sessions["stock"].call("compact_calls:rows", path=out, format=format)] == lines
    finally:
        session.close()


def test_without_the_native_library_frames_are_an_error_and_files_of_hadoop_are_read(sessions, trees, tmp_path):
    import millstream

    whole, stripped = millstream.spark_conf()["spark.driver.extraClassPath"], tmp_path / "without.jar"
    with zipfile.ZipFile(whole) as jar, zipfile.ZipFile(stripped, "w") as rest:
        for name in jar.namelist():
            if not name.endswith("libmillstream_jni.so"):
                rest.writestr(name, jar.read(name))
    session = Session(tmp_path / "home", millstream=True, jar=stripped, conf=HIVE)
    try:
        for ending, form, readers in (
            ("lz4", "lz4", FORMS),
            ("lz4", "legacy", ["hive table"]),
            ("snappy", "framing", ["hive table"]),
        ):
            (tmp_path / form).mkdir()
            (tmp_path / form / f"f.{ending}").hardlink_to(trees(ending)[0] / f"{form}.{ending}")
            for reader in readers:
                answer = session.call("hadoop_codec_calls:read", form=reader, path=str(tmp_path / form))
                assert isinstance(answer, dict) and "native library, which decodes it, does not load" in str(answer), (
                    form,
                    reader,
                    answer,
                )
                assert "`millstream doctor`" in str(answer)
        (tmp_path / "hadoop").mkdir()
        (tmp_path / "hadoop" / "f.lz4").hardlink_to(trees("lz4")[0] / "hadoop.lz4")
        for reader in FORMS:
            answers = [
                each.call("hadoop_codec_calls:read", form=reader, path=str(tmp_path / "hadoop"))
                for each in (sessions["stock"], session)
            ]
            assert answers[1] == answers[0] and len(answers[0]) == COUNT, reader
        # Spark 4.3 decodes Zstandard in Java where Hadoop's codec cannot.
        (tmp_path / "zst").mkdir()
        (tmp_path / "zst" / "f.zst").hardlink_to(trees("zst")[0] / "zstd.zst")
        answers = [
            each.call("hadoop_codec_calls:read", form="csv of many lines", path=str(tmp_path / "zst"))
            for each in (sessions["stock"], session)
        ]
        assert (len(answers[0]) == COUNT) == (pyspark.__version__ >= "4.3")
        assert answers[1] == answers[0]
    finally:
        session.close()


def test_executors_decode(tmp_path, trees):
    """In separate JVMs, which get the codecs from the driver's configuration."""
    path, lines = trees("lz4")
    session = Session(
        tmp_path / "home",
        millstream=True,
        conf={**HIVE, "spark.master": "local-cluster[1,1,1024]", "spark.executor.memory": "1g"},
    )
    try:
        for form in ("hive table", "new hadoop file", "whole files", "csv of many lines"):
            assert session.call("hadoop_codec_calls:read", form=form, path=str(path)) == lines, form
    finally:
        session.close()
