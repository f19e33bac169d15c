package io.millstream.hadoop.reading;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

/**
 * Translates Java's regular expressions and SQL's {@code LIKE} patterns for the native scan, if they mean the same
 * there.
 *
 * <p>Translated are literals, {@code .}, character classes without set operations, {@code \d \w \s} and their
 * negations, groups, alternatives, greedy and lazy quantifiers, {@code ^} outside of repeated groups, {@code $} at the
 * end of an alternative, and {@code (?i)} at the beginning: whether such an expression is found in a text does not
 * depend on the search algorithm. Every class is written out, because Java's cover only ASCII and the native ones do
 * not. A pattern with anything else (references, look-around, possessive quantifiers, boundaries, Unicode properties,
 * other flags) is not translated, and stays with Java. Most such patterns still have a wider translation, which the
 * native scan looks for first ({@link #ofNecessary}).
 *
 * <p>One difference remains: where Java's matcher ends with a StackOverflowError on a long text, the native one does
 * not.
 */
public final class PortableRegex {
    private static final int MAX_DEPTH = 30;
    private static final int MAX_COUNT = 1000;
    private static final String SPECIAL = "\\^$.|?*+()[]{}";
    private static final String ESCAPABLE = "\\^$.|?*+()[]{}-/#&~\"'`!%,:;<=>@_ ";
    /** Invalid UTF-8 becomes this character, so the row's bytes may lack it. */
    private static final int REPLACEMENT = 0xFFFD;

    private static final String DIGITS = "09";
    private static final String WORDS = "azAZ__09";
    private static final String SPACES = "  \t\t\n\n\u000B\u000B\f\f\r\r";
    private static final String ANY = "(?s:.)";
    private static final String ANY_TEXT = "(?s:.*)";
    private static final String LINE_ENDS = "\n\n\r\r\u0085\u0085\u2028\u2029";

    /** The pattern is not translated. */
    private static final class Untranslatable extends RuntimeException {
        private static final long serialVersionUID = 1;

        Untranslatable() {
            super(null, null, false, false);
        }
    }

    private final String pattern;
    private final String literal;

    private PortableRegex(String pattern, String literal) {
        this.pattern = pattern;
        this.literal = literal;
    }

    /** The pattern in the syntax of Rust's {@code regex} crate. */
    public String pattern() {
        return pattern;
    }

    /** Every matching row contains this text as UTF-8; may be empty. */
    public String literal() {
        return literal;
    }

    /**
     * Translates a pattern that is searched for in a text, as {@code Matcher.find} does.
     *
     * @param pattern a pattern of {@link Pattern}
     * @param textIsLine whether the text contains neither LF nor CR
     * @return empty if it is malformed or has no translation
     */
    public static Optional<PortableRegex> ofRegex(String pattern, boolean textIsLine) {
        try {
            Pattern.compile(pattern);
            return Optional.of(new Translation(pattern, textIsLine, false).translate());
        } catch (PatternSyntaxException | Untranslatable | StackOverflowError e) {
            return Optional.empty();
        }
    }

    /**
     * A pattern that is found wherever {@code pattern} is, and maybe elsewhere: assertions are left out, and
     * unsupported parts match any text.
     *
     * @param pattern a pattern of {@link Pattern}
     * @return empty if it is malformed, or nothing is left of it
     */
    public static Optional<PortableRegex> ofNecessary(String pattern) {
        try {
            Pattern.compile(pattern);
            return Optional.of(new Translation(pattern, false, true).translate())
                    .filter(found -> !found.pattern.isEmpty());
        } catch (PatternSyntaxException | Untranslatable | StackOverflowError e) {
            return Optional.empty();
        }
    }

