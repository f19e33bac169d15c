package org.apache.spark.sql.execution.datasources.millstream

import java.lang.reflect.InvocationTargetException

import org.apache.spark.sql.execution.datasources.{DataSourceUtils, FileFormat}
import org.apache.spark.sql.types.StructType

/** Calls into Spark whose signatures differ between the 4.x lines that one jar serves. */
private object SparkLine {
  private val found = DataSourceUtils.getClass.getMethods.find(_.getName == "verifySchema")

  /** Fails as Spark does if the format cannot read a type. Since 4.2 it is told that the schema is for reading. */
  def verifyReadSchema(format: FileFormat, schema: StructType): Unit = {
    val verifySchema = found.getOrElse(throw new NoSuchMethodError("DataSourceUtils.verifySchema"))
    val arguments = Seq[AnyRef](format, schema, java.lang.Boolean.TRUE).take(verifySchema.getParameterCount)
    try {
      verifySchema.invoke(DataSourceUtils, arguments: _*)
    } catch {
      case e: InvocationTargetException => throw e.getCause
    }
  }
}
