"""Random csv and json files in one task, compared with stock Spark. `MILLSTREAM_SEED=N` repeats a run; the seed is in
the test's name.
"""

import record_files

DIRECTORIES = 25
MARK = "\ufeff"


def answers(stock, ours, path, directory):
    """The answers of both sessions, which run concurrently."""
    path.mkdir(parents=True)
    for name, content in directory.files.items():
        (path / name).write_bytes(content)
    arguments = {
        "path": str(path),
        "format_name": directory.format_name,
        "options": directory.options,
        "schema": directory.schema,
    }
    for session in (stock, ours):
        session.ask("read_calls:records", **arguments)
    expected, actual = stock.answer(), ours.answer()
    assert "crash" not in expected, expected
    assert "crash" not in actual, actual
    return expected, actual


def test_random_records(stock, ours, data, seed):
    for number in range(DIRECTORIES):
        directory = record_files.directory(seed + 1_000_003 * number)
        expected, actual = answers(stock, ours, data / f"records-{seed}-{number}", directory)
        assert actual == expected, f"MILLSTREAM_SEED={seed}: directory {number}, {directory.options}"


def marked(encoding, marks=1, files=8):
    """Files as Excel and SQL Server export them."""
    texts = {f"{number}.csv": MARK * marks + f"0{number},name {number}\n1{number},other\n" for number in range(files)}
    return {name: text.encode(encoding) for name, text in texts.items()}


def check_marked(stock, ours, path, files, **options):
    options = {"mode": "DROPMALFORMED", "lineSep": "\n", **options}
    expected, actual = answers(stock, ours, path, record_files.Directory(files, "csv", options, "a int, b string"))
    assert sum(map(len, expected["rows"].values())) == 2 * len(files)
    assert actual == expected


def test_utf16_with_byte_order_marks(stock, ours, tmp_path):
    for encoding in ("UTF-16LE", "UTF-16BE"):
        check_marked(stock, ours, tmp_path / encoding, marked(encoding), encoding=encoding)


def test_two_byte_order_marks(stock, ours, tmp_path):
    check_marked(stock, ours, tmp_path / "two", marked("UTF-8", marks=2))


def test_headers_after_byte_order_marks(stock, ours, tmp_path):
    files = {
        name: MARK.encode("UTF-16LE") + "a,b\n".encode("UTF-16LE") + content[2:]
        for name, content in marked("UTF-16LE").items()
    }
    check_marked(stock, ours, tmp_path / "header", files, encoding="UTF-16LE", header="true", enforceSchema="false")


def test_a_record_that_ends_within_a_line(stock, ours, tmp_path):
    """The parser of a file keeps what follows: it belongs to no other file. In UTF-16 the separator is not found by its
    bytes.
    """
    for encoding, separator, end in [("UTF-16", "\n", "\n"), ("UTF-8", ";", "\0"), ("UTF-8", "||", "\0")]:
        texts = {f"{number}.csv": f"a{number},{number}{end}b{number},{number}" for number in range(8)}
        directory = record_files.Directory(
            {name: text.encode(encoding) for name, text in texts.items()},
            "csv",
            {"encoding": encoding, "lineSep": separator},
            "k string, v string",
        )
        expected, actual = answers(stock, ours, tmp_path / f"{encoding}{len(separator)}", directory)
        assert len(expected["rows"]) == len(texts)
        assert actual == expected, f"{encoding}, {separator!r}"
