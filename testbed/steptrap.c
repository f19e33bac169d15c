// steptrap.c - a library for LD_PRELOAD that stops or kills a process at a step: before the Nth call that matches a pattern.
//
// STEP_TRAP names the file shared with testbed/step_trap.py. A step is a call that changes a directory, written as its
// name and the path that is created, renamed to or removed, such as "link /table/.direct-writes/J.commit". The pattern
// is for fnmatch(3).
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct trap {
    _Atomic int32_t at;    // number of the step; 0 only counts
    _Atomic int32_t seen;  // steps so far
    _Atomic int32_t pid;   // the process caught
    int32_t signal;
    char pattern[1024];
    char step[1024];  // the step at which it was caught
};

static struct trap *trap;

__attribute__((constructor)) static void open_trap(void) {
    const char *path = getenv("STEP_TRAP");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *shared = mmap(NULL, sizeof *trap, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (shared != MAP_FAILED) trap = shared;
}

static void step(const char *call, const char *path) {
    if (!trap || !path || !trap->pattern[0]) return;
    char text[sizeof trap->step];
    snprintf(text, sizeof text, "%s %s", call, path);
    if (fnmatch(trap->pattern, text, FNM_EXTMATCH) != 0) return;
    if (atomic_fetch_add(&trap->seen, 1) + 1 != trap->at) return;
    memcpy(trap->step, text, sizeof text);
    trap->pid = getpid();
    // The signal is sent to this thread, so that it does not make the call before the process has stopped.
    raise(trap->signal);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int link(const char *from, const char *to) {
    step("link", to);
    return NEXT(link)(from, to);
}

int rename(const char *from, const char *to) {
    step("rename", to);
    return NEXT(rename)(from, to);
}

int unlink(const char *path) {
    step("unlink", path);
    return NEXT(unlink)(path);
}

int rmdir(const char *path) {
    step("unlink", path);
    return NEXT(rmdir)(path);
}

int remove(const char *path) {
    step("unlink", path);
    return NEXT(remove)(path);
}

int mkdir(const char *path, mode_t mode) {
    step("mkdir", path);
    return NEXT(mkdir)(path, mode);
}

// All variants of open(2); each takes a mode if it creates a file.
#define OPENS(name)                                        \
    int name(const char *path, int flags, ...) {           \
        mode_t mode = 0;                                   \
        if (flags & O_CREAT) {                             \
            va_list rest;                                  \
            va_start(rest, flags);                         \
            mode = va_arg(rest, mode_t);                   \
            va_end(rest);                                  \
            step("create", path);                          \
        }                                                  \
        return NEXT(name)(path, flags, mode);              \
    }
OPENS(open)
OPENS(open64)
