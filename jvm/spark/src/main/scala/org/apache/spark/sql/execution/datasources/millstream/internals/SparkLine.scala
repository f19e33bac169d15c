package org.apache.spark.sql.execution.datasources.millstream.internals

import java.lang.reflect.Method
import java.net.URI
import java.util.concurrent.atomic.AtomicBoolean

import org.apache.spark.internal.Logging
import org.apache.spark.sql.catalyst.catalog.{CatalogStorageFormat, CatalogTable, CatalogTablePartition}
import org.apache.spark.sql.execution.datasources.{DataSourceUtils, FileFormat}
import org.apache.spark.sql.types.StructType

/** Differences between the 4.x release lines that one jar supports, and detection of unsupported ones. */
private[sql] object SparkLine extends Logging {
  private val warned = new AtomicBoolean

  /**
   * None, with one warning, in a Spark whose internals differ from the supported lines'; Spark then does the work
   * itself.
   */
  def ifSupported[T](native: => Option[T]): Option[T] =
    try {
      native
    } catch {
      case e @ (_: LinkageError | _: ReflectiveOperationException) =>
        if (warned.compareAndSet(false, true)) {
          logWarning("Millstream does not support this Spark, so Spark itself lists, reads and writes the files, more slowly and with more " +
            s"memory; results are the same. This warning is not repeated. Cause: $e")
        }
        None
    }

  /**
   * Fails like Spark if the format does not have a type. Since 4.2, an additional argument tells whether the schema is
   * only for reading.
   */
  def verifySchema(format: FileFormat, schema: StructType, use: SchemaUse): Unit =
    Reflected.call(
      verifySchemaMethod,
      DataSourceUtils,
      format,
      schema,
      java.lang.Boolean.valueOf(use == SchemaUse.Reading))

  private lazy val verifySchemaMethod = {
    val until41 = Seq(classOf[FileFormat], classOf[StructType])
    Reflected.method(DataSourceUtils.getClass, "verifySchema", until41 :+ classOf[Boolean], until41)
  }

  /** Looks up everything that differs, except for what only direct writes need. */
  def check(): Unit = {
    verifySchemaMethod
    Seq(
      classOf[CatalogStorageFormat] -> "locationUri",
      classOf[CatalogTable] -> "storage",
      classOf[CatalogTable] -> "schema",
      classOf[CatalogTable] -> "partitionColumnNames",
      classOf[CatalogTablePartition] -> "storage")
      .foreach { case (of, field) => copyOf(of, field) }
  }

  /** The copy method of a case class, which takes all fields. */
  private def copyOf(of: Class[_], field: String): Method = {
    val fields = of.getConstructors.head.getParameterTypes.toSeq
    of.getMethod(field)
    Reflected.method(of, "copy", fields)
  }

  def at(location: URI, storage: CatalogStorageFormat): CatalogStorageFormat =
    replaced(storage, "locationUri", Some(location))

  def at(location: URI, table: CatalogTable): CatalogTable = replaced(table, "storage", at(location, table.storage))

  def at(location: URI, partition: CatalogTablePartition): CatalogTablePartition =
    replaced(partition, "storage", at(location, partition.storage))

  /** A table with another schema, whose last columns are its partitions. */
  def withSchema(schema: StructType, partitionColumns: Seq[String], table: CatalogTable): CatalogTable =
    replaced(replaced(table, "schema", schema), "partitionColumnNames", partitionColumns)

  /** A copy with another value of one field; the number of fields differs between lines. */
  private def replaced[T <: AnyRef with Product](original: T, field: String, value: AnyRef): T = {
    val fields = original.productElementNames.zip(original.productIterator).map {
      case (name, present) => if (name == field) value else present.asInstanceOf[AnyRef]
    }
    Reflected.call(copyOf(original.getClass, field), original, fields.toSeq: _*).asInstanceOf[T]
  }
}

/** The intended use of a relation's schema: some types can only be read. */
private[millstream] sealed trait SchemaUse

private[millstream] object SchemaUse {
  case object Reading extends SchemaUse
  case object ReadingAndWriting extends SchemaUse
}
