package org.apache.spark.sql.execution.datasources.millstream.write

import java.io.{FileNotFoundException, IOException}

import scala.jdk.CollectionConverters._

import io.millstream.write.protocol.Finding
import io.millstream.write.recovery.Recovery
import io.millstream.write.store.SwapDirectories
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}

import org.apache.spark.sql.{classic, SparkSession}
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog.{CatalogTable, CatalogTableType}

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
    val table = Option.when(!target.contains('/'))(named(session, target))
    val location = table.fold(new Path(target))(found => new Path(found.location))
    // A table's options may contain settings of its file system.
    val conf =
      session.sessionState.newHadoopConfWithOptions(table.fold(Map.empty[String, String])(_.storage.properties))
    val fileSystem = fileSystemOf(location, conf)
    if (table.isEmpty) {
      if (!fileSystem.exists(location)) throw new FileNotFoundException("there is no such directory")
      if (fileSystem.getFileStatus(location).isFile) throw new IOException("this is a file, not a directory")
    }
    val root = SwapDirectories.home(fileSystem.makeQualified(location))
    val findings = Recovery.recover(root, conf, CatalogMetastore.of(session, table), choices).asScala.toSeq
    table.foreach(found => session.sessionState.catalog.refreshTable(found.identifier))
    ReadTables.forgetListings(session, root)
    findings
  }

  /** The table of a name, as Spark prints it: with the session's catalog before the database, or without. */
  private def named(session: classic.SparkSession, target: String): CatalogTable = {
    val parts = session.sessionState.sqlParser.parseMultipartIdentifier(target)
    val identifier =
      (if (parts.length == 3 && parts.head.equalsIgnoreCase(SessionCatalog)) parts.tail else parts) match {
        case Seq(table) => TableIdentifier(table)
        case Seq(database, table) => TableIdentifier(table, Some(database))
        case _ =>
          throw new IOException(s"not a table of $SessionCatalog, Spark's own catalog, to which direct writes are limited; give DATABASE.TABLE, or a path")
      }
    if (session.sessionState.catalog.isTempView(identifier)) throw new IOException(OfView)
    val found = session.sessionState.catalog.getTableMetadata(identifier)
    if (found.tableType == CatalogTableType.VIEW) throw new IOException(OfView)
    if (found.storage.locationUri.isEmpty) throw new IOException("this table has no directory")
    found
  }

  private val SessionCatalog = "spark_catalog"
  private val OfView = "this is a view, which has no files; recover the tables or directories that it reads"

  /** A class path often lacks the file system of a path. */
  private def fileSystemOf(location: Path, conf: Configuration): FileSystem =
    try location.getFileSystem(conf)
    catch {
      case e @ (_: RuntimeException | _: LinkageError)
          if Seq(e, e.getCause).exists(cause =>
            cause.isInstanceOf[ClassNotFoundException] || cause.isInstanceOf[LinkageError]) =>
        throw new IOException(
          s"Hadoop's file system for ${location.toUri.getScheme}: is not on the class path (${Option(e.getCause).getOrElse(e).getMessage}); " +
            "add its jars, for example with --conf=spark.driver.extraClassPath=/opt/s3a/* (docs/remote.md)",
          e)
    }
}
