"""Conditions on lines. Spark checks them again above the native scan, so the risk is a missing row."""

from pyspark.sql.functions import col, count, expr

from queries import add

CONDITIONS = r"""
contains(value, 'b')|contains(value, '')|contains(value, 'BALTIMORE')|contains(value, 'é')|contains(value, x'ff')|contains(value, decode(x'0a', 'UTF-8'))
contains(value, 'a\nb')|contains(value, '\n')|contains(value, '\ufffd')|not contains(value, 'a')|contains(value, null)|contains(cast(null as string), value)
startswith(value, 'a')|startswith(value, '')|startswith(value, 'é')|not startswith(value, 'in ')|startswith(value, '\\')|startswith('abcd', value)
endswith(value, 'b')|endswith(value, '')|endswith(value, 'E')|not endswith(value, '1')|endswith(value, ' ')
value = 'abc'|value = ''|'abc' = value|value = null|value <=> null|value <=> 'abc'|'' <=> value|value != 'abc'|not (value <=> 'abc')|value = x'61'
value is null|value is not null|not (value is null)|value > 'a'|value between 'a' and 'b'
value like 'abc'|value like 'a%'|value like '%b'|value like '%b%'|value like 'a%c'|value like 'a%b%c'|value like '%a%b%'|value like '%'|value like ''|value like '%%'
value like 'a_c'|value like '_'|value like '%_'|value like 'a\\_b'|value like 'a\\%b'|value like '%\\%%'|value like 'a#%b' escape '#'|value like 'a%%b' escape '#'
value like '%é%y%'|value like '%\ufffd%y%'|value like '%x%\ufffd%'|value like '漢%字'|value like '%🙂%🙂%'|value not like '%a%b%'|value like null|value like concat('a', '%')
value ilike 'ABC'|value ilike '%balti%more%'|value like all ('%a%', '%b%')|value like any ('%MD', 'b%')|value not like all ('%a%', '%b%')|value not like any ('%a%', 'b%')
value rlike 'BALT'|value rlike 'a.c'|value rlike '^ab'|value rlike 'b$'|value rlike ''|value rlike '\ufffd'|value rlike 'é'|not (value rlike 'a')|value rlike '[ab]+'|value rlike '(?i)balt'
value rlike 'a\\.b'|regexp_like(value, 'MD')|value rlike '\\['|value rlike null
value in ('a', 'abc')|value in ('a', null)|value not in ('a', 'abc')|value not in ('a', null)|value in ('')|not (value in ('a', null))|value in (null)
value in ('a','b','c','d','e','f','g','h','i','j','k','abc')|value not in ('a','b','c','d','e','f','g','h','i','j','k','abc')|value in ('a','b','c','d','e','f','g','h','i','j','k',null)
contains(value, 'a') and contains(value, 'b')|contains(value, 'a') and not contains(value, 'b')|contains(value, 'a') or value = ''|not (contains(value, 'a') or contains(value, 'B'))
not (contains(value, 'a') and startswith(value, 'a'))|contains(value, 'a') or length(value) = 2|contains(value, 'a') and length(value) = 2|not (contains(value, 'a') and length(value) = 2)
contains(value, 'a') or k = 1|contains(value, 'a') and k = 1|(contains(value, 'a') and k = 1) or (value = 'ba' and k = 2)|k = 1|not (contains(value, 'a') or k = 1)|k + length(value) = 3
contains(value, cast(k as string))|contains(value, null) or contains(value, 'a')|not (contains(value, null) and contains(value, 'a'))|true|false|null
upper(value) = 'ABC'|lower(value) like '%balt%'|contains(lower(value), 'balt')|trim(value) = 'a'|substr(value, 1, 1) = 'a'|value || 'x' = 'abcx'|coalesce(value, '') = 'a'
if(contains(value, 'a'), value = 'abc', value = '')|case when value = 'a' then true when value = 'ba' then null else contains(value, 'B') end|try_cast(value as int) = 1
value collate UTF8_LCASE = 'abc'|contains(value collate UTF8_LCASE, 'BALT')|startswith(value collate UNICODE_CI, 'AB')|value collate UNICODE = 'é'|value collate UTF8_LCASE in ('abc', 'x')
value = 'abc' collate UTF8_LCASE|value like 'AB%' collate UTF8_LCASE|endswith(value collate UTF8_LCASE, 'ss')|contains(value collate UTF8_BINARY, 'b')|value collate UTF8_BINARY_RTRIM = 'a'
rand() >= 0 and contains(value, 'a')|value = current_catalog()|instr(value, 'b') > 0|locate('b', value) = 2|position('é' in value) > 0|value >= '' and contains(value, 'b')
"""

