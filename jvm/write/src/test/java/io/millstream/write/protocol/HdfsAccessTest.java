package io.millstream.write.protocol;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.millstream.write.store.Store;
import io.millstream.write.store.WriteOptions;
import java.io.IOException;
import java.security.PrivilegedExceptionAction;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.AclEntry;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.security.UserGroupInformation;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Permissions and access control lists of the directories that a job creates on HDFS. slow_direct_write_access.py
 * compares them with stock Spark's.
 */
@Tag("slow")
class HdfsAccessTest {
    private TestTable fixture;

    @BeforeEach
    void makeTable() throws IOException {
        fixture = new TestTable(HdfsTestCluster.newTable(), HdfsTestCluster.configuration());
        fixture.fs.mkdirs(fixture.table);
    }

    private void setList(String entries) throws IOException {
        fixture.fs.setAcl(fixture.table, AclEntry.parseAclSpec(entries, true));
    }

    /** Permissions and entries, as getfacl shows them. */
    private String access(String directory) throws IOException {
        Path path = new Path(fixture.table, directory);
        Set<String> entries = new TreeSet<>();
        fixture.fs.getAclStatus(path).getEntries().forEach(entry -> entries.add(entry.toString()));
        return fixture.fs.getFileStatus(path).getPermission() + " " + String.join(",", entries);
    }

    /** A job that writes to one new partition and creates another without rows. */
    private void run() throws IOException {
        String id = TestTable.newId();
        try (DirectJob job = DirectJob.begin(fixture.table, id, "", fixture.conf, new TestTable.Partitions())) {
            job.commit(new CommitPlan(
                            fixture.attempt(job.placement(), id, "0", "y=1/k=1", "a")
                                    .commit(path -> true),
                            Overwrite.nothing())
                    .metastore(draft -> JobDirectoriesContract.withoutRows("y=2/k=2")));
        }
    }

    private void assertAccess(String expected, String... directories) throws IOException {
        for (String directory : directories) {
            assertEquals(expected, access(directory), directory);
        }
    }

    @Test
    void newPartitionsOfHiveGetThePermissionsOfTheDirectoryAbove() throws IOException {
        WriteOptions.inheritAccess(fixture.conf);
        fixture.fs.setPermission(fixture.table, new FsPermission("770"));

        run();

        assertAccess("rwxrwx--- ", "y=1", "y=1/k=1", "y=2", "y=2/k=2", Store.JOURNAL);
    }

    /** The mask of the table's own list is narrower, and does not limit the default list. */
    @Test
    void newPartitionsInheritTheDefaultListOfTheDirectoryAbove() throws IOException {
        String inherited =
                "default:user::rwx,default:user:reader:rwx,default:group::r-x,default:mask::rwx,default:other::---";
        setList("user::rwx,group::r-x,other::---," + inherited);

        run();

        assertAccess(
                "rwxrwx--- default:group::r-x,default:mask::rwx,default:other::---,default:user::rwx,default:user:reader:rwx,group::r-x,user:reader:rwx",
                "y=1",
                "y=1/k=1",
                "y=2",
                "y=2/k=2");
    }

    /** The group, which may only read, must not get what the mask allows the user {@code reader}. */
    @Test
    void newPartitionsDoNotGetTheMaskOfAListAsPermissionsOfTheGroup() throws IOException {
        setList("user::rwx,user:reader:rwx,group::r-x,mask::rwx,other::---");

        run();

        assertAccess("rwxr-xr-x ", "y=1", "y=1/k=1", "y=2", "y=2/k=2");
    }

    @Test
    void everybodyWhoMayWriteToTheTableByItsListMayWriteToItsJournal() throws IOException {
        setList("user::rwx,user:reader:rwx,group::r-x,mask::rwx,other::---");

        run();

        assertAccess("rwxrwx--- group::r-x,user:reader:rwx", Store.JOURNAL);
    }

    /** An overwrite by a user who may write to the table. */
    private void overwriteAs(String user) throws Exception {
        UserGroupInformation.createUserForTesting(user, new String[] {"writers"})
                .doAs((PrivilegedExceptionAction<Object>) () -> {
                    new TestTable(fixture.table, fixture.conf).run(Overwrite.below(List.of("k=1")), "k=1", "new");
                    return null;
                });
    }

    private void assertRefuses(String user) throws Exception {
        String message =
                assertThrows(IOException.class, () -> overwriteAs(user)).getMessage();
        assertTrue(
                message.contains(
                        "may not remove " + new Path(fixture.table, "k=1/old.txt") + ", and nothing is written"),
                message);
        assertEquals(Set.of("k=1:old"), fixture.rows());
    }

    @Test
    void replacedFilesOfOthersInDirectoriesWithTheStickyBitAreNoticedBeforeTheCommit() throws Exception {
        fixture.put("k=1/old.txt", "old");
        fixture.fs.setPermission(fixture.table, new FsPermission("777"));
        Path partition = new Path(fixture.table, "k=1");
        fixture.fs.setPermission(partition, new FsPermission("1777"));

        assertRefuses("another");

        fixture.fs.setOwner(new Path(partition, "old.txt"), "another", null);
        overwriteAs("another");
        assertEquals(Set.of("k=1:new"), fixture.rows());
        run(); // the superuser is exempt
        fixture.run(Overwrite.below(List.of("k=1")), "k=1", "newest");
        assertEquals(Set.of("k=1:newest", "y=1/k=1:a"), fixture.rows());
    }

    @Test
    void replacedFilesInDirectoriesThatAreNotWritableAreNoticedBeforeTheCommit() throws Exception {
        fixture.put("k=1/old.txt", "old");
        fixture.put("k=1/x=1/older.txt", "older");
        fixture.fs.setPermission(fixture.table, new FsPermission("777"));
        fixture.fs.setPermission(new Path(fixture.table, "k=1"), new FsPermission("777"));

        String message =
                assertThrows(IOException.class, () -> overwriteAs("another")).getMessage();

        assertTrue(
                message.contains(
                        "may not remove " + new Path(fixture.table, "k=1/x=1/older.txt") + ", and nothing is written"),
                message);
        assertEquals(Set.of("k=1:old", "k=1/x=1:older"), fixture.rows());
    }
}
