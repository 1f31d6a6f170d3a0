/* manifest_test.c - what a manifest may say, and every way in which it may not. */
#include "fetch/manifest.h"

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "base/buf.h"

#define SUM "66f87f6fb2616b46604daf2a9c67ddc87938296d07156efa34d59b5be49e3238"
#define COMMIT "22b75507981345858dd152fbd9a6f8c0c4068b0a"
#define NAMES "\"manifest\":\"clef-manifest/1\",\"repo\":\"Org/Name\",\"commit\":\"" COMMIT "\""
#define FILE_OF(path) "{\"path\":\"" path "\",\"size\":7,\"sha256\":\"" SUM "\"}"

static manifest right(const char *text) {
    manifest m = {0};
    clef_error err = {0};
    if (manifest_parse(&m, str_of(text), "list", &err) != CLEF_OK) fail_msg("%s", err.text);
    return m;
}

/* Refused with these words, leaving the result alone. */
static void wrong(const char *text, const char *words) {
    manifest m = {0};
    clef_error err = {0};
    const clef_status s = manifest_parse(&m, str_of(text), "list", &err);
    if (s == CLEF_OK) fail_msg("taken: %s", text);
    if (strstr(err.text, words) == NULL) fail_msg("%s: %s; wanted: %s", text, err.text, words);
    assert_null(m.files);
}

static void files(const char *list, const char *words) {
    buf text = {0};
    buf_printf(&text, "{" NAMES ",\"files\":[%s]}", list);
    wrong(text.p, words);
    buf_free(&text);
}

static void path(const char *spelled, const char *words) {
    buf list = {0}, line = {0};
    buf_printf(&list, "{\"path\":\"%s\",\"size\":7,\"sha256\":\"" SUM "\"}", spelled);
    files(list.p, words);
    buf_free(&list);
    if (*spelled != '\0' && strchr(spelled, '\\') == NULL) {
        buf_printf(&line, SUM "  %s\n", spelled);
        wrong(line.p, words);
    }
    buf_free(&line);
}

static void a_manifest_gives_its_files_in_order(void **state) {
    (void)state;
    manifest m = right("{" NAMES ",\"created\":\"2026-11-15T02:35:00Z\",\"license\":{\"id\":\"X\"},"
                       "\"sources\":[\"https://a.example/x/\",\"https://b.example:8443/\"],"
                       "\"files\":[" FILE_OF("b.json") "," FILE_OF("a/b/c d") "]}");
    assert_string_equal(m.repo.p, "Org/Name");
    assert_string_equal(m.revision.p, COMMIT);
    assert_int_equal(m.n_sources, 2);
    assert_string_equal(m.sources[1].p, "https://b.example:8443/");
    assert_int_equal(m.n_files, 2);
    assert_string_equal(m.files[0].path.p, "b.json");
    assert_string_equal(m.files[1].path.p, "a/b/c d");
    assert_true(m.files[1].size == 7);
    assert_string_equal(m.files[1].sha256, SUM);
    manifest_free(&m);
}

static void sums_give_their_files_in_order(void **state) {
    (void)state;
    manifest m = right(SUM "  b.json\n" SUM " *a/b c\n");
    assert_int_equal(m.repo.n, 0);
    assert_int_equal(m.n_files, 2);
    assert_string_equal(m.files[0].path.p, "b.json");
    assert_string_equal(m.files[1].path.p, "a/b c");
    assert_true(m.files[0].size == MANIFEST_ANY_SIZE);
    manifest_free(&m);
}

