package io.millstream;

import java.util.Optional;

/** The seed of random tests: {@code MILLSTREAM_SEED} repeats a run. */
public final class Seed {
    private Seed() {}

    /** The given seed, or a new one; it is printed. */
    public static long printed() {
        long seed = Optional.ofNullable(System.getenv("MILLSTREAM_SEED"))
                .map(Long::parseLong)
                .orElseGet(System::nanoTime);
        System.out.println("MILLSTREAM_SEED=" + seed);
        return seed;
    }
}
