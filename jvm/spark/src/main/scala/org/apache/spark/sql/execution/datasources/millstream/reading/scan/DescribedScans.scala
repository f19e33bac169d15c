package org.apache.spark.sql.execution.datasources.millstream.reading.scan

import java.lang.invoke.MethodHandles
import java.lang.reflect.Constructor

import scala.util.control.NonFatal

import org.apache.xbean.asm9.{ClassWriter, Type}
import org.apache.xbean.asm9.Opcodes._

import org.apache.spark.internal.Logging

/**
 * The scans of plans, in classes whose metadata Spark writes to event logs, like those of its own file scans.
 *
 * Spark writes the metadata of a node that is a `FileSourceScanLike`, and does nothing else with this type. Its members
 * differ between Spark versions, and Scala copies them into each class that has the trait, so no class compiled for one
 * Spark would work on the others. Therefore the classes are generated at run time, with the library with which Spark
 * inspects closures: subclasses that add the trait and implement only `metadata`. Only the driver has them, so a node
 * is serialized as the plain class. If generating them fails, plans contain the plain classes, whose metadata are not
 * in event logs.
 */
private[millstream] object DescribedScans extends Logging {
  private val Trait = "org/apache/spark/sql/execution/FileSourceScanLike"

  /** The constructor of such a subclass, with the arguments of the base class; Spark copies nodes by it. */
  def of[T <: PackedScan](base: Class[T]): Constructor[_ <: T] = {
    val plain = base.getConstructors.head.asInstanceOf[Constructor[T]]
    try {
      MethodHandles.lookup().defineClass(subclass(base, plain)).getConstructors.head.asInstanceOf[Constructor[_ <: T]]
    } catch {
      case e @ (NonFatal(_) | _: LinkageError) =>
        logInfo(s"Event logs will not have the metadata of ${base.getSimpleName}, because this Spark describes scans differently: $e")
        plain
    }
  }

  /** `class DescribedX(…) extends X(…) with FileSourceScanLike { override def metadata = scanMetadata }` */
  private def subclass(base: Class[_], constructor: Constructor[_]): Array[Byte] = {
    val superclass = Type.getInternalName(base)
    val made = new ClassWriter(0)
    made.visit(
      V17,
      ACC_PUBLIC | ACC_FINAL | ACC_SUPER,
      s"${Type.getInternalName(getClass).stripSuffix("DescribedScans$")}Described${base.getSimpleName}",
      null,
      superclass,
      Array(Trait))

    val descriptor = Type.getConstructorDescriptor(constructor)
    val arguments = Type.getArgumentTypes(descriptor)
    val slots = arguments.scanLeft(1)(_ + _.getSize)
    val init = made.visitMethod(ACC_PUBLIC, "<init>", descriptor, null, null)
    init.visitCode()
    init.visitVarInsn(ALOAD, 0)
    for ((argument, slot) <- arguments.zip(slots)) init.visitVarInsn(argument.getOpcode(ILOAD), slot)
    init.visitMethodInsn(INVOKESPECIAL, superclass, "<init>", descriptor, false)
    init.visitInsn(RETURN)
    init.visitMaxs(slots.last, slots.last)
    init.visitEnd()

    val result = Type.getMethodDescriptor(base.getMethod("scanMetadata"))
    val metadata = made.visitMethod(ACC_PUBLIC, "metadata", result, null, null)
    metadata.visitCode()
    metadata.visitVarInsn(ALOAD, 0)
    metadata.visitMethodInsn(INVOKEVIRTUAL, superclass, "scanMetadata", result, false)
    metadata.visitInsn(ARETURN)
    metadata.visitMaxs(1, 1)
    metadata.visitEnd()

    made.visitEnd()
    made.toByteArray
  }
}
