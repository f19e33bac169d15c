package org.apache.spark.sql.execution.datasources.millstream

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import io.millstream.hadoop.MillstreamLocalFileSystem
import io.millstream.hadoop.listing.ListingOptions
import io.millstream.hadoop.natives.NativeLibrary
import io.millstream.hadoop.reading.ListedFileSystem
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.internal.config.ConfigEntry
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.classic
import org.apache.spark.sql.execution.datasources.millstream.hadoop.{LocalFiles, RemoteFileSystems}
import org.apache.spark.sql.execution.datasources.millstream.settings.{Keys, Switches}
import org.apache.spark.sql.execution.datasources.millstream.write.ReplaceInserts

/**
 * The result of one check of a session.
 *
 * @param what the subject of the check
 * @param found its state
 * @param fix how to fix it; none if the check succeeded
 */
case class Diagnosis(what: String, found: String, fix: Option[String])

/**
 * Checks everything that Millstream needs in a session. It adds no settings, so it finds what a user's own program
 * would find.
 */
object Diagnosis {

  /** The requirements of the native library. */
  val LibraryNeeds =
    "it needs Linux with glibc 2.28 or newer, on a platform for which the jar contains the library, and a java.io.tmpdir that is not mounted noexec (-Djava.io.tmpdir=DIRECTORY)"
  private val AddLines =
    "add the lines that `millstream spark-conf` prints to conf/spark-defaults.conf, or use millstream.enable(); either must happen before the JVM starts"

  /** On a Spark that is not supported, only what does not depend on it. */
  def of(session: SparkSession): Seq[Diagnosis] = {
    val ofLine = guarded("Spark")(Seq(ofSpark(session)))
    if (ofLine.exists(_.fix.nonEmpty)) ofLine else ofLine ++ ofClassic(session.asInstanceOf[classic.SparkSession])
  }

  private def ofClassic(spark: classic.SparkSession): Seq[Diagnosis] = {
    val settings = guarded("settings")(ofSettings(spark))
    val ofJvm = guarded("class path")(Seq(ofClassPath)) ++ guarded("native library")(Seq(ofLibrary)) ++ guarded(
      "file: system")(Seq(ofFileSystem(spark)))
    // A session with invalid settings has no state, and all further checks would only repeat that.
    val ofState = if (settings.isEmpty || isComplete(spark)) ofSession(spark) else Nil
    settings ++ ofJvm ++ ofState
  }

  private def isComplete(spark: classic.SparkSession): Boolean =
    try {
      spark.sessionState
      true
    } catch {
      case NonFatal(_) => false
    }

  private def ofSession(spark: classic.SparkSession): Seq[Diagnosis] =
    guarded("session extension")(Seq(ofExtension(spark))) ++ guarded("executors")(Seq(ofExecutors(spark))) ++
      guarded("remote systems")(ofRemote(spark)) ++
      Features.flatMap { case (entry, does) => guarded(does)(Seq(ofSwitch(spark, entry, does))) } ++ guarded(
        "committer")(ofCommitters(spark))

  /** The findings of a check; its failure is a finding, too. */
  private def guarded(what: String)(check: => Seq[Diagnosis]): Seq[Diagnosis] =
    try {
      check
    } catch {
      case e @ (NonFatal(_) | _: LinkageError) => Seq(Diagnosis(
          what,
          s"cannot be checked: $e",
          Some("correct the setting that this message names, or report it")))
    }

  /** Unknown keys and invalid values. */
  private def ofSettings(spark: classic.SparkSession): Seq[Diagnosis] = {
    val context = spark.sparkContext
    val keys = context.conf.getAll.map(_._1).toSeq ++ context.hadoopConfiguration.asScala.map(_.getKey).filterNot(key =>
      context.conf.contains(s"spark.hadoop.$key"))
    val unknown = Keys.unknown(keys.distinct).toSeq.map {
      case Keys.Unknown(key, Some(meant)) =>
        Diagnosis(
          "settings",
          Keys.misspelt(key, meant),
          Some(s"correct it to $meant, or remove it: every statement is refused while it is set"))
      case Keys.Unknown(key, None) =>
        Diagnosis(
          "settings",
          s"$key is not a key of this version of Millstream and has no effect",
          Some("remove it, or use the version that has it"))
    }
    val invalid = Keys.invalidValues(context).map(message => Diagnosis("settings", message, Some("correct the value")))
    unknown ++ invalid
  }

