/* minisign_test.c - keys and signatures against fixed vectors (made with minisign 0.11) and against
 * the program itself, both ways. */
#include "fetch/minisign.h"

#include "tests/folder.h"

#include <fcntl.h>
#include <sys/wait.h>

#include "base/base64.h"
#include "base/file.h"

#define KEY "RWTXMrWXXVzmuletLryW+qVkAbP/zNFpBMbGX37r8PA61yRmBBsENkog"
#define MESSAGE STR("hello manifest\n")
#define HASHED                                                                                     \
    "RUTXMrWXXVzmuhZDZ64/92NH+T4GtmvpZpjT7I17jhu8nOqsPoGK07wcSqg+1oNexCIAIaSYQjhz0jHLteHb7bWWroQo" \
    "W8D8dQQ="
#define HASHED_COMMENT "timestamp:1 file:m.json hashed"
#define HASHED_GLOBAL \
    "Y/doKdfBBahrkIlHJkznt+n6aoEdw2Xg20hJktyeqrepLV2rVFbZQgkPYdHk5QjICv4WK7xN/zROP/jgvN28CA=="
#define LEGACY                                                                                     \
    "RWTXMrWXXVzmurIwsxxzxOMoK09+f2YKTU7Ihy9IXDZuMoHcVxtL27rS/7ALti33mOiar2x7egh23TgSSOilICe1QB5n" \
    "SWh+Pwk="
#define LEGACY_COMMENT "timestamp:1796052675\tfile:m.json"
#define LEGACY_GLOBAL \
    "kOn1qnm8i3EZdBpeZH08wKJTcXuPGi19zIC+JDLtK7AbKH8cPgUcMPDjegs7MevNrJoIkBMM3oZFCoFhnq4HAQ=="

static minisign_key key_of(const char *text) {
    minisign_key key;
    clef_error err = {0};
    if (minisign_key_read(&key, text, &err) != CLEF_OK) fail_msg("%s", err.text);
    return key;
}

/* A signature file of four lines. */
static buf signature_of(const char *bytes, const char *comment, const char *global) {
    buf out = {0};
    buf_printf(&out, "untrusted comment: anything\n%s\ntrusted comment: %s\n%s\n", bytes, comment,
               global);
    return out;
}

static clef_status verify(str message, const buf *signature, minisign_policy policy, str *comment,
                          clef_error *err) {
    const minisign_key key = key_of(KEY);
    return minisign_verify(&key, message, (str){signature->p, signature->n}, policy, "m.minisig",
                           comment, err);
}

/* Neither policy takes the signature of `message`, and the sentence has these words. */
static void refused(str message, buf *signature, const char *words) {
    clef_error err = {0};
    for (int policy = 0; policy < 2; policy++) {
        const clef_status s = verify(message, signature, (minisign_policy)policy, NULL, &err);
        if (s == CLEF_OK) fail_msg("taken: %s", signature->p);
    }
    if (strstr(err.text, words) == NULL) fail_msg("%s; wanted: %s", err.text, words);
    buf_free(signature);
}

static void a_key_number_is_shown_as_minisign_shows_it(void **state) {
    (void)state;
    char id[MINISIGN_ID];
    minisign_key key = key_of(KEY);
    minisign_key_id(id, key.number);
    assert_string_equal(id, "BAE65C5D97B532D7");
    key = key_of(MINISIGN_FREEWEIGHTS);
    minisign_key_id(id, key.number);
    assert_string_equal(id, "2DC28CC7B26A283B");
    static const unsigned char begin[] = {0x7b, 0x54, 0x14, 0xea}, end[] = {0xab, 0x53, 0xaa};
    assert_memory_equal(key.key, begin, sizeof begin);
    assert_memory_equal(key.key + 29, end, sizeof end);
}

