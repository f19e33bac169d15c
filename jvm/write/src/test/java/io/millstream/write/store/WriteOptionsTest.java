package io.millstream.write.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.millstream.write.store.WriteOptions.Visibility;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.Test;

/** Keys that users set. */
class WriteOptionsTest {
    private static Configuration with(String key, String value) {
        Configuration conf = new Configuration(false);
        conf.set(key, value);
        return conf;
    }

    @Test
    void whatIsWrongIsSaidOfItsKey() {
        Map<String, String> wrong = Map.of(
                WriteOptions.LEASE_MILLIS, "2m",
                WriteOptions.THREADS, "0",
                WriteOptions.LOCK_WAIT_MILLIS, "-1",
                WriteOptions.SYNC, "maybe",
                WriteOptions.VISIBILITY, "at once");
        wrong.forEach((key, value) -> {
            String said = assertThrows(IllegalArgumentException.class, () -> new WriteOptions(with(key, value)))
                    .getMessage();
            assertEquals(key + " must be ", said.substring(0, key.length() + " must be ".length()));
            assertEquals(", but was " + value, said.substring(said.lastIndexOf(", but")));
        });
    }

    @Test
    void wordsAreTakenInAnyCase() {
        assertEquals(Visibility.EXCHANGE, WriteOptions.visibility(with(WriteOptions.VISIBILITY, " Exchange")));
        assertFalse(new WriteOptions(with(WriteOptions.SYNC, "FALSE ")).sync);
    }
}
