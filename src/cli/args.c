/* args.c - the table of commands and options, and the reader of argv that follows it.
 *
 * Nothing is guessed: an unknown name, a number with a sign or a blank, a value that is missing or
 * out of range, an option given twice are errors, each with one sentence. Options are spelled
 * "--name value" or "--name=value" and may stand anywhere after the command; "--" ends them. */
#include "cli/args.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

#define BIT(command) (1u << COMMAND_##command)
#define ALL_MODEL (BIT(ASK) | BIT(ENCODE) | BIT(BENCH) | BIT(GATE) | BIT(PLAN) | BIT(SERVE))
#define RUNS (BIT(ASK) | BIT(BENCH) | BIT(GATE) | BIT(SERVE))

const command_spec command_table[N_COMMANDS] = {
    [COMMAND_ASK] =
        {"ask",
         "clef ask --model DIR [--request FILE|-] [--out FILE] [option]",
         "answer a request",
         "Reads a request, a JSON object with a state and typed questions, from standard input or "
         "a file of at most 64 MiB, and prints the answer as one line of JSON, or as bars with "
         "--pretty.",
         {"Answer a request about a picture:",
          "clef ask ./clef-flash --request request.json --image photo.jpg",
          "See the answer as bars, from a pipe:",
          "clef ask --model Cloudflare/clef-flash --pretty < request.json"}},
    [COMMAND_ENCODE] =
        {"encode",
         "clef encode --model DIR | --tokenizer FILE [--request FILE|-] [option]",
         "show the tokens of a request",
         "Prints the token ids of a request, the span of every question and option in them, and "
         "how many tokens each part takes, as one line of JSON. Only the tokenizer is loaded.",
         {"Count the tokens of a request:", "clef encode --model ./clef-flash < request.json",
          "Use a tokenizer without a checkpoint:",
          "clef encode --tokenizer tokenizer.json --request request.json"}},
    [COMMAND_INFO] =
        {"info",
         "clef info DIR [--json]",
         "describe a checkpoint folder",
         "Prints sizes, layers, parameters, stored types, head and tokenizer of a checkpoint, what "
         "is missing and what would not load. The exit status is 2 when it would not load.",
         {"Look at a checkpoint:", "clef info ./clef-flash",
          "The same for a program:", "clef info --json Cloudflare/clef-flash"}},
    [COMMAND_BENCH] =
        {"bench",
         "clef bench --model DIR [--tokens N] [--repeats N] [--json] [option]",
         "measure this machine and a checkpoint",
         "Measures, in one run, the ceilings of this machine (fused multiply-adds, memory reads) "
         "and the prefill of one record, part by part, with medians over the repeats. An idle "
         "machine gives the truest numbers; the load average is printed beside them.",
         {"Measure with the defaults:", "clef bench --model ./clef-flash",
          "A longer record on one thread:",
          "clef bench --model ./clef-flash --tokens 4096 --threads 1 --json"}},
    [COMMAND_PLAN] =
        {"plan",
         "clef plan --model DIR [--tokens N] [--batch N] [--json] [option]",
         "say what memory a run needs",
         "Prints the memory that answering takes, before anything is computed: what is mapped from "
         "the files, what stays once a model is open, what a run takes, and what keeping a "
         "record's "
         "state would. The sizes come from the same functions that take the memory.",
         {"The most that a record of 16,384 tokens takes:",
          "clef plan --model ./clef-flash --tokens 16384", "Four records together, in small steps:",
          "clef plan ./clef-flash --tokens 512 --batch 4 --chunk 128"}},
    [COMMAND_GATE] =
        {"gate",
         "clef gate --model DIR --fixtures FILE... [--red] [--report FILE] [option]",
         "accept or refuse the weights of a checkpoint",
         "Replays recorded runs of a reference and checks, in this order: token ids and spans, "
         "which have to be equal; the answers, where the reference's two best options are further "
         "apart than --margin; the largest and the mean difference of the probabilities; that the "
         "first run, repeated at the end, gives the same bits. Nearer ties are listed apart, and "
         "count in the differences. What a file does not hold (withheld ids, pictures) is named as "
         "not checked; a check that had nothing to look at fails. The exit status is 0 only when "
         "every check holds.\n\n"
         "With --against and --requests no reference is needed: both checkpoints answer the "
         "requests, and the differences are printed by question type. Nothing fails then.",
         {"Accept a checkpoint, and prove that the gate can see:",
          "clef gate --model ./clef-int8 --fixtures fixtures.json --red",
          "Compare two checkpoints on requests of your own:",
          "clef gate ./clef-flash --against ./clef-int8 --requests a.json b.json"}},
    [COMMAND_CONVERT] =
        {"convert",
         "clef convert --model DIR --out DIR [--format FORMAT] [option]",
         "make a smaller copy of a checkpoint",
         "Writes a checkpoint folder whose linears are codes: 8, 6 or 4 bits a weight and a scale "
         "for each 32 of them; a linear whose rows are no multiple of 32 stays as it is. It is "
         "used like "
         "the released folder, which is only read. After an "
         "interruption the same command goes on where it stopped; until the end the new folder is "
         "called DIR.partial. The bytes written do not depend on the machine or on --jobs. What "
         "rounding lost is printed at the end and kept in bundle.json; what it does to answers, "
         "clef gate tells.",
         {"Halve the memory of all layers but the first twelve of 32:",
          "clef convert --model ./clef-flash --out ./clef-flash-int8mix",
          "Less than half the released size, with int8 tables:",
          "clef convert ./clef-flash --out ./smaller --format int4mix --tables int8"}},
    [COMMAND_GET] =
        {"get",
         "clef get ORG/NAME|MANIFEST [--dir DIR] [--key KEY] [option]",
         "fetch a model, and go on after an interruption",
         "Fetches the files that the engine needs from a hub, or from the sources of a signed "
         "manifest in their order, into the local hub cache or into a plain folder, and prints "
         "the folder. A file gets its name only when its size and its sum are right; until then "
         "it is called NAME.part. After an interruption, whatever its reason, the same command "
         "goes on where it stopped, and what is there already is read and summed, not fetched. "
         "No other command fetches anything.\n\n"
         "Whose sums they are: of the released clef-flash, those built into this program; with a "
         "manifest, those that the owner of the key has signed, and a manifest whose signature is "
         "missing or wrong is refused; else those that the hub tells over https, SHA-256 for "
         "large files and git's names for small ones. MANIFEST alone, a URL or a file that ends "
         "in .json, stands for --manifest.\n\n"
         "The exit status is 0 when every file is there, else 2; 130 after an interrupt.",
         {"Fetch the released model, 19.1 GB, for the commands that take its name:",
          "clef get Cloudflare/clef-flash",
          "By a manifest that was signed with a key of yours, into a folder:",
          "clef get clef-flash.json --key me.pub --dir ./clef-flash"}},
    [COMMAND_VERIFY] =
        {"verify",
         "clef verify DIR [MANIFEST | ORG/NAME] [--key KEY] [--deep] [option]",
         "prove that a folder is the model",
         "Compares the size and the SHA-256 sum of every file with a list, and names each file "
         "that "
         "is missing, changed, a link, or there without being listed though the engine might open "
         "it. Nothing is changed or fetched. DIR may be the name of a model in the hub cache; the "
         "cache's own names are checked as well then.\n\n"
         "The list is a signed manifest, or the SHA256SUMS of a converted folder, or, for "
         "Cloudflare/clef-flash, a table that is built in. Without a second argument the first of "
         "these is taken: the table, for a snapshot of that model in the hub cache; "
         "clef-manifest.json in DIR; SHA256SUMS in DIR; the table. A manifest's signature is in a "
         "file of the same name with .minisig behind it, and is checked before the manifest is "
         "read. SHA256SUMS need no signature, and then show damage but not forgery; with --key "
         "they need one.\n\n"
         "The exit status is 0 when all that is listed and needed is there and right, else 2.",
         {"Prove a download of the released model:",
          "clef verify ./clef-flash Cloudflare/clef-flash",
          "Prove a converted folder with its maker's key, and look at every number in it:",
          "clef verify ./int8 --key maker.key.pub --deep"}},
    [COMMAND_MANIFEST] =
        {"manifest",
         "clef manifest DIR --repo ORG/NAME [--source URL...] [--out FILE] [option]",
         "list the files of a folder for others",
         "Writes the clef-manifest/1 of a folder: whose files they are, at which commit, and path, "
         "size and SHA-256 sum of each. The same files give the same bytes. In the folder it is "
         "called clef-manifest.json, where clef verify finds it once it is signed.",
         {"List a converted folder:",
          "clef manifest ./int8 --repo Me/int8 --out ./int8/clef-manifest.json",
          "Say where the files can be had:",
          "clef manifest ./int8 --repo Me/int8 --source https://example.org/int8/"}},
    [COMMAND_SIGN] =
        {"sign",
         "clef sign FILE --secret-key FILE | --generate --secret-key FILE [option]",
         "sign a manifest, or make a key to sign with",
         "Writes FILE.minisig, a signature that clef verify and the program minisign check; secret "
         "keys of minisign will do. A password, if the key has one, is read from standard input, "
         "unseen on a terminal. Opening such a key takes some seconds and 1 GiB of memory, which "
         "is what makes trying passwords costly.",
         {"Make a key; who checks needs maker.key.pub:",
          "clef sign --generate --secret-key maker.key",
          "Sign a manifest:", "clef sign ./int8/clef-manifest.json --secret-key maker.key"}},
    [COMMAND_SERVE] =
        {"serve",
         "clef serve --model DIR [--host HOST] [--port N] [--config FILE] [option]",
         "answer requests over HTTP",
         "Answers POST /v1/systemone and its relatives over HTTP/1.1; GET / is a page to try it, "
         "GET /openapi.json describes every route. It listens on this machine alone unless --host "
         "says otherwise, and encryption is a proxy's job. Requests wait in a queue of --queue "
         "places and share the computation; a full queue answers 429. A client that leaves takes "
         "its request with it.\n\n"
         "SIGTERM or SIGINT: no new requests, those that are here are answered within --grace "
         "seconds, exit status 0; a second one ends the program at once. SIGHUP: the key file is "
         "read and the log opened again. What cannot be started (port, model, key file) is one "
         "line "
         "on standard error and exit status 2.\n\n"
         "Beyond what the library refuses, the server refuses with 422 what clients of the API "
         "cannot send or read: a number, true or false for a text, a null state, a null level, "
         "numbers that no double holds, and more questions, options, levels, images or nesting "
         "than the options below allow.",
         {"Serve on this machine:", "clef serve --model ./clef-flash",
          "Serve a network, with keys, options from a file:",
          "clef serve --config clef.conf --host 0.0.0.0 --api-key-file clef.keys"}},
    [COMMAND_HELP] = {"help",
                      "clef help [COMMAND | --man]",
                      "explain a command",
                      "Prints the help of a command, or of everything.",
                      {"Read about one command:", "clef help ask",
                       "Make the man page:", "clef help --man > clef.1"}},
};

