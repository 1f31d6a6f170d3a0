/* get_test.c - whole models from a hub, its content host and mirrors (tests/fetch_rig.py) into
 * folders and into the hub cache. */
#define _GNU_SOURCE /* chroot */
#include "fetch/get.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/resource.h>

#include "base/digest.h"
#include "checkpoint/hub.h"
#include "fetch/minisign.h"
#include "tests/rig.h"

static rig servers;

static int start_servers(void **state) {
    (void)state;
    servers = rig_start();
    folder_make(&servers.home, "signed");
    return 0;
}

static int stop_servers(void **state) {
    (void)state;
    rig_stop(&servers);
    return 0;
}

/* What the engine needs of the toy. */
static const char *const needed[] = {
    "config.json",       "joint_head.safetensors", "joint_head_config.json",
    "model.safetensors", "tokenizer.json",         "tokenizer_config.json"};
enum { N_NEEDED = sizeof needed / sizeof *needed, N_ALL = N_NEEDED + 4 };

/* A test's folder, its options and what came of them. */
typedef struct {
    folder home;
    char dir[300], cache[300];
    get_options options;
    get_result result;
    clef_error err;
    /* what watch saw */
    uint64_t stop_at; /* stops when so many bytes have come; 0: never */
    atomic_bool stop; /* asked by every thread */
    unsigned n_planned, n_checked, n_came, n_retries, n_present, n_fetched;
    uint64_t fetched, last_have, last_size;
    char retry[1000];
} fetch;

static void watch(void *user, const get_event *e) {
    fetch *f = user;
    unsigned *const counts[] = {[GET_PLANNED] = &f->n_planned, [GET_CHECKED] = &f->n_checked,
                                [GET_CAME] = &f->n_came,       [GET_RETRY] = &f->n_retries,
                                [GET_PRESENT] = &f->n_present, [GET_FETCHED] = &f->n_fetched};
    (*counts[e->kind])++;
    f->fetched = e->fetched;
    f->last_have = e->all_have;
    f->last_size = e->all_size;
    assert_true(e->have <= e->size && e->all_have <= e->all_size);
    if (e->kind == GET_RETRY) snprintf(f->retry, sizeof f->retry, "%s", e->text);
    if (f->stop_at > 0 && e->fetched >= f->stop_at) f->stop = true;
}

static bool is_stopped(void *user) {
    fetch *f = user;
    return f->stop;
}

/* Org/Toy of the hub into the plain folder. */
static void begin(fetch *f) {
    *f = (fetch){.home = folder_new()};
    snprintf(f->dir, sizeof f->dir, "%s/out", f->home.path);
    snprintf(f->cache, sizeof f->cache, "%s/hub", f->home.path);
    f->options = (get_options){.repo = "Org/Toy",
                               .dir = f->dir,
                               .hub_cache = f->cache,
                               .endpoint = servers.hub,
                               .ca_file = servers.ca,
                               .retry_ms = 1,
                               .jobs = 2,
                               .watch = watch};
    rig_forget(&servers);
}

static clef_status get(fetch *f) {
    f->options.user = f;
    f->options.stop = is_stopped;
    free(f->result.folder);
    f->result = (get_result){0};
    f->n_planned = f->n_checked = f->n_came = f->n_retries = f->n_present = f->n_fetched = 0;
    f->stop = false;
    f->err = (clef_error){0};
    return get_run(&f->result, &f->options, &f->err);
}

static void end(fetch *f) {
    free(f->result.folder);
    folder_remove(f->home.path);
}

static void arrived(fetch *f) {
    if (get(f) != CLEF_OK) fail_msg("%s", f->err.text);
    assert_non_null(f->result.folder);
    assert_int_equal(f->n_planned, 1);
    assert_true(f->last_have == f->last_size && f->last_size == f->result.bytes);
    assert_int_equal(f->n_fetched, f->result.n_fetched);
}

static void refused(fetch *f, clef_status status, const char *words) {
    const clef_status s = get(f);
    if (s != status || strstr(f->err.text, words) == NULL)
        fail_msg("status %d: '%s'; wanted %d: '%s'", (int)s, f->err.text, (int)status, words);
    assert_null(f->result.folder);
}

/* The file of the result's folder is the published one. */
static bool has(const fetch *f, const char *name) {
    char path[1024], published[1024];
    snprintf(path, sizeof path, "%s/%s", f->result.folder, name);
    snprintf(published, sizeof published, "%s/files/%s", servers.home.path, name);
    return rig_same(path, published);
}

static const char *in_dir(const fetch *f, const char *name) {
    char path[600];
    snprintf(path, sizeof path, "out/%s", name);
    return folder_path(&f->home, path);
}

/* Files and folders below the path, itself not counted. */
static unsigned n_entries;
static int count_entry(const char *path, const struct stat *st, int kind, struct FTW *at) {
    (void)path;
    (void)st;
    (void)kind;
    n_entries += at->level > 0;
    return 0;
}

