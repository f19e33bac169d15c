"""Reads of S3 and HDFS give the same rows with and without Millstream, with few requests, and whatever happens to
objects and requests.

Run with `make test-group GROUP=remote`.
"""

import time
from pathlib import Path

import pytest
from remote_places import KINDS

SMALL = 40
FILES = {
    "lines/crlf.txt": "a\r\nb\r\n\r\nc",
    "lines/empty.txt": "",
    "lines/mark.txt": "\ufeffx\ny\n",
    "lines/sp ace %é.txt": "z\n",
    "lines/_hidden.txt": "no\n",
    "lines/.dot": "no\n",
    "lines/sub/deeper.txt": "not read without recursion\n",
    "table/d=1/x.csv": "1,a\n2,b\n",
    "table/d=2/y.csv": "3,c\n",
    "table/_k=3/z.csv": "4,d\n",
    "table/_no/z.csv": "5,e\n",
    "one.txt": "alone\n",
    "damaged/a.json": '{"a":1}\n{"a":\n',
    "damaged/b.json": '{"a":2}\n',
    **{f"small/part-{i:05d}.txt": f"line {i}\nother {i}\n" for i in range(SMALL)},
}
READS = {
    "lines": "spark.read.text(f'{root}/lines')",
    "lines recursively": "spark.read.option('recursiveFileLookup', True).text(f'{root}/lines')",
    "names": "spark.read.text(f'{root}/lines').selectExpr('value', 'input_file_name()', '_metadata.file_size', '_metadata.file_name')",
    "whole files": "spark.read.text(f'{root}/lines', wholetext=True)",
    "pattern": "spark.read.text(f'{root}/s*/part-0000*.txt')",
    "two roots": "spark.read.text([f'{root}/small', f'{root}/one.txt'])",
    "one file": "spark.read.text(f'{root}/one.txt')",
    "missing": "spark.read.text(f'{root}/nowhere')",
    "filter": "spark.read.text(f'{root}/small').filter(\"value rlike 'line .*7'\")",
    "sql": "spark.sql(f'select count(*), max(value) from text.`{root}/small`')",
    "inferred csv": "spark.read.csv(f'{root}/csv', inferSchema=True)",
    "partitions": "spark.read.csv(f'{root}/table').where('d < 3')",
    "inferred json": "spark.read.json(f'{root}/json').where('k = 1')",
    "damaged json": "spark.read.json(f'{root}/damaged')",
    "parquet": "spark.read.parquet(f'{root}/parquet').where('id > 250 and k != 0')",
    "orc": "spark.read.orc(f'{root}/orc').groupBy('k').count()",
    "binary": "spark.read.format('binaryFile').load(f'{root}/small').selectExpr('path', 'length', 'hex(content)')",
    "large": "spark.read.text(f'{root}/large').selectExpr('length(value)', 'hash(value)')",
    "large in parts": "spark.read.option('millstream.read.partitions', 7).text(f'{root}/large').selectExpr('hash(value)')",
    "catalog table": '[spark.sql(f"create table if not exists listed (id bigint, name string, k bigint) using parquet partitioned by (k) '
    "location '{root}/parquet'\"), spark.sql('msck repair table listed'), "
    "spark.sql('select k, count(*), max(name) from listed where k < 2 group by k')][-1]",
    "rdd": "sc.textFile(f'{root}/small')",
    "rdd of a pattern": "sc.textFile(f'{root}/small/part-0001*,{root}/lines/*.txt')",
    "rdd of large lines": "sc.textFile(f'{root}/large', 6).map(hash).map(str)",
    "rdd of a missing path": "sc.textFile(f'{root}/nowhere')",
}


@pytest.fixture(scope="module", params=KINDS)
def place(request, places):
    """Sessions on S3 or HDFS, and the data sets that all of them read."""
    found = places[request.param]
    found.stock.call("remote_calls:write", root=found.root)
    found.stock.call("remote_calls:put", root=found.root, files=FILES)
    found.stock.call("remote_calls:make_directory", path=f"{found.root}/empty")
    return found


