package io.millstream.write.protocol;

class LocalJobDirectoriesTest extends JobDirectoriesContract implements LocalStore {}
