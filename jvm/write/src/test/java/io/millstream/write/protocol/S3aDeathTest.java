package io.millstream.write.protocol;

import org.junit.jupiter.api.Tag;

@Tag("s3")
class S3aDeathTest extends DeathContract implements S3Store {}