# S3 alone has versions, and requests that can be counted.
ON_S3 = pytest.mark.parametrize("place", ["s3"], indirect=True, scope="module")


@pytest.fixture
def s3(place):
    yield place
    place.bed.inject()


@pytest.mark.parametrize("name", READS)
def test_rows_are_those_of_stock(place, name):
    reads = {name: READS[name]}
    for session in (place.stock, place.ours):
        session.ask("remote_calls:read", root=place.root, reads=reads)
    expected, actual = place.stock.answer(), place.ours.answer()
    assert actual == expected


def test_scan_is_native(place):
    plan = place.ours.call("remote_calls:plan", path=f"{place.root}/small")
    assert (plan["node"], plan["index"]) == ("NativeTextScan", "CompactFileIndex")
    assert plan["fileSystem"].startswith("Millstream")
    assert plan["metrics"]["numFiles"] == plan["metrics"]["filesOpened"] == SMALL
    assert plan["metrics"]["retries"] == plan["metrics"]["throttled"] == 0
    assert plan["transport"] == ("native" if place.root.startswith("s3a:") else "HDFS's client")
    assert plan["metrics"]["nativeRequests"] == (SMALL if place.root.startswith("s3a:") else 0)


@pytest.mark.parametrize("format", ["csv", "json", "parquet", "orc", "binaryFile"])
def test_packed_files_show_their_requests(place, format):
    path = f"{place.root}/small" if format == "binaryFile" else f"{place.root}/{format}"
    plan = place.ours.call("remote_calls:packed_plan", path=path, format=format)
    metrics = plan["metrics"]
    assert (plan["node"], plan["transport"]) == ("PackedFileScan", "native" if place.kind == "s3" else "HDFS's client")
    assert metrics["requests"] == metrics["filesReadAhead"] == metrics["numFiles"] > 0
    assert metrics["nativeRequests"] == (metrics["requests"] if place.kind == "s3" else 0)
    assert metrics["retries"] == metrics["throttled"] == 0


@pytest.mark.parametrize("name", ["", "lines", "table", "one.txt", "empty", "nowhere", "parquet"])
def test_recursive_listings_are_those_of_stock(place, name):
    expected, actual = (
        session.call("remote_calls:list_files", path=f"{place.root}/{name}".rstrip("/"))
        for session in (place.stock, place.ours)
    )
    assert actual == expected
    assert name in ("empty", "nowhere") or len(expected) > 0


ALONE = ("f'{root}/up._COPYING_'", "f'{root}/.d'")


@pytest.mark.parametrize(
    "paths", ["f'{root}/*'", "[f'{root}/up._COPYING_', f'{root}/a.txt']", "[f'{root}/_h', f'{root}/a.txt']", *ALONE]
)
def test_hidden_files_among_paths(place, paths):
    """Among several, they are ignored. One that is alone is not, on S3, since Spark 4.3."""
    root = f"{place.root}/hidden-roots"
    place.stock.call(
        "remote_calls:put", root=root, files={name: "1\n" for name in ("up._COPYING_", "_h", ".d", "a.txt", "b.txt")}
    )
    reads = {
        "rows": f"spark.read.text({paths})",
        "files": f"spark.read.text({paths}).inputFiles()",
        "binary": f"spark.read.format('binaryFile').load({paths}).select('path')",
    }
    expected, actual = (
        session.call("remote_calls:read", root=root, reads=reads) for session in (place.stock, place.ours)
    )
    assert actual == expected
    assert len(expected["rows"]["value"]) > 0 or paths in ALONE


@ON_S3
def test_a_closed_file_system_says_so(s3):
    """In separate sessions: in Hadoop 3.4.1, S3A stops counting requests in a JVM that has closed a file system."""
    sessions = [s3.session(f"closing-{millstream}", millstream=millstream) for millstream in (False, True)]
    expected, actual = (
        session.call("remote_calls:list_files_of_closed", path=f"{s3.root}/small") for session in sessions
    )
    assert actual == expected
    assert "FileSystem is closed" in expected["message"]


