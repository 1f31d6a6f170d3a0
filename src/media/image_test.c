/* Tests of image.c and the decoders: pixels as Pillow 13 converts them, of every kind of file that
 * tools/oracle/record_media.py makes, and what is refused. */
#include "media/image.h"

#include "tests/recorded.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "base/digest.h"
#include "media/exif.h"
#include "media/media.h"
#include "tests/noise.h"
#include "tests/oom.h"
#include "tests/oom_each.h"

#define MEDIA TESTDATA "media/"

static buf read_file(const char *name) {
    char path[256];
    buf out = {0};
    clef_error err = {0};
    snprintf(path, sizeof path, MEDIA "%s", name);
    if (file_read(&out, path, 1 << 24, &err) != CLEF_OK) fail_msg("%s", err.text);
    return out;
}

static clef_status decode(image *out, str bytes, bool rotate, clef_error *err) {
    const image_options options = {
        .max_pixels = MEDIA_MOST_PIXELS, .exif_rotate = rotate, .where = "images[2]"};
    return image_decode(out, bytes, &options, err);
}

static image decode_file(const char *name, bool rotate) {
    buf file = read_file(name);
    image i = {0};
    clef_error err = {0};
    if (decode(&i, (str){file.p, file.n}, rotate, &err) != CLEF_OK)
        fail_msg("%s: %s", name, err.text);
    buf_free(&file);
    return i;
}

static void text_of(char out[64], str s) {
    snprintf(out, 64, "%.*s", STR_ARG(s));
}

static void expect_digest(const image *i, str wanted, const char *name) {
    char hex[DIGEST_HEX];
    assert_int_equal(digest_bytes(hex, i->rgb, (size_t)i->w * i->h * 3, NULL), CLEF_OK);
    if (!str_equal(str_of(hex), wanted)) fail_msg("%s: other pixels than Pillow's", name);
}

static const json *cases(arena *mem) {
    return recorded_get(recorded_load(mem, MEDIA "images.json"), "images")->first;
}

static bool is_lossy(const json *row) {
    return recorded_get(row, "lossy")->kind == JSON_TRUE;
}

/* ---- pixels ---------------------------------------------------------------------------------- */

static void files_without_loss_give_pillow_s_pixels(void **state) {
    (void)state;
    arena mem = {0};
    uint32_t n = 0;
    for (const json *row = cases(&mem); row != NULL; row = row->next) {
        if (is_lossy(row)) continue;
        char name[64];
        text_of(name, recorded_text(row, "file"));
        image i = decode_file(name, false);
        assert_int_equal(i.w, recorded_count(row, "w"));
        assert_int_equal(i.h, recorded_count(row, "h"));
        expect_digest(&i, recorded_text(row, "rgb"), name);
        image_free(&i);
        n++;
    }
    assert_true(n >= 40);
    arena_free(&mem);
}

/* Decoders may differ by a level where the standard leaves rounding open. */
static void files_with_loss_give_pillow_s_pixels_within_a_level(void **state) {
    (void)state;
    arena mem = {0};
    uint32_t n = 0;
    size_t samples = 0, differing = 0;
    for (const json *row = cases(&mem); row != NULL; row = row->next) {
        if (!is_lossy(row)) continue;
        char name[64], golden_name[80];
        text_of(name, recorded_text(row, "file"));
        snprintf(golden_name, sizeof golden_name, "%s.rgb.png", name);
        image i = decode_file(name, false), golden = decode_file(golden_name, false);
        expect_digest(&golden, recorded_text(row, "rgb"), golden_name);
        assert_int_equal(i.w, golden.w);
        assert_int_equal(i.h, golden.h);
        const size_t bytes = (size_t)i.w * i.h * 3;
        for (size_t k = 0; k < bytes; k++) {
            const int apart = abs(i.rgb[k] - golden.rgb[k]);
            if (apart > 1) fail_msg("%s: sample %zu is %d levels away", name, k, apart);
            differing += apart != 0;
        }
        samples += bytes;
        image_free(&i);
        image_free(&golden);
        n++;
    }
    print_message("%u files, %zu of %zu samples differ\n", n, differing, samples);
    assert_true(n >= 20);
    arena_free(&mem);
}

