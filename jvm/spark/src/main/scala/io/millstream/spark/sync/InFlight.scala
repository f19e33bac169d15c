package io.millstream.spark.sync

import java.util.concurrent.{Callable, ExecutionException, ExecutorCompletionService, Executors}
import java.util.concurrent.TimeUnit.SECONDS

import org.apache.spark.TaskContext

/**
 * The results of concurrent calls that wait for storage, in order of completion. The threads end with the task; a
 * killed task waits for them, so that they remove unfinished files.
 */
private[sync] final class InFlight[A, B](in: Iterator[A], threads: Int, work: A => B) extends Iterator[B] {
  private val pool = Executors.newFixedThreadPool(threads, InFlight.daemon)
  private val ended = new ExecutorCompletionService[B](pool)
  private var running = 0

  Option(TaskContext.get()).foreach(_.addTaskCompletionListener[Unit] { _ =>
    pool.shutdownNow()
    pool.awaitTermination(InFlight.PatienceSeconds, SECONDS)
  })

  override def hasNext: Boolean = {
    while (running < threads && in.hasNext) {
      val next = in.next()
      val call: Callable[B] = () => work(next)
      ended.submit(call)
      running += 1
    }
    if (running == 0) pool.shutdown()
    running > 0
  }

  override def next(): B = {
    if (!hasNext) throw new NoSuchElementException
    val done = ended.take()
    running -= 1
    try done.get()
    catch {
      case e: ExecutionException => throw e.getCause
    }
  }
}

private[sync] object InFlight {
  private val PatienceSeconds = 30L

  val daemon: java.util.concurrent.ThreadFactory = (work: Runnable) => {
    val thread = new Thread(work, "millstream-sync")
    thread.setDaemon(true)
    thread
  }
}