for line in CONDITIONS.strip().splitlines():
    for condition in (
        line.split("|")
        if "||" not in line
        else [part.replace("\0", "||") for part in line.replace("||", "\0").split("|")]
    ):
        add(
            f"rows where {condition}",
            lambda context, c=condition: context.text("rows").filter(c).selectExpr("hex(cast(value as binary))", "k"),
        )

# Regular expressions, and LIKE with wildcards for one character; those that are not the same everywhere stay with
# Spark.
PATTERNS = [
    r"[A-Z]{3,}",
    r"^.$",
    r"^..$",
    r"^[^a]*$",
    r"\d+$",
    r"a.*b",
    r"(a|b)c?$",
    r"^(?:a|é)",
    r"\s",
    r"^\S+$",
    r"\w\W",
    r"(?i)baltimore",
    r"(?i)[a-c]b",
    r"x.y",
    r"\x61",
    r"\u00e9",
    r"[é-漢]",
    r"🙂{2}",
    r"^$",
    r"a{2}b|^\[",
    r"\.",
    r"\bBALT",
    r"(a)\1",
    r"a(?=b)",
    r"a*+b",
    r"\p{L}",
    r"^.{3}$",
    r"\A\d\z",
    r"a$|b$",
    r"a\Z",
    r"(?s)a.b",
    r"[a&&b]",
    r"\ufffd",
    r"x[^y]y",
    r"(?<name>b)a",
    r"\Qa.b\E",
    r"(((a)))",
    r"",
    r"|",
    r"[",
    r"a{1001}",
    r"(?:(?:a{100}){100}){100}",
]
LIKES = [
    ("_", None),
    ("__", None),
    ("%_", None),
    ("_%_", None),
    ("a_c", None),
    ("_b%", None),
    ("%é_%", None),
    ("_\ufffd_", None),
    ("a!_b", "!"),
    ("a!%b", "!"),
    ("%!!%", "!"),
    ("a_%!_", "!"),
    ("a\\\\_b", None),
    ("x_y", None),
    ("🙂_", None),
    ("%🙂%🙂%", None),
    ("a!b", "!"),
    ("a!", "!"),
]
for pattern in PATTERNS:
    add(
        f"rows where value matches {pattern!r}",
        lambda context, p=pattern: (
            context.text("rows").filter(col("value").rlike(p)).selectExpr("hex(cast(value as binary))", "k")
        ),
    )
    add(
        f"rows counted where value does not match {pattern!r}",
        lambda context, p=pattern: context.text("rows").filter(~col("value").rlike(p)).groupBy("k").count(),
    )
for pattern, escape in LIKES:
    condition = f"value like '{pattern}'" + (f" escape '{escape}'" if escape else "")
    add(
        f"rows where {condition} or not",
        lambda context, c=condition: context.text("rows").filter(c).selectExpr("hex(cast(value as binary))"),
    )
    add(
        f"rows counted where not {condition}",
        lambda context, c=condition: context.text("rows").filter(f"not ({c})").groupBy().count(),
    )
for options in ({"wholetext": True}, {"lineSep": "|"}):
    for pattern in (r"a.b", r"^[^x]*$", r"e$", r"o\s+t", r"(?i)ONE"):
        add(
            f"contents where value matches {pattern!r}, {options}",
            lambda context, p=pattern, o=options: (
                context.text("contents", **o).filter(col("value").rlike(p)).selectExpr("hex(cast(value as binary))")
            ),
        )

# The words of lines.
SPLITS = [
    "explode(split(value, ' '))",
    "explode(split(value, ' ', -1))",
    "explode(split(value, ' ', 0))",
    "explode(split(value, ' ', 2))",
    "explode(split(value, ''))",
    "explode(split(value, '.'))",
    "explode(split(value, '\\\\.'))",
    "explode(split(value, 'ab'))",
    "explode(split(value, '[ab]'))",
    "explode(split(value, 'é'))",
    "explode_outer(split(value, ' '))",
    "posexplode(split(value, ' '))",
    "explode(split(lower(value), ' '))",
    "explode(split(value collate UTF8_LCASE, 'a'))",
    "explode(split(value, '\\\\|'))",
    "explode(split(value, null))",
]
for split in SPLITS:
    for folder in ("rows", "contents"):
        add(
            f"words of {folder}: {split}",
            lambda context, s=split, f=folder: (
                context.text(f).selectExpr(s).groupBy().agg(count("*"), expr("bit_xor(xxhash64(*))"))
            ),
        )
    add(
        f"words counted: {split}",
        lambda context, s=split: (
            context.text("rows")
            .select(expr(s))
            .toDF(*["a", "w"][-len(context.text("rows").select(expr(s)).columns) :])
            .groupBy("w")
            .count()
            .selectExpr("hex(cast(w as binary))", "count")
        ),
    )