static unsigned count_entries(const char *path) {
    n_entries = 0;
    assert_int_equal(nftw(path, count_entry, 8, FTW_PHYS), 0);
    return n_entries;
}

/* ---- from a hub ------------------------------------------------------------------------------ */

static void what_the_engine_needs_comes_into_a_folder(void **state) {
    (void)state;
    fetch f;
    begin(&f);
    arrived(&f);
    assert_string_equal(f.result.folder, f.dir);
    assert_string_equal(f.result.commit, RIG_COMMIT);
    for (size_t i = 0; i < N_NEEDED; i++) assert_true(has(&f, needed[i]));
    assert_int_equal(count_entries(f.dir), N_NEEDED); /* nothing else, and nothing left over */
    assert_true(f.result.fetched == f.result.bytes && f.result.n_fetched == N_NEEDED);
    end(&f);
}

static void every_file_comes_when_asked_for(void **state) {
    (void)state;
    fetch f;
    begin(&f);
    f.options.all = true;
    arrived(&f);
    assert_int_equal(f.result.n_files, N_ALL);
    assert_true(has(&f, ".eval/a b.yaml") && has(&f, "joint_schema_model.py"));
    assert_true(has(&f, "empty.txt"));
    end(&f);
}

static void patterns_select_files(void **state) {
    (void)state;
    fetch f;
    begin(&f);
    static const char *const patterns[] = {"token*.json", ".eval/*"};
    f.options.include = patterns;
    f.options.n_include = 2;
    arrived(&f);
    assert_int_equal(f.result.n_files, 3);
    assert_true(has(&f, "tokenizer.json") && has(&f, ".eval/a b.yaml"));
    end(&f);
}

static void a_pattern_that_selects_nothing_is_refused(void **state) {
    (void)state;
    fetch f;
    begin(&f);
    static const char *const patterns[] = {"*.json", "*.gguf"};
    f.options.include = patterns;
    f.options.n_include = 2;
    refused(&f, CLEF_ERR_INPUT, "--include: no file of Org/Toy matches '*.gguf'");
    end(&f);
}

static void what_is_there_is_not_fetched_again(void **state) {
    (void)state;
    fetch f;
    begin(&f);
    arrived(&f);
    rig_forget(&servers);
    arrived(&f);
    assert_int_equal(f.n_present, N_NEEDED);
    assert_true(f.result.fetched == 0 && f.result.n_fetched == 0);
    assert_true(rig_count(&servers, "content", "GET") == 0);
    assert_true(rig_count(&servers, "hub", "/tree") == 2); /* only the list, in two pages */
    end(&f);
}

static void a_changed_file_is_replaced(void **state) {
    (void)state;
    fetch f;
    begin(&f);
    arrived(&f);
    FILE *file = fopen(in_dir(&f, "model.safetensors"), "r+b");
    assert_non_null(file);
    assert_true(fseek(file, 1000, SEEK_SET) == 0 && fputc('x', file) == 'x' && fclose(file) == 0);
    assert_false(has(&f, "model.safetensors"));
    arrived(&f);
    assert_true(has(&f, "model.safetensors") && f.result.n_fetched == 1);
    end(&f);
}

static void a_link_is_replaced_and_not_followed(void **state) {
    (void)state;
    fetch f;
    begin(&f);
    folder_make(&f.home, "out");
    folder_write(&f.home, "victim", STR("mine"));
    folder_link(&f.home, "out/config.json", "../victim");
    folder_link(&f.home, "out/tokenizer.json.part", "../victim");
    refused(&f, CLEF_ERR_IO, "tokenizer.json: cannot be created");
    assert_int_equal(unlink(in_dir(&f, "tokenizer.json.part")), 0);
    arrived(&f);
    assert_true(has(&f, "config.json"));
    buf victim = {0};
    assert_int_equal(file_read(&victim, folder_path(&f.home, "victim"), 100, NULL), CLEF_OK);
    assert_string_equal(victim.p, "mine");
    buf_free(&victim);
    end(&f);
}

static void a_linked_folder_is_not_entered(void **state) {
    (void)state;
    fetch f;
    begin(&f);
    folder_make(&f.home, "out");
    folder_make(&f.home, "elsewhere");
    folder_link(&f.home, "out/.eval", "../elsewhere");
    f.options.all = true;
    refused(&f, CLEF_ERR_IO, ".eval/a b.yaml: its folder cannot be made");
    assert_int_equal(count_entries(folder_path(&f.home, "elsewhere")), 0);
    end(&f);
}

static void a_renamed_repository_is_followed(void **state) {
    (void)state;
    fetch f;
    begin(&f);
    f.options.repo = "Old/Name";
    f.options.all = true;
    arrived(&f);
    assert_int_equal(f.result.n_files, N_ALL);
    end(&f);
}

