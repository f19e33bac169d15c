package org.apache.spark.sql.execution.datasources.millstream.write

import java.io.{FileNotFoundException, IOException}

import scala.jdk.CollectionConverters._

import io.millstream.write.protocol.Finding
import io.millstream.write.recovery.Recovery
import io.millstream.write.store.SwapDirectories
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.{classic, SparkSession}

/**
 * Resolves direct writes whose drivers have died: committed jobs are finished, the files of others are removed.
 */
object DirectRecovery {
  /**
   * Resolves the jobs of a table or a directory.
   *
   * @param choices the user's choices
   * @param target a path if it contains a slash, a table's name otherwise
   */
  def recover(spark: SparkSession, target: String, choices: Recovery.Choices): Seq[Finding] = {
    val session = spark.asInstanceOf[classic.SparkSession]
    val table = Option.when(!target.contains('/')) {
      session.sessionState.catalog.getTableMetadata(session.sessionState.sqlParser.parseTableIdentifier(target))
    }
    val location = table.fold(new Path(target))(found => new Path(found.location))
    // A table's options may contain settings of its file system.
    val conf = session.sessionState.newHadoopConfWithOptions(table.fold(Map.empty[String, String])(_.storage.properties))
    val fileSystem = location.getFileSystem(conf)
    if (table.isEmpty) {
      if (!fileSystem.exists(location)) throw new FileNotFoundException("there is no such directory")
      if (fileSystem.getFileStatus(location).isFile) throw new IOException("this is a file, not a directory")
    }
    val root = SwapDirectories.home(fileSystem.makeQualified(location))
    val findings = Recovery.recover(root, conf, CatalogMetastore.of(session, table), choices).asScala.toSeq
    table.fold(session.catalog.refreshByPath(root.toString))(found => session.sessionState.catalog.refreshTable(found.identifier))
    findings
  }
}