const option_spec option_table[N_OPTIONS] = {
    [OPTION_MODEL] = {"model", VALUE_TEXT, "DIR",
                      .commands =
                          ALL_MODEL | BIT(INFO) | BIT(CONVERT) | BIT(VERIFY) | BIT(MANIFEST),
                      .help = "The checkpoint: a folder in the released layout, or Org/Name, which "
                              "is looked up in the local hub cache and never fetched. DIR may also "
                              "stand alone, without --model."},
    [OPTION_TOKENIZER] = {"tokenizer", VALUE_TEXT, "FILE", .commands = BIT(ENCODE),
                          .help = "Use this tokenizer.json; no checkpoint is needed."},
    [OPTION_REQUEST] = {"request", VALUE_TEXT, "FILE", .commands = BIT(ASK) | BIT(ENCODE),
                        .help = "The request. Standard input by default and for '-'."},
    [OPTION_OUT] = {"out", VALUE_TEXT, "FILE",
                    .commands = BIT(ASK) | BIT(ENCODE) | BIT(CONVERT) | BIT(MANIFEST) | BIT(SIGN),
                    .help = "Write the result to FILE instead of standard output. FILE is "
                            "replaced only when the result is complete. Of convert the folder to "
                            "make, which must not exist."},
    [OPTION_PRETTY] = {"pretty", VALUE_NONE, .commands = BIT(ASK),
                       .help = "Print a bar for every option instead of JSON."},
    [OPTION_LOGITS] = {"logits", VALUE_NONE, .commands = BIT(ASK),
                       .help = "Also print question, option and logit of every option to standard "
                               "error, one option a line, separated by tabs."},
    [OPTION_CONFIDENCE] = {"confidence", VALUE_CHOICE, .choices = {"top", "typesafe", "entropy"},
                           .commands = BIT(ASK) | BIT(SERVE),
                           .help = "What the answer calls confidence: the largest probability; "
                                   "TypeSafe's formula, 0 at uniform and 1 at certain; or one "
                                   "minus the entropy over its maximum. Default top."},
    [OPTION_DIGITS] = {"digits", VALUE_CHOICE, .choices = {"4", "7"},
                       .commands = BIT(ASK) | BIT(SERVE),
                       .help = "Decimals of printed probabilities. Default 4."},
    [OPTION_MAX_LENGTH] = {"max-length", VALUE_NUMBER, "N", 1, UINT32_MAX,
                           .commands = BIT(ASK) | BIT(ENCODE) | BIT(SERVE),
                           .help = "The most tokens a record may have. Default 16384."},
    [OPTION_MAX_STATE_TOKENS] =
        {"max-state-tokens", VALUE_NUMBER, "N", 0, UINT32_MAX,
         .commands = BIT(ASK) | BIT(ENCODE) | BIT(SERVE),
         .help = "Keep only the first N tokens of the state; 0 keeps none. No such "
                 "limit by default."},
    [OPTION_TRUNCATE] = {"truncate", VALUE_CHOICE, .choices = {"none", "state"},
                         .commands = BIT(ASK) | BIT(ENCODE) | BIT(SERVE),
                         .help = "What happens to a record longer than --max-length: refuse it, "
                                 "naming both numbers, or cut the end of the state as the "
                                 "reference does; x_truncated_tokens in the answer then says "
                                 "by how much. Default none."},
    [OPTION_CONTROL_TOKENS] = {"control-tokens", VALUE_CHOICE,
                               .choices = {"plain", "reference", "reject"},
                               .commands = BIT(ASK) | BIT(ENCODE) | BIT(SERVE),
                               .help = "What the spelling of a control token in the request's "
                                       "text becomes: ordinary text, the control token as in the "
                                       "reference, or an error. Default plain."},
    [OPTION_THREADS] = {"threads", VALUE_NUMBER, "N", 1, 1024, .commands = RUNS | BIT(PLAN),
                        .help = "Worker threads; the answer does not depend on them. Default: as "
                                "many as this process may run on."},
    [OPTION_IMAGE] = {"image", VALUE_REPEAT, "FILE", .commands = BIT(ASK) | BIT(ENCODE),
                      .help = "Show this picture (PNG, JPEG or WebP) behind those of the request; "
                              "may be given again, up to 64 times."},
    [OPTION_VIDEO] = {"video", VALUE_REPEAT, "FILE", .commands = BIT(ASK) | BIT(ENCODE),
                      .help = "The same for a video file; needs a build with VIDEO=1. Pictures "
                              "come before videos."},
    [OPTION_GRID] = {"grid", VALUE_CHOICE, .choices = {"native", "256", "448"},
                     .commands = BIT(ASK) | BIT(ENCODE) | BIT(SERVE),
                     .help = "What pictures are resized to: about their own size and shape, or a "
                             "square of 256 (64 tokens) or 448 pixels (196 tokens) a side. Default "
                             "native."},
    [OPTION_MAX_PIXELS] = {"max-pixels", VALUE_NUMBER, "N", 1, UINT32_MAX,
                           .commands = BIT(ASK) | BIT(ENCODE) | BIT(SERVE),
                           .help = "Make pictures at most about this large, width times height; "
                                   "1,024 pixels are a token. Videos keep the model's bound. "
                                   "Default: the model's, for serve 2097152."},
    [OPTION_EXIF_ROTATE] = {"exif-rotate", .commands = BIT(ASK) | BIT(ENCODE) | BIT(SERVE),
                            .help = "Turn pictures as their files say. The reference does not."},
    [OPTION_CHUNK] = {"chunk", VALUE_NUMBER, "N", 1, 4096, .commands = RUNS | BIT(PLAN),
                      .help = "Tokens computed per step, 1 to 4096: smaller takes less memory, "
                              "larger less time. Default 512."},
    [OPTION_KERNELS] = {"kernels", VALUE_TEXT, "NAME", .commands = RUNS,
                        .help =
                            "The arithmetic: scalar, avx2, avx512 and avx512vnni on x86-64, neon "
                            "and neondot on 64-bit Arm; the answer does not depend on it. Default: "
                            "the fastest that this processor runs."},
    [OPTION_PRECISION] = {"precision", VALUE_CHOICE, .choices = {"exact", "fast"}, .commands = RUNS,
                          .help = "fast rounds the inputs of int8, int6 and int4 linears to "
                                  "integers, in blocks of 32 to 8 bits and where that costs most "
                                  "to 16, and sums integers: quicker, and not the same answer to "
                                  "the last digit. Other linears stay exact, and a checkpoint "
                                  "without such linears is refused. Of --against the other "
                                  "checkpoint is always exact. Default exact."},
    [OPTION_SPLIT] = {"split", VALUE_CHOICE, .choices = {"qwen2", "qwen35"},
                      .commands = ALL_MODEL | BIT(INFO),
                      .help = "Split words by this pattern instead of the one that tokenizer.json "
                              "states."},
    [OPTION_PROGRESS] = {"progress", VALUE_NONE, .commands = RUNS,
                         .help = "Show a bar with the remaining time while a long record is "
                                 "computed, if standard error is a terminal."},
    [OPTION_TOKENS] = {"tokens", VALUE_NUMBER, "N", 1, UINT32_MAX,
                       .commands = BIT(BENCH) | BIT(PLAN),
                       .help = "Length of the record; at least 128 to bench. Default 512."},
    [OPTION_REPEATS] = {"repeats", VALUE_NUMBER, "N", 1, 1000, .commands = BIT(BENCH),
                        .help = "Runs that the medians are taken over. Default 5."},
    [OPTION_BATCH] = {"batch", VALUE_NUMBER, "N", 1, 1000000, .commands = BIT(PLAN),
                      .help = "Records asked together. Default 1."},
    [OPTION_QUESTIONS] = {"questions", VALUE_NUMBER, "N", 1, UINT16_MAX, .commands = BIT(PLAN),
                          .help = "Questions of a record. Default 4."},
    [OPTION_OPTIONS] = {"options", VALUE_NUMBER, "N", 1, UINT16_MAX, .commands = BIT(PLAN),
                        .help = "Options of a record over all questions. Default 16."},
    [OPTION_ANY_MEMORY] = {"any-memory", VALUE_NONE, .commands = BIT(ASK) | BIT(SERVE),
                           .help = "Compute even when the memory that clef plan reckons with is "
                                   "not there; it is refused otherwise, with both figures."},
    [OPTION_FIXTURES] = {"fixtures", VALUE_LIST, "FILE...", .commands = BIT(GATE),
                         .help = "Recorded runs of a reference, in the schema "
                                 "coreai-clef-flash-fixtures/1."},
    [OPTION_AGAINST] = {"against", VALUE_TEXT, "DIR", .commands = BIT(GATE),
                        .help = "Compare with this checkpoint instead of recorded runs."},
    [OPTION_IMAGES] = {"images", VALUE_LIST, "DIR|WxH...", .commands = BIT(GATE) | BIT(PLAN),
                       .help = "Gate: the folder of the pictures that runs name; a file whose "
                               "SHA-256 is not the stated one is refused, and runs with pictures "
                               "are not compared without it. Plan: width and height of each "
                               "picture of a record, such as 1920x1080."},
    [OPTION_REQUESTS] = {"requests", VALUE_LIST, "FILE...", .commands = BIT(GATE),
                         .help = "What both checkpoints answer: each file a request or an array "
                                 "of requests."},
    [OPTION_REPORT] = {"report", VALUE_TEXT, "FILE", .commands = BIT(GATE),
                       .help = "Also write everything, run by run, to FILE as JSON."},
    [OPTION_RED] = {"red", VALUE_NONE, .commands = BIT(GATE),
                    .help = "Also commit known faults (spans one token late, lexical vectors "
                            "zeroed, options given to the wrong question, embedding rows for "
                            "lm_head rows); fail unless the checks catch every one."},
    [OPTION_MAX_DP] = {"max-dp", VALUE_SHARE, "P", .commands = BIT(GATE),
                       .help = "The most that any probability may differ by. Default 0.02."},
    [OPTION_MEAN_DP] = {"mean-dp", VALUE_SHARE, "P", .commands = BIT(GATE),
                        .help = "The most for the mean over runs of a run's mean difference. "
                                "Default 0.002."},
    [OPTION_MARGIN] = {"margin", VALUE_SHARE, "P", .commands = BIT(GATE),
                       .help = "Answers have to be the reference's where its two best options "
                               "differ by more than this. Default 0.02."},
    [OPTION_FORMAT] =
        {"format", VALUE_CHOICE, .choices = {"int8mix", "int8", "int6", "int4mix", "int4"},
         .commands = BIT(CONVERT) | BIT(PLAN),
         .help = "int8mix keeps the first 12 of 32 layers at 16 bit, and the same "
                 "share of other depths; int8 converts all layers, which costs more "
                 "accuracy than it saves memory. int6 and int4mix measure what each "
                 "width loses in each eighth of the layers and give wider codes, up "
                 "to 16 bit, to where it matters most: 7.5 and 5.5 bits a weight in "
                 "all. int4 is int4 everywhere, which changes answers: to compare "
                 "with. Default int8mix; plan takes the model as it is by default, else as if it "
                 "were converted."},
    [OPTION_LAYERS_16BIT] = {"layers-16bit", VALUE_TEXT, "LIST", .commands = BIT(CONVERT),
                             .help = "Layers that stay at 16 bit, such as 0-11 or 0,3,5-7; not "
                                     "with int8 and int4."},
    [OPTION_TABLES] = {"tables", VALUE_CHOICE, .choices = {"bf16", "int8"},
                       .commands = BIT(CONVERT) | BIT(PLAN),
                       .help = "int8 also converts the rows of the embedding and of lm_head. "
                               "Default bf16: they stay as they are."},
    [OPTION_JOBS] =
        {"jobs", VALUE_NUMBER, "N", 1, 1024,
         .commands = BIT(CONVERT) | BIT(GET) | BIT(VERIFY) | BIT(MANIFEST),
         .help = "Threads that convert or read; default: as many as this process may run on. "
                 "Of get the files that come at a time, at most 16; default 4."},
    [OPTION_DIR] = {"dir", VALUE_TEXT, "DIR", .commands = BIT(GET),
                    .help = "Fetch into this plain folder instead of the hub cache."},
    [OPTION_REVISION] =
        {"revision", VALUE_TEXT, "R", .commands = BIT(GET) | BIT(VERIFY) | BIT(MANIFEST),
         .help =
             "Of get a branch, a tag or a commit; default: of the released clef-flash the commit "
             "whose sums are built in, of others main. Else a commit of 40 or 64 "
             "hexadecimal digits. A manifest of another commit is refused. A new one is by default "
             "of the commit of a snapshot in the hub cache, or of a sum over all files."},
    [OPTION_MANIFEST] =
        {"manifest", VALUE_TEXT, "FILE|URL", .commands = BIT(GET) | BIT(VERIFY),
         .help = "The list of files. Its signature is the file of "
                 "the same name with .minisig behind it. For verify a file, also SHA256SUMS, or "
                 "Org/Name of the built-in table; it may stand alone, behind DIR."},
    [OPTION_KEY] = {"key", VALUE_TEXT, "KEY|FILE", .commands = BIT(GET) | BIT(VERIFY) | BIT(SIGN),
                    .help = "The minisign public key that has signed the list, or its file. "
                            "Default: the key of Freeweights. With sign --generate the file to "
                            "write it to; default: that of the secret key with .pub behind it."},
    [OPTION_SOURCE] = {"source", VALUE_LIST, "URL...", .commands = BIT(GET) | BIT(MANIFEST),
                       .help =
                           "Folders of servers: tried first, in this order, or written into the "
                           "manifest, where they have to be https addresses that end in a slash. "
                           "Without a manifest the list of the files is still the hub's."},
    [OPTION_INCLUDE] = {"include", VALUE_LIST, "PATTERN...", .commands = BIT(GET),
                        .help = "Fetch the files whose paths match one of these shell patterns, "
                                "such as '*.json', instead of those that the engine needs."},
    [OPTION_ALL] = {"all", VALUE_NONE, .commands = BIT(GET) | BIT(VERIFY),
                    .help = "Fetch every file; of verify, files that the engine does not need have "
                            "to be there too."},
    [OPTION_ALLOW_HTTP] = {"allow-http", VALUE_NONE, .commands = BIT(GET),
                           .help = "Also fetch from servers without https. The sums are checked "
                                   "all the same, but a hub's own list of them is then as good "
                                   "as the way it came. No token is sent to them."},
    [OPTION_REPO] = {"repo", VALUE_TEXT, "ORG/NAME", .commands = BIT(VERIFY) | BIT(MANIFEST),
                     .help = "Whose files these are. A manifest of another model is refused, "
                             "however well signed."},
    [OPTION_DEEP] = {"deep", VALUE_NONE, .commands = BIT(VERIFY),
                     .help = "Also open the model, which binds every tensor, and look at every "
                             "number: NaN and infinity are faults."},
    [OPTION_UNSIGNED] = {"unsigned", VALUE_NONE, .commands = BIT(VERIFY),
                         .help = "Take a manifest that has no signature; it shows damage, not "
                                 "forgery."},
    [OPTION_LEGACY] = {"legacy", VALUE_NONE, .commands = BIT(VERIFY),
                       .help = "Take the older kind of signature too, which signs the file itself "
                               "instead of its hash."},
    [OPTION_FILE] = {"file", VALUE_TEXT, "FILE", .commands = BIT(SIGN),
                     .help = "The file to sign. It may also stand alone, without --file."},
    [OPTION_SECRET_KEY] = {"secret-key", VALUE_TEXT, "FILE", .commands = BIT(SIGN),
                           .help = "The secret key, or with --generate the file to write it to, "
                                   "which must not be there yet."},
    [OPTION_COMMENT] = {"comment", VALUE_TEXT, "TEXT", .commands = BIT(SIGN),
                        .help = "A line that is signed with the file and shown by who checks it. "
                                "Default: the time and the file's name."},
    [OPTION_GENERATE] = {"generate", VALUE_NONE, .commands = BIT(SIGN),
                         .help = "Make a new pair of keys instead, and print the public one."},
    [OPTION_NO_PASSWORD] = {"no-password", VALUE_NONE, .commands = BIT(SIGN),
                            .help = "Make a secret key that whoever can read it can use."},
    [OPTION_JSON] = {"json", VALUE_NONE,
                     .commands = BIT(INFO) | BIT(BENCH) | BIT(PLAN) | BIT(GET) | BIT(VERIFY),
                     .help = "Print JSON instead of text: one object, or of get one a line for "
                             "the plan, for progress (at most one a second), for every file, and "
                             "at the end."},
    [OPTION_HOST] = {"host", VALUE_TEXT, "HOST", .commands = BIT(SERVE),
                     .help = "The address to listen on: 127.0.0.1, ::1, 0.0.0.0, or a name. "
                             "Default 127.0.0.1."},
    [OPTION_PORT] = {"port", VALUE_NUMBER, "N", 0, 65535, .commands = BIT(SERVE),
                     .help = "The port; 0 takes a free one, which the log names. Default 8423."},
    [OPTION_API_KEY] = {"api-key", VALUE_TEXT, "KEY", .commands = BIT(SERVE),
                        .help =
                            "A key that requests have to bring: Authorization: Bearer KEY. Every "
                            "user of this machine can see it in the list of processes; "
                            "--api-key-file is better."},
    [OPTION_API_KEY_FILE] = {"api-key-file", VALUE_TEXT, "FILE", .commands = BIT(SERVE),
                             .help = "A file of such keys, one a line; '#' begins a comment line. "
                                     "Without any key everybody may ask."},
    [OPTION_SERVED_NAME] = {"served-name", VALUE_TEXT, "NAME", .commands = BIT(SERVE),
                            .help = "The model's name in answers. Default clef-flash."},
    [OPTION_ALIAS] = {"alias", VALUE_LIST, "NAME...", .commands = BIT(SERVE),
                      .help = "More names that requests may use for the model, beside those of "
                              "clef-flash and jev-latest."},
    [OPTION_ANY_MODEL] = {"any-model", VALUE_NONE, .commands = BIT(SERVE),
                          .help = "Take any model name in requests."},
    [OPTION_STRICT] = {"strict", VALUE_NONE, .commands = BIT(SERVE),
                       .help = "Refuse a request that names no model."},
    [OPTION_ALLOW_HOST] = {"allow-host", VALUE_LIST, "NAME...", .commands = BIT(SERVE),
                           .help =
                               "Host names that requests may be sent to, beside loopback's; '*' "
                               "for any. A server on another address answers to all unless "
                               "this is given."},
    [OPTION_ALLOW_ORIGIN] = {"allow-origin", VALUE_LIST, "ORIGIN...", .commands = BIT(SERVE),
                             .help = "Origins whose pages may ask, such as https://app.example, "
                                     "beside pages from this machine; '*' for any."},
    [OPTION_QUEUE] = {"queue", VALUE_NUMBER, "N", 1, 1000000, .commands = BIT(SERVE),
                      .help = "Requests that may wait. Default 64."},
    [OPTION_BATCH_TOKENS] = {"batch-tokens", VALUE_NUMBER, "N", 1, UINT32_MAX,
                             .commands = BIT(SERVE),
                             .help = "Tokens of the requests that are computed beside the one that "
                                     "waited longest. Default 4096."},
    [OPTION_DEADLINE] = {"deadline", VALUE_NUMBER, "SECONDS", 1, 1000000, .commands = BIT(SERVE),
                         .help = "Give a request up after this time, with 503. No deadline by "
                                 "default: a client that leaves ends its request anyway."},
    [OPTION_CACHE_BYTES] = {"cache-bytes", VALUE_NUMBER, "N", 0, INT64_MAX,
                            .commands = BIT(SERVE) | BIT(PLAN),
                            .help = "Memory for computed states, so that new questions about the "
                                    "same state cost their own tokens only; given up when a "
                                    "request needs it. 0: none. Default 1073741824 for serve; plan "
                                    "counts none unless this is given."},
    [OPTION_ANSWER_CACHE_BYTES] = {"answer-cache-bytes", VALUE_NUMBER, "N", 0, INT64_MAX,
                                   .commands = BIT(SERVE),
                                   .help = "Memory for finished answers, given again to an equal "
                                           "request; equal requests in flight share one "
                                           "computation. 0 turns both off. Default 67108864."},
    [OPTION_ANSWER_CACHE_SECONDS] = {"answer-cache-seconds", VALUE_NUMBER, "N", 1, 1000000,
                                     .commands = BIT(SERVE),
                                     .help = "How long an answer is kept. Default 300."},
    [OPTION_MAX_BODY] = {"max-body", VALUE_NUMBER, "BYTES", 1024, 1 << 30, .commands = BIT(SERVE),
                         .help = "The most bytes of a request's body, also of one that zstd has "
                                 "compressed, before and after. All bodies at once may have "
                                 "eight times as many, at least 256 MiB, with what they are parsed "
                                 "into; beyond that requests get 503. Default 33554432."},
    [OPTION_MAX_DEPTH] = {"max-depth", VALUE_NUMBER, "N", 4, 512, .commands = BIT(SERVE),
                          .help = "Nested arrays and objects in a body. Default 128."},
    [OPTION_MAX_QUESTIONS] = {"max-questions", VALUE_NUMBER, "N", 1, UINT16_MAX,
                              .commands = BIT(SERVE),
                              .help = "Questions of a request. Default 256."},
    [OPTION_MAX_OPTIONS] = {"max-options", VALUE_NUMBER, "N", 1, UINT16_MAX, .commands = BIT(SERVE),
                            .help = "Options of a choice. Default 255."},
    [OPTION_MAX_LEVELS] = {"max-levels", VALUE_NUMBER, "N", 1, UINT16_MAX, .commands = BIT(SERVE),
                           .help = "Levels of a score. Default 10."},
    [OPTION_MAX_IMAGES] = {"max-images", VALUE_NUMBER, "N", 0, 1000, .commands = BIT(SERVE),
                           .help = "Images of a request. Default 8."},
    [OPTION_MAX_IMAGE_BYTES] = {"max-image-bytes", VALUE_NUMBER, "N", 1, 1 << 26,
                                .commands = BIT(SERVE),
                                .help = "Bytes of an image's file. Default 12582912."},
    [OPTION_MAX_IMAGE_PIXELS] = {"max-image-pixels", VALUE_NUMBER, "N", 1, 178956970,
                                 .commands = BIT(SERVE),
                                 .help = "Pixels of an image, read from its header before it is "
                                         "decoded. Default 16777216."},
    [OPTION_MAX_MEDIA_PIXELS] = {"max-media-pixels", VALUE_NUMBER, "N", 1, INT64_MAX,
                                 .commands = BIT(ASK) | BIT(ENCODE) | BIT(SERVE),
                                 .help = "The most pixels of all images and video frames of a "
                                         "request, or of a batch, together: as they are stored, "
                                         "or resized where that is more. No such bound by "
                                         "default, for serve 268435456."},
    [OPTION_MAX_BATCH] = {"max-batch", VALUE_NUMBER, "N", 1, 100000, .commands = BIT(SERVE),
                          .help = "Requests in one body of /v1/systemone/batch. Default 256; a "
                                  "batch also has to fit into the queue."},
    [OPTION_MAX_CONNECTIONS] = {"max-connections", VALUE_NUMBER, "N", 1, 100000,
                                .commands = BIT(SERVE),
                                .help = "Open connections; more are answered 503. Default 1024."},
    [OPTION_HEAD_SECONDS] = {"head-seconds", VALUE_NUMBER, "N", 1, 3600, .commands = BIT(SERVE),
                             .help = "Time for the head of a request; for its body the same and a "
                                     "second for each 16 KiB. Then 408. Default 20."},
    [OPTION_IDLE_SECONDS] = {"idle-seconds", VALUE_NUMBER, "N", 1, 3600, .commands = BIT(SERVE),
                             .help = "How long a connection may wait between two requests. "
                                     "Default 75."},
    [OPTION_WRITE_SECONDS] = {"write-seconds", VALUE_NUMBER, "N", 1, 3600, .commands = BIT(SERVE),
                              .help = "How long a client may leave an answer unread. Default 30."},
    [OPTION_GRACE] = {"grace", VALUE_NUMBER, "SECONDS", 0, 1000000, .commands = BIT(SERVE),
                      .help = "Time to finish requests after SIGTERM; then they are answered 503. "
                              "Default 30."},
    [OPTION_LOG] = {"log", VALUE_TEXT, "FILE", .commands = BIT(SERVE),
                    .help =
                        "Append the access log to FILE instead of writing it to standard error; "
                        "'none' for no log."},
    [OPTION_LOG_FORMAT] = {"log-format", VALUE_CHOICE, .choices = {"text", "json"},
                           .commands = BIT(SERVE), .help = "The form of its lines. Default text."},
    [OPTION_LOG_BODIES] = {"log-bodies", VALUE_NONE, .commands = BIT(SERVE),
                           .help = "Also log requests and answers, states and all. Without it the "
                                   "log holds nothing of either."},
    [OPTION_WARMUP] = {"warmup", VALUE_NONE, .commands = BIT(SERVE),
                       .help = "Compute a small request before /ready says so."},
    [OPTION_CHECK] = {"check", VALUE_NONE, .commands = BIT(SERVE),
                      .help = "Check options, keys, log and model, and exit."},
    [OPTION_CONFIG] = {"config", VALUE_TEXT, "FILE", .commands = BIT(SERVE),
                       .help =
                           "Read options from FILE too: a line 'name = value' for --name value, "
                           "'name' alone for an option without a value, several values "
                           "separated by blanks, '#' before a comment. The command line wins."},
    [OPTION_MAN] = {"man", VALUE_NONE, .commands = BIT(HELP),
                    .help = "Print the manual page, for man(1)."},
    [OPTION_HELP] = {"help", VALUE_NONE,
                     .commands = ALL_MODEL | BIT(INFO) | BIT(CONVERT) | BIT(GET) | BIT(VERIFY) |
                                 BIT(MANIFEST) | BIT(SIGN) | BIT(HELP),
                     .help = "Print this help."},
};

