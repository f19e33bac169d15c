package io.millstream.spark.sync

/**
 * The result of a step: a row of the manifest.
 *
 * @param reason why the step was taken
 * @param status one of [[Status]]
 * @param size bytes of the copy
 * @param mtime the time of the source that was copied
 * @param checksum of the contents that were copied, with its name in front
 * @param operation what failed
 * @param message why it failed
 * @param changes the changes, in the letters of [[Itemized]]
 * @param target the target of a symbolic or hard link
 */
final case class Outcome(
    path: String,
    action: String,
    reason: String,
    status: String,
    kind: String,
    size: Long = 0,
    mtime: Option[Long] = None,
    checksum: Option[String] = None,
    operation: Option[String] = None,
    message: Option[String] = None,
    changes: String = "",
    target: Option[String] = None)

object Status {
  val Done = "done"

  /** A dry run: it would be done. */
  val Wanted = "would be done"

  /** It was done already. */
  val Kept = "kept"

  /** Both sides are the same, which is noted. */
  val Same = "up to date"
  val Skipped = "skipped"
  val Failed = "failed"

  /** The source is gone. */
  val Vanished = "vanished"

  /** The source changed while it was read, and its copy was not installed. */
  val Changed = "changed"

  /** The source grew while it was read: the copy is the beginning. */
  val Grown = "grown"

  /** The source now has an entry that was to be deleted. */
  val Appeared = "appeared"

  /** A directory that was to be deleted is not empty. */
  val NotEmpty = "not empty"

  /** An entry that was to be deleted is a mount in the destination. The message names the mount. */
  val Mounted = "mounted"

  /** Statuses of entries that changed during the run, which are not errors. */
  val Moving: Set[String] = Set(Vanished, Changed, Grown)
}

private[sync] object Outcome {
  def of(step: Step, status: String): Outcome =
    Outcome(
      step.path,
      step.action,
      step.reason,
      status,
      step.source.orElse(step.destination).fold("")(_.kind),
      step.source.fold(0L)(_.size),
      step.source.flatMap(_.mtime),
      changes = step.changes,
      target = step.other.orElse(step.source.flatMap(_.target)))

  def failed(step: Step, operation: String, error: Throwable): Outcome =
    of(step, Status.Failed).copy(operation = Some(operation), message = Some(Tree.oneLine(error)))

  def failed(step: Step, operation: String, message: String): Outcome =
    of(step, Status.Failed).copy(operation = Some(operation), message = Some(message))

  /** An error of a listing. */
  def unlisted(entry: Entry, side: String): Outcome =
    Outcome(
      entry.path,
      Action.Fail,
      s"in the $side",
      Status.Failed,
      entry.kind,
      operation = Some(s"list in the $side"),
      message = entry.message)
}