static void a_token_opens_a_gated_model_and_reaches_the_hub_alone(void **state) {
    (void)state;
    fetch f;
    begin(&f);
    f.options.repo = "Org/Gated";
    refused(&f, CLEF_ERR_IO,
            "the server answered 401 (Access to model Org/Gated is restricted); a gated or private "
            "model needs HF_TOKEN");
    f.options.token = "hf_wrong";
    refused(&f, CLEF_ERR_IO, "the server answered 401");
    f.options.token = "hf_right";
    arrived(&f);
    assert_true(rig_count(&servers, "hub", "Bearer hf_right") >= 3 + N_NEEDED);
    assert_true(rig_count(&servers, "content", "GET\t/blobs/") == 2); /* the files that are large */
    assert_true(rig_count(&servers, "content", "hf_right") == 0);
    assert_true(rig_count(&servers, "content", "Bearer") == 0);
    end(&f);
}

static void a_missing_repository_is_named_by_the_hub(void **state) {
    (void)state;
    fetch f;
    begin(&f);
    f.options.repo = "Org/Nope-1";
    refused(&f, CLEF_ERR_IO,
            "/api/models/Org/Nope-1/revision/main: the server answered 404 "
            "(Repository not found)");
    assert_false(file_exists(f.dir)); /* nothing is made before it is known what for */
    f.options.repo = "Org/../Toy";
    refused(&f, CLEF_ERR_INPUT, "'Org/../Toy': wanted a name of the form Org/Name");
    end(&f);
}

/* ---- the hub cache --------------------------------------------------------------------------- */

static void the_hub_cache_gets_blobs_links_and_a_reference(void **state) {
    (void)state;
    fetch f;
    begin(&f);
    f.options.dir = NULL;
    f.options.include = (const char *const[]){"*"};
    f.options.n_include = 1;
    arrived(&f);
    for (size_t i = 0; i < N_NEEDED; i++) assert_true(has(&f, needed[i]));
    char *dir = NULL;
    assert_int_equal(hub_resolve(&dir, "Org/Toy", f.cache, &f.err), CLEF_OK);
    assert_string_equal(dir, f.result.folder);
    free(dir);
    char target[256] = {0};
    const char *link = "hub/models--Org--Toy/snapshots/" RIG_COMMIT "/.eval/a b.yaml";
    assert_true(readlink(folder_path(&f.home, link), target, sizeof target - 1) > 0);
    /* As huggingface_hub: git's name for a small file, from a folder one deeper. */
    assert_true(strncmp(target, "../../../blobs/", 15) == 0 && strlen(target) == 15 + 40);
    buf ref = {0};
    const char *path = folder_path(&f.home, "hub/models--Org--Toy/refs/main");
    assert_int_equal(file_read(&ref, path, 100, NULL), CLEF_OK);
    assert_string_equal(ref.p, RIG_COMMIT);
    buf_free(&ref);
    rig_forget(&servers);
    arrived(&f);
    assert_true(f.result.fetched == 0);
    end(&f);
}

/* The cache names content, so files with the same bytes are one blob: one job has to fetch it. */
static void files_of_one_content_are_fetched_once_into_the_cache(void **state) {
    (void)state;
    fetch f;
    begin(&f);
    f.options.repo = "Org/Same";
    f.options.dir = NULL;
    f.options.all = true;
    f.options.jobs = 3;
    arrived(&f);
    assert_int_equal(rig_count(&servers, "hub", "GET\t/config.json"), 1);
    assert_true(f.result.n_files == 3 && f.result.n_fetched == 1 && f.n_present == 2);
    char path[1024];
    for (unsigned i = 1; i <= 2; i++) {
        snprintf(path, sizeof path, "%s/copies/%u.json", f.result.folder, i);
        assert_true(rig_same(path, RIG_MODEL "/config.json"));
    }
    arrived(&f);
    assert_int_equal(f.n_present, 3);
    f.options.dir = f.dir;
    arrived(&f);
    assert_int_equal(f.result.n_fetched, 3);
    end(&f);
}

static void links_in_the_cache_lead_nothing_out_of_it(void **state) {
    (void)state;
    static const char *const planted[] = {"snapshots", "refs", "blobs"};
    for (size_t i = 0; i < sizeof planted / sizeof *planted; i++) {
        fetch f;
        begin(&f);
        f.options.dir = NULL;
        char link[100];
        folder_make(&f.home, "hub");
        folder_make(&f.home, "hub/models--Org--Toy");
        folder_make(&f.home, "elsewhere");
        snprintf(link, sizeof link, "hub/models--Org--Toy/%s", planted[i]);
        folder_link(&f.home, link, "../../elsewhere");
        refused(&f, CLEF_ERR_IO, "its folder cannot be made: Not a directory");
        assert_int_equal(count_entries(folder_path(&f.home, "elsewhere")), 0);
        end(&f);
    }
}