static void orientation_turns_where_it_is_asked_for(void **state) {
    (void)state;
    arena mem = {0};
    uint32_t n = 0;
    for (const json *row = cases(&mem); row != NULL; row = row->next) {
        const json *turned = json_get(row, STR("turned"));
        char name[64];
        text_of(name, recorded_text(row, "file"));
        image i = decode_file(name, true);
        if (turned == NULL) {
            assert_int_equal(i.w, recorded_count(row, "w"));
        } else {
            uint64_t w = 0, h = 0;
            assert_true(json_u64(&w, turned->first, UINT32_MAX));
            assert_true(json_u64(&h, turned->first->next, UINT32_MAX));
            assert_int_equal(i.w, w);
            assert_int_equal(i.h, h);
            expect_digest(&i, turned->first->next->next->text, name);
            n++;
        }
        image_free(&i);
    }
    assert_int_equal(n, 9);
    arena_free(&mem);
}

/* ---- bombs ----------------------------------------------------------------------------------- */

static void put_be32(uint8_t *to, uint32_t v) {
    for (int i = 0; i < 4; i++) to[i] = (uint8_t)(v >> (24 - 8 * i));
}

static void add_chunk(buf *out, const char *kind, const void *data, size_t n) {
    uint8_t four[4];
    put_be32(four, (uint32_t)n);
    buf_add(out, four, 4);
    const size_t from = out->n;
    buf_add(out, kind, 4);
    buf_add(out, data, n);
    put_be32(four, (uint32_t)crc32(0, (const uint8_t *)out->p + from, (uInt)(out->n - from)));
    buf_add(out, four, 4);
}

/* Adds a chunk of `head` and n_zeros packed zero bytes. */
static void add_zeros(buf *out, const char *kind, str head, size_t n_zeros) {
    uLongf packed_n = compressBound(n_zeros);
    uint8_t *zeros = calloc(n_zeros, 1), *packed = malloc(packed_n + head.n);
    assert_non_null(zeros);
    assert_non_null(packed);
    memcpy(packed, head.p, head.n);
    assert_int_equal(compress2(packed + head.n, &packed_n, zeros, n_zeros, 9), Z_OK);
    add_chunk(out, kind, packed, packed_n + head.n);
    free(zeros);
    free(packed);
}

/* A PNG file that claims w x h gray pixels and holds n_zeros zero bytes of them; where `extra` is
 * not NULL, also 64 MB of zeros in a packed chunk of that kind. */
static buf make_png(uint32_t w, uint32_t h, size_t n_zeros, const char *extra) {
    uint8_t head[13] = {0};
    put_be32(head, w);
    put_be32(head + 4, h);
    head[8] = 8;
    buf out = {0};
    buf_add(&out, "\x89PNG\r\n\x1a\n", 8);
    add_chunk(&out, "IHDR", head, sizeof head);
    if (extra != NULL) add_zeros(&out, extra, STR("x\0\0"), 64u << 20);
    add_zeros(&out, "IDAT", STR(""), n_zeros);
    add_chunk(&out, "IEND", "", 0);
    return out;
}

/* 420.jpg claiming w x h pixels. */
static buf make_large_jpeg(uint32_t w, uint32_t h) {
    buf out = read_file("420.jpg");
    size_t at = 0;
    while (at + 9 < out.n && !((uint8_t)out.p[at] == 0xFF && (uint8_t)out.p[at + 1] == 0xC0)) at++;
    assert_true(at + 9 < out.n);
    uint8_t *frame = (uint8_t *)out.p + at;
    frame[5] = (uint8_t)(h >> 8);
    frame[6] = (uint8_t)h;
    frame[7] = (uint8_t)(w >> 8);
    frame[8] = (uint8_t)w;
    return out;
}

/* progressive.jpg with its last scan n times. */
static buf make_scans(unsigned n) {
    buf file = read_file("progressive.jpg"), out = {0};
    size_t last = 0;
    for (size_t i = 0; i + 1 < file.n; i++)
        if ((uint8_t)file.p[i] == 0xFF && (uint8_t)file.p[i + 1] == 0xDA) last = i;
    assert_true(last > 0);
    buf_add(&out, file.p, last);
    for (unsigned i = 0; i < n; i++) buf_add(&out, file.p + last, file.n - 2 - last);
    buf_add(&out, "\xff\xd9", 2);
    buf_free(&file);
    return out;
}

static buf make_large_webp(void) {
    /* VP8X: 10 bytes, of which the last six are the sides less one. */
    static const char FILE_BYTES[] = "RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\xfe\xff\0\xfe\xff\0";
    buf out = {0};
    buf_add(&out, FILE_BYTES, sizeof FILE_BYTES - 1);
    return out;
}

