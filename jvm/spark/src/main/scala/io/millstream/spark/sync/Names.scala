package io.millstream.spark.sync

import java.io.ByteArrayOutputStream
import java.nio.{ByteBuffer, CharBuffer}
import java.nio.charset.StandardCharsets.UTF_8

/**
 * Paths of local files as text, whatever their bytes are. UTF-8 is unchanged; each other byte becomes NUL and two
 * hexadecimal digits. No path has a NUL, so texts are equal if and only if the bytes are.
 */
private[sync] object Names {
  private val Hex = "0123456789abcdef"

  def text(bytes: Array[Byte]): String = {
    val decoded = new String(bytes, UTF_8)
    // Java replaces invalid bytes by U+FFFD, but a name can also contain that.
    if (decoded.indexOf('\uFFFD') < 0 || java.util.Arrays.equals(decoded.getBytes(UTF_8), bytes)) decoded
    else escaped(bytes)
  }

  private def escaped(bytes: Array[Byte]): String = {
    val decoder = UTF_8.newDecoder()
    val in = ByteBuffer.wrap(bytes)
    val out = CharBuffer.allocate(3 * bytes.length)
    var result = decoder.decode(in, out, true)
    while (result.isMalformed) {
      for (_ <- 0 until result.length) {
        val byte = in.get() & 0xff
        out.put('\u0000').put(Hex(byte >> 4)).put(Hex(byte & 15))
      }
      result = decoder.decode(in, out, true)
    }
    out.flip().toString
  }

  def bytes(text: String): Array[Byte] =
    if (isUtf8(text)) text.getBytes(UTF_8)
    else {
      val parts = text.split("\u0000", -1)
      val out = new ByteArrayOutputStream(text.length)
      out.writeBytes(parts.head.getBytes(UTF_8))
      parts.tail.foreach { part =>
        out.write(Integer.parseInt(part.take(2), 16))
        out.writeBytes(part.drop(2).getBytes(UTF_8))
      }
      out.toByteArray
    }

  /** Whether a path is valid UTF-8, so that every file system can have it. */
  def isUtf8(text: String): Boolean = text.indexOf(0) < 0

  /** A path for display, with an invalid byte written as `\xff`. */
  def shown(text: String): String = if (isUtf8(text)) text else text.replace("\u0000", "\\x")
}
