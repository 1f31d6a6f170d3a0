/* config_file.h - options from a file. */
#ifndef CLI_CONFIG_FILE_H
#define CLI_CONFIG_FILE_H

#include "base/buf.h"
#include "cli/args.h"

/* The text of a file and the arguments in it; {0} before the first call. */
typedef struct {
    buf text;
    char **argv;
    size_t n, cap;
} config_file;

/* Adds to *a what the file at `path` says and the command line does not. `file` holds the strings
 * and has to outlive *a; free with config_file_free, also after a failure. */
clef_status config_file_read(config_file *file, args *a, const char *path, clef_error *err);
void config_file_free(config_file *file);

#endif