static void a_hashed_signature_is_right(void **state) {
    (void)state;
    clef_error err = {0};
    str comment = {0};
    buf sig = signature_of(HASHED, HASHED_COMMENT, HASHED_GLOBAL);
    assert_int_equal(verify(MESSAGE, &sig, MINISIGN_HASHED_ONLY, &comment, &err), CLEF_OK);
    assert_true(str_equal(comment, STR(HASHED_COMMENT)));
    buf_free(&sig);
}

static void a_legacy_signature_is_right_where_it_is_allowed(void **state) {
    (void)state;
    clef_error err = {0};
    buf sig = signature_of(LEGACY, LEGACY_COMMENT, LEGACY_GLOBAL);
    assert_int_equal(verify(MESSAGE, &sig, MINISIGN_LEGACY_TOO, NULL, &err), CLEF_OK);
    buf_free(&sig);
}

static void a_legacy_signature_is_refused_elsewhere(void **state) {
    (void)state;
    clef_error err = {0};
    buf sig = signature_of(LEGACY, LEGACY_COMMENT, LEGACY_GLOBAL);
    assert_int_equal(verify(MESSAGE, &sig, MINISIGN_HASHED_ONLY, NULL, &err), CLEF_ERR_FORMAT);
    assert_non_null(strstr(err.text, "legacy"));
    buf_free(&sig);
}

static void lines_may_end_in_carriage_return_and_line_feed(void **state) {
    (void)state;
    clef_error err = {0};
    buf sig = {0};
    buf_add_text(&sig, "untrusted comment: a\r\n" HASHED "\r\ntrusted comment: " HASHED_COMMENT
                       "\r\n" HASHED_GLOBAL "\r\n");
    assert_int_equal(verify(MESSAGE, &sig, MINISIGN_HASHED_ONLY, NULL, &err), CLEF_OK);
    buf_free(&sig);
}

/* Every bit of the message and of the three signed fields. */
static void one_bit_elsewhere_is_refused(void **state) {
    (void)state;
    char message[] = "hello manifest\n", comment[] = HASHED_COMMENT;
    for (size_t bit = 0; bit < 8 * (sizeof message - 1); bit++) {
        message[bit / 8] = (char)(message[bit / 8] ^ 1 << bit % 8);
        buf sig = signature_of(HASHED, HASHED_COMMENT, HASHED_GLOBAL);
        refused((str){message, sizeof message - 1}, &sig, "not that of these bytes");
        message[bit / 8] = (char)(message[bit / 8] ^ 1 << bit % 8);
    }
    for (size_t bit = 0; bit < 8 * (sizeof comment - 1); bit++) {
        comment[bit / 8] = (char)(comment[bit / 8] ^ 1 << bit % 8);
        buf sig = signature_of(HASHED, comment, HASHED_GLOBAL);
        refused(MESSAGE, &sig, "");
        comment[bit / 8] = (char)(comment[bit / 8] ^ 1 << bit % 8);
    }
}

/* Decodes the field, flips a bit, spells it again and calls refused. */
static void flip_bits(bool global, size_t step) {
    buf bytes = {0};
    assert_true(base64_decode(&bytes, str_of(global ? HASHED_GLOBAL : HASHED)));
    for (size_t bit = 0; bit < 8 * bytes.n; bit += step) {
        bytes.p[bit / 8] = (char)(bytes.p[bit / 8] ^ 1 << bit % 8);
        buf text = {0};
        base64_encode(&text, bytes.p, bytes.n);
        buf sig =
            signature_of(global ? HASHED : text.p, HASHED_COMMENT, global ? text.p : HASHED_GLOBAL);
        refused(MESSAGE, &sig, global ? "trusted comment was changed" : "");
        buf_free(&text);
        bytes.p[bit / 8] = (char)(bytes.p[bit / 8] ^ 1 << bit % 8);
    }
    buf_free(&bytes);
}

static void one_bit_of_the_signature_is_refused(void **state) {
    (void)state;
    flip_bits(false, 3);
}

