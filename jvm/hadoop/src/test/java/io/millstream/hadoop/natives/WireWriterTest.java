package io.millstream.hadoop.natives;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.BufferUnderflowException;
import java.util.HexFormat;
import org.junit.jupiter.api.Test;

class WireWriterTest {
    @Test
    void numbersAreLittleEndianAndStringsPrefixed() {
        byte[] bytes = new WireWriter()
                .u8(0x1fe)
                .u32(0x04030201)
                .u64(-2)
                .prefixed(new byte[] {'a', 'b'})
                .bytes(new byte[] {'c'})
                .toByteArray();
        assertEquals(
                "fe" + "01020304" + "feffffffffffffff" + "020000006162" + "63",
                HexFormat.of().formatHex(bytes));
    }

    @Test
    void growsAndReadsBack() {
        byte[] large = new byte[100_000];
        large[99_999] = 7;
        WireWriter out = new WireWriter();
        for (int i = 0; i < 1000; i++) {
            out.u64(i);
        }
        WireReader in = new WireReader(out.prefixed(large).toByteArray());
        for (int i = 0; i < 1000; i++) {
            assertEquals(i, in.u64());
        }
        assertArrayEquals(large, in.prefixed());
        assertFalse(in.hasRemaining());
    }

    @Test
    void lengthsBeyondTheEndAreRefused() {
        for (int length : new int[] {2, Integer.MAX_VALUE, -1}) {
            WireReader in = new WireReader(new WireWriter().u32(length).u8('a').toByteArray());
            assertThrows(BufferUnderflowException.class, in::prefixed);
        }
    }
}
