/* Preloaded into the program: while the file `$FAULTS_WHILE` exists, every `$FAULTS_EVERY`-th read of a store (`*.db`,
   `*.db-wal`) fails with EIO, as on a bad disk. Counts over all threads. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_long reads;

static int fails(int fd) {
    const char *every = getenv("FAULTS_EVERY"), *armed = getenv("FAULTS_WHILE");
    char link[64], path[4096];
    if (!every || !armed || access(armed, F_OK) != 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    const char *name = strrchr(path, '/');
    if (!name || !strstr(name, ".db") || strstr(name, "-shm")) return 0;
    if (atomic_fetch_add(&reads, 1) % atol(every) != atol(every) - 1) return 0;
    errno = EIO;
    return 1;
}

#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

ssize_t read(int fd, void *into, size_t count) {
    REAL(read);
    return fails(fd) ? -1 : real(fd, into, count);
}

ssize_t pread(int fd, void *into, size_t count, off_t at) {
    REAL(pread);
    return fails(fd) ? -1 : real(fd, into, count, at);
}

ssize_t pread64(int fd, void *into, size_t count, off64_t at) {
    REAL(pread64);
    return fails(fd) ? -1 : real(fd, into, count, at);
}
