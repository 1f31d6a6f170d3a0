/* keys_test.c - keys from a file, found or not, and read again. */
#include "server/keys.h"

#include "tests/folder.h"

static folder dir;

static int make_folder(void **state) {
    (void)state;
    dir = folder_new();
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    folder_remove(dir.path);
    return 0;
}

static api_keys *open_file(const char *text) {
    api_keys *k = NULL;
    clef_error err = {0};
    folder_write(&dir, "keys", str_of(text));
    if (keys_open(&k, NULL, folder_path(&dir, "keys"), &err) != CLEF_OK) fail_msg("%s", err.text);
    return k;
}

static void a_key_is_found_by_all_of_it(void **state) {
    (void)state;
    api_keys *k = open_file("# two keys\n\nfirst-key\r\n  \nsecond\n");
    assert_true(keys_needed(k));
    assert_int_equal(keys_find(k, STR("first-key")), 1);
    assert_int_equal(keys_find(k, STR("second")), 2);
    static const char *const BAD[] = {"",           "first-ke", "first-key2", "first-keY",
                                      "# two keys", "second ",  "secon",      "first-key\r"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
        if (keys_find(k, str_of(BAD[i])) != 0) fail_msg("%s", BAD[i]);
    assert_int_equal(keys_find(k, STR("second\0")), 0);
    keys_close(k);
}

static void a_key_keeps_its_number_when_the_file_is_read_again(void **state) {
    (void)state;
    api_keys *k = open_file("a\nb\n");
    folder_write(&dir, "keys", STR("c\nb\n"));
    assert_int_equal(keys_reload(k, NULL), CLEF_OK);
    assert_int_equal(keys_find(k, STR("a")), 0);
    assert_int_equal(keys_find(k, STR("b")), 2);
    assert_int_equal(keys_find(k, STR("c")), 3);
    folder_write(&dir, "keys", STR("a\n"));
    assert_int_equal(keys_reload(k, NULL), CLEF_OK);
    assert_int_equal(keys_find(k, STR("a")), 4);
    keys_close(k);
}

static void the_old_keys_stay_when_the_new_file_is_wrong(void **state) {
    (void)state;
    clef_error err = {0};
    api_keys *k = open_file("a\n");
    folder_write(&dir, "keys", STR("# none\n"));
    assert_int_equal(keys_reload(k, &err), CLEF_ERR_INPUT);
    assert_non_null(strstr(err.text, "holds no key"));
    folder_write(&dir, "keys", STR("a b\n"));
    assert_int_equal(keys_reload(k, &err), CLEF_ERR_INPUT);
    assert_non_null(strstr(err.text, "printable ASCII"));
    assert_int_equal(keys_find(k, STR("a")), 1);
    keys_close(k);
}

static void without_keys_none_is_needed(void **state) {
    (void)state;
    api_keys *k = NULL;
    assert_int_equal(keys_open(&k, NULL, NULL, NULL), CLEF_OK);
    assert_false(keys_needed(k));
    keys_close(k);
}

static void the_key_of_the_command_line_counts_beside_the_file(void **state) {
    (void)state;
    api_keys *k = NULL;
    folder_write(&dir, "keys", STR("b\n"));
    assert_int_equal(keys_open(&k, "a", folder_path(&dir, "keys"), NULL), CLEF_OK);
    assert_int_equal(keys_find(k, STR("a")), 1);
    assert_int_equal(keys_find(k, STR("b")), 2);
    keys_close(k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_found_by_all_of_it),
        cmocka_unit_test(a_key_keeps_its_number_when_the_file_is_read_again),
        cmocka_unit_test(the_old_keys_stay_when_the_new_file_is_wrong),
        cmocka_unit_test(without_keys_none_is_needed),
        cmocka_unit_test(the_key_of_the_command_line_counts_beside_the_file),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