const help_section help_sections[] = {
    {"Exit status",
     "0 when all went well; 2 for a wrong command line, request or model file, for weights that "
     "the gate refuses and folders that are not what their list says, or when the system refused "
     "to read or write; 1 for want of memory or a fault "
     "of the program; 130 after an "
     "interrupt and 143 after a request to terminate, which take effect between two chunks (a "
     "second one ends the program at once). Every failure is one line on standard error."},
    {"Environment",
     "HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME, HOME: where the hub cache is looked for, in this "
     "order: HF_HUB_CACHE, HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub, "
     "HOME/.cache/huggingface/hub. NO_COLOR: when set, --pretty uses no colour.\n\n"
     "Of get alone: HF_ENDPOINT, the hub, https://huggingface.co by default; HF_TOKEN, or the file "
     "HF_TOKEN_PATH or HF_HOME/token: the access token, sent to the hub and to no other server, "
     "and not at all when HF_HUB_DISABLE_IMPLICIT_TOKEN is set; HF_HUB_OFFLINE: nothing is "
     "fetched; SSL_CERT_FILE: the authorities to trust instead of the system's; https_proxy, "
     "no_proxy: as in curl."},
    {NULL, NULL},
};

enum { MAX_NAME = 32 };

/* Edits (insert, delete, replace, swap neighbours) that turn `typed` into `name`; both have at most
 * MAX_NAME bytes. */
