package io.millstream.spark.compact

import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import io.millstream.hadoop.compact.NativeCompaction
import org.apache.hadoop.conf.Configuration

/**
 * Result of a compaction or of a dry run.
 *
 * @param bytes size of all files found
 * @param mergedBytes size of the merged files
 * @param keepSeconds how long replaced files are kept; 0 if they are not kept, or nothing was replaced
 * @param restored replaced files that were put back
 * @param removed outputs that an undo removed
 * @param purged compactions whose replaced files were removed
 * @param copied files that could not be merged and were copied to the destination unchanged
 * @param left files that could not be merged: unchanged in place, missing from a new destination
 */
final case class CompactSummary(
    source: String,
    destination: String,
    directories: Long,
    files: Long,
    bytes: Long,
    outputs: Long,
    outputBytes: Long,
    merged: Long,
    mergedBytes: Long,
    kept: Long,
    recovered: Long,
    restored: Long,
    removed: Long,
    purged: Long,
    keepSeconds: Long,
    dryRun: Boolean,
    milliseconds: Long,
    copied: Seq[NativeCompaction.Left],
    left: Seq[NativeCompaction.Left]) {
  import CompactSummary._

  def isComplete: Boolean = left.isEmpty

  private def inPlace: Boolean = source == destination

  def json: String = {
    val fields = new java.util.LinkedHashMap[String, Any]
    fields.put("source", source)
    fields.put("destination", destination)
    Seq(
      "directories" -> directories,
      "files" -> files,
      "bytes" -> bytes,
      "outputs" -> outputs,
      "output_bytes" -> outputBytes,
      "merged" -> merged,
      "merged_bytes" -> mergedBytes,
      "kept" -> kept,
      "recovered" -> recovered,
      "restored" -> restored,
      "removed" -> removed,
      "purged" -> purged).foreach { case (name, value) => fields.put(name, value) }
    fields.put("dry_run", dryRun)
    fields.put("milliseconds", milliseconds)
    Seq("copied" -> copied, "left" -> left).foreach { case (name, groups) => fields.put(name, groupsAsJava(groups)) }
    new ObjectMapper().writeValueAsString(fields)
  }

  def text: String = {
    if (restored > 0)
      return s"$restored files ${if (dryRun) "would be" else "were"} put back in place of $removed outputs"
    if (purged > 0) return s"the replaced files of $purged compactions ${if (dryRun) "would be" else "were"} removed"
    val would = if (dryRun) "would become" else "became"
    val again = if (recovered > 0) s"; $recovered outputs of an interrupted compaction were moved into place" else ""
    val copies = if (copied.nonEmpty) s" ${filesOf(copied)} copied as they are," else ""
    s"$merged of $files files ($mergedBytes bytes) in $directories directories $would $outputs files ($outputBytes bytes); " +
      f"$kept kept,$copies ${filesOf(left)} left; ${milliseconds / 1000.0}%.1f s$again"
  }

  /** How to get replaced files back, if any are kept. */
  def wayBack: Option[String] = Option.when(keepSeconds > 0) {
    s"the replaced files ${if (dryRun) "would be" else "are"} kept for ${duration(keepSeconds)} (--keep-for): " +
      s"${NativeCompaction.undoCommand(source)} puts them back, --purge removes them"
  }

  /** One line for each reason why files were not merged, and advice. */
  def remarks: Seq[String] = {
    val (copying, leaving) = (
      if (dryRun) "to be copied as they are" else "copied as they are",
      (inPlace, dryRun) match {
        case (true, true) => "to be left as they are"
        case (true, false) => "left as they were"
        case (false, true) => s"to be missing from $destination"
        case (false, false) => s"missing from $destination"
      })
    byReason(copying, copied) ++ byReason(leaving, left) ++ advice
  }

  private def advice: Option[String] = Option.when(left.nonEmpty) {
    if (dryRun && inPlace) "the rest would be compacted"
    else if (dryRun) s"--copy-left copies what can be copied"
    else if (inPlace) "run the same command again once the cause is fixed"
    else
      s"to get them there, remove $destination and run the command again with --copy-left, or once the cause is fixed"
  }
}

private[spark] object CompactSummary {
  val NotLookedAt: String =
    "not checked: file contents past the beginning (damaged data, checksums), free space, and changes before the run"

  /** A time in the largest unit in which it is a whole number, as `--keep-for` takes it. */
  private def duration(seconds: Long): String =
    Seq(86400 -> "d", 3600 -> "h", 60 -> "min").find { case (unit, _) => seconds % unit == 0 }.fold(s"${seconds}s") {
      case (unit, name) => s"${seconds / unit}$name"
    }

  def filesOf(groups: Seq[NativeCompaction.Left]): Long = groups.iterator.map(_.files).sum

  def byReason(what: String, groups: Seq[NativeCompaction.Left]): Seq[String] =
    groups.groupBy(_.reason).toSeq.sortBy(_._1).map { case (reason, same) =>
      val more = if (same.length > 1) s" and in ${same.length - 1} more directories" else ""
      s"$what: ${filesOf(same)} files in ${same.head.directory}$more: $reason"
    }

  def groupsAsJava(groups: Seq[NativeCompaction.Left]): java.util.List[java.util.Map[String, Any]] = groups.map {
    group =>
      java.util.Map.of[String, Any]("directory", group.directory, "files", group.files, "reason", group.reason)
  }.asJava
}

