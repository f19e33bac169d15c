package org.apache.spark.sql.execution.datasources.millstream.internals

import java.lang.reflect.{Field, InvocationTargetException, Method}

/**
 * Calls of methods whose signatures differ between Spark's release lines, or whose classes cannot be named at
 * compile time.
 */
private[sql] object Reflected {

  /**
   * A method that has one of several signatures in the supported release lines.
   *
   * @param signatures the parameters' types, beginning with the newest line
   * @throws NoSuchMethodError if it has none of them, because this release line of Spark is not supported
   */
  def method(of: Class[_], name: String, signatures: Seq[Class[_]]*): Method =
    signatures.flatMap(types =>
      of.getMethods.find(found => found.getName == name && found.getParameterTypes.sameElements(types))).headOption
      .getOrElse(throw new NoSuchMethodError(
        s"${of.getName}.$name with ${signatures.map(_.map(_.getSimpleName).mkString("(", ", ", ")")).mkString(" or ")}"))

  /** A private field whose value can be read and replaced. */
  def field(of: Class[_], name: String): Field = {
    val found = of.getDeclaredField(name)
    found.setAccessible(true)
    found
  }

  /** Calls a method with as many of the arguments as it takes. Its exceptions are not wrapped. */
  def call(method: Method, target: AnyRef, arguments: AnyRef*): AnyRef =
    try {
      method.invoke(target, arguments.take(method.getParameterCount): _*)
    } catch {
      case e: InvocationTargetException => throw e.getCause
    }
}