  private def ofSpark(spark: SparkSession): Diagnosis = {
    val found = s"Spark ${spark.version}, Java ${System.getProperty("java.version")}"
    try {
      MillstreamExtensions.checkSpark()
      Diagnosis("Spark", found, None)
    } catch {
      case e @ (_: LinkageError | _: ReflectiveOperationException) =>
        Diagnosis(
          "Spark",
          s"$found, whose internals differ: $e",
          Some("use Spark 4.0 to 4.3; on this version, Spark itself lists, reads and writes"))
    }
  }

  /** The jar must be on the class path, because the first file system is created before Spark loads `spark.jars`. */
  private def ofClassPath: Diagnosis = {
    val jar = LocalFiles.jar
    val isFromTheStart = classOf[MillstreamLocalFileSystem].getClassLoader eq ClassLoader.getSystemClassLoader
    if (isFromTheStart) Diagnosis("class path", s"$jar", None)
    else
      Diagnosis("class path", s"$jar is not on the driver's class path", Some(s"set ${LocalFiles.Missing}: $AddLines"))
  }

  private def ofLibrary: Diagnosis =
    Option(NativeLibrary.whyNot) match {
      case None => Diagnosis("native library", "loads", None)
      case Some(cause) => Diagnosis(
          "native library",
          s"does not load: $cause",
          Some(LibraryNeeds))
    }

  private def ofFileSystem(spark: classic.SparkSession): Diagnosis = LocalFiles.server(spark.sparkContext) match {
    case LocalFiles.Ours => Diagnosis("file: system", classOf[MillstreamLocalFileSystem].getName, None)
    case LocalFiles.Chosen(name) => Diagnosis(
        "file: system",
        s"$name, since fs.file.impl is set",
        Some("unset spark.hadoop.fs.file.impl, unless you chose the class intentionally: Spark and Hadoop list and read local files"))
    case LocalFiles.Early(name) => Diagnosis(
        "file: system",
        s"$name, which was created before the jar was loaded",
        Some(s"set ${LocalFiles.Missing}: $AddLines"))
  }

  /** The session extension sets the classes of remote file systems; without it, the extension has to be fixed first. */
  private def ofRemote(spark: classic.SparkSession): Seq[Diagnosis] =
    RemoteFileSystems.servers(spark.sparkContext).flatMap { case (scheme, server) =>
      val what = s"$scheme: system"
      val conf = spark.sparkContext.hadoopConfiguration
      server match {
        case RemoteFileSystems.Ours(key, className) =>
          val found = conf.getTrimmed(key, "Hadoop's own, until there is a session with Millstream")
          Seq(Diagnosis(what, found, None)) ++ ofEventLog(
            spark,
            scheme,
            s"spark.hadoop.$key=$className") ++ ofNativeRequests(conf, scheme)
        case RemoteFileSystems.Nobody =>
          Seq(Diagnosis(
            what,
            "none: its jars are not on the class path (docs/remote.md says how to add them)",
            None))
        case RemoteFileSystems.SwitchedOff(className) =>
          Seq(Diagnosis(
            what,
            s"$className, since ${Switches.RemoteSystems.key}=false",
            Some(s"set ${Switches.RemoteSystems.key}=true, unless it is off intentionally")))
        case RemoteFileSystems.Missing(key, className, reason) =>
          Seq(Diagnosis(
            what,
            s"none: $className, which $key names, does not load: $reason",
            Some(
              s"unset spark.hadoop.$key, or add the jars of this class to spark.driver.extraClassPath and spark.executor.extraClassPath")))
        case RemoteFileSystems.Chosen(key, className) =>
          Seq(Diagnosis(
            what,
            s"$className, since $key is set",
            Some(s"unset spark.hadoop.$key, unless you chose the class intentionally: Spark and Hadoop list and read its files")))
        case RemoteFileSystems.Apart(key, className, reason) =>
          Seq(Diagnosis(
            what,
            s"$className, since Millstream's class path lacks its jars: $reason",
            Some(
              "its jars must be on spark.driver.extraClassPath and spark.executor.extraClassPath, or in Spark's jars/; --packages and spark.jars are too late")))
      }
    }