static void one_bit_of_the_global_signature_is_refused(void **state) {
    (void)state;
    flip_bits(true, 3);
}

static void comments_swapped_between_signatures_are_refused(void **state) {
    (void)state;
    buf sig = signature_of(HASHED, LEGACY_COMMENT, HASHED_GLOBAL);
    refused(MESSAGE, &sig, "trusted comment was changed");
    sig = signature_of(LEGACY, HASHED_COMMENT, LEGACY_GLOBAL);
    refused(MESSAGE, &sig, "trusted comment was changed");
    sig = signature_of(HASHED, LEGACY_COMMENT, LEGACY_GLOBAL);
    refused(MESSAGE, &sig, "trusted comment was changed");
}

/* "RU" and "RW" spell "ED" and "Ed" and the first bit of the key number. */
static void the_letters_of_the_algorithms_exchanged_are_refused(void **state) {
    (void)state;
    char text[] = HASHED;
    text[1] = 'W';
    buf sig = signature_of(text, HASHED_COMMENT, HASHED_GLOBAL);
    refused(MESSAGE, &sig, "not that of these bytes");
    char other[] = LEGACY;
    other[1] = 'U';
    sig = signature_of(other, LEGACY_COMMENT, LEGACY_GLOBAL);
    refused(MESSAGE, &sig, "not that of these bytes");
    text[1] = 'X';
    sig = signature_of(text, HASHED_COMMENT, HASHED_GLOBAL);
    refused(MESSAGE, &sig, "an algorithm that is not minisign's");
}

static void another_key_number_is_named(void **state) {
    (void)state;
    char text[] = HASHED;
    text[4] = text[4] == 'A' ? 'B' : 'A';
    buf sig = signature_of(text, HASHED_COMMENT, HASHED_GLOBAL);
    refused(MESSAGE, &sig, "wanted key BAE65C5D97B532D7");
}

static void the_right_number_on_another_key_is_refused(void **state) {
    (void)state;
    minisign_key key = key_of(MINISIGN_FREEWEIGHTS);
    memcpy(key.number, key_of(KEY).number, MINISIGN_NUMBER);
    buf sig = signature_of(HASHED, HASHED_COMMENT, HASHED_GLOBAL);
    clef_error err = {0};
    assert_int_equal(minisign_verify(&key, MESSAGE, (str){sig.p, sig.n}, MINISIGN_HASHED_ONLY,
                                     "m.minisig", NULL, &err),
                     CLEF_ERR_FORMAT);
    assert_non_null(strstr(err.text, "not that of these bytes by this key"));
    buf_free(&sig);
}

static void a_missing_line_is_named(void **state) {
    (void)state;
    static const char *const words[] = {"first", "", "third", "fourth"};
    static const char *const lines[] = {"untrusted comment: a\n", HASHED "\n",
                                        "trusted comment: " HASHED_COMMENT "\n",
                                        HASHED_GLOBAL "\n"};
    for (int missing = 0; missing < 4; missing++) {
        buf sig = {0};
        for (int i = 0; i < 4; i++)
            if (i != missing) buf_add_text(&sig, lines[i]);
        refused(MESSAGE, &sig, words[missing]);
    }
}

static void every_beginning_of_a_signature_is_refused(void **state) {
    (void)state;
    buf whole = signature_of(HASHED, HASHED_COMMENT, HASHED_GLOBAL);
    for (size_t n = 0; n < whole.n; n++) {
        buf sig = {0};
        buf_add(&sig, whole.p, n);
        buf_add(&sig, "", 0);
        refused(MESSAGE, &sig, "m.minisig: ");
    }
    buf_free(&whole);
}

