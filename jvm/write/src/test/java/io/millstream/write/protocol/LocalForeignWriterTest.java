package io.millstream.write.protocol;

class LocalForeignWriterTest extends ForeignWriterContract implements LocalStore {}
