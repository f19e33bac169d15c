package io.millstream.write.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class ParallelTest {
    private static final List<Integer> ITEMS = IntStream.range(0, 20).boxed().toList();

    /** Scala throws checked exceptions without declaring them. */
    private static final class Undeclared extends Exception {
        private static final long serialVersionUID = 1;
    }

    static Stream<Throwable> failures() {
        return Stream.of(
                new IOException("lost"),
                new IllegalStateException("wrong"),
                new StackOverflowError("deep"),
                new Undeclared());
    }

    @SuppressWarnings("unchecked")
    private static <E extends Throwable> void throwAs(Throwable failure) throws E {
        throw (E) failure;
    }

    @Test
    void answersAreInTheOrderOfTheItems() throws IOException {
        assertEquals(ITEMS.stream().map(i -> i * i).toList(), Parallel.map(4, ITEMS, i -> i * i));
    }

    /**
     * Issue 36: Spark's exceptions were swallowed, so a statement read a table whose committed write could not be
     * finished.
     */
    @ParameterizedTest
    @MethodSource("failures")
    void aFailureOfAnyClassIsThrown(Throwable failure) {
        for (int threads : new int[] {1, 4}) {
            assertSame(
                    failure,
                    assertThrows(
                            failure.getClass(),
                            () -> Parallel.map(threads, ITEMS, i -> {
                                if (i == 7) {
                                    ParallelTest.<RuntimeException>throwAs(failure);
                                }
                                return i;
                            })));
        }
    }
}