add(
    "words of matching lines",
    lambda context: (
        context.text("rows")
        .filter("contains(value, 'a')")
        .selectExpr("explode(split(value, 'a')) w")
        .selectExpr("hex(cast(w as binary))")
    ),
)
add(
    "words of lines that Spark filters",
    lambda context: (
        context.text("rows")
        .filter("length(value) > 2")
        .selectExpr("explode(split(value, 'a')) w")
        .selectExpr("hex(cast(w as binary))")
    ),
)
add(
    "words beside other columns",
    lambda context: (
        context.text("rows")
        .selectExpr("k", "value", "explode(split(value, ' ')) w")
        .selectExpr("k", "hex(w)", "hex(value)")
    ),
)
add(
    "words and their file",
    lambda context: (
        context.text("contents").selectExpr("explode(split(value, ' ')) w").selectExpr("hex(w)", "input_file_name()")
    ),
)
add(
    "words of whole files",
    lambda context: (
        context.text("contents", wholetext=True)
        .selectExpr("explode(split(value, '\n')) w")
        .selectExpr("hex(cast(w as binary))")
    ),
)
add(
    "number of words", lambda context: context.text("rows").selectExpr("explode(split(value, ' ')) w").groupBy().count()
)
add(
    "words twice",
    lambda context: (
        lambda words: words.union(words).groupBy("w").count().selectExpr("hex(cast(w as binary))", "count")
    )(context.text("rows").selectExpr("explode(split(value, ' ')) w")),
)
add(
    "words of long lines",
    lambda context: (
        context.text("batches").selectExpr("explode(split(value, ' ')) w").groupBy("w").count().filter("count > 100")
    ),
)