static void other_revisions_have_their_own_references(void **state) {
    (void)state;
    fetch f;
    begin(&f);
    f.options.dir = NULL;
    f.options.revision = "refs/pr/1";
    arrived(&f);
    assert_true(file_exists(folder_path(&f.home, "hub/models--Org--Toy/refs/refs/pr/1")));
    assert_false(file_exists(folder_path(&f.home, "hub/models--Org--Toy/refs/main")));
    f.options.revision = RIG_COMMIT;
    arrived(&f);
    assert_int_equal(count_entries(folder_path(&f.home, "hub/models--Org--Toy/refs")), 3);
    f.options.revision = "../../x";
    refused(&f, CLEF_ERR_INPUT, "--revision: '../../x' is refused: it has a part");
    end(&f);
}

static void an_interrupted_cache_holds_no_model(void **state) {
    (void)state;
    fetch f;
    begin(&f);
    f.options.dir = NULL;
    f.stop_at = 100000;
    refused(&f, CLEF_ERR_CANCELLED, "stopped");
    char *dir = NULL;
    assert_int_equal(hub_resolve(&dir, "Org/Toy", f.cache, NULL), CLEF_ERR_IO);
    f.stop_at = 0;
    arrived(&f);
    end(&f);
}

static void a_model_that_is_not_here_is_met_with_advice(void **state) {
    (void)state;
    fetch f;
    begin(&f);
    buf text = {0};
    get_advice(&text, "Cloudflare/clef-flash", f.cache);
    assert_string_equal(text.p, "; 'clef get Cloudflare/clef-flash' fetches it, 19.1 GB");
    text.n = 0;
    get_advice(&text, "Org/Toy", f.cache);
    assert_string_equal(text.p, "; 'clef get Org/Toy' fetches it");
    text.n = 0;
    get_advice(&text, f.home.path, f.cache);
    get_advice(&text, "no name", f.cache);
    f.options.dir = NULL;
    arrived(&f);
    get_advice(&text, "Org/Toy", f.cache);
    assert_int_equal(text.n, 0);
    buf_free(&text);
    end(&f);
}

/* ---- going on -------------------------------------------------------------------------------- */

static void a_stop_leaves_what_the_next_run_goes_on_from(void **state) {
    (void)state;
    fetch f;
    begin(&f);
    f.options.jobs = 1; /* one after the other: the stop meets the largest */
    f.stop_at = 500000;
    refused(&f, CLEF_ERR_CANCELLED, "stopped");
    const uint64_t before = f.fetched;
    assert_true(before >= 500000 && before < 1000000);
    assert_true(file_exists(in_dir(&f, "model.safetensors.part")));
    assert_false(file_exists(in_dir(&f, "model.safetensors")));
    f.stop_at = 0;
    arrived(&f);
    assert_true(f.result.fetched + before == f.result.bytes);
    assert_true(rig_count(&servers, "content", "\t206") >= 1);
    assert_int_equal(count_entries(f.dir), N_NEEDED);
    end(&f);
}

static void a_part_of_another_file_is_begun_again(void **state) {
    (void)state;
    fetch f;
    begin(&f);
    static const str notes[] = {
        {"", 0}, {"clef-part/1\n320128\n", 19}, {"clef-part/1\n7\nx\n\n\n", 18}};
    for (size_t i = 0; i < 3; i++) {
        if (i == 0) folder_make(&f.home, "out");
        folder_write(&f.home, "out/joint_head.safetensors.part", STR("not the beginning"));
        folder_write(&f.home, "out/joint_head.safetensors.part.note", notes[i]);
        arrived(&f);
        assert_true(has(&f, "joint_head.safetensors"));
        assert_int_equal(f.n_retries, 0);
        assert_int_equal(unlink(in_dir(&f, "joint_head.safetensors")), 0);
    }
    end(&f);
}

/* A note is written beside the old one; a kill may leave it there. */
static void what_a_killed_run_left_is_cleared_away(void **state) {
    (void)state;
    fetch f;
    begin(&f);
    folder_make(&f.home, "out");
    f.stop_at = 1;
    refused(&f, CLEF_ERR_CANCELLED, "stopped");
    f.stop_at = 0;
    for (size_t i = 0; i < N_NEEDED; i++) {
        char path[300];
        snprintf(path, sizeof path, "out/%s.part.note~", needed[i]);
        if (!file_exists(folder_path(&f.home, path))) folder_write(&f.home, path, STR("clef"));
    }
    arrived(&f);
    assert_int_equal(count_entries(f.dir), N_NEEDED);
    /* Killed after the file had its name, and before its note was gone. */
    folder_write(&f.home, "out/config.json.part.note", STR("clef"));
    arrived(&f);
    assert_int_equal(count_entries(f.dir), N_NEEDED);
    end(&f);
}