static void a_path_that_leaves_the_folder_is_refused(void **state) {
    (void)state;
    static const char *const paths[][2] = {{"", "it is empty"},
                                           {"/etc/passwd", "absolute"},
                                           {"//x", "absolute"},
                                           {"..", "'..'"},
                                           {"../x", "'..'"},
                                           {"a/../../x", "'..'"},
                                           {"a/..", "'..'"},
                                           {".", "'.'"},
                                           {"./x", "'.'"},
                                           {"a/./b", "'.'"},
                                           {"a//b", "an empty part"},
                                           {"a/", "an empty part"},
                                           {"a\\\\b", "backslash"},
                                           {"..\\\\x", "backslash"},
                                           {"C:\\\\x", "backslash"}};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) path(paths[i][0], paths[i][1]);
    wrong(SUM "  a\\b\n", "backslash");
    wrong(SUM "  \n", "two blanks and a path");
}

static void a_path_that_hides_something_is_refused(void **state) {
    (void)state;
    static const char *const paths[] = {"a\\u0000b", "a\\nb",       "a\\u001b[2Jb", "a\\u007f",
                                        "a\\tb",     "caf\xc3\xa9", "a\\u202eb",    "\\u212a"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) path(paths[i], "no printable ASCII");
    wrong(SUM "  a\x01z\n", "no printable ASCII");
    wrong(SUM "  a\rz\n", "no printable ASCII");
}

static void a_path_beyond_its_length_is_refused(void **state) {
    (void)state;
    char part[257], deep[1027];
    memset(part, 'a', 256);
    part[256] = '\0';
    path(part, "more than 255 bytes");
    part[255] = '\0';
    buf line = {0};
    buf_printf(&line, SUM "  %s\n", part);
    manifest m = right(line.p);
    manifest_free(&m);
    buf_free(&line);
    for (size_t i = 0; i < sizeof deep - 1; i++) deep[i] = i % 2 == 0 ? 'a' : '/';
    deep[1025] = '\0';
    path(deep, "longer than 1,024 bytes");
}

static void two_paths_of_one_file_are_refused(void **state) {
    (void)state;
    static const char *const twins[][2] = {
        {FILE_OF("a") "," FILE_OF("a"), "are one file"},
        {FILE_OF("Config.json") "," FILE_OF("x") "," FILE_OF("config.JSON"), "are one file"},
        {FILE_OF("A/b") "," FILE_OF("a/B"), "are one file"},
        {FILE_OF("a/b") "," FILE_OF("a"), "'a' is a file, and a folder for 'a/b'"},
        {FILE_OF("A") "," FILE_OF("a-b") "," FILE_OF("a/b/c"), "is a file, and a folder for"}};
    for (size_t i = 0; i < sizeof twins / sizeof *twins; i++) files(twins[i][0], twins[i][1]);
    wrong(SUM "  a\n" SUM "  A\n", "are one file");
    manifest m = right("{" NAMES ",\"files\":[" FILE_OF("a/b") "," FILE_OF("a-b") "," FILE_OF(
        "ab") "," FILE_OF("a/bc") "]}");
    manifest_free(&m);
}

static void a_size_that_is_no_size_is_refused(void **state) {
    (void)state;
    static const char *const sizes[] = {
        "-1", "1.0", "1e3", "\"7\"", "null", "8796093022209", "18446744073709551616", "[7]", "NaN"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        buf list = {0};
        buf_printf(&list, "{\"path\":\"a\",\"size\":%s,\"sha256\":\"" SUM "\"}", sizes[i]);
        files(list.p, strcmp(sizes[i], "NaN") == 0 ? "list: " : "the size of 'a'");
        buf_free(&list);
    }
    files("{\"path\":\"a\",\"sha256\":\"" SUM "\"}", "the size of 'a'");
    manifest m = right("{" NAMES ",\"files\":[{\"path\":\"a\",\"size\":8796093022208,\"sha256\":"
                       "\"" SUM "\"}]}");
    assert_true(m.files[0].size == (uint64_t)1 << 43);
    manifest_free(&m);
}