/** The result of writing the outputs of a plan. */
private[spark] object CompactResult {

  /** Messages about the files that are read. */
  def warnings(options: CompactOptions, plan: CompactPlan, conf: Configuration): Seq[String] =
    plan.warning.toSeq ++ CompactHeaders.foretell(options, plan, conf)

  def asScala(left: java.util.List[NativeCompaction.Left]): Seq[NativeCompaction.Left] = left.asScala.toSeq

  /** Messages about a new destination that are known before anything is read. */
  def foretell(plan: CompactPlan, source: String, target: String): Seq[String] =
    CompactSummary.byReason(
      s"will be missing from $target, unless you use --copy-left (copy_left=True)",
      plan.left) ++
      CompactSummary.byReason("will be copied as they are", copied(source, plan.outputs))

  /**
   * Writes the outputs of a plan. If copies are requested, the inputs of each failed output become separate outputs,
   * copied unchanged.
   */
  def withCopies[T](
      options: CompactOptions,
      plan: CompactPlan,
      make: IndexedSeq[Output] => Seq[Made[T]]): (CompactPlan, Seq[Made[T]]) = {
    val made = make(plan.outputs)
    val (failed, others) =
      made.partition(one => options.copyLeft && one.staged.isLeft && !plan.outputs(one.output).isCopy)
    val copies = failed.flatMap(one => one.staged.left.toSeq.flatMap(plan.outputs(one.output).copies(_)))
    val numbered = copies.zipWithIndex.map { case (copy, i) => copy.copy(id = plan.outputs.length + i) }
    val all = plan.copy(outputs = plan.outputs ++ numbered)
    (all, others ++ (if (numbered.isEmpty) Nil else make(numbered.toIndexedSeq)))
  }

  /** @param recovered outputs of an earlier compaction that were moved into place */
  def of(
      options: CompactOptions,
      source: String,
      target: String,
      plan: CompactPlan,
      made: Seq[Made[_]],
      recovered: Long): CompactSummary = {
    val ready = made.filter(_.staged.isRight).map(one => plan.outputs(one.output))
    CompactSummary(
      source = source,
      destination = target,
      directories = plan.directories,
      files = plan.files,
      bytes = plan.bytes,
      outputs = ready.length,
      outputBytes = made.iterator.map(_.bytes).sum,
      merged = ready.iterator.map(_.files.toLong).sum,
      mergedBytes = ready.iterator.map(_.bytes).sum,
      kept = plan.keptFiles,
      recovered = recovered,
      restored = 0,
      removed = 0,
      purged = 0,
      keepSeconds = if (options.inPlace && ready.nonEmpty) options.keepSeconds else 0,
      dryRun = options.dryRun,
      milliseconds = 0,
      copied = copied(source, ready),
      left = plan.left ++ failures(source, plan, made))
  }

  /** Inputs of failed outputs, and why they failed. */
  def failures(source: String, plan: CompactPlan, made: Seq[Made[_]]): Seq[NativeCompaction.Left] =
    made.collect { case Made(output, Left(message), _) =>
      val of = plan.outputs(output)
      new NativeCompaction.Left(of.path(source), of.files, message)
    }

  /** Files copied because they could not be merged, and the reasons. */
  private def copied(source: String, outputs: Seq[Output]): Seq[NativeCompaction.Left] =
    outputs.filter(_.isUnmerged).groupBy(output => (output.path(source), output.unmerged.get)).toSeq.sortBy(_._1).map {
      case ((directory, reason), files) => new NativeCompaction.Left(directory, files.length, reason)
    }
}

/** The files that a compaction leaves, recorded in the destination so that a recovery can report them. */
private[spark] object CompactLeft {
  private val Name = ".left.json"

  /** Its name in earlier versions. */
  private val VisibleName = "left.json"

  /** Writes the record next to staged outputs. It is on disk when this returns. */
  def write(out: Path, left: Seq[NativeCompaction.Left]): Unit = if (left.nonEmpty) {
    val file = out.resolve(Name)
    Files.write(file, encoded(left))
    LocalTasks.sync(file)
  }

  def read(out: Path): Seq[NativeCompaction.Left] = {
    val file = Seq(Name, VisibleName).map(out.resolve(_)).find(Files.exists(_))
    file.fold(Seq.empty[NativeCompaction.Left])(file => decoded(Files.readAllBytes(file)))
  }

  def encoded(left: Seq[NativeCompaction.Left]): Array[Byte] =
    new ObjectMapper().writeValueAsBytes(CompactSummary.groupsAsJava(left))

  def decoded(record: Array[Byte]): Seq[NativeCompaction.Left] =
    new ObjectMapper().readTree(record).elements.asScala.map { group =>
      new NativeCompaction.Left(group.get("directory").asText, group.get("files").asLong, group.get("reason").asText)
    }.toSeq
}