static size_t edits(str typed, str name) {
    const char *a = typed.p, *b = name.p;
    const size_t n = typed.n, m = name.n;
    size_t row[3][MAX_NAME + 1] = {0}; /* distances of prefixes: rows i - 2, i - 1 and i, mod 3 */
    for (size_t j = 0; j <= m; j++) row[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *now = row[i % 3];
        const size_t *before = row[(i + 2) % 3], *two_before = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = before[j - 1] + (a[i - 1] != b[j - 1]);
            if (before[j] + 1 < best) best = before[j] + 1;
            if (now[j - 1] + 1 < best) best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                two_before[j - 2] + 1 < best)
                best = two_before[j - 2] + 1;
            now[j] = best;
        }
    }
    return row[n % 3][m];
}

/* How far a candidate is from what was typed; a beginning of it is near. */
static size_t farness(str typed, str name) {
    if (typed.n > MAX_NAME) return SIZE_MAX;
    if (typed.n >= 2 && typed.n <= name.n && memcmp(typed.p, name.p, typed.n) == 0) return 0;
    const size_t n = edits(typed, name);
    return n <= 1 + typed.n / 4 ? n : SIZE_MAX;
}

static clef_status unknown_command(const char *typed, clef_error *err) {
    const char *nearest = NULL;
    size_t best = SIZE_MAX;
    for (int i = 0; i < N_COMMANDS; i++) {
        const size_t far = farness(str_of(typed), str_of(command_table[i].name));
        if (far < best) {
            best = far;
            nearest = command_table[i].name;
        }
    }
    if (nearest != NULL)
        return clef_fail(err, CLEF_ERR_INPUT, "unknown command '%s', did you mean '%s'?", typed,
                         nearest);
    return clef_fail(err, CLEF_ERR_INPUT, "unknown command '%s'; 'clef help' lists the commands",
                     typed);
}

