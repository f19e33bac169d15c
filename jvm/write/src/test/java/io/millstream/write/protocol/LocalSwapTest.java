package io.millstream.write.protocol;

class LocalSwapTest extends SwapContract implements LocalStore {}
