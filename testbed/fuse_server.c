// fuse_server.c - see fuse_server.h for the mechanism.
#define _GNU_SOURCE
#include "fuse_server.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

struct queued_reply {
    struct queued_reply *next;
    uint64_t due_ns;
    struct fuse_out_header header; // the payload follows it, as the kernel wants it
    char payload[];
};

static struct {
    const struct server_options *options;
    const struct operation *operations;
    int device;      // /dev/fuse
    int wake_event;  // interrupts the receiver's wait when the hang switch changes
    pthread_t main_thread;
    atomic_bool hanging;

    // Replies that are not due yet, oldest first.
    pthread_mutex_t queue_lock;
    pthread_cond_t queue_filled;
    struct queued_reply *queue_head, **queue_tail;
    bool replier_waits;

    // Written by the receiver (in_flight: and the replier), read by the main thread at any time.
    atomic_ulong count[OPERATION_COUNT];
    atomic_ulong delayed;
    atomic_int in_flight, max_in_flight;
} server = {.queue_lock = PTHREAD_MUTEX_INITIALIZER, .queue_filled = PTHREAD_COND_INITIALIZER};

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + now.tv_nsec;
}

static void die(const char *what) {
    fprintf(stderr, "%s: %s: %s\n", server.options->name, what, strerror(errno));
    exit(1);
}

// ---- statistics ----

static void write_statistics(void) {
    const char *path = server.options->statistics_file;
    char temporary[4096];
    FILE *out = stderr;
    if (path) { // written to another file and renamed, so that a reader never sees half a line
        snprintf(temporary, sizeof temporary, "%s.new", path);
        out = fopen(temporary, "w");
        if (!out)
            die(temporary);
    }
    for (int opcode = 0; opcode < OPERATION_COUNT; opcode++)
        if (server.operations[opcode].cost == ONE_RPC && server.count[opcode])
            fprintf(out, "%s=%lu ", server.operations[opcode].name, server.count[opcode]);
    fprintf(out, "total=%lu max_inflight=%d\n", server.delayed, server.max_in_flight);
    if (path && (fclose(out) || rename(temporary, path)))
        die(path);
}

// ---- replies ----

static void write_reply(struct fuse_out_header *header) {
    // ENOENT: the caller was killed meanwhile. ENODEV: unmounted. Neither needs an answer.
    if (write(server.device, header, header->len) < 0 && errno != ENOENT && errno != ENODEV)
        die("write to /dev/fuse");
}

static struct queued_reply *take_queue(void) {
    pthread_mutex_lock(&server.queue_lock);
    while (!server.queue_head) {
        server.replier_waits = true;
        pthread_cond_wait(&server.queue_filled, &server.queue_lock);
        server.replier_waits = false;
    }
    struct queued_reply *first = server.queue_head;
    server.queue_head = NULL;
    server.queue_tail = &server.queue_head;
    pthread_mutex_unlock(&server.queue_lock);
    return first;
}

static void enqueue(struct queued_reply *reply) {
    reply->next = NULL;
    pthread_mutex_lock(&server.queue_lock);
    *server.queue_tail = reply;
    server.queue_tail = &reply->next;
    bool wake = server.replier_waits;
    pthread_mutex_unlock(&server.queue_lock);
    if (wake)
        pthread_cond_signal(&server.queue_filled);
}

static void sleep_until(uint64_t due_ns) {
    struct timespec due = {due_ns / 1000000000u, due_ns % 1000000000u};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR)
        ;
}

static void *run_replier(void *unused) {
    (void)unused;
    prctl(PR_SET_TIMERSLACK, 1UL); // the default of 50 us would add 10% to a delay of 0.5 ms
    for (;;) {
        uint64_t now = now_ns();
        for (struct queued_reply *reply = take_queue(), *next; reply; reply = next) {
            next = reply->next;
            if (reply->due_ns > now && reply->due_ns > (now = now_ns())) {
                sleep_until(reply->due_ns);
                now = now_ns();
            }
            server.in_flight--;
            write_reply(&reply->header);
            free(reply);
        }
    }
    return NULL;
}

// ---- requests ----

static int negotiate(const void *body, struct reply *reply) {
    const struct fuse_init_in *in = body;
    struct fuse_init_out *out = (void *)reply->payload;
    uint32_t wanted = FUSE_ASYNC_READ | FUSE_ATOMIC_O_TRUNC | FUSE_BIG_WRITES | FUSE_PARALLEL_DIROPS |
                      FUSE_AUTO_INVAL_DATA | FUSE_MAX_PAGES;
    if (server.options->readdirplus)
        wanted |= FUSE_DO_READDIRPLUS;
    *out = (struct fuse_init_out){
        .major = FUSE_KERNEL_VERSION,
        .minor = in->minor < FUSE_KERNEL_MINOR_VERSION ? in->minor : FUSE_KERNEL_MINOR_VERSION,
        .max_readahead = in->max_readahead,
        .flags = wanted & in->flags,
        .max_background = 1024,
        .congestion_threshold = 768,
        .max_write = WRITE_BYTES_MAX,
        .max_pages = WRITE_BYTES_MAX / 4096,
        .time_gran = 1,
    };
    reply->bytes = sizeof *out;
    return 0;
}

