/* Preloaded into the program: while the file `$FAULTS_WHILE` exists, every `$FAULTS_EVERY`-th operation `$FAULTS_OF` (read,
   write, sync or open) on a store (`*.db`, `*.db-wal`) fails with EIO, as on a bad disk. Counts over all threads. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_long operations;

static int fails_on(const char *operation, const char *path) {
    const char *every = getenv("FAULTS_EVERY"), *of = getenv("FAULTS_OF"), *armed = getenv("FAULTS_WHILE");
    if (!every || !of || !armed || strcmp(of, operation) != 0) return 0;
    const char *name = strrchr(path, '/');
    if (!name || !strstr(name, ".db") || strstr(name, "-shm") || access(armed, F_OK) != 0) return 0;
    if (atomic_fetch_add(&operations, 1) % atol(every) != atol(every) - 1) return 0;
    errno = EIO;
    return 1;
}

static int fails(const char *operation, int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return fails_on(operation, path);
}

#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

ssize_t read(int fd, void *into, size_t count) {
    REAL(read);
    return fails("read", fd) ? -1 : real(fd, into, count);
}

ssize_t pread(int fd, void *into, size_t count, off_t at) {
    REAL(pread);
    return fails("read", fd) ? -1 : real(fd, into, count, at);
}

ssize_t pread64(int fd, void *into, size_t count, off64_t at) {
    REAL(pread64);
    return fails("read", fd) ? -1 : real(fd, into, count, at);
}

ssize_t write(int fd, const void *from, size_t count) {
    REAL(write);
    return fails("write", fd) ? -1 : real(fd, from, count);
}

ssize_t pwrite(int fd, const void *from, size_t count, off_t at) {
    REAL(pwrite);
    return fails("write", fd) ? -1 : real(fd, from, count, at);
}

ssize_t pwrite64(int fd, const void *from, size_t count, off64_t at) {
    REAL(pwrite64);
    return fails("write", fd) ? -1 : real(fd, from, count, at);
}

int fsync(int fd) {
    REAL(fsync);
    return fails("sync", fd) ? -1 : real(fd);
}

int fdatasync(int fd) {
    REAL(fdatasync);
    return fails("sync", fd) ? -1 : real(fd);
}

#define OPEN(name)                                                                     \
    int name(const char *path, int flags, ...) {                                       \
        REAL(name);                                                                    \
        va_list more;                                                                  \
        va_start(more, flags);                                                         \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;        \
        va_end(more);                                                                  \
        return fails_on("open", path) ? -1 : real(path, flags, mode);                  \
    }

OPEN(open)
OPEN(open64)
