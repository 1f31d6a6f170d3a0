# clef.c - see README.md. Two commands do everything on a fresh machine: `make demo`, `make test`.
#
#   make              ./clef, libclef.a, libclef.so
#   make demo         set-up, build, a toy checkpoint, one answered request
#   make test         set-up, build, all tests
#   make check        format, tidy, layers, headers alone, both compilers
#   make asan tsan    the tests under the sanitizers
#   make fuzz         every fuzz harness for FUZZ_SECONDS seconds
#   make parity       the long comparisons against CPython and the reference tokenizer
#   make bench        the measured table of the README
#   make install      PREFIX=/usr/local, DESTDIR=

CC ?= cc
AR ?= ar
B ?= build
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60

VERSION := $(shell sed -n 's/^\#define CLEF_VERSION "\(.*\)"/\1/p' include/clef.h)

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wcast-qual \
        -Wwrite-strings -Wformat=2 -Wundef -Werror
OPT ?= -O2 -g
CPPFLAGS += -Iinclude -Isrc -I$(B)/gen -D_POSIX_C_SOURCE=200809L
CFLAGS_ALL = -std=c11 $(OPT) $(WARN) -ffp-contract=off -fvisibility=hidden -fPIC -pthread $(CFLAGS)
LDFLAGS_ALL = -pthread $(LDFLAGS)
LDLIBS_ALL = -lm $(LDLIBS)

LIB_SRC := $(filter-out %_test.c,$(wildcard $(patsubst %,src/%/*.c,base text request checkpoint compute model engine)))
CLI_SRC := $(filter-out %_test.c,$(wildcard src/cli/*.c))
TEST_SRC := $(wildcard src/*/*_test.c tests/*_test.c)
FUZZ_SRC := $(wildcard fuzz/*_fuzz.c)
TOOL_SRC := $(wildcard tools/*.c)

LIB_OBJ := $(LIB_SRC:%.c=$(B)/%.o)
CLI_OBJ := $(CLI_SRC:%.c=$(B)/%.o)
TEST_BIN := $(TEST_SRC:%.c=$(B)/%)
TOOL_BIN := $(TOOL_SRC:%.c=$(B)/%)
FUZZ_BIN := $(FUZZ_SRC:%.c=$(B)/%)

.PHONY: all
all: clef libclef.so libclef.a

clef: $(B)/clef
	@cp $< $@
libclef.a: $(B)/libclef.a
	@cp $< $@
libclef.so: $(B)/libclef.so
	@cp $< $@

$(B)/clef: $(CLI_OBJ) $(B)/libclef.a
	$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)
$(B)/libclef.a: $(LIB_OBJ)
	@rm -f $@
	$(AR) rcs $@ $^
$(B)/libclef.so: $(LIB_OBJ)
	$(CC) -shared -Wl,-soname,libclef.so.0 $(LDFLAGS_ALL) -o $@ $^ $(LDLIBS_ALL)

# Bytes from outside are read in these folders: every narrowing is spelled out.
$(B)/src/text/%.o $(B)/src/request/%.o $(B)/src/checkpoint/%.o: CFLAGS_ALL += -Wconversion
$(B)/src/compute/kernels_avx2.o: CFLAGS_ALL += -mavx2 -mfma -mf16c -O3
$(B)/src/compute/kernels_scalar.o: CFLAGS_ALL += -O3

$(B)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

# ---- tests -----------------------------------------------------------------------------------

TEST_CPPFLAGS = -DTESTDATA='"testdata/"' -DBUILD_DIR='"$(B)/"'

$(TEST_BIN): $(B)/%: %.c $(B)/libclef.a Makefile
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(TEST_CPPFLAGS) $(CFLAGS_ALL) -MMD -MP -MF $@.d $(LDFLAGS_ALL) -o $@ $< $(B)/libclef.a -lcmocka $(LDLIBS_ALL)

$(TOOL_BIN): $(B)/%: %.c $(B)/libclef.a Makefile
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS_ALL) -MMD -MP -MF $@.d $(LDFLAGS_ALL) -o $@ $< $(B)/libclef.a $(LDLIBS_ALL)

$(FUZZ_BIN): $(B)/%: %.c $(B)/libclef.a Makefile
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(TEST_CPPFLAGS) $(CFLAGS_ALL) -fsanitize=fuzzer $(LDFLAGS_ALL) -o $@ $< $(B)/libclef.a $(LDLIBS_ALL)

.PHONY: tests
tests: $(TEST_BIN)

# Builds and runs the tests of one module: make t-json
t-%:
	@$(MAKE) --no-print-directory $(filter %/$*_test,$(TEST_BIN)) && $(filter %/$*_test,$(TEST_BIN))

.PHONY: clean
clean:
	rm -rf build clef libclef.a libclef.so

-include $(LIB_OBJ:.o=.d) $(CLI_OBJ:.o=.d) $(TEST_BIN:=.d) $(TOOL_BIN:=.d)
