package org.apache.spark.sql.execution.datasources.millstream

import scala.util.Try

import io.millstream.hadoop.{ListingOptions, MillstreamLocalFileSystem}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.deploy.SparkHadoopUtil
import org.apache.spark.internal.config.ConfigEntry
import org.apache.spark.sql.{AnalysisException, SparkSession}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnresolvedDataSource}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.datasources.binaryfile.BinaryFileFormat
import org.apache.spark.sql.execution.datasources.csv.CSVFileFormat
import org.apache.spark.sql.execution.datasources.json.JsonFileFormat
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.execution.datasources.text.TextFileFormat
import org.apache.spark.sql.execution.datasources.v2.FileDataSourceV2
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.SchemaUtils

/**
 * Resolves `spark.read…load(path)` on local files to a relation over a [[CompactFileIndex]].
 *
 * Hint rules run before the rule in which Spark lists the files of an unresolved data source, so Spark's own index is never
 * created. The steps are those of Spark's `ResolveDataSource` and `DataSource.resolveRelation`. Unsupported cases (another
 * file system, a missing path, an option that changes which files count, a schema that cannot be inferred) stay unresolved,
 * so that Spark itself handles them and reports its own errors.
 */
class IndexLocalFiles(spark: SparkSession) extends Rule[LogicalPlan] {
  import IndexLocalFiles._

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (Keys.get(conf, Enabled)) {
      plan.resolveOperatorsUp {
        case source: UnresolvedDataSource if !source.isStreaming => SparkLine.ifSupported(resolve(source)).getOrElse(source)
      }
    } else {
      plan
    }

  private def resolve(source: UnresolvedDataSource): Option[LogicalPlan] =
    for {
      format <- fileFormat(source.format)
      request <- Request.of(source, conf.legacyPathOptionBehavior)
      hadoopConf = spark.sessionState.newHadoopConfWithOptions(request.options)
      if usesDefaultNameFilter(request.options, hadoopConf)
      (fileSystem, roots) <- localRoots(request, hadoopConf)
      index <- CompactFileIndex.create(spark, fileSystem, roots, request.options, source.userSpecifiedSchema)
      relation <- relation(format, index, request, source.userSpecifiedSchema)
    } yield LogicalRelation(relation)

  /** Spark's built-in formats, if they are read through the first version of the data source API, as by default. */
  private def fileFormat(name: String): Option[FileFormat] =
    Try {
      if (DataSource.lookupDataSourceV2(name, conf).isDefined) {
        None
      } else {
        DataSource.lookupDataSource(name, conf).getConstructor().newInstance() match {
          case v2: FileDataSourceV2 => Some(v2.fallbackFileFormat.getConstructor().newInstance())
          case format: FileFormat => Some(format)
          case _ => None
        }
      }
    }.toOption.flatten.filter(format => Formats.contains(format.getClass))

  private def usesDefaultNameFilter(options: Map[String, String], hadoopConf: Configuration): Boolean =
    !CaseInsensitiveMap(options).contains("ignoredPathSegmentRegex") &&
      conf.getConfString("spark.sql.files.ignoredPathSegmentRegex", DefaultIgnoredNames) == DefaultIgnoredNames &&
      hadoopConf.get("mapreduce.input.pathFilter.class") == null

  /** The qualified roots, globs expanded, if all of them exist on one native file system. */
  private def localRoots(request: Request, hadoopConf: Configuration): Option[(MillstreamLocalFileSystem, Seq[Path])] = {
    val located = request.paths.map(path => Try {
      val hadoopPath = new Path(path)
      hadoopPath.getFileSystem(hadoopConf) match {
        case fs: MillstreamLocalFileSystem if fs.listsNatively => Some(fs -> fs.makeQualified(hadoopPath))
        case _ => None
      }
    }.toOption.flatten)
    if (located.isEmpty || located.exists(_.isEmpty)) {
      None
    } else {
      val fileSystem = located.head.get._1
      val (globs, plain) = located.map(_.get._2).partition(SparkHadoopUtil.get.isGlobPath)
      val expanded = globs.map(SparkHadoopUtil.get.globPath(fileSystem, _))
      val roots = expanded.flatten ++ plain
      val usable = expanded.forall(_.nonEmpty) && plain.forall(fileSystem.exists) &&
        !roots.exists(isStreamingMetadata) && !isStreamingOutput(fileSystem, request)
      if (usable) Some(fileSystem -> roots) else None
    }
  }