    /**
     * Translates an SQL {@code LIKE} pattern, which matches a whole text: {@code _} is one character, {@code %} any
     * number.
     *
     * @param pattern the pattern
     * @param escape makes the wildcard or escape that follows it a literal
     * @return empty if it is malformed or has no translation
     */
    public static Optional<PortableRegex> ofLike(String pattern, char escape) {
        StringBuilder out = new StringBuilder("^");
        Literals literals = new Literals();
        for (int i = 0; i < pattern.length(); i++) {
            char c = pattern.charAt(i);
            boolean isEscaped = c == escape;
            if (isEscaped) {
                i++;
                c = i < pattern.length() ? pattern.charAt(i) : 0;
                if (c != '_' && c != '%' && c != escape) {
                    return Optional.empty();
                }
            }
            if (Character.isSurrogate(c)) {
                return Optional.empty();
            }
            if (!isEscaped && (c == '_' || c == '%')) {
                out.append(c == '_' ? ANY : ANY_TEXT);
                literals.end();
            } else {
                quote(c, out);
                literals.add(c);
            }
        }
        return Optional.of(new PortableRegex(out.append('$').toString(), literals.longest()));
    }

    /** Appends a character that stands for itself. */
    private static void quote(int c, StringBuilder out) {
        if (c < 128 && Character.isLetterOrDigit(c)) {
            out.append((char) c);
        } else {
            out.append("\\x{").append(Integer.toHexString(c)).append('}');
        }
    }

    /** Finds the longest literal among those that every matching text contains. */
    private static final class Literals {
        private final StringBuilder current = new StringBuilder();
        private String longest = "";

        void add(int c) {
            if (c == REPLACEMENT) {
                end();
            } else {
                current.appendCodePoint(c);
            }
        }

        void end() {
            if (current.length() > longest.length()) {
                longest = current.toString();
            }
            current.setLength(0);
        }

        String longest() {
            end();
            return longest;
        }
    }

    /** A set of characters, as the first and the last of each range. */
    private static final class CharacterClass {
        private final List<int[]> ranges = new ArrayList<>();
        private final boolean isNegated;

        CharacterClass(boolean isNegated) {
            this.isNegated = isNegated;
        }

        static CharacterClass of(String pairs, boolean isNegated) {
            CharacterClass result = new CharacterClass(isNegated);
            result.addAll(pairs);
            return result;
        }

        void addAll(String pairs) {
            for (int i = 0; i < pairs.length(); i += 2) {
                add(pairs.charAt(i), pairs.charAt(i + 1), false);
            }
        }

        void add(int first, int last, boolean ignoresCase) {
            ranges.add(new int[] {first, last});
            if (ignoresCase) {
                addOtherCase(first, last, 'a', 'z', 'A');
                addOtherCase(first, last, 'A', 'Z', 'a');
            }
        }

        private void addOtherCase(int first, int last, char from, char to, char other) {
            if (first <= to && last >= from) {
                ranges.add(new int[] {Math.max(first, from) - from + other, Math.min(last, to) - from + other});
            }
        }

        void write(StringBuilder out) {
            out.append(isNegated ? "[^" : "[");
            for (int[] range : ranges) {
                quote(range[0], out);
                out.append('-');
                quote(range[1], out);
            }
            out.append(']');
        }
    }

    /** A parser of patterns that are known to be well-formed. */
    private static final class Translation {
        private final int[] in;
        private final boolean textIsLine;
        /** Whether the translation may match more than the pattern. */
        private final boolean isWide;

        private final StringBuilder out = new StringBuilder();
        private final Literals literals = new Literals();
        private int at;
        private int anchors;
        private boolean ignoresCase;
        private boolean hasAlternatives;

        Translation(String pattern, boolean textIsLine, boolean isWide) {
            in = pattern.codePoints().toArray();
            this.textIsLine = textIsLine;
            this.isWide = isWide;
        }

        PortableRegex translate() {
            if (startsWith("(?i)")) {
                ignoresCase = true;
                at = 4;
            }
            alternatives(0);
            require(at == in.length);
            return new PortableRegex(out.toString(), hasAlternatives || ignoresCase ? "" : literals.longest());
        }

        private static void require(boolean condition) {
            if (!condition) {
                throw new Untranslatable();
            }
        }

        private int peek() {
            return at < in.length ? in[at] : -1;
        }

        private int next() {
            require(at < in.length);
            return in[at++];
        }

        private boolean startsWith(String text) {
            return in.length - at >= text.length() && new String(in, at, text.length()).equals(text);
        }

