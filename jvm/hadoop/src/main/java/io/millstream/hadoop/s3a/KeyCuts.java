package io.millstream.hadoop.s3a;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.List;

/**
 * Guesses where to cut the remainder of a listing, so that two workers share it.
 *
 * <p>Known prefixes are the best cuts. Without them, the guess uses the characters that vary in the keys seen so far: a
 * key is cut at the first position with such a character, halfway to the end in their order. For {@code part-00012.txt}
 * these are the digits, and the cut is at {@code part-5}. A wrong guess costs a request that finds nothing or too much;
 * every key is listed by exactly one worker wherever the cuts are.
 */
final class KeyCuts {
    private static final int DEPTH = 12;

    private final String prefix;
    private final List<String> known = new ArrayList<>();
    private final BitSet alphabet = new BitSet();

    /** Cuts for keys that begin with {@code prefix}. */
    KeyCuts(String prefix) {
        this.prefix = prefix;
    }

    /** Learns from neighbouring keys which characters vary. */
    void learn(String one, String other) {
        int length = Math.min(one.length(), other.length());
        for (int i = prefix.length(); i < length; i++) {
            char x = one.charAt(i);
            char y = other.charAt(i);
            if (x != y) {
                learn(x);
                learn(y);
            }
        }
    }

    /** If one digit occurs, others may follow. */
    private void learn(char c) {
        if (!Character.isSurrogate(c)) {
            alphabet.set(c);
            if (c >= '0' && c <= '9') {
                alphabet.set('0', '9' + 1);
            }
        }
    }

    /** Learns where common prefixes end. */
    void learnPrefixes(List<String> prefixes) {
        known.addAll(prefixes);
    }

    /**
     * A position between two keys.
     *
     * @param after a key
     * @param until a later key; null for the end
     * @return null if there seems to be none
     */
    String between(String after, String until) {
        int first = insertion(after);
        int end = until == null ? known.size() : insertion(until);
        String middle = first < end ? known.get((first + end) >>> 1) : null;
        return middle == null || middle.equals(until) ? guessed(after, until) : middle;
    }

    private int insertion(String key) {
        int found = Collections.binarySearch(known, key, Keys::compare);
        return found < 0 ? -found - 1 : found + 1;
    }

    private String guessed(String after, String until) {
        boolean bounded = until != null;
        for (int i = prefix.length(); i < after.length(); i++) {
            char low = after.charAt(i);
            char high = bounded && i < until.length() ? until.charAt(i) : Character.MAX_VALUE;
            if (alphabet.get(low)) {
                // Strictly above, or keys with the present character may all come before the cut.
                List<Character> above = new ArrayList<>();
                for (int c = alphabet.nextSetBit(low + 1); c >= 0 && c < high; c = alphabet.nextSetBit(c + 1)) {
                    above.add((char) c);
                }
                if (!above.isEmpty()) {
                    String cut = after.substring(0, i) + above.get(above.size() / 2);
                    return bounded && Keys.compare(cut, until) >= 0 ? null : cut;
                }
            }
            bounded = bounded && low == high;
        }
        return null;
    }

    /**
     * The relative position of a key between two others, 0 to 1.
     *
     * @param until null for the end
     */
    double progress(String from, String at, String until) {
        double start = from == null ? 0 : position(from);
        double end = until == null ? 1 : position(until);
        return end <= start ? 1 : Math.min(1, Math.max(0, (position(at) - start) / (end - start)));
    }

    /** The relative position of a key among all possible ones, 0 to 1. */
    private double position(String key) {
        if (!known.isEmpty()) {
            return (double) insertion(key) / (known.size() + 1);
        }
        int size = Math.max(2, alphabet.cardinality());
        double position = 0;
        double weight = 1;
        int depth = 0;
        for (int i = prefix.length(); i < key.length() && depth < DEPTH; i++) {
            char c = key.charAt(i);
            if (alphabet.get(c)) {
                weight /= size;
                position += weight * alphabet.get(0, c).cardinality();
                depth++;
            }
        }
        return position;
    }
}