static clef_status unknown_option(str typed, command_id command, clef_error *err) {
    str name = typed;
    while (name.n > 0 && *name.p == '-') name = (str){name.p + 1, name.n - 1};
    const char *nearest = NULL;
    size_t best = SIZE_MAX;
    for (int i = 0; i < N_OPTIONS; i++) {
        if (!(option_table[i].commands & 1u << command)) continue;
        const size_t far = farness(name, str_of(option_table[i].name));
        if (far < best) {
            best = far;
            nearest = option_table[i].name;
        }
    }
    if (nearest != NULL)
        return clef_fail(err, CLEF_ERR_INPUT, "unknown option '%.*s', did you mean '--%s'?",
                         STR_ARG(typed), nearest);
    return clef_fail(err, CLEF_ERR_INPUT,
                     "unknown option '%.*s'; 'clef %s --help' lists the options", STR_ARG(typed),
                     command_table[command].name);
}

/* Digits only: no sign, no blank, no other base. */
static bool parse_number(uint64_t *out, const char *text) {
    uint64_t value = 0;
    if (*text == '\0') return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9') return false;
        if (__builtin_mul_overflow(value, 10u, &value)) return false;
        if (__builtin_add_overflow(value, (uint64_t)(*text - '0'), &value)) return false;
    }
    *out = value;
    return true;
}

