// latfs.c - a pass-through file system on which every request takes as long as on a file server.
//
//   latfs [-d DELAY_US] [-T TTL_S] [-n] [-l] [-p] [-q] [-e] [-x REQUESTS] [-s STATISTICS] SOURCE MOUNT_POINT
//
//   -d  delay of one request in microseconds (default 500); requests are served in parallel
//   -T  seconds for which the kernel may keep attributes and names (default 0; 60 is like NFS)
//   -n  no READDIRPLUS
//   -l  no hard links: LINK is answered with EPERM, as by exFAT and many FUSE file systems
//   -p  prepare the answers to all listings before mounting
//   -q  closing a file fails with EDQUOT, as on NFS for a user over quota: the client sends the data only then
//   -e  entries with the attribute user.latfs.eio fail with EIO: a file when it is read beyond its first 4 KiB or
//       written, a directory when it is listed to its end, so that some of its names may be seen
//   -x  stop answering after that many requests
//   -s  file for statistics (default: standard error), at unmount and on SIGUSR1
//
// Each request that an NFS client would send to its server costs one delay; fuse_server.h explains
// this and the signals. Objects are addressed by file handle, as in an NFS server, so that no
// descriptor is kept per inode; this needs root. SOURCE must not contain another mount.
//
// On ext4 a handle is the inode number and a generation, and generation 0 means "any": the FUSE node
// number itself is the handle, so listing a directory costs one fstatat per entry and needs no table.
// On other file systems each inode's handle is kept in a table.
//
// With -p the listings of the whole tree are read before the mount appears and served from memory, as
// on a file server with a warm cache. Requests and delays stay the same, but this process needs about
// half the CPU time, which it takes from the tool that is measured on the same cores. The first change
// made through the mount ends this mode.
#define _GNU_SOURCE
#include "fuse_server.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

enum {
    EXT4_HANDLE_TYPE = 1, // FILEID_INO32_GEN
    HANDLE_BYTES = 40,    // the largest of ext4, xfs, tmpfs and btrfs
    TABLE_BITS = 18,
    TABLE_SLOTS = 1 << TABLE_BITS,
    DIRECTORY_BUFFER_BYTES = 64 << 10,
};

enum listing_kind { NAMES, NAMES_AND_ATTRIBUTES };

static int source_fd;
static ino_t source_inode;
static bool source_is_ext4;
static uint64_t cache_seconds;
static uint32_t cache_nanoseconds;
static bool prepared_listings_are_true;
static bool has_no_links;
static bool has_no_quota;
static bool has_failures;

// ---- file handles ----

struct handle {
    struct file_handle head;
    unsigned char bytes[HANDLE_BYTES];
};

struct known_inode {
    struct known_inode *next;
    uint64_t node;
    struct handle handle;
};

// Only the receiver thread touches it; it never shrinks.
static struct known_inode *table[TABLE_SLOTS];

static size_t slot_index(uint64_t node) { return (node * 0x9E3779B97F4A7C15u) >> (64 - TABLE_BITS); }

static struct known_inode **slot_of(uint64_t node) {
    struct known_inode **slot = &table[slot_index(node)];
    while (*slot && (*slot)->node != node)
        slot = &(*slot)->next;
    return slot;
}

static uint64_t node_of(ino_t inode) { return inode == source_inode ? FUSE_ROOT_ID : inode; }

// Makes sure that open_node() will find the object NAME in DIR_FD.
static int remember(int dir_fd, const char *name, uint64_t node) {
    if (source_is_ext4 || node == FUSE_ROOT_ID)
        return 0;
    int mount_id;
    struct handle handle = {.head.handle_bytes = HANDLE_BYTES};
    if (name_to_handle_at(dir_fd, name, &handle.head, &mount_id, 0))
        return -errno;
    struct known_inode **slot = slot_of(node);
    if (!*slot) {
        *slot = calloc(1, sizeof **slot);
        if (!*slot)
            return -ENOMEM;
        (*slot)->node = node;
    }
    (*slot)->handle = handle; // updated each time: the inode number may belong to a new file
    return 0;
}

