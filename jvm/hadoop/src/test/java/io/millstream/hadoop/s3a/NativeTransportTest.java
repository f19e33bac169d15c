package io.millstream.hadoop.s3a;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.millstream.hadoop.listing.Versions;
import java.nio.BufferUnderflowException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.security.alias.CredentialProvider;
import org.apache.hadoop.security.alias.CredentialProviderFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class NativeTransportTest {
    private static Configuration with(String... settings) {
        Configuration conf = new Configuration();
        for (String setting : settings) {
            String[] pair = setting.split("=", 2);
            conf.set("fs.s3a." + pair[0], pair[1]);
        }
        return conf;
    }

    @Test
    void whatTheClientAnswersForIsNoReason() {
        assertNull(NativeTransport.unknownKey(with()));
        assertNull(NativeTransport.unknownKey(with(
                "access.key=a",
                "endpoint=http://h",
                "endpoint.region=r",
                "path.style.access=true",
                "bucket.other.proxy.host=p",
                "committer.name=magic",
                "encryption.algorithm=sse-kms",
                "encryption.key=k",
                "assumed.role.arn=arn",
                "input.stream.type=classic",
                "impl=x",
                "retry.limit=1",
                "proxy.host=")));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "proxy.host=p",
                "input.stream.type=custom",
                "custom.signers=a:b",
                "signing-algorithm=x",
                "requester.pays.enabled=true",
                "accesspoint.arn=arn",
                "ssl.channel.mode=openssl",
                "delegation.token.binding=d",
                "s3.client.factory.impl=f",
                "access.grants.enabled=true",
                "change.detection.source=versionid",
                "client.s3.custom.headers=a=b",
                "audit.execution.interceptors=i",
                "endpoint.fips=true",
                "checksum.validation=true",
                "io.rate.limit=5",
                "something.new=1"
            })
    void anythingElseIsAReason(String setting) {
        String name = setting.substring(0, setting.indexOf('='));
        assertEquals("fs.s3a." + name + " is set", NativeTransport.unknownKey(with("access.key=a", setting)));
    }

    @Test
    void newObjectsAreLeftToTheClientIfSettingsDescribeThem() {
        assertTrue(NativeTransport.describesNoObjects(with(
                "access.key=a",
                "endpoint=http://h",
                "multipart.size=8M",
                "fast.upload.buffer=disk",
                "bucket.other.acl.default=Private",
                "acl.default=",
                "create.performance=true")));
        for (String setting : List.of(
                "acl.default=BucketOwnerFullControl",
                "create.storage.class=intelligent_tiering",
                "create.header.x=y",
                "encryption.algorithm=AES256",
                "encryption.key=k",
                "object.content.encoding=gzip")) {
            assertFalse(NativeTransport.describesNoObjects(with(setting)), setting);
        }
    }

    @Test
    void theServerMayEncryptButNotTheClient() throws Exception {
        assertNull(NativeTransport.whyNot("b", with("encryption.algorithm=AES256")));
        for (String method : List.of("SSE-KMS", "DSSE-KMS")) {
            assertNull(
                    NativeTransport.whyNot("b", with("encryption.algorithm=" + method, "encryption.key=a2V5")), method);
        }
        for (String method : List.of("SSE-C", "CSE-KMS", "CSE-CUSTOM")) {
            assertEquals(
                    "objects are encrypted by " + method,
                    NativeTransport.whyNot("b", with("encryption.algorithm=" + method, "encryption.key=a2V5")));
        }
    }

    @Test
    void anAlgorithmInACredentialStoreIsSeen(@TempDir Path scratch) throws Exception {
        Configuration conf = with();
        conf.set("fs.s3a.encryption.key", "a2V5");
        conf.set("hadoop.security.credential.provider.path", "localjceks://file" + scratch.resolve("store.jceks"));
        CredentialProvider store = CredentialProviderFactory.getProviders(conf).get(0);
        store.createCredentialEntry("fs.s3a.encryption.algorithm", "CSE-KMS".toCharArray());
        store.flush();
        assertEquals("objects are encrypted by CSE-KMS", NativeTransport.whyNot("b", conf));
    }

    /** Rust's test {@code pages_are_the_shared_vector} encodes these. */
    @Test
    void pagesAreTheSharedVector() throws Exception {
        byte[] vector = HexFormat.of()
                .parseHex(
                        Files.readString(Path.of("../../testdata/s3-page.hex")).strip());
        NativeBucket.Answer answer = NativeBucket.decode(vector);
        assertEquals(List.of(3, 1), List.of(answer.requests(), answer.throttled()));
        assertEquals(List.of("c/"), answer.page().prefixes());
        assertEquals("t", answer.page().next());
        Keys.Item first = answer.page().items().get(0);
        assertEquals("a/é", first.key());
        assertEquals(1L << 40, first.size());
        assertEquals(-4, first.modificationTime());
        assertEquals("d41d8cd98f00b204e9800998ecf8427e-3", Versions.unpack(first.version()));
        Keys.Item second = answer.page().items().get(1);
        assertEquals("b", second.key());
        assertNull(Versions.unpack(second.version()));
        assertThrows(
                BufferUnderflowException.class, () -> NativeBucket.decode(Arrays.copyOf(vector, vector.length - 1)));
    }
}
