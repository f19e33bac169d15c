package org.apache.spark.sql.execution.datasources.millstream.tasks

/**
 * Decides where tasks end that are filled sequentially and should cost about `target` each.
 *
 * The total cost after each task should be a multiple of the target. So a task that is somewhat too expensive makes the
 * next one cheaper, and the number of tasks is as planned.
 */
private[millstream] final class TaskQuota(target: Long) {
  private var spent = 0L
  private var quota = target
  private var isEmpty = true

  /** The remaining cost of the task. */
  def room: Long = quota - spent

  /** Whether an item of this cost should go into the next task. */
  def overflows(cost: Long): Boolean = !isEmpty && cost > room + target / 4

  /** Adds an item to the task; returns whether the task is full now. */
  def take(cost: Long): Boolean = {
    isEmpty = false
    spent += cost
    room <= 0
  }

  /** Begins the next task. */
  def next(): Unit = {
    isEmpty = true
    // After an item that is many times too expensive, the next tasks must not become tiny.
    quota = math.max(quota + target, spent + target / 2)
  }
}

object Packing {

  /**
   * Packs items, in order, into tasks that cost about `target` each; an item that costs more gets a separate task.
   */
  def consecutive[T](things: Seq[T], target: Long)(cost: T => Long): Seq[Seq[T]] = {
    val quota = new TaskQuota(target)
    val tasks = Seq.newBuilder[Seq[T]]
    var task = Vector.newBuilder[T]
    def end(): Unit = {
      val done = task.result()
      if (done.nonEmpty) {
        tasks += done
        task = Vector.newBuilder[T]
        quota.next()
      }
    }
    things.foreach { thing =>
      if (quota.overflows(cost(thing))) end()
      task += thing
      if (quota.take(cost(thing))) end()
    }
    end()
    tasks.result()
  }
}
