package io.millstream.write.protocol;

import org.junit.jupiter.api.Tag;

@Tag("s3")
class S3aJobDirectoriesTest extends JobDirectoriesContract implements S3Store {}