# Conditions on what is computed from a line.
COMPUTED = [
    "length(value) = 0",
    "length(value) > 0",
    "length(value) >= 3",
    "length(value) < 3",
    "length(value) <= 2",
    "3 < length(value)",
    "1 = length(value)",
    "length(value) <> 1",
    "length(value) > -1",
    "length(value) between 2 and 3",
    "length(value) > 2147483647",
    "length(value) = null",
    "not length(value) > 2 or value = ''",
    "octet_length(value) > 2",
    "length(value collate UTF8_LCASE) > 1",
    "trim(value) <> ''",
    "trim(value) = ''",
    "length(trim(value)) > 0",
    "length(trim(value)) = 0",
    "length(trim(value)) > 1",
    "trim('x' from value) = ''",
    "ltrim(value) = ''",
    "trim(value) = 'a'",
    "substring(value, 1, 2) = 'ab'",
    "substring(value, 0, 1) = 'a'",
    "substring(value, 1, 3) = 'a'",
    "substring(value, 1, 1) = 'ab'",
    "substring(value, 2, 1) = 'b'",
    "substring(value, 1, 1) = ''",
    "left(value, 1) = 'é'",
    "left(value, 2) = '🙂🙂'",
    "substring(value, 1, 2) <> 'ab'",
    "substring(value, 1, 0) = ''",
    "substring(value, -1, 1) = 'x'",
    "substring(value, 1) = 'ab'",
    "lower(value) like '%one%'",
    "upper(value) like '%ONE%'",
    "value ilike '%ONE%'",
    "value ilike 'a_c'",
    "not value ilike '%a%'",
    "lower(value) = 'ss'",
    "upper(value) = 'SS'",
    "lower(value) like '%ß%'",
    "upper(value) like '%SS%'",
    "lower(value) like '%i̇%'",
    "upper(value) = 'İ'",
    "lower(value) like 'A%'",
    "lower(value) like '%'",
    "lower(value) = ''",
    "startswith(lower(value), 'a')",
    "endswith(upper(value), 'B')",
    "contains(lower(value), 'é')",
    "lower(value) like '%a%' or upper(value) like '%X%'",
    "lower(value) like '%a%' and length(value) > 2",
    "value ilike any ('%a%', 'x%')",
    "lower(value) in ('a', 'ab')",
    "lower(value) like '%a\\\\%b%'",
    "lower(value) like '%a!%b%' escape '!'",
    "lower(value) rlike 'a.b'",
    "not (lower(value) like '%a%' and value like '%b%')",
    "(lower(value) like '%a%' and value like '%b%') or length(value) > 5",
    "lower(value) = 'a' or k = 1",
    "k = 1 and lower(value) like '%a%'",
    "value rlike '\\\\bab\\\\b'",
    "value rlike '(?=.*b)a'",
    "not value rlike '\\\\ba'",
    "value rlike 'a$|\\\\bx'",
    "value rlike '(a)\\\\1' and length(value) > 1",
    "value rlike '\\\\p{L}b' or lower(value) = 'x'",
    "value rlike '(?m)^a'",
    "value rlike 'a++b'",
    "rand(1) >= 0 and lower(value) like '%a%'",
    "lower(value) like '%' || 'a' || '%'",
    "value ilike null",
    "lower(value collate UTF8_LCASE) like '%A%'",
]
for condition in COMPUTED:
    add(
        f"rows where computed: {condition}",
        lambda context, c=condition: context.text("rows").filter(c).selectExpr("hex(cast(value as binary))", "k"),
    )
    add(
        f"rows counted where computed: {condition}",
        lambda context, c=condition: context.text("rows").filter(c).groupBy("k").count(),
    )
    add(
        f"contents where computed: {condition}",
        lambda context, c=condition: (
            context.text("contents", wholetext=True)
            .filter(c.replace("k = 1", "true"))
            .selectExpr("hex(cast(value as binary))")
        ),
    )
    add(
        f"long lines where computed: {condition}",
        lambda context, c=condition: (
            context.text("batches", lineSep="w")
            .filter(c.replace("k = 1", "true"))
            .groupBy()
            .agg(count("*"), expr("bit_xor(xxhash64(*))"))
        ),
    )

# Conditions that fail for one row, so that the message is always the same; whether it reaches them depends on the
# order.
FAILING = [
    "if(value = 'abc', raise_error('x'), 1) > 0 and length(value) = 1",
    "length(value) = 1 and value rlike '^[0-9]$' and if(value = 'abc', raise_error('x'), 1) > 0",
    "assert_true(value <> 'abc') is null and value like 'a%'",
    "value like 'no such %' and assert_true(value <> 'abc') is null",
    "raise_error('x') is null and value = 'zz'",
    "value = 'zz' and raise_error('x') is null",
    "element_at(split('a', ' '), if(value = 'abc', 3, 1)) is not null and value like 'a%'",
    "(assert_true(value <> 'abc') is null and lower(value) like '%b%') or value = 'zz'",
    "(lower(value) like '%no such%' and assert_true(value <> 'abc') is null) or value = 'zz'",
    "not (if(value = 'abc', raise_error('x'), 1) > 0 and value = 'abc')",
    "value rlike '(' and value = 'zz'",
]
for condition in FAILING:
    add(
        f"rows where something may fail: {condition}",
        lambda context, c=condition: context.text("rows").filter(c).selectExpr("hex(cast(value as binary))", "k"),
    )
    add(
        f"rows counted where something may fail: {condition}",
        lambda context, c=condition: context.text("rows").filter(c).groupBy().count(),
    )
add(
    "rows where a computed column may fail",
    lambda context: (
        context.text("rows")
        .selectExpr("value", "if(value = 'abc', raise_error('x'), 1) x")
        .filter("x > 0 and length(value) = 1")
        .select("value")
    ),
)
add(
    "rows of two filters, where the first may fail",
    lambda context: (
        context.text("rows").filter("assert_true(length(value) < 5) is null").filter("value like 'a%'").select("value")
    ),
)