  /**
   * The event log is opened before the session is created, and its file system stays in Hadoop's cache, unless that is
   * disabled.
   */
  private def ofEventLog(spark: classic.SparkSession, scheme: String, setting: String): Option[Diagnosis] = {
    val conf = spark.sparkContext.hadoopConfiguration
    spark.sparkContext.eventLogDir.filter(_.getScheme == scheme && !conf.getBoolean(
      s"fs.$scheme.impl.disable.cache",
      false)).flatMap { directory =>
      val what = s"$scheme: event log"
      try {
        val found = new Path(directory).getFileSystem(conf)
        Option.unless(found.isInstanceOf[ListedFileSystem])(Diagnosis(
          what,
          s"$directory was opened with ${found.getClass.getName} before the session was made, so Spark and Hadoop list and read all files of ${found.getUri}",
          Some(s"set $setting when Spark starts")))
      } catch {
        case NonFatal(e) => Some(Diagnosis(what, s"$directory cannot be reached: $e", Some("check spark.eventLog.dir")))
      }
    }
  }

  private def ofNativeRequests(conf: Configuration, scheme: String): Option[Diagnosis] =
    Option.when(scheme == "s3a" && !conf.getBoolean(ListingOptions.NATIVE_S3, true))(
      Diagnosis(
        "s3a: requests",
        s"S3A's client makes them, since ${ListingOptions.NATIVE_S3}=false",
        Some(
          s"unset spark.hadoop.${ListingOptions.NATIVE_S3}, unless it is off intentionally: native requests cost less CPU time")))

  private def ofExtension(spark: classic.SparkSession): Diagnosis = {
    val isThere = spark.sessionState.analyzer.postHocResolutionRules.exists(_.isInstanceOf[ReplaceInserts])
    Diagnosis(
      "session extension",
      if (isThere) "installed" else "not installed",
      Option.unless(isThere)(
        s"Spark finds it in the jar if the jar is on the class path, or through spark.sql.extensions=${classOf[MillstreamExtensions].getName}: $AddLines"))
  }

  private def ofExecutors(spark: classic.SparkSession): Diagnosis = {
    val context = spark.sparkContext
    if (context.isLocal) return Diagnosis("executors", "in the driver", None)
    try {
      val tasks = 2 * context.defaultParallelism
      val found = context.parallelize(1 to tasks, tasks).map(_ => Diagnosis.onExecutor).distinct().collect().toSeq
      val failed = found.collect { case (host, Some(cause)) => s"$host: $cause" }
      if (failed.isEmpty)
        Diagnosis("executors", s"the native library loads on ${found.map(_._1).distinct.length} hosts", None)
      else Diagnosis(
        "executors",
        s"the native library does not load on ${failed.mkString("; ")}",
        Some("apply the driver's fix on those hosts"))
    } catch {
      case NonFatal(e) => Diagnosis(
          "executors",
          s"a test job fails: ${e.getMessage.linesIterator.next()}",
          Some(
            s"spark.jars and spark.executor.extraClassPath must contain the jar: $AddLines"))
    }
  }

  private def onExecutor: (String, Option[String]) =
    (java.net.InetAddress.getLocalHost.getHostName, Option(NativeLibrary.whyNot))

  private val Features: Seq[(ConfigEntry[Boolean], String)] = Seq(
    Switches.Listing -> "native listing",
    Switches.Reading -> "native and packed reads",
    Switches.TextFiles -> "packed sc.textFile",
    Switches.Codecs -> "native codecs in Hadoop",
    Switches.DirectWrites -> "direct writes")

  /**
   * Switches are on by default, except the one for direct writes, which only the settings of `millstream spark-conf`
   * enable.
   */
  private def ofSwitch(spark: classic.SparkSession, entry: ConfigEntry[Boolean], does: String): Diagnosis = {
    val isOn = spark.sessionState.conf.getConf(entry)
    Diagnosis(
      does,
      s"${entry.key}=$isOn",
      Option.unless(isOn)(s"set ${entry.key}=true, unless it is off intentionally"))
  }

  private def ofCommitters(spark: classic.SparkSession): Seq[Diagnosis] = {
    val conf: Configuration = spark.sessionState.newHadoopConf()
    val stock = "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
    val protocol = spark.conf.get("spark.sql.sources.commitProtocolClass", stock)
    val committer = Option(conf.get("spark.sql.sources.outputCommitterClass"))
    val own = Seq(protocol).filter(_ != stock).map(name => s"spark.sql.sources.commitProtocolClass=$name") ++
      committer.map(name => s"spark.sql.sources.outputCommitterClass=$name")
    own.map(setting =>
      Diagnosis(
        "committer",
        setting,
        Some("unset it: with a custom committer, Spark itself writes df.write and data source tables")))
  }
}
