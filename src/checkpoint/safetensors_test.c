/* Headers and indexes, rule by rule (safetensors.c numbers the rules), hostile headers and missing
 * shards. Files are made in memory or in a folder of their own. */
#include "checkpoint/safetensors.h"

#include "tests/folder.h"
#include "tests/oom.h"
#include "tests/oom_each.h"

#define F32 "\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]"

static clef_status check(str header, size_t n_data, clef_error *err) {
    buf file = {0};
    folder_safetensors(&file, header, n_data);
    const clef_status s = safetensors_check(file.p, file.n, "m.safetensors", err);
    buf_free(&file);
    return s;
}

/* Refused with a sentence that names the file and holds `sentence`. */
static void refused(const char *header, size_t n_data, const char *sentence) {
    clef_error err = {0};
    assert_int_equal(check(str_of(header), n_data, &err), CLEF_ERR_FORMAT);
    assert_int_equal(err.status, CLEF_ERR_FORMAT);
    if (strstr(err.text, "m.safetensors: ") == NULL || strstr(err.text, sentence) == NULL)
        fail_msg("found '%s', wanted '%s'", err.text, sentence);
}

static void accepted(const char *header, size_t n_data) {
    clef_error err = {0};
    if (check(str_of(header), n_data, &err) != CLEF_OK) fail_msg("%s", err.text);
}

static void a_plain_file_is_read(void **state) {
    (void)state;
    accepted("{\"w\":{" F32 "}}", 8);
    accepted("{\"__metadata__\":{\"format\":\"pt\"},\"w\":{" F32 "}}   ", 8);
    accepted("{}", 0);
}

static void a_file_under_8_bytes_is_refused(void **state) {
    (void)state;
    for (size_t n = 0; n < 8; n++) {
        clef_error err = {0};
        assert_int_equal(safetensors_check("\0\0\0\0\0\0\0\0", n, "m", &err), CLEF_ERR_FORMAT);
        assert_non_null(strstr(err.text, "wanted at least 8"));
    }
}