@ON_S3
@pytest.mark.parametrize("end", ["", "/"])
def test_files_at_the_root_of_a_bucket(s3, end):
    """Which may be given without its slash."""
    Path(s3.bed.data, "top").mkdir(exist_ok=True)
    s3.stock.call("remote_calls:put", root="s3a://top", files={"x.txt": "1\n", "d/y.txt": "2\n", "_z": "3\n"})
    reads = {
        code: f"spark.read.{code}"
        for code in ("text(root)", "schema('a string').csv(root)", "csv(root)", "text([root, f's3a://top/d'])")
    }
    reads |= {
        "sql": "spark.sql(f'select * from text.`{root}`')",
        "rdd": "sc.textFile(root)",
        "binary": "spark.read.format('binaryFile').load(root).selectExpr('path', 'length', 'modificationTime', 'hex(content)')",
    }
    expected, actual = (
        session.call("remote_calls:read", root=f"s3a://top{end}", reads=reads) for session in (s3.stock, s3.ours)
    )
    assert actual == expected
    assert len(expected["text(root)"]) == 1


@ON_S3
def test_a_look_at_the_first_file_lists_one_page(s3):
    """And a listing of several pages has each file once."""
    s3.stock.call(
        "remote_calls:put",
        root=f"{s3.root}/pages",
        files={f"k{i:04}/f{j:03}": "" for i in range(4) for j in range(300)},
    )
    path = f"{s3.root}/pages"
    s3.bed.reset_statistics()
    assert s3.ours.call("remote_calls:first_file", path=path) == f"{path}/k0000/f000"
    assert s3.bed.statistics().by_kind["ListObjectsV2"] == 1
    expected, actual = (session.call("remote_calls:list_files", path=path) for session in (s3.stock, s3.ours))
    assert actual == expected
    assert str(expected).count("/pages/k") == 1200


def test_a_stream_reads_what_arrives(place):
    for session in (place.stock, place.ours):
        path = f"{place.root}/stream-{session is place.ours}"
        session.call("remote_calls:put", root=f"{path}/in", files={f"a{i}.txt": f"first {i}\n" for i in range(20)})
        first = session.call("remote_calls:stream", path=path)
        session.call("remote_calls:put", root=f"{path}/in", files={f"b{i}.txt": f"second {i}\n" for i in range(20)})
        session.call("remote_calls:put", root=f"{path}/in", files={"c.txt": "third\n"})
        assert (first, session.call("remote_calls:stream", path=path)) == (20, 41)


ON_BOTH_TRANSPORTS = pytest.mark.parametrize("who", ["ours", "by_client"], ids=["native", "client"])


@ON_S3
def test_the_doctor_says_what_s3_lacks(s3):
    events = f"{s3.root}/events"
    s3.stock.call("remote_calls:make_directory", path=events)
    session = s3.session("events", millstream=True, **{"spark.eventLog.enabled": "true", "spark.eventLog.dir": events})
    found, fix = session.call("remote_calls:diagnoses")["s3a: event log"]
    assert f"{events} was opened with org.apache.hadoop.fs.s3a.S3AFileSystem before the session was made" in found
    key, ours = "spark.hadoop.fs.s3a.impl", "io.millstream.hadoop.s3a.MillstreamS3AFileSystem"
    assert f"{key}={ours}" in fix
    mended = s3.session(
        "events-mended", millstream=True, **{"spark.eventLog.enabled": "true", "spark.eventLog.dir": events, key: ours}
    )
    diagnoses = mended.call("remote_calls:diagnoses")
    assert diagnoses["s3a: system"] == [ours, None]
    assert not {"s3a: event log", "s3a: requests"} & set(diagnoses)
    assert "fs.millstream.s3a.native.enabled=false" in s3.by_client.call("remote_calls:diagnoses")["s3a: requests"][0]


