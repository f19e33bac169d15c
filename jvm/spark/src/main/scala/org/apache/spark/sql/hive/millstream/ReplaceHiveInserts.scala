package org.apache.spark.sql.hive.millstream

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.execution.command.DataWritingCommand
import org.apache.spark.sql.execution.datasources.millstream.write.{ReplaceCommands, ReplaceInserts}
import org.apache.spark.sql.hive.execution.{InsertIntoHiveDirCommand, InsertIntoHiveTable}

/** Replaces the commands that write with Hive's serdes. */
class ReplaceHiveInserts(session: SparkSession)
    extends ReplaceCommands(session, classOf[InsertIntoHiveTable], classOf[InsertIntoHiveDirCommand]) {
  override protected def root(command: DataWritingCommand): Path = command match {
    case insert: InsertIntoHiveTable => new Path(insert.table.location)
    case insert: InsertIntoHiveDirCommand =>
      DirectInsertIntoHiveDir.root(insert.isLocal, insert.storage, hadoopConf(insert))
  }

  override protected def hadoopConf(command: DataWritingCommand): Configuration = command match {
    case insert: InsertIntoHiveTable => insert.hiveTmpPath.hadoopConf
    case _ => session.sessionState.newHadoopConf()
  }

  override protected def direct(command: DataWritingCommand): Option[DataWritingCommand] = {
    DirectHiveFileFormat.check()
    command match {
      case insert: InsertIntoHiveTable => toTable(insert)
      case insert: InsertIntoHiveDirCommand => toDirectory(insert)
    }
  }

  private def toTable(insert: InsertIntoHiveTable): Option[DirectInsertIntoHiveTable] =
    Option.when(ReplaceInserts.isOfFiles(insert.table, insert.overwrite, insert.hiveTmpPath.hadoopConf) &&
      ReplaceInserts.suits(
        new Path(insert.table.location),
        insert.overwrite,
        insert.hiveTmpPath.hadoopConf,
        conf,
        Some(session))) {
      new DirectInsertIntoHiveTable(
        insert.table,
        insert.partition,
        insert.query,
        insert.overwrite,
        insert.ifPartitionNotExists,
        insert.outputColumnNames,
        insert.partitionColumns,
        insert.bucketSpec,
        insert.options,
        insert.fileFormat,
        insert.hiveTmpPath)
    }

  private def toDirectory(insert: InsertIntoHiveDirCommand): Option[DirectInsertIntoHiveDir] = {
    val hadoopConf = session.sessionState.newHadoopConf()
    val root = DirectInsertIntoHiveDir.root(insert.isLocal, insert.storage, hadoopConf)
    Option.when(isWrittenByTasks(
      insert.isLocal,
      root,
      hadoopConf) && ReplaceInserts.suits(root, insert.overwrite, hadoopConf, conf)) {
      new DirectInsertIntoHiveDir(
        insert.isLocal,
        insert.storage,
        insert.query,
        insert.overwrite,
        insert.outputColumnNames)
    }
  }

  /**
   * Whether tasks write to the directory; false for one on the driver's disk, to which Spark copies
   * from a file system shared by executors.
   */
  private def isWrittenByTasks(isLocal: Boolean, root: Path, hadoopConf: Configuration): Boolean = {
    val isOfDriver =
      isLocal && !session.sparkContext.isLocal && FileSystem.getDefaultUri(hadoopConf).getScheme != "file"
    if (isOfDriver)
      ReplaceInserts.warn(root.toString, "it is a directory on the driver's machine, but tasks run elsewhere")
    !isOfDriver
  }
}