// Returns a descriptor or a negative errno.
static int open_node(uint64_t node, int flags) {
    int fd;
    if (node == FUSE_ROOT_ID) {
        fd = openat(source_fd, ".", flags | O_CLOEXEC);
    } else if (source_is_ext4) {
        struct handle handle = {.head = {.handle_bytes = 8, .handle_type = EXT4_HANDLE_TYPE}};
        memcpy(handle.bytes, &(uint32_t[]){node, 0}, 8);
        fd = open_by_handle_at(source_fd, &handle.head, flags | O_CLOEXEC);
    } else {
        struct known_inode *known = *slot_of(node);
        if (!known)
            return -ESTALE;
        fd = open_by_handle_at(source_fd, &known->handle.head, flags | O_CLOEXEC);
    }
    return fd < 0 ? -errno : fd;
}

// Closes FD and returns a handler's result: 0, or the errno if RESULT < 0.
static int close_after(int fd, int result) {
    int error = result < 0 ? -errno : 0;
    close(fd);
    return error;
}

// A descriptor of a node that is about to change.
static int open_to_change(uint64_t node, int flags) {
    prepared_listings_are_true = false;
    return open_node(node, flags);
}

// ---- attributes ----

// The kernel's 32-bit encoding of a device: 12 of the minor number's bits lie above the major number.
static uint32_t encode_device(dev_t device) {
    uint32_t low = minor(device);
    return (low & 0xff) | major(device) << 8 | (low & ~0xffu) << 12;
}

static dev_t decode_device(uint32_t device) {
    return makedev(device >> 8 & 0xfff, (device & 0xff) | (device >> 12 & 0xfff00));
}

static struct fuse_attr attributes_of(const struct stat *st) {
    return (struct fuse_attr){
        .ino = st->st_ino,
        .size = st->st_size,
        .blocks = st->st_blocks,
        .atime = st->st_atim.tv_sec,
        .mtime = st->st_mtim.tv_sec,
        .ctime = st->st_ctim.tv_sec,
        .atimensec = st->st_atim.tv_nsec,
        .mtimensec = st->st_mtim.tv_nsec,
        .ctimensec = st->st_ctim.tv_nsec,
        .mode = st->st_mode,
        .nlink = st->st_nlink,
        .uid = st->st_uid,
        .gid = st->st_gid,
        .rdev = encode_device(st->st_rdev),
        .blksize = st->st_blksize,
    };
}

static int find_entry(int dir_fd, const char *name, struct fuse_entry_out *entry) {
    struct stat st;
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW))
        return -errno;
    *entry = (struct fuse_entry_out){
        .nodeid = node_of(st.st_ino),
        .entry_valid = cache_seconds,
        .entry_valid_nsec = cache_nanoseconds,
        .attr_valid = cache_seconds,
        .attr_valid_nsec = cache_nanoseconds,
        .attr = attributes_of(&st),
    };
    return remember(dir_fd, name, entry->nodeid);
}

static int reply_entry(int dir_fd, const char *name, struct reply *reply) {
    reply->bytes = sizeof(struct fuse_entry_out);
    return find_entry(dir_fd, name, (void *)reply->payload);
}

static int reply_attributes(int fd, struct reply *reply) {
    struct stat st;
    if (fstatat(fd, "", &st, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW))
        return -errno;
    *(struct fuse_attr_out *)reply->payload = (struct fuse_attr_out){
        .attr_valid = cache_seconds, .attr_valid_nsec = cache_nanoseconds, .attr = attributes_of(&st)};
    reply->bytes = sizeof(struct fuse_attr_out);
    return 0;
}

static int serve_lookup(const struct fuse_in_header *header, const void *body, struct reply *reply) {
    int dir_fd = open_node(header->nodeid, O_PATH);
    if (dir_fd < 0)
        return dir_fd;
    int error = reply_entry(dir_fd, body, reply);
    close(dir_fd);
    return error;
}

