package io.millstream.hadoop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.platform.engine.discovery.ClassNameFilter.includeClassNamePatterns;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectPackage;

import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.junit.jupiter.api.Test;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/** Hadoop's own suites for the local file system, run on stock Hadoop and on Millstream. */
class HadoopSuitesTest {
    private static final String SUITES = "org.apache.hadoop.fs.";

    /** The results of one run of the suites. */
    private static final class Outcome implements TestExecutionListener {
        final Set<String> passed = new TreeSet<>();
        final Map<String, String> failed = new TreeMap<>();

        @Override
        public void executionFinished(TestIdentifier test, TestExecutionResult result) {
            boolean success = result.getStatus() == TestExecutionResult.Status.SUCCESSFUL;
            boolean aborted = result.getStatus() == TestExecutionResult.Status.ABORTED;
            if (success && test.isTest()) {
                passed.add(test.getUniqueId());
            } else if (!success && !aborted) {
                failed.put(
                        test.getUniqueId(),
                        result.getThrowable().map(Throwable::toString).orElse(""));
            }
        }
    }

    private static LauncherDiscoveryRequest request() throws ClassNotFoundException {
        return LauncherDiscoveryRequestBuilder.request()
                .selectors(
                        selectPackage(SUITES + "contract.localfs"),
                        selectClass(Class.forName(SUITES + "TestListFiles")),
                        selectClass(Class.forName(SUITES + "TestChecksumFileSystem")),
                        selectClass(Class.forName(SUITES + "TestFSMainOperationsLocalFileSystem")),
                        selectClass(Class.forName(SUITES + "TestFsShellList")),
                        selectClass(Class.forName(SUITES + "TestFsShellCopy")),
                        selectClass(Class.forName(SUITES + "TestGetFileBlockLocations")),
                        selectClass(Class.forName(SUITES + "TestLocalFSCopyFromLocal")))
                .filters(includeClassNamePatterns(".*\\.Test[^.]*"))
                .build();
    }

    private static Outcome runOn(Class<? extends FileSystem> fileSystem) throws Exception {
        System.setProperty("millstream.test.file.impl", fileSystem.getName());
        FileSystem.closeAll();
        assertEquals(fileSystem, FileSystem.getLocal(new Configuration()).getClass());
        Outcome outcome = new Outcome();
        LauncherFactory.create().execute(request(), outcome);
        return outcome;
    }

    @Test
    void passAndFailAsOnStockHadoop() throws Exception {
        Outcome stock = runOn(LocalFileSystem.class);
        Outcome ours = runOn(MillstreamLocalFileSystem.class);
        System.out.printf(
                "Hadoop's suites: stock %d passed, %d failed; Millstream %d passed, %d failed%n",
                stock.passed.size(), stock.failed.size(), ours.passed.size(), ours.failed.size());
        assertTrue(stock.passed.size() > 150, "the suites did not run: " + stock.passed);
        Map<String, String> newFailures = new TreeMap<>(ours.failed);
        newFailures.keySet().removeAll(stock.failed.keySet());
        assertEquals(Map.of(), newFailures, "fail on Millstream only");
        assertEquals(stock.passed, ours.passed);
    }
}
