package io.millstream.hadoop.reading;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.millstream.Seed;
import io.millstream.hadoop.listing.Version;
import io.millstream.hadoop.natives.WireWriter;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.TreeSet;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Compares native scans with {@link Pattern} on random patterns and rows: {@code MILLSTREAM_SEED} repeats a run, and
 * the system property {@code patterns} sets the number of patterns.
 */
class PortableRegexTest {
    private static final int ROWS = 200;
    private static final byte[] SEPARATOR = "\u0001\u0002".getBytes(StandardCharsets.US_ASCII);
    /**
     * What patterns and rows consist of, so that many rows match: letters, line ends, multi-byte characters, and
     * invalid UTF-8.
     */
    private static final String[] TEXT = {
        "a", "b", "ab", "A", "Z", "k", "0", "7", " ", "\t", "-", "_", "\n", "\r", "\r\n", "\u000B", "\u0085", "\u2028",
        "\u2029", "\u0000", "é", "É", "ſ", "\u212A", "漢", "🙂", "\uFFFD", "\uFEFF", ".", "[", "%"
    };

    private static final int[][] NO_UTF8 = {
        {0xE9},
        {0xFF},
        {0xC0, 0x80},
        {0xED, 0xA0, 0x80},
        {0xED, 0xBF, 0xBF},
        {0xE0, 0x80, 0x80},
        {0xE2, 0x82},
        {0xF0, 0x9F, 0x99},
        {0xF4, 0x90, 0x80, 0x80},
        {0xF0, 0x80, 0x80, 0x80},
        {0xF8, 0x88},
        {0x80},
        {0xC3},
        {0xF5, 0x80, 0x80, 0x80},
        {0xE1, 0x80},
        {0xF1, 0x80},
        {0xF1, 0x80, 0x80},
        {0xED, 0xA0},
        {0xED}
    };
    private static final String[] ATOMS = {
        ".",
        "\\d",
        "\\D",
        "\\w",
        "\\W",
        "\\s",
        "\\S",
        "[a-c]",
        "[^a]",
        "[^\\n]",
        "[a-zA-Z0-9_]",
        "[\\d.]",
        "[\\w-]",
        "[é-漢]",
        "[^é]",
        "\\x61",
        "\\u0085",
        "\\.",
        "\\[",
        "\\-",
        "\\t",
        "^",
        "$",
        "\\A",
        "\\z",
        "\\Z",
        "\\b",
        "\\B",
        "\\G",
        "\\R",
        "\\h",
        "\\p{L}",
        "\\1",
        "[[a]b]",
        "[a&&b]",
        "(?=a)",
        "(?<!a)",
        "(?>a)",
        "(?i)",
        "(?m)",
        "[]a]",
        "[a-]",
        "[🙂-🙃]",
        "\\Qa.b\\E",
        "\\cA",
        "\\07",
        "{",
        "}",
        "]",
        "\\uD83D",
        "[^\\W]",
        "[\\W]",
        "[\\s\\S]",
        "[a-\\uffff]",
        "[^b-\uE000]",
        "(?<n>a)",
        "(?:)",
        "()",
        "(?:^|a)",
        "(^)"
    };
    private static final String[] QUANTIFIERS = {
        "?", "*", "+", "{2}", "{1,}", "{0,2}", "{0}", "??", "*?", "+?", "{1,2}?", "*+", "++", "?+"
    };

    @TempDir
    Path directory;

    private final long seed = Seed.printed();
    private final Random random = new Random(seed);

    @Test
    void meansTheSameAsInJava() throws Exception {
        int patterns = Integer.getInteger("patterns", 2000);
        int translated = 0;
        int wider = 0;
        for (int i = 0; i < patterns; i++) {
            String pattern = pattern(3);
            Optional<PortableRegex> found = PortableRegex.ofRegex(pattern, false);
            if (found.isPresent()) {
                translated++;
                compare("RLIKE", pattern, Pattern.compile(pattern), false, found.get(), rows(false));
            }
            Optional<PortableRegex> ofLine = PortableRegex.ofRegex(pattern, true);
            if (ofLine.isPresent()) {
                compare("RLIKE of lines", pattern, Pattern.compile(pattern), false, ofLine.get(), rows(true));
            }
            Optional<PortableRegex> necessary = PortableRegex.ofNecessary(pattern);
            if (necessary.isPresent()) {
                wider++;
                findsAtLeast(pattern, necessary.get(), rows(i % 2 == 0));
            }
        }
        assertTrue(translated > patterns / 10, "only " + translated + " of " + patterns + " patterns were translated");
        assertTrue(wider > patterns / 3, "only " + wider + " of " + patterns + " patterns had a wider translation");
    }