static int serve_getattr(const struct fuse_in_header *header, const void *body, struct reply *reply) {
    (void)body;
    int fd = open_node(header->nodeid, O_PATH | O_NOFOLLOW);
    if (fd < 0)
        return fd;
    int error = reply_attributes(fd, reply);
    close(fd);
    return error;
}

static int set_owner(int fd, const struct fuse_setattr_in *in) {
    uid_t uid = in->valid & FATTR_UID ? in->uid : (uid_t)-1;
    gid_t gid = in->valid & FATTR_GID ? in->gid : (gid_t)-1;
    return fchownat(fd, "", uid, gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW);
}

static struct timespec time_to_set(const struct fuse_setattr_in *in, uint32_t set, uint32_t set_now,
                                   uint64_t seconds, uint32_t nanoseconds) {
    if (in->valid & set_now)
        return (struct timespec){.tv_nsec = UTIME_NOW};
    if (in->valid & set)
        return (struct timespec){seconds, nanoseconds};
    return (struct timespec){.tv_nsec = UTIME_OMIT};
}

static int set_times(int fd, const char *path, const struct fuse_setattr_in *in) {
    struct timespec times[2] = {
        time_to_set(in, FATTR_ATIME, FATTR_ATIME_NOW, in->atime, in->atimensec),
        time_to_set(in, FATTR_MTIME, FATTR_MTIME_NOW, in->mtime, in->mtimensec),
    };
    // The magic link of a descriptor to a symbolic link cannot be followed; the empty path can.
    int result = utimensat(fd, "", times, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW);
    return result && errno == EINVAL ? utimensat(AT_FDCWD, path, times, 0) : result;
}

static int serve_setattr(const struct fuse_in_header *header, const void *body, struct reply *reply) {
    const struct fuse_setattr_in *in = body;
    int fd = open_to_change(header->nodeid, O_PATH | O_NOFOLLOW);
    if (fd < 0)
        return fd;
    char path[64]; // chmod and truncate do not take an O_PATH descriptor
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int result = 0;
    if (in->valid & (FATTR_UID | FATTR_GID))
        result = set_owner(fd, in);
    if (!result && in->valid & FATTR_MODE)
        result = chmod(path, in->mode & 07777);
    if (!result && in->valid & FATTR_SIZE)
        result = truncate(path, in->size);
    if (!result && in->valid & (FATTR_ATIME | FATTR_MTIME))
        result = set_times(fd, path, in);
    int error = result ? -errno : reply_attributes(fd, reply);
    close(fd);
    return error;
}

static int serve_readlink(const struct fuse_in_header *header, const void *body, struct reply *reply) {
    (void)body;
    int fd = open_node(header->nodeid, O_PATH | O_NOFOLLOW);
    if (fd < 0)
        return fd;
    ssize_t bytes = readlinkat(fd, "", reply->payload, PATH_MAX);
    reply->bytes = bytes < 0 ? 0 : bytes;
    return close_after(fd, bytes);
}

static int serve_statfs(const struct fuse_in_header *header, const void *body, struct reply *reply) {
    (void)header;
    (void)body;
    struct statvfs st;
    if (fstatvfs(source_fd, &st))
        return -errno;
    *(struct fuse_statfs_out *)reply->payload = (struct fuse_statfs_out){.st = {
        .blocks = st.f_blocks,
        .bfree = st.f_bfree,
        .bavail = st.f_bavail,
        .files = st.f_files,
        .ffree = st.f_ffree,
        .bsize = st.f_bsize,
        .namelen = st.f_namemax,
        .frsize = st.f_frsize,
    }};
    reply->bytes = sizeof(struct fuse_statfs_out);
    return 0;
}

// ---- names ----

// Gives an object created as root to the caller, and replies with its entry.
static int adopt(int dir_fd, const char *name, const struct fuse_in_header *header, struct reply *reply) {
    if (header->uid || header->gid)
        if (fchownat(dir_fd, name, header->uid, header->gid, AT_SYMLINK_NOFOLLOW))
            return -errno;
    return reply_entry(dir_fd, name, reply);
}