static double cpu_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static long peak_kb(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_maxrss;
}

/* Decodes in a process of its own, whose peak of memory starts where this one stands. */
static void expect_cheap_refusal(buf bytes, clef_status status, const char *sentence) {
    enum { MOST_MS = 50, MOST_KB = 50 * 1024, WRONG = 1, SLOW, LARGE };
    fflush(stdout);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const double begin = cpu_ms();
        const long before = peak_kb();
        image i = {0};
        clef_error err = {0};
        const clef_status s = decode(&i, (str){bytes.p, bytes.n}, false, &err);
        if (s != status || strstr(err.text, sentence) == NULL) {
            fprintf(stderr, "%d %s\n", s, err.text);
            _exit(WRONG);
        }
        if (cpu_ms() - begin > MOST_MS) _exit(SLOW);
        _exit(peak_kb() - before > MOST_KB ? LARGE : 0);
    }
    int result = 0;
    assert_int_equal(waitpid(child, &result, 0), child);
    if (!WIFEXITED(result) || WEXITSTATUS(result) != 0)
        fail_msg("%s: %s", sentence,
                 !WIFEXITED(result)             ? "crashed"
                 : WEXITSTATUS(result) == WRONG ? "another outcome"
                 : WEXITSTATUS(result) == SLOW  ? "took more than 50 ms"
                                                : "took more than 50 MB");
    buf_free(&bytes);
}

static void b65_a_png_of_60000_by_60000_is_refused_from_its_header(void **state) {
    (void)state;
    expect_cheap_refusal(make_png(60000, 60000, 100, NULL), CLEF_ERR_LIMIT,
                         "images[2]: 60000 x 60000 pixels, the limit is 178956970 in all");
}

static void b65_a_jpeg_of_65535_by_65535_is_refused_from_its_header(void **state) {
    (void)state;
    expect_cheap_refusal(make_large_jpeg(65500, 65500), CLEF_ERR_LIMIT,
                         "images[2]: 65500 x 65500 pixels, the limit is");
}

static void b65_a_jpeg_of_5000_scans_is_refused_before_it_is_decoded(void **state) {
    (void)state;
    expect_cheap_refusal(make_scans(5000), CLEF_ERR_LIMIT,
                         "images[2]: a JPEG file of more than 100 scans");
}

static void b65_a_webp_of_65535_by_65535_is_refused_from_its_header(void **state) {
    (void)state;
    expect_cheap_refusal(make_large_webp(), CLEF_ERR_LIMIT,
                         "images[2]: 65535 x 65535 pixels, the limit is");
}

static void b65_packed_zeros_for_a_gigabyte_are_refused_from_its_header(void **state) {
    (void)state;
    expect_cheap_refusal(make_png(32768, 32768, 64u << 20, NULL), CLEF_ERR_LIMIT,
                         "images[2]: 32768 x 32768 pixels");
}

static void b65_zeros_without_end_behind_the_last_row_is_refused(void **state) {
    (void)state;
    expect_cheap_refusal(make_png(3, 5, 64u << 20, NULL), CLEF_ERR_INPUT,
                         "more data than the picture has rows for");
}

static void chunks_that_are_not_needed_are_not_unpacked(void **state) {
    (void)state;
    static const char *const CHUNKS[] = {"zTXt", "iCCP", "iTXt"};
    for (size_t k = 0; k < sizeof CHUNKS / sizeof CHUNKS[0]; k++) {
        buf bytes = make_png(3, 5, (3 + 1) * 5, CHUNKS[k]);
        const double begin = cpu_ms();
        image i = {0};
        assert_int_equal(decode(&i, (str){bytes.p, bytes.n}, false, NULL), CLEF_OK);
        assert_true(cpu_ms() - begin < 20);
        image_free(&i);
        buf_free(&bytes);
    }
}

static void the_caller_s_limit_holds(void **state) {
    (void)state;
    buf file = read_file("rgb8.png");
    image i = {0};
    clef_error err = {0};
    image_options options = {.max_pixels = 31 * 29 - 1, .where = "images[0]"};
    assert_int_equal(image_decode(&i, (str){file.p, file.n}, &options, &err), CLEF_ERR_LIMIT);
    assert_string_equal(err.text, "images[0]: 31 x 29 pixels, the limit is 898 in all");
    options.max_pixels++;
    assert_int_equal(image_decode(&i, (str){file.p, file.n}, &options, &err), CLEF_OK);
    image_free(&i);
    buf_free(&file);
}

