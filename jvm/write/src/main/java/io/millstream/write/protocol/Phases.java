package io.millstream.write.protocol;

import io.millstream.write.protocol.CommitPlan.Phase;
import java.io.IOException;
import java.util.EnumMap;
import java.util.Map;

/** Measures the phases of a commit and reports their progress. */
public final class Phases {
    /** A phase, or a part of one. */
    public interface Work<R> {
        R run() throws IOException;
    }

    private final CommitPlan.Listener listener;
    private final Map<Phase, Long> nanos = new EnumMap<>(Phase.class);

    public Phases(CommitPlan.Listener listener) {
        this.listener = listener;
    }

    public <R> R time(Phase phase, Work<R> work) throws IOException {
        listener.progress(phase, 0, 0);
        long start = System.nanoTime();
        try {
            return work.run();
        } finally {
            nanos.merge(phase, System.nanoTime() - start, Long::sum);
        }
    }

    public void progress(Phase phase, int done, int total) {
        listener.progress(phase, done, total);
    }

    public Map<Phase, Long> nanos() {
        return nanos;
    }
}
