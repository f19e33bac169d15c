package io.millstream.hadoop.s3a;

import io.millstream.hadoop.DatasetNames;
import io.millstream.hadoop.DirectoryListing;
import io.millstream.hadoop.Versions;
import java.io.IOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Lists data sets of a bucket: sorts keys into directories as S3A does. */
final class S3aListing {
  private static final String FOLDER_MARKER = "_$folder$";

  /** A key that S3A shows under another name, or cannot open. */
  static final class OddKeyException extends IOException {
    private static final long serialVersionUID = 1L;

    OddKeyException(String key) {
      super("the key \"" + key + "\" is no path of Hadoop's, or one of an unusual kind");
    }
  }

  private final URI fileSystem;
  private final Keys keys;
  private final int threads;
  private int requests;
  private int shards;

  /**
   * Listings of a bucket.
   *
   * @param fileSystem the URI of the file system
   * @param threads most requests at once
   */
  S3aListing(URI fileSystem, Keys keys, int threads) {
    this.fileSystem = fileSystem;
    this.keys = keys;
    this.threads = threads;
  }

  /**
   * The files below roots, by directory. A root without keys has no listing: it may be a file, or not exist.
   *
   * @param prefixes the keys of the roots with a slash at the end; empty for the bucket
   * @throws IOException if Spark must list them, since the server does not answer as S3 does, or keys are odd
   */
  List<DirectoryListing> list(List<String> prefixes) throws IOException {
    List<Shard> filled = Collections.synchronizedList(new ArrayList<>());
    KeyListing listing = new KeyListing(keys, threads, root -> {
      Shard shard = new Shard(root, prefixes.get(root).length());
      filled.add(shard);
      return shard;
    });
    try {
      listing.run(prefixes);
    } finally {
      requests = listing.requests();
      shards = listing.shards();
    }
    // In Spark's order, that of keys.
    filled.removeIf(shard -> shard.firstKey == null);
    filled.sort(Comparator.<Shard>comparingInt(shard -> shard.root).thenComparing(shard -> shard.firstKey, Keys::compare));
    List<DirectoryListing> listings = new ArrayList<>();
    filled.forEach(shard -> shard.directories.values().forEach(directory -> listings.add(directory.build())));
    return listings;
  }

  /** Number of requests of the last listing. */
  int requests() {
    return requests;
  }

  /** Number of parts that the last listing was made in. */
  int shards() {
    return shards;
  }

  /** The keys of a shard by directory. */
  private final class Shard implements KeyListing.Sink {
    private final int root;
    private final int rootLength;
    private final Map<String, DirectoryListing.Builder> directories = new LinkedHashMap<>();
    private String firstKey;
    /** The part of the last key up to its last slash. */
    private String directory;
    /** Its files; null if they are hidden. */
    private DirectoryListing.Builder files;

    Shard(int root, int rootLength) {
      this.root = root;
      this.rootLength = rootLength;
    }

    @Override
    public void add(Keys.Item item) throws IOException {
      String key = item.key();
      firstKey = firstKey == null ? key : firstKey;
      int slash = key.lastIndexOf('/');
      if (directory == null || slash != directory.length() - 1 || !key.startsWith(directory)) {
        directory = key.substring(0, slash + 1);
        files = isHidden(directory) ? null : directories.computeIfAbsent(directory, this::begin);
      }
      if (files == null || slash == key.length() - 1 || key.endsWith(FOLDER_MARKER)) {
        return;
      }
      String name = key.substring(slash + 1);
      if (isOdd(name)) {
        throw new OddKeyException(key);
      }
      if (!DatasetNames.isHidden(name)) {
        files.add(name, item.size(), item.modificationTime(), Versions.pack(item.version()));
      }
    }

    private DirectoryListing.Builder begin(String prefix) {
      return new DirectoryListing.Builder(fileSystem, prefix.isEmpty() ? "/" : "/" + prefix.substring(0, prefix.length() - 1), root);
    }

    private boolean isHidden(String directory) throws IOException {
      boolean hidden = false;
      int start = rootLength;
      for (int slash = directory.indexOf('/', start); slash >= 0; slash = directory.indexOf('/', start)) {
        String name = directory.substring(start, slash);
        if (isOdd(name) || DatasetNames.isSummary(name)) {
          throw new OddKeyException(directory);
        }
        hidden |= DatasetNames.isHidden(name);
        start = slash + 1;
      }
      return hidden;
    }

    private boolean isOdd(String name) {
      return name.isEmpty() || name.equals(".") || name.equals("..") || name.indexOf('\uFFFD') >= 0 || name.indexOf('\0') >= 0;
    }
  }
}
