// SPDX-License-Identifier: Apache-2.0
//
// Records what a process writes below POWER_FOLDER and what it syncs, in order, to POWER_RECORD,
// so that a test can make the disk that a loss of power at any moment would have left.
//
// Each record: kind (w, t, s), length of the path, offset, length of the bytes; path; bytes.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static void record(char kind, int file, uint64_t offset, const void *bytes, uint64_t size) {
    static int to = -1;
    static ssize_t (*plain)(int, const void *, size_t);
    const char *folder = getenv("POWER_FOLDER");
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    const ssize_t length = readlink(link, path, sizeof path - 1);
    if (!folder || length <= 0) return;
    path[length] = 0;
    if (strncmp(path, folder, strlen(folder)) != 0) return;
    pthread_mutex_lock(&one_at_a_time);
    if (!plain) plain = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    if (to < 0) to = open(getenv("POWER_RECORD"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    const uint64_t head[4] = {(uint64_t)kind, (uint64_t)length, offset, bytes ? size : 0};
    if (plain(to, head, sizeof head) < 0 || plain(to, path, (size_t)length) < 0 ||
        (bytes && plain(to, bytes, size) < 0))
        abort();
    pthread_mutex_unlock(&one_at_a_time);
}

#define REAL(NAME)                 \
    static __typeof__(&NAME) real; \
    if (!real) real = (__typeof__(&NAME))dlsym(RTLD_NEXT, #NAME)

ssize_t pwrite(int file, const void *bytes, size_t size, off_t offset) {
    REAL(pwrite);
    const ssize_t done = real(file, bytes, size, offset);
    if (done > 0) record('w', file, (uint64_t)offset, bytes, (uint64_t)done);
    return done;
}
ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t offset) {
    REAL(pwrite64);
    const ssize_t done = real(file, bytes, size, offset);
    if (done > 0) record('w', file, (uint64_t)offset, bytes, (uint64_t)done);
    return done;
}
ssize_t write(int file, const void *bytes, size_t size) {
    REAL(write);
    const off_t at = lseek(file, 0, SEEK_CUR);
    const ssize_t done = real(file, bytes, size);
    if (done > 0 && at >= 0) record('w', file, (uint64_t)at, bytes, (uint64_t)done);
    return done;
}
int ftruncate(int file, off_t size) {
    REAL(ftruncate);
    const int done = real(file, size);
    if (done == 0) record('t', file, (uint64_t)size, NULL, 0);
    return done;
}
int ftruncate64(int file, off64_t size) {
    REAL(ftruncate64);
    const int done = real(file, size);
    if (done == 0) record('t', file, (uint64_t)size, NULL, 0);
    return done;
}
int fsync(int file) {
    REAL(fsync);
    const int done = real(file);
    if (done == 0) record('s', file, 0, NULL, 0);
    return done;
}
int fdatasync(int file) {
    REAL(fdatasync);
    const int done = real(file);
    if (done == 0) record('s', file, 0, NULL, 0);
    return done;
}