static int finish_make(int dir_fd, int result, const char *name, const struct fuse_in_header *header,
                       struct reply *reply) {
    int error = result ? -errno : adopt(dir_fd, name, header, reply);
    close(dir_fd);
    return error;
}

static int serve_mkdir(const struct fuse_in_header *header, const void *body, struct reply *reply) {
    const struct fuse_mkdir_in *in = body;
    const char *name = (const char *)(in + 1);
    int dir_fd = open_to_change(header->nodeid, O_PATH);
    if (dir_fd < 0)
        return dir_fd;
    return finish_make(dir_fd, mkdirat(dir_fd, name, in->mode), name, header, reply);
}

static int serve_mknod(const struct fuse_in_header *header, const void *body, struct reply *reply) {
    const struct fuse_mknod_in *in = body;
    const char *name = (const char *)(in + 1);
    int dir_fd = open_to_change(header->nodeid, O_PATH);
    if (dir_fd < 0)
        return dir_fd;
    return finish_make(dir_fd, mknodat(dir_fd, name, in->mode, decode_device(in->rdev)), name, header, reply);
}

static int serve_symlink(const struct fuse_in_header *header, const void *body, struct reply *reply) {
    const char *name = body, *target = name + strlen(name) + 1;
    int dir_fd = open_to_change(header->nodeid, O_PATH);
    if (dir_fd < 0)
        return dir_fd;
    return finish_make(dir_fd, symlinkat(target, dir_fd, name), name, header, reply);
}

static int serve_link(const struct fuse_in_header *header, const void *body, struct reply *reply) {
    const struct fuse_link_in *in = body;
    const char *name = (const char *)(in + 1);
    if (has_no_links)
        return -EPERM;
    int file_fd = open_to_change(in->oldnodeid, O_PATH | O_NOFOLLOW);
    if (file_fd < 0)
        return file_fd;
    int dir_fd = open_node(header->nodeid, O_PATH);
    if (dir_fd < 0) {
        close(file_fd);
        return dir_fd;
    }
    int error = linkat(file_fd, "", dir_fd, name, AT_EMPTY_PATH) ? -errno : reply_entry(dir_fd, name, reply);
    close(file_fd);
    close(dir_fd);
    return error;
}

static int remove_name(uint64_t dir_node, const char *name, int flags) {
    int dir_fd = open_to_change(dir_node, O_PATH);
    if (dir_fd < 0)
        return dir_fd;
    return close_after(dir_fd, unlinkat(dir_fd, name, flags));
}

static int serve_unlink(const struct fuse_in_header *header, const void *body, struct reply *reply) {
    (void)reply;
    return remove_name(header->nodeid, body, 0);
}

static int serve_rmdir(const struct fuse_in_header *header, const void *body, struct reply *reply) {
    (void)reply;
    return remove_name(header->nodeid, body, AT_REMOVEDIR);
}

static int rename_entry(uint64_t from_node, uint64_t to_node, const char *names, unsigned flags) {
    const char *from_name = names, *to_name = names + strlen(names) + 1;
    int from_fd = open_to_change(from_node, O_PATH);
    if (from_fd < 0)
        return from_fd;
    int to_fd = open_node(to_node, O_PATH);
    if (to_fd < 0) {
        close(from_fd);
        return to_fd;
    }
    int error = renameat2(from_fd, from_name, to_fd, to_name, flags) ? -errno : 0;
    close(from_fd);
    close(to_fd);
    return error;
}

static int serve_rename(const struct fuse_in_header *header, const void *body, struct reply *reply) {
    (void)reply;
    const struct fuse_rename_in *in = body;
    return rename_entry(header->nodeid, in->newdir, (const char *)(in + 1), 0);
}

static int serve_rename2(const struct fuse_in_header *header, const void *body, struct reply *reply) {
    (void)reply;
    const struct fuse_rename2_in *in = body;
    return rename_entry(header->nodeid, in->newdir, (const char *)(in + 1), in->flags);
}

// ---- failures ----

// Whether a file or a directory must fail (-e).
static bool is_failing(int fd) { return has_failures && fgetxattr(fd, "user.latfs.eio", NULL, 0) >= 0; }

