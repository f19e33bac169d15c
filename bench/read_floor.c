/* read_floor - reads all files of a directory in a plain loop of open, read and close, and prints the cost, as JSON.

       read_floor DIRECTORY THREADS

   The minimum that any program must do to read them: no lines, no rows. Large files are shared among the threads in
   parts. Run by bench/spark-read, which compiles it. */

#define _GNU_SOURCE
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PART_BYTES = 8 << 20, BUFFER_BYTES = 256 << 10 };

struct part {
  char *name;
  off_t start;
};

static int directory;
static struct part *parts;
static size_t count;
static atomic_size_t next_part;
static atomic_llong bytes_read;

static void add(const char *name, off_t start) {
  if ((count & (count - 1)) == 0 && !(parts = realloc(parts, (count ? 2 * count : 1) * sizeof *parts))) err(1, "realloc");
  parts[count++] = (struct part){strdup(name), start};
}

/* Sizes are needed only if there are few files, which may be large: a tiny one is a single part in any case. */
static void list(void) {
  DIR *stream = fdopendir(dup(directory));
  if (!stream) err(1, "opendir");
  for (struct dirent *entry; (entry = readdir(stream));)
    if (entry->d_type == DT_REG && entry->d_name[0] != '.' && entry->d_name[0] != '_') add(entry->d_name, 0);
  closedir(stream);
  if (count > 1000) return;
  for (size_t i = 0, files = count; i < files; i++) {
    struct stat status;
    if (fstatat(directory, parts[i].name, &status, 0)) err(1, "%s", parts[i].name);
    for (off_t start = PART_BYTES; start < status.st_size; start += PART_BYTES) add(parts[i].name, start);
  }
}

static void *work(void *unused) {
  char *buffer = malloc(BUFFER_BYTES);
  long long mine = 0;
  for (size_t i; (i = atomic_fetch_add(&next_part, 1)) < count;) {
    int file = openat(directory, parts[i].name, O_RDONLY | O_CLOEXEC);
    if (file < 0) err(1, "%s", parts[i].name);
    off_t at = parts[i].start, end = at + PART_BYTES;
    for (ssize_t got = BUFFER_BYTES; got == BUFFER_BYTES && at < end; at += got, mine += got)
      if ((got = pread(file, buffer, BUFFER_BYTES, at)) < 0) err(1, "%s", parts[i].name);
    close(file);
  }
  atomic_fetch_add(&bytes_read, mine);
  free(buffer);
  return unused;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + now.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
  if (argc != 3) errx(2, "usage: read_floor DIRECTORY THREADS");
  double start = seconds();
  if ((directory = open(argv[1], O_RDONLY | O_DIRECTORY)) < 0) err(1, "%s", argv[1]);
  list();
  int threads = atoi(argv[2]);
  pthread_t ids[threads];
  for (int i = 0; i < threads; i++)
    if (pthread_create(&ids[i], NULL, work, NULL)) errx(1, "no thread");
  for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
  double wall_s = seconds() - start;
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  double cpu_s = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
  fprintf(stderr, "%zu parts, %lld bytes\n", count, (long long)bytes_read);
  printf("{\"wall_s\": %.4f, \"cpu_s\": %.4f, \"heap_mb\": 0, \"rows\": null}\n", wall_s, cpu_s);
}