static void a_sum_that_is_no_sum_is_refused(void **state) {
    (void)state;
    static const char *const sums[] = {
        "", "66f87f6f", "66f87f6fb2616b46604daf2a9c67ddc87938296d07156efa34d59b5be49e32380",
        "66F87f6fb2616b46604daf2a9c67ddc87938296d07156efa34d59b5be49e3238",
        "g6f87f6fb2616b46604daf2a9c67ddc87938296d07156efa34d59b5be49e3238"};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        buf list = {0};
        buf_printf(&list, "{\"path\":\"a\",\"size\":7,\"sha256\":\"%s\"}", sums[i]);
        files(list.p, "wanted 64 lowercase hexadecimal digits");
        buf_free(&list);
    }
    files("{\"path\":\"a\",\"size\":7}", "\"sha256\" is missing");
    wrong("66F87f6fb2616b46604daf2a9c67ddc87938296d07156efa34d59b5be49e3238  a\n",
          "wanted 64 lowercase hexadecimal digits");
}

static void a_source_that_is_no_https_folder_is_refused(void **state) {
    (void)state;
    static const char *const sources[] = {"\"http://a.example/\"",
                                          "\"https://a.example\"",
                                          "\"https://a.example/x\"",
                                          "\"https://u:p@a.example/\"",
                                          "\"https://a.example/ /\"",
                                          "\"https:///\"",
                                          "\"https://a.example/?x=/\"",
                                          "\"https://a.example/#/\"",
                                          "\"file:///etc/\"",
                                          "\"HTTPS://a.example/\"",
                                          "\"https://a.example/\\n/\"",
                                          "\"https://a.ex\xc3\xa4/\"",
                                          "\"\"",
                                          "7",
                                          "\"https://\""};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        buf text = {0};
        buf_printf(&text, "{" NAMES ",\"sources\":[%s],\"files\":[" FILE_OF("a") "]}", sources[i]);
        wrong(text.p, "is refused, wanted https://");
        buf_free(&text);
    }
    wrong("{" NAMES ",\"sources\":{},\"files\":[" FILE_OF("a") "]}", "\"sources\" is an object");
}

static void a_repo_or_commit_that_is_none_is_refused(void **state) {
    (void)state;
    static const char *const repos[] = {"Name",   "/Name",   "Org/",  "../x",
                                        "Org/..", "Org/a/b", "O rg/x"};
    for (size_t i = 0; i < sizeof repos / sizeof *repos; i++) {
        buf text = {0};
        buf_printf(&text,
                   "{\"manifest\":\"clef-manifest/1\",\"repo\":\"%s\",\"commit\":\"" COMMIT
                   "\",\"files\":[" FILE_OF("a") "]}",
                   repos[i]);
        wrong(text.p, "wanted Org/Name");
        buf_free(&text);
    }
    static const char *const commits[] = {
        "main", "22b75507", "22b75507981345858dd152fbd9a6f8c0c4068b0a0", "../../../../x",
        "22B75507981345858dd152fbd9a6f8c0c4068b0a"};
    for (size_t i = 0; i < sizeof commits / sizeof *commits; i++) {
        buf text = {0};
        buf_printf(&text,
                   "{\"manifest\":\"clef-manifest/1\",\"repo\":\"Org/Name\",\"commit\":\"%s\","
                   "\"files\":[" FILE_OF("a") "]}",
                   commits[i]);
        wrong(text.p, "wanted 40 or 64 lowercase hexadecimal digits");
        buf_free(&text);
    }
}

static void another_version_is_named(void **state) {
    (void)state;
    wrong("{\"manifest\":\"clef-manifest/2\"}",
          "of the form 'clef-manifest/2', wanted clef-manifest/1");
}

static void a_foreign_manifest_is_refused(void **state) {
    (void)state;
    static const char *const foreign[] = {
        "{\"generator\":\"freeweights-manifest/0.1.0\",\"files\":[" FILE_OF("a") "]}", "{}",
        "{\"manifest\":1}", "{\"manifest\":{\"version\":1}}"};
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        wrong(foreign[i], "the form of other manifests is not public");
}

