package io.millstream.spark.sync

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.hadoop.fs.{FileSystem, Path}

import org.apache.spark.sql.{Dataset, Encoder, Encoders, SparkSession}

/**
 * The listings, the plan and the manifest of a synchronization, as Parquet. A part is complete once its marker file
 * exists, which is written last.
 *
 * @param isKept whether it stays after the run: it is the user's checkpoint
 */
private[sync] final class WorkingDirectory(session: SparkSession, val path: Path, val isKept: Boolean) {
  import WorkingDirectory._

  private val fs: FileSystem = path.getFileSystem(session.sparkContext.hadoopConfiguration)

  private def part(name: String) = new Path(path, name)

  def has(name: String): Boolean = fs.exists(new Path(path, s"$name.$Complete"))

  def save[T](name: String, rows: Dataset[T]): Unit = {
    rows.write.mode("overwrite").option("compression", "snappy").parquet(part(name).toString)
    complete(name)
  }

  /** Marks a part as incomplete. */
  def forget(name: String): Unit = fs.delete(new Path(path, s"$name.$Complete"), false)

  def complete(name: String): Unit = write(s"$name.$Complete", "")

  /** The rows of complete parts. An unreadable file is an error, whatever the session's settings. */
  def load[T: Encoder](names: String*): Dataset[T] =
    session.read.schema(implicitly[Encoder[T]].schema).option(
      "ignoreCorruptFiles",
      false).option("ignoreMissingFiles", false)
      .option("recursiveFileLookup", true).option("__globPaths__", false).parquet(names.map(part(_).toString): _*).as[T]

  def write(name: String, text: String): Unit = {
    val out = fs.create(part(name), true)
    try out.write(text.getBytes(UTF_8))
    finally out.close()
  }

  def read(name: String): Option[String] =
    Option.when(fs.exists(part(name))) {
      val in = fs.open(part(name))
      try new String(in.readAllBytes(), UTF_8)
      finally in.close()
    }

  /** The complete parts whose names have this prefix. */
  def parts(prefix: String): Seq[String] =
    if (!fs.exists(path)) Nil
    else {
      val names = fs.listStatus(path).toSeq.map(_.getPath.getName)
      names.filter(name => name.startsWith(prefix) && name.endsWith(s".$Complete")).map(_.stripSuffix(s".$Complete"))
    }

  /**
   * Creates it, without an earlier run's leftovers.
   *
   * @throws SyncFailure if a directory exists that is not empty and not a working directory
   */
  def begin(): Unit = {
    val found = if (fs.exists(path)) fs.listStatus(path).toSeq.map(_.getPath) else Nil
    if (found.nonEmpty && !found.exists(_.getName == Mark)) {
      throw new SyncFailure(
        s"$path: is not empty and is not a checkpoint of an earlier run; choose a directory that is empty or does not exist")
    }
    found.filter(child => isOurs(child.getName)).foreach(fs.delete(_, true))
    fs.mkdirs(path)
    write(Mark, "Listings, plan and manifest of a synchronization by psync --spark.\n")
  }

  def remove(): Unit = fs.delete(path, true)
}

private[sync] object WorkingDirectory {
  private val Complete = "complete"
  val Source = "source"
  val Destination = "destination"
  val Plan = "plan"
  val Manifest = "manifest"
  val Request = "request"
  val Finished = "finished"

  /** The temporary names of the run that uses it. */
  val TemporaryNamesOfRun = "names"

  /** A file that marks a working directory. */
  private val Mark = "psync-checkpoint"

  private def isOurs(name: String): Boolean =
    Seq(Source, Destination, Plan, Manifest, Request, Finished, TemporaryNamesOfRun).exists(name.startsWith)

  implicit val encodesEntries: Encoder[Entry] = Encoders.product[Entry]
  implicit val encodesSteps: Encoder[Step] = Encoders.product[Step]
  implicit val encodesOutcomes: Encoder[Outcome] = Encoders.product[Outcome]
  implicit val encodesRuns: Encoder[TemporaryNames] = Encoders.product[TemporaryNames]
  implicit val encodesTexts: Encoder[String] = Encoders.STRING
}
