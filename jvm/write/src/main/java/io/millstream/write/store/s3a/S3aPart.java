package io.millstream.write.store.s3a;

import java.io.IOException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.hadoop.fs.s3a.S3AFileSystem;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import software.amazon.awssdk.services.s3.model.CompletedPart;

/**
 * A part of an upload, with the data needed to complete the upload: its entity tag, and the checksum if it was uploaded
 * with one.
 */
public record S3aPart(String etag, String algorithm, String checksum) {
    private static final Logger LOG = LoggerFactory.getLogger(S3aPart.class);
    private static final String SEPARATOR = "\n";

    public static S3aPart of(String text) {
        String[] fields = text.split(SEPARATOR, -1);
        return fields.length == 1 ? new S3aPart(fields[0], null, null) : new S3aPart(fields[0], fields[1], fields[2]);
    }

    /**
     * Getters of the class that describes a part since Hadoop 3.4.2, accessed by reflection because earlier versions
     * lack it.
     */
    private record Getters(Method etag, Method algorithm, Method checksum) {
        private static Getters of(Class<?> type) throws ReflectiveOperationException {
            return new Getters(
                    getter(type, "getEtag"), getter(type, "getChecksumAlgorithm"), getter(type, "getChecksum"));
        }

        private static Method getter(Class<?> type, String name) throws ReflectiveOperationException {
            Method getter = type.getMethod(name);
            if (getter.getReturnType() != String.class) {
                throw new NoSuchMethodException(getter + " does not return a String");
            }
            return getter;
        }
    }

    private static final Optional<String> WHY_NOT = lookForGetters();

    private static Optional<String> lookForGetters() {
        try {
            Getters.of(Class.forName(
                    "org.apache.hadoop.fs.s3a.commit.files.UploadEtag", false, S3AFileSystem.class.getClassLoader()));
        } catch (ClassNotFoundException e) {
            LOG.debug("This version of S3A describes parts of uploads by their tags", e);
        } catch (ReflectiveOperationException e) {
            return Optional.of(
                    "this version of S3A tracks the parts of uploads in a way that direct writes do not support: " + e);
        }
        return Optional.empty();
    }

    /** Why this version of S3A is unsupported; empty if it is supported. */
    static Optional<String> whyNot() {
        return WHY_NOT;
    }

    /**
     * The parts as S3A tracks them: by their tags before Hadoop 3.4.2, and since then by objects that also have the
     * checksum.
     *
     * @throws IOException if they have another type
     */
    public static List<String> tracked(List<?> parts) throws IOException {
        try {
            List<String> texts = new ArrayList<>();
            for (Object part : parts) {
                texts.add(
                        part instanceof String etag ? etag : ofUploadEtag(part).text());
            }
            return texts;
        } catch (ReflectiveOperationException e) {
            throw new IOException("the ETags of an upload's parts cannot be read", e);
        }
    }

    private static S3aPart ofUploadEtag(Object part) throws ReflectiveOperationException {
        Getters getters = Getters.of(part.getClass());
        return new S3aPart((String) getters.etag.invoke(part), (String) getters.algorithm.invoke(part), (String)
                getters.checksum.invoke(part));
    }

    private String text() {
        return checksum == null ? etag : etag + SEPARATOR + algorithm + SEPARATOR + checksum;
    }

    public CompletedPart completed(int number) {
        CompletedPart.Builder part = CompletedPart.builder().partNumber(number).eTag(etag);
        if (checksum != null) {
            switch (algorithm) {
                case "CRC32" -> part.checksumCRC32(checksum);
                case "CRC32C" -> part.checksumCRC32C(checksum);
                case "SHA1" -> part.checksumSHA1(checksum);
                case "SHA256" -> part.checksumSHA256(checksum);
                default -> throw new IllegalArgumentException("unknown checksum algorithm of a part: " + algorithm);
            }
        }
        return part.build();
    }
}
