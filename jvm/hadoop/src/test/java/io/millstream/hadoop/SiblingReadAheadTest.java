package io.millstream.hadoop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SiblingReadAheadTest {
  @TempDir
  File root;

  @BeforeEach
  void makeTree() throws IOException {
    assertTrue(NativeLibrary.isLoaded());
    for (int i = 0; i < 10; i++) {
      for (int j = 0; j < 4; j++) {
        Trees.write(root.toPath().resolve("d" + i + "/e" + j + "/f"), 1);
      }
    }
  }

  private static SiblingReadAhead readAhead(int directories, int maxAgeMillis) {
    Configuration conf = new Configuration(false);
    conf.setInt(ListingOptions.READ_AHEAD_DIRECTORIES, directories);
    conf.setInt(ListingOptions.READ_AHEAD_MAX_AGE_MILLIS, maxAgeMillis);
    return new SiblingReadAhead(new ListingOptions(conf));
  }

  private static List<DirectoryListing> list(String directory) throws IOException {
    List<DirectoryListing> parts = new ArrayList<>();
    byte[][] roots = {LocalPaths.encode(new File(directory))};
    new NativeListing(roots, NativeListing.DIRECTORIES, 1).forEach(parts::add);
    return parts;
  }

  /** Lists as the file system does; whether the listing had been read ahead. */
  private static boolean ask(SiblingReadAhead ahead, String directory) throws IOException {
    List<DirectoryListing> parts = ahead.take(directory);
    ahead.listed(directory, parts == null ? list(directory) : parts);
    return parts != null;
  }

  private List<Boolean> askForChildren(SiblingReadAhead ahead, int count) throws IOException {
    ask(ahead, root.getPath());
    List<Boolean> served = new ArrayList<>();
    for (DirectoryListing part : list(root.getPath())) {
      for (int i = 0; i < count; i++) {
        served.add(ask(ahead, root + "/" + part.name(i)));
      }
    }
    return served;
  }

  @Test
  void secondSiblingStartsIt() throws IOException {
    List<Boolean> served = askForChildren(readAhead(1024, 60_000), 10);
    List<Boolean> expected = new ArrayList<>(java.util.Collections.nCopies(10, true));
    expected.set(0, false);
    assertEquals(expected, served);
  }

  @Test
  void windowBoundsItAndTheNextSiblingStartsItAgain() throws IOException {
    assertEquals(List.of(false, true, true, true, true, true, true), askForChildren(readAhead(3, 60_000), 7));
  }

  @Test
  void zeroDirectoriesIsOff() throws IOException {
    assertEquals(List.of(false, false, false, false), askForChildren(readAhead(0, 60_000), 4));
  }

  @Test
  void itDescendsIfTheCallerDid() throws IOException {
    SiblingReadAhead ahead = readAhead(1024, 60_000);
    ask(ahead, root.getPath());
    String first = root + "/" + list(root.getPath()).get(0).name(0);
    String second = root + "/" + list(root.getPath()).get(0).name(1);
    ask(ahead, first);
    ask(ahead, first + "/e0");
    assertEquals(true, ask(ahead, second));
    assertEquals(true, ask(ahead, second + "/e3"));
  }

  @Test
  void handedOutOnce() throws IOException {
    SiblingReadAhead ahead = readAhead(1024, 60_000);
    askForChildren(ahead, 3);
    String third = root + "/" + list(root.getPath()).get(0).name(2);
    assertNull(ahead.take(third));
  }

  @Test
  void changeDropsIt() throws IOException {
    SiblingReadAhead ahead = readAhead(1024, 60_000);
    askForChildren(ahead, 3);
    String fourth = root + "/" + list(root.getPath()).get(0).name(3);
    ahead.invalidate();
    assertNull(ahead.take(fourth));
  }

  @Test
  void openOutputPausesIt() throws IOException {
    SiblingReadAhead ahead = readAhead(1024, 60_000);
    ahead.invalidateAndPause();
    assertEquals(List.of(false, false, false), askForChildren(ahead, 3));
  }

  @Test
  void oldListingsAreNotHandedOut() throws Exception {
    SiblingReadAhead ahead = readAhead(1024, 500);
    askForChildren(ahead, 3);
    DirectoryListing names = list(root.getPath()).get(0);
    Thread.sleep(300);
    assertNotNull(ahead.take(root + "/" + names.name(3)));
    Thread.sleep(300);
    assertNull(ahead.take(root + "/" + names.name(4)));
  }
}