static void a_complete_part_needs_no_server(void **state) {
    (void)state;
    fetch f;
    begin(&f);
    f.stop_at = 1;
    f.options.jobs = 1;
    f.options.include = (const char *const[]){"joint_head.safetensors"};
    f.options.n_include = 1;
    refused(&f, CLEF_ERR_CANCELLED, "stopped");
    buf whole = {0};
    assert_int_equal(file_read(&whole, RIG_MODEL "/joint_head.safetensors", 1 << 20, NULL),
                     CLEF_OK);
    folder_write(&f.home, "out/joint_head.safetensors.part", (str){whole.p, whole.n});
    f.stop_at = 0;
    rig_forget(&servers);
    arrived(&f);
    assert_true(f.result.fetched == 0 && rig_count(&servers, "content", "GET") == 0);
    /* And one whose bytes are wrong is fetched. */
    whole.p[1000] ^= 1;
    f.stop_at = 1;
    assert_int_equal(unlink(in_dir(&f, "joint_head.safetensors")), 0);
    refused(&f, CLEF_ERR_CANCELLED, "stopped");
    folder_write(&f.home, "out/joint_head.safetensors.part", (str){whole.p, whole.n});
    f.stop_at = 0;
    arrived(&f);
    assert_true(has(&f, "joint_head.safetensors") && f.result.fetched == f.result.bytes);
    buf_free(&whole);
    end(&f);
}

static void two_runs_do_not_mix_their_bytes(void **state) {
    (void)state;
    fetch f;
    begin(&f);
    folder_make(&f.home, "out");
    const int fd = open(in_dir(&f, "config.json.part"), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    assert_true(fd >= 0 && flock(fd, LOCK_EX) == 0);
    refused(&f, CLEF_ERR_IO, "config.json: another program is fetching it now");
    assert_int_equal(f.n_fetched, N_NEEDED - 1); /* the others came */
    close(fd);
    arrived(&f);
    end(&f);
}

/* ---- the disk -------------------------------------------------------------------------------- */

/* get() in a child that `prepare` changes; it has to fail for want of the system, with the words.
 */
static void refused_in_child(fetch *f, void (*prepare)(void), const char *words) {
    fflush(NULL);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prepare();
        const clef_status s = get(f);
        if (s == CLEF_ERR_IO && strstr(f->err.text, words) != NULL) _exit(0);
        fprintf(stderr, "status %d: %s\n", (int)s, f->err.text);
        _exit(1);
    }
    int status = 0;
    while (waitpid(pid, &status, 0) < 0) assert_int_equal(errno, EINTR);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Files of at most 256 KiB can be written: the shape of a disk that fills up. */
static void limit_files(void) {
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &(struct rlimit){1 << 18, 1 << 18}) != 0) _exit(99);
}

static void a_full_disk_is_met_and_gone_on_from(void **state) {
    (void)state;
    fetch f;
    begin(&f);
    refused_in_child(&f, limit_files, "make room and give the same command again");
    assert_true(file_exists(in_dir(&f, "model.safetensors.part")));
    assert_false(file_exists(in_dir(&f, "model.safetensors")));
    arrived(&f);
    for (size_t i = 0; i < N_NEEDED; i++) assert_true(has(&f, needed[i]));
    assert_int_equal(f.result.n_fetched, 2); /* the two that were too large came now */
    end(&f);
}

static void become_nobody(void) {
    if (geteuid() == 0 && (chroot(".") != 0 || chdir("/") != 0 || setuid(65534) != 0)) _exit(99);
}

static void a_read_only_folder_is_named(void **state) {
    (void)state;
    fetch f;
    begin(&f);
    assert_int_equal(chmod(f.home.path, 0755), 0);
    folder_make(&f.home, "out");
    assert_int_equal(chmod(f.dir, 0555), 0);
    assert_int_equal(chmod(servers.home.path, 0755), 0);
    refused_in_child(&f, become_nobody, "cannot be created: Permission denied");
    assert_int_equal(count_entries(f.dir), 0);
    assert_true(rig_count(&servers, "content", "GET") == 0);
    assert_int_equal(chmod(f.dir, 0755), 0);
    end(&f);
}

static void want_of_room_is_known_before_anything_comes(void **state) {
    (void)state;
    fetch f;
    begin(&f);
    f.options.repo = "Org/Vast";
    refused(&f, CLEF_ERR_IO, "4398.0 GB to come need 4617.9 GB of room, and ");
    assert_true(rig_count(&servers, "hub", "resolve") == 0);
    end(&f);
}

/* ---- a hub that is wrong --------------------------------------------------------------------- */

