package org.apache.spark.sql.hive.millstream

import java.io.IOException
import java.util.{List => JavaList, Locale, Map => JavaMap, Objects, UUID}

import scala.jdk.CollectionConverters._

import io.millstream.write.metastore.Metastore.JobState
import io.millstream.write.metastore.MetastoreChange

import org.apache.spark.sql.catalyst.catalog.{ExternalCatalog, ExternalCatalogWithListener}
import org.apache.spark.sql.execution.datasources.PartitioningUtils
import org.apache.spark.sql.execution.datasources.millstream.internals.Reflected
import org.apache.spark.sql.execution.datasources.millstream.write.CatalogMetastore
import org.apache.spark.sql.hive.HiveExternalCatalog
import org.apache.spark.sql.hive.client.HiveClient
import org.apache.spark.util.Utils

/**
 * Carries out the changes of commits in Hive's metastore: partitions in batches, parameters as given.
 *
 * Spark's own method of changing a partition makes the metastore list the directory, and loses the partition's own
 * columns. So this class calls the metastore's client behind Spark's, by reflection, because a separate class loader
 * has loaded that client.
 */
class HiveMetastore(catalog: ExternalCatalog, addressed: Option[(String, String)])
    extends CatalogMetastore(catalog, addressed) {
  import HiveMetastore._

  private lazy val client =
    catalog.asInstanceOf[ExternalCatalogWithListener].unwrapped.asInstanceOf[HiveExternalCatalog].client
  private lazy val methods = new Methods(client)

  override def whyNot: Option[String] =
    try {
      methods
      None
    } catch {
      case e @ (_: ReflectiveOperationException | _: LinkageError) =>
        Some(s"the metastore's client is not supported: $e")
    }

  override protected def kind: String = "hive"

  override protected def carryOut(change: MetastoreChange, jobState: JobState): Unit = {
    if (change.isSwap) {
      val known =
        client.withHiveState(fetch(change.database, change.table, change.partitions.asScala.toSeq.map(_.name)))
      add(change, change.partitions.asScala.toSeq.filterNot(partition => known.contains(partition.name)), jobState)
      if (!jobState.isFinished) client.withHiveState(switch(change))
    } else {
      val missing = client.withHiveState(changeKnown(change, change.partitions.asScala.toSeq, jobState))
      add(change, missing, jobState)
      // Hive records that a new partition has no rows, so its parameters are set again.
      client.withHiveState(changeKnown(change, missing, jobState))
    }
    drop(change, jobState)
    moveTable(change, jobState)
    if (!jobState.isFinished) client.withHiveState(changeTable(change))
  }

  /** @return the partitions that do not exist */
  private def changeKnown(
      change: MetastoreChange,
      partitions: Seq[MetastoreChange.Partition],
      jobState: JobState): Seq[MetastoreChange.Partition] =
    partitions.grouped(CatalogMetastore.Batch).takeWhile(_ => !jobState.isFinished).flatMap { batch =>
      val found = fetch(change.database, change.table, batch.map(_.name))
      val (known, missing) = batch.partition(partition => found.contains(partition.name))
      alter(
        change,
        known.map(partition => found(partition.name)).zip(known).filter { case (raw, partition) =>
          isChanged(raw, partition, change)
        }.map(_._1))
      missing
    }.toSeq

  /**
   * Moves all partitions in one request, which is one transaction of the metastore, so that no reader sees a mixture of
   * old and new locations.
   */
  private def switch(change: MetastoreChange): Unit = {
    val found = fetch(
      change.database,
      change.table,
      change.partitions.asScala.toSeq.map(_.name) ++ change.droppedPartitions.asScala)
    val gone =
      change.droppedPartitions.asScala.map(new MetastoreChange.Partition(_, change.emptyDirectory, JavaMap.of()))
    val all = (change.partitions.asScala ++ gone).toSeq
    alter(change, all.flatMap(partition => found.get(partition.name).filter(isChanged(_, partition, change))))
  }

  private def alter(change: MetastoreChange, raw: Seq[AnyRef]): Unit =
    if (raw.nonEmpty) methods.alterPartitions(metastore, change.database, change.table, raw.asJava, keepStatistics)

  /** The existing partitions, by name. */
  private def fetch(database: String, table: String, names: Seq[String]): Map[String, AnyRef] =
    names.grouped(CatalogMetastore.Batch).flatMap { batch =>
      val found = answer(database, table, batch).map(raw => methods.getValues(raw) -> raw).toMap
      batch.flatMap(name => found.get(values(name)).map(name -> _))
    }.toMap

  /**
   * The partitions that the metastore has for these names; they may have other names, which it does not distinguish
   * from these.
   */
  private def answer(database: String, table: String, batch: Seq[String]): Seq[AnyRef] =
    methods.getPartitions(
      metastore,
      database,
      table,
      batch.map(nameInHive).asJava).asInstanceOf[JavaList[AnyRef]].asScala.toSeq

  /**
   * The database behind the metastore decides which names are equal and which it can store: Derby and MySQL ignore
   * spaces at the end, MySQL perhaps case and accents. So a few partitions with doubtful names are added as a test, and
   * dropped at once.
   */
  override def requireStorable(change: MetastoreChange, added: Seq[String]): Unit = if (added.nonEmpty)
    asking(change.database, change.table) {
      requireDistinct(change, added)
      val alike = added.groupBy(DoubtfulNames.fold).values.filter(_.size > 1).toSeq
      val tested = (alike.map(_.head) ++ DoubtfulNames.toTest(added)).distinct
      if (tested.nonEmpty) {
        val known = client.withHiveState(fetch(change.database, change.table, tested))
        val trial = UUID.randomUUID.toString
        val test = change.partitions.asScala.toSeq.filter(partition =>
          tested.contains(partition.name) && !known.contains(partition.name))
          .map(partition => new MetastoreChange.Partition(partition.name, partition.location, JavaMap.of(Trial, trial)))
        Utils.tryWithSafeFinally {
          try {
            add(change, test, () => false)
          } catch {
            case e: Exception => throw new IOException(
                s"the metastore cannot add ${quoted(test.map(_.name))}, and nothing is written: ${e.getMessage}",
                e)
          }
          requireDistinct(change, alike.flatMap(_.tail))
        } {
          // Another program may have added partitions of these names.
          val names = client.withHiveState(fetch(change.database, change.table, test.map(_.name))).collect {
            case (name, raw)
                if methods.getParametersOfPartition(raw).asInstanceOf[JavaMap[String, String]].get(Trial) == trial =>
              name
          }.toSeq
          drop(change.dropping(names.asJava), () => false)
        }
      }
    }

  /** Refuses names for which the metastore has other partitions. */
  private def requireDistinct(change: MetastoreChange, names: Seq[String]): Unit =
    names.grouped(CatalogMetastore.Batch).foreach { batch =>
      val asked = batch.map(text).toSet
      val others = client.withHiveState(answer(
        change.database,
        change.table,
        batch)).map(methods.getValues(_).asInstanceOf[JavaList[String]])
        .map(_.asScala.mkString("/")).filterNot(asked)
      if (others.nonEmpty) {
        val alike = asked.filter(one => others.map(DoubtfulNames.fold).contains(DoubtfulNames.fold(one)))
        throw new IOException(
          s"the metastore does not distinguish ${quoted((if (alike.isEmpty) asked else alike).toSeq)}, partitions of this statement, from " +
            s"${quoted(others)}: they may differ only in spaces at the end, or in case; nothing is written")
      }
    }

  private def text(name: String): String = values(name).asScala.mkString("/")

  private def quoted(names: Seq[String]): String = names.take(NamedPartitions).map(name => s"'$name'").mkString(", ")

  override protected def find(database: String, table: String, wanted: Seq[String]): Map[String, String] = {
    val (ofTable, names) = wanted.partition(_.isEmpty)
    val found = if (names.isEmpty) Map.empty[String, AnyRef] else client.withHiveState(fetch(database, table, names))
    val locations = found.map { case (name, raw) => name -> methods.getLocation(methods.getStorage(raw)).toString }
    locations ++ super.find(database, table, ofTable)
  }

  /** A partition's name in Hive, with columns in lower case; directories may have Spark's spelling. */
  private def nameInHive(name: String): String =
    name.split('/').map(_.split("=", 2)).map { case Array(column, value) =>
      s"${column.toLowerCase(Locale.ROOT)}=$value"
    }.mkString("/")

  private def values(name: String): JavaList[String] =
    PartitioningUtils.parsePathFragmentAsSeq(name).map(_._2).asJava

  private def isChanged(raw: AnyRef, partition: MetastoreChange.Partition, change: MetastoreChange): Boolean = {
    val storage = methods.getStorage(raw)
    val moves = change.isSwap && partition.location != null && methods.getLocation(storage) != partition.location
    if (moves) methods.setLocation(storage, partition.location)
    setParameters(methods.getParametersOfPartition(raw), partition.parameters, change) || moves
  }

  private def changeTable(change: MetastoreChange): Unit = {
    val raw = methods.getTable(metastore, change.database, change.table)
    if (setParameters(methods.getParametersOfTable(raw), change.tableParameters, change)) {
      methods.alterTable(metastore, change.database, change.table, raw, keepStatistics)
    }
  }

  private def setParameters(found: AnyRef, wanted: JavaMap[String, String], change: MetastoreChange): Boolean = {
    val parameters = found.asInstanceOf[JavaMap[String, String]]
    val added = wanted.asScala.count { case (key, value) => !Objects.equals(parameters.put(key, value), value) }
    val isRemoved = parameters.keySet.removeIf(change.removes(_))
    added > 0 || isRemoved
  }

  private def metastore: AnyRef = methods.metastore(client)

  /** Makes the metastore accept the given statistics instead of listing directories. */
  private def keepStatistics: AnyRef = {
    val made = methods.newContext()
    methods.putToProperties(made, "DO_NOT_UPDATE_STATS", "true")
    made
  }
}

