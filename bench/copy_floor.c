/* copy_floor - copies the directories and files of a tree in a plain loop: open, fstat, create, copy, utimens, close.

       copy_floor SOURCE DESTINATION THREADS

   The minimum that any program must do to copy them: no comparison, no owners, no times of directories, no temporary
   names, no progress. The threads share a stack of directories; one thread handles a directory, and makes its
   subdirectories in the destination before it puts them on the stack. Run by bench/sync, which compiles it. */

#define _GNU_SOURCE
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_BYTES = 256 << 10 };

struct directory {
  char *path; /* below both roots */
  struct directory *below;
};

static int source_root, destination_root;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct directory *stack;
static size_t unfinished; /* directories on the stack or in progress */

static void push(char *path) {
  struct directory *directory = malloc(sizeof *directory);
  if (!directory) err(1, "malloc");
  pthread_mutex_lock(&lock);
  *directory = (struct directory){path, stack};
  stack = directory;
  unfinished++;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&lock);
}

/* The path of a directory that no thread has begun; NULL when all are finished. */
static char *pop(void) {
  char *path = NULL;
  pthread_mutex_lock(&lock);
  while (!stack && unfinished) pthread_cond_wait(&changed, &lock);
  if (stack) {
    struct directory *top = stack;
    path = top->path;
    stack = top->below;
    free(top);
  }
  pthread_mutex_unlock(&lock);
  return path;
}

static void finish(void) {
  pthread_mutex_lock(&lock);
  if (--unfinished == 0) pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

/* By one call each for all files but the large ones: the size says that there is no more. Not by copy_file_range, which refuses
   to copy from one ext4 to another. */
static void copy_bytes(int from, int to, off_t size, char *buffer, const char *name) {
  for (off_t at = 0; at < size;) {
    ssize_t got = read(from, buffer, BUFFER_BYTES);
    if (got < 0) err(1, "%s", name);
    if (got == 0) errx(1, "%s: has become shorter", name);
    if (write(to, buffer, got) != got) err(1, "%s", name);
    at += got;
  }
}

static void copy_file(int from_directory, int to_directory, const char *name, char *buffer) {
  int from = openat(from_directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (from < 0) err(1, "%s", name);
  struct stat status;
  if (fstat(from, &status)) err(1, "%s", name);
  int to = openat(to_directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, status.st_mode & 0777);
  if (to < 0) err(1, "%s", name);
  copy_bytes(from, to, status.st_size, buffer, name);
  if (futimens(to, (struct timespec[]){status.st_atim, status.st_mtim})) err(1, "%s", name);
  if (close(to) || close(from)) err(1, "%s", name);
}

static int open_directory(int root, const char *path) {
  int directory = openat(root, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) err(1, "%s", path);
  return directory;
}

static void copy_directory(const char *path, char *buffer) {
  int from = open_directory(source_root, path), to = open_directory(destination_root, path);
  DIR *stream = fdopendir(from);
  if (!stream) err(1, "%s", path);
  for (struct dirent *entry; (entry = readdir(stream));) {
    if (entry->d_type == DT_REG) copy_file(from, to, entry->d_name, buffer);
    if (entry->d_type != DT_DIR || !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
    if (mkdirat(to, entry->d_name, 0755) && errno != EEXIST) err(1, "%s/%s", path, entry->d_name);
    char *subdirectory;
    if (asprintf(&subdirectory, "%s/%s", path, entry->d_name) < 0) err(1, "asprintf");
    push(subdirectory);
  }
  closedir(stream);
  close(to);
}

static void *work(void *unused) {
  char *buffer = malloc(BUFFER_BYTES);
  if (!buffer) err(1, "malloc");
  for (char *path; (path = pop());) {
    copy_directory(path, buffer);
    free(path);
    finish();
  }
  free(buffer);
  return unused;
}

int main(int argc, char **argv) {
  if (argc != 4) errx(2, "usage: copy_floor SOURCE DESTINATION THREADS");
  source_root = open_directory(AT_FDCWD, argv[1]);
  destination_root = open_directory(AT_FDCWD, argv[2]);
  push(strdup("."));
  int threads = atoi(argv[3]);
  pthread_t ids[threads];
  for (int i = 0; i < threads; i++)
    if (pthread_create(&ids[i], NULL, work, NULL)) errx(1, "no thread");
  for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
}
