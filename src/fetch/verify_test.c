/* verify_test.c - folders that are what their list says, and every way of being otherwise;
 * manifests of folders. Sums in the lists come from sha256sum's definition: digest_bytes is tested
 * against the standard's vectors in digest_test. */
#include "fetch/verify.h"

#include "tests/folder.h"

#include "base/file.h"

#define COMMIT "1111111111111111111111111111111111111111"
#define OTHER_COMMIT "2222222222222222222222222222222222222222"

/* A small model folder: path and content. */
static const char *const files[][2] = {{"config.json", "{}"},
                                       {"model.safetensors", "weights"},
                                       {"sub/notes.txt", "notes"},
                                       {"README.md", "read me"}};
enum { N_FILES = sizeof files / sizeof *files };

typedef struct {
    folder f;
    minisign_secret secret;
    char key[1024], dir[1024], list[1024]; /* paths: of the public key, of "m", of "list.json" */
} world;

static str text_of(const buf *b) {
    return (str){b->p, b->n};
}

static void keep(char out[1024], const char *path) {
    snprintf(out, 1024, "%s", path);
}

/* Signs `name` of the folder with the world's key. */
static void sign(const world *w, const char *name) {
    buf sig = {0};
    char signature[512];
    snprintf(signature, sizeof signature, "%s.minisig", name);
    clef_error err = {0};
    if (minisign_sign_file(&sig, &w->secret, folder_path(&w->f, name), STR("a comment"), &err) !=
        CLEF_OK)
        fail_msg("%s", err.text);
    folder_write(&w->f, signature, text_of(&sig));
    buf_free(&sig);
}

/* The list of the files as manifest or as SHA256SUMS; a wrong sum for file `wrong`. */
static void write_list(const world *w, const char *name, bool sums, const char *repo,
                       const char *commit) {
    buf text = {0};
    if (!sums)
        buf_printf(&text,
                   "{\"manifest\":\"clef-manifest/1\",\"repo\":\"%s\",\"commit\":\"%s\","
                   "\"files\":[",
                   repo, commit);
    for (int i = 0; i < N_FILES; i++) {
        char hex[DIGEST_HEX];
        const size_t n = strlen(files[i][1]);
        assert_int_equal(digest_bytes(hex, files[i][1], n, NULL), CLEF_OK);
        if (sums)
            buf_printf(&text, "%s  %s\n", hex, files[i][0]);
        else
            buf_printf(&text, "%s{\"path\":\"%s\",\"size\":%zu,\"sha256\":\"%s\"}",
                       i == 0 ? "" : ",", files[i][0], n, hex);
    }
    if (!sums) buf_add_text(&text, "]}");
    folder_write(&w->f, name, text_of(&text));
    buf_free(&text);
}

static world world_new(void) {
    world w = {.f = folder_new()};
    buf public = {0}, secret = {0};
    clef_error err = {0};
    assert_int_equal(minisign_generate(&public, &secret, NULL, 0, 0, &err), CLEF_OK);
    assert_int_equal(minisign_secret_read(&w.secret, text_of(&secret), "k", NULL, NULL, &err),
                     CLEF_OK);
    folder_write(&w.f, "key.pub", text_of(&public));
    keep(w.key, folder_path(&w.f, "key.pub"));
    keep(w.dir, folder_path(&w.f, "m"));
    keep(w.list, folder_path(&w.f, "list.json"));
    folder_make(&w.f, "m");
    folder_make(&w.f, "m/sub");
    for (int i = 0; i < N_FILES; i++) {
        char path[64];
        snprintf(path, sizeof path, "m/%s", files[i][0]);
        folder_write(&w.f, path, str_of(files[i][1]));
    }
    write_list(&w, "list.json", false, "Org/Name", COMMIT);
    sign(&w, "list.json");
    buf_free(&public);
    buf_free(&secret);
    return w;
}

/* Holds folder "m" to "list.json" with the world's key, unless `o` says otherwise. */
static clef_status run(verify_result *r, const world *w, const verify_options *o, clef_error *err) {
    verify_options all = {.dir = w->dir, .list = w->list, .key = w->key, .jobs = 2};
    if (o != NULL) {
        all = *o;
        if (all.dir == NULL) all.dir = w->dir;
    }
    return verify_run(r, &all, err);
}

