package io.millstream.spark.sync

/** A failure whose message is for the user: nothing was changed, or what was changed is in the message. */
class SyncFailure(message: String) extends RuntimeException(message)

/**
 * Options of a synchronization.
 *
 * @param source the directory whose contents are copied
 * @param destination the directory that becomes like it
 * @param maxDelete how many entries are deleted at most
 * @param modifyWindow by how many seconds times may differ; to the nanosecond if it is negative
 * @param names whether to print what was changed
 * @param checkpoint a directory for listings, plan and manifest, from which an interrupted run is resumed
 */
final case class SyncOptions(
    source: String,
    destination: String,
    delete: Boolean = false,
    maxDelete: Option[Long] = None,
    checksum: Boolean = false,
    sizeOnly: Boolean = false,
    ignoreTimes: Boolean = false,
    update: Boolean = false,
    existing: Boolean = false,
    ignoreExisting: Boolean = false,
    modifyWindow: Option[Long] = None,
    links: Boolean = true,
    perms: Boolean = true,
    times: Boolean = true,
    owner: Boolean = true,
    group: Boolean = true,
    omitDirTimes: Boolean = false,
    verify: Boolean = false,
    dryRun: Boolean = false,
    names: Boolean = false,
    checkpoint: Option[String] = None) {

  /** What a run must have in common with an interrupted one to continue it. */
  def identity: String = copy(checkpoint = None, verify = false, names = false).toString
}

object SyncOptions {
  private val Flags = Set("delete", "checksum", "size-only", "ignore-times", "update", "existing", "ignore-existing", "links", "perms", "times", "owner",
    "group", "omit-dir-times", "verify", "dry-run", "names")
  private val Values = Set("source", "destination", "max-delete", "modify-window", "checkpoint")
  /** Options of rsync that this does not have, and what they would carry. */
  private val Refused = Map(
    "hard-links" -> "which names are hard links to the same file", "acls" -> "access control lists", "xattrs" -> "extended attributes", "devices" -> "devices",
    "specials" -> "named pipes and sockets")

  /** Parses names and values from the command line or from Python. */
  def of(settings: Map[String, String]): SyncOptions = {
    settings.foreach {
      case (key, "true") if Refused.contains(key) =>
        throw new SyncFailure(s"--$key: a synchronization on Spark does not carry ${Refused(key)}; leave the option out, or use psync without --spark")
      case (key, value) if Flags(key) && !Set("true", "false")(value) => throw new SyncFailure(s"$key: must be true or false, but is $value")
      case (key, _) if !Flags(key) && !Values(key) && !Refused.contains(key) => throw new SyncFailure(s"unknown option $key")
      case _ =>
    }
    def required(key: String, what: String) = settings.get(key).filter(_.nonEmpty).getOrElse(throw new SyncFailure(s"no $what was given"))
    def is(key: String, otherwise: Boolean = false) = settings.get(key).fold(otherwise)(_ == "true")
    def number(key: String) = settings.get(key).map(text => text.toLongOption.getOrElse(throw new SyncFailure(s"$key: $text is not a number")))
    SyncOptions(
      source = required("source", "source"),
      destination = required("destination", "destination"),
      delete = is("delete"),
      maxDelete = number("max-delete").map(math.max(0, _)),
      checksum = is("checksum"),
      sizeOnly = is("size-only"),
      ignoreTimes = is("ignore-times"),
      update = is("update"),
      existing = is("existing"),
      ignoreExisting = is("ignore-existing"),
      modifyWindow = number("modify-window"),
      links = is("links", otherwise = true),
      perms = is("perms", otherwise = true),
      times = is("times", otherwise = true),
      owner = is("owner", otherwise = true),
      group = is("group", otherwise = true),
      omitDirTimes = is("omit-dir-times"),
      verify = is("verify"),
      dryRun = is("dry-run"),
      names = is("names"),
      checkpoint = settings.get("checkpoint"))
  }
}