/* Digits with at most one dot among them; more than 0 and at most 1. The C locale is in force. */
static bool parse_share(double *out, const char *text) {
    const size_t n = strlen(text), before = strspn(text, "0123456789");
    if (n == 0 || n > 32) return false;
    const char *rest = text + before;
    if (*rest == '.') rest += 1 + strspn(rest + 1, "0123456789");
    if (*rest != '\0') return false;
    *out = strtod(text, NULL);
    return *out > 0 && *out <= 1;
}

/* What a value has to be, for the sentence of an error. */
static void add_wanted(char *out, size_t size, const option_spec *spec) {
    if (spec->kind == VALUE_NUMBER) {
        snprintf(out, size, "a whole number from %llu to %llu", (unsigned long long)spec->min,
                 (unsigned long long)spec->max);
    } else if (spec->kind == VALUE_SHARE) {
        snprintf(out, size, "a decimal number, more than 0 and at most 1");
    } else if (spec->kind == VALUE_TEXT || spec->kind == VALUE_LIST || spec->kind == VALUE_REPEAT) {
        snprintf(out, size, "%s", spec->value);
    } else {
        size_t used = 0;
        for (size_t i = 0; spec->choices[i] != NULL; i++) {
            const char *joint = i == 0 ? "" : spec->choices[i + 1] == NULL ? " or " : ", ";
            used += (size_t)snprintf(out + used, size - used, "%s%s", joint, spec->choices[i]);
        }
    }
}

