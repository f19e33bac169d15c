package io.millstream.write.protocol;

import org.junit.jupiter.api.Tag;

@Tag("slow")
class HdfsDeathTest extends DeathContract implements HdfsStore {}
