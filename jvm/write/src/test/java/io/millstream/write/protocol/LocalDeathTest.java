package io.millstream.write.protocol;

class LocalDeathTest extends DeathContract implements LocalStore {}