static clef_status set_value(option_value *v, const option_spec *spec, const char *text,
                             clef_error *err) {
    char wanted[96];
    add_wanted(wanted, sizeof wanted, spec);
    v->text = text;
    switch (spec->kind) {
    case VALUE_NONE:
        break;
    case VALUE_TEXT:
    case VALUE_LIST:
    case VALUE_REPEAT:
        if (*text == '\0')
            return clef_fail(err, CLEF_ERR_INPUT, "--%s: an empty value, wanted %s", spec->name,
                             wanted);
        break;
    case VALUE_NUMBER:
        if (!parse_number(&v->number, text) || v->number < spec->min || v->number > spec->max)
            return clef_fail(err, CLEF_ERR_INPUT, "--%s: '%s' is not %s", spec->name, text, wanted);
        break;
    case VALUE_SHARE:
        if (!parse_share(&v->share, text))
            return clef_fail(err, CLEF_ERR_INPUT, "--%s: '%s' is not %s", spec->name, text, wanted);
        break;
    case VALUE_CHOICE:
        while (spec->choices[v->choice] != NULL && strcmp(spec->choices[v->choice], text) != 0)
            v->choice++;
        if (spec->choices[v->choice] == NULL)
            return clef_fail(err, CLEF_ERR_INPUT, "--%s: '%s' is not %s", spec->name, text, wanted);
        break;
    }
    v->given = true;
    return CLEF_OK;
}

/* Adds what set_value has taken to the option's values. */
static clef_status add_repeated(args *out, int id, clef_error *err) {
    repeated_values *r = id == OPTION_IMAGE ? &out->images : &out->videos;
    if (r->n == MAX_REPEATED)
        return clef_fail(err, CLEF_ERR_INPUT, "--%s is given more than %d times",
                         option_table[id].name, MAX_REPEATED);
    r->text[r->n++] = out->options[id].text;
    return CLEF_OK;
}

/* Reads the option at argv[*at], which begins with a dash, and its value; moves *at past both. */
static clef_status read_option(args *out, int *at, int argc, char **argv, clef_error *err) {
    const char *typed = argv[(*at)++];
    if (strcmp(typed, "-h") == 0) typed = "--help";
    const char *equals = strchr(typed, '=');
    const str name = equals != NULL ? (str){typed, (size_t)(equals - typed)} : str_of(typed);
    int id = 0;
    while (id < N_OPTIONS &&
           !(name.n > 2 && strncmp(typed, "--", 2) == 0 &&
             str_equal((str){typed + 2, name.n - 2}, str_of(option_table[id].name))))
        id++;
    if (id == N_OPTIONS) return unknown_option(name, out->command, err);
    const option_spec *spec = &option_table[id];
    if (!(spec->commands & 1u << out->command))
        return clef_fail(err, CLEF_ERR_INPUT, "'clef %s' has no option --%s; 'clef %s --help'",
                         command_table[out->command].name, spec->name,
                         command_table[out->command].name);
    const bool repeats = spec->kind == VALUE_REPEAT;
    if (out->options[id].given && !repeats)
        return clef_fail(err, CLEF_ERR_INPUT, "--%s is given twice", spec->name);
    if (spec->kind == VALUE_NONE) {
        if (equals != NULL)
            return clef_fail(err, CLEF_ERR_INPUT, "--%s takes no value", spec->name);
        return set_value(&out->options[id], spec, "", err);
    }
    option_value *v = &out->options[id];
    if (equals != NULL) {
        v->list = &v->text;
        v->n_list = 1;
        TRY(set_value(v, spec, equals + 1, err));
        return repeats ? add_repeated(out, id, err) : CLEF_OK;
    }
    /* "--out --pretty" forgot a value; "--out=--pretty" means it. */
    if (*at == argc || strncmp(argv[*at], "--", 2) == 0) {
        char wanted[96];
        add_wanted(wanted, sizeof wanted, spec);
        return clef_fail(err, CLEF_ERR_INPUT, "--%s needs a value: %s", spec->name, wanted);
    }
    v->list = (const char *const *)argv + *at;
    do {
        TRY(set_value(v, spec, argv[(*at)++], err));
        v->n_list++;
    } while (spec->kind == VALUE_LIST && *at < argc && strncmp(argv[*at], "--", 2) != 0);
    return repeats ? add_repeated(out, id, err) : CLEF_OK;
}

static clef_status find_command(command_id *out, const char *name, clef_error *err) {
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(command_table[i].name, name) == 0) {
            *out = (command_id)i;
            return CLEF_OK;
        }
    return unknown_command(name, err);
}

/* An argument that is no option: the topic of help, the file to sign, a model and, to verify, the
 * list behind it. */