    @Test
    void likeMeansTheSameAsInSpark() throws Exception {
        int patterns = Integer.getInteger("patterns", 2000);
        for (int i = 0; i < patterns; i++) {
            StringBuilder like = new StringBuilder();
            StringBuilder java = new StringBuilder("(?s)");
            for (int n = random.nextInt(6); n >= 0; n--) {
                int kind = random.nextInt(6);
                String text = kind == 0
                        ? "%"
                        : kind == 1
                                ? "_"
                                : kind == 2
                                        ? "\\" + "_%\\".charAt(random.nextInt(3))
                                        : TEXT[random.nextInt(TEXT.length)];
                like.append(text);
                java.append(
                        kind == 0 || text.equals("%")
                                ? ".*"
                                : kind == 1 || text.equals("_")
                                        ? "."
                                        : kind == 2 ? Pattern.quote(text.substring(1)) : Pattern.quote(text));
            }
            Optional<PortableRegex> found = PortableRegex.ofLike(like.toString(), '\\');
            if (found.isPresent()) {
                compare("LIKE", like.toString(), Pattern.compile(java.toString()), true, found.get(), rows(false));
            }
        }
    }

    @Test
    void wordsAreThoseOfJava() throws Exception {
        for (String separator : new String[] {" ", "a", "ab", "-"}) {
            List<byte[]> rows = rows(false);
            List<String> expected = new ArrayList<>();
            rows.forEach(row -> expected.addAll(List.of(text(row).split(Pattern.quote(separator), -1))));
            List<String> found = new ArrayList<>();
            try (NativeScan scan = scan(rows, new byte[] {'t'}, separator.getBytes(StandardCharsets.US_ASCII))) {
                while (scan.next()) {
                    for (int i = 0; i < scan.rows(); i++) {
                        found.add(new String(scan.row(i), StandardCharsets.UTF_8));
                    }
                }
            }
            assertEquals(expected, found, separator);
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "BALTIMORE.*[0-9]{5}",
                "(GET|POST) /[a-z]+",
                "^\\d{4}-\\d\\d-\\d\\d",
                "ERROR|WARN",
                "[A-Z][a-z]+ Street$",
                "(?i)error",
                "\\serror\\s",
                "user=(?<name>\\w+)",
                "a{2,3}?b",
                "\\[\\d+\\]",
                "x|"
            })
    void isTranslated(String pattern) {
        assertTrue(PortableRegex.ofRegex(pattern, true).isPresent());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "\\bx",
                "(a)\\1",
                "a(?=b)",
                "a*+",
                "\\p{L}",
                "(?m)^a",
                "[a&&b]",
                "[[a]]",
                "a$b",
                "(a$)",
                "\\Ga",
                "\\Z",
                "\\X",
                "(?x)a b",
                "a{1001}",
                "\uD83D",
                "(",
                "*",
                "(?i:a)",
                "a**",
                "(?:^|a){2}b",
                "((^a)b)*"
            })
    void isLeftToJava(String pattern) {
        assertEquals(Optional.empty(), PortableRegex.ofRegex(pattern, true));
    }

    @ParameterizedTest
    @CsvSource({
        "'\\bERROR\\b', ERROR",
        "'(?=.*a)(?=.*b)ab', ab",
        "'(\\w)\\1x', x",
        "'a\\p{L}+bc', bc",
        "'ab*+cd', cd",
        "'(?>a|b)cd$', cd",
        "'(?<!x)abc(?!d)', abc",
        "'(a)\\k<n>', ''",
        "'(?<n>a)\\k<n>b', b"
    })
    void hasAWiderTranslation(String pattern, String literal) {
        assertEquals(
                Optional.of(literal).filter(text -> !text.isEmpty()),
                PortableRegex.ofNecessary(pattern).map(PortableRegex::literal),
                pattern);
    }

    @ParameterizedTest
    @ValueSource(strings = {"\\b", "$", "(?=a)", "(", "(?m)^a", "[a&&b]", "\\b{g}a", "(?=a)*b"})
    void hasNoWiderTranslation(String pattern) {
        assertEquals(Optional.empty(), PortableRegex.ofNecessary(pattern));
    }

    @Test
    void findsTheLongestLiteralOfEveryMatch() {
        String[][] literals = {
            {"BALTIMORE.*[0-9]{5}", "BALTIMORE"},
            {"a(bcd)ef+g?h", "ef"},
            {"abc?de", "ab"},
            {"abc|d", ""},
            {"(?i)abc", ""},
            {"x{2}yz", "yz"},
            {"ab\uFFFDc", "ab"},
            {"a\\.b", "a.b"}
        };
        for (String[] literal : literals) {
            assertEquals(
                    literal[1],
                    PortableRegex.ofRegex(literal[0], true).orElseThrow().literal(),
                    literal[0]);
        }
    }

    private String pattern(int depth) {
        StringBuilder pattern = new StringBuilder();
        for (int alternatives = random.nextInt(4) == 0 ? 2 : 1; alternatives > 0; alternatives--) {
            for (int atoms = random.nextInt(4); atoms >= 0; atoms--) {
                int kind = random.nextInt(8);
                if (kind == 0 && depth > 0) {
                    pattern.append(random.nextBoolean() ? "(" : "(?:")
                            .append(pattern(depth - 1))
                            .append(')');
                } else {
                    pattern.append(kind < 4 ? ATOMS[random.nextInt(ATOMS.length)] : TEXT[random.nextInt(TEXT.length)]);
                }
                if (random.nextInt(3) == 0) {
                    pattern.append(QUANTIFIERS[random.nextInt(QUANTIFIERS.length)]);
                }
            }
            pattern.append(alternatives > 1 ? "|" : "");
        }
        boolean ignoresCase = depth == 3 && random.nextInt(8) == 0;
        return (ignoresCase ? "(?i)" : "") + pattern;
    }

    private List<byte[]> rows(boolean ofLines) {
        List<byte[]> rows = new ArrayList<>();
        // A byte order mark at the beginning of a file is not part of its first row.
        rows.add(new byte[] {'a'});
        for (int i = 1; i < ROWS; i++) {
            ByteArrayOutputStream row = new ByteArrayOutputStream();
            for (int n = random.nextInt(7); n > 0; n--) {
                if (random.nextInt(8) == 0) {
                    for (int value : NO_UTF8[random.nextInt(NO_UTF8.length)]) {
                        row.write(value);
                    }
                } else {
                    String text = TEXT[random.nextInt(TEXT.length)];
                    row.writeBytes((ofLines ? text.replaceAll("[\r\n]", "x") : text).getBytes(StandardCharsets.UTF_8));
                }
            }
            rows.add(row.toByteArray());
        }
        return rows;
    }

    private static String text(byte[] row) {
        return new String(row, StandardCharsets.UTF_8);
    }

    private NativeScan scan(List<byte[]> rows, byte[] predicate, byte[] words) throws IOException {
        ByteArrayOutputStream content = new ByteArrayOutputStream();
        for (byte[] row : rows) {
            content.writeBytes(row);
            content.writeBytes(SEPARATOR);
        }
        Path file = Files.write(directory.resolve("rows"), content.toByteArray());
        FileRanges.Builder ranges = new FileRanges.Builder();
        ranges.add(file.toString(), 0, content.size(), new Version(content.size(), 0, null));
        return new NativeScan(ranges.build(), null, SEPARATOR, predicate, words, 0, 0, () -> false);
    }

    private void findsAtLeast(String pattern, PortableRegex wider, List<byte[]> rows) throws IOException {
        byte[] predicate = encoded(wider);
        if (!NativeScan.accepts(predicate)) {
            return;
        }
        TreeSet<String> found = new TreeSet<>();
        try (NativeScan scan = scan(rows, predicate, NativeScan.WHOLE_ROWS)) {
            while (scan.next()) {
                for (int i = 0; i < scan.rows(); i++) {
                    found.add(shown(scan.row(i)));
                }
            }
        }
        Pattern java = Pattern.compile(pattern);
        for (byte[] row : rows) {
            assertTrue(
                    !java.matcher(text(row)).find() || found.contains(shown(row)),
                    () -> "seed " + seed + ", " + shown(pattern.getBytes(StandardCharsets.UTF_8)) + " became "
                            + wider.pattern() + " with literal " + wider.literal() + ", which misses " + shown(row));
        }
    }

    private void compare(
            String kind, String pattern, Pattern java, boolean isWhole, PortableRegex regex, List<byte[]> rows)
            throws IOException {
        byte[] predicate = encoded(regex);
        if (!NativeScan.accepts(predicate)) {
            return;
        }
        List<String> expected = new ArrayList<>();
        for (byte[] row : rows) {
            if (isWhole
                    ? java.matcher(text(row)).matches()
                    : java.matcher(text(row)).find()) {
                expected.add(shown(row));
            }
        }
        List<String> found = new ArrayList<>();
        try (NativeScan scan = scan(rows, predicate, NativeScan.WHOLE_ROWS)) {
            while (scan.next()) {
                for (int i = 0; i < scan.rows(); i++) {
                    found.add(shown(scan.row(i)));
                }
            }
        }
        TreeSet<String> missing = new TreeSet<>(expected);
        found.forEach(missing::remove);
        TreeSet<String> wrong = new TreeSet<>(found);
        expected.forEach(wrong::remove);
        assertTrue(
                expected.equals(found),
                () -> "seed " + seed + ", " + kind + " " + shown(pattern.getBytes(StandardCharsets.UTF_8)) + " became "
                        + regex.pattern() + " with literal " + regex.literal() + ", missing " + missing + ", wrong "
                        + wrong);
    }

    private static String shown(byte[] bytes) {
        StringBuilder shown = new StringBuilder();
        for (byte value : bytes) {
            shown.append(value > 32 && value < 127 ? String.valueOf((char) value) : String.format("<%02x>", value));
        }
        return shown.toString();
    }

    private static byte[] encoded(PortableRegex regex) {
        return new WireWriter()
                .u8('r')
                .prefixed(regex.pattern().getBytes(StandardCharsets.UTF_8))
                .prefixed(regex.literal().getBytes(StandardCharsets.UTF_8))
                .toByteArray();
    }
}