private object HiveMetastore {

  /** A parameter of partitions that are added as a test; its value is different each time. */
  val Trial = "millstream.trial"

  /** The number of partitions that an error names. */
  val NamedPartitions = 5

  /**
   * Methods of classes that cannot be named at compile time. All are looked up at once, so that none turns out to be
   * missing after a commit.
   */
  final class Methods(client: HiveClient) {
    private val text = classOf[String]
    private val list = classOf[JavaList[_]]
    private val getter = client.getClass.getDeclaredMethod("msClient")
    getter.setAccessible(true)
    private val (table, partition, storage, context) =
      (api("Table"), api("Partition"), api("StorageDescriptor"), api("EnvironmentContext"))
    private val constructor = context.getConstructor()

    val getTable = new Method(getter.getReturnType, "getTable", text, text)
    val getPartitions = new Method(getter.getReturnType, "getPartitionsByNames", text, text, list)
    val alterTable = new Method(getter.getReturnType, "alter_table_with_environmentContext", text, text, table, context)
    val alterPartitions = new Method(getter.getReturnType, "alter_partitions", text, text, list, context)
    val getParametersOfTable = new Method(table, "getParameters")
    val getParametersOfPartition = new Method(partition, "getParameters")
    val getValues = new Method(partition, "getValues")
    val getStorage = new Method(partition, "getSd")
    val getLocation = new Method(storage, "getLocation")
    val setLocation = new Method(storage, "setLocation", text)
    val putToProperties = new Method(context, "putToProperties", text, text)

    def metastore(of: HiveClient): AnyRef = getter.invoke(of)

    def newContext(): AnyRef = constructor.newInstance().asInstanceOf[AnyRef]

    private def api(name: String): Class[_] =
      getter.getReturnType.getClassLoader.loadClass(s"org.apache.hadoop.hive.metastore.api.$name")
  }

  final class Method(of: Class[_], name: String, parameters: Class[_]*) {
    private val method = of.getMethod(name, parameters: _*)

    def apply(target: AnyRef, arguments: AnyRef*): AnyRef = Reflected.call(method, target, arguments: _*)
  }
}