@ON_S3
@ON_BOTH_TRANSPORTS
def test_one_request_for_each_object(s3, who):
    session = getattr(s3, who)
    plan = session.call("remote_calls:plan", path=f"{s3.root}/small")
    assert plan["metrics"]["requests"] == SMALL
    assert plan["metrics"]["nativeRequests"] == (SMALL if who == "ours" else 0)
    assert plan["transport"] == (
        "native" if who == "ours" else "S3A's client: fs.millstream.s3a.native.enabled is false"
    )
    s3.bed.reset_statistics()
    session.call("remote_calls:plan", path=f"{s3.root}/small")
    requests = s3.bed.statistics().by_kind
    assert requests["GetObject"] == SMALL
    # Those of Spark's checks whether the path exists and is the output of a stream.
    assert requests.get("HeadObject", 0) <= 4


@ON_S3
@pytest.mark.parametrize("who", ["stock", "ours", "by_client"])
@pytest.mark.parametrize(
    "read",
    ["spark.read.text(root)", "spark.read.csv(root, schema='a string')", "sc.textFile(root)"],
    ids=["text", "csv", "rdd"],
)
def test_requests_and_bytes_are_counted_as_in_s3a(s3, who, read):
    """By S3A for the file system, and by Hadoop for the scheme, where the counters of jobs come from."""
    size = sum(len(text) for name, text in FILES.items() if name.startswith("small/"))
    session = getattr(s3, who)
    s3.bed.reset_statistics()
    found = session.call("remote_calls:statistics", path=f"{s3.root}/small", read=read)
    requests = s3.bed.statistics().by_kind
    assert found["rows"] == 2 * SMALL
    for place in ("instance", "storage"):
        assert found[place]["action_http_get_request"] == requests["GetObject"]
        assert (
            found[place]["object_list_request"] + found[place]["object_continue_list_request"]
            == requests["ListObjectsV2"]
        )
        assert found[place]["stream_read_bytes"] == size
    assert found["scheme"]["bytesRead"] == size
    assert found["scheme"]["readOps"] >= SMALL


@ON_S3
@pytest.mark.parametrize("format_name", ["parquet", "orc"])
def test_columns_that_are_not_needed_are_not_downloaded(s3, format_name):
    """Files that are small enough to be read ahead whole if all their columns are needed."""
    path, files, width = f"{s3.root}/wide-{format_name}", 3, 3_000_000
    s3.stock.call("remote_calls:write_wide", path=path, format=format_name, files=files, width=width)
    for columns, is_whole in (("sum(id)", False), ("count(*)", False), ("sum(id + length(wide))", True)):
        read = f"spark.read.{format_name}(root).selectExpr({columns!r})"
        found = s3.ours.call("remote_calls:statistics", path=path, read=read)
        # A file that two tasks share is not read ahead.
        assert (found["instance"]["stream_read_bytes"] > width) == is_whole, (columns, found)


@ON_S3
def test_binary_files_without_their_content_are_not_downloaded(s3):
    read = "spark.read.format('binaryFile').load(f'{root}/small').selectExpr('path', 'length')"
    s3.bed.reset_statistics()
    expected, actual = (
        session.call("remote_calls:read", root=s3.root, reads={"binary": read}) for session in (s3.stock, s3.ours)
    )
    assert actual == expected
    assert "GetObject" not in s3.bed.statistics().by_kind


@pytest.mark.parametrize("who", ["stock", "ours"])
@pytest.mark.parametrize(
    "read",
    ["spark.read.text(root)", "spark.read.json(root, schema='a string')", "sc.textFile(root)"],
    ids=["text", "json", "rdd"],
)
def test_bytes_are_counted_once_for_the_scheme(place, who, read):
    """Where the counters of jobs come from; the clients of S3 and HDFS count some of them by themselves."""
    size = sum(len(text) for name, text in FILES.items() if name.startswith("small/"))
    read_bytes = getattr(place, who).call("remote_calls:bytes_of_scheme", path=f"{place.root}/small", read=read)
    assert read_bytes == size


