// fuse_server.h - the common part of latfs and manyfs: one FUSE mount, its request loop, a constant
// delay per request, counters, and a switch that makes the mount stop answering.
//
// It speaks the kernel's protocol (linux/fuse.h) directly, without libfuse, because its own CPU is
// the floor of every parallel figure measured on it:
//
//   receiver thread   reads a request, does the work at once, and queues the reply with the time at
//                     which it is due: arrival + delay
//   replier thread    sleeps until the head of the queue is due and writes it to the kernel
//
// The delay is constant, so the queue is a plain list in order of arrival. No thread sleeps per
// request, and N requests in flight take one delay, not N. No reply is sent before it is due.
// Requests that a file server would not see (releasing a directory, the empty reply that ends a
// listing, extended attributes, which NFSv3 lacks) are answered at once and not counted in the total.
#ifndef FUSE_SERVER_H
#define FUSE_SERVER_H

#include <linux/fuse.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    REPLY_BYTES_MAX = 1 << 20, // payload of one reply; as an NFS client's rsize
    WRITE_BYTES_MAX = 1 << 20,
};

enum cost {
    FREE_OF_DELAY, // answered at once
    ONE_RPC,       // costs one delay
};

// The reply that a handler fills in. The payload has room for REPLY_BYTES_MAX bytes.
struct reply {
    char *payload;
    size_t bytes;
    enum cost cost; // preset from the operation table; a handler may lower it
};

struct operation {
    const char *name; // as printed in the statistics; NULL: not supported
    enum cost cost;
    // Returns 0 or a negative errno. `body` is what follows the header, NUL-terminated.
    int (*serve)(const struct fuse_in_header *header, const void *body, struct reply *reply);
};

enum { OPERATION_COUNT = FUSE_TMPFILE + 1 }; // newer requests are answered with ENOSYS

struct server_options {
    const char *name;            // shown as the file system's type: fuse.NAME
    const char *mount_point;
    const char *statistics_file; // NULL: standard error
    uint64_t delay_us;
    uint64_t hang_after;         // stop answering after this many delayed requests; 0: never
    bool readdirplus;
};

// Mounts, serves until unmounted or told to stop, writes the statistics; returns an exit status.
//
// Signals: SIGUSR1 writes the statistics now. SIGUSR2 makes the mount stop answering, or answer
// again: requests stay unread in the kernel, so callers wait as on a hard NFS mount (only a fatal
// signal ends them). SIGTERM, SIGINT and SIGHUP unmount. The server also stops when its parent dies.
int serve_mount(const struct server_options *options, const struct operation *operations);

#endif
