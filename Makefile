# clef.c - see README.md. Two commands do everything on a fresh machine: `make demo`, `make test`.
#
#   make              ./clef, libclef.a, libclef.so
#   make demo         set-up, build, a toy checkpoint, one answered request
#   make test         set-up, build, all tests
#   make check        format, tidy, layers, headers alone, both compilers
#   make test-slow    the tests that take minutes or the hub's own Python package
#   make asan tsan    the tests under the sanitizers, in their own build folders
#   make test-video   the tests of a build that reads video files
#   make test-arm     the verbs' tests for 64-bit Arm, cross-built, under emulation
#   make test-avx512  the same for AVX-512, on an emulated machine; slow
#   make fuzz         every fuzz harness for FUZZ_SECONDS seconds
#   make clients      the official SDK, a browser and other real clients against the server
#   make parity       the long comparisons against CPython and the reference tokenizer
#   make bench        the measured table of the README, MODEL=DIR
#   make install      PREFIX=/usr/local, DESTDIR=; make uninstall takes it away again
#   make tools        the benches and makers of toys in build/tools
#   make t-NAME       the tests of one module, such as t-json
#   make clean        removes whatever was built and fetched
#
# CC, OPT, CFLAGS and LDFLAGS may be given; VIDEO=1 reads video files with FFmpeg's libraries; B
# names the build folder. A build with other flags or another compiler needs its own B, because
# flags are not tracked. V=1 shows the commands.

CC ?= cc
AR ?= ar
B ?= build
PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 60
JOBS ?= $(shell nproc 2>/dev/null || echo 2)

VERSION := $(shell sed -n 's/^\#define CLEF_VERSION "\(.*\)"/\1/p' include/clef.h)
SONAME := libclef.so.$(firstword $(subst ., ,$(VERSION)))

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wcast-qual \
        -Wwrite-strings -Wformat=2 -Wundef -Werror
OPT ?= -O2 -g
CPPFLAGS += -Iinclude -Isrc -I. -D_XOPEN_SOURCE=700
CFLAGS_ALL = -std=c11 $(OPT) $(WARN) -ffp-contract=off -fvisibility=hidden -fPIC -pthread $(CFLAGS)
LDFLAGS_ALL = -pthread $(LDFLAGS)
# Libraries of libclef; the command line needs two more, for fetching and serving.
VIDEO_LIBS = $(if $(VIDEO),-lavformat -lavcodec -lswscale -lavutil)
MEDIA_LIBS = -lpng -ljpeg -lwebp -lwebpdemux $(VIDEO_LIBS)
LDLIBS_ALL = -lm -lcrypto $(MEDIA_LIBS) $(LDLIBS)
# Tests write compressed files of their own.
TEST_LDLIBS = -lcmocka -lz
CLI_LIBS = -lcurl -lmicrohttpd -lzstd