@ON_S3
@ON_BOTH_TRANSPORTS
@pytest.mark.parametrize(
    "fault",
    [
        {"do": "truncate", "bytes": 3, "count": 3},
        {"do": "drop", "count": 3},
        {"do": "answer", "status": 503, "code": "SlowDown", "count": 3},
        {"do": "answer", "status": 500, "code": "InternalError", "count": 12},
    ],
    ids=lambda fault: f"{fault['do']}-{fault.get('status', '')}",
)
def test_requests_that_fail_lose_no_row(s3, fault, who):
    session = getattr(s3, who)
    expected = session.call("remote_calls:read", root=s3.root, reads={"sql": READS["sql"]})
    s3.bed.inject({"operation": "GetObject", **fault})
    assert session.call("remote_calls:read", root=s3.root, reads={"sql": READS["sql"]}) == expected
    assert s3.bed.struck == fault["count"]


@ON_S3
def test_retries_are_limited_as_those_of_s3a(s3):
    limits = {"spark.hadoop.fs.s3a.attempts.maximum": "0", "spark.hadoop.fs.s3a.retry.throttle.limit": "1"}
    session = s3.session("few-retries", millstream=True, **limits)
    for status, retries in ((500, 0), (503, 1)):
        fault = {
            "operation": "GetObject",
            "path": "small/part-00007",
            "do": "answer",
            "status": status,
            "count": retries + 1,
        }
        s3.bed.inject(fault)
        metrics = session.call("remote_calls:plan", path=f"{s3.root}/small")["metrics"]
        assert s3.bed.struck == retries + 1
        # S3A reads the object then.
        assert (metrics["nativeRequests"], metrics["retries"]) == (SMALL + retries, retries), status


@ON_S3
def test_a_bucket_that_turns_requests_away_is_asked_more_slowly(s3):
    """And no row is lost. S3 serves that many requests per second; refused requests were wasted."""
    objects, rate = 500, 50  # so few that even a busy machine requests more
    s3.stock.call("remote_calls:put", root=f"{s3.root}/many", files={f"{i:04}.txt": f"{i}\n" for i in range(objects)})
    s3.bed.set_rate(rate)
    try:
        start = time.monotonic()
        plan = s3.ours.call("remote_calls:plan", path=f"{s3.root}/many")
        took, refused = time.monotonic() - start, s3.bed.refused
    finally:
        s3.bed.set_rate()
    assert plan["rows"] == sum("7" in str(i) for i in range(objects))
    # Those of the first burst, which depends on the machine, and those while the rate is halved to what the bucket
    # serves.
    assert 0 < plan["metrics"]["throttled"] <= refused < objects
    assert took < 4 * objects / rate, "much more slowly than the bucket serves"


@ON_S3
def test_a_refusal_within_a_large_object_is_the_error_of_stock(s3):
    """As when credentials end after some of its parts have been read."""
    answers = []
    for session in (s3.stock, s3.ours):
        s3.bed.inject(
            {
                "operation": "GetObject",
                "path": "/large/",
                "skip": 1,
                "do": "answer",
                "status": 403,
                "code": "ExpiredToken",
            }
        )
        answers.append(session.call("remote_calls:read", root=s3.root, reads={"large": READS["large"]})["large"])
        assert s3.bed.struck > 0
    # Which of S3A's clients has the answer, and with it the rest of the cause's text, is a matter of time.
    assert answers[1]["message"] == answers[0]["message"]
    assert all("Status Code: 403" in answer["cause"] for answer in answers), answers


@ON_S3
def test_listings_that_fail_are_left_to_s3a(s3):
    expected = s3.ours.call("remote_calls:read", root=s3.root, reads={"sql": READS["sql"]})
    s3.bed.inject({"operation": "ListObjectsV2", "do": "answer", "status": 503, "code": "SlowDown", "count": 3})
    assert s3.ours.call("remote_calls:read", root=s3.root, reads={"sql": READS["sql"]}) == expected


