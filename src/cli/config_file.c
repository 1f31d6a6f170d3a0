/* config_file.c - see config_file.h. The lines become arguments and are read as those of the
 * command line are, so that a file can say whatever an option can, and a wrong line gets the same
 * sentence.
 *
 *     # a comment
 *     model = /srv/clef-flash
 *     alias = one two
 *     warmup                                                                            */
#include "cli/config_file.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/file.h"

enum { MAX_BYTES = 1 << 20 };

static clef_status add_argument(config_file *f, char *text, clef_error *err) {
    const size_t size = sizeof(char *); /* NOLINT(bugprone-sizeof-expression): of pointers */
    char **argv = text == NULL ? NULL : array_grow(f->argv, &f->cap, f->n + 1, size);
    if (argv == NULL) {
        free(text);
        return clef_fail_memory(err);
    }
    f->argv = argv;
    argv[f->n++] = text;
    return CLEF_OK;
}

/* "--name" or "--name=value". */
static clef_status add_option(config_file *f, str name, const str *value, clef_error *err) {
    buf text = {0};
    buf_printf(&text, "--%.*s", STR_ARG(name));
    if (value != NULL) buf_add_char(&text, '=');
    if (value != NULL) buf_add_str(&text, *value);
    return add_argument(f, buf_take(&text), err);
}

static bool takes_list(str name) {
    for (int i = 0; i < N_OPTIONS; i++)
        if (option_table[i].kind == VALUE_LIST && str_equal(name, str_of(option_table[i].name)))
            return true;
    return false;
}

static clef_status add_values(config_file *f, str values, clef_error *err) {
    for (str rest = str_trim(values); rest.n > 0; rest = str_trim(rest)) {
        size_t n = 0;
        while (n < rest.n && !isspace((unsigned char)rest.p[n])) n++;
        TRY(add_argument(f, strndup(rest.p, n), err));
        rest = (str){rest.p + n, rest.n - n};
    }
    return CLEF_OK;
}

static clef_status add_line(config_file *f, str line, const char *path, clef_error *err) {
    const char *equals = memchr(line.p, '=', line.n);
    const str name = str_trim(equals == NULL ? line : (str){line.p, (size_t)(equals - line.p)});
    if (memchr(line.p, '\0', line.n) != NULL)
        return clef_fail(err, CLEF_ERR_INPUT, "%s: a zero byte in a line", path);
    if (str_equal(name, STR("config")))
        return clef_fail(err, CLEF_ERR_INPUT, "%s: a configuration cannot name another", path);
    if (str_equal(name, STR("help")) || str_equal(name, STR("check")))
        return clef_fail(err, CLEF_ERR_INPUT, "%s: %.*s is for the command line alone", path,
                         STR_ARG(name));
    if (equals == NULL) return add_option(f, name, NULL, err);
    const str value = str_trim((str){equals + 1, line.n - (size_t)(equals - line.p) - 1});
    if (!takes_list(name)) return add_option(f, name, &value, err);
    TRY(add_option(f, name, NULL, err));
    return add_values(f, value, err);
}

clef_status config_file_read(config_file *f, args *a, const char *path, clef_error *err) {
    TRY(file_read(&f->text, path, MAX_BYTES, err));
    for (size_t at = 0; at < f->text.n;) {
        const char *begin = f->text.p + at;
        const char *end = memchr(begin, '\n', f->text.n - at);
        const size_t n = end == NULL ? f->text.n - at : (size_t)(end - begin);
        const str line = str_trim((str){begin, n});
        at += n + 1;
        if (line.n > 0 && line.p[0] != '#') TRY(add_line(f, line, path, err));
    }
    if (f->n > INT32_MAX) return clef_fail(err, CLEF_ERR_LIMIT, "%s: too many lines", path);
    clef_error why = {0};
    const clef_status s = args_add(a, (int)f->n, f->argv, &why);
    return s == CLEF_OK ? s : clef_fail(err, s, "%s: %s", path, why.text);
}

void config_file_free(config_file *f) {
    for (size_t i = 0; i < f->n; i++) free(f->argv[i]);
    free(f->argv);
    buf_free(&f->text);
    *f = (config_file){0};
}
