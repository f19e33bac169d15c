package io.millstream.write.protocol;

import io.millstream.write.store.WriteOptions;
import java.io.IOException;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;

/** A table on any store, and what the contracts of jobs need to know about the store. */
@Timeout(value = 60, unit = TimeUnit.SECONDS)
abstract class JobContract extends StoreContract {
    protected TestTable fixture;

    @BeforeEach
    void makeTable() throws IOException {
        fixture = new TestTable(newTable(), newConfiguration());
    }

    TestTable with(String key, int value) throws IOException {
        Configuration conf = newConfiguration();
        conf.setInt(key, value);
        return new TestTable(fixture.table, conf);
    }

    TestTable shortLease() throws IOException {
        return with(WriteOptions.LEASE_MILLIS, shortLeaseMillis());
    }

    static Set<String> rows(String... rows) {
        return new TreeSet<>(List.of(rows));
    }

    static Set<String> runOn(TestTable fixture, Overwrite overwrite, String... files) throws IOException {
        fixture.run(overwrite, files);
        return fixture.rows();
    }
}