static void a_byte_too_few_or_too_many_is_refused(void **state) {
    (void)state;
    buf bytes = {0}, text = {0};
    assert_true(base64_decode(&bytes, STR(HASHED)));
    base64_encode(&text, bytes.p, 73);
    buf sig = signature_of(text.p, HASHED_COMMENT, HASHED_GLOBAL);
    refused(MESSAGE, &sig, "not 74 bytes in base64");
    buf_free(&text);
    buf_add_char(&bytes, 0);
    base64_encode(&text, bytes.p, 75);
    sig = signature_of(text.p, HASHED_COMMENT, HASHED_GLOBAL);
    refused(MESSAGE, &sig, "not 74 bytes in base64");
    buf_free(&text);
    buf_free(&bytes);
}

static void something_behind_the_signature_is_refused(void **state) {
    (void)state;
    static const char *const more[] = {"\n", "x", "x\n", HASHED_GLOBAL "\n"};
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        buf sig = signature_of(HASHED, HASHED_COMMENT, HASHED_GLOBAL);
        buf_add_text(&sig, more[i]);
        refused(MESSAGE, &sig, "is not the last");
    }
}

static void another_spelling_of_the_same_bytes_is_refused(void **state) {
    (void)state;
    static const char *const spelled[] = {" " HASHED, HASHED " ", HASHED "=", HASHED "\t"};
    for (size_t i = 0; i < sizeof spelled / sizeof *spelled; i++) {
        buf sig = signature_of(spelled[i], HASHED_COMMENT, HASHED_GLOBAL);
        refused(MESSAGE, &sig, "in base64");
    }
}

static void a_comment_that_steers_a_terminal_is_refused(void **state) {
    (void)state;
    static const char *const comments[] = {"\x1b[2J", "a\x7f", "\xff", "\xe2\x80\x8b", "a\rb"};
    for (size_t i = 0; i < sizeof comments / sizeof *comments; i++) {
        buf sig = signature_of(HASHED, comments[i], HASHED_GLOBAL);
        refused(MESSAGE, &sig, "third line is not printable");
    }
}

static void comments_beyond_their_length_are_refused(void **state) {
    (void)state;
    buf sig = {0};
    buf_add_text(&sig, "untrusted comment: ");
    for (int i = 0; i < 1025; i++) buf_add_char(&sig, 'a');
    buf_add_text(&sig, "\n" HASHED "\ntrusted comment: " HASHED_COMMENT "\n" HASHED_GLOBAL "\n");
    refused(MESSAGE, &sig, "first line is longer");
    buf comment = {0};
    for (int i = 0; i < 8193; i++) buf_add_char(&comment, 'a');
    sig = signature_of(HASHED, comment.p, HASHED_GLOBAL);
    refused(MESSAGE, &sig, "third line is longer");
    buf_free(&comment);
}

static void a_wrong_public_key_is_refused(void **state) {
    (void)state;
    static const char *const wrong[][2] = {
        {"RUTXMrWXXVzmuletLryW+qVkAbP/zNFpBMbGX37r8PA61yRmBBsENkog", "another kind"},
        {"RWTXMrWXXVzmuletLryW+qVkAbP/zNFpBMbGX37r8PA61yRmBBsENk==", "42 bytes in base64"},
        {"RWTXMrWXXVzmuletLryW+qVkAbP/zNFpBMbGX37r8PA61yRmBBsENk g", "42 bytes in base64"},
        {"no-such.pub", "No such file"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        minisign_key key;
        clef_error err = {0};
        assert_int_not_equal(minisign_key_read(&key, wrong[i][0], &err), CLEF_OK);
        if (strstr(err.text, wrong[i][1]) == NULL) fail_msg("%s", err.text);
    }
}

static void a_public_key_is_read_from_a_file_of_one_line_or_two(void **state) {
    (void)state;
    static const char *const files[] = {KEY, (KEY "\n"), ("untrusted comment: a key\n" KEY "\n"),
                                        ("untrusted comment: a key\r\n" KEY "\r\n"),
                                        ("untrusted comment: a key\n" KEY)};
    folder f = folder_new();
    const minisign_key wanted = key_of(KEY);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        folder_write(&f, "k.pub", str_of(files[i]));
        const minisign_key found = key_of(folder_path(&f, "k.pub"));
        assert_memory_equal(&found, &wanted, sizeof wanted);
    }
    folder_write(&f, "k.pub", STR("untrusted comment: a key\n" KEY "\n" KEY "\n"));
    minisign_key key;
    clef_error err = {0};
    assert_int_equal(minisign_key_read(&key, folder_path(&f, "k.pub"), &err), CLEF_ERR_FORMAT);
    assert_non_null(strstr(err.text, "something follows"));
    folder_remove(f.path);
}

