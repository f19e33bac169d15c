"""Which of Spark's suites are run: those about listing files and about reading them, by class name."""

SPARK = "org.apache.spark."
DATASOURCES = SPARK + "sql.execution.datasources."

# Those that touch most of what Millstream replaces, in a few minutes.
QUICK = [
    SPARK + "FileSuite",
    DATASOURCES + "FileIndexSuite",
    DATASOURCES + "FileSourceStrategySuite",
    DATASOURCES + "PathFilterSuite",
    DATASOURCES + "text.TextV1Suite",
    DATASOURCES + "text.WholeTextFileV1Suite",
]

SUITES = sorted(QUICK + [
    SPARK + "input.WholeTextFileInputFormatSuite",
    SPARK + "input.WholeTextFileRecordReaderSuite",
    SPARK + "metrics.InputOutputMetricsSuite",
    SPARK + "rdd.HadoopRDDSuite",
    SPARK + "util.HadoopFSUtilsSuite",
    SPARK + "sql.FileBasedDataSourceSuite",
    SPARK + "sql.FileScanSuite",
    SPARK + "sql.MetadataCacheV1Suite",
    SPARK + "sql.connector.FileDataSourceV2FallBackSuite",
    SPARK + "sql.execution.DataSourceScanExecRedactionSuite",
    SPARK + "sql.sources.PartitionedWriteSuite",
    SPARK + "sql.sources.SaveLoadSuite",
    SPARK + "sql.streaming.FileStreamSinkV1Suite",
    SPARK + "sql.streaming.FileStreamSourceSuite",
    SPARK + "sql.test.DataFrameReaderWriterSuite",
    DATASOURCES + "CSVReadSchemaSuite",
    DATASOURCES + "DataSourceStrategySuite",
    DATASOURCES + "DataSourceSuite",
    DATASOURCES + "FileFormatWriterSuite",
    DATASOURCES + "FileMetadataStructSuite",
    DATASOURCES + "FileSourceCustomMetadataStructSuite",
    DATASOURCES + "HadoopFileLinesReaderSuite",
    DATASOURCES + "HeaderCSVReadSchemaSuite",
    DATASOURCES + "JsonReadSchemaSuite",
    DATASOURCES + "PathFilterStrategySuite",
    DATASOURCES + "PruneFileSourcePartitionsSuite",
    DATASOURCES + "binaryfile.BinaryFileFormatSuite",
    DATASOURCES + "csv.CSVLegacyTimeParserSuite",
    DATASOURCES + "csv.CSVv1Suite",
    DATASOURCES + "json.JsonLegacyTimeParserSuite",
    DATASOURCES + "json.JsonV1Suite",
    DATASOURCES + "orc.OrcV1PartitionDiscoverySuite",
    DATASOURCES + "parquet.ParquetV1PartitionDiscoverySuite",
    DATASOURCES + "text.TextV2Suite",
    DATASOURCES + "text.WholeTextFileV2Suite",
])
