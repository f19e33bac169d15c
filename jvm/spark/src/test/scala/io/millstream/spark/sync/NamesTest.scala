package io.millstream.spark.sync

import java.nio.charset.StandardCharsets.{ISO_8859_1, UTF_8}

import scala.util.Random

import org.junit.jupiter.api.Assertions.{assertArrayEquals, assertEquals, assertNotEquals}
import org.junit.jupiter.api.Test

class NamesTest {
  private def latin(text: String) = text.getBytes(ISO_8859_1)

  @Test def whatIsUtf8StaysAsItIs(): Unit = for (name <- Seq("", "a", "d/漢 字", "\uFFFD", "\ud83d\ude00", "new\nline")) {
    assertEquals(name, Names.text(name.getBytes(UTF_8)))
    assertArrayEquals(name.getBytes(UTF_8), Names.bytes(name))
    assertEquals(name, Names.shown(name))
  }

  @Test def allElseIsEscapedByteByByte(): Unit = for ((bytes, shown) <- Seq(
      "\u00ff" -> "\\xff",
      "a\u00fe/b" -> "a\\xfe/b",
      // An overlong slash, half of a character at the end, half of a surrogate pair.
      "\u00c0\u00af" -> "\\xc0\\xaf",
      "a\u00e6\u00bc" -> "a\\xe6\\xbc",
      "\u00ed\u00a0\u0080x" -> "\\xed\\xa0\\x80x")) {
    val text = Names.text(latin(bytes))
    assertArrayEquals(latin(bytes), Names.bytes(text))
    assertEquals(shown, Names.shown(text))
    assertNotEquals(text, Names.text(latin(shown)))
  }

  @Test def anyBytesComeBack(): Unit = {
    val seed = sys.env.get("MILLSTREAM_SEED").fold(System.nanoTime())(_.toLong)
    val chance = new Random(seed)
    val seen = collection.mutable.HashMap.empty[String, Seq[Byte]]
    for (_ <- 0 until 20000) {
      val bytes = Array.fill(chance.nextInt(8))(Seq[Int](0xc3, 0xa9, 0xe2, 0x82, 0xac, 0xff, 'a', '0', 0xef, 0xbf,
        0xbd)(chance.nextInt(11)).toByte)
      val text = Names.text(bytes)
      assertArrayEquals(bytes, Names.bytes(text), s"MILLSTREAM_SEED=$seed")
      assertEquals(bytes.toSeq, seen.getOrElseUpdate(text, bytes.toSeq), s"MILLSTREAM_SEED=$seed")
    }
  }
}
