package io.millstream.write.protocol;

import java.net.InetAddress;
import java.net.UnknownHostException;

/** The process that runs this code, as others see it. */
public final class ThisProcess {
    private ThisProcess() {}

    /** The owner of its jobs, for error messages and the journal: USER@HOST process PID. */
    public static String owner() {
        String host;
        try {
            host = InetAddress.getLocalHost().getHostName();
        } catch (UnknownHostException e) {
            host = "unknown-host";
        }
        return System.getProperty("user.name") + "@" + host + " process "
                + ProcessHandle.current().pid();
    }
}
