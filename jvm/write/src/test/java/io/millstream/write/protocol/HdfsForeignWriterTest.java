package io.millstream.write.protocol;

import org.junit.jupiter.api.Tag;

@Tag("slow")
class HdfsForeignWriterTest extends ForeignWriterContract implements HdfsStore {}