/* The folder has exactly `n_faults`, and of `path` the verdict is `state`. */
static void found(const world *w, const char *path, verify_state state, size_t n_faults,
                  const char *words) {
    verify_result r = {0};
    clef_error err = {0};
    if (run(&r, w, NULL, &err) != CLEF_OK) fail_msg("%s", err.text);
    bool seen = false;
    for (size_t i = 0; i < r.n_files; i++) {
        if (!str_equal(r.files[i].path, str_of(path))) continue;
        seen = true;
        if (r.files[i].state != state)
            fail_msg("%s: state %d, %s", path, (int)r.files[i].state, r.files[i].detail.p);
        if (*words != '\0' && strstr(r.files[i].detail.p, words) == NULL)
            fail_msg("%s: %s; wanted: %s", path, r.files[i].detail.p, words);
    }
    assert_true(seen);
    assert_int_equal(r.n_faults, n_faults);
    verify_free(&r);
}

/* The list itself is refused, with these words. */
static void refused(const world *w, const verify_options *o, const char *words) {
    verify_result r = {0};
    clef_error err = {0};
    if (run(&r, w, o, &err) == CLEF_OK) fail_msg("taken; wanted: %s", words);
    if (strstr(err.text, words) == NULL) fail_msg("%s; wanted: %s", err.text, words);
    assert_int_equal(r.bytes, 0);
    verify_free(&r);
}

static void end(const world *w) {
    folder_remove(w->f.path);
}

static void a_folder_that_is_what_its_list_says_has_no_fault(void **state) {
    (void)state;
    world w = world_new();
    verify_result r = {0};
    clef_error err = {0};
    if (run(&r, &w, NULL, &err) != CLEF_OK) fail_msg("%s", err.text);
    assert_int_equal(r.n_faults, 0);
    assert_int_equal(r.n_of[VERIFY_RIGHT], N_FILES);
    assert_int_equal(r.trust, VERIFY_SIGNED);
    assert_int_equal(r.bytes, 2 + 7 + 5 + 7);
    assert_true(str_equal(text_of(&r.comment), STR("a comment")));
    verify_free(&r);
    end(&w);
}

static void a_changed_byte_is_found(void **state) {
    (void)state;
    world w = world_new();
    folder_write(&w.f, "m/model.safetensors", STR("weightz"));
    found(&w, "model.safetensors", VERIFY_CHANGED, 1, ", wanted ");
    end(&w);
}

static void another_size_is_found_without_reading(void **state) {
    (void)state;
    world w = world_new();
    folder_write(&w.f, "m/model.safetensors", STR("weights and more"));
    found(&w, "model.safetensors", VERIFY_CHANGED, 1, "16 bytes, wanted 7");
    end(&w);
}

static void two_files_swapped_are_both_found(void **state) {
    (void)state;
    world w = world_new();
    folder_write(&w.f, "m/model.safetensors", STR("read me"));
    folder_write(&w.f, "m/README.md", STR("weights"));
    found(&w, "model.safetensors", VERIFY_CHANGED, 2, "sha256");
    found(&w, "README.md", VERIFY_CHANGED, 2, "sha256");
    end(&w);
}

static void a_missing_file_is_found(void **state) {
    (void)state;
    world w = world_new();
    remove(folder_path(&w.f, "m/config.json"));
    found(&w, "config.json", VERIFY_MISSING, 1, "not there");
    end(&w);
}

static void a_missing_file_that_nobody_needs_is_no_fault(void **state) {
    (void)state;
    world w = world_new();
    remove(folder_path(&w.f, "m/README.md"));
    found(&w, "README.md", VERIFY_ABSENT, 0, "");
    end(&w);
}

static void every_file_is_wanted_where_all_are(void **state) {
    (void)state;
    world w = world_new();
    remove(folder_path(&w.f, "m/README.md"));
    verify_result r = {0};
    clef_error err = {0};
    const verify_options o = {.list = w.list, .key = w.key, .all = true};
    assert_int_equal(run(&r, &w, &o, &err), CLEF_OK);
    assert_int_equal(r.n_of[VERIFY_MISSING], 1);
    verify_free(&r);
    end(&w);
}

