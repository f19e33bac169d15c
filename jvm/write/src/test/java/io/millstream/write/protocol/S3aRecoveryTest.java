package io.millstream.write.protocol;

import org.junit.jupiter.api.Tag;

@Tag("s3")
class S3aRecoveryTest extends RecoveryContract implements S3Store {}
