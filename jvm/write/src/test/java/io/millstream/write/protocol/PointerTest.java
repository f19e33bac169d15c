package io.millstream.write.protocol;

import static org.junit.jupiter.params.provider.Arguments.arguments;

import io.millstream.write.store.Store;
import java.io.IOException;
import java.util.List;
import java.util.stream.Stream;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.mockito.Mockito;

class PointerTest {
    private static final String JOB = TestTable.newId();

    static Stream<Arguments> tables() {
        List<Store.Entry> journal = List.of(new Store.Entry(Journal.begin(TestTable.newId()), 0));
        return Stream.of(
                arguments("s3a://bucket/", List.of(), 0),
                arguments("s3a://bucket/", journal, 1),
                arguments("s3a://bucket/t", List.of(), 1));
    }

    @ParameterizedTest
    @MethodSource("tables")
    void aBucketGetsAPointerOnlyIfItIsATable(Path table, List<Store.Entry> journal, int entries) throws IOException {
        Store store = Mockito.mock(Store.class);
        Mockito.when(store.journal()).thenReturn(journal);
        Pointer pointer = Pointer.to(JOB, new Path(table, "k=1"), new TableAccess(table, store, null, null, null));

        pointer.set();
        pointer.remove();

        Mockito.verify(store, Mockito.times(entries)).begin(Journal.below(JOB), "k=1".getBytes());
        Mockito.verify(store, Mockito.times(entries)).remove(List.of(Journal.below(JOB)));
    }
}
