"""A session that was made without Millstream's configuration."""


def test_functions_say_that_the_jar_is_missing(stock, tmp_path):
    (tmp_path / "file").write_text("a line\n")
    errors = stock.call("jar_calls:refused", path=str(tmp_path))
    assert len(errors) == 3 and all(
        "Millstream's jar is not in the session's JVM: set its configuration (millstream.enable)" in error
        for error in errors
    )
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