static void a_member_that_is_there_twice_is_refused(void **state) {
    (void)state;
    wrong("{" NAMES ",\"files\":[" FILE_OF("a") "],\"files\":[" FILE_OF("b") "]}",
          "the name 'files' stands twice");
    files("{\"path\":\"a\",\"path\":\"b\",\"size\":7,\"sha256\":\"" SUM "\"}",
          "the name 'path' stands twice");
    wrong("{" NAMES ",\"repo\":\"Org/Other\",\"files\":[" FILE_OF("a") "]}",
          "the name 'repo' stands twice");
}

static void a_list_of_nothing_is_refused(void **state) {
    (void)state;
    wrong("{" NAMES ",\"files\":[]}", "lists no file");
    wrong("{" NAMES "}", "\"files\" is missing");
    wrong("{" NAMES ",\"files\":{}}", "\"files\" is an object");
    files("7", "\"path\" is missing");
    wrong("", "empty");
}

static void what_is_no_json_is_refused(void **state) {
    (void)state;
    wrong("{" NAMES ",\"files\":[" FILE_OF("a") "]", "list");
    wrong("{" NAMES ",\"files\":[" FILE_OF("a") "]}x", "list");
    wrong("{" NAMES ",\"x\":[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]],\"files\":[]}", "deep");
}

static void a_line_of_sums_in_another_form_is_refused(void **state) {
    (void)state;
    wrong(SUM "  a", "the last line has no end");
    wrong(SUM " a\n", "line 1 is not");
    wrong(SUM "  a\n\n", "line 2 is not");
    wrong(SUM "  a\nx\n", "line 2 is not");
    wrong("\\" SUM "  a\\nb\n", "line 1 has an escaped name");
    wrong("# comment\n", "line 1 is not");
    wrong(SUM "\t a\n", "line 1 is not");
}

static void a_manifest_beyond_4_mib_is_refused(void **state) {
    (void)state;
    buf text = {0};
    buf_add_text(&text, "{" NAMES ",\"files\":[" FILE_OF("a") "]}");
    while (text.n < MANIFEST_MAX_BYTES) buf_add_char(&text, ' ');
    manifest m = {0};
    clef_error err = {0};
    assert_int_equal(manifest_parse(&m, (str){text.p, text.n}, "list", &err), CLEF_OK);
    manifest_free(&m);
    buf_add_char(&text, ' ');
    assert_int_equal(manifest_parse(&m, (str){text.p, text.n}, "list", &err), CLEF_ERR_LIMIT);
    buf_free(&text);
}

static void a_manifest_of_another_model_is_refused(void **state) {
    (void)state;
    manifest m = right("{" NAMES ",\"files\":[" FILE_OF("a") "]}");
    clef_error err = {0};
    assert_int_equal(manifest_expect(&m, "Org/Name", COMMIT, "list", &err), CLEF_OK);
    assert_int_equal(manifest_expect(&m, NULL, NULL, "list", &err), CLEF_OK);
    assert_int_equal(manifest_expect(&m, "Org/name", NULL, "list", &err), CLEF_ERR_FORMAT);
    assert_string_equal(err.text, "list: a manifest of 'Org/Name', wanted one of 'Org/name'");
    assert_int_equal(
        manifest_expect(&m, "Org/Name", "17f0b0ad64efb65d273590632833508766b2aae6", "list", &err),
        CLEF_ERR_FORMAT);
    assert_non_null(strstr(err.text, "a manifest of commit '" COMMIT "'"));
    manifest_free(&m);
    m = right(SUM "  a\n");
    assert_int_equal(manifest_expect(&m, "Org/Name", NULL, "list", &err), CLEF_ERR_INPUT);
    assert_int_equal(manifest_expect(&m, NULL, COMMIT, "list", &err), CLEF_ERR_INPUT);
    assert_int_equal(manifest_expect(&m, NULL, NULL, "list", &err), CLEF_OK);
    manifest_free(&m);
}