static void a_file_that_is_not_listed_is_told(void **state) {
    (void)state;
    world w = world_new();
    folder_write(&w.f, "m/sub/extra.txt", STR("x"));
    found(&w, "sub/extra.txt", VERIFY_OTHER, 0, "");
    end(&w);
}

static void a_file_that_the_engine_might_open_has_to_be_listed(void **state) {
    (void)state;
    world w = world_new();
    folder_write(&w.f, "m/model.safetensors.index.json", STR("{}"));
    found(&w, "model.safetensors.index.json", VERIFY_EXTRA, 1, "the engine might open it");
    end(&w);
}

static void a_link_to_the_right_bytes_is_found(void **state) {
    (void)state;
    world w = world_new();
    folder_write(&w.f, "elsewhere", STR("weights"));
    remove(folder_path(&w.f, "m/model.safetensors"));
    folder_link(&w.f, "m/model.safetensors", "../elsewhere");
    found(&w, "model.safetensors", VERIFY_LINKED, 1, "a link to ");
    end(&w);
}

static void a_link_inside_the_folder_is_found_too(void **state) {
    (void)state;
    world w = world_new();
    folder_write(&w.f, "m/other.txt", STR("weights"));
    remove(folder_path(&w.f, "m/model.safetensors"));
    folder_link(&w.f, "m/model.safetensors", "other.txt");
    found(&w, "model.safetensors", VERIFY_LINKED, 1, "wanted a file of its own");
    end(&w);
}

static void a_linked_folder_on_the_way_is_found(void **state) {
    (void)state;
    world w = world_new();
    folder_make(&w.f, "m/real");
    folder_write(&w.f, "m/real/notes.txt", STR("notes"));
    remove(folder_path(&w.f, "m/sub/notes.txt"));
    remove(folder_path(&w.f, "m/sub"));
    folder_link(&w.f, "m/sub", "real");
    found(&w, "sub/notes.txt", VERIFY_LINKED, 1, "a link to ");
    end(&w);
}

static void a_link_to_nothing_and_a_folder_are_found(void **state) {
    (void)state;
    world w = world_new();
    remove(folder_path(&w.f, "m/model.safetensors"));
    folder_link(&w.f, "m/model.safetensors", "nowhere");
    remove(folder_path(&w.f, "m/config.json"));
    folder_make(&w.f, "m/config.json");
    found(&w, "model.safetensors", VERIFY_UNREADABLE, 2, "No such file");
    found(&w, "config.json", VERIFY_UNREADABLE, 2, "not a regular file");
    end(&w);
}

static void a_pipe_is_found_and_not_waited_for(void **state) {
    (void)state;
    world w = world_new();
    remove(folder_path(&w.f, "m/config.json"));
    assert_int_equal(mkfifo(folder_path(&w.f, "m/config.json"), 0600), 0);
    found(&w, "config.json", VERIFY_UNREADABLE, 1, "not a regular file");
    end(&w);
}

/* As one without the right to read it, or one that goes deeper than a path can name. */
static void a_folder_that_cannot_be_listed_hides_no_other_fault(void **state) {
    (void)state;
    enum { DEPTH = 20, NAME = 250 }; /* more than PATH_MAX */
    world w = world_new();
    char name[NAME + 1];
    memset(name, 'x', NAME);
    name[NAME] = '\0';
    char *here = getcwd(NULL, 0);
    assert_non_null(here);
    assert_int_equal(chdir(w.dir), 0);
    for (int i = 0; i < DEPTH; i++) assert_true(mkdir(name, 0755) == 0 && chdir(name) == 0);
    assert_int_equal(chdir(here), 0);
    remove(folder_path(&w.f, "m/model.safetensors"));
    found(&w, ".", VERIFY_UNREADABLE, 2, "/xxxx");
    found(&w, "model.safetensors", VERIFY_MISSING, 2, "not there");
    assert_int_equal(chdir(w.dir), 0);
    for (int i = 0; i < DEPTH; i++) assert_int_equal(chdir(name), 0);
    for (int i = 0; i < DEPTH; i++) assert_true(chdir("..") == 0 && rmdir(name) == 0);
    assert_int_equal(chdir(here), 0);
    free(here);
    end(&w);
}