/* ---- broken and foreign files ---------------------------------------------------------------- */

static void expect_refused(str bytes, clef_status status, const char *sentence) {
    image i = {0};
    clef_error err = {0};
    const clef_status s = decode(&i, bytes, true, &err);
    if (s != status || strncmp(err.text, sentence, strlen(sentence)) != 0)
        fail_msg("found  %d %s\n wanted %d %s", s, err.text, status, sentence);
    assert_null(i.rgb);
}

static void b63_what_is_no_picture_is_refused_naming_it(void **state) {
    (void)state;
    expect_refused(STR(""), CLEF_ERR_INPUT, "images[2]: 0 bytes that are no picture");
    expect_refused(STR("just a text file\n"), CLEF_ERR_INPUT,
                   "images[2]: 17 bytes that are no picture, wanted a PNG, JPEG or WebP file");
    expect_refused(STR("\x89PNG\r\n\x1a\n"), CLEF_ERR_INPUT, "images[2]: a broken PNG file: ");
    expect_refused(STR("\xff\xd8\xff"), CLEF_ERR_INPUT, "images[2]: a broken JPEG file: ");
    expect_refused(STR("RIFF\x04\0\0\0WEBP"), CLEF_ERR_INPUT, "images[2]: a broken WebP file: ");
}

/* The segments up to the first scan of 420.jpg: a frame without data. */
static void b63_a_jpeg_of_headers_alone_is_refused(void **state) {
    (void)state;
    buf file = read_file("420.jpg");
    size_t scan = 0;
    for (size_t i = 0; i + 1 < file.n && scan == 0; i++)
        if ((uint8_t)file.p[i] == 0xFF && (uint8_t)file.p[i + 1] == 0xDA) scan = i;
    expect_refused((str){file.p, scan}, CLEF_ERR_INPUT, "images[2]: a broken JPEG file: ");
    buf_free(&file);
}

static void b63_a_jpeg_with_a_random_tail_is_refused(void **state) {
    (void)state;
    buf file = read_file("photo.jpg");
    noise_fill((uint8_t *)file.p + file.n / 2, file.n - file.n / 2, 7, 256, 1);
    expect_refused((str){file.p, file.n}, CLEF_ERR_INPUT, "images[2]: a broken JPEG file: ");
    buf_free(&file);
}

static void cut_files_are_refused_at_every_length(void **state) {
    (void)state;
    static const char *const NAMES[] = {"rgba8.png",  "palette4.png",    "gray16_interlaced.png",
                                        "420.jpg",    "progressive.jpg", "lossless.webp",
                                        "lossy.webp", "alpha.webp",      "animated.webp"};
    for (size_t k = 0; k < sizeof NAMES / sizeof NAMES[0]; k++) {
        buf file = read_file(NAMES[k]);
        /* What ends a file holds no pixels: without it the picture is still whole. */
        const size_t most = file.n - (strstr(NAMES[k], ".png") != NULL ? 16 : 2);
        const size_t step = file.n / 200 + 1;
        for (size_t n = 0; n < most; n += strstr(NAMES[k], "animated") == NULL ? step : 1) {
            image i = {0};
            clef_error err = {0};
            char *copy = malloc(n + 1); /* exactly as long, for the address sanitizer */
            assert_non_null(copy);
            memcpy(copy, file.p, n);
            const clef_status s = decode(&i, (str){copy, n}, true, &err);
            if (s == CLEF_OK && strstr(NAMES[k], "animated") == NULL)
                fail_msg("%s cut to %zu of %zu bytes is taken", NAMES[k], n, file.n);
            if (s != CLEF_OK) assert_int_equal(s, CLEF_ERR_INPUT);
            image_free(&i);
            free(copy);
        }
        buf_free(&file);
    }
}

static void a_png_with_a_wrong_checksum_is_refused(void **state) {
    (void)state;
    buf file = read_file("rgb8.png");
    file.p[file.n - 16] ^= 1; /* the last byte of IDAT's checksum */
    expect_refused((str){file.p, file.n}, CLEF_ERR_INPUT, "images[2]: a broken PNG file: IDAT");
    buf_free(&file);
}