// ---- file contents ----

static int flags_to_open(uint32_t flags) { return flags & (O_ACCMODE | O_TRUNC); }

static int serve_open(const struct fuse_in_header *header, const void *body, struct reply *reply) {
    const struct fuse_open_in *in = body;
    int flags = flags_to_open(in->flags);
    int fd = flags == O_RDONLY ? open_node(header->nodeid, flags) : open_to_change(header->nodeid, flags);
    if (fd < 0)
        return fd;
    *(struct fuse_open_out *)reply->payload = (struct fuse_open_out){.fh = fd};
    reply->bytes = sizeof(struct fuse_open_out);
    return 0;
}

static int serve_create(const struct fuse_in_header *header, const void *body, struct reply *reply) {
    const struct fuse_create_in *in = body;
    const char *name = (const char *)(in + 1);
    int dir_fd = open_to_change(header->nodeid, O_PATH);
    if (dir_fd < 0)
        return dir_fd;
    int fd = openat(dir_fd, name, flags_to_open(in->flags) | (in->flags & O_EXCL) | O_CREAT | O_CLOEXEC, in->mode);
    int error = fd < 0 ? -errno : adopt(dir_fd, name, header, reply);
    close(dir_fd);
    if (error && fd >= 0)
        close(fd);
    if (error)
        return error;
    *(struct fuse_open_out *)(reply->payload + reply->bytes) = (struct fuse_open_out){.fh = fd};
    reply->bytes += sizeof(struct fuse_open_out);
    return 0;
}

static int serve_read(const struct fuse_in_header *header, const void *body, struct reply *reply) {
    (void)header;
    const struct fuse_read_in *in = body;
    size_t size = in->size < REPLY_BYTES_MAX ? in->size : REPLY_BYTES_MAX;
    if (in->offset + size > 4096 && is_failing(in->fh))
        return -EIO;
    ssize_t bytes = pread(in->fh, reply->payload, size, in->offset);
    if (bytes < 0)
        return -errno;
    reply->bytes = bytes;
    return 0;
}

static int serve_write(const struct fuse_in_header *header, const void *body, struct reply *reply) {
    (void)header;
    const struct fuse_write_in *in = body;
    if (is_failing(in->fh))
        return -EIO;
    ssize_t bytes = pwrite(in->fh, in + 1, in->size, in->offset);
    if (bytes < 0)
        return -errno;
    *(struct fuse_write_out *)reply->payload = (struct fuse_write_out){.size = bytes};
    reply->bytes = sizeof(struct fuse_write_out);
    return 0;
}

// Costs one delay, like a COMMIT, but syncs nothing: SOURCE is only a copy for measuring.
static int serve_fsync(const struct fuse_in_header *header, const void *body, struct reply *reply) {
    (void)header;
    (void)body;
    (void)reply;
    return 0;
}

static int serve_release(const struct fuse_in_header *header, const void *body, struct reply *reply) {
    (void)header;
    (void)reply;
    return close_after(((const struct fuse_release_in *)body)->fh, 0);
}

// ---- directories ----

struct listing {
    struct listing *next; // in its table slot
    uint64_t node;
    size_t bytes;
    char entries[]; // struct fuse_direntplus; the `off` of each is where the next one starts
};

// An open directory: either a descriptor that is read on demand, or a prepared listing.
struct directory {
    const struct listing *prepared;
    int fd;
    uint64_t offset;  // of the entry at `next`
    size_t next, end; // the rest of `buffer`
    char buffer[] __attribute__((aligned(8)));
};