LIB_SRC := $(filter-out %_test.c src/media/$(if $(VIDEO),video_none,video).c,$(wildcard $(patsubst %,src/%/*.c,base text media request checkpoint compute model engine)))
CLI_SRC := $(filter-out %_test.c,$(wildcard $(patsubst %,src/%/*.c,fetch server cli)))
# Tests that take minutes, or packages that `make test` does without.
LONG_SRC := $(wildcard tests/*_long_test.c)
TEST_SRC := $(filter-out $(LONG_SRC),$(wildcard src/*/*_test.c tests/*_test.c))
FUZZ_SRC := $(wildcard fuzz/*_fuzz.c)
TOOL_SRC := $(wildcard tools/*.c bench/*.c)
PARITY_MK := $(wildcard tools/*/parity*.mk)

LIB_OBJ := $(LIB_SRC:%.c=$(B)/%.o)
CLI_OBJ := $(CLI_SRC:%.c=$(B)/%.o)
# Files that the server carries.
ifneq ($(wildcard $(filter src/server/%,$(CLI_SRC))),)
EMBEDDED := $(B)/embedded/page_html.o $(B)/embedded/openapi_json.o
CLI_OBJ += $(EMBEDDED)
endif
TEST_BIN := $(TEST_SRC:%.c=$(B)/%)
LONG_BIN := $(LONG_SRC:%.c=$(B)/%)
TOOL_BIN := $(TOOL_SRC:%.c=$(B)/%)
FUZZ_BIN := $(FUZZ_SRC:%.c=$(B)/%)

# What is made, instead of the command, unless V=1.
say = $(if $(V),,@echo "$(1)  $(2)" &&)

# A make that runs in parallel unless the user already said how.
SUBMAKE = $(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS))

.PHONY: all
all: clef libclef.so libclef.a

clef: $(B)/clef
	@cp $< $@
libclef.a: $(B)/libclef.a
	@cp $< $@
libclef.so: $(B)/libclef.so
	@cp $< $@

$(B)/clef: $(CLI_OBJ) $(B)/libclef.a
	$(call say,cc,$@) $(CC) $(LDFLAGS_ALL) -o $@ $^ $(CLI_LIBS) $(LDLIBS_ALL)
$(B)/libclef.a: $(LIB_OBJ)
	@rm -f $@
	$(call say,ar,$@) $(AR) rcs $@ $^
$(B)/libclef.so: $(LIB_OBJ)
	$(call say,cc,$@) $(CC) -shared -Wl,-soname,$(SONAME) $(LDFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)
# The command line without main, for its own tests.
$(B)/cli.a: $(filter-out $(B)/src/cli/main.o,$(CLI_OBJ))
	@rm -f $@
	$(call say,ar,$@) $(AR) rcs $@ $^
$(B)/embedded/page_html.c: src/server/page.html $(B)/tools/embed
	@mkdir -p $(@D)
	$(call say,embed,$<) $(B)/tools/embed page_html $< > $@.part && mv $@.part $@
$(B)/embedded/openapi_json.c: src/server/openapi.json $(B)/tools/embed
	@mkdir -p $(@D)
	$(call say,embed,$<) $(B)/tools/embed openapi_json $< > $@.part && mv $@.part $@
$(EMBEDDED): %.o: %.c src/server/generated.h Makefile
	$(call say,cc,$@) $(CC) $(CPPFLAGS) $(CFLAGS_ALL) -c -o $@ $<
# The man page is the program's own help text.
$(B)/clef.1: $(B)/clef
	$(B)/clef help --man > $@.part && mv $@.part $@

# Bytes from outside are read in these folders: every narrowing is spelled out.
$(patsubst %,$(B)/src/%/%.o,text media request checkpoint fetch server): CFLAGS_ALL += -Wconversion
AVX2_FLAGS = -mavx2 -mfma -mf16c
AVX512_FLAGS = $(AVX2_FLAGS) -mavx512f -mavx512bw -mavx512vl
ifneq ($(filter x86_64%,$(shell $(CC) -dumpmachine)),)
$(B)/src/compute/kernels_avx2.o: CFLAGS_ALL += $(AVX2_FLAGS)
$(B)/src/compute/kernels_avx512.o: CFLAGS_ALL += $(AVX512_FLAGS)
$(B)/src/compute/kernels_avx512vnni.o: CFLAGS_ALL += $(AVX512_FLAGS) -mavx512vnni
endif
ifneq ($(filter aarch64%,$(shell $(CC) -dumpmachine)),)
$(B)/src/compute/kernels_neondot.o: CFLAGS_ALL += -march=armv8.2-a+dotprod
endif
$(patsubst %,$(B)/src/compute/kernels_%.o,avx2 avx512 avx512vnni neon neondot): CFLAGS_ALL += -O3
# Without register lanes every vector is an object on the stack, and gcc takes minutes to guard the
# scope of each one.
$(B)/src/compute/kernels_scalar.o: CFLAGS_ALL += -O3 \
    $(if $(findstring address,$(CFLAGS)),-fno-sanitize-address-use-after-scope)

$(B)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call say,cc,$@) $(CC) $(CPPFLAGS) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

# ---- tests -----------------------------------------------------------------------------------

