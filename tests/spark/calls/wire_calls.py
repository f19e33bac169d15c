"""The JVM's encodings and decodings of the wire format."""


def row_predicate(spark, conditions):
    """The predicate of `conditions` on a line, in hexadecimal, and the number of conditions that it replaces or widens."""
    lines = spark.sql("select 'x' as value")
    parsed = [lines.where(condition)._jdf.queryExecution().analyzed().condition() for condition in conditions]
    encoder = getattr(getattr(classes(spark).reading.scan, "RowPredicates$"), "MODULE$")
    encoded = encoder.encode(sequence(spark, parsed), True)
    return bytes(encoded._1()).hex(), encoded._2().size(), encoded._3().size()


def parquet_request(spark, path, columns, options):
    """The request for columns, given by name and expression, of a file that is written to `path`, in hexadecimal."""
    spark.range(1).selectExpr(*(f"{expression} as `{name}`" for name, expression in columns)).write.parquet(path)
    plan = spark.read.options(**options).parquet(path)._jdf.queryExecution().executedPlan()
    while not plan.nodeName().endswith("(PackedFileScan)"):
        plan = plan.children().head()
    native = getattr(getattr(classes(spark).reading.packed, "NativeColumns$"), "MODULE$")
    request = native.of(plan.scan(), spark._jsparkSession.sessionState().newHadoopConf())
    return bytes(request.get().request()).hex()


def parquet_columns(spark, decoded, schema, batch_rows):
    """The rows of a file whose columns native code has decoded, read in batches."""
    sql = spark._jvm.org.apache.spark.sql
    fields = sql.types.StructType.fromDDL(schema).fields()
    vectors = spark.sparkContext._gateway.new_array(sql.vectorized.ColumnVector, len(fields))
    for index, field in enumerate(fields):
        vectors[index] = sql.execution.vectorized.OnHeapColumnVector(10, field.dataType())
    batch = sql.vectorized.ColumnarBatch(vectors)
    types = sequence(spark, [field.dataType() for field in fields])
    rows = []
    batches = classes(spark).reading.packed.DecodedBatches(bytes.fromhex(decoded), types, batch, batch_rows)
    while batches.hasNext():
        rows += [[value(row, i, field) for i, field in enumerate(fields)] for row in batches.next().rowIterator()]
    return rows


def index_names(spark, vector):
    """The lines of a vector of the names of indexes, with what the JVM says in their last columns, or in the first one."""
    path, compressed = spark._jvm.org.apache.hadoop.fs.Path, classes(spark).compressed

    def module(name):
        return getattr(getattr(compressed, name), "MODULE$")

    none, codec = spark._jvm.scala.Option.empty(), spark._jvm.io.millstream.hadoop.codec.TextCodec.GZIP
    lines = []
    for kind, *columns in vector:
        if kind == "index":
            name, time, size, _ = columns
            version = spark._jvm.io.millstream.hadoop.listing.Version(int(size), int(time), None)
            file = compressed.CompressedFile(path(f"/d/{name}"), version, codec)
            columns[-1] = compressed.IndexStore(none).path(file).getName()
        elif kind == "prefix":
            columns[-1] = module("IndexStore$").prefix(path(f"file:{columns[0]}"))
        else:
            kind = "incomplete" if module("IndexJob$").isIncomplete(columns[0]) else "complete"
        lines.append([kind, *columns])
    return lines


def value(row, index, field):
    if row.isNullAt(index):
        return None
    found = row.get(index, field.dataType())
    return found.toString() if field.dataType().typeName() == "string" else found


def classes(spark):
    return spark._jvm.org.apache.spark.sql.execution.datasources.millstream


def sequence(spark, objects):
    return spark._jvm.PythonUtils.toSeq(objects)
