/* fuzz_file.h - for harnesses whose subject reads files: a folder of this process under the build
 * folder, and files written into it. A harness cannot go on without them, so failures abort. */
#ifndef FUZZ_FUZZ_FILE_H
#define FUZZ_FUZZ_FILE_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The folder's path; made by the first call. */
static inline const char *fuzz_folder(void) {
    static char path[256];
    if (path[0] == '\0') {
        snprintf(path, sizeof path, BUILD_DIR "fuzz.%ld", (long)getpid());
        if (mkdir(path, 0777) != 0) abort();
    }
    return path;
}

/* Writes the file and returns its path, good until the next call. */
static inline const char *fuzz_write(const char *name, const void *bytes, size_t n) {
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", fuzz_folder(), name);
    unlink(path); /* some file systems flush a file that is cut to nothing and written again */
    FILE *f = fopen(path, "wb");
    if (f == NULL) abort();
    if (n > 0 && fwrite(bytes, 1, n, f) != n) abort();
    if (fclose(f) != 0) abort();
    return path;
}

#endif
