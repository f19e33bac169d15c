package org.apache.spark.sql.execution.datasources.millstream.listing

import java.util.Locale

import scala.util.Try
import scala.util.control.NonFatal

import io.millstream.hadoop.reading.ListedFileSystem
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}

import org.apache.spark.deploy.SparkHadoopUtil
import org.apache.spark.internal.Logging
import org.apache.spark.sql.{AnalysisException, SparkSession}
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.classic
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.datasources.binaryfile.BinaryFileFormat
import org.apache.spark.sql.execution.datasources.csv.CSVFileFormat
import org.apache.spark.sql.execution.datasources.json.JsonFileFormat
import org.apache.spark.sql.execution.datasources.millstream.internals.{SchemaUse, SparkLine}
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat
import org.apache.spark.sql.execution.datasources.parquet.{ParquetFileFormat, ParquetOptions}
import org.apache.spark.sql.execution.datasources.text.TextFileFormat
import org.apache.spark.sql.execution.datasources.v2.FileDataSourceV2
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.SchemaUtils

/**
 * Relations of files over a [[CompactFileIndex]].
 *
 * The steps are those of Spark's `DataSource.resolveRelation`. Unsupported cases (another file system, a missing path,
 * an option that changes which files count, a schema that cannot be inferred) give no relation, so that Spark itself
 * handles them and reports its own errors.
 */
private[millstream] class ListedRelations(spark: SparkSession) extends Logging {
  import ListedRelations._

  private def conf: SQLConf = spark.sessionState.conf

  /**
   * The relation that Spark's `DataSource` would resolve these arguments to, if there is one.
   *
   * @param paths Hadoop paths, globs among them
   * @param options the reader's options
   * @param userSchema the schema, if it is not to be inferred
   */
  def of(
      format: FileFormat,
      paths: Seq[String],
      options: Map[String, String],
      userSchema: Option[StructType],
      use: SchemaUse): Option[HadoopFsRelation] = {
    val hadoopConf = spark.sessionState.newHadoopConfWithOptions(options)
    for {
      _ <- Option.when(usesDefaultNameFilter(options, hadoopConf))(())
      (fileSystem, roots) <- listedRoots(paths, hadoopConf)
      index <- CompactFileIndex.create(spark, fileSystem, roots, options, userSchema)
      relation <- relation(format, index, options, userSchema, use)
    } yield relation
  }

  private def usesDefaultNameFilter(options: Map[String, String], hadoopConf: Configuration): Boolean =
    !CaseInsensitiveMap(options).contains("ignoredPathSegmentRegex") &&
      conf.getConfString("spark.sql.files.ignoredPathSegmentRegex", DefaultIgnoredNames) == DefaultIgnoredNames &&
      hadoopConf.get("mapreduce.input.pathFilter.class") == null

  /** The qualified roots, globs expanded, if all of them exist on one file system that Millstream lists. */
  private def listedRoots(paths: Seq[String], hadoopConf: Configuration): Option[(Listed, Seq[Path])] = {
    val located = paths.map(path =>
      Try {
        val hadoopPath = new Path(path)
        hadoopPath.getFileSystem(hadoopConf) match {
          case fs: FileSystem with ListedFileSystem if fs.listsNatively => Some(fs -> fs.makeQualified(hadoopPath))
          case _ => None
        }
      }.toOption.flatten)
    if (located.isEmpty || located.exists(_.isEmpty) || located.exists(_.get._1 ne located.head.get._1)) {
      None
    } else {
      val fileSystem = located.head.get._1
      val (globs, plain) = located.map(_.get._2).partition(SparkHadoopUtil.get.isGlobPath)
      val expanded = globs.map(SparkHadoopUtil.get.globPath(fileSystem, _))
      val roots = expanded.flatten ++ plain
      val usable = expanded.forall(_.nonEmpty) && plain.forall(fileSystem.exists) &&
        !roots.exists(isStreamingMetadata) && !isStreamingOutput(fileSystem, paths)
      if (usable) Some(fileSystem -> roots) else None
    }
  }

  /** Whether a path is the log of a streaming query or inside it; Spark removes such paths from the roots. */
  private def isStreamingMetadata(path: Path): Boolean =
    path.toUri.getPath.split('/').contains(StreamingMetadata)

  /**
   * Whether the path is the output of a streaming query, whose files are determined by its log and not by a listing. As
   * in Spark, a log that the user may not look for counts as missing.
   */
  private def isStreamingOutput(fileSystem: FileSystem, paths: Seq[String]): Boolean =
    paths match {
      case Seq(single) =>
        try {
          fileSystem.exists(new Path(single, StreamingMetadata))
        } catch {
          case NonFatal(e) =>
            logDebug(s"Looking for $StreamingMetadata in $single", e)
            false
        }
      case _ => false
    }

  private def relation(
      format: FileFormat,
      index: CompactFileIndex,
      parameters: Map[String, String],
      userSchema: Option[StructType],
      use: SchemaUse): Option[HadoopFsRelation] = {
    val options = CaseInsensitiveMap(parameters)
    val partitionSchema = index.partitionSchema
    val dataSchema = userSchema
      .map(schema => StructType(schema.filterNot(f => partitionSchema.exists(p => conf.resolver(p.name, f.name)))))
      .orElse(inferred(format, index, options - "path"))
    dataSchema.map { schema =>
      warnOfDuplicates(schema, partitionSchema)
      SchemaUtils.checkSchemaColumnNameDuplication(schema, conf.resolver)
      SchemaUtils.checkSchemaColumnNameDuplication(partitionSchema, conf.resolver)
      SparkLine.verifySchema(format, schema, use)
      HadoopFsRelation(index, partitionSchema, schema.asNullable, None, format, options)(spark)
    }
  }

  /** The schema that Spark infers from all files. */
  private def inferred(
      format: FileFormat,
      index: CompactFileIndex,
      options: Map[String, String]): Option[StructType] = {
    val classicSpark = spark.asInstanceOf[classic.SparkSession]
    if (LineSchema.isInferredFromLines(classicSpark, format, options) && index.allFiles().nonEmpty) {
      // With a base path, Spark's relation of lines has partition columns; one of them may have the name of the lines.
      index.dataFiles.filter(_ => !options.contains(FileIndexOptions.BASE_PATH_PARAM))
        .map(LineSchema.infer(classicSpark, format, options, index, _))
        .orElse(format.inferSchema(spark, options, index.allFiles()))
    } else {
      format.inferSchema(spark, options, filesForSchema(format, index, options))
    }
  }

  /**
   * If schemas of Parquet files are not merged, Spark reads the file whose path is the first, for which it sorts all
   * paths.
   */
  private def filesForSchema(format: FileFormat, index: CompactFileIndex, options: Map[String, String]) = format match {
    case _: ParquetFileFormat if !new ParquetOptions(options, conf).mergeSchema =>
      index.firstByPath.fold(index.allFiles())(Seq(_))
    case _ => index.allFiles()
  }

  /** Warns, like Spark, if a column is both in the files and in the names of directories. */
  private def warnOfDuplicates(dataSchema: StructType, partitionSchema: StructType): Unit =
    try {
      SchemaUtils.checkColumnNameDuplication((dataSchema ++ partitionSchema).map(_.name), conf.resolver)
    } catch {
      case e: AnalysisException => logWarning(e.getMessage)
    }
}