static bool is_dot_or_dot_dot(const char *name) {
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

static void format_dirent(struct fuse_dirent *to, const struct dirent64 *from, size_t name_bytes) {
    to->ino = from->d_ino;
    to->off = from->d_off;
    to->namelen = name_bytes;
    to->type = from->d_type;
    memcpy(to->name, from->d_name, name_bytes);
}

// Appends ENTRY with its attributes. Node 0 makes the kernel look it up when it is needed: right
// for the dots, and for a name that has just vanished.
static void format_direntplus(struct fuse_direntplus *to, const struct dirent64 *entry, size_t name_bytes,
                              int dir_fd) {
    if (is_dot_or_dot_dot(entry->d_name) || find_entry(dir_fd, entry->d_name, &to->entry_out))
        memset(&to->entry_out, 0, sizeof to->entry_out);
    format_dirent(&to->dirent, entry, name_bytes);
}

// ---- prepared listings ----

static struct listing *prepared[TABLE_SLOTS];

static const struct listing *find_prepared(uint64_t node) {
    if (!prepared_listings_are_true)
        return NULL;
    const struct listing *listing = prepared[slot_index(node)];
    while (listing && listing->node != node)
        listing = listing->next;
    return listing;
}

static void *grow(void *memory, size_t bytes) {
    memory = realloc(memory, bytes);
    if (!memory) {
        perror("latfs");
        exit(1);
    }
    return memory;
}

static struct listing *read_listing(uint64_t node, int fd) {
    static char buffer[DIRECTORY_BUFFER_BYTES] __attribute__((aligned(8)));
    struct listing *listing = grow(NULL, sizeof *listing);
    *listing = (struct listing){.node = node};
    for (ssize_t bytes; (bytes = getdents64(fd, buffer, sizeof buffer)) > 0;) {
        // With attributes, an entry takes at most 8 times the space.
        listing = grow(listing, sizeof *listing + listing->bytes + 8 * bytes);
        for (ssize_t at = 0; at < bytes;) {
            const struct dirent64 *entry = (const void *)(buffer + at);
            struct fuse_direntplus *to = (void *)(listing->entries + listing->bytes);
            format_direntplus(to, entry, strlen(entry->d_name), fd);
            listing->bytes += FUSE_DIRENTPLUS_SIZE(to);
            to->dirent.off = listing->bytes;
            at += entry->d_reclen;
        }
    }
    return grow(listing, sizeof *listing + listing->bytes);
}

static void prepare_tree(uint64_t node) {
    int fd = open_node(node, O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return; // opening it will report the error
    struct listing *listing = read_listing(node, fd);
    close(fd);
    listing->next = prepared[slot_index(node)];
    prepared[slot_index(node)] = listing;
    for (size_t at = 0; at < listing->bytes;) {
        const struct fuse_direntplus *entry = (const void *)(listing->entries + at);
        if (S_ISDIR(entry->entry_out.attr.mode))
            prepare_tree(entry->entry_out.nodeid);
        at = entry->dirent.off;
    }
}

static int list_prepared(const struct listing *listing, const struct fuse_read_in *in, struct reply *reply,
                         enum listing_kind kind) {
    size_t room = in->size < REPLY_BYTES_MAX ? in->size : REPLY_BYTES_MAX;
    for (size_t at = in->offset; at < listing->bytes;) {
        const struct fuse_direntplus *entry = (const void *)(listing->entries + at);
        const void *from = kind == NAMES ? (const void *)&entry->dirent : entry;
        size_t bytes = kind == NAMES ? FUSE_DIRENT_SIZE(&entry->dirent) : FUSE_DIRENTPLUS_SIZE(entry);
        if (reply->bytes + bytes > room)
            break;
        memcpy(reply->payload + reply->bytes, from, bytes);
        reply->bytes += bytes;
        at = entry->dirent.off;
    }
    return 0;
}

// ---- listings on demand ----

// The entry at the current position; NULL at the end or on an error, which goes to *ERROR.
static const struct dirent64 *peek_entry(struct directory *directory, int *error) {
    if (directory->next == directory->end) {
        ssize_t bytes = getdents64(directory->fd, directory->buffer, DIRECTORY_BUFFER_BYTES);
        *error = bytes < 0 ? -errno : 0;
        directory->next = 0;
        directory->end = bytes < 0 ? 0 : bytes;
        if (bytes <= 0)
            return NULL;
    }
    return (const void *)(directory->buffer + directory->next);
}

static void seek_directory(struct directory *directory, uint64_t offset) {
    if (offset == directory->offset)
        return;
    lseek(directory->fd, offset, SEEK_SET);
    directory->offset = offset;
    directory->next = directory->end = 0;
}

static int list_on_demand(struct directory *directory, const struct fuse_read_in *in, struct reply *reply,
                          enum listing_kind kind) {
    size_t room = in->size < REPLY_BYTES_MAX ? in->size : REPLY_BYTES_MAX;
    size_t fixed_bytes = kind == NAMES ? FUSE_NAME_OFFSET : FUSE_NAME_OFFSET_DIRENTPLUS;
    int error = 0;
    seek_directory(directory, in->offset);
    for (const struct dirent64 *entry; (entry = peek_entry(directory, &error));) {
        size_t name_bytes = strlen(entry->d_name);
        size_t entry_bytes = FUSE_REC_ALIGN(fixed_bytes + name_bytes);
        if (reply->bytes + entry_bytes > room)
            break;
        char *to = reply->payload + reply->bytes;
        if (kind == NAMES)
            format_dirent((void *)to, entry, name_bytes);
        else
            format_direntplus((void *)to, entry, name_bytes, directory->fd);
        reply->bytes += entry_bytes;
        directory->offset = entry->d_off;
        directory->next += entry->d_reclen;
    }
    return reply->bytes ? 0 : error;
}

// ---- requests on directories ----

static int serve_opendir(const struct fuse_in_header *header, const void *body, struct reply *reply) {
    (void)body;
    const struct listing *listing = find_prepared(header->nodeid);
    int fd = listing ? -1 : open_node(header->nodeid, O_RDONLY | O_DIRECTORY);
    if (!listing && fd < 0)
        return fd;
    struct directory *directory = malloc(sizeof *directory + (listing ? 0 : DIRECTORY_BUFFER_BYTES));
    if (!directory) {
        close(fd);
        return -ENOMEM;
    }
    *directory = (struct directory){.prepared = listing, .fd = fd};
    *(struct fuse_open_out *)reply->payload = (struct fuse_open_out){.fh = (uintptr_t)directory};
    reply->bytes = sizeof(struct fuse_open_out);
    return 0;
}

static int serve_releasedir(const struct fuse_in_header *header, const void *body, struct reply *reply) {
    (void)header;
    (void)reply;
    struct directory *directory = (void *)(uintptr_t)((const struct fuse_release_in *)body)->fh;
    if (!directory->prepared)
        close(directory->fd);
    free(directory);
    return 0;
}

static int list(const struct fuse_read_in *in, struct reply *reply, enum listing_kind kind) {
    struct directory *directory = (void *)(uintptr_t)in->fh;
    if (in->offset && !directory->prepared && is_failing(directory->fd))
        return -EIO;
    int error = directory->prepared ? list_prepared(directory->prepared, in, reply, kind)
                                    : list_on_demand(directory, in, reply, kind);
    if (!error && !reply->bytes)
        reply->cost = FREE_OF_DELAY; // NFS marks the end in the last reply; FUSE asks once more
    return error;
}

static int serve_readdir(const struct fuse_in_header *header, const void *body, struct reply *reply) {
    (void)header;
    return list(body, reply, NAMES);
}

static int serve_readdirplus(const struct fuse_in_header *header, const void *body, struct reply *reply) {
    (void)header;
    return list(body, reply, NAMES_AND_ATTRIBUTES);
}

static int serve_flush(const struct fuse_in_header *header, const void *body, struct reply *reply) {
    (void)header, (void)body, (void)reply;
    return has_no_quota ? -EDQUOT : -ENOSYS;
}

// Not supported, and therefore answered with ENOSYS, after which the kernel does not ask again:
// extended attributes (not in NFSv3), flush without -q, ioctl, locks, seeking for holes.
static const struct operation operations[OPERATION_COUNT] = {
    [FUSE_LOOKUP] = {"LOOKUP", ONE_RPC, serve_lookup},
    [FUSE_GETATTR] = {"GETATTR", ONE_RPC, serve_getattr},
    [FUSE_SETATTR] = {"SETATTR", ONE_RPC, serve_setattr},
    [FUSE_READLINK] = {"READLINK", ONE_RPC, serve_readlink},
    [FUSE_STATFS] = {"STATFS", ONE_RPC, serve_statfs},
    [FUSE_MKDIR] = {"MKDIR", ONE_RPC, serve_mkdir},
    [FUSE_MKNOD] = {"MKNOD", ONE_RPC, serve_mknod},
    [FUSE_SYMLINK] = {"SYMLINK", ONE_RPC, serve_symlink},
    [FUSE_LINK] = {"LINK", ONE_RPC, serve_link},
    [FUSE_UNLINK] = {"UNLINK", ONE_RPC, serve_unlink},
    [FUSE_RMDIR] = {"RMDIR", ONE_RPC, serve_rmdir},
    [FUSE_RENAME] = {"RENAME", ONE_RPC, serve_rename},
    [FUSE_RENAME2] = {"RENAME2", ONE_RPC, serve_rename2},
    [FUSE_OPEN] = {"OPEN", ONE_RPC, serve_open},
    [FUSE_CREATE] = {"CREATE", ONE_RPC, serve_create},
    [FUSE_READ] = {"READ", ONE_RPC, serve_read},
    [FUSE_WRITE] = {"WRITE", ONE_RPC, serve_write},
    [FUSE_FSYNC] = {"FSYNC", ONE_RPC, serve_fsync},
    [FUSE_FSYNCDIR] = {"FSYNCDIR", ONE_RPC, serve_fsync},
    [FUSE_FLUSH] = {"FLUSH", FREE_OF_DELAY, serve_flush},
    [FUSE_RELEASE] = {"RELEASE", FREE_OF_DELAY, serve_release},
    [FUSE_OPENDIR] = {"OPENDIR", ONE_RPC, serve_opendir},
    [FUSE_READDIR] = {"READDIR", ONE_RPC, serve_readdir},
    [FUSE_READDIRPLUS] = {"READDIRPLUS", ONE_RPC, serve_readdirplus},
    [FUSE_RELEASEDIR] = {"RELEASEDIR", FREE_OF_DELAY, serve_releasedir},
};

static int usage(void) {
    fprintf(stderr, "usage: latfs [-d DELAY_US] [-T TTL_S] [-n] [-l] [-p] [-q] [-e] [-x REQUESTS] [-s STATISTICS] "
                    "SOURCE MOUNT_POINT\n");
    return 2;
}

static int open_source(const char *path) {
    struct stat st;
    struct statfs fs;
    source_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (source_fd < 0 || fstat(source_fd, &st) || fstatfs(source_fd, &fs))
        return -1;
    source_inode = st.st_ino;
    source_is_ext4 = fs.f_type == EXT4_SUPER_MAGIC;
    return 0;
}

int main(int argc, char **argv) {
    struct server_options options = {.name = "latfs", .delay_us = 500, .readdirplus = true};
    double ttl = 0;
    bool prepare = false;
    for (int option; (option = getopt(argc, argv, "d:T:nlpqex:s:")) != -1;) {
        switch (option) {
        case 'd': options.delay_us = strtoull(optarg, NULL, 10); break;
        case 'T': ttl = strtod(optarg, NULL); break;
        case 'n': options.readdirplus = false; break;
        case 'l': has_no_links = true; break;
        case 'p': prepare = true; break;
        case 'q': has_no_quota = true; break;
        case 'e': has_failures = true; break;
        case 'x': options.hang_after = strtoull(optarg, NULL, 10); break;
        case 's': options.statistics_file = optarg; break;
        default: return usage();
        }
    }
    if (argc - optind != 2)
        return usage();
    cache_seconds = ttl;
    cache_nanoseconds = (ttl - cache_seconds) * 1e9;
    options.mount_point = argv[optind + 1];
    if (open_source(argv[optind])) {
        perror(argv[optind]);
        return 1;
    }
    if (prepare)
        prepare_tree(FUSE_ROOT_ID);
    prepared_listings_are_true = prepare;
    umask(0); // the kernel has applied the caller's
    return serve_mount(&options, operations);
}
