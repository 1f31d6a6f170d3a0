/* verify.c - clef verify, manifest and sign: is a folder what it should be, and a list of it for
 * others, signed. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/io.h"
#include "cli/model.h"
#include "cli/password.h"
#include "cli/progress.h"
#include "fetch/manifest.h"
#include "fetch/minisign.h"
#include "fetch/verify.h"

/* ---- clef verify ---- */

/* What the library's two callbacks need. */
typedef struct {
    progress bar;
    verify_result *result;
    clef_status status; /* of adding findings */
    clef_error err;
} scanning;

static int scan_step(void *user, size_t done, size_t total) {
    scanning *s = user;
    return progress_step(&s->bar, done, total);
}

static void scan_finding(void *user, const char *sentence) {
    scanning *s = user;
    if (s->status != CLEF_OK) return;
    s->status = verify_add(s->result, STR("."), VERIFY_UNSOUND, sentence, &s->err);
}

/* Looks inside the files, which are what the list says. */
static clef_status scan(verify_result *r, const args *a, clef_error *err) {
    scanning s = {.bar = progress_begin(true, "MB", 1e6), .result = r};
    const clef_options options = {.model = r->dir};
    const clef_scan_options scan_options = {.jobs = (unsigned)a->options[OPTION_JOBS].number,
                                            .progress = scan_step,
                                            .finding = scan_finding,
                                            .user = &s};
    int sound = 0;
    clef_status status = clef_scan(&options, &scan_options, &sound, err);
    progress_finish(&s.bar);
    if (status == CLEF_OK && s.status != CLEF_OK)
        status = clef_fail(err, s.status, "%s", s.err.text);
    return status;
}

static clef_status print_report(const verify_result *r, bool as_json, clef_error *err) {
    buf text = {0};
    clef_status s = verify_report(&text, r, as_json, err);
    if (s == CLEF_OK) s = io_write(NULL, (str){text.p, text.n}, err);
    buf_free(&text);
    return s;
}

clef_status command_verify(const args *a, clef_error *err) {
    const option_value *o = a->options;
    buf hub_cache = {0};
    model_hub_cache(&hub_cache);
    verify_result r = {0};
    progress bar = progress_begin(true, "MB", 1e6);
    const verify_options options = {.dir = o[OPTION_MODEL].text,
                                    .list = o[OPTION_MANIFEST].text,
                                    .key = o[OPTION_KEY].text,
                                    .repo = o[OPTION_REPO].text,
                                    .revision = o[OPTION_REVISION].text,
                                    .hub_cache = hub_cache.n > 0 ? hub_cache.p : NULL,
                                    .legacy = o[OPTION_LEGACY].given,
                                    .not_signed = o[OPTION_UNSIGNED].given,
                                    .all = o[OPTION_ALL].given,
                                    .jobs = (unsigned)o[OPTION_JOBS].number,
                                    .progress = progress_step,
                                    .user = &bar};
    clef_status s = buf_status(&hub_cache, err);
    if (s == CLEF_OK) s = verify_run(&r, &options, err);
    progress_finish(&bar);
    if (s == CLEF_OK && o[OPTION_DEEP].given) s = scan(&r, a, err);
    if (s == CLEF_OK) s = print_report(&r, o[OPTION_JSON].given, err);
    if (s == CLEF_OK && r.n_faults > 0)
        s = clef_fail(err, CLEF_ERR_FORMAT, "%s: %zu fault%s", r.dir, r.n_faults,
                      r.n_faults == 1 ? "" : "s");
    verify_free(&r);
    buf_free(&hub_cache);
    return s;
}

/* ---- clef manifest ---- */

clef_status command_manifest(const args *a, clef_error *err) {
    const option_value *o = a->options;
    TRY(io_check_out(o[OPTION_OUT].text, err));
    buf text = {0};
    progress bar = progress_begin(true, "MB", 1e6);
    const manifest_options options = {.dir = o[OPTION_MODEL].text,
                                      .repo = o[OPTION_REPO].text,
                                      .revision = o[OPTION_REVISION].text,
                                      .sources = o[OPTION_SOURCE].list,
                                      .n_sources = o[OPTION_SOURCE].n_list,
                                      .jobs = (unsigned)o[OPTION_JOBS].number,
                                      .progress = progress_step,
                                      .user = &bar};
    clef_status s = manifest_make(&text, &options, err);
    progress_finish(&bar);
    if (s == CLEF_OK) s = io_write(o[OPTION_OUT].text, (str){text.p, text.n}, err);
    buf_free(&text);
    return s;
}

