package io.millstream.hadoop.hdfs;

import io.millstream.hadoop.listing.DatasetNames;
import io.millstream.hadoop.listing.DirectoryListing;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.hdfs.DistributedFileSystem;

/**
 * Lists data sets on HDFS: many directories at once, with block locations. A request returns up to a thousand entries;
 * the requests for one directory are sequential.
 */
final class HdfsListing {
    private final DistributedFileSystem fileSystem;
    private final int threads;
    private final Deque<Directory> waiting = new ArrayDeque<>();
    private int listing;
    private int workers;
    private int directories;
    private IOException failure;

    /** A directory and its listed files. */
    private static final class Directory {
        final Path path;
        final int root;
        final boolean isRoot;
        final List<Directory> children = new ArrayList<>();
        DirectoryListing listing;

        Directory(Path path, int root, boolean isRoot) {
            this.path = path;
            this.root = root;
            this.isRoot = isRoot;
        }

        /** In the order of a serial traversal. */
        void addTo(List<DirectoryListing> listings) {
            Deque<Directory> next = new ArrayDeque<>(List.of(this));
            while (!next.isEmpty()) {
                Directory directory = next.pop();
                if (directory.listing != null) {
                    listings.add(directory.listing);
                }
                for (int i = directory.children.size() - 1; i >= 0; i--) {
                    next.push(directory.children.get(i));
                }
            }
        }
    }

    /**
     * A listing.
     *
     * @param threads maximum number of directories listed at once
     */
    HdfsListing(DistributedFileSystem fileSystem, int threads) {
        this.fileSystem = fileSystem;
        this.threads = threads;
    }

    /**
     * All files below the roots.
     *
     * @throws IOException if a directory cannot be listed
     */
    List<DirectoryListing> list(List<Path> roots) throws IOException {
        List<Directory> tops = new ArrayList<>();
        for (int i = 0; i < roots.size(); i++) {
            tops.add(new Directory(roots.get(i), i, true));
        }
        List<Thread> started = new ArrayList<>();
        synchronized (this) {
            waiting.addAll(tops);
            try {
                while (failure == null && (listing > 0 || !waiting.isEmpty())) {
                    while (workers < Math.min(threads, listing + waiting.size())) {
                        Thread worker = new Thread(this::work, "millstream-list");
                        worker.setDaemon(true);
                        worker.start();
                        started.add(worker);
                        workers++;
                    }
                    wait();
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                failure = new InterruptedIOException("Interrupted while listing");
                started.forEach(Thread::interrupt);
            }
            notifyAll();
            if (failure != null) {
                throw failure;
            }
        }
        List<DirectoryListing> listings = new ArrayList<>();
        tops.forEach(top -> top.addTo(listings));
        return listings;
    }

    /** Number of directories listed. */
    synchronized int directories() {
        return directories;
    }

    private void work() {
        for (Directory directory = take(); directory != null; directory = take()) {
            IOException failed = null;
            try {
                list(directory);
            } catch (IOException e) {
                failed = e;
            } catch (RuntimeException | Error e) {
                // Whatever the error, no thread may keep waiting for this directory.
                failed = new IOException(e);
            }
            synchronized (this) {
                listing--;
                directories++;
                failure = failure == null ? failed : failure;
                waiting.addAll(directory.children);
                notifyAll();
            }
        }
    }

    private synchronized Directory take() {
        while (failure == null && waiting.isEmpty() && listing > 0) {
            try {
                wait();
            } catch (InterruptedException e) {
                return null;
            }
        }
        if (failure != null || waiting.isEmpty()) {
            workers--;
            return null;
        }
        listing++;
        return waiting.poll();
    }

    private void list(Directory directory) throws IOException {
        String path = directory.path.toUri().getPath();
        DirectoryListing.Builder files = new DirectoryListing.Builder(fileSystem.getUri(), path, directory.root);
        try {
            for (RemoteIterator<LocatedFileStatus> entries = fileSystem.listLocatedStatus(directory.path);
                    entries.hasNext(); ) {
                LocatedFileStatus entry = entries.next();
                String name = entry.getPath().getName();
                if (directory.isRoot && entry.getPath().equals(directory.path)) {
                    // A file's listing is the file itself.
                    DirectoryListing.Builder file = new DirectoryListing.Builder(
                            fileSystem.getUri(),
                            directory.path.getParent().toUri().getPath(),
                            directory.root);
                    file.ofFile();
                    if (!DatasetNames.isHidden(name)) {
                        file.add(name, entry.getLen(), entry.getModificationTime(), entry.getBlockLocations());
                    }
                    directory.listing = file.build();
                    return;
                }
                if (entry.isSymlink()) {
                    throw new IOException("a symbolic link: " + entry.getPath());
                }
                if (DatasetNames.isHidden(name)) {
                    continue;
                }
                if (entry.isDirectory()) {
                    directory.children.add(new Directory(entry.getPath(), directory.root, false));
                } else {
                    files.add(name, entry.getLen(), entry.getModificationTime(), entry.getBlockLocations());
                }
            }
        } catch (FileNotFoundException e) {
            if (!directory.isRoot) {
                throw e;
            }
            files.missing();
        }
        directory.listing = files.build();
    }
}