/* ---- secret keys, and the program ---- */

/* Runs minisign in the folder on `input`; the exit status. */
static int minisign(const folder *f, const char *input, const char *const *words) {
    folder_write(f, "input", str_of(input));
    char in[1024];
    snprintf(in, sizeof in, "%s", folder_path(f, "input"));
    fflush(NULL);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        const int from = open(in, O_RDONLY | O_CLOEXEC),
                  to = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (from < 0 || to < 0 || dup2(from, 0) < 0 || dup2(to, 1) < 0 || dup2(to, 2) < 0 ||
            chdir(f->path) != 0)
            _exit(99);
        char *copy[16] = {strdup("minisign")};
        for (int i = 0; words[i] != NULL; i++) copy[i + 1] = strdup(words[i]);
        execvp(copy[0], copy);
        _exit(98);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}
#define MINISIGN(f, input, ...) minisign(f, input, (const char *const[]){__VA_ARGS__, NULL})

static clef_status give_password(void *user, buf *out, clef_error *err) {
    (void)err;
    buf_add_text(out, user);
    return CLEF_OK;
}

static clef_status never_asked(void *user, buf *out, clef_error *err) {
    (void)user;
    (void)out;
    (void)err;
    fail_msg("asked for a password");
    return CLEF_OK;
}

static buf read_whole(const char *path) {
    buf out = {0};
    clef_error err = {0};
    if (file_read(&out, path, 1 << 20, &err) != CLEF_OK) fail_msg("%s", err.text);
    return out;
}

static clef_status read_secret(minisign_secret *out, const char *path, minisign_password *ask,
                               const char *password, clef_error *err) {
    buf file = read_whole(path);
    char copy[64] = "";
    if (password != NULL) snprintf(copy, sizeof copy, "%s", password);
    const clef_status s =
        minisign_secret_read(out, (str){file.p, file.n}, "the key", ask, copy, err);
    buf_free(&file);
    return s;
}

static void a_key_that_minisign_locked_opens_with_its_password(void **state) {
    (void)state;
    minisign_secret secret;
    clef_error err = {0};
    assert_int_equal(
        read_secret(&secret, TESTDATA "fetch/locked.key", give_password, "secret", &err), CLEF_OK);
    const minisign_key wanted = key_of(TESTDATA "fetch/locked.pub");
    assert_memory_equal(&secret.public, &wanted, sizeof wanted);
}

static void a_wrong_password_is_refused(void **state) {
    (void)state;
    minisign_secret secret;
    clef_error err = {0};
    assert_int_equal(
        read_secret(&secret, TESTDATA "fetch/locked.key", give_password, "Secret", &err),
        CLEF_ERR_INPUT);
    assert_non_null(strstr(err.text, "the password is wrong"));
}

