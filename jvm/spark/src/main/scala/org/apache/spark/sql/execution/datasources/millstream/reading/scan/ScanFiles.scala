package org.apache.spark.sql.execution.datasources.millstream.reading.scan

import java.net.URI

import io.millstream.hadoop.codec.{FileCodec, TextCodec}
import io.millstream.hadoop.natives.NativeLibrary
import io.millstream.hadoop.reading.ListedFileSystem
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileSystem, Path}
import org.apache.hadoop.io.compress.{CompressionCodec, SplittableCompressionCodec}
import org.apache.hadoop.mapreduce.lib.input.LineRecordReader

import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.execution.datasources.{FileStatusWithMetadata, PartitionDirectory}
import org.apache.spark.sql.execution.datasources.millstream.hadoop.FileCodecs
import org.apache.spark.sql.execution.datasources.millstream.listing.{Indexed, Listed}

/**
 * The files of a scan on one file system that Millstream lists.
 *
 * @param fileSystem scheme and authority
 * @param conf their Hadoop configuration
 */
private[millstream] final class ScanFiles(
    val fileSystem: URI,
    val directories: Seq[PartitionDirectory],
    val conf: Configuration) {
  private val codecs = FileCodecs.ofSpark(conf)

  /** The codec with which Spark reads a file. */
  def codec(file: FileStatusWithMetadata): Option[CompressionCodec] = codecs.of(file.fileStatus match {
    case listed: Indexed => listed.name
    case other => other.getPath.getName
  })

  def isLocal: Boolean = ScanFiles.isLocal(fileSystem)

  /** How native threads read them; for local files there is only one way. */
  def transport: Option[String] =
    Option.unless(isLocal)(new Path(fileSystem).getFileSystem(conf)).collect { case ours: Listed => ours.transport }

  /**
   * Whether we verify the checksums next to the files; file systems other than the local one verify themselves.
   */
  def verifiesChecksums: Boolean = isLocal && ScanFiles.verifiesChecksums(conf)

  private lazy val codecsOfFiles: Set[CompressionCodec] = directories.iterator.flatMap(_.files).flatMap(codec).toSet

  /** Whether the files are uncompressed and their lines have no length limit. */
  lazy val arePlainLines: Boolean = conf.get(LineRecordReader.MAX_LINE_LENGTH) == null && codecsOfFiles.isEmpty

  /** Whether native code can return the files' lines, decoded if necessary. */
  lazy val haveNativeLines: Boolean =
    conf.get(LineRecordReader.MAX_LINE_LENGTH) == null && codecsOfFiles.forall(FileCodec.textCodec(_) != null)

  /** The native codecs of the files. */
  def nativeCodecs: Seq[TextCodec] =
    codecsOfFiles.toSeq.flatMap(codec => Option(FileCodec.textCodec(codec))).distinct.sorted

  /** The native codec of a file, if it is compressed. */
  def nativeCodec(file: FileStatusWithMetadata): Option[TextCodec] = codec(file).map(FileCodec.textCodec)

  /** Whether Spark would read a file with several tasks, if it does so for uncompressed ones. */
  def isSplitByHadoop(file: FileStatusWithMetadata): Boolean =
    codec(file).forall(_.isInstanceOf[SplittableCompressionCodec])
}

private[millstream] object ScanFiles {

  /** Hadoop's setting for its local file system, since 3.5. */
  def verifiesChecksums(conf: Configuration): Boolean = conf.getBoolean("fs.file.checksum.verify", true)

  def isLocal(fileSystem: URI): Boolean = fileSystem.getScheme == "file"

  def of(scan: FileSourceScanExec): Option[ScanFiles] = {
    val location = scan.relation.location
    val conf = scan.relation.sparkSession.sessionState.newHadoopConfWithOptions(scan.relation.options)
    for {
      _ <- Option.when(NativeLibrary.isLoaded)(())
      fileSystem <- fileSystem(location.rootPaths, conf)
      files = new ScanFiles(fileSystem.getUri, location.listFiles(scan.partitionFilters, scan.dataFilters), conf)
      if files.directories.forall(isOn(_, fileSystem.getUri))
    } yield files
  }

  private def fileSystem(roots: Seq[Path], conf: Configuration): Option[Listed] = {
    val found = roots.iterator.map(_.getFileSystem(conf)).distinct.take(2).toSeq
    found match {
      case Seq(fileSystem: FileSystem with ListedFileSystem) => Some(fileSystem)
      case _ => None
    }
  }

  /** Whether a partition is on a file system, which may differ from its table's. */
  private def isOn(directory: PartitionDirectory, fileSystem: URI): Boolean =
    directory.files.headOption.forall { file =>
      val uri = file.getPath.toUri
      uri.getScheme == fileSystem.getScheme && (isLocal(fileSystem) || uri.getAuthority == fileSystem.getAuthority)
    }
}
