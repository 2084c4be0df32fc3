// SPDX-License-Identifier: Apache-2.0
//
// Shifts the time of day of a process by the seconds that the file CLOCK_SHIFT holds. What counts
// the time that has passed is left alone.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long long shift(void) {
    const char *path = getenv("CLOCK_SHIFT");
    char held[32] = {0};
    const int opened = path ? open(path, O_RDONLY) : -1;
    if (opened < 0) return 0;
    const ssize_t got = read(opened, held, sizeof held - 1);
    close(opened);
    return got > 0 ? atoll(held) : 0;
}

#define REAL(NAME)                 \
    static __typeof__(&NAME) real; \
    if (!real) real = (__typeof__(&NAME))dlsym(RTLD_NEXT, #NAME)

int clock_gettime(clockid_t clock, struct timespec *now) {
    REAL(clock_gettime);
    const int done = real(clock, now);
    if (done == 0 && clock == CLOCK_REALTIME) now->tv_sec += shift();
    return done;
}
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    REAL(gettimeofday);
    const int done = real(now, zone);
    if (done == 0) now->tv_sec += shift();
    return done;
}
time_t time(time_t *to) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to) *to = now.tv_sec;
    return now.tv_sec;
}