/* ---- clef sign ---- */

enum { MAX_SECRET_FILE = 4096 };

/* A file that must not be there yet; a secret one is its owner's alone to read. */
static clef_status write_new(const char *path, str text, mode_t mode, clef_error *err) {
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0) return clef_fail(err, CLEF_ERR_IO, "%s: %s", path, strerror(errno));
    clef_status s = CLEF_OK;
    if (write(fd, text.p, text.n) != (ssize_t)text.n || fsync(fd) != 0)
        s = clef_fail(err, CLEF_ERR_IO, "%s: %s", path, strerror(errno));
    if (close(fd) != 0 && s == CLEF_OK)
        s = clef_fail(err, CLEF_ERR_IO, "%s: %s", path, strerror(errno));
    if (s != CLEF_OK) unlink(path);
    return s;
}

static void free_secret(buf *b) {
    if (b->p != NULL) wipe(b->p, b->cap);
    buf_free(b);
}

static clef_status generate(const args *a, clef_error *err) {
    const char *secret_path = a->options[OPTION_SECRET_KEY].text;
    buf public_path = {0}, password = {0}, public = {0}, secret = {0};
    if (a->options[OPTION_KEY].given)
        buf_add_text(&public_path, a->options[OPTION_KEY].text);
    else
        buf_printf(&public_path, "%s.pub", secret_path);
    const bool locked = !a->options[OPTION_NO_PASSWORD].given;
    clef_status s = buf_status(&public_path, err);
    if (s == CLEF_OK && file_is_named(secret_path))
        s = clef_fail(err, CLEF_ERR_INPUT, "%s: it is there already", secret_path);
    if (s == CLEF_OK && file_is_named(public_path.p))
        s = clef_fail(err, CLEF_ERR_INPUT, "%s: it is there already", public_path.p);
    if (s == CLEF_OK && locked) s = password_new(&password, err);
    const str words = {password.p, password.n};
    if (s == CLEF_OK)
        s = minisign_generate(&public, &secret, locked ? &words : NULL, MINISIGN_OPS,
                              MINISIGN_MEMORY, err);
    if (s == CLEF_OK) s = write_new(secret_path, (str){secret.p, secret.n}, 0600, err);
    if (s == CLEF_OK) {
        s = write_new(public_path.p, (str){public.p, public.n}, 0644, err);
        if (s != CLEF_OK) unlink(secret_path); /* of no use without the other */
    }
    if (s == CLEF_OK) s = io_write(NULL, (str){public.p, public.n}, err);
    free_secret(&password);
    free_secret(&secret);
    buf_free(&public);
    buf_free(&public_path);
    return s;
}

/* What minisign writes when it is not told. */
static void default_comment(buf *out, const char *path) {
    const char *slash = strrchr(path, '/');
    buf_printf(out, "timestamp:%lld\tfile:%s\thashed", (long long)time(NULL),
               slash == NULL ? path : slash + 1);
}

static clef_status sign(const args *a, clef_error *err) {
    const option_value *o = a->options;
    const char *path = o[OPTION_FILE].text, *key_path = o[OPTION_SECRET_KEY].text;
    buf out_path = {0}, comment = {0}, key = {0}, text = {0};
    minisign_secret secret = {0};
    if (o[OPTION_OUT].given)
        buf_add_text(&out_path, o[OPTION_OUT].text);
    else
        buf_printf(&out_path, "%s.minisig", path);
    if (o[OPTION_COMMENT].given)
        buf_add_text(&comment, o[OPTION_COMMENT].text);
    else
        default_comment(&comment, path);
    clef_status s = buf_status(&out_path, err);
    if (s == CLEF_OK) s = buf_status(&comment, err);
    if (s == CLEF_OK) s = io_check_out(out_path.p, err);
    if (s == CLEF_OK) s = file_read(&key, key_path, MAX_SECRET_FILE, err);
    if (s == CLEF_OK)
        s = minisign_secret_read(&secret, (str){key.p, key.n}, key_path, password_ask, NULL, err);
    if (s == CLEF_OK)
        s = minisign_sign_file(&text, &secret, path, (str){comment.p, comment.n}, err);
    if (s == CLEF_OK) s = io_write(out_path.p, (str){text.p, text.n}, err);
    wipe(&secret, sizeof secret);
    free_secret(&key);
    buf_free(&text);
    buf_free(&comment);
    buf_free(&out_path);
    return s;
}

clef_status command_sign(const args *a, clef_error *err) {
    return a->options[OPTION_GENERATE].given ? generate(a, err) : sign(a, err);
}
