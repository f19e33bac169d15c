// manyfs.c - one flat directory of N generated files, for measuring a tool's memory.
//
//   manyfs [-s STATISTICS] N MOUNT_POINT
//
// The directory holds file_00000000 ... in that order; every file is empty. Nothing is stored, so
// ten million entries cost neither inodes nor memory. There is no delay and no READDIRPLUS, which
// would make the kernel keep an inode for each name it has listed.
#define _GNU_SOURCE
#include "fuse_server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_FILE_INODE = 2, ATTRIBUTE_SECONDS = 3600 };

static uint64_t file_count;

static struct fuse_attr attributes_of(uint64_t inode) {
    if (inode == FUSE_ROOT_ID)
        return (struct fuse_attr){.ino = inode, .mode = 040755, .nlink = 2, .blksize = 4096};
    return (struct fuse_attr){.ino = inode, .mode = 0100644, .nlink = 1, .blksize = 4096};
}

static int format_name(char *name, size_t bytes, uint64_t inode) {
    return snprintf(name, bytes, "file_%08lu", (unsigned long)(inode - FIRST_FILE_INODE));
}

static int serve_lookup(const struct fuse_in_header *header, const void *body, struct reply *reply) {
    (void)header;
    const char *name = body;
    if (strncmp(name, "file_", 5))
        return -ENOENT;
    uint64_t inode = strtoull(name + 5, NULL, 10) + FIRST_FILE_INODE;
    char expected[32];
    format_name(expected, sizeof expected, inode);
    if (strcmp(name, expected) || inode >= file_count + FIRST_FILE_INODE)
        return -ENOENT;
    *(struct fuse_entry_out *)reply->payload = (struct fuse_entry_out){
        .nodeid = inode,
        .entry_valid = ATTRIBUTE_SECONDS,
        .attr_valid = ATTRIBUTE_SECONDS,
        .attr = attributes_of(inode),
    };
    reply->bytes = sizeof(struct fuse_entry_out);
    return 0;
}

static int serve_getattr(const struct fuse_in_header *header, const void *body, struct reply *reply) {
    (void)body;
    *(struct fuse_attr_out *)reply->payload =
        (struct fuse_attr_out){.attr_valid = ATTRIBUTE_SECONDS, .attr = attributes_of(header->nodeid)};
    reply->bytes = sizeof(struct fuse_attr_out);
    return 0;
}

// Offset K is before the K-th entry; "." and ".." are the first two.
static size_t format_entry(char *to, uint64_t offset) {
    struct fuse_dirent *entry = (void *)to;
    entry->off = offset + 1;
    if (offset < 2) {
        entry->ino = FUSE_ROOT_ID;
        entry->type = 4; // DT_DIR
        entry->namelen = offset + 1;
        memcpy(entry->name, "..", entry->namelen);
    } else {
        entry->ino = offset - 2 + FIRST_FILE_INODE;
        entry->type = 8; // DT_REG
        entry->namelen = format_name(entry->name, 32, entry->ino);
    }
    return FUSE_DIRENT_SIZE(entry);
}

static int serve_readdir(const struct fuse_in_header *header, const void *body, struct reply *reply) {
    (void)header;
    const struct fuse_read_in *in = body;
    size_t entry_bytes_max = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + 32);
    size_t room = in->size < REPLY_BYTES_MAX ? in->size : REPLY_BYTES_MAX;
    for (uint64_t offset = in->offset; offset < file_count + 2; offset++) {
        if (reply->bytes + entry_bytes_max > room)
            break;
        reply->bytes += format_entry(reply->payload + reply->bytes, offset);
    }
    return 0;
}

static int serve_opendir(const struct fuse_in_header *header, const void *body, struct reply *reply) {
    (void)header;
    (void)body;
    *(struct fuse_open_out *)reply->payload = (struct fuse_open_out){0};
    reply->bytes = sizeof(struct fuse_open_out);
    return 0;
}

static int serve_releasedir(const struct fuse_in_header *header, const void *body, struct reply *reply) {
    (void)header;
    (void)body;
    (void)reply;
    return 0;
}

static const struct operation operations[OPERATION_COUNT] = {
    [FUSE_LOOKUP] = {"LOOKUP", ONE_RPC, serve_lookup},
    [FUSE_GETATTR] = {"GETATTR", ONE_RPC, serve_getattr},
    [FUSE_OPENDIR] = {"OPENDIR", ONE_RPC, serve_opendir},
    [FUSE_READDIR] = {"READDIR", ONE_RPC, serve_readdir},
    [FUSE_RELEASEDIR] = {"RELEASEDIR", FREE_OF_DELAY, serve_releasedir},
};

static int usage(void) {
    fprintf(stderr, "usage: manyfs [-s STATISTICS] N MOUNT_POINT\n");
    return 2;
}

int main(int argc, char **argv) {
    struct server_options options = {.name = "manyfs"};
    for (int option; (option = getopt(argc, argv, "s:")) != -1;) {
        if (option != 's')
            return usage();
        options.statistics_file = optarg;
    }
    if (argc - optind != 2)
        return usage();
    file_count = strtoull(argv[optind], NULL, 10);
    options.mount_point = argv[optind + 1];
    return serve_mount(&options, operations);
}
