package org.apache.spark.sql.hive.millstream

import java.lang.reflect.InvocationTargetException
import java.util.{List => JavaList, Locale, Map => JavaMap, Objects}

import scala.jdk.CollectionConverters._

import io.millstream.write.MetastoreChange

import org.apache.spark.sql.catalyst.catalog.{ExternalCatalog, ExternalCatalogWithListener}
import org.apache.spark.sql.execution.datasources.PartitioningUtils
import org.apache.spark.sql.execution.datasources.millstream.write.CatalogMetastore
import org.apache.spark.sql.hive.HiveExternalCatalog

/**
 * Carries out commits' changes in Hive's metastore: partitions in batches, parameters as they are given.
 *
 * Spark's own way to change a partition makes the metastore list its directory, and loses the partition's own columns. So this
 * asks the metastore's client behind Spark's, by reflection, because a class loader of its own has loaded that.
 */
class HiveMetastore(catalog: ExternalCatalog) extends CatalogMetastore(catalog) {
  import HiveMetastore._

  private val client = catalog.asInstanceOf[ExternalCatalogWithListener].unwrapped.asInstanceOf[HiveExternalCatalog].client

  override protected def carryOut(change: MetastoreChange): Unit = {
    val missing = client.withHiveState(changeKnown(change, change.partitions.asScala.toSeq))
    add(change, missing)
    // Hive says of a new partition that it has no rows.
    client.withHiveState(changeKnown(change, missing))
    drop(change)
    client.withHiveState(changeTable(change))
  }

  /** @return the partitions that there are not */
  private def changeKnown(change: MetastoreChange, partitions: Seq[MetastoreChange.Partition]): Seq[MetastoreChange.Partition] =
    partitions.grouped(CatalogMetastore.Batch).flatMap { batch =>
      val found = metastore.call("getPartitionsByNames", change.database, change.table, batch.map(nameInHive).asJava)
        .asInstanceOf[JavaList[AnyRef]].asScala.map(raw => Remote(raw).call("getValues") -> raw).toMap
      val (known, missing) = batch.partition(partition => found.contains(values(partition)))
      val changed = known.filter(partition => isChanged(Remote(found(values(partition))), partition, change))
      if (changed.nonEmpty) {
        metastore.call("alter_partitions", change.database, change.table, changed.map(partition => found(values(partition))).asJava, keepStatistics)
      }
      missing
    }.toSeq

  /** Directories may have the columns' names as Spark has them; Hive's are in lower case. */
  private def nameInHive(partition: MetastoreChange.Partition): String =
    partition.name.split('/').map(_.split("=", 2)).map { case Array(column, value) => s"${column.toLowerCase(Locale.ROOT)}=$value" }.mkString("/")

  private def values(partition: MetastoreChange.Partition): AnyRef =
    PartitioningUtils.parsePathFragmentAsSeq(partition.name).map(_._2).asJava

  private def isChanged(raw: Remote, partition: MetastoreChange.Partition, change: MetastoreChange): Boolean = {
    val storage = Remote(raw.call("getSd"))
    val moves = partition.location != null && storage.call("getLocation") != partition.location
    if (moves) storage.call("setLocation", partition.location)
    setParameters(raw, partition.parameters, change) || moves
  }

  private def changeTable(change: MetastoreChange): Unit = {
    val raw = metastore.call("getTable", change.database, change.table)
    if (setParameters(Remote(raw), change.tableParameters, change)) {
      metastore.call("alter_table_with_environmentContext", change.database, change.table, raw, keepStatistics)
    }
  }

  private def setParameters(raw: Remote, wanted: JavaMap[String, String], change: MetastoreChange): Boolean = {
    val parameters = raw.call("getParameters").asInstanceOf[JavaMap[String, String]]
    val added = wanted.asScala.count { case (key, value) => !Objects.equals(parameters.put(key, value), value) }
    val removed = change.removedParameters.asScala.count(parameters.remove(_) != null)
    added + removed > 0
  }

  private def metastore: Remote = {
    val getter = client.getClass.getDeclaredMethod("msClient")
    getter.setAccessible(true)
    Remote(getter.invoke(client))
  }

  /** Tells the metastore to believe what it is told, not to list directories. */
  private def keepStatistics: AnyRef = {
    val context = client.getClass.getClassLoader.loadClass("org.apache.hadoop.hive.metastore.api.EnvironmentContext")
    val made = context.getConstructor().newInstance().asInstanceOf[AnyRef]
    Remote(made).call("putToProperties", "DO_NOT_UPDATE_STATS", "true")
    made
  }
}

private object HiveMetastore {
  /** An object of a class that this class cannot name. */
  final case class Remote(target: AnyRef) {
    def call(name: String, arguments: AnyRef*): AnyRef = {
      val method = target.getClass.getMethods.find { method =>
        method.getName == name && method.getParameterCount == arguments.length &&
          method.getParameterTypes.zip(arguments).forall { case (of, argument) => of.isInstance(argument) }
      }.getOrElse(throw new NoSuchMethodError(s"${target.getClass.getName}.$name"))
      try {
        method.invoke(target, arguments: _*)
      } catch {
        case e: InvocationTargetException => throw e.getCause
      }
    }
  }
}