static void a_folder_with_nothing_of_the_list_is_no_success(void **state) {
    (void)state;
    world w = world_new();
    char hex[DIGEST_HEX];
    buf text = {0};
    assert_int_equal(digest_bytes(hex, "x", 1, NULL), CLEF_OK);
    buf_printf(&text,
               "{\"manifest\":\"clef-manifest/1\",\"repo\":\"A/B\",\"commit\":\"" COMMIT
               "\",\"files\":[{\"path\":\"LICENSE\",\"size\":1,\"sha256\":\"%s\"}]}",
               hex);
    folder_write(&w.f, "list.json", text_of(&text));
    sign(&w, "list.json");
    remove(folder_path(&w.f, "m/model.safetensors"));
    remove(folder_path(&w.f, "m/config.json"));
    refused(&w, &(verify_options){.list = w.list, .key = w.key}, "nothing that is listed is there");
    buf_free(&text);
    end(&w);
}

/* ---- lists and their signatures ---- */

static void a_manifest_without_a_signature_is_refused(void **state) {
    (void)state;
    world w = world_new();
    remove(folder_path(&w.f, "list.json.minisig"));
    refused(&w, NULL, "there is no signature");
    refused(&w, &(verify_options){.list = w.list}, "--unsigned");
    verify_result r = {0};
    clef_error err = {0};
    const verify_options o = {.list = w.list, .not_signed = true};
    assert_int_equal(run(&r, &w, &o, &err), CLEF_OK);
    assert_int_equal(r.trust, VERIFY_NOT_SIGNED);
    verify_free(&r);
    end(&w);
}

static void a_signature_that_is_there_has_to_be_right(void **state) {
    (void)state;
    world w = world_new();
    refused(&w, &(verify_options){.list = w.list, .not_signed = true},
            "wanted key 2DC28CC7B26A283B");
    end(&w);
}

/* The text is no manifest at all, and the signature is what is refused. */
static void a_signature_is_checked_before_parsing(void **state) {
    (void)state;
    world w = world_new();
    folder_write(&w.f, "list.json", STR("{\"no\": manifest"));
    refused(&w, NULL, "the signature is not that of these bytes");
    end(&w);
}

static void a_manifest_signed_by_another_key_is_refused(void **state) {
    (void)state;
    world w = world_new(), other = world_new();
    refused(&w, &(verify_options){.list = w.list, .key = other.key}, "made with key");
    refused(&w, &(verify_options){.list = w.list}, "wanted key 2DC28CC7B26A283B");
    end(&w);
    end(&other);
}

static void a_manifest_of_another_model_or_commit_is_refused(void **state) {
    (void)state;
    world w = world_new();
    refused(&w, &(verify_options){.list = w.list, .key = w.key, .repo = "Org/Other"},
            "a manifest of 'Org/Name', wanted one of 'Org/Other'");
    refused(&w, &(verify_options){.list = w.list, .key = w.key, .revision = OTHER_COMMIT},
            "a manifest of commit '" COMMIT "'");
    end(&w);
}

static void sums_in_the_folder_are_found_and_every_file_is_wanted(void **state) {
    (void)state;
    world w = world_new();
    write_list(&w, "m/SHA256SUMS", true, NULL, NULL);
    verify_result r = {0};
    clef_error err = {0};
    verify_options o = {0};
    if (run(&r, &w, &o, &err) != CLEF_OK) fail_msg("%s", err.text);
    assert_int_equal(r.n_of[VERIFY_RIGHT], N_FILES);
    assert_int_equal(r.n_faults, 0);
    assert_int_equal(r.trust, VERIFY_NOT_SIGNED);
    verify_free(&r);
    remove(folder_path(&w.f, "m/README.md"));
    assert_int_equal(run(&r, &w, &o, &err), CLEF_OK);
    assert_int_equal(r.n_of[VERIFY_MISSING], 1);
    verify_free(&r);
    end(&w);
}

static void sums_have_to_be_signed_where_a_key_is_given(void **state) {
    (void)state;
    world w = world_new();
    write_list(&w, "m/SHA256SUMS", true, NULL, NULL);
    refused(&w, &(verify_options){.key = w.key}, "SHA256SUMS.minisig: there is no signature");
    sign(&w, "m/SHA256SUMS");
    verify_result r = {0};
    clef_error err = {0};
    const verify_options o = {.key = w.key};
    if (run(&r, &w, &o, &err) != CLEF_OK) fail_msg("%s", err.text);
    assert_int_equal(r.trust, VERIFY_SIGNED);
    assert_int_equal(r.n_faults, 0);
    verify_free(&r);
    end(&w);
}

