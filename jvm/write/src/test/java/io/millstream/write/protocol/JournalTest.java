package io.millstream.write.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class JournalTest {
    private static final String JOB = TestTable.newId();
    private static final String NEXT = TestTable.newId();
    private static final String MARK = Journal.done(1, Journal.Kind.OVER, JOB);

    private final MemoryStore store = new MemoryStore(new MemoryStore.Steps() {
        @Override
        public void before(String step) {}

        @Override
        public void after(String step, Object result) {}
    });

    private List<String> forgettable() throws IOException {
        return Journal.of(store).forgettable(null);
    }

    /**
     * Without the mark, each of these entries says that the job is yet to be finished, or that some of its files are
     * kept.
     */
    @Test
    void aDoneMarkStaysUntilTheJobHasNoOtherEntry() throws IOException {
        store.create(MARK, Journal.NOTHING);
        store.create(Journal.done(2, Journal.Kind.OVER, NEXT), Journal.NOTHING);
        for (String entry : List.of(
                Journal.begin(JOB),
                Journal.commit(JOB),
                Journal.published(JOB),
                Journal.replaced(JOB),
                Journal.superseded(JOB))) {
            store.create(entry, Journal.NOTHING);
            store.pass(TimeUnit.DAYS.toMillis(400));
            store.create(Journal.begin(TestTable.newId()), Journal.NOTHING);

            assertEquals(List.of(), forgettable(), entry);

            store.remove(List.of(entry));
            assertEquals(List.of(MARK), forgettable(), entry);
        }
    }

    @Test
    void theMarksThatAreTheTablesVersionStay() throws IOException {
        store.create(Journal.done(1, Journal.Kind.OVER, JOB), Journal.NOTHING);
        store.create(Journal.done(2, Journal.Kind.INTO, NEXT), Journal.NOTHING);

        assertEquals(List.of(), forgettable());
        assertEquals(
                List.of(Journal.done(2, Journal.Kind.INTO, NEXT)),
                Journal.of(store).forgettable(Journal.Kind.INTO));
        assertEquals(2, Journal.of(store).forgettable(Journal.Kind.OVER).size());
    }
}