        private void alternatives(int depth) {
            require(depth <= MAX_DEPTH);
            sequence(depth);
            while (peek() == '|') {
                at++;
                out.append('|');
                hasAlternatives |= depth == 0;
                sequence(depth);
            }
        }

        private void sequence(int depth) {
            while (peek() != -1 && peek() != '|' && peek() != ')') {
                if (!anchor(depth)) {
                    repeated(depth);
                }
            }
        }

        private boolean anchor(int depth) {
            if (isWide && leftOut(depth)) {
                require("?*+{".indexOf(peek()) < 0);
                return true;
            }
            if (peek() == '^' || startsWith("\\A")) {
                at += peek() == '^' ? 1 : 2;
                out.append('^');
            } else if (startsWith("\\z")) {
                at += 2;
                out.append('$');
            } else if (peek() == '$') {
                at++;
                // Nothing may follow: Java matches before a line separator at the end, which is skipped here.
                require(textIsLine && depth == 0 && (peek() == -1 || peek() == '|'));
                out.append("[\\x{85}\\x{2028}\\x{2029}]?$");
            } else {
                return false;
            }
            require("?*+{".indexOf(peek()) < 0);
            anchors++;
            return true;
        }

        /** Skips an assertion: anything may match in its position. */
        private boolean leftOut(int depth) {
            for (String assertion : new String[] {"$", "\\b", "\\B", "\\G", "\\Z"}) {
                if (startsWith(assertion)) {
                    at += assertion.length();
                    return true;
                }
            }
            for (String look : new String[] {"(?=", "(?!", "(?<=", "(?<!"}) {
                if (startsWith(look)) {
                    at += look.length();
                    int before = out.length();
                    alternatives(depth + 1);
                    out.setLength(before);
                    require(next() == ')');
                    return true;
                }
            }
            return false;
        }

        /** An atom and its quantifier. */
        private void repeated(int depth) {
            int start = out.length();
            int anchorsBefore = anchors;
            int character = atom(depth);
            int least = quantifier();
            // Java does not find (?:^|a){2}b in "ab": it does not repeat a group that has matched nothing.
            require(isWide || least < 0 || anchors == anchorsBefore);
            if (depth > 0) {
                return;
            }
            if (character >= 0 && least != 0) {
                literals.add(character);
            }
            if (character < 0 || least >= 0) {
                literals.end();
            }
            require(out.length() > start);
        }

        /** The character, if the atom is one; otherwise -1. */
        private int atom(int depth) {
            int c = next();
            switch (c) {
                case '(':
                    group(depth);
                    return -1;
                case '[':
                    characterClass().write(out);
                    return -1;
                case '.':
                    CharacterClass.of(LINE_ENDS, true).write(out);
                    return -1;
                case '\\':
                    if (isWide && unknown()) {
                        return -1;
                    }
                    CharacterClass escaped = escapedClass();
                    if (escaped != null) {
                        escaped.write(out);
                        return -1;
                    }
                    return single(escapedCharacter());
                default:
                    require(SPECIAL.indexOf(c) < 0);
                    return single(c);
            }
        }

        /** Replaces parts that may match any text: references, and classes that native code does not support. */
        private boolean unknown() {
            int kind = peek();
            if (kind >= '1' && kind <= '9') {
                while (peek() >= '0' && peek() <= '9') {
                    at++;
                }
                out.append(ANY_TEXT);
            } else if (kind == 'k') {
                skipTo('>');
                out.append(ANY_TEXT);
            } else if (kind == 'p' || kind == 'P') {
                at++;
                if (peek() == '{') {
                    skipTo('}');
                } else {
                    next();
                }
                out.append(ANY);
            } else if (kind == 'h' || kind == 'H' || kind == 'v' || kind == 'V') {
                at++;
                out.append(ANY);
            } else if (kind == 'R' || kind == 'X') {
                at++;
                out.append(ANY_TEXT);
            } else {
                return false;
            }
            return true;
        }

        private void skipTo(int last) {
            while (next() != last) {
                // The skipped characters belong to a name.
            }
        }