static void a_manifest_in_the_folder_is_taken_before_sums(void **state) {
    (void)state;
    world w = world_new();
    folder_write(&w.f, "m/SHA256SUMS", STR("no sums\n"));
    write_list(&w, "m/clef-manifest.json", false, "Org/Name", COMMIT);
    sign(&w, "m/clef-manifest.json");
    verify_result r = {0};
    clef_error err = {0};
    const verify_options o = {.key = w.key};
    if (run(&r, &w, &o, &err) != CLEF_OK) fail_msg("%s", err.text);
    assert_int_equal(r.n_faults, 0);
    assert_string_equal(r.m.repo.p, "Org/Name");
    verify_free(&r);
    end(&w);
}

static void the_released_model_is_held_to_the_built_in_table(void **state) {
    (void)state;
    world w = world_new();
    verify_result r = {0};
    clef_error err = {0};
    const verify_options o = {.list = "Cloudflare/clef-flash"};
    if (run(&r, &w, &o, &err) != CLEF_OK) fail_msg("%s", err.text);
    assert_int_equal(r.trust, VERIFY_BUILTIN);
    assert_int_equal(r.n_of[VERIFY_MISSING], 10); /* all that is needed but config.json ... */
    assert_int_equal(r.n_of[VERIFY_CHANGED], 2);  /* ... and README.md, which is there */
    assert_int_equal(r.n_of[VERIFY_EXTRA], 1);    /* model.safetensors */
    verify_free(&r);
    /* Whoever has cloned it beside has a folder of that name. */
    folder_make(&w.f, "Cloudflare");
    folder_make(&w.f, "Cloudflare/clef-flash");
    char *here = getcwd(NULL, 0);
    assert_non_null(here);
    assert_int_equal(chdir(w.f.path), 0);
    r = (verify_result){0};
    const clef_status s = verify_run(&r, &(verify_options){.dir = "m", .list = o.list}, &err);
    assert_int_equal(chdir(here), 0);
    free(here);
    if (s != CLEF_OK) fail_msg("%s", err.text);
    assert_int_equal(r.trust, VERIFY_BUILTIN);
    verify_free(&r);
    refused(&w, &(verify_options){.list = "Cloudflare/clef"}, "no sums of 'Cloudflare/clef'");
    end(&w);
}

/* ---- a hub cache ---- */

/* "weights" as a large file and "{}" as a small one, as huggingface_hub lays them out. git's name:
 * printf '{}' | git hash-object --stdin */
#define CONFIG_NAME "9e26dfeeb6e641a33dae4961196235bdb965b21b"
#define SNAPSHOT "cache/models--Org--Name/snapshots/" COMMIT

static void make_cache(const world *w, const char *config_blob) {
    char hex[DIGEST_HEX], path[512], target[256];
    static const char *const folders[] = {
        "cache", "cache/models--Org--Name", "cache/models--Org--Name/blobs",
        "cache/models--Org--Name/refs", "cache/models--Org--Name/snapshots"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) folder_make(&w->f, folders[i]);
    folder_make(&w->f, SNAPSHOT);
    folder_write(&w->f, "cache/models--Org--Name/refs/main", STR(COMMIT));
    assert_int_equal(digest_bytes(hex, "weights", 7, NULL), CLEF_OK);
    snprintf(path, sizeof path, "cache/models--Org--Name/blobs/%s", hex);
    folder_write(&w->f, path, STR("weights"));
    snprintf(target, sizeof target, "../../blobs/%s", hex);
    folder_link(&w->f, SNAPSHOT "/model.safetensors", target);
    snprintf(path, sizeof path, "cache/models--Org--Name/blobs/%s", config_blob);
    folder_write(&w->f, path, STR("{}"));
    snprintf(target, sizeof target, "../../blobs/%s", config_blob);
    folder_link(&w->f, SNAPSHOT "/config.json", target);
}

static clef_status run_cache(verify_result *r, const world *w, const char *list, clef_error *err) {
    char cache[1024], path[1024];
    keep(cache, folder_path(&w->f, "cache"));
    keep(path, folder_path(&w->f, list));
    const verify_options o = {.dir = "Org/Name", .list = path, .key = w->key, .hub_cache = cache};
    return run(r, w, &o, err);
}