private[millstream] object ListedRelations {

  /** The directory of a streaming query's log in the directory that it writes to. */
  val StreamingMetadata = "_spark_metadata"

  /** Spark 4.3's default of `spark.sql.files.ignoredPathSegmentRegex`; earlier versions have only this rule. */
  private val DefaultIgnoredNames = "^[._]"

  private val Formats: Set[Class[_]] = Set(
    classOf[TextFileFormat],
    classOf[CSVFileFormat],
    classOf[JsonFileFormat],
    classOf[ParquetFileFormat],
    classOf[OrcFileFormat],
    classOf[BinaryFileFormat])

  private val Names = Set("text", "csv", "json", "parquet", "orc", "binaryfile")

  private val ReadsArchives = "spark.sql.files.archive.reader.enabled"

  /** Whether archives are read as directories. */
  def readsArchives(conf: SQLConf): Boolean = conf.getConfString(ReadsArchives, "false").toBoolean

  /** Whether a name is the short one of a supported format, without a search of the class path. */
  def isShortName(name: String): Boolean = Names(name.toLowerCase(Locale.ROOT))

  /** Whether Millstream lists and reads this built-in Spark format. */
  def supports(format: FileFormat): Boolean = Formats.contains(format.getClass)

  /** Spark's built-in formats, if they are read through the first version of the data source API, as by default. */
  def format(name: String, conf: SQLConf): Option[FileFormat] =
    Try(DataSource.lookupDataSourceV2(name, conf)).toOption.filter(_.isEmpty).flatMap(_ => formatOfVersion1(name, conf))

  /** Spark's built-in formats, as SQL statements read them: always through the first version of the data source API. */
  def formatOfVersion1(name: String, conf: SQLConf): Option[FileFormat] =
    Try {
      DataSource.lookupDataSource(name, conf).getConstructor().newInstance() match {
        case v2: FileDataSourceV2 => Some(v2.fallbackFileFormat.getConstructor().newInstance())
        case format: FileFormat => Some(format)
        case _ => None
      }
    }.toOption.flatten.filter(supports)
}
