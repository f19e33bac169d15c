package org.apache.spark.sql.execution.datasources.millstream

import java.lang.reflect.{InvocationTargetException, Method}

/** Calls of methods whose signatures differ between Spark's lines, or whose classes nothing here can name. */
private[sql] object Reflected {
  /**
   * A method with one of the signatures that the supported lines have.
   *
   * @param signatures the parameters' types, the newest line's first
   * @throws NoSuchMethodError if it has none of them: this is no line of Spark that is known
   */
  def method(of: Class[_], name: String, signatures: Seq[Class[_]]*): Method =
    signatures.flatMap(types => of.getMethods.find(found => found.getName == name && found.getParameterTypes.sameElements(types))).headOption
      .getOrElse(throw new NoSuchMethodError(s"${of.getName}.$name with ${signatures.map(_.map(_.getSimpleName).mkString("(", ", ", ")")).mkString(" or ")}"))

  /** Calls with as many of the arguments as the method takes. What it throws is thrown as it is. */
  def call(method: Method, target: AnyRef, arguments: AnyRef*): AnyRef =
    try {
      method.invoke(target, arguments.take(method.getParameterCount): _*)
    } catch {
      case e: InvocationTargetException => throw e.getCause
    }
}
