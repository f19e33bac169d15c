package io.millstream.hadoop.listing;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.BlockLocation;

/**
 * The hosts that store the blocks of a directory's files. Most files have one block, and a directory's blocks share few
 * sets of hosts, so each set is stored once and a block takes twelve bytes.
 */
final class BlockHosts {
    private static final int FIRST_CAPACITY = 16;

    private final Map<List<String>, Integer> known = new HashMap<>();
    private final List<String[]> names = new ArrayList<>();
    private final List<String[]> hosts = new ArrayList<>();
    /** The number of blocks up to the end of each file. */
    private int[] fileEnds = new int[FIRST_CAPACITY];

    private int files;
    private long[] offsets = new long[FIRST_CAPACITY];
    /** For each block, the index of its set of hosts. */
    private int[] hostSets = new int[FIRST_CAPACITY];

    private int blocks;

    /** Adds the blocks of the next file. */
    void add(BlockLocation[] located) throws IOException {
        for (BlockLocation block : located) {
            if (blocks == offsets.length) {
                offsets = Arrays.copyOf(offsets, 2 * blocks);
                hostSets = Arrays.copyOf(hostSets, 2 * blocks);
            }
            offsets[blocks] = block.getOffset();
            hostSets[blocks] = hostSet(block);
            blocks++;
        }
        if (files == fileEnds.length) {
            fileEnds = Arrays.copyOf(fileEnds, 2 * files);
        }
        fileEnds[files++] = blocks;
    }

    private int hostSet(BlockLocation block) throws IOException {
        List<String> key = new ArrayList<>(Arrays.asList(block.getHosts()));
        key.addAll(Arrays.asList(block.getNames()));
        Integer index = known.get(key);
        if (index == null) {
            index = names.size();
            known.put(key, index);
            names.add(block.getNames());
            hosts.add(block.getHosts());
        }
        return index;
    }

    /** The blocks of a file, in order. */
    BlockLocation[] locations(int file, long size) {
        int first = file == 0 ? 0 : fileEnds[file - 1];
        BlockLocation[] located = new BlockLocation[fileEnds[file] - first];
        for (int i = 0; i < located.length; i++) {
            int block = first + i;
            long end = block + 1 < fileEnds[file] ? offsets[block + 1] : size;
            located[i] = new BlockLocation(
                    names.get(hostSets[block]), hosts.get(hostSets[block]), offsets[block], end - offsets[block]);
        }
        return located;
    }
}
