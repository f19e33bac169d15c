package io.millstream.write.protocol;

class LocalRecoveryTest extends RecoveryContract implements LocalStore {}
