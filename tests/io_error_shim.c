// SPDX-License-Identifier: Apache-2.0
//
// While the file IO_ERROR_SWITCH is there, calls on files below IO_ERROR_FOLDER fail with EIO:
// those that sync where it holds "sync", those that write where it holds "write".

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int fails(const char *kind, int file) {
    const char *folder = getenv("IO_ERROR_FOLDER"), *turned_on = getenv("IO_ERROR_SWITCH");
    if (!folder || !turned_on || access(turned_on, F_OK) != 0) return 0;
    char link[64], path[4096], held[16] = {0};
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    const ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    if (strncmp(path, folder, strlen(folder)) != 0) return 0;
    const int opened = open(turned_on, O_RDONLY);
    if (opened < 0) return 0;
    const ssize_t got = read(opened, held, sizeof held - 1);
    close(opened);
    if (got <= 0 || strncmp(held, kind, strlen(kind)) != 0) return 0;
    errno = EIO;
    return 1;
}

#define REAL(NAME)                 \
    static __typeof__(&NAME) real; \
    if (!real) real = (__typeof__(&NAME))dlsym(RTLD_NEXT, #NAME)

ssize_t pwrite(int file, const void *bytes, size_t size, off_t offset) {
    REAL(pwrite);
    return fails("write", file) ? -1 : real(file, bytes, size, offset);
}
ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t offset) {
    REAL(pwrite64);
    return fails("write", file) ? -1 : real(file, bytes, size, offset);
}
ssize_t write(int file, const void *bytes, size_t size) {
    REAL(write);
    return fails("write", file) ? -1 : real(file, bytes, size);
}
int fsync(int file) {
    REAL(fsync);
    return fails("sync", file) ? -1 : real(file);
}
int fdatasync(int file) {
    REAL(fdatasync);
    return fails("sync", file) ? -1 : real(file);
}