static void b69_other_formats_are_refused_by_name(void **state) {
    (void)state;
    static const struct {
        str bytes;
        const char *name;
    } ROWS[] = {
#define ROW(s, name) {{(s), sizeof(s) - 1}, name}
        ROW("GIF89a\1\0\1\0\0\0\0", "GIF"),
        ROW("BM\x46\0\0\0\0\0", "BMP"),
        ROW("II*\0\x08\0\0\0", "TIFF"),
        ROW("MM\0*\0\0\0\x08", "TIFF"),
        ROW("\0\0\0\x1c"
            "ftypavif",
            "AVIF"),
        ROW("\0\0\0\x18"
            "ftypheic",
            "HEIC"),
        ROW("\xff\x0a\xfa\x7f", "JPEG XL"),
        ROW("\0\0\0\x0cjP  \r\n\x87\n", "JPEG 2000"),
        ROW("\0\0\1\0\1\0", "ICO"),
        ROW("8BPS\0\1", "PSD"),
        ROW("%PDF-1.7", "PDF"),
        ROW("<svg xmlns=''/>", "SVG"),
#undef ROW
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        char sentence[128];
        snprintf(sentence, sizeof sentence,
                 "images[2]: a file of format %s; PNG, JPEG and WebP are read", ROWS[i].name);
        expect_refused(ROWS[i].bytes, CLEF_ERR_UNSUPPORTED, sentence);
    }
}

/* ---- orientation that makes no sense --------------------------------------------------------- */

static void an_orientation_that_makes_no_sense_is_none(void **state) {
    (void)state;
    static const str TIFFS[] = {
#define ROW(s) {(s), sizeof(s) - 1}
        ROW(""),
        ROW("II*\0"),
        ROW("XX*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0"),
        ROW("II*\0\xff\xff\xff\xff\1\0\x12\1\3\0\1\0\0\0\6\0\0\0"),
        ROW("II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0"),
        ROW("II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\x09\0\0\0"),
        ROW("II*\0\x08\0\0\0\1\0\x12\1\4\0\1\0\0\0\6\0\0\0"),
        ROW("II*\0\x08\0\0\0\xff\xff\x13\1\3\0\1\0\0\0\6\0\0\0"),
#undef ROW
    };
    for (size_t i = 0; i < sizeof TIFFS / sizeof TIFFS[0]; i++)
        assert_int_equal(exif_orientation(TIFFS[i]), 1);
    assert_int_equal(exif_orientation(STR("II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0")), 6);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static clef_status decode_once(void *context, clef_error *err) {
    const buf *file = context;
    image i = {0};
    const clef_status s = decode(&i, (str){file->p, file->n}, true, err);
    image_free(&i);
    return s;
}

static void running_out_of_memory_is_told(void **state) {
    (void)state;
    static const char *const NAMES[] = {"turned.png", "cmyk.jpg", "turned6.jpg", "turned.webp",
                                        "animated.webp"};
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        buf file = read_file(NAMES[i]);
        assert_true(oom_each(decode_once, &file) > 0);
        buf_free(&file);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_without_loss_give_pillow_s_pixels),
        cmocka_unit_test(files_with_loss_give_pillow_s_pixels_within_a_level),
        cmocka_unit_test(orientation_turns_where_it_is_asked_for),
        cmocka_unit_test(b65_a_png_of_60000_by_60000_is_refused_from_its_header),
        cmocka_unit_test(b65_a_jpeg_of_65535_by_65535_is_refused_from_its_header),
        cmocka_unit_test(b65_a_jpeg_of_5000_scans_is_refused_before_it_is_decoded),
        cmocka_unit_test(b65_a_webp_of_65535_by_65535_is_refused_from_its_header),
        cmocka_unit_test(b65_packed_zeros_for_a_gigabyte_are_refused_from_its_header),
        cmocka_unit_test(b65_zeros_without_end_behind_the_last_row_is_refused),
        cmocka_unit_test(chunks_that_are_not_needed_are_not_unpacked),
        cmocka_unit_test(the_caller_s_limit_holds),
        cmocka_unit_test(b63_what_is_no_picture_is_refused_naming_it),
        cmocka_unit_test(b63_a_jpeg_of_headers_alone_is_refused),
        cmocka_unit_test(b63_a_jpeg_with_a_random_tail_is_refused),
        cmocka_unit_test(cut_files_are_refused_at_every_length),
        cmocka_unit_test(a_png_with_a_wrong_checksum_is_refused),
        cmocka_unit_test(b69_other_formats_are_refused_by_name),
        cmocka_unit_test(an_orientation_that_makes_no_sense_is_none),
        cmocka_unit_test(running_out_of_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
