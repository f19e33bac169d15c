package io.millstream.spark.sync

import java.nio.charset.StandardCharsets.UTF_8

/** A failure whose message is for the user: nothing was changed, or the message lists the changes. */
class SyncFailure(message: String) extends RuntimeException(message)

/**
 * Options of a synchronization.
 *
 * @param source the directory whose contents are copied
 * @param destination the directory that is made the same
 * @param deleteBefore whether deletions come first, not last
 * @param deleteExcluded whether entries excluded by rules that name no side are deleted
 * @param maxDelete maximum number of deleted entries
 * @param ignoreErrors whether entries are deleted even if something failed before
 * @param force whether entries of other kinds replace directories with contents even without `delete`
 * @param filter filter rules, in the form of [[FilterText.flat]]
 * @param files the only paths that take part; None for all
 * @param prefix prefix of the transfer's names: the name of the source, or nothing if its contents are copied
 * @param bytesPerSecond rate limit of all tasks together
 * @param modifyWindow the number of seconds by which equal times may differ; negative to compare nanoseconds
 * @param names whether to print the names of changed entries
 * @param items whether to print the changes of each entry
 * @param allItems whether to print unchanged entries, too
 * @param asciiOutput whether to escape non-ASCII characters in printed names
 * @param checkpoint a directory for listings, plan and manifest, from which an interrupted run is resumed
 */
final case class SyncOptions(
    source: String,
    destination: String,
    delete: Boolean = false,
    deleteBefore: Boolean = false,
    deleteExcluded: Boolean = false,
    maxDelete: Option[Long] = None,
    ignoreErrors: Boolean = false,
    force: Boolean = false,
    filter: Seq[String] = Nil,
    files: Option[FileList] = None,
    prefix: String = "",
    checksum: Boolean = false,
    sizeOnly: Boolean = false,
    ignoreTimes: Boolean = false,
    update: Boolean = false,
    existing: Boolean = false,
    ignoreExisting: Boolean = false,
    modifyWindow: Option[Long] = None,
    links: Boolean = true,
    devices: Boolean = true,
    specials: Boolean = true,
    hardLinks: Boolean = false,
    acls: Boolean = false,
    xattrs: Boolean = false,
    sparse: Boolean = false,
    oneFileSystem: Boolean = false,
    perms: Boolean = true,
    times: Boolean = true,
    owner: Boolean = true,
    group: Boolean = true,
    omitDirTimes: Boolean = false,
    omitLinkTimes: Boolean = false,
    bytesPerSecond: Option[Long] = None,
    verify: Boolean = false,
    dryRun: Boolean = false,
    names: Boolean = false,
    items: Boolean = false,
    allItems: Boolean = false,
    asciiOutput: Boolean = false,
    checkpoint: Option[String] = None) {

  def extras: Extras = Extras(hardLinks, acls, xattrs, sparse, oneFileSystem)

  /** The first option that only local trees support. */
  def ofLocalTrees: Option[String] =
    Seq(hardLinks -> "hard-links", sparse -> "sparse").collectFirst { case (true, name) => name }

  /** The first option that requires access control lists and extended attributes of the same kind in both trees. */
  def ofExtended: Option[String] = Seq(acls -> "acls", xattrs -> "xattrs").collectFirst { case (true, name) => name }

  /** The settings that a run must share with an interrupted one to continue it. */
  def identity: String = copy(
    checkpoint = None,
    verify = false,
    names = false,
    items = false,
    asciiOutput = false,
    bytesPerSecond = None).toString
}