static void a_header_length_beyond_the_file_is_refused(void **state) {
    (void)state;
    const uint64_t lengths[] = {3,          7,          99999999,       100000001,
                                1ull << 62, 1ull << 63, UINT64_MAX - 7, UINT64_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        unsigned char file[10] = {0, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
        for (int k = 0; k < 8; k++) file[k] = (unsigned char)(lengths[i] >> 8 * k);
        clef_error err = {0};
        assert_int_equal(safetensors_check(file, sizeof file, "m", &err), CLEF_ERR_FORMAT);
        char number[32];
        snprintf(number, sizeof number, "%llu", (unsigned long long)lengths[i]);
        assert_non_null(strstr(err.text, number));
    }
}

static void a_header_length_of_0_is_refused(void **state) {
    (void)state;
    refused("", 0, "begin with '{'");
}

static void two_hundred_megabytes_of_blanks_are_refused_unread(void **state) {
    (void)state;
    const size_t n = 200000000;
    const uint64_t header = n - 8;
    char *file = malloc(n);
    assert_non_null(file);
    memset(file, ' ', n);
    for (int k = 0; k < 8; k++) file[k] = (char)(header >> 8 * k & 255);
    clef_error err = {0};
    assert_int_equal(safetensors_check(file, n, "m", &err), CLEF_ERR_FORMAT);
    assert_non_null(strstr(err.text, "the limit is 100000000"));
    free(file);
}

static void a_header_is_one_object_and_spaces(void **state) {
    (void)state;
    refused(" {}", 0, "begin with '{'");
    refused("\xEF\xBB\xBF{}", 0, "begin with '{'");
    refused("{}\n", 0, "end with '}' and spaces");
    refused("{}\t ", 0, "end with '}' and spaces");
    refused("[]", 0, "begin with '{'");
    refused("{}{}", 0, "m.safetensors");
    refused("{\"w\":{" F32 "}", 8, "m.safetensors");
    refused("{\"w\":{" F32 "}},}", 8, "m.safetensors");
    refused("{\"\xFF\":{" F32 "}}", 8, "m.safetensors");
    accepted("{}      ", 0);
}

static void a_repeated_tensor_is_refused(void **state) {
    (void)state;
    refused("{\"w\":{" F32 "},\"w\":{" F32 "}}", 8, "w");
    refused("{\"w\":{" F32 "},\"\\u0077\":{" F32 "}}", 8, "w");
}

static void a_repeated_member_of_an_entry_is_refused(void **state) {
    (void)state;
    refused("{\"w\":{\"dtype\":\"F32\"," F32 "}}", 8, "dtype");
}

static void metadata_holds_strings_only(void **state) {
    (void)state;
    refused("{\"__metadata__\":{\"a\":1}}", 0, "'a' is a number");
    refused("{\"__metadata__\":[]}", 0, "__metadata__ is an array");
    refused("{\"__metadata__\":{\"a\":null}}", 0, "'a'");
    accepted("{\"__metadata__\":{}}", 0);
}

static void an_entry_has_exactly_three_members(void **state) {
    (void)state;
    refused("{\"w\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "'w': dtype is missing");
    refused("{\"w\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8, "'w': shape is missing");
    refused("{\"w\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "'w': data_offsets");
    refused("{\"w\":{" F32 ",\"x\":1}}", 8, "unknown member 'x'");
    refused("{\"w\":7}", 0, "'w': found a number");
    refused("{\"w\":{\"dtype\":4,\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "dtype is a number");
    refused("{\"w\":{\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]}}", 8,
            "shape is a number");
}

static void an_unknown_dtype_is_named(void **state) {
    (void)state;
    refused("{\"w\":{\"dtype\":\"Q9\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
            "unknown dtype 'Q9'");
    refused("{\"w\":{\"dtype\":\"f32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "'f32'");
}

static void every_dtype_of_the_format_is_known(void **state) {
    (void)state;
    const struct {
        const char *name;
        int bytes_of_8;
    } types[] = {{"BOOL", 8},    {"U8", 8},      {"I8", 8},          {"F8_E4M3", 8},
                 {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8},
                 {"I16", 16},    {"U16", 16},    {"F16", 16},        {"BF16", 16},
                 {"I32", 32},    {"U32", 32},    {"F32", 32},        {"I64", 64},
                 {"U64", 64},    {"F64", 64},    {"C64", 64},        {"F4", 4},
                 {"F6_E2M3", 6}, {"F6_E3M2", 6}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char header[200];
        snprintf(header, sizeof header,
                 "{\"w\":{\"dtype\":\"%s\",\"shape\":[8],\"data_offsets\":[0,%d]}}", types[i].name,
                 types[i].bytes_of_8);
        accepted(header, (size_t)types[i].bytes_of_8);
    }
}

static void numbers_are_plain_integers_up_to_2_to_53(void **state) {
    (void)state;
    const char *wrong[] = {"2.0",
                           "2e0",
                           "-0",
                           "-2",
                           "\"2\"",
                           "null",
                           "true",
                           "9007199254740993",
                           "18446744073709551617",
                           "[2]"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char header[200];
        snprintf(header, sizeof header,
                 "{\"w\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[0,8]}}", wrong[i]);
        refused(header, 8, "'w': shape holds");
        snprintf(header, sizeof header,
                 "{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,%s]}}", wrong[i]);
        refused(header, 8, "'w': data_offsets");
    }
    refused("{\"w\":{\"dtype\":\"F32\",\"shape\":[02],\"data_offsets\":[0,8]}}", 8,
            "m.safetensors");
    refused("{\"w\":{\"dtype\":\"F32\",\"shape\":[NaN],\"data_offsets\":[0,8]}}", 8,
            "m.safetensors");
}

static void rank_8_is_the_limit(void **state) {
    (void)state;
    accepted("{\"w\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", 1);
    refused("{\"w\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", 1,
            "'w': rank 9");
}

static void a_shape_whose_product_overflows_is_refused(void **state) {
    (void)state;
    refused("{\"w\":{\"dtype\":\"U8\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}",
            0, "'w': the product of the shape overflows");
    refused("{\"w\":{\"dtype\":\"F32\",\"shape\":[4294967296,1073741824],\"data_offsets\":[0,0]}}",
            0, "overflows");
    refused("{\"w\":{\"dtype\":\"U8\",\"shape\":[4294967296,536870912],\"data_offsets\":[0,0]}}", 0,
            "overflows");
}

static void a_part_of_a_byte_is_refused(void **state) {
    (void)state;
    refused("{\"w\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,1]}}", 1, "12 bits");
    refused("{\"w\":{\"dtype\":\"F6_E2M3\",\"shape\":[2],\"data_offsets\":[0,1]}}", 1, "12 bits");
    accepted("{\"w\":{\"dtype\":\"F6_E2M3\",\"shape\":[4],\"data_offsets\":[0,3]}}", 3);
}

static void reversed_offsets_are_refused(void **state) {
    (void)state;
    refused("{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8, "run backwards");
}

static void offsets_past_the_end_are_refused(void **state) {
    (void)state;
    refused("{\"w\":{" F32 "}}", 7, "'w': ends at byte 8 of 7");
}

static void offsets_of_another_size_than_the_shape_are_refused(void **state) {
    (void)state;
    refused("{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4,
            "cover 4 bytes, its shape and type need 8");
    refused("{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}", 8, "[begin, end]");
    refused("{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8,8]}}", 8,
            "[begin, end]");
}

static void overlapping_tensors_are_refused(void **state) {
    (void)state;
    refused("{\"a\":{" F32 "},\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}", 12,
            "'b': begins at byte 4, wanted 8");
    refused("{\"a\":{" F32 "},\"b\":{" F32 "}}", 8, "begins at byte 0, wanted 8");
}

static void a_hole_is_refused(void **state) {
    (void)state;
    refused("{\"a\":{" F32 "},\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[12,20]}}",
            20, "'b': begins at byte 12, wanted 8");
    refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}", 12,
            "'a': begins at byte 4, wanted 0");
}

static void trailing_bytes_are_refused(void **state) {
    (void)state;
    refused("{\"w\":{" F32 "}}", 9, "end at byte 8 of 9");
    refused("{}", 1, "end at byte 0 of 1");
}

static void rank_0_and_empty_tensors_are_legal(void **state) {
    (void)state;
    accepted("{\"a\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[0,2]},"
             "\"b\":{\"dtype\":\"BF16\",\"shape\":[0,5],\"data_offsets\":[2,2]},"
             "\"c\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[2,4]}}",
             4);
}

static void a_name_of_1024_bytes_is_the_limit(void **state) {
    (void)state;
    for (size_t n = 1024; n <= 1025; n++) {
        buf header = {0};
        buf_add_text(&header, "{\"");
        for (size_t i = 0; i < n; i++) buf_add_char(&header, 'n');
        buf_add_text(&header, "\":{" F32 "}}");
        clef_error err = {0};
        const clef_status s = check((str){header.p, header.n}, 8, &err);
        assert_int_equal(s, n == 1024 ? CLEF_OK : CLEF_ERR_FORMAT);
        if (n == 1025) assert_non_null(strstr(err.text, "1025 bytes, the limit is 1024"));
        buf_free(&header);
    }
}

static void add_empty_tensors(buf *header, unsigned n) {
    buf_add_char(header, '{');
    for (unsigned i = 0; i < n; i++)
        buf_printf(header, "%s\"t%u\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}",
                   i == 0 ? "" : ",", i);
    buf_add_char(header, '}');
}

static void sixty_five_thousand_tensors_are_the_limit(void **state) {
    (void)state;
    for (unsigned n = 65536; n <= 65537; n++) {
        buf header = {0};
        add_empty_tensors(&header, n);
        clef_error err = {0};
        const clef_status s = check((str){header.p, header.n}, 0, &err);
        assert_int_equal(s, n == 65536 ? CLEF_OK : CLEF_ERR_FORMAT);
        if (n == 65537) assert_non_null(strstr(err.text, "65537 tensors, the limit is 65536"));
        buf_free(&header);
    }
}

static void names_are_escaped_in_sentences(void **state) {
    (void)state;
    refused("{\"a\\n\\u001b[31m\":7}", 0, "'a\\x0a\\x1b[31m'");
}

static void nesting_beyond_4_is_refused(void **state) {
    (void)state;
    refused("{\"w\":{\"dtype\":\"F32\",\"shape\":[[[2]]],\"data_offsets\":[0,8]}}", 8,
            "m.safetensors");
    buf header = {0};
    buf_add_text(&header, "{\"w\":");
    for (int i = 0; i < 100000; i++) buf_add_char(&header, '[');
    for (int i = 0; i < 100000; i++) buf_add_char(&header, ']');
    buf_add_char(&header, '}');
    refused(header.p, 0, "m.safetensors");
    buf_free(&header);
}

static void a_header_of_too_many_values_is_refused_before_it_is_built(void **state) {
    (void)state;
    buf header = {0};
    buf_add_text(&header, "{\"w\":[0");
    for (int i = 0; i < 2000000; i++) buf_add_text(&header, ",0");
    buf_add_text(&header, "]}");
    refused(header.p, 0, "more than 1048576 JSON values");
    buf_free(&header);
}

/* ---- files ------------------------------------------------------------------------------------
 */

#define PAIR(a, b) \
    "{\"" a "\":{" F32 "},\"" b "\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[8,12]}}"

static void write_tensors(const folder *f, const char *name, const char *header, size_t n_data) {
    buf file = {0};
    folder_safetensors(&file, str_of(header), n_data);
    folder_write(f, name, (str){file.p, file.n});
    buf_free(&file);
}

static void write_index(const folder *f, const char *text) {
    folder_write(f, "model.safetensors.index.json", str_of(text));
}

static void tensors_are_found_by_name(void **state) {
    (void)state;
    const folder f = folder_new();
    write_tensors(&f, "model.safetensors", PAIR("b", "a"), 12);
    safetensors *st = NULL;
    clef_error err = {0};
    assert_int_equal(safetensors_open_model(&st, f.path, &err), CLEF_OK);
    assert_int_equal(safetensors_count(st), 2);
    assert_int_equal(safetensors_at(st, 0).name.p[0], 'a');
    const tensor *b = safetensors_find(st, STR("b"));
    assert_ptr_equal(b, safetensors_at(st, 1).tensor);
    assert_int_equal(b->type, DTYPE_F32);
    assert_int_equal(b->rank, 1);
    assert_int_equal(b->shape[0], 2);
    assert_int_equal(b->bytes, 8);
    assert_int_equal(((const unsigned char *)b->data)[7], 7);
    assert_int_equal(((const unsigned char *)safetensors_find(st, STR("a"))->data)[0], 8);
    assert_null(safetensors_find(st, STR("")));
    assert_null(safetensors_find(st, STR("bb")));
    assert_non_null(strstr(safetensors_file_of(st, b), "/model.safetensors"));
    assert_int_equal(safetensors_bytes(st), 8 + strlen(PAIR("b", "a")) + 12);
    assert_null(safetensors_note(st));
    safetensors_close(st);
    folder_remove(f.path);
}

static void a_folder_without_weights_is_named(void **state) {
    (void)state;
    const folder f = folder_new();
    safetensors *st = NULL;
    clef_error err = {0};
    assert_int_equal(safetensors_open_model(&st, f.path, &err), CLEF_ERR_IO);
    assert_non_null(strstr(err.text, "/model.safetensors: "));
    assert_null(st);
    folder_make(&f, "model.safetensors");
    assert_int_equal(safetensors_open_model(&st, f.path, &err), CLEF_ERR_IO);
    assert_non_null(strstr(err.text, "wanted a regular file"));
    folder_remove(f.path);
}

/* Two shards: a and b in the first, c and d in the second. */
static folder two_shards(const char *index) {
    const folder f = folder_new();
    write_tensors(&f, "x-1.safetensors", PAIR("a", "b"), 12);
    write_tensors(&f, "x-2.safetensors", PAIR("c", "d"), 12);
    write_index(&f, index);
    return f;
}

#define WHOLE_MAP                                                          \
    "\"weight_map\":{\"a\":\"x-1.safetensors\",\"b\":\"x-1.safetensors\"," \
    "\"c\":\"x-2.safetensors\",\"d\":\"x-2.safetensors\"}"

static void shards_are_joined(void **state) {
    (void)state;
    const folder f = two_shards("{\"metadata\":{\"total_size\":24}," WHOLE_MAP "}");
    safetensors *st = NULL;
    clef_error err = {0};
    assert_int_equal(safetensors_open_model(&st, f.path, &err), CLEF_OK);
    assert_int_equal(safetensors_count(st), 4);
    for (uint32_t i = 0; i < 4; i++) {
        const safetensors_entry e = safetensors_at(st, i);
        assert_int_equal(e.name.p[0], 'a' + (char)i);
        assert_non_null(strstr(e.file, i < 2 ? "/x-1.safetensors" : "/x-2.safetensors"));
    }
    assert_null(safetensors_note(st));
    assert_non_null(strstr(safetensors_path(st), "/model.safetensors.index.json"));
    safetensors_close(st);
    folder_remove(f.path);
}

static void another_total_size_is_noted(void **state) {
    (void)state;
    const folder f = two_shards("{\"metadata\":{\"total_size\":25}," WHOLE_MAP "}");
    safetensors *st = NULL;
    assert_int_equal(safetensors_open_model(&st, f.path, NULL), CLEF_OK);
    assert_non_null(strstr(safetensors_note(st), "total_size is 25, the tensors have 24 bytes"));
    safetensors_close(st);
    folder_remove(f.path);
}

static void index_refused(const folder *f, clef_status status, const char *sentence) {
    safetensors *st = NULL;
    clef_error err = {0};
    assert_int_equal(safetensors_open_model(&st, f->path, &err), status);
    if (strstr(err.text, sentence) == NULL) fail_msg("found '%s', wanted '%s'", err.text, sentence);
    assert_null(st);
    folder_remove(f->path);
}

static void a_missing_shard_is_named_with_its_first_tensor(void **state) {
    (void)state;
    const folder f =
        two_shards("{\"weight_map\":{\"a\":\"x-1.safetensors\",\"z\":\"x-9.safetensors\","
                   "\"m\":\"x-9.safetensors\",\"b\":\"x-1.safetensors\"}}");
    index_refused(&f, CLEF_ERR_IO, "/x-9.safetensors: the shard is missing; it should hold 'z'");
}

static void a_dangling_link_is_a_missing_shard(void **state) {
    (void)state;
    const folder f = two_shards("{" WHOLE_MAP "}");
    unlink(folder_path(&f, "x-2.safetensors"));
    folder_link(&f, "x-2.safetensors", "../blobs/none");
    index_refused(&f, CLEF_ERR_IO, "/x-2.safetensors: the shard is missing; it should hold 'c'");
}

/* As a download that was interrupted leaves it: not a folder without an index. */
static void a_dangling_index_is_no_missing_one(void **state) {
    (void)state;
    const folder f = folder_new();
    write_tensors(&f, "model.safetensors", PAIR("a", "b"), 12);
    folder_link(&f, "model.safetensors.index.json", "../blobs/none");
    index_refused(&f, CLEF_ERR_IO, "model.safetensors.index.json: No such file or directory");
}

static void a_mapped_tensor_that_its_shard_lacks_is_named(void **state) {
    (void)state;
    const folder f =
        two_shards("{\"weight_map\":{\"a\":\"x-1.safetensors\",\"b\":\"x-1.safetensors\","
                   "\"bb\":\"x-1.safetensors\",\"c\":\"x-2.safetensors\","
                   "\"d\":\"x-2.safetensors\"}}");
    index_refused(&f, CLEF_ERR_FORMAT, "tensor 'bb' is listed in x-1.safetensors, which has none");
}

static void a_tensor_that_the_index_does_not_list_is_refused(void **state) {
    (void)state;
    const folder f =
        two_shards("{\"weight_map\":{\"a\":\"x-1.safetensors\",\"b\":\"x-1.safetensors\","
                   "\"c\":\"x-2.safetensors\"}}");
    index_refused(&f, CLEF_ERR_FORMAT, "/x-2.safetensors: tensor 'd': is not listed in ");
}

static void a_tensor_in_another_shard_than_listed_is_refused(void **state) {
    (void)state;
    const folder f =
        two_shards("{\"weight_map\":{\"a\":\"x-1.safetensors\",\"b\":\"x-2.safetensors\","
                   "\"c\":\"x-2.safetensors\",\"d\":\"x-2.safetensors\"}}");
    index_refused(&f, CLEF_ERR_FORMAT, "/x-1.safetensors: tensor 'b': ");
}

static void a_tensor_in_two_shards_is_refused(void **state) {
    (void)state;
    const folder f = two_shards("{" WHOLE_MAP "}");
    write_tensors(&f, "x-2.safetensors", PAIR("b", "d"), 12);
    index_refused(&f, CLEF_ERR_FORMAT, "tensor 'b': is in ");
}

static void a_shard_name_is_no_path(void **state) {
    (void)state;
    const char *names[] = {"../x.safetensors",   "/etc/x.safetensors",   "a/b.safetensors",
                           "a\\\\b.safetensors", "a..safetensors",       "x-1.bin",
                           ".safetensors",       "x\\u0000.safetensors", ""};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char index[200];
        snprintf(index, sizeof index, "{\"weight_map\":{\"a\":\"%s\"}}", names[i]);
        const folder f = two_shards(index);
        index_refused(&f, CLEF_ERR_FORMAT, "wanted a plain file name");
    }
    const folder f = two_shards("{\"weight_map\":{\"a\":7}}");
    index_refused(&f, CLEF_ERR_FORMAT, "tensor 'a' is mapped to '7'");
}

static void an_index_without_a_map_is_refused(void **state) {
    (void)state;
    const char *texts[] = {"{}", "{\"weight_map\":{}}", "{\"weight_map\":[]}",
                           "{\"weight_map\":\"a\"}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const folder f = two_shards(texts[i]);
        index_refused(&f, CLEF_ERR_FORMAT, "weight_map is ");
    }
    const folder twice =
        two_shards("{\"weight_map\":{\"a\":\"x-1.safetensors\",\"a\":\"x-2.safetensors\"}}");
    index_refused(&twice, CLEF_ERR_FORMAT, "index.json");
    const folder torn = two_shards("{\"weight_map\":{\"a\":");
    index_refused(&torn, CLEF_ERR_FORMAT, "index.json");
}

static void four_thousand_shards_are_the_limit(void **state) {
    (void)state;
    buf index = {0};
    buf_add_text(&index, "{\"weight_map\":{");
    for (int i = 0; i < 4097; i++)
        buf_printf(&index, "%s\"t%d\":\"s%d.safetensors\"", i == 0 ? "" : ",", i, i);
    buf_add_text(&index, "}}");
    const folder f = two_shards(index.p);
    buf_free(&index);
    index_refused(&f, CLEF_ERR_FORMAT, "4097 shards, the limit is 4096");
}

static void a_broken_shard_is_named(void **state) {
    (void)state;
    const folder f = two_shards("{" WHOLE_MAP "}");
    write_tensors(&f, "x-2.safetensors", PAIR("c", "d"), 11);
    index_refused(&f, CLEF_ERR_FORMAT, "/x-2.safetensors: tensor 'd': ends at byte 12 of 11");
}

static void a_link_out_of_the_folder_is_refused(void **state) {
    (void)state;
    const folder outside = folder_new(), f = two_shards("{" WHOLE_MAP "}");
    write_tensors(&outside, "blob", PAIR("c", "d"), 12);
    char target[300];
    snprintf(target, sizeof target, "../%s/blob", strrchr(outside.path, '/') + 1);
    unlink(folder_path(&f, "x-2.safetensors"));
    folder_link(&f, "x-2.safetensors", target);
    index_refused(&f, CLEF_ERR_FORMAT, "wanted a file inside");
    folder_remove(outside.path);
}

static void the_sharded_toy_opens(void **state) {
    (void)state;
    safetensors *st = NULL;
    clef_error err = {0};
    if (safetensors_open_model(&st, TESTDATA "toy-r3-sharded", &err) != CLEF_OK)
        fail_msg("%s", err.text);
    assert_int_equal(safetensors_count(st), 70);
    assert_null(safetensors_note(st));
    safetensors_close(st);
}

static clef_status open_and_close(void *context, clef_error *err) {
    safetensors *st = NULL;
    const clef_status s = safetensors_open_model(&st, context, err);
    if (s != CLEF_OK) assert_null(st);
    safetensors_close(st);
    return s;
}

static void every_failed_allocation_is_reported(void **state) {
    (void)state;
    folder f = two_shards("{\"metadata\":{\"total_size\":7}," WHOLE_MAP "}");
    assert_true(oom_each(open_and_close, f.path) > 10);
    unlink(folder_path(&f, "model.safetensors.index.json"));
    write_tensors(&f, "model.safetensors", PAIR("a", "b"), 12);
    assert_true(oom_each(open_and_close, f.path) > 5);
    folder_remove(f.path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_file_is_read),
        cmocka_unit_test(a_file_under_8_bytes_is_refused),
        cmocka_unit_test(a_header_length_beyond_the_file_is_refused),
        cmocka_unit_test(a_header_length_of_0_is_refused),
        cmocka_unit_test(two_hundred_megabytes_of_blanks_are_refused_unread),
        cmocka_unit_test(a_header_is_one_object_and_spaces),
        cmocka_unit_test(a_repeated_tensor_is_refused),
        cmocka_unit_test(a_repeated_member_of_an_entry_is_refused),
        cmocka_unit_test(metadata_holds_strings_only),
        cmocka_unit_test(an_entry_has_exactly_three_members),
        cmocka_unit_test(an_unknown_dtype_is_named),
        cmocka_unit_test(every_dtype_of_the_format_is_known),
        cmocka_unit_test(numbers_are_plain_integers_up_to_2_to_53),
        cmocka_unit_test(rank_8_is_the_limit),
        cmocka_unit_test(a_shape_whose_product_overflows_is_refused),
        cmocka_unit_test(a_part_of_a_byte_is_refused),
        cmocka_unit_test(reversed_offsets_are_refused),
        cmocka_unit_test(offsets_past_the_end_are_refused),
        cmocka_unit_test(offsets_of_another_size_than_the_shape_are_refused),
        cmocka_unit_test(overlapping_tensors_are_refused),
        cmocka_unit_test(a_hole_is_refused),
        cmocka_unit_test(trailing_bytes_are_refused),
        cmocka_unit_test(rank_0_and_empty_tensors_are_legal),
        cmocka_unit_test(a_name_of_1024_bytes_is_the_limit),
        cmocka_unit_test(sixty_five_thousand_tensors_are_the_limit),
        cmocka_unit_test(names_are_escaped_in_sentences),
        cmocka_unit_test(nesting_beyond_4_is_refused),
        cmocka_unit_test(a_header_of_too_many_values_is_refused_before_it_is_built),
        cmocka_unit_test(tensors_are_found_by_name),
        cmocka_unit_test(a_folder_without_weights_is_named),
        cmocka_unit_test(shards_are_joined),
        cmocka_unit_test(another_total_size_is_noted),
        cmocka_unit_test(a_missing_shard_is_named_with_its_first_tensor),
        cmocka_unit_test(a_dangling_link_is_a_missing_shard),
        cmocka_unit_test(a_dangling_index_is_no_missing_one),
        cmocka_unit_test(a_mapped_tensor_that_its_shard_lacks_is_named),
        cmocka_unit_test(a_tensor_that_the_index_does_not_list_is_refused),
        cmocka_unit_test(a_tensor_in_another_shard_than_listed_is_refused),
        cmocka_unit_test(a_tensor_in_two_shards_is_refused),
        cmocka_unit_test(a_shard_name_is_no_path),
        cmocka_unit_test(an_index_without_a_map_is_refused),
        cmocka_unit_test(four_thousand_shards_are_the_limit),
        cmocka_unit_test(a_broken_shard_is_named),
        cmocka_unit_test(a_link_out_of_the_folder_is_refused),
        cmocka_unit_test(the_sharded_toy_opens),
        cmocka_unit_test(every_failed_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
