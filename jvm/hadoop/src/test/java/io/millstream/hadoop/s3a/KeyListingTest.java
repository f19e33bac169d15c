package io.millstream.hadoop.s3a;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.millstream.Seed;
import io.millstream.hadoop.listing.DirectoryListing;
import java.io.IOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.NavigableSet;
import java.util.Random;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Listings of a bucket in memory that pages like S3. */
class KeyListingTest {
    private static final int THREADS = 16;
    private static final URI BUCKET = URI.create("s3a://bucket");

    /** A bucket. The token is the last key of the page before, or a common prefix. */
    private static final class Bucket implements Keys {
        final NavigableSet<String> keys = new TreeSet<>(Keys::compare);
        final AtomicInteger requests = new AtomicInteger();
        final int page;
        boolean reversed;
        boolean repeatsPrefixes;

        Bucket(int page) {
            this.page = page;
        }

        @Override
        public Page list(String prefix, String delimiter, String after, String next) {
            requests.incrementAndGet();
            List<Item> items = new ArrayList<>();
            List<String> prefixes = new ArrayList<>();
            String from = next != null ? next : after == null ? "" : after;
            String last = null;
            for (String key : keys.tailSet(from, false)) {
                if (!key.startsWith(prefix)
                        || delimiter != null && from.endsWith("/") && key.startsWith(from) && !from.equals(prefix)) {
                    continue;
                }
                int slash = delimiter == null ? -1 : key.indexOf(delimiter, prefix.length());
                String common = slash < 0 ? null : key.substring(0, slash + 1);
                if (common != null && !prefixes.isEmpty() && common.equals(prefixes.get(prefixes.size() - 1))) {
                    continue;
                }
                if (items.size() + prefixes.size() == page) {
                    return new Page(reversed ? reverse(items) : items, prefixes, last);
                }
                if (common == null) {
                    items.add(new Item(key, key.length(), 0, null));
                } else {
                    prefixes.add(common);
                }
                last = common == null ? key : common;
            }
            if (repeatsPrefixes) {
                prefixes.addAll(List.copyOf(prefixes));
            }
            return new Page(reversed ? reverse(items) : items, prefixes, null);
        }

        private static List<Item> reverse(List<Item> items) {
            List<Item> reversed = new ArrayList<>(items);
            Collections.reverse(reversed);
            return reversed;
        }
    }

    private static List<String> listed(Bucket bucket, String... prefixes) throws IOException {
        List<String> found = Collections.synchronizedList(new ArrayList<>());
        new KeyListing(bucket, THREADS, root -> item -> found.add(item.key())).run(List.of(prefixes));
        return found;
    }

    private static List<String> sorted(List<String> keys) {
        List<String> sorted = new ArrayList<>(keys);
        sorted.sort(Keys::compare);
        return sorted;
    }

    /** Whatever the keys are, each is listed once. */
    @Test
    void everyKeyIsListedOnce() throws IOException {
        Random random = new Random(Seed.printed());
        String[] alphabets = {"01", "0123456789", "0123456789abcdef", "abz", "aZ9é\uD83D\uDE00\uFF21-", "/a0"};
        for (int round = 0; round < 300; round++) {
            Bucket bucket = new Bucket(1 + random.nextInt(30));
            int[] letters =
                    alphabets[random.nextInt(alphabets.length)].codePoints().toArray();
            int count = random.nextInt(2000);
            int directories = 1 + random.nextInt(random.nextBoolean() ? 4 : 200);
            for (int i = 0; i < count; i++) {
                StringBuilder key = new StringBuilder("top/");
                if (random.nextInt(10) > 0) {
                    key.append("d=").append(random.nextInt(directories)).append('/');
                }
                for (int length = 1 + random.nextInt(6); length > 0; length--) {
                    key.appendCodePoint(letters[random.nextInt(letters.length)]);
                }
                bucket.keys.add(key.toString());
            }
            bucket.keys.add("to");
            bucket.keys.add("top0");
            List<String> expected =
                    bucket.keys.stream().filter(key -> key.startsWith("top/")).toList();
            assertEquals(expected, sorted(listed(bucket, "top/")), "round " + round);
            List<String> halves = sorted(listed(bucket, "top/d=1", "top/d=2/"));
            assertEquals(
                    bucket.keys.stream()
                            .filter(key -> key.startsWith("top/d=1") || key.startsWith("top/d=2/"))
                            .toList(),
                    halves,
                    "round " + round);
        }
    }

    private static Bucket bucket(int directories, int files) {
        Bucket bucket = new Bucket(Keys.PAGE);
        for (int d = 0; d < directories; d++) {
            for (int f = 0; f < files; f++) {
                bucket.keys.add(
                        directories == 1
                                ? String.format("set/part-%07d", f)
                                : String.format("set/d=%04d/part-%05d", d, f));
            }
        }
        return bucket;
    }

    /** Lists, and returns by how many percent the requests exceed the pages. */
    private static double surplus(Bucket bucket) throws IOException {
        int pages = (bucket.keys.size() + Keys.PAGE - 1) / Keys.PAGE;
        assertEquals(bucket.keys.size(), listed(bucket, "set/").size());
        return 100.0 * (bucket.requests.get() - pages) / pages;
    }

    @Test
    void fewRequestsAreWasted() throws IOException {
        assertTrue(surplus(bucket(1, 300_000)) <= 20, "flat");
        assertTrue(surplus(bucket(300, 1000)) <= 2, "a page in each directory");
        assertTrue(surplus(bucket(3000, 100)) <= 20, "a tenth of a page in each directory");
    }

    @Test
    void aServerWithoutOrderIsNoticed() {
        Bucket bucket = bucket(1, 100);
        bucket.reversed = true;
        assertThrows(KeyListing.UnorderedException.class, () -> listed(bucket, "set/"));
    }

    /** Each would be listed once for each time it is named. */
    @Test
    void aServerThatNamesAPrefixTwiceIsNoticed() {
        Bucket bucket = bucket(3, Keys.PAGE);
        bucket.repeatsPrefixes = true;
        assertThrows(KeyListing.UnorderedException.class, () -> listed(bucket, "set/"));
    }

    private static List<String> paths(List<String> keys, String root) throws IOException {
        Bucket bucket = new Bucket(3);
        bucket.keys.addAll(keys);
        List<String> paths = new ArrayList<>();
        for (DirectoryListing directory : new S3aListing(BUCKET, bucket, THREADS).list(List.of(root))) {
            for (int i = 0; i < directory.count(); i++) {
                paths.add(directory.path(i).toString());
            }
        }
        return sorted(paths);
    }

    @Test
    void keysBecomePathsAsInSpark() throws IOException {
        List<String> keys = List.of(
                "t/a",
                "t/b c/é%",
                "t/_hidden/x",
                "t/.dot",
                "t/_k=1/y",
                "t/_m",
                "t/dir/",
                "t/old_$folder$",
                "t/x._COPYING_",
                "t/_metadata");
        assertEquals(
                List.of(
                        "s3a://bucket/t/_k=1/y",
                        "s3a://bucket/t/_metadata",
                        "s3a://bucket/t/a",
                        "s3a://bucket/t/b c/é%"),
                paths(keys, "t/"));
        assertEquals(List.of("s3a://bucket/x"), paths(List.of("x"), ""));
    }

    @Test
    void oddKeysAreLeftToSpark() {
        for (String odd : List.of("t//a", "t/./a", "t/../a", "t/a/..", "t/\uFFFD", "t/_metadata/x")) {
            assertThrows(S3aListing.OddKeyException.class, () -> paths(List.of("t/0", odd), "t/"), odd);
        }
    }
}
