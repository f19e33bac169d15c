package io.millstream.hadoop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Test;

class FileRangesTest {
  private static String[] at(FileRanges.Cursor range) {
    return new String[] {range.file(), range.uri(), range.start() + "+" + range.length() + "/" + range.size() + "@" + range.modificationTime()};
  }

  @Test
  void rangesComeBackInTheirOrder() {
    String[] paths = {"/d/a", "/d/b b", "/e/f/ü%", "/root", "/e/f/again"};
    FileRanges.Builder builder = new FileRanges.Builder();
    for (int i = 0; i < paths.length; i++) {
      builder.add(paths[i], i, i + 10, i + 100, i + 1000);
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
    FileRanges.Cursor some = ranges.slice(2, 4).cursor();
    assertTrue(some.next());
    assertEquals("/e/f/ü%", some.file());
    assertTrue(some.next());
    assertEquals("/root", some.file());
    assertFalse(some.next());
  }
}