  /** Whether a path is the log of a streaming query or inside it; Spark removes such paths from the roots. */
  private def isStreamingMetadata(path: Path): Boolean =
    path.toUri.getPath.split('/').contains(StreamingMetadata)

  /** Whether the path is the output of a streaming query, whose files are determined by its log and not by a listing. */
  private def isStreamingOutput(fileSystem: MillstreamLocalFileSystem, request: Request): Boolean =
    request.paths match {
      case Seq(single) => fileSystem.exists(new Path(single, StreamingMetadata))
      case _ => false
    }

  private def relation(
      format: FileFormat,
      index: CompactFileIndex,
      request: Request,
      userSchema: Option[StructType]): Option[HadoopFsRelation] = {
    val options = CaseInsensitiveMap(request.options)
    val partitionSchema = index.partitionSchema
    val dataSchema = userSchema
      .map(schema => StructType(schema.filterNot(f => partitionSchema.exists(p => conf.resolver(p.name, f.name)))))
      .orElse(format.inferSchema(spark, options - "path", index.allFiles()))
    dataSchema.map { schema =>
      warnOfDuplicates(schema, partitionSchema)
      SchemaUtils.checkSchemaColumnNameDuplication(schema, conf.resolver)
      SchemaUtils.checkSchemaColumnNameDuplication(partitionSchema, conf.resolver)
      SparkLine.verifyReadSchema(format, schema)
      HadoopFsRelation(index, partitionSchema, schema.asNullable, None, format, options)(spark)
    }
  }

  /** Warns, like Spark, if a column is both in the files and in the names of directories. */
  private def warnOfDuplicates(dataSchema: StructType, partitionSchema: StructType): Unit =
    try {
      SchemaUtils.checkColumnNameDuplication((dataSchema ++ partitionSchema).map(_.name), conf.resolver)
    } catch {
      case e: AnalysisException => logWarning(e.getMessage)
    }
}

private object IndexLocalFiles {
  val Enabled: ConfigEntry[Boolean] = SQLConf.buildConf(ListingOptions.ENABLED_IN_DRIVER)
    .doc("Whether Millstream lists local files. If false when the driver starts, all listing is Spark's and Hadoop's own; if set to " +
      "false in a running session, its DataFrames do not use the compact index.")
    .booleanConf
    .createWithDefault(true)

  val StreamingMetadata = "_spark_metadata"

  /** Spark 4.3's default of `spark.sql.files.ignoredPathSegmentRegex`; earlier versions have only this rule. */
  val DefaultIgnoredNames = "^[._]"

  val Formats: Set[Class[_]] = Set(classOf[TextFileFormat], classOf[CSVFileFormat], classOf[JsonFileFormat],
    classOf[ParquetFileFormat], classOf[OrcFileFormat], classOf[BinaryFileFormat])

  /** The paths and options of a read, with the paths that Spark's data source would use. */
  final case class Request(paths: Seq[String], options: Map[String, String])

  object Request {
    def of(source: UnresolvedDataSource, legacyPathOption: Boolean): Option[Request] = {
      val options = source.options
      val pathsTwice = (options.contains("path") || options.contains("paths")) && source.paths.nonEmpty
      val globbing = options.get(DataSource.GLOB_PATHS_KEY).forall(_ == "true")
      if (!globbing || pathsTwice && !legacyPathOption) {
        None
      } else if (!legacyPathOption && source.paths.length == 1) {
        Some(Request(source.paths, (options + ("path" -> source.paths.head)).originalMap))
      } else {
        Some(Request(options.get("path").toSeq ++ source.paths, options.originalMap))
      }
    }
  }
}
