package org.apache.spark.sql.execution.datasources.millstream.write

import java.util.Locale
import java.util.concurrent.TimeUnit.SECONDS

import io.millstream.write.protocol.CommitPlan

import org.apache.spark.internal.Logging

/** Logs the progress of a long commit to `target` every ten seconds. */
private[write] final class CommitLog(target: String) extends CommitPlan.Listener with Logging {
  private var last = System.nanoTime()

  override def progress(phase: CommitPlan.Phase, done: Int, total: Int): Unit = synchronized {
    val now = System.nanoTime()
    if (now - last >= SECONDS.toNanos(10)) {
      last = now
      val share = if (total > 0) s", $done of $total files" else ""
      logInfo(s"Direct write of $target: ${phase.name.toLowerCase(Locale.ROOT)}$share")
    }
  }
}