object SyncOptions {
  private val Flags = Set(
    "delete",
    "checksum",
    "size-only",
    "ignore-times",
    "update",
    "existing",
    "ignore-existing",
    "links",
    "perms",
    "times",
    "owner",
    "group",
    "omit-dir-times",
    "omit-link-times",
    "verify",
    "dry-run",
    "names",
    "items",
    "all-items",
    "ascii-output",
    "delete-before",
    "delete-excluded",
    "ignore-errors",
    "force",
    "devices",
    "specials",
    "hard-links",
    "acls",
    "xattrs",
    "sparse",
    "one-file-system",
    "from0",
    "recursive")
  private val Values = Set(
    "source",
    "destination",
    "files-from",
    "prefix",
    "max-delete",
    "modify-window",
    "bytes-per-second",
    "checkpoint")

  /** A filter rule; the number is its position. */
  private val Rule = "filter-([0-9]{1,9})".r

  /** Parses names and values from the command line or from Python. */
  def of(settings: Map[String, String]): SyncOptions = {
    settings.foreach {
      case (key, value) if Flags(key) && !Set("true", "false")(value) =>
        throw new SyncFailure(s"$key: must be true or false, but is $value")
      case (Rule(_), _) =>
      case (key, _) if !Flags(key) && !Values(key) => throw new SyncFailure(s"unknown option $key")
      case _ =>
    }
    def required(key: String, what: String) =
      settings.get(key).filter(_.nonEmpty).getOrElse(throw new SyncFailure(s"no $what was given"))
    def is(key: String, otherwise: Boolean = false) = settings.get(key).fold(otherwise)(_ == "true")
    def number(key: String, least: Long = 0) = settings.get(key).map { text =>
      val number = text.toLongOption.getOrElse(throw new SyncFailure(s"$key: $text is not a number"))
      if (number < least) throw new SyncFailure(s"$key: $text is less than $least")
      number
    }
    if (settings.contains("from0") && !settings.contains("files-from"))
      throw new SyncFailure("from0 describes the format of files-from, which was not given")
    if (!is("recursive", otherwise = true) && !settings.contains("files-from")) {
      throw new SyncFailure("without a list of files, directories are synchronized with all their contents")
    }
    val rules = settings.toSeq.collect { case (Rule(position), rule) => position.toInt -> rule }.sortBy(_._1).map(_._2)
    SyncOptions(
      source = required("source", "source"),
      destination = required("destination", "destination"),
      delete = Seq("delete", "delete-before", "delete-excluded").exists(is(_)),
      deleteBefore = is("delete-before"),
      deleteExcluded = is("delete-excluded"),
      maxDelete = number("max-delete", least = Long.MinValue).map(math.max(0, _)),
      ignoreErrors = is("ignore-errors"),
      force = is("force"),
      filter = FilterText.flat(rules),
      files = settings.get("files-from").map(FileList.read(_, is("from0"), is("recursive", otherwise = true))),
      prefix = settings.get("prefix").fold("")(prefix => new String(FilterText.decode(prefix), UTF_8)),
      checksum = is("checksum"),
      sizeOnly = is("size-only"),
      ignoreTimes = is("ignore-times"),
      update = is("update"),
      existing = is("existing"),
      ignoreExisting = is("ignore-existing"),
      modifyWindow = number("modify-window", least = -1),
      links = is("links", otherwise = true),
      devices = is("devices", otherwise = true),
      specials = is("specials", otherwise = true),
      hardLinks = is("hard-links"),
      acls = is("acls"),
      xattrs = is("xattrs"),
      sparse = is("sparse"),
      oneFileSystem = is("one-file-system"),
      // The mask of an access control list is a part of the mode.
      perms = is("perms", otherwise = true) || is("acls"),
      times = is("times", otherwise = true),
      owner = is("owner", otherwise = true),
      group = is("group", otherwise = true),
      omitDirTimes = is("omit-dir-times"),
      omitLinkTimes = is("omit-link-times"),
      bytesPerSecond = number("bytes-per-second").filter(_ > 0),
      verify = is("verify"),
      dryRun = is("dry-run"),
      names = is("names"),
      items = is("items") || is("all-items"),
      allItems = is("all-items"),
      asciiOutput = is("ascii-output"),
      checkpoint = settings.get("checkpoint"))
  }
}