# Groups that are only counted, of lines and of words.
LINES, WORDS = "select value v, k from {rows}", "select explode(split(value, ' ')) v, 1 k from {rows}"
GROUPINGS = [
    "select hex(v), count(*) from ({0}) group by v",
    "select hex(v), count(1) n from ({0}) group by v having n > 1",
    "select distinct hex(v) from ({0})",
    "select count(distinct v) from ({0})",
    "select count(distinct v), count(*) from ({0})",
    "select hex(v), count(v) from ({0}) group by v",
    "select hex(v), count(null) from ({0}) group by v",
    "select hex(v), count(*), count(1) from ({0}) group by v",
    "select length(v), count(*) from ({0}) group by length(v)",
    "select hex(u), count(*) from (select upper(v) u from ({0}) where v <> '') group by u",
    "select hex(u), count(*) from (select upper(v) u, length(v) n from ({0})) where n > 2 group by u",
    "select hex(v), count(*) filter (where v > 'b') from ({0}) group by v",
    "select hex(v), sum(1), count(*) from ({0}) group by v",
    "select hex(v), count(distinct k) from ({0}) group by v",
    "select hex(v), k, count(*) from ({0}) group by v, k",
    "select k, count(*) from ({0}) group by k",
    "select hex(v), length(v), count(*) from ({0}) group by v, length(v)",
    "select hex(v), length(v), grouping_id(), count(*) from ({0}) group by cube(v, length(v))",
    "select hex(v), count(*) from ({0}) where v in (select v from ({0}) where v > 'a') group by v",
    "select hex(a.v), n, m from (select v, count(*) n from ({0}) group by v) a join (select v, count(*) m from ({0}) group by v) b on a.v = b.v",
    "select hex(v), count(*) from (select * from ({0}) union all select * from ({0})) group by v",
    "select hex(v), count(*) from ({0}) where rand(1) >= 0 group by v",
    "select count(*) from (select v, count(*) from ({0}) group by v)",
    "select input_file_name() like '%rows%', count(*) from ({0}) group by 1",
    "select hex(v), first(k) is null, count(*) from ({0}) group by v",
    "select n, count(*) from (select v, count(*) n from ({0}) group by v) group by n",
    "select count(*), sum(n), max(n), bit_xor(xxhash64(v, n)) from (select v, count(*) n from ({0}) group by v)",
]


def grouped(statement, source, folder):
    def run(context):
        context.text(folder).createOrReplaceTempView("grouped_rows")
        return context.spark.sql(statement.format(source.format(rows="grouped_rows")))

    return run


for statement in GROUPINGS:
    for name, source in (("lines", LINES), ("words", WORDS)):
        add(f"groups of {name}: {statement}", grouped(statement, source, "rows"))
        if "hex(" not in statement and "first(" not in statement:
            add(
                f"groups of {name} in many batches: {statement}",
                grouped(statement, source.replace("k from", "1 k from") if name == "lines" else source, "batches"),
            )


WITH_BARS = ["value rlike 'MD|abc'", "value rlike 'a|b'", "value like '%|%'"]
for condition in WITH_BARS:
    add(f"rows where {condition}", lambda context, c=condition: context.text("rows").filter(c))


def chained(operator, count):
    """A left-deep condition, as built by a loop in Python."""

    def run(context):
        from functools import reduce

        from pyspark.sql.functions import col

        conditions = [col("value").contains(f"{i} ") | col("value").endswith(str(i)) for i in range(count)]
        return context.text("rows").filter(reduce(operator, conditions)).selectExpr("hex(value)")

    return run


def nested(count):
    """A condition deeper than the native limit."""

    def run(context):
        from pyspark.sql.functions import col

        condition = col("value") == "a"
        for i in range(count):
            condition = (condition & ~col("value").endswith(str(i))) | col("value").startswith(f"{i} ")
        return context.text("rows").filter(condition).selectExpr("hex(value)")

    return run


add("two hundred alternatives", chained(lambda a, b: a | b, 200), native=True)
add("twenty conditions", chained(lambda a, b: ~a & ~b, 20), native=True)
add("conditions of a hundred levels", nested(50), native=True)
add(
    "a list of a thousand",
    lambda context: context.text("rows").filter("value in (" + ",".join(f"'{i}'" for i in range(1000)) + ")"),
    native=True,
)
add(
    "a condition on whole files",
    lambda context: (
        context.text("contents", wholetext=True)
        .filter("contains(value, 'one\ntwo') or value like '%a%\n%'")
        .selectExpr("hex(value)")
    ),
    native=True,
)
add(
    "a condition, counted",
    lambda context: context.text("rows").filter("contains(value, 'a')").groupBy().count(),
    native=True,
)
add(
    "a condition, counted by partition",
    lambda context: context.text("rows").filter("value like '%a%b%'").groupBy("k").count(),
    native=True,
)