static clef_status read_operand(args *out, const char *text, clef_error *err) {
    if (out->command == COMMAND_HELP) {
        if (out->topic != N_COMMANDS)
            return clef_fail(err, CLEF_ERR_INPUT, "unexpected argument '%s'", text);
        return find_command(&out->topic, text, err);
    }
    option_id id = out->command == COMMAND_SIGN ? OPTION_FILE : OPTION_MODEL;
    if (out->command == COMMAND_VERIFY && out->options[OPTION_MODEL].given) id = OPTION_MANIFEST;
    if (out->options[id].given)
        return clef_fail(err, CLEF_ERR_INPUT, "unexpected argument '%s': the %s is already '%s'",
                         text, option_table[id].name, out->options[id].text);
    return set_value(&out->options[id], &option_table[id], text, err);
}

/* Recorded runs, or another checkpoint and requests. */
static clef_status check_gate(const args *a, clef_error *err) {
    static const option_id oracle_only[] = {OPTION_RED,    OPTION_MAX_DP,   OPTION_MEAN_DP,
                                            OPTION_MARGIN, OPTION_FIXTURES, OPTION_IMAGES};
    const option_value *o = a->options;
    if (!o[OPTION_AGAINST].given) {
        if (o[OPTION_REQUESTS].given)
            return clef_fail(err, CLEF_ERR_INPUT,
                             "--requests needs --against: a second checkpoint");
        if (o[OPTION_IMAGES].n_list > 1)
            return clef_fail(err, CLEF_ERR_INPUT, "--images: %zu folders, wanted one",
                             o[OPTION_IMAGES].n_list);
        if (o[OPTION_FIXTURES].given) return CLEF_OK;
        return clef_fail(err, CLEF_ERR_INPUT, "neither --fixtures nor --against is given");
    }
    for (size_t i = 0; i < sizeof oracle_only / sizeof *oracle_only; i++)
        if (o[oracle_only[i]].given)
            return clef_fail(err, CLEF_ERR_INPUT, "--against and --%s exclude each other",
                             option_table[oracle_only[i]].name);
    if (o[OPTION_REQUESTS].given) return CLEF_OK;
    return clef_fail(err, CLEF_ERR_INPUT, "--against needs --requests: what both answer");
}

/* A file and a key, or a place for a new key. */
static clef_status check_sign(const args *a, clef_error *err) {
    static const option_id only[2][3] = {
        {OPTION_NO_PASSWORD, OPTION_KEY, OPTION_KEY}, /* to make a key */
        {OPTION_FILE, OPTION_COMMENT, OPTION_OUT}};   /* to sign */
    const option_value *o = a->options;
    const bool generate = o[OPTION_GENERATE].given;
    for (size_t i = 0; i < 3; i++)
        if (o[only[generate][i]].given)
            return clef_fail(err, CLEF_ERR_INPUT, "--%s is there %s --generate only",
                             option_table[only[generate][i]].name, generate ? "without" : "with");
    if (o[OPTION_SECRET_KEY].given && (generate || o[OPTION_FILE].given)) return CLEF_OK;
    return clef_fail(err, CLEF_ERR_INPUT, "no %s is given; usage: %s",
                     o[OPTION_SECRET_KEY].given ? "file to sign" : "secret key",
                     command_table[a->command].synopsis);
}

/* What a command cannot do without. */
static clef_status check_needs(const args *a, clef_error *err) {
    const bool model = a->options[OPTION_MODEL].given;
    switch (a->command) {
    case COMMAND_ASK:
    case COMMAND_INFO:
    case COMMAND_BENCH:
    case COMMAND_PLAN:
    case COMMAND_CONVERT:
    case COMMAND_VERIFY:
    case COMMAND_MANIFEST:
        if (model && a->command == COMMAND_CONVERT && !a->options[OPTION_OUT].given)
            return clef_fail(err, CLEF_ERR_INPUT, "no folder to make is given; usage: %s",
                             command_table[a->command].synopsis);
        if (model) return CLEF_OK;
        return clef_fail(err, CLEF_ERR_INPUT, "no model is given; usage: %s",
                         command_table[a->command].synopsis);
    case COMMAND_SERVE: /* the file may name the model */
        if (model || a->options[OPTION_CONFIG].given) return CLEF_OK;
        return clef_fail(err, CLEF_ERR_INPUT, "no model is given; usage: %s",
                         command_table[a->command].synopsis);
    case COMMAND_GATE:
        if (!model)
            return clef_fail(err, CLEF_ERR_INPUT, "no model is given; usage: %s",
                             command_table[a->command].synopsis);
        return check_gate(a, err);
    case COMMAND_GET:
        if (model || a->options[OPTION_MANIFEST].given) return CLEF_OK;
        return clef_fail(err, CLEF_ERR_INPUT, "neither a model nor a manifest is given; usage: %s",
                         command_table[a->command].synopsis);
    case COMMAND_SIGN:
        return check_sign(a, err);
    case COMMAND_ENCODE:
        if (model != a->options[OPTION_TOKENIZER].given) return CLEF_OK;
        return clef_fail(err, CLEF_ERR_INPUT, "%s; usage: %s",
                         model ? "--model and --tokenizer exclude each other"
                               : "neither a model nor a tokenizer is given",
                         command_table[a->command].synopsis);
    default:
        return CLEF_OK;
    }
}

clef_status args_parse(args *out, int argc, char **argv, clef_error *err) {
    *out = (args){.command = COMMAND_HELP, .topic = N_COMMANDS};
    if (argc < 2)
        return clef_fail(err, CLEF_ERR_INPUT, "no command is given; 'clef help' lists them");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "--version") == 0) {
        if (argc > 2) return clef_fail(err, CLEF_ERR_INPUT, "unexpected argument '%s'", argv[2]);
        if (strcmp(argv[1], "--version") == 0) out->command = COMMAND_VERSION;
        return CLEF_OK;
    }
    if (argv[1][0] == '-')
        return clef_fail(err, CLEF_ERR_INPUT,
                         "'%s' stands before the command; usage: clef COMMAND [option]", argv[1]);
    TRY(find_command(&out->command, argv[1], err));
    bool only_operands = false;
    for (int at = 2; at < argc;) {
        if (!only_operands && strcmp(argv[at], "--") == 0) {
            only_operands = true;
            at++;
        } else if (!only_operands && argv[at][0] == '-' && argv[at][1] != '\0') {
            TRY(read_option(out, &at, argc, argv, err));
        } else {
            TRY(read_operand(out, argv[at++], err));
        }
    }
    if (out->options[OPTION_HELP].given) {
        if (out->command != COMMAND_HELP) out->topic = out->command;
        out->command = COMMAND_HELP;
        return CLEF_OK;
    }
    return check_needs(out, err);
}

clef_status args_add(args *out, int argc, char **argv, clef_error *err) {
    args more = {.command = out->command};
    for (int at = 0; at < argc;) TRY(read_option(&more, &at, argc, argv, err));
    for (int i = 0; i < N_OPTIONS; i++) {
        option_value *from = &more.options[i], *to = &out->options[i];
        if (!from->given || to->given) continue;
        *to = *from;
        if (from->list == &from->text) to->list = &to->text;
    }
    return CLEF_OK;
}