static void the_released_model_is_built_in(void **state) {
    (void)state;
    static const char *const revisions[] = {NULL, COMMIT,
                                            "17f0b0ad64efb65d273590632833508766b2aae6"};
    for (size_t i = 0; i < sizeof revisions / sizeof *revisions; i++) {
        manifest m = {0};
        clef_error err = {0};
        if (manifest_builtin(&m, "Cloudflare/clef-flash", revisions[i], &err) != CLEF_OK)
            fail_msg("%s", err.text);
        assert_int_equal(m.n_files, 19);
        uint64_t shards = 0;
        size_t unknown = 0, needed = 0;
        for (size_t f = 0; f < m.n_files; f++) {
            if (strncmp(m.files[f].path.p, "model-", 6) == 0) shards += m.files[f].size;
            unknown += m.files[f].size == MANIFEST_ANY_SIZE;
            needed += manifest_is_needed(m.files[f].path);
        }
        assert_true(shards == 18819721120u); /* as MODEL.md has the sum of the four shards */
        assert_int_equal(unknown, 5);
        assert_int_equal(needed, 11);
        assert_string_equal(m.revision.p, i == 2 ? revisions[2] : COMMIT);
        assert_non_null(strstr(m.sources[0].p, m.revision.p));
        manifest_free(&m);
    }
}

static void a_model_that_is_not_built_in_is_named(void **state) {
    (void)state;
    manifest m = {0};
    clef_error err = {0};
    assert_int_equal(manifest_builtin(&m, "Cloudflare/clef", NULL, &err), CLEF_ERR_INPUT);
    assert_non_null(strstr(err.text, "no sums of 'Cloudflare/clef' are built in"));
    assert_int_equal(manifest_builtin(&m, "Cloudflare/clef-flash",
                                      "0000000000000000000000000000000000000000", &err),
                     CLEF_ERR_INPUT);
    assert_non_null(strstr(err.text, "at 0000"));
}

static void a_python_file_is_never_needed(void **state) {
    (void)state;
    static const char *const not_needed[] = {
        "joint_schema_model.py", "README.md",   "LICENSE", ".gitattributes", "sub/config.json",
        "sub/model.safetensors", ".safetensors"};
    for (size_t i = 0; i < sizeof not_needed / sizeof *not_needed; i++)
        assert_false(manifest_is_needed(str_of(not_needed[i])));
    assert_true(manifest_is_needed(STR("model-00001-of-00004.safetensors")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_manifest_gives_its_files_in_order),
        cmocka_unit_test(sums_give_their_files_in_order),
        cmocka_unit_test(a_path_that_leaves_the_folder_is_refused),
        cmocka_unit_test(a_path_that_hides_something_is_refused),
        cmocka_unit_test(a_path_beyond_its_length_is_refused),
        cmocka_unit_test(two_paths_of_one_file_are_refused),
        cmocka_unit_test(a_size_that_is_no_size_is_refused),
        cmocka_unit_test(a_sum_that_is_no_sum_is_refused),
        cmocka_unit_test(a_source_that_is_no_https_folder_is_refused),
        cmocka_unit_test(a_repo_or_commit_that_is_none_is_refused),
        cmocka_unit_test(another_version_is_named),
        cmocka_unit_test(a_foreign_manifest_is_refused),
        cmocka_unit_test(a_member_that_is_there_twice_is_refused),
        cmocka_unit_test(a_list_of_nothing_is_refused),
        cmocka_unit_test(what_is_no_json_is_refused),
        cmocka_unit_test(a_line_of_sums_in_another_form_is_refused),
        cmocka_unit_test(a_manifest_beyond_4_mib_is_refused),
        cmocka_unit_test(a_manifest_of_another_model_is_refused),
        cmocka_unit_test(the_released_model_is_built_in),
        cmocka_unit_test(a_model_that_is_not_built_in_is_named),
        cmocka_unit_test(a_python_file_is_never_needed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
