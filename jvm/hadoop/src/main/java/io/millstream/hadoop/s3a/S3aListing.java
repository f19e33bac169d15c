package io.millstream.hadoop.s3a;

import io.millstream.hadoop.listing.DatasetNames;
import io.millstream.hadoop.listing.DirectoryListing;
import java.io.IOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;

/** Lists data sets of a bucket: sorts keys into directories as S3A does. */
final class S3aListing {
    private static final String FOLDER_MARKER = "_$folder$";

    /** A key that S3A shows under another name, or cannot open. */
    static final class OddKeyException extends IOException {
        private static final long serialVersionUID = 1L;

        OddKeyException(String key) {
            super("the key \"" + key + "\" has no regular Hadoop path");
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
     * The files below roots, by directory. A root without keys has no listing: it may be a file or missing.
     *
     * @param prefixes the keys of the roots with a trailing slash; empty for the bucket
     * @throws IOException if Spark must list them, since the server does not behave like S3, or keys are unusual
     */
    List<DirectoryListing> list(List<String> prefixes) throws IOException {
        List<DirectoryListing> listings = new ArrayList<>();
        for (Directories shard :
                run(prefixes, root -> new Directories(root, prefixes.get(root).length()))) {
            shard.directories.values().forEach(directory -> listings.add(directory.build()));
        }
        return listings;
    }

    /**
     * All objects below a prefix that S3A shows as files, including hidden ones, in key order.
     *
     * @throws IOException as for {@link #list}
     */
    List<Keys.Item> files(String prefix) throws IOException {
        List<Keys.Item> files = new ArrayList<>();
        run(List.of(prefix), root -> new Files(root, prefix.length())).forEach(shard -> files.addAll(shard.files));
        return files;
    }

    /** The first files of a listing. */
    record Beginning(List<Keys.Item> files, boolean isAll) {}

    /**
     * The files of {@link #files} that one request finds.
     *
     * @throws IOException as for {@link #list}
     */
    Beginning beginning(String prefix) throws IOException {
        Keys.Page page = keys.list(prefix, null, null, null);
        Files shard = new Files(0, prefix.length());
        for (Keys.Item item : page.items()) {
            shard.add(item);
        }
        return new Beginning(shard.files, page.next() == null);
    }

    /** Lists keys into shards; returns the shards that are not empty, in key order, which is Spark's. */
    private <S extends Shard> List<S> run(List<String> prefixes, IntFunction<S> empty) throws IOException {
        List<S> filled = Collections.synchronizedList(new ArrayList<>());
        KeyListing listing = new KeyListing(keys, threads, root -> {
            S shard = empty.apply(root);
            filled.add(shard);
            return shard;
        });
        try {
            listing.run(prefixes);
        } finally {
            requests = listing.requests();
            shards = listing.shards();
        }
        filled.removeIf(shard -> shard.firstKey == null);
        filled.sort(
                Comparator.<S>comparingInt(shard -> shard.root).thenComparing(shard -> shard.firstKey, Keys::compare));
        return filled;
    }

    /** Number of requests of the last listing. */
    int requests() {
        return requests;
    }

    /** Number of shards of the last listing. */
    int shards() {
        return shards;
    }

    private static boolean isOdd(String name) {
        return name.isEmpty()
                || name.equals(".")
                || name.equals("..")
                || name.indexOf('\uFFFD') >= 0
                || name.indexOf('\0') >= 0;
    }

    /** Whether S3A shows no file for a key. */
    private static boolean isMarker(String key) {
        return key.endsWith("/") || key.endsWith(FOLDER_MARKER);
    }

    /** The result of a shard. */
    private abstract static class Shard implements KeyListing.Sink {
        final int root;
        final int rootLength;
        String firstKey;
        /** The part of the last key up to its last slash. */
        private String directory;

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
                int start = rootLength;
                List<String> names = new ArrayList<>();
                for (int end = directory.indexOf('/', start); end >= 0; end = directory.indexOf('/', start)) {
                    names.add(directory.substring(start, end));
                    start = end + 1;
                }
                if (names.stream().anyMatch(S3aListing::isOdd)) {
                    throw new OddKeyException(directory);
                }
                enter(directory, names);
            }
            if (!isMarker(key)) {
                String name = key.substring(slash + 1);
                if (isOdd(name)) {
                    throw new OddKeyException(key);
                }
                add(name, item);
            }
        }

        /** The following objects are in this directory, whose path below the root has these names. */
        abstract void enter(String directory, List<String> names) throws OddKeyException;

        /** Takes an object that is a file. */
        abstract void add(String name, Keys.Item item);
    }

    /** The files of a data set by directory. */
    private final class Directories extends Shard {
        private final Map<String, DirectoryListing.Builder> directories = new LinkedHashMap<>();
        /** The files of the current directory; null if they are hidden. */
        private DirectoryListing.Builder files;

        Directories(int root, int rootLength) {
            super(root, rootLength);
        }

        @Override
        void enter(String directory, List<String> names) throws OddKeyException {
            if (names.stream().anyMatch(DatasetNames::isSummary)) {
                throw new OddKeyException(directory);
            }
            files = names.stream().anyMatch(DatasetNames::isHidden)
                    ? null
                    : directories.computeIfAbsent(directory, this::begin);
        }

        private DirectoryListing.Builder begin(String prefix) {
            return new DirectoryListing.Builder(
                    fileSystem, prefix.isEmpty() ? "/" : "/" + prefix.substring(0, prefix.length() - 1), root);
        }

        @Override
        void add(String name, Keys.Item item) {
            if (files != null && !DatasetNames.isHidden(name)) {
                files.add(name, item.size(), item.modificationTime(), item.version());
            }
        }
    }

    /** All files. */
    private static final class Files extends Shard {
        private final List<Keys.Item> files = new ArrayList<>();

        Files(int root, int rootLength) {
            super(root, rootLength);
        }

        @Override
        void enter(String directory, List<String> names) {}

        @Override
        void add(String name, Keys.Item item) {
            files.add(item);
        }
    }
}