static void a_damaged_secret_key_is_refused(void **state) {
    (void)state;
    static const struct {
        size_t at; /* of the decoded key */
        unsigned char value;
        const char *words;
    } faults[] = {{0, 'X', "of another kind"},
                  {2, 'X', "of another kind"},
                  {4, 'X', "of another kind"},
                  {44, 0x70, "costs"},  /* operations */
                  {52, 0x70, "costs"}}; /* memory, and then operations alone decide */
    buf file = read_whole(TESTDATA "fetch/locked.key"), key = {0};
    const char *line = strchr(file.p, '\n') + 1;
    assert_true(base64_decode(&key, (str){line, strcspn(line, "\n")}));
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        buf text = {0}, damaged = {0};
        buf_add(&damaged, key.p, key.n);
        damaged.p[faults[i].at] = (char)faults[i].value;
        if (faults[i].at == 52) damaged.p[44] = 0x70;
        buf_add_text(&text, "untrusted comment: k\n");
        base64_encode(&text, damaged.p, damaged.n);
        buf_add_char(&text, '\n');
        minisign_secret secret;
        clef_error err = {0};
        char password[] = "secret";
        assert_int_not_equal(minisign_secret_read(&secret, (str){text.p, text.n}, "the key",
                                                  give_password, password, &err),
                             CLEF_OK);
        if (strstr(err.text, faults[i].words) == NULL) fail_msg("%zu: %s", i, err.text);
        buf_free(&text);
        buf_free(&damaged);
    }
    buf_free(&key);
    buf_free(&file);
}

static void what_the_program_signs_is_right(void **state) {
    (void)state;
    folder f = folder_new();
    folder_write(&f, "m", MESSAGE);
    assert_int_equal(MINISIGN(&f, "", "-G", "-W", "-p", "k.pub", "-s", "k.key"), 0);
    assert_int_equal(MINISIGN(&f, "", "-S", "-s", "k.key", "-m", "m"), 0);
    const minisign_key key = key_of(folder_path(&f, "k.pub"));
    buf sig = read_whole(folder_path(&f, "m.minisig"));
    clef_error err = {0};
    if (minisign_verify(&key, MESSAGE, (str){sig.p, sig.n}, MINISIGN_HASHED_ONLY, "m", NULL,
                        &err) != CLEF_OK)
        fail_msg("%s", err.text);
    buf_free(&sig);
    folder_remove(f.path);
}

static void what_we_sign_the_program_finds_right(void **state) {
    (void)state;
    folder f = folder_new();
    folder_write(&f, "m", MESSAGE);
    assert_int_equal(MINISIGN(&f, "", "-G", "-W", "-p", "k.pub", "-s", "k.key"), 0);
    minisign_secret secret;
    clef_error err = {0};
    assert_int_equal(read_secret(&secret, folder_path(&f, "k.key"), never_asked, NULL, &err),
                     CLEF_OK);
    buf sig = {0};
    assert_int_equal(minisign_sign_file(&sig, &secret, folder_path(&f, "m"),
                                        STR("timestamp:1\tfile:m\thashed"), &err),
                     CLEF_OK);
    folder_write(&f, "m.minisig", (str){sig.p, sig.n});
    assert_int_equal(MINISIGN(&f, "", "-V", "-H", "-p", "k.pub", "-m", "m"), 0);
    folder_write(&f, "m", STR("hello manifesu\n"));
    assert_int_not_equal(MINISIGN(&f, "", "-V", "-H", "-p", "k.pub", "-m", "m"), 0);
    buf_free(&sig);
    folder_remove(f.path);
}

/* With a cost that suits a test; the program reads the cost from the key. */
static void a_key_that_we_make_serves_the_program(void **state) {
    (void)state;
    folder f = folder_new();
    folder_write(&f, "m", MESSAGE);
    for (int locked = 0; locked < 2; locked++) {
        buf public = {0}, secret = {0};
        clef_error err = {0};
        const str password = STR("pass word");
        assert_int_equal(
            minisign_generate(&public, &secret, locked ? &password : NULL, 1 << 20, 1 << 25, &err),
            CLEF_OK);
        folder_write(&f, "k.pub", (str){public.p, public.n});
        folder_write(&f, "k.key", (str){secret.p, secret.n});
        if (locked)
            assert_int_equal(MINISIGN(&f, "pass word\n", "-S", "-s", "k.key", "-m", "m"), 0);
        else
            assert_int_equal(MINISIGN(&f, "", "-S", "-W", "-s", "k.key", "-m", "m"), 0);
        assert_int_equal(MINISIGN(&f, "", "-V", "-H", "-p", "k.pub", "-m", "m"), 0);
        minisign_secret again;
        assert_int_equal(
            read_secret(&again, folder_path(&f, "k.key"), give_password, "pass word", &err),
            CLEF_OK);
        buf_free(&public);
        buf_free(&secret);
        remove(folder_path(&f, "m.minisig"));
    }
    folder_remove(f.path);
}

