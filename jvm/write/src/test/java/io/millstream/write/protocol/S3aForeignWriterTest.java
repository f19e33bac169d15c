package io.millstream.write.protocol;

import org.junit.jupiter.api.Tag;

@Tag("s3")
class S3aForeignWriterTest extends ForeignWriterContract implements S3Store {}
