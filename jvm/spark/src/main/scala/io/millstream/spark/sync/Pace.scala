package io.millstream.spark.sync

import java.util.concurrent.TimeUnit.{NANOSECONDS, SECONDS}

/** Holds the threads of a task together to a rate. */
private[sync] final class Pace(bytesPerSecond: Long) {
  private var due = System.nanoTime()

  /** Waits as long as so many bytes take. */
  def take(bytes: Long): Unit = {
    val end = synchronized {
      due = math.max(due, System.nanoTime()) + (bytes.toDouble / bytesPerSecond * SECONDS.toNanos(1)).toLong
      due
    }
    NANOSECONDS.sleep(end - System.nanoTime())
  }
}
