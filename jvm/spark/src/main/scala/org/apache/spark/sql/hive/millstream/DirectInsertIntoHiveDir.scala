package org.apache.spark.sql.hive.millstream

import scala.jdk.CollectionConverters._

import io.millstream.write.protocol.Overwrite
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.hadoop.hive.metastore.api.FieldSchema
import org.apache.hadoop.hive.ql.metadata.Table
import org.apache.hadoop.hive.ql.plan.{FileSinkDesc, TableDesc}
import org.apache.hadoop.hive.serde2.`lazy`.LazySimpleSerDe
import org.apache.hadoop.mapred.{InputFormat, OutputFormat}

import org.apache.spark.SparkException
import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.datasources.millstream.write.{
  DirectCommand,
  DirectWrite,
  ReadTables,
  ReplaceInserts,
  TableLocations
}
import org.apache.spark.sql.hive.execution.InsertIntoHiveDirCommand
import org.apache.spark.sql.util.SchemaUtils
import org.apache.spark.util.Utils

/** `INSERT OVERWRITE [LOCAL] DIRECTORY` with a serde. */
class DirectInsertIntoHiveDir(
    isLocal: Boolean,
    storage: CatalogStorageFormat,
    query: LogicalPlan,
    overwrite: Boolean,
    outputColumnNames: Seq[String])
    extends InsertIntoHiveDirCommand(isLocal, storage, query, overwrite, outputColumnNames)
    with DirectCommand {

  override protected def withNewChildInternal(newChild: LogicalPlan): InsertIntoHiveDirCommand =
    new DirectInsertIntoHiveDir(isLocal, storage, newChild, overwrite, outputColumnNames)

  override def run(session: SparkSession, child: SparkPlan): Seq[Row] = {
    SchemaUtils.checkColumnNameDuplication(outputColumnNames, session.sessionState.conf.caseSensitiveAnalysis)
    val hadoopConf = session.sessionState.newHadoopConf()
    val root = DirectInsertIntoHiveDir.root(isLocal, storage, hadoopConf)
    ReadTables.finishWrites(session, root, None, hadoopConf)
    if (ReplaceInserts.lacksNames(root.toString, root, "", Nil, overwrite, hadoopConf)) super.run(session, child)
    else writeDirectly(session, child, root, hadoopConf)
  }

  private def writeDirectly(
      session: SparkSession,
      child: SparkPlan,
      root: Path,
      hadoopConf: Configuration): Seq[Row] = {
    try {
      val sink = new FileSinkDesc(root, description, false)
      setupHadoopConfForCompression(sink, hadoopConf, session)
      DirectWrite(
        name = root.toString,
        root = root,
        within = "",
        static = "",
        overwrite = if (overwrite) Overwrite.below(List("").asJava) else Overwrite.nothing(),
        conf = hadoopConf,
        format = new DirectHiveFileFormat(sink),
        outputColumns = outputColumns,
        partitionColumns = Nil,
        staticPartitionColumns = 0,
        bucketSpec = None,
        options = Map.empty,
        marksSuccess = true,
        change = None,
        visibility = TableLocations.visibility(root.toString, root, overwrite, isPartitioned = false, hadoopConf)(
          Some("it is a directory, not a table of the catalog")),
        moved = Map.empty,
        table = None,
        reads =
          getTagValue(ReadTables.Guards).getOrElse(Nil)).run(session, child, metrics, refresh = () => ())(super.run(
        session,
        child))
    } catch {
      case e: Throwable =>
        throw new SparkException(s"Failed inserting overwrite directory ${storage.locationUri.get}", e)
    }
    Nil
  }

  /** The description of a table that a serde requires, although there is no table. */
  private def description: TableDesc = {
    val table = new Table("default", storage.locationUri.get.toString)
    table.setFields(outputColumns.map(column =>
      new FieldSchema(column.name, column.dataType.catalogString, null)).asJava)
    storage.inputFormat.foreach(name => table.setInputFormatClass(Utils.classForName[InputFormat[_, _]](name)))
    storage.outputFormat.foreach(name => table.setOutputFormatClass(Utils.classForName[OutputFormat[_, _]](name)))
    table.setSerializationLib(storage.serde.getOrElse(classOf[LazySimpleSerDe].getName))
    storage.properties.foreach { case (key, value) => table.setSerdeParam(key, value) }
    new TableDesc(table.getInputFormatClass, table.getOutputFormatClass, table.getMetadata)
  }
}

private[millstream] object DirectInsertIntoHiveDir {
  def root(isLocal: Boolean, storage: CatalogStorageFormat, hadoopConf: Configuration): Path = {
    val path = new Path(storage.locationUri.get)
    val fileSystem = if (isLocal) FileSystem.getLocal(hadoopConf) else path.getFileSystem(hadoopConf)
    fileSystem.makeQualified(path)
  }
}
