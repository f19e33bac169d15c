package io.millstream.spark.sync

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}
import java.util.UUID
import java.util.concurrent.{ConcurrentHashMap, ThreadLocalRandom}
import java.util.concurrent.TimeUnit.{DAYS, MILLISECONDS}
import java.util.zip.CRC32C

import scala.util.Try

/**
 * The process that creates temporary files, as encoded in their names: the driver of a synchronization, or a `psync`
 * without Spark.
 *
 * @param machine eight hexadecimal digits for the machine or container
 * @param process its process ID there
 */
private[sync] final case class Maker(machine: String, process: Long) {
  private def isOfThisMachine = machine == Maker.Machine

  /** Whether it has ended, as far as this process can tell. */
  def hasEnded: Boolean = isOfThisMachine && !exists

  /** Whether it is running, as far as this process can tell. */
  def isRunning: Boolean = isOfThisMachine && exists

  /** Whether it can still do anything: a zombie has only a number. */
  private def exists: Boolean = ProcessHandle.of(process).isPresent && {
    val stat = Try(Files.readString(Path.of(s"/proc/$process/stat"))).getOrElse("")
    // The program's name, in parentheses, may contain any characters. The first thread may have ended before the
    // others.
    val fields = stat.substring(stat.lastIndexOf(')') + 1).trim.split(' ')
    fields.head != "Z" || fields.lift(Maker.ThreadsField).flatMap(_.toLongOption).exists(_ > 1)
  }
}

private[sync] object Maker {

  /** In `/proc/PID/stat`, after the name: the number of threads. */
  private val ThreadsField = 17

  /**
   * Process IDs are valid in one namespace of one machine until it reboots. If one of these is unknown, the result is
   * unique.
   */
  private lazy val Machine: String = {
    def text(get: => String) = Try(get).getOrElse(UUID.randomUUID().toString)
    machineOf(
      text(Files.readString(Path.of("/proc/sys/kernel/random/boot_id"))),
      text(Files.readSymbolicLink(Path.of("/proc/self/ns/pid")).toString))
  }

  /** The machine with this boot ID and PID namespace, as procfs shows them; `temporaries.rs` derives the same. */
  def machineOf(bootId: String, namespace: String): String = {
    val sum = new CRC32C
    Seq(bootId, namespace).foreach(part => sum.update(part.getBytes(UTF_8)))
    f"${sum.getValue}%08x"
  }

  lazy val current: Maker = Maker(Machine, ProcessHandle.current.pid)
}

/**
 * Names of temporary files and working directories: `.psync-MACHINE-PID-N.tmp`, the same as those of `psync` without
 * Spark, so that each leaves the other's unfinished files alone. They never take part in a synchronization.
 *
 * @param run distinguishes the runs of a driver
 */
private[sync] final case class TemporaryNames(maker: Maker, run: Int) {
  import TemporaryNames._

  /** The name of the working directory. */
  def working: String = name(OfDriver, WorkingNumber)

  /** A name that no other attempt of a task uses. */
  def name(attempt: Long, count: Long): String = {
    val number = run.toLong << (AttemptBits + CountBits) | attempt << CountBits | count
    s".psync-${maker.machine}-${maker.process}-${java.lang.Long.toUnsignedString(number)}.tmp"
  }

  /** Whether a name belongs to this run. */
  def has(name: String): Boolean = named(name).contains(this)

  /** Whether the run has ended, as far as this process can tell. */
  def hasEnded: Boolean = maker.hasEnded || maker == Maker.current && !Active.contains(run)

  /** Marks the run as ended. */
  def end(): Unit = Active.remove(run)

  override def toString: String = s"${maker.machine}-${maker.process}-$run"
}

private[sync] object TemporaryNames {
  private val Form = """\.psync-([0-9a-f]{8})-(\d{1,10})-(\d{1,20})\.tmp""".r
  private val Runs = 1 << 12
  private val AttemptBits = 30
  private val CountBits = 22
  private val WorkingNumber = (1L << CountBits) - 1

  /** The attempt number outside of tasks. */
  val OfDriver: Long = (1L << AttemptBits) - 1
  private val DaysOfFiles = 1L

  /** A run may take longer than one of its files. */
  private val DaysOfDirectories = 7L

  /** The runs of this process that have not ended. */
  private val Active = ConcurrentHashMap.newKeySet[Int]()

  /** Names for a new run of this process, until [[TemporaryNames.end]]. */
  def fresh(): TemporaryNames =
    Iterator.continually(ThreadLocalRandom.current.nextInt(Runs)).find(Active.add).map(TemporaryNames(
      Maker.current,
      _)).get

  /** Parses the names of an earlier run. */
  def of(text: String): Option[TemporaryNames] = text.split('-') match {
    case Array(machine, process, run) =>
      for (process <- process.toLongOption; run <- run.toIntOption) yield TemporaryNames(Maker(machine, process), run)
    case _ => None
  }

  /** The creator of a temporary name; None if it is another name. */
  def makerOf(name: String): Option[Maker] = named(name).map(_.maker)

  /**
   * The run of a temporary name; None if it is another name. Names by `psync` without Spark have no run number.
   */
  def named(name: String): Option[TemporaryNames] = name match {
    case Form(machine, process, number) =>
      Try(java.lang.Long.parseUnsignedLong(number)).toOption.map { number =>
        TemporaryNames(Maker(machine, process.toLong), (number >>> (AttemptBits + CountBits)).toInt)
      }
    case _ => None
  }

  /**
   * Whether a temporary file will never be completed: its run has ended, or it is days old.
   *
   * @param ended runs that have ended
   */
  def isAbandoned(entry: Entry, ended: Set[TemporaryNames]): Boolean = named(Paths.name(entry.path)).exists { run =>
    val days = if (entry.kind == Kind.WorkingDirectory) DaysOfDirectories else DaysOfFiles
    ended(run) || entry.mtime.exists(_ < MILLISECONDS.toNanos(System.currentTimeMillis()) - DAYS.toNanos(days))
  }
}
