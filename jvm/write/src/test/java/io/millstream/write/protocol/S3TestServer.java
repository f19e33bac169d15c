package io.millstream.write.protocol;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/** The S3 server that {@code testbed/s3} describes in environment variables. */
final class S3TestServer {
    private static final HttpClient HTTP = HttpClient.newHttpClient();

    private S3TestServer() {}

    static Path newTable() {
        return new Path("s3a://" + System.getenv("S3_BUCKET") + "/" + UUID.randomUUID() + "/table");
    }

    /** S3A's settings for the server. */
    static Configuration configuration() {
        Configuration conf = new Configuration(false);
        conf.addResource("core-default.xml");
        conf.set("fs.s3a.endpoint", System.getenv("S3_ENDPOINT"));
        conf.set("fs.s3a.endpoint.region", System.getenv("AWS_REGION"));
        conf.set("fs.s3a.access.key", System.getenv("AWS_ACCESS_KEY_ID"));
        conf.set("fs.s3a.secret.key", System.getenv("AWS_SECRET_ACCESS_KEY"));
        conf.set("fs.s3a.aws.credentials.provider", "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider");
        conf.setBoolean("fs.s3a.path.style.access", true);
        conf.setBoolean("fs.s3a.connection.ssl.enabled", false);
        return conf;
    }

    /** Sends a request for counters or faults to the proxy in front of the server; a body is posted. */
    static String ask(String what, String body) throws IOException {
        try {
            HttpRequest.Builder request =
                    HttpRequest.newBuilder(URI.create(System.getenv("S3_ENDPOINT") + "/__bed/" + what));
            request = body == null ? request.GET() : request.POST(HttpRequest.BodyPublishers.ofString(body));
            return HTTP.send(request.build(), BodyHandlers.ofString()).body();
        } catch (InterruptedException e) {
            throw new IOException(e);
        }
    }
}
