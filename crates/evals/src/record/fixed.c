/* Preloaded into the program: the time of day is the number of seconds in the file `$FIXED_CLOCK`, and random bytes depend only
   on `$FIXED_SEED`, on how many bytes are asked for, and on how often as many were asked for before. Clocks that only measure
   how long something takes are left alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static long now(void) {
    const char *path = getenv("FIXED_CLOCK");
    char digits[24] = {0};
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return 0;
    ssize_t length = read(file, digits, sizeof digits - 1);
    close(file);
    return length > 0 ? atol(digits) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE) return real(clock, time);
    time->tv_sec = now();
    time->tv_nsec = 0;
    return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    (void)zone;
    time->tv_sec = now();
    time->tv_usec = 0;
    return 0;
}

time_t time(time_t *into) {
    time_t seconds = now();
    if (into) *into = seconds;
    return seconds;
}

/* SplitMix64 (Steele, Lea and Flood, 2014). */
static uint64_t mixed(uint64_t state) {
    state += 0x9e3779b97f4a7c15;
    state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
    state = (state ^ (state >> 27)) * 0x94d049bb133111eb;
    return state ^ (state >> 31);
}

ssize_t getrandom(void *into, size_t count, unsigned flags) {
    static atomic_long asked[64];
    (void)flags;
    const char *seed = getenv("FIXED_SEED");
    uint64_t before = count < 64 ? atomic_fetch_add(&asked[count], 1) : 0;
    uint64_t state = mixed((seed ? strtoull(seed, 0, 10) : 0) * 1000003 + count) + before;
    for (size_t at = 0; at < count; at += 8) {
        uint64_t word = mixed(state + at * 7919);
        memcpy((char *)into + at, &word, count - at < 8 ? count - at : 8);
    }
    return count;
}