static void two_keys_that_we_make_differ(void **state) {
    (void)state;
    buf public[2] = {{0}, {0}}, secret[2] = {{0}, {0}};
    clef_error err = {0};
    for (int i = 0; i < 2; i++)
        assert_int_equal(minisign_generate(&public[i], &secret[i], NULL, 0, 0, &err), CLEF_OK);
    assert_string_not_equal(public[0].p, public[1].p);
    assert_string_not_equal(secret[0].p, secret[1].p);
    for (int i = 0; i < 2; i++) {
        buf_free(&public[i]);
        buf_free(&secret[i]);
    }
}

static void a_comment_of_two_lines_is_not_signed(void **state) {
    (void)state;
    minisign_secret secret;
    clef_error err = {0};
    assert_int_equal(
        read_secret(&secret, TESTDATA "fetch/locked.key", give_password, "secret", &err), CLEF_OK);
    buf sig = {0};
    assert_int_equal(
        minisign_sign_file(&sig, &secret, TESTDATA "fetch/locked.pub", STR("a\nb"), &err),
        CLEF_ERR_INPUT);
    assert_int_equal(sig.n, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_number_is_shown_as_minisign_shows_it),
        cmocka_unit_test(a_hashed_signature_is_right),
        cmocka_unit_test(a_legacy_signature_is_right_where_it_is_allowed),
        cmocka_unit_test(a_legacy_signature_is_refused_elsewhere),
        cmocka_unit_test(lines_may_end_in_carriage_return_and_line_feed),
        cmocka_unit_test(one_bit_elsewhere_is_refused),
        cmocka_unit_test(one_bit_of_the_signature_is_refused),
        cmocka_unit_test(one_bit_of_the_global_signature_is_refused),
        cmocka_unit_test(comments_swapped_between_signatures_are_refused),
        cmocka_unit_test(the_letters_of_the_algorithms_exchanged_are_refused),
        cmocka_unit_test(another_key_number_is_named),
        cmocka_unit_test(the_right_number_on_another_key_is_refused),
        cmocka_unit_test(a_missing_line_is_named),
        cmocka_unit_test(every_beginning_of_a_signature_is_refused),
        cmocka_unit_test(a_byte_too_few_or_too_many_is_refused),
        cmocka_unit_test(something_behind_the_signature_is_refused),
        cmocka_unit_test(another_spelling_of_the_same_bytes_is_refused),
        cmocka_unit_test(a_comment_that_steers_a_terminal_is_refused),
        cmocka_unit_test(comments_beyond_their_length_are_refused),
        cmocka_unit_test(a_wrong_public_key_is_refused),
        cmocka_unit_test(a_public_key_is_read_from_a_file_of_one_line_or_two),
        cmocka_unit_test(a_key_that_minisign_locked_opens_with_its_password),
        cmocka_unit_test(a_wrong_password_is_refused),
        cmocka_unit_test(a_damaged_secret_key_is_refused),
        cmocka_unit_test(what_the_program_signs_is_right),
        cmocka_unit_test(what_we_sign_the_program_finds_right),
        cmocka_unit_test(a_key_that_we_make_serves_the_program),
        cmocka_unit_test(two_keys_that_we_make_differ),
        cmocka_unit_test(a_comment_of_two_lines_is_not_signed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
