package io.millstream.write.protocol;

import org.junit.jupiter.api.Tag;

@Tag("s3")
class S3aSwapTest extends SwapContract implements S3Store {
    @Override
    int stride() {
        return 4;
    }
}
