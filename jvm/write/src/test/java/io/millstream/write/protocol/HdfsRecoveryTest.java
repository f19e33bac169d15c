package io.millstream.write.protocol;

import org.junit.jupiter.api.Tag;

@Tag("slow")
class HdfsRecoveryTest extends RecoveryContract implements HdfsStore {}
