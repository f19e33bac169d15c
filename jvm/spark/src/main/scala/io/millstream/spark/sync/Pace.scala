package io.millstream.spark.sync

import java.util.concurrent.TimeUnit.{NANOSECONDS, SECONDS}

/** Enforces a rate limit for all threads of a task together. */
private[sync] final class Pace(bytesPerSecond: Long) {
  private var due = System.nanoTime()

  /** Waits as long as this number of bytes takes. */
  def take(bytes: Long): Unit = {
    val end = synchronized {
      due = math.max(due, System.nanoTime()) + (bytes.toDouble / bytesPerSecond * SECONDS.toNanos(1)).toLong
      due
    }
    NANOSECONDS.sleep(end - System.nanoTime())
  }
}