static void a_snapshot_of_links_to_its_blobs_is_right(void **state) {
    (void)state;
    world w = world_new();
    make_cache(&w, CONFIG_NAME);
    verify_result r = {0};
    clef_error err = {0};
    if (run_cache(&r, &w, "list.json", &err) != CLEF_OK) fail_msg("%s", err.text);
    assert_int_equal(r.n_faults, 0);
    assert_int_equal(r.n_of[VERIFY_RIGHT], 2);
    verify_free(&r);
    end(&w);
}

static void a_blob_with_the_name_of_another_is_found(void **state) {
    (void)state;
    static const char *const names[] = {
        "9e26dfeeb6e641a33dae4961196235bdb965b21c",
        "0000000000000000000000000000000000000000000000000000000000000000"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        world w = world_new();
        make_cache(&w, names[i]);
        verify_result r = {0};
        clef_error err = {0};
        if (run_cache(&r, &w, "list.json", &err) != CLEF_OK) fail_msg("%s", err.text);
        assert_int_equal(r.n_faults, 1);
        assert_int_equal(r.files[0].state, VERIFY_CHANGED);
        assert_non_null(strstr(r.files[0].detail.p, "its blob has another's name"));
        verify_free(&r);
        end(&w);
    }
}

static void a_snapshot_link_that_leaves_the_model_is_found(void **state) {
    (void)state;
    static const char *const targets[] = {"../../../../m/config.json", "../../refs/main"};
    static const char *const words[] = {"wanted a file inside", "wanted a file of its own"};
    for (size_t i = 0; i < 2; i++) {
        world w = world_new();
        make_cache(&w, CONFIG_NAME);
        remove(folder_path(&w.f, SNAPSHOT "/config.json"));
        folder_link(&w.f, SNAPSHOT "/config.json", targets[i]);
        verify_result r = {0};
        clef_error err = {0};
        if (run_cache(&r, &w, "list.json", &err) != CLEF_OK) fail_msg("%s", err.text);
        assert_int_equal(r.files[0].state, VERIFY_LINKED);
        if (strstr(r.files[0].detail.p, words[i]) == NULL) fail_msg("%s", r.files[0].detail.p);
        verify_free(&r);
        end(&w);
    }
}

static void a_snapshot_is_of_the_model_and_commit_of_its_place(void **state) {
    (void)state;
    world w = world_new();
    make_cache(&w, CONFIG_NAME);
    verify_result r = {0};
    clef_error err = {0};
    write_list(&w, "older.json", false, "Org/Name", OTHER_COMMIT);
    sign(&w, "older.json");
    assert_int_equal(run_cache(&r, &w, "older.json", &err), CLEF_ERR_FORMAT);
    assert_non_null(strstr(err.text, "wanted '" COMMIT "'"));
    verify_free(&r);
    write_list(&w, "other.json", false, "Org/Other", COMMIT);
    sign(&w, "other.json");
    assert_int_equal(run_cache(&r, &w, "other.json", &err), CLEF_ERR_FORMAT);
    assert_non_null(strstr(err.text, "wanted one of 'Org/Name'"));
    verify_free(&r);
    end(&w);
}

/* ---- progress and reports ---- */

static int stop_at_once(void *user, size_t done, size_t total) {
    (void)done;
    (void)total;
    ++*(int *)user;
    return 1;
}

static void a_request_to_stop_is_obeyed(void **state) {
    (void)state;
    world w = world_new();
    int calls = 0;
    const verify_options o = {
        .list = w.list, .key = w.key, .jobs = 1, .progress = stop_at_once, .user = &calls};
    verify_result r = {0};
    clef_error err = {0};
    assert_int_equal(run(&r, &w, &o, &err), CLEF_ERR_CANCELLED);
    assert_int_equal(calls, 1);
    verify_free(&r);
    end(&w);
}

