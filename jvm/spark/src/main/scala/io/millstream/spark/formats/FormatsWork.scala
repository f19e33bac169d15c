package io.millstream.spark.formats

import java.io.{IOException, UncheckedIOException}
import java.nio.file.{AccessDeniedException, Files, NoSuchFileException, Path, Paths}
import java.util.concurrent.{ConcurrentHashMap, CountDownLatch, TimeUnit}

import scala.jdk.CollectionConverters._

import io.millstream.spark.console.Failures
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{Path => HadoopPath}
import org.apache.hadoop.fs.permission.FsPermission
import org.apache.hadoop.util.ShutdownHookManager

/** A source of the files of all codecs, each below a separate directory. */
private[spark] final case class FormatsSource(name: String, directory: HadoopPath) {
  def directoryOf(codec: FormatsCodec): HadoopPath = new HadoopPath(directory, codec.name)

  def fileOf(codec: FormatsCodec): HadoopPath = new HadoopPath(directoryOf(codec), codec.fileName)
}

/**
 * A comparison's directories and the process of the current run. All are removed when it is closed, and when this JVM
 * ends.
 */
private[spark] final class FormatsWork private (
    directory: Path,
    val scratch: Path,
    also: Option[FormatsSource],
    conf: Configuration) extends AutoCloseable {
  import FormatsWork._

  @volatile private var isStopped = false
  @volatile private var child: Option[Process] = None
  private val closed = new CountDownLatch(1)
  private val atExit: Runnable = () => {
    stop()
    closed.await(PatienceS, TimeUnit.SECONDS)
    remove()
  }
  ShutdownHookManager.get().addShutdownHook(atExit, BeforeHadoop, 2 * PatienceS, TimeUnit.SECONDS)
  Open.add(this)

  val sources: Seq[FormatsSource] = FormatsSource("local", new HadoopPath(directory.toUri)) +: also.toSeq

  def fileOf(codec: FormatsCodec): Path = directory.resolve(codec.name).resolve(codec.fileName)

  /** Called often by long operations. */
  def check(): Unit = if (isStopped) throw new FormatsFailure("interrupted; nothing is left behind")

  /** Starts a process and waits for it; None if it exceeded its time and was killed. */
  def run(command: ProcessBuilder, seconds: Long): Option[Int] = {
    val process = command.start()
    child = Some(process)
    try {
      // The stop came before the process existed.
      check()
      Option.when(process.waitFor(seconds, TimeUnit.SECONDS))(process.exitValue)
    } finally {
      process.destroyForcibly().waitFor()
      child = None
      check()
    }
  }

  /** Ends the comparison, which throws an exception and then removes its files. */
  def stop(): Unit = {
    isStopped = true
    child.foreach(_.destroyForcibly())
  }

  override def close(): Unit =
    try remove()
    finally {
      closed.countDown()
      Open.remove(this)
      val hooks = ShutdownHookManager.get()
      if (!hooks.isShutdownInProgress) hooks.removeShutdownHook(atExit)
    }

  private def remove(): Unit = {
    Seq(directory, scratch).foreach(path => removing(path)(deleteTree(path)))
    also.map(_.directory).foreach(path => removing(path)(path.getFileSystem(conf).delete(path, true)))
  }

  private def removing(path: Any)(body: => Unit): Unit =
    try body
    catch {
      case e @ (_: IOException | _: UncheckedIOException) =>
        System.err.println(
          s"millstream: $path: cannot be removed: ${Failures.oneLine(e)}; remove the leftovers by hand")
    }
}

private[spark] object FormatsWork {
  private val Prefix = "millstream-formats-"
  private val PatienceS = 10L
  private val OwnerOnly = new FsPermission("700")

  /** Later hooks close Hadoop's file systems. */
  private val BeforeHadoop = 100
  private val Open = ConcurrentHashMap.newKeySet[FormatsWork]()

  /**
   * New directories with a subdirectory for each codec, and one for everything else: the work directory may be a slow
   * mount.
   */
  def open(options: FormatsOptions, conf: Configuration): FormatsWork = {
    val scratch = created(Paths.get(System.getProperty("java.io.tmpdir")))
    val work =
      try {
        val directory = options.workDirectory.fold(Files.createDirectory(scratch.resolve("data")))(parent =>
          created(Paths.get(parent).toAbsolutePath))
        try {
          val also = options.also.map(url => FormatsSource(url, made(url, scratch.getFileName.toString, conf)))
          new FormatsWork(directory, scratch, also, conf)
        } catch {
          case e: Throwable =>
            deleteTree(directory)
            throw e
        }
      } catch {
        case e: Throwable =>
          deleteTree(scratch)
          throw e
      }
    // All are created now: a file written after the removal does not create them again.
    try writing(scratch)(options.codecs.foreach(codec => Files.createDirectory(work.fileOf(codec).getParent)))
    catch {
      case e: Throwable =>
        work.close()
        throw e
    }
    work
  }

  private def created(parent: Path): Path = writing(parent)(Files.createTempDirectory(parent, Prefix))

  private def made(url: String, name: String, conf: Configuration): HadoopPath = writing(url, "--also") {
    val directory = new HadoopPath(url, name)
    directory.getFileSystem(conf).mkdirs(directory, OwnerOnly)
    directory
  }

  def stopAll(): Unit = Open.asScala.foreach(_.stop())

  /** Runs code that writes to a directory named by an option. */
  def writing[T](path: Any, option: String = "--work-dir")(body: => T): T =
    try body
    catch {
      // Hadoop throws different exceptions for a missing file system.
      case e @ (_: IOException | _: UncheckedIOException | _: IllegalArgumentException) =>
        val reason = e match {
          case _: NoSuchFileException => "there is no such directory"
          case _: AccessDeniedException => "permission denied"
          case _ => Failures.oneLine(e)
        }
        val fix =
          s"choose a directory with $option that exists, can be written to and has space, or a smaller --sample"
        throw new FormatsFailure(s"$path: cannot write the sample: $reason; $fix")
    }

  private def deleteTree(root: Path): Unit = if (Files.exists(root)) {
    val paths = Files.walk(root)
    try paths.iterator.asScala.toSeq.reverse.foreach(Files.deleteIfExists(_))
    finally paths.close()
  }
}