TEST_CPPFLAGS = -DTESTDATA='"testdata/"' -DBUILD_DIR='"$(B)/"' $(if $(VIDEO),-DCLEF_VIDEO)
TEST_HELP := $(patsubst %.c,$(B)/%.o,$(filter-out %_test.c,$(wildcard tests/*.c)))
TEST_LIBS := $(if $(TEST_HELP),$(B)/tests.a) $(if $(CLI_SRC),$(B)/cli.a) $(B)/libclef.a

$(B)/tests/%.o: CPPFLAGS += $(TEST_CPPFLAGS)
$(B)/tests.a: $(TEST_HELP)
	@rm -f $@
	$(call say,ar,$@) $(AR) rcs $@ $^

# A test that includes tests/oom.h decides which allocation fails.
OOM_BIN := $(patsubst %.c,$(B)/%,$(shell grep -l '"tests/oom.h"' $(TEST_SRC) /dev/null))
$(OOM_BIN): private LDFLAGS_ALL += -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc,--wrap=posix_memalign

# A test that includes tests/disk.h decides which change of the disk fails.
DISK_BIN := $(patsubst %.c,$(B)/%,$(shell grep -l '"tests/disk.h"' $(TEST_SRC) /dev/null))
$(DISK_BIN): private LDFLAGS_ALL += -Wl,--wrap=mkdir,--wrap=open,--wrap=write,--wrap=fsync,--wrap=rename,--wrap=unlink,--wrap=statvfs

$(TEST_BIN) $(LONG_BIN): $(B)/%: %.c $(TEST_LIBS) Makefile
	@mkdir -p $(@D)
	$(call say,cc,$@) $(CC) $(CPPFLAGS) $(TEST_CPPFLAGS) $(CFLAGS_ALL) -MMD -MP -MF $@.d $(LDFLAGS_ALL) -o $@ $< $(TEST_LIBS) $(TEST_LDLIBS) $(CLI_LIBS) $(LDLIBS_ALL)

$(TOOL_BIN): $(B)/%: %.c $(B)/libclef.a Makefile
	@mkdir -p $(@D)
	$(call say,cc,$@) $(CC) $(CPPFLAGS) $(CFLAGS_ALL) -MMD -MP -MF $@.d $(LDFLAGS_ALL) -o $@ $< $(B)/libclef.a $(LDLIBS_ALL)

$(FUZZ_BIN): $(B)/%: %.c $(B)/cli.a $(B)/libclef.a Makefile
	@mkdir -p $(@D)
	$(call say,cc,$@) $(CC) $(CPPFLAGS) $(TEST_CPPFLAGS) $(CFLAGS_ALL) -fsanitize=fuzzer $(LDFLAGS_ALL) -o $@ $< $(B)/cli.a $(B)/libclef.a $(CLI_LIBS) $(LDLIBS_ALL)

# These run the program and the tools.
$(B)/tests/cli_test $(B)/tests/get_cli_test $(B)/tests/fetch_long_test: | $(B)/clef
$(B)/tests/server_test $(B)/tests/server_life_test: | $(B)/clef
$(B)/tests/synth_test: | $(B)/tools/synth
$(B)/tests/verify_cli_test: | $(B)/clef
$(B)/tests/convert_test: | $(B)/tools/synth
$(B)/tests/plan_test: | $(B)/tools/peak $(B)/tools/synth

.PHONY: tests tools fuzzers run-tests run-long
tests: $(TEST_BIN) $(LONG_BIN)
tools: $(TOOL_BIN)
fuzzers: $(FUZZ_BIN)

# Builds and runs the tests of one module: make t-json
t-%:
	@test -n "$(filter %/$*_test,$(TEST_BIN))" || { echo "there is no test of that name: $*" >&2; exit 2; }
	@$(MAKE) --no-print-directory $(filter %/$*_test,$(TEST_BIN)) && $(filter %/$*_test,$(TEST_BIN))

# The released tokenizer and its sibling, rebuilt from a package and checked by hash; in no commit
# because of their size.
build/data/tokenizer-qwen2.json: tools/tokenizer/build_real.py
	python3 $<

run-tests: tests tools build/data/tokenizer-qwen2.json
	@tools/run_tests $(TEST_BIN)
run-long: $(LONG_BIN)
	@tools/run_tests $(LONG_BIN)

.PHONY: test test-slow asan tsan
test:
	@tools/setup.sh test
	@$(SUBMAKE) all run-tests
test-slow: build/hub-py/.done
	@tools/setup.sh test
	@$(SUBMAKE) all run-long

# The hub's own package, whose cache has to be ours and the other way round.
HUB_PACKAGE = huggingface_hub==1.33.0
build/hub-py/.done:
	@tools/setup.sh test
	@rm -rf build/hub-py
	python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore \
	  --target build/hub-py $(HUB_PACKAGE)
	@touch $@

# The install test compiles against an installed copy, and the plan's measures memory: a sanitizer
# has nothing to add to the one and would be measured by the other.
UNSANITIZED := tests/install_test.c tests/plan_test.c
asan:
	@tools/setup.sh test
	@$(SUBMAKE) run-tests B=build/asan TEST_SRC="$(filter-out $(UNSANITIZED),$(TEST_SRC))" \
	  CFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer" \
	  LDFLAGS="-fsanitize=address,undefined"

# The tests that share work out over threads; the others have one, and take minutes under this one.
THREAD_TESTS = src/base/pool_test.c src/server/answers_test.c src/server/keys_test.c src/compute/compute_test.c src/compute/linear_test.c \
               src/compute/attend_test.c src/compute/delta_test.c src/fetch/get_test.c \
               src/fetch/verify_test.c tests/api_test.c \
               tests/queue_test.c tests/server_test.c
tsan:
	@tools/setup.sh test
	@$(SUBMAKE) run-tests B=build/tsan TEST_SRC="$(THREAD_TESTS)" \
	  CFLAGS="-fsanitize=thread" LDFLAGS="-fsanitize=thread"

# Real clients, unmodified and pinned, against the server with a toy checkpoint.
.PHONY: clients
clients:
	@tools/setup.sh clients
	@$(SUBMAKE) all
	@tools/clients/setup.sh
	@RUN=build/clients-venv/bin/python tools/run_tests $(wildcard tools/clients/*_test.py)

# Corpora grow under build/fuzz/corpus; what a run finds lies in build/fuzz/found.
.PHONY: fuzz
fuzz:
	@tools/setup.sh check
	@$(SUBMAKE) fuzzers CC=clang B=build/fuzz \
	  CFLAGS="-fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=all" \
	  LDFLAGS="-fsanitize=address,undefined"
	@tools/run_fuzz $(FUZZ_SECONDS) $(FUZZ_SRC:%.c=build/fuzz/%)

# What differs in a build with FFmpeg's libraries, and the program and library linked with them.
VIDEO_TESTS = build/video/src/media/video_test build/video/src/media/media_test
.PHONY: test-video
test-video:
	@VIDEO=1 tools/setup.sh test
	@$(SUBMAKE) VIDEO=1 B=build/video build/video/clef build/video/libclef.so $(VIDEO_TESTS)
	@tools/run_tests $(VIDEO_TESTS)

# The verbs on 64-bit Arm, cross-built and run under emulation: the NEON table against the scalar one
# of that processor, bit for bit, and both against loops in double.
ARM_TESTS = $(patsubst %,build/arm/src/compute/%_test,fmath kernels linear rows attend delta)
.PHONY: test-arm
test-arm:
	@tools/setup.sh arm
	@$(SUBMAKE) $(ARM_TESTS) B=build/arm CC=aarch64-linux-gnu-gcc CLI_SRC= CLI_LIBS= MEDIA_LIBS= \
	  TEST_LDLIBS=-lcmocka \
	  LIB_SRC="$(filter-out %_test.c,$(wildcard src/base/*.c src/compute/*.c))"
	@RUN=qemu-aarch64 tools/run_tests $(ARM_TESTS)

# The same with the AVX-512 tables, on an emulated machine that has it (tools/avx512/boot); slow.
AVX512_TESTS = $(patsubst %,build/avx512/src/compute/%_test,$(AVX512_MODULES))
AVX512_MODULES = fmath kernels rows linear attend delta
.PHONY: test-avx512
test-avx512: build/avx512/init build/avx512/vmlinuz
	@tools/setup.sh avx512
	@$(SUBMAKE) $(AVX512_TESTS) B=build/avx512 CFLAGS="$(CFLAGS) -DEMULATED" CLI_SRC= CLI_LIBS= MEDIA_LIBS= TEST_LDLIBS=-lcmocka \
	  LIB_SRC="$(filter-out %_test.c,$(wildcard src/base/*.c src/compute/*.c))"
	@RUN=tools/avx512/boot TEST_SECONDS=7200 tools/run_tests $(AVX512_TESTS)
build/avx512/init: tools/avx512/init.c
	@mkdir -p $(@D)
	$(call say,cc,$@) $(CC) -O1 -Wall -Wextra -Werror -static -o $@ $<
build/avx512/vmlinuz:
	@mkdir -p $(@D)
	tools/avx512/kernel.sh $@

# ---- checks ----------------------------------------------------------------------------------

C_FILES = $(sort $(wildcard include/*.h src/*/*.[ch] tests/*.[ch] fuzz/*.[ch] tools/*.[ch] bench/*.[ch] examples/*.[ch]))
# No headers by themselves: the bodies that every kernel table includes stand on the lanes of the
# table, and arm_neon.h is there for Arm alone.
HEADERS = $(filter-out src/compute/body_%.h src/compute/lanes_neon.h,$(filter %.h,$(C_FILES)))
AVX2_FILES = src/compute/lanes_avx2.h src/compute/kernels_avx2.c
AVX512_FILES = src/compute/lanes_avx512.h src/compute/kernels_avx512.c src/compute/kernels_avx512vnni.c
table_flags = $(if $(filter $1,$(AVX2_FILES)),$(AVX2_FLAGS))$(if $(filter $1,$(AVX512_FILES)),$(AVX512_FLAGS) -mavx512vnni)
TIDY_STAMPS = $(patsubst %.c,$(B)/tidy/%.ok,$(filter %.c,$(C_FILES)))
HEADER_STAMPS = $(HEADERS:%=$(B)/headers/%.ok)

.PHONY: check check-format check-layers check-tidy check-headers check-compilers
check:
	@tools/setup.sh check
	@$(SUBMAKE) check-format check-layers
	@$(SUBMAKE) check-headers check-tidy
	@$(SUBMAKE) check-compilers
	@echo "check: clean"

check-format:
	@clang-format --dry-run -Werror $(C_FILES)
check-layers:
	@tools/check_layers
check-tidy: $(TIDY_STAMPS)
check-headers: $(HEADER_STAMPS)
	clang -Wall -Wextra -Werror -fsyntax-only -x c++ include/clef.h
check-compilers:
	@$(MAKE) --no-print-directory all tests tools fuzzers B=build/clang CC=clang
	@$(MAKE) --no-print-directory all tests tools FUZZ_SRC= B=build/gcc CC=gcc

$(B)/tidy/%.ok: %.c .clang-tidy $(HEADERS)
	@mkdir -p $(@D)
	$(call say,tidy,$<) clang-tidy --quiet $< -- $(CPPFLAGS) $(TEST_CPPFLAGS) -std=c11 \
	  $(call table_flags,$<) 2> $@.log || { cat $@.log; exit 1; }
	@touch $@
$(B)/headers/%.ok: % $(HEADERS)
	@mkdir -p $(@D)
	@$(CC) $(CPPFLAGS) $(TEST_CPPFLAGS) $(CFLAGS_ALL) $(call table_flags,$<) -fsyntax-only -x c $<
	@touch $@

# ---- long comparisons, measuring, showing ----------------------------------------------------

# Each comparison brings its own target in a parity.mk; the reference's libraries live in a virtual
# environment that takes some gigabytes.
.PHONY: parity parity-setup bench demo
parity:
include $(PARITY_MK)
parity-json parity-tokenizer: | parity-setup
parity-setup:
	@tools/setup.sh parity
	@test -x build/oracle-venv/bin/python || tools/oracle/setup.sh

bench: all
	@test -n "$(MODEL)" || { echo "make bench MODEL=DIR: a checkpoint to measure"; exit 2; }
	./clef bench --model "$(MODEL)"

demo:
	@tools/setup.sh demo
	@$(SUBMAKE) all tools
	@tools/demo.sh

# ---- installing ------------------------------------------------------------------------------

BINDIR = $(DESTDIR)$(PREFIX)/bin
LIBDIR = $(DESTDIR)$(PREFIX)/lib
INCDIR = $(DESTDIR)$(PREFIX)/include
MANDIR = $(DESTDIR)$(PREFIX)/share/man/man1

.PHONY: install uninstall
install: $(B)/clef $(B)/libclef.a $(B)/libclef.so $(B)/clef.1
	install -d "$(BINDIR)" "$(LIBDIR)/pkgconfig" "$(INCDIR)" "$(MANDIR)"
	install -m 755 $(B)/clef "$(BINDIR)/clef"
	install -m 644 $(B)/libclef.a "$(LIBDIR)/libclef.a"
	install -m 755 $(B)/libclef.so "$(LIBDIR)/libclef.so.$(VERSION)"
	ln -sf libclef.so.$(VERSION) "$(LIBDIR)/$(SONAME)"
	ln -sf $(SONAME) "$(LIBDIR)/libclef.so"
	install -m 644 include/clef.h "$(INCDIR)/clef.h"
	install -m 644 $(B)/clef.1 "$(MANDIR)/clef.1"
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' \
	  -e 's|@VIDEO_PC@|$(if $(VIDEO), libavformat libavcodec libswscale libavutil)|' clef.pc.in > "$(LIBDIR)/pkgconfig/clef.pc"

uninstall:
	rm -f "$(BINDIR)/clef" "$(LIBDIR)/libclef.a" "$(LIBDIR)/libclef.so" "$(LIBDIR)/$(SONAME)" \
	  "$(LIBDIR)/libclef.so.$(VERSION)" "$(LIBDIR)/pkgconfig/clef.pc" "$(INCDIR)/clef.h" \
	  "$(MANDIR)/clef.1"

.PHONY: clean help
clean:
	rm -rf build clef libclef.a libclef.so
help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

-include $(patsubst %.o,%.d,$(LIB_OBJ) $(CLI_OBJ) $(TEST_HELP)) $(TEST_BIN:=.d) $(TOOL_BIN:=.d)
