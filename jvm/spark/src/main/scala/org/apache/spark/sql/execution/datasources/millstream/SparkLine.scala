package org.apache.spark.sql.execution.datasources.millstream

import java.lang.reflect.Method
import java.net.URI
import java.util.concurrent.atomic.AtomicBoolean

import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.catalog.{CatalogStorageFormat, CatalogTable, CatalogTablePartition}
import org.apache.spark.sql.execution.datasources.{DataSourceUtils, FileFormat}
import org.apache.spark.sql.execution.datasources.millstream.write.{DirectInsertIntoHadoopFsRelation, FilesOfQuery}
import org.apache.spark.sql.types.StructType

/** What differs between the 4.x lines that one jar serves, and from those that it does not. */
private[sql] object SparkLine extends Logging {
  private val warned = new AtomicBoolean

  /** None, with one warning, in a Spark whose internals differ from those of the supported lines: it answers by itself. */
  def ifItFits[T](native: => Option[T]): Option[T] =
    try {
      native
    } catch {
      case e @ (_: LinkageError | _: ReflectiveOperationException) =>
        if (warned.compareAndSet(false, true)) {
          logWarning("Millstream does not fit this Spark, so Spark itself lists, reads and writes the files, more slowly and with more " +
            s"memory; results are the same. This is said once. Cause: $e")
        }
        None
    }

  /** Fails as Spark does if the format cannot read a type. Since 4.2 it is told that the schema is for reading. */
  def verifyReadSchema(format: FileFormat, schema: StructType): Unit =
    Reflected.call(verifySchema, DataSourceUtils, format, schema, java.lang.Boolean.TRUE)

  private lazy val verifySchema = {
    val until41 = Seq(classOf[FileFormat], classOf[StructType])
    Reflected.method(DataSourceUtils.getClass, "verifySchema", until41 :+ classOf[Boolean], until41)
  }

  /** Looks for everything that differs, once, when the extension is installed: what does not fit is no surprise within a statement. */
  def check(): Unit = {
    verifySchema
    Seq(classOf[CatalogStorageFormat] -> "locationUri", classOf[CatalogTable] -> "storage", classOf[CatalogTablePartition] -> "storage")
      .foreach { case (of, field) => copyOf(of, field) }
    FilesOfQuery.check()
    DirectInsertIntoHadoopFsRelation.check()
  }

  /** The method that copies an instance of a case class, all of whose fields it takes. */
  private def copyOf(of: Class[_], field: String): Method = {
    val fields = of.getConstructors.head.getParameterTypes.toSeq
    of.getMethod(field)
    Reflected.method(of, "copy", fields)
  }

  def at(location: URI, storage: CatalogStorageFormat): CatalogStorageFormat = replaced(storage, "locationUri", Some(location))

  def at(location: URI, table: CatalogTable): CatalogTable = replaced(table, "storage", at(location, table.storage))

  def at(location: URI, partition: CatalogTablePartition): CatalogTablePartition =
    replaced(partition, "storage", at(location, partition.storage))

  /** A copy with another value of one field; how many fields there are differs. */
  private def replaced[T <: AnyRef with Product](original: T, field: String, value: AnyRef): T = {
    val fields = original.productElementNames.zip(original.productIterator).map {
      case (name, present) => if (name == field) value else present.asInstanceOf[AnyRef]
    }
    Reflected.call(copyOf(original.getClass, field), original, fields.toSeq: _*).asInstanceOf[T]
  }
}
