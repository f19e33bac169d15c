package io.millstream.spark.sync

import java.io.{InputStream, OutputStream}
import java.math.BigDecimal
import java.nio.charset.StandardCharsets.UTF_8

import scala.jdk.CollectionConverters._
import scala.util.Try

import io.millstream.hadoop.tree.NativeTree
import io.millstream.hadoop.s3a.{NativeTransfers, ServerCopy}
import org.apache.hadoop.fs.{FileStatus, FileSystem, FSDataOutputStream, Options, Path}

/**
 * S3 objects, which appear under their own names when they are complete. User metadata of each has the time of its
 * source, because its own time is that of the upload, and the checksum of its contents if that was known before the
 * upload.
 */
private[sync] final class ObjectTree(private val fs: FileSystem, root: Path, temporary: () => String)
    extends HadoopTree(fs, root, temporary, Extras()) {
  import ObjectTree._

  override def capabilities: Capabilities =
    Capabilities(
      modes = 0,
      hasOwners = false,
      hasLinks = false,
      hasSpecials = false,
      hasTimes = true,
      amends = false,
      impliesDirectories = true)

  override protected def examined(path: String, status: FileStatus): Entry =
    if (status.isDirectory) Entry(path, Kind.Directory)
    else
      Entry(path, Kind.File, status.getLen, mtime = Some(status.getModificationTime * 1000000), etag = etagOf(status))

  override def withOwnTime(entry: Entry): Entry =
    if (!entry.isFile) entry
    else {
      // Some servers change the case of names.
      val headers = fs.getXAttrs(at(entry.path)).asScala
      withTime(
        entry,
        headers.collectFirst {
          case (name, value) if name.equalsIgnoreCase(s"header.$Time") => new String(value, UTF_8)
        })
    }

  private def withTime(entry: Entry, metadata: Option[String]): Entry =
    metadata.flatMap(decoded).fold(entry)(mtime => entry.copy(mtime = Some(mtime)))

  private lazy val transfers = Option(NativeTransfers.of(fs))

  /** Copies an object into a new file natively; None if the JVM has to, which finds out why. */
  def fetch(version: Entry, to: LocalTree, found: Option[Entry], preserved: Preserved): Option[Fetched] =
    transfers.filter(transfers => version.etag.nonEmpty && transfers.fetches(version.size)).flatMap { transfers =>
      val file = to.stageNatively(version.path, Decision.attributes(version, found, preserved))
      var isFetched = false
      try {
        val fetched =
          Option(transfers.fetch(at(version.path), version.etag.get, version.size, to.native, file)).map { read =>
            val own = withTime(version, Option(read.metadata.get(Time)))
            Decision.attributes(own, found, preserved).mtime.foreach(file.keepTime)
            Fetched(file, own.mtime, Transfer.text(read.checksum))
          }
        isFetched = fetched.nonEmpty
        fetched
      } finally if (!isFetched) file.close()
    }

  /** Copies a small file to an object natively; returns its checksum, or None if the JVM has to copy it. */
  def send(from: LocalTree, version: Entry, attributes: Attributes): Option[String] =
    transfers.flatMap { transfers =>
      val sum = new Array[Int](1)
      val (path, headers) = (Names.bytes(version.path), metadata(attributes).asJava)
      val sent =
        transfers.send(from.native, path, version.size, version.mtime.get, at(version.path), headers, Checksum, sum)
      Option.when(sent == NativeTransfers.Sent.DONE)(Transfer.text(sum(0)))
    }

  private def metadata(attributes: Attributes): Map[String, String] =
    attributes.mtime.map(mtime => Time -> encoded(mtime)).toMap

  override def open(path: String, size: Long): InputStream =
    fs.openFile(at(path)).opt(Options.OpenFileOptions.FS_OPTION_OPENFILE_LENGTH, size)
      .opt(Options.OpenFileOptions.FS_OPTION_OPENFILE_READ_POLICY, "whole-file").build().get()

  override def stage(path: String, attributes: Attributes, checksum: Option[String], source: Tree): Staged =
    new Staged {
      private var isInstalled = false
      private val objectPath = at(path)

      override val out: OutputStream = {
        val builder = fs.createFile(objectPath).overwrite(true).recursive().opt(Quick, true)
        metadata(attributes).foreach { case (name, value) => builder.opt(s"$Header$name", value) }
        checksum.foreach(checksum => builder.opt(s"$Header$Checksum", checksum))
        builder.build()
      }

      override def install(check: Option[InputStream => Unit]): Option[String] = {
        out.close()
        isInstalled = true
        check.foreach(check => scala.util.Using.resource[InputStream, Unit](fs.open(objectPath))(check))
        None
      }

      override def discard(): Unit = if (!isInstalled) out.asInstanceOf[FSDataOutputStream].abort()
    }

  override def copyByServer(source: Tree, version: Entry, attributes: Attributes): Boolean = source match {
    case source: ObjectTree if version.etag.nonEmpty =>
      serverCopy(source).exists(_.copy(
        source.at(version.path),
        version.etag.get,
        metadata(attributes).asJava,
        at(version.path)))
    case _ => false
  }

  private var prepared: Option[(ObjectTree, Option[ServerCopy])] = None

  private def serverCopy(source: ObjectTree): Option[ServerCopy] = synchronized {
    if (!prepared.exists(_._1 eq source)) prepared = Some(source -> Option(ServerCopy.between(source.fs, fs)))
    prepared.flatMap(_._2)
  }

  override def setAttributes(path: String, attributes: Attributes, source: Option[Tree]): Unit = ()

  override def mayGiveAway(path: String): Boolean = false

  /** The source's time is in the metadata. */
  override def keepsAttributes(path: String): Boolean = true
}

/** `crates/volumes/bucket` writes and reads the same metadata; `testdata/object-metadata.tsv` has examples for both. */
private[sync] object ObjectTree {

  /**
   * A staged copy.
   *
   * @param mtime the time of the contents
   */
  final case class Fetched(file: NativeTree.Staged, mtime: Option[Long], checksum: String)

  private val Header = "fs.s3a.create.header."
  private val Quick = "fs.s3a.create.performance"
  val Time = "millstream-mtime"
  val Checksum = "millstream-checksum"
  private val Seconds = "-?[0-9]+(\\.[0-9]{0,9})?".r
  private val Nanos = new BigDecimal(1000000000)

  /** Seconds, with as many digits as there are. */
  def encoded(mtime: Long): String = new BigDecimal(mtime).divide(Nanos).toPlainString

  /** None if it is no time, or one with more digits than a nanosecond has. */
  def decoded(text: String): Option[Long] =
    Option.when(Seconds.matches(text))(new BigDecimal(text).multiply(Nanos)).flatMap(time =>
      Try(time.longValueExact).toOption)
}
