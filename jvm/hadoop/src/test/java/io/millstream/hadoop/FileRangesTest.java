package io.millstream.hadoop;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class FileRangesTest {
  private static String[] at(FileRanges.Cursor range) {
    return new String[] {range.file(), range.uri(), range.start() + "+" + range.length() + "/" + range.size() + "@" + range.modificationTime()};
  }

  @Test
  void rangesKeepTheirOrder() {
    String[] paths = {"/d/a", "/d/b b", "/e/f/ü%", "/root", "/e/f/again"};
    FileRanges.Builder builder = new FileRanges.Builder();
    for (int i = 0; i < paths.length; i++) {
      builder.add(paths[i], i, i + 10, i + 100, i + 1000, null);
    }
    assertEquals(paths.length, builder.count());
    FileRanges ranges = builder.build();
    FileRanges.Cursor cursor = ranges.cursor();
    for (int i = 0; i < paths.length; i++) {
      assertTrue(cursor.next());
      String[] expected = {paths[i], new Path("file", "", paths[i]).toUri().toString(),
          i + "+" + (i + 10) + "/" + (i + 100) + "@" + (i + 1000)};
      for (int k = 0; k < expected.length; k++) {
        assertEquals(expected[k], at(cursor)[k]);
        assertEquals(expected[k], at(ranges.at(i))[k]);
      }
    }
    assertFalse(cursor.next());
    List<FileRanges> each = ranges.each();
    assertEquals(paths.length, each.size());
    for (int i = 0; i < paths.length; i++) {
      FileRanges.Cursor one = each.get(i).cursor();
      assertTrue(one.next());
      assertArrayEquals(at(ranges.at(i)), at(one));
      assertEquals(paths[i].substring(paths[i].lastIndexOf('/') + 1), one.name());
      assertFalse(one.next());
    }
    FileRanges.Cursor some = ranges.slice(2, 4).cursor();
    assertTrue(some.next());
    assertEquals("/e/f/ü%", some.file());
    assertTrue(some.next());
    assertEquals("/root", some.file());
    assertFalse(some.next());
  }

  /** Whatever this JVM's locale is, one of the two is not its encoding. */
  @ParameterizedTest
  @ValueSource(strings = {"UTF-8", "ISO-8859-1"})
  void namesKeepTheEncodingOfThePackingJvm(String encoding) throws IOException {
    byte[] packed = packed("/d/é".getBytes(encoding), "ü ñ".getBytes(encoding));
    ByteArrayOutputStream written = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(written);
    out.writeUTF("file://");
    out.writeUTF(encoding);
    out.writeInt(packed.length);
    out.write(packed);
    FileRanges ranges = FileRanges.read(new DataInputStream(new ByteArrayInputStream(written.toByteArray())));
    FileRanges.Cursor file = ranges.cursor();
    assertTrue(file.next());
    assertEquals("/d/é/ü ñ", file.file());
    assertEquals("file:///d/é/ü%20ñ", file.uri());
    assertArrayEquals(packed, ranges.slice(0, 1).packed());
    assertArrayEquals(packed, ranges.filter(range -> range.length() == 2).packed());
    ByteArrayOutputStream again = new ByteArrayOutputStream();
    ranges.slice(0, 1).write(new DataOutputStream(again));
    assertArrayEquals(written.toByteArray(), again.toByteArray());
  }

  private static byte[] packed(byte[] directory, byte[] name) {
    ByteBuffer packed = ByteBuffer.allocate(100).order(ByteOrder.LITTLE_ENDIAN);
    packed.put((byte) 'd').putInt(directory.length).put(directory).put((byte) 1);
    packed.put((byte) 'f').putInt(name.length).put(name).putLong(1).putLong(2).putLong(3).putLong(4).putInt(0);
    return Arrays.copyOf(packed.array(), packed.position());
  }
}
