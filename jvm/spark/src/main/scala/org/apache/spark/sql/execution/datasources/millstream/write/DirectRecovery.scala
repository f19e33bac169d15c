package org.apache.spark.sql.execution.datasources.millstream.write

import scala.jdk.CollectionConverters._

import io.millstream.write.Recovery
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.{classic, SparkSession}

/** Settles direct writes whose drivers have died: what is committed is finished, everything else is removed. */
object DirectRecovery {
  /**
   * Settles those of a table or of a directory.
   *
   * @param target a path if there is a slash in it, a table's name otherwise
   */
  def recover(spark: SparkSession, target: String, run: Recovery.Run): Seq[Recovery.Finding] = {
    val session = spark.asInstanceOf[classic.SparkSession]
    val table = Option.when(!target.contains('/'))(session.sessionState.sqlParser.parseTableIdentifier(target))
    val location = table.fold(new Path(target))(name => new Path(session.sessionState.catalog.getTableMetadata(name).location))
    val conf = session.sessionState.newHadoopConf()
    val root = location.getFileSystem(conf).makeQualified(location)
    val findings = Recovery.recover(root, conf, CatalogMetastore.of(session), run).asScala.toSeq
    table.fold(session.catalog.refreshByPath(root.toString))(name => session.sessionState.catalog.refreshTable(name))
    findings
  }
}
