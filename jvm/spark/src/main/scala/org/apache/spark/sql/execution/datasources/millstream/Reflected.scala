package org.apache.spark.sql.execution.datasources.millstream

import java.lang.reflect.{InvocationTargetException, Method}

/** Calls of methods whose signatures differ between Spark's lines, or whose classes nothing here can name. */
private[sql] object Reflected {
  /**
   * The method of a name, of which there is one.
   *
   * @throws NoSuchMethodError if there is none: this is no line of Spark that is known
   */
  def method(of: Class[_], name: String): Method =
    of.getMethods.find(_.getName == name).getOrElse(throw new NoSuchMethodError(s"${of.getName}.$name"))

  /** Calls with as many of the arguments as the method takes. What it throws is thrown as it is. */
  def call(method: Method, target: AnyRef, arguments: AnyRef*): AnyRef =
    try {
      method.invoke(target, arguments.take(method.getParameterCount): _*)
    } catch {
      case e: InvocationTargetException => throw e.getCause
    }
}