static void a_hub_that_is_wrong_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *repo;
        clef_status status;
        const char *words;
    } cases[] = {
        {"Org/Liar", CLEF_ERR_FORMAT, "what came has the sum"},
        {"Org/Climbs", CLEF_ERR_FORMAT, "the path 'a/../../config.json' is refused: it has a part"},
        {"Org/Rooted", CLEF_ERR_FORMAT, "Org/Rooted: the path '/config.json'"},
        {"Org/Partly", CLEF_ERR_UNSUPPORTED, "the path 'config.json.part' is one that fetching"},
        {"Org/Unsized", CLEF_ERR_FORMAT, "'config.json' without an oid of 40 digits and a size"},
        {"Org/Unnamed", CLEF_ERR_FORMAT, "'config.json' without an oid of 40 digits and a size"},
        {"Org/Empty", CLEF_ERR_INPUT, "Org/Empty: nothing there"},
        {"Org/Twice", CLEF_ERR_FORMAT, "'config.json' and 'config.json' are one file"},
        {"Org/Twins", CLEF_ERR_FORMAT, "are one file where case does not count"},
        {"Org/Below", CLEF_ERR_FORMAT, "'config.json' is a file, and a folder for"},
        {"Org/Sizes", CLEF_ERR_FORMAT, "have one sum and two sizes"},
        {"Org/Object", CLEF_ERR_FORMAT, "an object, wanted an array of files"},
        {"Org/Moved", CLEF_ERR_FORMAT, "no \"sha\" with a commit in the answer"},
        {"Org/Garbled", CLEF_ERR_FORMAT, "revision/main"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fetch f;
        begin(&f);
        f.options.repo = cases[i].repo;
        f.options.all = true;
        refused(&f, cases[i].status, cases[i].words);
        assert_false(file_exists(in_dir(&f, "config.json")));
        assert_false(file_exists(folder_path(&f.home, "config.json")));
        end(&f);
    }
}

/* The hub names a commit of the release, and other sums than those that are built in. */
static void a_hub_may_not_change_the_release(void **state) {
    (void)state;
    fetch f;
    begin(&f);
    f.options.repo = "Cloudflare/clef-flash";
    refused(&f, CLEF_ERR_FORMAT,
            "Cloudflare/clef-flash: the hub's 'config.json' is not that of the release");
    /* A branch is what the hub says it is, so it is not asked for one that nobody named. */
    assert_true(rig_count(&servers, "hub", "clef-flash/revision/" RIG_COMMIT) == 1);
    assert_true(rig_count(&servers, "hub", "clef-flash/revision/main") == 0);
    f.options.revision = "main";
    refused(&f, CLEF_ERR_FORMAT, "is not that of the release");
    end(&f);
}