        private int single(int c) {
            require(c < Character.MIN_SURROGATE || c > Character.MAX_SURROGATE);
            if (ignoresCase && c < 128 && Character.isLetter(c)) {
                CharacterClass both = new CharacterClass(false);
                both.add(c, c, true);
                both.write(out);
            } else {
                quote(c, out);
            }
            return c;
        }

        private void group(int depth) {
            if (peek() == '?') {
                at++;
                int kind = next();
                require(kind == ':' || isWide && kind == '>' || kind == '<' && peek() != '=' && peek() != '!');
                if (kind == '<') {
                    skipTo('>');
                }
            }
            out.append("(?:");
            alternatives(depth + 1);
            require(next() == ')');
            out.append(')');
        }

        /** The minimum number of repetitions of the preceding atom; -1 without a quantifier. */
        private int quantifier() {
            int least;
            switch (peek()) {
                case '?':
                case '*':
                    least = 0;
                    out.appendCodePoint(next());
                    break;
                case '+':
                    least = 1;
                    out.appendCodePoint(next());
                    break;
                case '{':
                    least = counts();
                    break;
                default:
                    return -1;
            }
            if (peek() == '?') {
                out.appendCodePoint(next());
            } else if (isWide && peek() == '+') {
                at++;
            }
            require("?*+{".indexOf(peek()) < 0);
            return least;
        }

        private int counts() {
            at++;
            int least = number();
            out.append('{').append(least);
            if (peek() == ',') {
                at++;
                out.append(',');
                if (peek() != '}') {
                    out.append(number());
                }
            }
            require(next() == '}');
            out.append('}');
            return least;
        }

        private int number() {
            int value = 0;
            int digits = 0;
            while (peek() >= '0' && peek() <= '9') {
                value = value * 10 + next() - '0';
                digits++;
                require(value <= MAX_COUNT);
            }
            require(digits > 0);
            return value;
        }

        /** The class that follows a backslash, or null if a character does. */
        private CharacterClass escapedClass() {
            int kind = peek();
            if ("dDwWsS".indexOf(kind) < 0 || kind < 0) {
                return null;
            }
            at++;
            String members = "dD".indexOf(kind) >= 0 ? DIGITS : "wW".indexOf(kind) >= 0 ? WORDS : SPACES;
            return CharacterClass.of(members, Character.isUpperCase(kind));
        }

        private int escapedCharacter() {
            int c = next();
            switch (c) {
                case 't':
                    return '\t';
                case 'n':
                    return '\n';
                case 'r':
                    return '\r';
                case 'f':
                    return '\f';
                case 'x':
                    return hexadecimal(2);
                case 'u':
                    return hexadecimal(4);
                default:
                    require(ESCAPABLE.indexOf(c) >= 0);
                    return c;
            }
        }

        private int hexadecimal(int digits) {
            int value = 0;
            for (int i = 0; i < digits; i++) {
                int digit = Character.digit(next(), 16);
                require(digit >= 0);
                value = value * 16 + digit;
            }
            return value;
        }

        private CharacterClass characterClass() {
            CharacterClass members = new CharacterClass(peek() == '^');
            if (peek() == '^') {
                at++;
            }
            require(peek() != ']');
            while (peek() != ']') {
                member(members);
            }
            at++;
            return members;
        }

        private void member(CharacterClass members) {
            if (peek() == '\\') {
                at++;
                CharacterClass escaped = escapedClass();
                if (escaped != null) {
                    require(!escaped.isNegated && peek() != '-');
                    escaped.ranges.forEach(range -> members.add(range[0], range[1], false));
                    return;
                }
                at--;
            }
            int first = classCharacter();
            int last = first;
            if (peek() == '-') {
                at++;
                last = classCharacter();
                require(first <= last);
            }
            members.add(first, last, ignoresCase);
        }

        private int classCharacter() {
            int c = next();
            if (c == '\\') {
                c = escapedCharacter();
            } else {
                // Set operations, nested classes, and a hyphen or circumflex that may have a special meaning.
                require("[]^&-".indexOf(c) < 0);
            }
            require(c < Character.MIN_SURROGATE || c > Character.MAX_SURROGATE);
            return c;
        }
    }
}
