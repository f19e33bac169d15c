package io.millstream.write.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.millstream.write.metastore.MetastoreChange;
import io.millstream.write.store.OldFile;
import io.millstream.write.store.StagedFile;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

class CommitRecordTest {
    private static final int MANY = 100_000;
    private static final long MOST_BYTES_A_FILE = 500;

    private static CommitRecord record(
            List<StagedFile> added, List<OldFile> deleted, MetastoreChange change, Map<String, String> exchanges) {
        return new CommitRecord(
                7,
                8,
                "s3a://b/t",
                "owner",
                "",
                Journal.Kind.OVER,
                List.of(),
                added,
                deleted,
                List.of(),
                List.of(),
                change,
                exchanges);
    }

    private static CommitRecord small() {
        MetastoreChange change = new MetastoreChange(
                        "db",
                        "tß",
                        List.of(
                                new MetastoreChange.Partition("k=1", null, Map.of("numFiles", "1")),
                                new MetastoreChange.Partition("k=日本", "s3a://b/elsewhere", Map.of())),
                        List.of("k=9"),
                        Map.of("a", "b"),
                        Set.of("numRows"))
                .of("hive 7");
        return new CommitRecord(
                7,
                8,
                "s3a://b/t",
                "owner",
                "k=1",
                Journal.Kind.OVER,
                List.of("k=2"),
                List.of(
                        StagedFile.hidden("k=1", "a", 1L << 40, ".a"),
                        StagedFile.upload("", "b", 2, "upload", List.of("e1", "e2"))),
                List.of(new OldFile("k=2", "old", 3, 4)),
                List.of("k=2", ""),
                List.of("k=2/hollow"),
                change,
                Map.of());
    }

    @Test
    void recordsAreReadAsWritten() throws IOException {
        CommitRecord read = CommitRecord.of(small().toBytes());

        assertEquals(small().added().toString(), read.added().toString());
        assertEquals(List.of("e1", "e2"), read.added().get(1).parts());
        assertEquals("upload", read.added().get(1).stagedAs());
        assertEquals(1L << 40, read.added().get(0).bytes());
        assertEquals(8, read.begunMillis());
        assertEquals(small().deleted(), read.deleted());
        assertEquals(small().overwritten(), read.overwritten());
        assertEquals(small().hollow(), read.hollow());
        assertEquals("k=日本", read.change().partitions().get(1).name());
        assertEquals("s3a://b/elsewhere", read.change().partitions().get(1).location());
        assertEquals(Map.of("numFiles", "1"), read.change().partitions().get(0).parameters());
        assertEquals(List.of("k=9"), read.change().droppedPartitions());
        assertEquals(Set.of("numRows"), read.change().removedParameters());
        assertEquals(false, read.isSwap() || read.isExchange());
        assertEquals("hive 7", read.change().tableId());
    }

    @Test
    void aSwapIsRead() throws IOException {
        MetastoreChange change = small().change().swap("file:/t/none", null);

        CommitRecord read = CommitRecord.of(
                record(List.of(), small().deleted(), change, Map.of()).toBytes());

        assertEquals(true, read.isSwap() && read.hasReplaced());
        assertEquals("file:/t/none", read.change().emptyDirectory());
        assertEquals(null, read.change().tableLocation());
    }

    @Test
    void anExchangeIsRead() throws IOException {
        Map<String, String> exchanges = Map.of(".swap-j/k=1", "k=1", ".swap-j/k=ß", ".swap-i/k=ß");

        CommitRecord read = CommitRecord.of(
                record(small().added(), List.of(), null, exchanges).toBytes());

        assertEquals(exchanges, read.exchanges());
        assertEquals(true, read.isExchange());
    }

    @Test
    void everyDamagedByteIsNoticed() {
        byte[] whole = small().toBytes();
        for (int i = 0; i < whole.length; i++) {
            byte[] damaged = whole.clone();
            damaged[i] ^= 4;
            assertThrows(IOException.class, () -> CommitRecord.of(damaged));
            byte[] torn = java.util.Arrays.copyOf(whole, i);
            assertThrows(IOException.class, () -> CommitRecord.of(torn));
        }
        assertTrue(CommitRecord.isAborted(CommitRecord.ABORTED));
    }

    @Test
    void recordsThatNameFilesOutsideTheTableAreRefused() throws IOException {
        List<OldFile> elsewhere = List.of(new OldFile("/etc", "passwd", 3, 4));
        List<CommitRecord> forged = new ArrayList<>(List.of(
                record(List.of(), elsewhere, null, Map.of()),
                record(List.of(), List.of(new OldFile("k=1/../..", "passwd", 3, 4)), null, Map.of()),
                record(List.of(), List.of(new OldFile("k=1", "../passwd", 3, 4)), null, Map.of()),
                record(List.of(StagedFile.hidden("/etc", "passwd", 1, ".a")), List.of(), null, Map.of()),
                record(List.of(StagedFile.hidden("k=1", "passwd", 1, "../a")), List.of(), null, Map.of()),
                record(List.of(), List.of(), null, Map.of(".swap-j/k=1", "/etc"))));
        for (CommitRecord record : forged) {
            IOException e = assertThrows(IOException.class, () -> CommitRecord.of(record.toBytes()));
            assertTrue(e.getMessage().contains("the commit record is damaged: not "), e::getMessage);
        }
        // Only a swap may replace partitions outside the table.
        CommitRecord swap = record(List.of(), elsewhere, small().change().swap("file:/t/none", null), Map.of());
        assertEquals(elsewhere, CommitRecord.of(swap.toBytes()).deleted());
    }

    @Test
    void aHundredThousandFilesAreAFewMegabytes() throws IOException {
        List<StagedFile> added = new ArrayList<>();
        List<OldFile> deleted = new ArrayList<>();
        for (int i = 0; i < MANY; i++) {
            String name = "part-" + i + "-0f9f6d4e-4c5c-4a0f-8f0a-2b8f1f0c1d2e.c000.snappy.parquet";
            added.add(StagedFile.upload(
                    "year=2026/month=" + i % 300, name, i, "u".repeat(130), List.of("\"" + "e".repeat(32) + "\"")));
            deleted.add(new OldFile("year=2026/month=" + i % 300, name, i, i));
        }
        byte[] bytes = record(added, deleted, null, Map.of()).toBytes();

        assertTrue(bytes.length < MANY * MOST_BYTES_A_FILE, () -> bytes.length + " bytes");
        assertEquals(MANY, CommitRecord.of(bytes).added().size());
    }
}