static void a_hub_may_not_answer_with_another_commit(void **state) {
    (void)state;
    fetch f;
    begin(&f);
    f.options.repo = "Org/Swapped";
    f.options.revision = RIG_COMMIT;
    refused(&f, CLEF_ERR_FORMAT, "the commit aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    end(&f);
}

/* ---- by a signed manifest -------------------------------------------------------------------- */

/* Signs `text` as FOLDER/NAME with a new key, whose public file is FOLDER/NAME.pub. */
static void sign(const folder *at, const char *name, str text) {
    buf public = {0}, secret_text = {0}, signature = {0};
    minisign_secret secret;
    char other[300];
    folder_write(at, name, text);
    assert_int_equal(minisign_generate(&public, &secret_text, NULL, 0, 0, NULL), CLEF_OK);
    assert_int_equal(minisign_secret_read(&secret, (str){secret_text.p, secret_text.n}, "test",
                                          NULL, NULL, NULL),
                     CLEF_OK);
    assert_int_equal(
        minisign_sign_file(&signature, &secret, folder_path(at, name), STR("test"), NULL), CLEF_OK);
    snprintf(other, sizeof other, "%s.minisig", name);
    folder_write(at, other, (str){signature.p, signature.n});
    snprintf(other, sizeof other, "%s.pub", name);
    folder_write(at, other, (str){public.p, public.n});
    buf_free(&public);
    buf_free(&secret_text);
    buf_free(&signature);
}

/* A manifest of the toy's needed files with the sources "SERVER/PLACE/". */
static void add_manifest(buf *out, const char *repo, const char *const *sources) {
    buf_printf(out,
               "{\"manifest\": \"clef-manifest/1\", \"repo\": \"%s\", \"commit\": \"" RIG_COMMIT
               "\", \"created\": \"2026-11-15T02:35:00Z\", \"license\": {\"id\": \"Apache-2.0\", "
               "\"text_file\": \"README.md\", \"text_sha256\": \"",
               repo);
    char hex[DIGEST_HEX];
    uint64_t size = 0;
    assert_int_equal(digest_file(hex, &size, RIG_MODEL "/config.json", NULL, NULL, NULL), CLEF_OK);
    buf_printf(out, "%s\"}, \"sources\": [", hex);
    for (size_t i = 0; sources[i] != NULL; i++)
        buf_printf(out, "%s\"%s\"", i == 0 ? "" : ", ", sources[i]);
    buf_add_text(out, "], \"files\": [");
    for (size_t i = 0; i < N_NEEDED; i++) {
        char path[256];
        snprintf(path, sizeof path, RIG_MODEL "/%s", needed[i]);
        assert_int_equal(digest_file(hex, &size, path, NULL, NULL, NULL), CLEF_OK);
        buf_printf(out, "%s{\"path\": \"%s\", \"size\": %llu, \"sha256\": \"%s\"}",
                   i == 0 ? "" : ", ", needed[i], (unsigned long long)size, hex);
    }
    buf_add_text(out, "]}\n");
    assert_false(out->failed);
}

/* Options that fetch by a manifest in the test's folder, signed, of Org/Toy with these sources. */
static void begin_manifest(fetch *f, const char *repo, const char *first, const char *second) {
    static char urls[2][128], path[300], key[300];
    begin(f);
    const char *places[] = {first, second};
    const char *sources[3] = {0};
    for (size_t i = 0; i < 2 && places[i] != NULL; i++) {
        snprintf(urls[i], sizeof urls[i], "%s/%s/", servers.mirror, places[i]);
        sources[i] = urls[i];
    }
    buf text = {0};
    add_manifest(&text, repo, sources);
    sign(&f->home, "m.json", (str){text.p, text.n});
    buf_free(&text);
    snprintf(path, sizeof path, "%s/m.json", f->home.path);
    snprintf(key, sizeof key, "%s/m.json.pub", f->home.path);
    f->options.repo = NULL;
    f->options.manifest = path;
    f->options.key = key;
}

static void the_sources_of_a_manifest_are_tried_in_order(void **state) {
    (void)state;
    fetch f;
    begin_manifest(&f, "Org/Toy", "wrong", "good");
    arrived(&f);
    for (size_t i = 0; i < N_NEEDED; i++) assert_true(has(&f, needed[i]));
    assert_true(rig_count(&servers, "mirror", "/wrong/") == N_NEEDED);
    assert_true(rig_count(&servers, "mirror", "/good/") == N_NEEDED);
    assert_true(rig_count(&servers, "hub", "GET") == 0);
    assert_string_equal(f.result.commit, RIG_COMMIT);
    end(&f);
}

static void the_sources_of_the_user_come_first(void **state) {
    (void)state;
    fetch f;
    begin_manifest(&f, "Org/Toy", "wrong", NULL);
    char url[128];
    snprintf(url, sizeof url, "%s/good", servers.mirror); /* a slash is added */
    const char *const sources[] = {url};
    f.options.sources = sources;
    f.options.n_sources = 1;
    arrived(&f);
    assert_true(rig_count(&servers, "mirror", "/wrong/") == 0);
    end(&f);
}

static void a_source_helps_a_hub_too(void **state) {
    (void)state;
    fetch f;
    begin(&f);
    char url[128];
    snprintf(url, sizeof url, "%s/good/", servers.mirror);
    const char *const sources[] = {url};
    f.options.sources = sources;
    f.options.n_sources = 1;
    f.options.token = "hf_right";
    arrived(&f);
    assert_true(rig_count(&servers, "mirror", "/good/") == N_NEEDED);
    assert_true(rig_count(&servers, "mirror", "hf_right") == 0);
    assert_true(rig_count(&servers, "hub", "resolve") == 0);
    end(&f);
}

static void a_manifest_and_its_signature_come_from_a_url(void **state) {
    (void)state;
    fetch f;
    begin_manifest(&f, "Org/Toy", "good", NULL);
    buf text = {0};
    char url[128], key[300];
    const char *const sources[] = {NULL};
    add_manifest(&text, "Org/Toy", sources);
    char name[40];
    snprintf(name, sizeof name, "signed/url.json");
    sign(&servers.home, name, (str){text.p, text.n});
    buf_free(&text);
    snprintf(url, sizeof url, "%s/%s", servers.mirror, name);
    snprintf(key, sizeof key, "%s/%s.pub", servers.home.path, name);
    f.options.manifest = url;
    f.options.key = key;
    refused(&f, CLEF_ERR_INPUT, "the manifest names no source; --source gives one");
    char source[128];
    snprintf(source, sizeof source, "%s/good/", servers.mirror);
    const char *const given[] = {source};
    f.options.sources = given;
    f.options.n_sources = 1;
    arrived(&f);
    assert_true(rig_count(&servers, "mirror", "/signed/url.json.minisig") == 2);
    end(&f);
}

static void a_manifest_with_a_wrong_signature_is_refused_before_it_is_read(void **state) {
    (void)state;
    fetch f;
    begin_manifest(&f, "Org/Toy", "good", NULL);
    f.options.key = NULL; /* the key of Freeweights has not signed this */
    refused(&f, CLEF_ERR_FORMAT, "m.json.minisig");
    end(&f);
    begin_manifest(&f, "Org/Toy", "good", NULL);
    folder_write(&f.home, "m.json", STR("[[[[ no manifest, and not what was signed"));
    refused(&f, CLEF_ERR_FORMAT, "m.json.minisig");
    assert_int_equal(unlink(folder_path(&f.home, "m.json.minisig")), 0);
    refused(&f, CLEF_ERR_IO, "m.json.minisig: No such file");
    assert_false(file_exists(f.dir));
    end(&f);
}

static void a_manifest_of_something_else_is_refused(void **state) {
    (void)state;
    fetch f;
    begin_manifest(&f, "Org/Toy", "good", NULL);
    f.options.repo = "Org/Other";
    refused(&f, CLEF_ERR_FORMAT, "a manifest of 'Org/Toy', wanted one of 'Org/Other'");
    f.options.repo = "Org/Toy";
    f.options.revision = "17f0b0ad64efb65d273590632833508766b2aae6";
    refused(&f, CLEF_ERR_FORMAT, "a manifest of commit '" RIG_COMMIT "'");
    f.options.revision = RIG_COMMIT;
    arrived(&f);
    end(&f);
}

static void a_manifest_fills_the_hub_cache_too(void **state) {
    (void)state;
    fetch f;
    begin_manifest(&f, "Org/Toy", "good", NULL);
    f.options.dir = NULL;
    arrived(&f);
    char *dir = NULL;
    assert_int_equal(hub_resolve(&dir, "Org/Toy", f.cache, NULL), CLEF_OK);
    assert_string_equal(dir, f.result.folder);
    free(dir);
    assert_true(has(&f, "model.safetensors"));
    end(&f);
}

static void options_that_contradict_each_other_are_refused(void **state) {
    (void)state;
    fetch f;
    begin(&f);
    f.options.jobs = 17;
    refused(&f, CLEF_ERR_INPUT, "17 files at a time, the limit is 16");
    f.options.jobs = 1;
    f.options.key = "x";
    refused(&f, CLEF_ERR_INPUT, "--key is for --manifest");
    f.options.manifest = "https://a.example/m.json?word=secret";
    refused(&f, CLEF_ERR_INPUT, "https://a.example/m.json: ");
    assert_null(strstr(f.err.text, "secret"));
    f.options.manifest = NULL;
    f.options.key = NULL;
    f.options.endpoint = "ftp://127.0.0.1";
    refused(&f, CLEF_ERR_INPUT, "ftp://127.0.0.1");
    f.options.endpoint = servers.hub;
    f.options.sources = (const char *const[]){"https://name:word@127.0.0.3/"};
    f.options.n_sources = 1;
    refused(&f, CLEF_ERR_INPUT, "holds a name or a password");
    assert_null(strstr(f.err.text, "word@"));
    end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_engine_needs_comes_into_a_folder),
        cmocka_unit_test(every_file_comes_when_asked_for),
        cmocka_unit_test(patterns_select_files),
        cmocka_unit_test(a_pattern_that_selects_nothing_is_refused),
        cmocka_unit_test(what_is_there_is_not_fetched_again),
        cmocka_unit_test(a_changed_file_is_replaced),
        cmocka_unit_test(a_link_is_replaced_and_not_followed),
        cmocka_unit_test(a_linked_folder_is_not_entered),
        cmocka_unit_test(a_renamed_repository_is_followed),
        cmocka_unit_test(a_token_opens_a_gated_model_and_reaches_the_hub_alone),
        cmocka_unit_test(a_missing_repository_is_named_by_the_hub),
        cmocka_unit_test(the_hub_cache_gets_blobs_links_and_a_reference),
        cmocka_unit_test(files_of_one_content_are_fetched_once_into_the_cache),
        cmocka_unit_test(links_in_the_cache_lead_nothing_out_of_it),
        cmocka_unit_test(other_revisions_have_their_own_references),
        cmocka_unit_test(an_interrupted_cache_holds_no_model),
        cmocka_unit_test(a_model_that_is_not_here_is_met_with_advice),
        cmocka_unit_test(a_stop_leaves_what_the_next_run_goes_on_from),
        cmocka_unit_test(a_part_of_another_file_is_begun_again),
        cmocka_unit_test(what_a_killed_run_left_is_cleared_away),
        cmocka_unit_test(a_complete_part_needs_no_server),
        cmocka_unit_test(two_runs_do_not_mix_their_bytes),
        cmocka_unit_test(a_full_disk_is_met_and_gone_on_from),
        cmocka_unit_test(a_read_only_folder_is_named),
        cmocka_unit_test(want_of_room_is_known_before_anything_comes),
        cmocka_unit_test(a_hub_that_is_wrong_is_refused),
        cmocka_unit_test(a_hub_may_not_change_the_release),
        cmocka_unit_test(a_hub_may_not_answer_with_another_commit),
        cmocka_unit_test(the_sources_of_a_manifest_are_tried_in_order),
        cmocka_unit_test(the_sources_of_the_user_come_first),
        cmocka_unit_test(a_source_helps_a_hub_too),
        cmocka_unit_test(a_manifest_and_its_signature_come_from_a_url),
        cmocka_unit_test(a_manifest_with_a_wrong_signature_is_refused_before_it_is_read),
        cmocka_unit_test(a_manifest_of_something_else_is_refused),
        cmocka_unit_test(a_manifest_fills_the_hub_cache_too),
        cmocka_unit_test(options_that_contradict_each_other_are_refused),
    };
    return cmocka_run_group_tests(tests, start_servers, stop_servers);
}