static void a_report_has_a_line_for_every_file(void **state) {
    (void)state;
    world w = world_new();
    folder_write(&w.f, "m/bad\x1b[2J\xff.txt", STR("x"));
    folder_write(&w.f, "m/config.json", STR("[]"));
    verify_result r = {0};
    clef_error err = {0};
    assert_int_equal(run(&r, &w, NULL, &err), CLEF_OK);
    assert_int_equal(verify_add(&r, STR("."), VERIFY_UNSOUND, "a tensor is odd", &err), CLEF_OK);
    buf text = {0}, as_json = {0};
    assert_int_equal(verify_report(&text, &r, false, &err), CLEF_OK);
    static const char *const wanted[] = {"changed    config.json: sha256 ",
                                         "right      model.safetensors\n",
                                         "other      bad\\u{1b}[2J\\x{ff}.txt: not listed",
                                         "unsound    .: a tensor is odd\n",
                                         "3 of 4 listed files right, 2 faults; 0.0 MB summed in",
                                         "signed comment: a comment\n",
                                         "Org/Name at 1111"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (strstr(text.p, wanted[i]) == NULL) fail_msg("%s\nwanted: %s", text.p, wanted[i]);
    assert_int_equal(verify_report(&as_json, &r, true, &err), CLEF_OK);
    assert_non_null(strstr(as_json.p, "{\"right\": false, \"folder\": "));
    assert_non_null(strstr(as_json.p, "\"trust\": \"signed\""));
    assert_non_null(strstr(as_json.p, "{\"state\": \"other\", \"path\": \"bad\\\\u{1b}[2J"));
    buf_free(&text);
    buf_free(&as_json);
    verify_free(&r);
    end(&w);
}

/* ---- manifests of folders ---- */

static void a_manifest_that_we_make_holds_its_folder(void **state) {
    (void)state;
    world w = world_new();
    const char *const sources[] = {"https://a.example/x/"};
    const manifest_options o = {
        .dir = w.dir, .repo = "Me/Model", .sources = sources, .n_sources = 1};
    buf text = {0}, again = {0};
    clef_error err = {0};
    if (manifest_make(&text, &o, &err) != CLEF_OK) fail_msg("%s", err.text);
    folder_write(&w.f, "m/clef-manifest.json", text_of(&text));
    sign(&w, "m/clef-manifest.json");
    /* Neither the manifest nor its signature belongs to the model. */
    if (manifest_make(&again, &o, &err) != CLEF_OK) fail_msg("%s", err.text);
    assert_string_equal(text.p, again.p);
    const verify_options v = {.key = w.key, .repo = "Me/Model", .all = true};
    verify_result r = {0};
    if (run(&r, &w, &v, &err) != CLEF_OK) fail_msg("%s", err.text);
    assert_int_equal(r.n_faults, 0);
    assert_int_equal(r.n_of[VERIFY_RIGHT], N_FILES);
    assert_int_equal(r.m.revision.n, 64);
    assert_string_equal(r.m.sources[0].p, "https://a.example/x/");
    verify_free(&r);
    buf_free(&text);
    buf_free(&again);
    end(&w);
}

static void a_manifest_is_not_made_of(const world *w, manifest_options o, const char *words) {
    o.dir = w->dir;
    buf text = {0};
    clef_error err = {0};
    if (manifest_make(&text, &o, &err) == CLEF_OK) fail_msg("made; wanted: %s", words);
    if (strstr(err.text, words) == NULL) fail_msg("%s; wanted: %s", err.text, words);
    buf_free(&text);
}

static void what_a_manifest_cannot_say_is_refused(void **state) {
    (void)state;
    world w = world_new();
    const char *const source[] = {"http://a.example/"};
    a_manifest_is_not_made_of(&w, (manifest_options){0}, "--repo Org/Name");
    a_manifest_is_not_made_of(&w, (manifest_options){.repo = "Me"}, "wanted Org/Name");
    a_manifest_is_not_made_of(&w, (manifest_options){.repo = "A/B", .revision = "main"},
                              "wanted 40 or 64");
    a_manifest_is_not_made_of(&w,
                              (manifest_options){.repo = "A/B", .sources = source, .n_sources = 1},
                              "the source 'http://a.example/' is refused");
    folder_write(&w.f, "m/caf\xc3\xa9", STR("x"));
    a_manifest_is_not_made_of(&w, (manifest_options){.repo = "A/B"}, "no printable ASCII");
    remove(folder_path(&w.f, "m/caf\xc3\xa9"));
    folder_write(&w.f, "m/CONFIG.json", STR("x"));
    a_manifest_is_not_made_of(&w, (manifest_options){.repo = "A/B"}, "are one file");
    remove(folder_path(&w.f, "m/CONFIG.json"));
    folder_link(&w.f, "m/link", "config.json");
    a_manifest_is_not_made_of(&w, (manifest_options){.repo = "A/B"}, "m/link: a link");
    remove(folder_path(&w.f, "m/link"));
    folder_write(&w.f, "m/a.safetensors.part", STR("x"));
    a_manifest_is_not_made_of(&w, (manifest_options){.repo = "A/B"},
                              "m/a.safetensors.part: not a whole file");
    remove(folder_path(&w.f, "m/a.safetensors.part"));
    assert_int_equal(mkfifo(folder_path(&w.f, "m/pipe"), 0600), 0);
    a_manifest_is_not_made_of(&w, (manifest_options){.repo = "A/B"}, "m/pipe: a device or a pipe");
    end(&w);
}

static void a_manifest_of_a_snapshot_is_of_its_model_and_commit(void **state) {
    (void)state;
    world w = world_new();
    make_cache(&w, CONFIG_NAME);
    char dir[1024];
    keep(dir, folder_path(&w.f, SNAPSHOT));
    const manifest_options o = {.dir = dir};
    buf text = {0};
    clef_error err = {0};
    if (manifest_make(&text, &o, &err) != CLEF_OK) fail_msg("%s", err.text);
    assert_non_null(strstr(text.p, "\"repo\": \"Org/Name\",\n \"commit\": \"" COMMIT "\""));
    buf_free(&text);
    end(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_that_is_what_its_list_says_has_no_fault),
        cmocka_unit_test(a_changed_byte_is_found),
        cmocka_unit_test(another_size_is_found_without_reading),
        cmocka_unit_test(two_files_swapped_are_both_found),
        cmocka_unit_test(a_missing_file_is_found),
        cmocka_unit_test(a_missing_file_that_nobody_needs_is_no_fault),
        cmocka_unit_test(every_file_is_wanted_where_all_are),
        cmocka_unit_test(a_file_that_is_not_listed_is_told),
        cmocka_unit_test(a_file_that_the_engine_might_open_has_to_be_listed),
        cmocka_unit_test(a_link_to_the_right_bytes_is_found),
        cmocka_unit_test(a_link_inside_the_folder_is_found_too),
        cmocka_unit_test(a_linked_folder_on_the_way_is_found),
        cmocka_unit_test(a_link_to_nothing_and_a_folder_are_found),
        cmocka_unit_test(a_pipe_is_found_and_not_waited_for),
        cmocka_unit_test(a_folder_that_cannot_be_listed_hides_no_other_fault),
        cmocka_unit_test(a_folder_with_nothing_of_the_list_is_no_success),
        cmocka_unit_test(a_manifest_without_a_signature_is_refused),
        cmocka_unit_test(a_signature_that_is_there_has_to_be_right),
        cmocka_unit_test(a_signature_is_checked_before_parsing),
        cmocka_unit_test(a_manifest_signed_by_another_key_is_refused),
        cmocka_unit_test(a_manifest_of_another_model_or_commit_is_refused),
        cmocka_unit_test(sums_in_the_folder_are_found_and_every_file_is_wanted),
        cmocka_unit_test(sums_have_to_be_signed_where_a_key_is_given),
        cmocka_unit_test(a_manifest_in_the_folder_is_taken_before_sums),
        cmocka_unit_test(the_released_model_is_held_to_the_built_in_table),
        cmocka_unit_test(a_snapshot_of_links_to_its_blobs_is_right),
        cmocka_unit_test(a_blob_with_the_name_of_another_is_found),
        cmocka_unit_test(a_snapshot_link_that_leaves_the_model_is_found),
        cmocka_unit_test(a_snapshot_is_of_the_model_and_commit_of_its_place),
        cmocka_unit_test(a_request_to_stop_is_obeyed),
        cmocka_unit_test(a_report_has_a_line_for_every_file),
        cmocka_unit_test(a_manifest_that_we_make_holds_its_folder),
        cmocka_unit_test(what_a_manifest_cannot_say_is_refused),
        cmocka_unit_test(a_manifest_of_a_snapshot_is_of_its_model_and_commit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
