/* verify_cli_test.c - clef verify, manifest and sign from outside, beside sha256sum and minisign.
 */
#include "tests/folder.h"

#include <sys/wait.h>

/* What a command left behind. */
typedef struct {
    int status;
    char text[16384]; /* standard output, then standard error */
} result;

/* Runs a shell command in the test's folder; $CLEF is the program, $DATA the test data. */
static result sh(const folder *f, const char *command) {
    result r = {0};
    buf line = {0};
    buf_printf(&line,
               "CLEF=$PWD/" BUILD_DIR "clef; DATA=$PWD/" TESTDATA "; cd %s && { %s ; } 2>err; "
               "s=$?; cat err; exit $s",
               f->path, command);
    assert_false(line.failed);
    fflush(NULL);
    FILE *p = popen(line.p, "r"); /* NOLINT(cert-env33-c): a command of the test's own */
    assert_non_null(p);
    const size_t n = fread(r.text, 1, sizeof r.text - 1, p);
    r.text[n] = '\0';
    const int status = pclose(p);
    assert_true(WIFEXITED(status));
    r.status = WEXITSTATUS(status);
    buf_free(&line);
    return r;
}

/* The command ends with that status, and prints these words. */
static void gives(const folder *f, const char *command, int status, const char *words) {
    const result r = sh(f, command);
    if (r.status != status || strstr(r.text, words) == NULL)
        fail_msg("%s: status %d: %s\nwanted %d: %s", command, r.status, r.text, status, words);
}

/* A copy of a toy in "m", a key pair in "k.key" and "k.key.pub". */
static folder begin(void) {
    const folder f = folder_new();
    gives(&f, "cp -r $DATA/toy-r2 m && $CLEF sign --generate --no-password --secret-key k.key", 0,
          "minisign public key");
    return f;
}

static void end(const folder *f) {
    folder_remove(f->path);
}

static void sums_of_sha256sum_are_held(void **state) {
    (void)state;
    const folder f = begin();
    gives(&f, "cd m && sha256sum * > SHA256SUMS && cd .. && $CLEF verify m", 0,
          "6 of 6 listed files right;");
    gives(&f, "printf x >> m/config.json; $CLEF verify m", 2, "changed    config.json: sha256 ");
    gives(&f, "$CLEF verify m >/dev/null", 2, "clef: m: 1 fault\n");
    end(&f);
}

static void a_converted_folder_is_right(void **state) {
    (void)state;
    const folder f = begin();
    gives(&f, "$CLEF convert --model m --out c && $CLEF verify c --deep", 0, "listed files right;");
    gives(&f, "rm c/joint_head.safetensors; $CLEF verify c", 2,
          "missing    joint_head.safetensors: not there");
    end(&f);
}

static void what_sign_makes_serves_verify_and_minisign(void **state) {
    (void)state;
    const folder f = begin();
    gives(&f, "$CLEF manifest m --repo Me/Toy --out m/clef-manifest.json", 0, "");
    gives(&f, "$CLEF sign m/clef-manifest.json --secret-key k.key --comment 'first one'", 0, "");
    gives(&f, "minisign -V -H -p k.key.pub -m m/clef-manifest.json", 0, "first one");
    gives(&f, "$CLEF verify m --key k.key.pub --repo Me/Toy", 0, "signed comment: first one");
    gives(&f, "$CLEF verify m --key $(tail -n 1 k.key.pub)", 0, "which you gave");
    gives(&f, "$CLEF verify m --key k.key.pub --repo Me/Other", 2, "wanted one of 'Me/Other'");
    gives(&f, "$CLEF verify m", 2, "wanted key 2DC28CC7B26A283B");
    gives(&f, "minisign -S -l -s k.key -m m/clef-manifest.json </dev/null", 0, "");
    gives(&f, "$CLEF verify m --key k.key.pub", 2, "clef verify --legacy takes it");
    gives(&f, "$CLEF verify m --key k.key.pub --legacy", 0, "6 of 6");
    end(&f);
}

static void the_same_folder_gives_the_same_manifest(void **state) {
    (void)state;
    const folder f = begin();
    gives(&f,
          "$CLEF manifest m --repo Me/Toy --jobs 1 > a; touch m/config.json; cp -r m n;"
          "$CLEF manifest n --repo Me/Toy --jobs 3 > b; cmp a b && wc -l < a",
          0, "11\n");
    end(&f);
}

static void a_password_is_read_from_standard_input(void **state) {
    (void)state;
    const folder f = begin();
    gives(&f, "echo secret | $CLEF sign m/config.json --secret-key $DATA/fetch/locked.key", 0, "");
    gives(&f, "minisign -V -H -p $DATA/fetch/locked.pub -m m/config.json", 0,
          "file:config.json\thashed");
    gives(&f, "echo wrong | $CLEF sign m/config.json --secret-key $DATA/fetch/locked.key", 2,
          "the password is wrong");
    gives(&f, "$CLEF sign m/config.json --secret-key $DATA/fetch/locked.key </dev/null", 2,
          "wanted a password");
    gives(&f, "printf 'a\\nb\\n' | $CLEF sign --generate --secret-key new.key", 2,
          "the two passwords differ");
    gives(&f, "printf '\\n\\n' | $CLEF sign --generate --secret-key new.key", 2,
          "an empty password");
    gives(&f, "test ! -e new.key && test ! -e new.key.pub", 0, "");
    end(&f);
}