@ON_S3
@pytest.mark.parametrize("status", [301, 400, 403, 501])
# S3A itself does not ask for encoded keys.
@pytest.mark.parametrize(
    "fault", [{"query": "encoding-type=url"}, {"operation": "GetObject"}], ids=["listing", "object"]
)
def test_if_the_first_native_request_is_refused_all_are_the_clients(s3, fault, status):
    expected = s3.stock.call("remote_calls:read", root=s3.root, reads={"one file": READS["one file"]})
    s3.ours.call("remote_calls:close_file_systems")
    s3.bed.inject({**fault, "do": "answer", "status": status, "code": "Refused", "count": 1})
    assert s3.ours.call("remote_calls:read", root=s3.root, reads={"one file": READS["one file"]}) == expected
    assert s3.bed.struck == 1
    refused = s3.ours.call("remote_calls:plan", path=f"{s3.root}/small")["transport"]
    s3.ours.call("remote_calls:close_file_systems")
    again = s3.ours.call("remote_calls:plan", path=f"{s3.root}/small")["transport"]
    expected = "native" if "query" in fault else "S3A's client: native requests were refused, see the log"
    assert (refused, again) == (expected, "native")


@ON_S3
@ON_BOTH_TRANSPORTS
def test_a_large_object_that_is_replaced_while_it_is_read_fails(s3, who):
    """Parts of two versions are never mixed: rows are all of one, or there is an error."""
    session, path = getattr(s3, who), f"{s3.root}/changing-{who}"
    for version in range(3):
        text = f"{version} " + "x" * 97 + "\n"
        if version == 0:
            session.call("remote_calls:put_lines", path=f"{path}/a.txt", line=text, count=400_000)
            continue
        session.call(
            "remote_calls:keep",
            name="kept",
            code=f"spark.read.text({path!r}).selectExpr('left(value, 1)').groupBy('left(value, 1)').count()",
        )
        s3.bed.set_bandwidth(connection_bytes_per_s=8_000_000)
        session.ask("remote_calls:count", name="kept")
        time.sleep(1)
        s3.stock.call("remote_calls:put_lines", path=f"{path}/a.txt", line=text, count=400_000)
        answer = str(session.answer())
        s3.bed.set_bandwidth()
        assert "FAILED_READ_FILE" in answer or "400000" in answer, answer


@ON_S3
def test_a_replaced_object_is_read_as_s3a_reads_it(s3):
    """Listed with one version, read with another: as in stock, the new one, cut at the listed length."""
    answers = []
    for name, session in (("stock", s3.stock), ("ours", s3.ours)):
        path = f"{s3.root}/replaced-{name}"
        session.call("remote_calls:put", root=path, files={"a.txt": "old 1\nold 2\n", "b.txt": "same\n"})
        assert session.call("remote_calls:keep", name="kept", code=f"spark.read.text({path!r})") == 2
        session.call("remote_calls:put", root=path, files={"a.txt": "new 1\nnew 2\nnew 3\n"})
        answers.append(session.call("remote_calls:count", name="kept"))
    assert answers[1] == answers[0]
    assert "new 1" in str(answers[1])
    assert "old" not in str(answers[1])


@ON_S3
def test_a_deleted_object_is_an_error_as_in_stock(s3):
    answers = []
    for name, session in (("stock", s3.stock), ("ours", s3.ours)):
        path = f"{s3.root}/deleted-{name}"
        session.call("remote_calls:put", root=path, files={"a.txt": "1\n", "b.txt": "2\n"})
        session.call("remote_calls:keep", name="kept", code=f"spark.read.text({path!r})")
        Path(s3.bed.data, path.removeprefix("s3a://"), "a.txt").unlink()
        answers.append(str(session.call("remote_calls:count", name="kept")).replace(f"deleted-{name}", "deleted"))
    assert "FILE_NOT_EXIST" in answers[0]
    assert "FILE_NOT_EXIST" in answers[1]
