# SPDX-License-Identifier: Apache-2.0
#
# Every reader on any bytes.  Included by the Makefile.
#
#	make fuzz T=60               each target under libFuzzer for T seconds of its own
#	make fuzz AFL=1 T=60         the same under AFL++
#	make fuzz TARGETS="log json" only these
#	make check-replay            seeds and small findings (tests/fuzz/found) through all targets
#
# A target is tests/fuzz/fuzz_NAME.c with LLVMFuzzerTestOneInput(); its seeds are made at run time
# by our own tools (tests/fuzz/seeds.py), so no bytes of other people are kept here.

FUZZ := $(B)/$(if $(AFL),afl,fuzz)
FUZZ_NAMES := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_FROM := $(ANALYZE) $(WRITING) $(OUTPUT) $(READING) $(SCHEMAS) $(COLLECTOR) collector/control/ask.c collector/record/config.c \
	analyze/cli/mcp.c analyze/cli/mcp_tools.c
FUZZ_COMMON := -std=c11 -D_GNU_SOURCE -I. -I$(B) -g -O1 -pthread -DTACHO_VERSION='"$(VERSION)"' \
	-DFUZZING -fno-omit-frame-pointer -fno-sanitize-recover=undefined
ifneq ($(AFL),)
  FUZZ_CC := AFL_QUIET=1 afl-clang-fast -fsanitize=address,undefined
  FUZZ_LINK := $(FUZZ_CC) -fsanitize=fuzzer
else
  FUZZ_CC := clang -fsanitize=fuzzer-no-link,address,undefined
  FUZZ_LINK := clang -fsanitize=fuzzer,address,undefined
endif

.PHONY: check-replay fuzz-seeds
fuzz: packages-fuzz
	$(Q)$(MAKE) --no-print-directory B=$(B) AFL=$(AFL) fuzz-run
fuzz-run: $(addprefix $(FUZZ)/fuzz_,$(or $(TARGETS),$(FUZZ_NAMES))) fuzz-seeds
	$(Q)sh tests/fuzz/run.sh $(FUZZ) $(B)/fuzz-seeds $(or $(T),60) $(or $(TARGETS),$(FUZZ_NAMES))
.PHONY: packages-fuzz fuzz-run
packages-fuzz:
	$(Q)sh tests/packages.sh check clang $(if $(AFL),afl)
fuzz-seeds: $(B)/tacho-convert $(B)/tacho-analyze $(B)/tacho-record $(B)/samples/generate
	$(Q)python3 tests/fuzz/seeds.py --bin $(B) --out $(B)/fuzz-seeds

$(FUZZ)/obj/%.o: %.c | $(PROTO_H)
	@mkdir -p $(@D)
	$(call say,FUZZ,$<)
	$(Q)$(FUZZ_CC) $(FUZZ_COMMON) -MMD -MP -c -o $@ $<
# Of an archive only what a target needs is in it: less to watch for the fuzzer.
$(FUZZ)/libfuzzed.a: $(FUZZ_FROM:%.c=$(FUZZ)/obj/%.o)
	@rm -f $@
	$(Q)ar rcs $@ $^
$(FUZZ)/fuzz_%: $(FUZZ)/obj/tests/fuzz/fuzz_%.o $(FUZZ)/libfuzzed.a $(MADE_O)
	$(call say,FUZZ,$@)
	$(Q)$(FUZZ_LINK) -pthread -o $@ $^ $(TOOLS_LIBS)
.PRECIOUS: $(FUZZ)/obj/%.o

# All targets in one plain program, whose list is made from the names of their files.
REPLAY := $(B)/tests/replay
$(REPLAY)/list.h: $(wildcard tests/fuzz/fuzz_*.c)
	@mkdir -p $(@D)
	@for n in $(FUZZ_NAMES); do echo "X($$n)"; done >$@
$(REPLAY)/fuzz_%.o: tests/fuzz/fuzz_%.c $(B)/flags | $(PROTO_H)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -DFUZZING -DLLVMFuzzerTestOneInput=fuzz_$* -MMD -MP -c -o $@ $<
$(REPLAY)/replay.o: tests/fuzz/replay.c $(REPLAY)/list.h $(B)/flags
	$(Q)$(CC) $(ALL_CFLAGS) -I$(REPLAY) -MMD -MP -c -o $@ $<
$(REPLAY)/libreplayed.a: $(FUZZ_FROM:%.c=$(B)/%.o)
	@rm -f $@
	$(Q)ar rcs $@ $^
$(REPLAY)/replay: $(REPLAY)/replay.o $(FUZZ_NAMES:%=$(REPLAY)/fuzz_%.o) $(REPLAY)/libreplayed.a $(MADE_O)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(TOOLS_LIBS)
check-replay: $(REPLAY)/replay fuzz-seeds
	$(Q)$(REPLAY)/replay tests/fuzz/found $(B)/fuzz-seeds
