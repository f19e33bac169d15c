package io.millstream.spark.sync

import java.util.Locale

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper

/** An operation that failed. */
final case class Problem(path: String, operation: String, message: String)

/**
 * Result of a synchronization.
 *
 * @param entries the source's entries
 * @param created entries that the destination did not have
 * @param kept copies by an earlier run
 * @param amended entries for which only attributes were set
 * @param undeleted deletions prevented by the limit
 * @param moving sources that vanished or changed
 * @param errors number of problems; `problems` has the first of them
 */
final case class SyncSummary(
    source: String,
    destination: String,
    entries: Long,
    files: Long,
    directories: Long,
    links: Long,
    specials: Long,
    bytes: Long,
    created: Long,
    copiedFiles: Long,
    copiedBytes: Long,
    kept: Long,
    amended: Long,
    deleted: Long,
    undeleted: Long,
    moving: Long,
    errors: Long,
    dryRun: Boolean,
    milliseconds: Long,
    manifest: Option[String],
    notices: Seq[String],
    problems: Seq[Problem]) {

  /** As in `psync`. */
  def exitCode: Int = if (errors > 0) SyncSummary.Partial
  else if (undeleted > 0) SyncSummary.Bound else if (moving > 0) SyncSummary.Moving else 0

  def json: String = {
    val fields = new java.util.LinkedHashMap[String, Any]
    fields.put("source", source)
    fields.put("destination", destination)
    Seq(
      "entries" -> entries,
      "files" -> files,
      "directories" -> directories,
      "links" -> links,
      "specials" -> specials,
      "bytes" -> bytes,
      "created" -> created,
      "copied_files" -> copiedFiles,
      "copied_bytes" -> copiedBytes,
      "kept" -> kept,
      "amended" -> amended,
      "deleted" -> deleted,
      "undeleted" -> undeleted,
      "moving" -> moving,
      "errors" -> errors).foreach { case (name, value) => fields.put(name, value) }
    fields.put("dry_run", dryRun)
    fields.put("milliseconds", milliseconds)
    fields.put("exit_code", exitCode)
    fields.put("manifest", manifest.orNull)
    fields.put("notices", notices.asJava)
    fields.put(
      "problems",
      problems.map(problem =>
        java.util.Map.of("path", problem.path, "operation", problem.operation, "message", problem.message)).asJava)
    new ObjectMapper().writeValueAsString(fields)
  }

  def text: String = {
    def number(value: Long) = String.format(Locale.ROOT, "%,d", value)
    val would = if (dryRun) "would be " else ""
    val again = if (kept > 0) s", ${number(kept)} copied by an earlier run" else ""
    s"${number(entries)} entries (${number(bytes)} bytes) in the source; ${number(copiedFiles)} files (${number(copiedBytes)} bytes) ${would}copied$again, " +
      s"${number(created)} entries ${would}created, ${number(amended)} ${would}amended, ${number(deleted)} ${would}deleted; " +
      f"${number(errors)} errors; ${milliseconds / 1000.0}%.1f s"
  }
}

object SyncSummary {

  /** The summary at the start of a run. */
  private[sync] def of(source: String, destination: String, options: SyncOptions, census: Census): SyncSummary = {
    val (files, directories, links, specials) =
      (census.of(Kind.File), census.of(Kind.Directory), census.of(Kind.Link), census.of(Kind.Other))
    SyncSummary(
      source,
      destination,
      files + directories + links + specials,
      files,
      directories,
      links,
      specials,
      census.bytes,
      created = 0,
      copiedFiles = 0,
      copiedBytes = 0,
      kept = 0,
      amended = 0,
      deleted = 0,
      undeleted = 0,
      moving = 0,
      errors = 0,
      options.dryRun,
      milliseconds = 0,
      manifest = None,
      Nil,
      Nil)
  }

  private val Partial = 23
  private val Moving = 24
  private val Bound = 25
}