static void count_arrival(void) {
    int in_flight = ++server.in_flight;
    if (in_flight > server.max_in_flight)
        server.max_in_flight = in_flight;
    if (++server.delayed == server.options->hang_after)
        server.hanging = true;
}

// Serves one request; `scratch` has room for a header and REPLY_BYTES_MAX bytes.
static void serve_request(const struct fuse_in_header *header, struct fuse_out_header *scratch) {
    if (header->opcode == FUSE_FORGET || header->opcode == FUSE_BATCH_FORGET ||
        header->opcode == FUSE_INTERRUPT)
        return; // these have no reply; an interrupted request is simply completed
    uint64_t arrival_ns = now_ns();
    struct reply reply = {.payload = (char *)(scratch + 1)};
    int error = -ENOSYS;
    if (header->opcode == FUSE_INIT) {
        error = negotiate(header + 1, &reply);
    } else if (header->opcode < OPERATION_COUNT && server.operations[header->opcode].name) {
        const struct operation *operation = &server.operations[header->opcode];
        reply.cost = operation->cost;
        error = operation->serve(header, header + 1, &reply);
        if (reply.cost == operation->cost)
            server.count[header->opcode]++;
    }
    if (error)
        reply.bytes = 0;
    *scratch = (struct fuse_out_header){sizeof *scratch + reply.bytes, error, header->unique};
    if (reply.cost == FREE_OF_DELAY) {
        write_reply(scratch);
        return;
    }
    count_arrival();
    struct queued_reply *queued = malloc(sizeof *queued + reply.bytes);
    if (!queued)
        die("reply");
    queued->due_ns = arrival_ns + server.options->delay_us * 1000;
    memcpy(&queued->header, scratch, scratch->len);
    enqueue(queued);
}

enum wait_result { MAY_READ, UNMOUNTED };

// Waits until there is a request to read and the mount is not hanging.
static enum wait_result wait_for_request(void) {
    for (;;) {
        bool hanging = server.hanging;
        struct pollfd fds[] = {{.fd = server.wake_event, .events = POLLIN},
                               {.fd = server.device, .events = hanging ? 0 : POLLIN}};
        poll(fds, 2, -1);
        if (fds[0].revents & POLLIN) {
            eventfd_t ignored;
            eventfd_read(server.wake_event, &ignored);
        }
        if (fds[1].revents & POLLERR)
            return UNMOUNTED;
        if (fds[1].revents & POLLIN)
            return MAY_READ;
    }
}

static void *run_receiver(void *unused) {
    (void)unused;
    size_t request_bytes_max = WRITE_BYTES_MAX + 4096;
    char *request = malloc(request_bytes_max + 1);
    struct fuse_out_header *scratch = malloc(sizeof *scratch + REPLY_BYTES_MAX);
    if (!request || !scratch)
        die("buffers");
    for (;;) {
        if (server.hanging && wait_for_request() == UNMOUNTED)
            break;
        ssize_t bytes = read(server.device, request, request_bytes_max);
        if (bytes >= 0) {
            request[bytes] = 0;
            serve_request((const void *)request, scratch);
        } else if (errno == EAGAIN) {
            if (wait_for_request() == UNMOUNTED)
                break;
        } else if (errno != EINTR && errno != ENOENT) { // ENOENT: aborted before it was read
            break;                                      // ENODEV: unmounted
        }
    }
    pthread_kill(server.main_thread, SIGTERM);
    return NULL;
}

// ---- lifecycle ----

static void mount_device(void) {
    const struct server_options *options = server.options;
    server.device = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (server.device < 0)
        die("/dev/fuse");
    char type[64], data[160];
    snprintf(type, sizeof type, "fuse.%s", options->name);
    snprintf(data, sizeof data, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions",
             server.device);
    if (mount(options->name, options->mount_point, type, MS_NOSUID | MS_NODEV, data))
        die(options->mount_point);
}

static void toggle_hanging(void) {
    server.hanging = !server.hanging;
    eventfd_write(server.wake_event, 1);
}

int serve_mount(const struct server_options *options, const struct operation *operations) {
    server.options = options;
    server.operations = operations;
    server.queue_tail = &server.queue_head;
    server.main_thread = pthread_self();
    server.wake_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    // Large replies are allocated and freed often: keep them on the heap, since mapping costs more
    // than copying.
    mallopt(M_MMAP_THRESHOLD, 64 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);

    sigset_t signals;
    sigemptyset(&signals);
    for (const int *s = (int[]){SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGHUP, 0}; *s; s++)
        sigaddset(&signals, *s);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);

    mount_device();
    pthread_t receiver, replier;
    if (pthread_create(&receiver, NULL, run_receiver, NULL) ||
        pthread_create(&replier, NULL, run_replier, NULL))
        die("threads");
    for (int signal; sigwait(&signals, &signal) == 0;) {
        if (signal == SIGUSR1)
            write_statistics();
        else if (signal == SIGUSR2)
            toggle_hanging();
        else
            break;
    }
    umount2(options->mount_point, MNT_DETACH); // fails if it was unmounted from outside, which is fine
    write_statistics();
    return 0; // ends the connection: callers that still wait get an error
}