static void a_key_is_not_overwritten_and_its_owner_s_alone(void **state) {
    (void)state;
    const folder f = begin();
    gives(&f, "stat -c %a k.key", 0, "600\n");
    gives(&f, "$CLEF sign --generate --no-password --secret-key k.key", 2,
          "k.key: it is there already");
    gives(&f, "$CLEF sign --generate --no-password --secret-key l.key --key k.key.pub", 2,
          "k.key.pub: it is there already");
    gives(&f, "test ! -e l.key", 0, "");
    end(&f);
}

static void a_report_in_json_is_one_line_of_json(void **state) {
    (void)state;
    const folder f = begin();
    gives(&f,
          "cd m && sha256sum * > SHA256SUMS && touch \"$(printf 'odd\\033\\377name')\" && cd .. && "
          "$CLEF verify m --json | python3 -c 'import json, sys; t = sys.stdin.read(); "
          "d = json.loads(t); print(t.count(chr(10)), d[\"right\"], len(d[\"files\"]), "
          "d[\"trust\"], d[\"files\"][-1][\"state\"])'",
          0, "1 True 7 none other\n");
    end(&f);
}

/* The last value of the last tensor; all ones is NaN. */
static void a_number_that_is_none_is_found_by_looking_deep(void **state) {
    (void)state;
    const folder f = begin();
    gives(&f,
          "truncate -s -2 m/model.safetensors && printf '\\377\\377' >> m/model.safetensors && cd "
          "m && sha256sum * > SHA256SUMS && cd .. && $CLEF verify m",
          0, "6 of 6");
    gives(&f, "$CLEF verify m --deep", 2, "that is not finite, the first at [");
    gives(&f, "$CLEF verify m --deep --json", 2, "\"state\": \"unsound\"");
    gives(&f, "$CLEF verify m --deep >/dev/null", 2, "clef: m: 1 fault\n");
    end(&f);
}

static void the_released_model_is_the_default(void **state) {
    (void)state;
    const folder f = begin();
    gives(&f, "$CLEF verify m", 2, "missing    model-00001-of-00004.safetensors: not there");
    gives(&f,
          "$CLEF verify m Cloudflare/clef-flash --revision "
          "17f0b0ad64efb65d273590632833508766b2aae6",
          2, "17f0b0ad64ef");
    gives(&f, "$CLEF verify m Cloudflare/clef", 2, "only those of Cloudflare/clef-flash at");
    end(&f);
}

static void a_wrong_command_line_is_one_sentence(void **state) {
    (void)state;
    static const char *const lines[][2] = {
        {"verify", "no model is given; usage: clef verify DIR"},
        {"verify a b c", "unexpected argument 'c': the manifest is already 'b'"},
        {"verify nowhere", "no such folder, and no name"},
        {"verify m no-such-list", "no-such-list: No such file"},
        {"manifest m", "--repo Org/Name"},
        {"sign m/config.json", "no secret key is given; usage: clef sign"},
        {"sign --secret-key k.key", "no file to sign is given"},
        {"sign m/config.json --generate --secret-key x", "--file is there without --generate only"},
        {"sign m/config.json --secret-key k.key --no-password",
         "--no-password is there with --generate only"},
        {"sign m/config.json --secret-key m/config.json", "no secret key of minisign"},
        {"sign m/none --secret-key k.key", "m/none: No such file"},
        {"sign m/config.json --secret-key k.key --out nowhere/x", "cannot be created"}};
    const folder f = begin();
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char command[256];
        snprintf(command, sizeof command, "$CLEF %s", lines[i][0]);
        const result r = sh(&f, command);
        if (r.status != 2 || strstr(r.text, lines[i][1]) == NULL)
            fail_msg("%s: status %d: %s", lines[i][0], r.status, r.text);
        assert_true(strncmp(r.text, "clef: ", 6) == 0);
        assert_ptr_equal(strchr(r.text, '\n'), r.text + strlen(r.text) - 1);
    }
    end(&f);
}

static void each_command_explains_itself(void **state) {
    (void)state;
    const folder f = begin();
    gives(&f, "$CLEF verify --help", 0, "clef verify ./clef-flash Cloudflare/clef-flash");
    gives(&f, "$CLEF manifest --help", 0, "clef manifest ./int8 --repo Me/int8");
    gives(&f, "$CLEF sign --help", 0, "clef sign --generate --secret-key maker.key");
    end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_of_sha256sum_are_held),
        cmocka_unit_test(a_converted_folder_is_right),
        cmocka_unit_test(what_sign_makes_serves_verify_and_minisign),
        cmocka_unit_test(the_same_folder_gives_the_same_manifest),
        cmocka_unit_test(a_password_is_read_from_standard_input),
        cmocka_unit_test(a_key_is_not_overwritten_and_its_owner_s_alone),
        cmocka_unit_test(a_report_in_json_is_one_line_of_json),
        cmocka_unit_test(a_number_that_is_none_is_found_by_looking_deep),
        cmocka_unit_test(the_released_model_is_the_default),
        cmocka_unit_test(a_wrong_command_line_is_one_sentence),
        cmocka_unit_test(each_command_explains_itself)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
