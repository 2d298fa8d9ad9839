# SPDX-License-Identifier: Apache-2.0
#
# make             everything that this machine allows; says what was left out and why, and which
#                  packages are missing
# make demo        first look: installs what is missing, records a training loop, converts, reports
# make check       the tests (no GPU, no network beyond missing -dev packages); FULL=1 all of what is
#                  many times the same
# make check-clients  the real readers of our files, in a throw-away virtual environment
# make bench       speed, side by side with references in one run
# make fuzz T=60   every reader under libFuzzer, T seconds each; AFL=1: under AFL++
# make regenerate  schemas and expected outputs, from the code
# make install     PREFIX=/usr/local DESTDIR=; make uninstall
# make wheel       the Python package with the library and all tools inside, for pip; GLIBC=2.28 for
#                  machines with an older C library than this one
# make deb         a package for this release of Debian or Ubuntu
#
# SAN=1 builds with the address and undefined sanitizers, TSAN=1 with the thread sanitizer, COV=1
# for `make coverage`, each in a folder of its own; WERROR=1 makes warnings errors; V=1 shows
# commands; B=DIR builds elsewhere.

comma := ,
SAN ?=
TSAN ?=
COV ?=
V ?=
WERROR ?=
PREFIX ?= /usr/local

ifneq ($(SAN),)
  B ?= build-san
  SANFLAGS := -fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=undefined,float-cast-overflow -fno-omit-frame-pointer
else ifneq ($(TSAN),)
  B ?= build-tsan
  SANFLAGS := -fsanitize=thread
else ifneq ($(COV),)
  B ?= build-cov
  SANFLAGS := --coverage -fprofile-update=atomic
else
  B ?= build
  SANFLAGS :=
  # What is installed stops at a smashed stack or an overrun buffer instead of going on.
  HARDEN := -fstack-protector-strong $(if $(filter -O0,$(OPT)),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
  HARDEN_LD := -Wl,-z,relro -Wl,-z,now
endif

CC ?= gcc
OPT ?= -O2
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
	-Wconversion -Wno-sign-conversion -Wfloat-conversion -Wno-unused-parameter $(if $(WERROR),-Werror)
VERSION := $(shell cat VERSION 2>/dev/null)
ALL_CFLAGS := -std=c11 -D_GNU_SOURCE -I. -I$(B) -g $(OPT) $(WARN) $(HARDEN) $(SANFLAGS) -pthread \
	-DTACHO_VERSION='"$(VERSION)"' $(CFLAGS)
# Intel's ISA-L packs and unpacks gzip faster where it is installed; ISAL= leaves it out.
hash := \#
ISAL ?= $(if $(shell echo '$(hash)include <isa-l.h>' | $(CC) $(CFLAGS) -E - >/dev/null 2>&1 && echo yes),1)
ALL_CFLAGS += $(if $(ISAL),-DTACHO_ISAL)
ALL_LDFLAGS := $(SANFLAGS) $(HARDEN_LD) -pthread $(LDFLAGS)

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-6s %s\n' $(1) $(2))

# What stands on what (CONTRIBUTING.md): each layer links only against those below it, and a file's
# folder says to which it belongs.
in = $(wildcard $(addsuffix /*.c,$(1)))
SCHEMAS     := $(call in,schemas/base schemas/model schemas/log)
PROTO       := $(wildcard schemas/proto/*.proto)
READING     := $(call in,convert/base convert/input convert/name convert/spool convert/source convert/source/* \
	convert/stage convert/stage/*)
OUTPUT      := $(call in,convert/output)
WRITING     := $(call in,convert/sink convert/sink/*)
CONVERT_CLI := $(call in,convert/cli)
ANALYZE     := $(call in,$(addprefix analyze/,timeline cause engine replay model report report/* findings format \
	format/* explain))
ANALYZE_CLI := $(filter-out analyze/cli/mpi_plugin.c,$(call in,analyze/cli))
STORE       := $(call in,collector/store)
RECORD      := $(call in,$(addprefix collector/,record recorder control)) $(patsubst %,collector/probe/%/probe.c,api nvtx memory health)
PROBES      := $(wildcard collector/probe/probe_list.c collector/probe/*/probe.c)
LIBTACHO    := $(call in,$(addprefix collector/,api arena config schedule session helper probe probe/*))
# What tools and unit tests link: of the library all but its constructor, its helper's thread and
# the probes themselves, and the writer in the place of the helper's.
COLLECTOR   := $(filter-out collector/api/start.c collector/helper/helper.c collector/helper/writer.c $(PROBES),$(LIBTACHO)) $(STORE)

objs = $(patsubst %.c,$(B)/%.o,$(1))
pics = $(patsubst %.c,$(B)/pic/%.o,$(1))

TOOLS_LIBS := -larchive -lcjson -lprotobuf-c -lsqlite3 $(if $(ISAL),-lisal) -lz -lm -ldl
PROTO_H := $(PROTO:%.proto=$(B)/%.pb-c.h)
MADE_O := $(PROTO:%.proto=$(B)/%.pb-c.o) $(B)/analyze/format/html/style_css.o
TOOLS := $(B)/tacho-convert $(B)/tacho-analyze $(B)/tacho-record
PACKAGE := $(wildcard collector/python/tacho/*.py collector/python/tacho/py.typed collector/python/tacho/hook/*.py)
SAMPLES := $(B)/samples/train_mlp $(B)/samples/generate
NVCC := $(shell command -v nvcc 2>/dev/null)

.DELETE_ON_ERROR:
.PHONY: all demo check bench bench-gpu fuzz stats regenerate clean install packages left-out

all: packages $(TOOLS) $(B)/libtacho.so $(B)/tacho/.made $(SAMPLES) left-out

# What the build needs and is not there: `make` says how to install it (Debian, Ubuntu) and stops;
# make demo, make check and what else runs tests install it.
packages:
	$(Q)sh tests/packages.sh $(if $(filter demo check% bench% fuzz% coverage,$(MAKECMDGOALS)),,--print) build

left-out:
	$(Q)sh tests/left-out.sh "$(NVCC)"

$(B)/flags: FORCE
	@mkdir -p $(B)
	@echo '$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS)' | cmp -s - $@ || echo '$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS)' >$@
FORCE:

# Our .proto files become C beside the objects; included as "schemas/proto/NAME.pb-c.h".
$(B)/%.pb-c.c $(B)/%.pb-c.h: %.proto | packages
	@mkdir -p $(@D)
	$(call say,PROTO,$<)
	$(Q)protoc-c --c_out=$(B) $<
# The style sheet becomes a text.  A line that begins with a tab continues the one before.
$(B)/analyze/format/html/style_css.c: analyze/format/html/style.css
	@mkdir -p $(@D)
	$(call say,TEXT,$<)
	$(Q)awk 'BEGIN { print "#include \"analyze/format/html/html.h\"\nconst char html_style[] =" } \
		/^\/\*/ { next } n++ && !/^\t/ { print "\"\\n\"" } \
		{ sub(/^\t/, ""); gsub(/["\\]/, "\\\\&"); print "\"" $$0 "\"" } END { print "\"\\n\";" }' $< >$@
$(MADE_O): $(B)/%.o: $(B)/%.c $(B)/flags
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $<

$(B)/%.o: %.c $(B)/flags | packages $(PROTO_H)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/pic/%.o: %.c $(B)/flags | packages $(PROTO_H)
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -fPIC -fvisibility=hidden -ftls-model=initial-exec -MMD -MP -c -o $@ $<

$(B)/tacho-convert: $(call objs,$(CONVERT_CLI) $(ANALYZE) $(WRITING) $(OUTPUT) $(READING) $(SCHEMAS)) $(MADE_O)
$(B)/tacho-analyze: $(call objs,$(ANALYZE_CLI) $(ANALYZE) $(OUTPUT) $(READING) $(SCHEMAS)) $(MADE_O)
$(B)/tacho-record: $(call objs,$(RECORD) $(COLLECTOR) $(SCHEMAS))
# A wheel brings the libraries along, in libs/ beside the tools; what they need in turn is there too.
BESIDE := -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/libs'
$(B)/tacho-convert $(B)/tacho-analyze $(B)/tacho-record:
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) $(BESIDE) -o $@ $(filter %.o,$^) $(TOOLS_LIBS)

# The one file that knows MPI, loaded by tacho-analyze when mpirun started it.
MPICC := $(if $(SAN)$(TSAN),,$(shell command -v mpicc 2>/dev/null))
ifneq ($(MPICC),)
all: $(B)/libtacho-mpi.so
$(B)/libtacho-mpi.so: analyze/cli/mpi_plugin.c analyze/cli/mpi_plugin.h $(B)/flags
	$(call say,MPICC,$@)
	$(Q)$(MPICC) $(ALL_CFLAGS) -fPIC -shared -o $@ $<
endif

# libc alone; everything else is looked up at run time.
$(B)/libtacho.so: $(call pics,$(LIBTACHO) $(SCHEMAS)) collector/api/tacho.map
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -Wl,--version-script=collector/api/tacho.map \
		$(if $(SANFLAGS),,-Wl$(comma)-z$(comma)defs) -Wl,-z,nodelete \
		-Wl,-soname,libtacho.so.1 -o $@ $(filter %.o,$^) -ldl -lm
	$(Q)ln -sf libtacho.so $(B)/libtacho.so.1
	$(Q)ln -sf libtacho.so $(B)/libnccl-profiler-tacho.so # for NCCL_PROFILER_PLUGIN=tacho

$(B)/tacho/.made: $(PACKAGE)
	$(Q)rm -rf $(@D) && mkdir -p $(@D)/hook
	$(Q)$(foreach file,$^,cp $(file) $(file:collector/python/%=$(B)/%) &&) touch $@

$(B)/samples/train_mlp: $(B)/samples/train_mlp.o $(B)/libtacho.so
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $< -L$(B) -l:libtacho.so -Wl,-rpath,'$$ORIGIN/..' -lm
$(B)/samples/generate: $(call objs,samples/generate.c $(wildcard samples/generate_*.c) $(SCHEMAS))
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) -lm -lz

ifneq ($(NVCC),)
all: $(B)/samples/train_mlp_cuda
$(B)/samples/train_mlp_cuda: samples/train_mlp.cu $(B)/libtacho.so
	$(call say,NVCC,$<)
	$(Q)$(NVCC) -I. -O2 -o $@ $< -L$(B) -l:libtacho.so -lcublas -Xlinker -rpath,'$$ORIGIN/..'
endif

# Every function `void test_NAME(void)` of tests/unit is a test: the list is made from them.
UNIT := $(wildcard tests/unit/*.c)
UNIT_LIST := $(B)/tests/unit/tests.h
$(UNIT_LIST): $(UNIT) FORCE # a test may have gone
	@mkdir -p $(@D)
	$(Q){ echo '#define TEST_LIST(X) \'; sed -nE 's/^void test_(\w+)\(void\)$$/\tX(\1) \\/p' $(sort $(UNIT)); echo; } >$@.$$$$; \
		cmp -s $@.$$$$ $@ && rm $@.$$$$ || mv $@.$$$$ $@
$(UNIT:%.c=$(B)/%.o): | $(UNIT_LIST)
$(B)/unit: $(call objs,$(UNIT) $(ANALYZE) $(WRITING) $(OUTPUT) $(READING) $(SCHEMAS) $(COLLECTOR)) $(MADE_O)
	$(call say,LD,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(TOOLS_LIBS)

# Running out of memory is tested, which the thread sanitizer takes for the program's end.
check-unit: $(B)/unit
	$(Q)TSAN_OPTIONS="allocator_may_return_null=1:$$TSAN_OPTIONS" $(B)/unit $(T)
check-layers:
	$(Q)sh tests/check-layers.sh
check-headers: $(PROTO_H) $(UNIT_LIST) | packages
	$(Q)CC="$(CC)" B="$(B)" sh tests/check-headers.sh
check-format:
	$(Q)sh tests/check-format.sh
check-cycles: all
	$(Q)python3 tests/check-cycles.py $(B)
check-exports: $(B)/libtacho.so
	$(Q)sh tests/check-exports.sh $(B)
check-cli: all
	$(Q)B=$(B) sh tests/cli/run.sh
$(B)/tests/traced_program: $(call objs,tests/collector/traced_program.c tests/forked_child.c) $(B)/libtacho.so
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) -L$(B) -l:libtacho.so -Wl,-rpath,'$$ORIGIN/..'
$(B)/tests/dump: $(call objs,tests/collector/dump.c $(SCHEMAS))
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) -lm
check-collector: all $(B)/tests/traced_program $(B)/tests/dump
	$(Q)B=$(B) sh tests/collector/run.sh
	$(Q)python3 tests/collector/seeds.py --bin $(B)
include tests/collector/nvtx.mk
include tests/collector/flight.mk
include tests/hostile/hostile.mk
include tests/fake/fake.mk

# The collector beside the stand-in for CUPTI; check-fake proves the stand-in itself.
check-cupti: all fake $(B)/tests/dump
	$(Q)B=$(B) sh tests/gpu/against_standin.sh
	$(Q)python3 tests/collector/cupti.py --bin $(B)

# Our figures against another's (tests/oracle): check-NAME runs check_NAME.py, with MORE_NAME.
# traces and generated: what is known of files; changed: a known change of one changes just that;
# pages: well-formed, escaped, the terminal's figures;
# ranks: who waits for whom, up to 1,024; cpu: findings of jobs without a GPU; findings: the right one wins, the others stay silent;
# bounds: jobs made again without what a finding is about gain no less than it promises;
# partial: one report over what many processes read; compat: HTA's figures by its definitions;
# detail: what --max-size leaves, and its sums; cuts: each cut in each format;
# same-bytes: by any number of threads, at any time;
# random: thousands of ranks, whole, cut and in parts (MORE_random='--first SEED --random 1': one);
# operators: by brute force, and TraceLens; what-if: what a change would bring, beside runs in which it was made;
# tables: what the database says of itself, and its views;
# again: steps whose numbers come again, in each format.
# Each file there is a check.  The longest come first, as they run side by side.
ORACLES_FIRST := random again traces
ORACLES := $(subst _,-,$(patsubst tests/oracle/check_%.py,%,$(wildcard tests/oracle/check_*.py)))
ORACLES := $(ORACLES_FIRST) $(filter-out $(ORACLES_FIRST),$(ORACLES))
MORE_idle := --random 100
MORE_critical := --random 100
# What is many times the same is done fewer times unless FULL=1, as check-long has it: random ranks, files
# to make smaller, and the largest sample traces where each is read in many ways (FEW).
FULL ?=
ifneq ($(FULL),)
MORE_what-if := --random 40
else
MORE_random := --random 800 --long 1 --paths 10
MORE_detail := --files job128_sampled_rank0.json.gz
FEW := traces round-trips same-bytes memory operators client-hta
FEW_TRACES := $(abspath $(B))/few-traces
$(FEW_TRACES):
	$(Q)sh tests/few-traces.sh $@
$(FEW:%=check-%): $(FEW_TRACES)
endif
few = $(if $(filter $(1),$(FEW)),$$([ ! -d $(FEW_TRACES) ] || echo TACHO_TRACES=$(FEW_TRACES)))
$(ORACLES:%=check-%): check-%: all
	$(Q)env $(call few,$*) python3 tests/oracle/check_$(subst -,_,$*).py --bin $(B) $(MORE_$*)

# The Python package and the operators' files; W: words of the tests to run.
check-python: all
	$(Q)python3 tests/python/run.py --bin $(B) $(W)

CHECKS_BEFORE := format size layers cycles headers exports unit cli collector hostile flight nvtx fake cupti
CHECKS_BEHIND := python replay same widths browser faults memory-limits
CHECKS := $(addprefix check-,$(CHECKS_BEFORE) $(ORACLES) $(CHECKS_BEHIND))
$(foreach taken,$(filter $(CHECKS_BEFORE) $(CHECKS_BEHIND),$(ORACLES)), \
	$(error tests/oracle/check_$(taken).py: there is another check-$(taken), call the file otherwise))
.PHONY: $(CHECKS) check-clients check-big check-gpu
check: packages all $(B)/unit $(FEW_TRACES)
	$(Q)sh tests/check.sh $(MAKE) $(CHECKS)

check-clients: all $(FEW_TRACES)
	$(Q)B=$(B) MAKE=$(MAKE) sh tests/clients/run.sh $(CLIENTS)
client-%:
	$(Q)client=$$(echo tests/clients/*/check_$(subst -,_,$*).py) && folder=$${client%/*} && \
		exec env OMP_NUM_THREADS=1 $(call few,client-$*) $(B)/clients-$${folder##*/}-venv/bin/python $$client --bin $(B)

# An XSpace over 2 GiB: four minutes of one core, 6 GB of disk.
check-big: all
	$(Q)B=$(B) ONLY_MAKE=1 sh tests/clients/run.sh xprof
	$(Q)$(B)/clients-xprof-venv/bin/python tests/clients/xprof/big_xspace.py --bin $(B)

# What takes longer than CI has: all repetitions, NVIDIA's own CUPTI of each version beside what we
# know of it, the stand-in for CUPTI and all versions that it plays under the sanitizers, clang's
# sanitizers, which know more of what C does not define, PyTorch's own profiler.
.PHONY: check-long
check-long: all fake
	$(Q)$(MAKE) --no-print-directory check FULL=1
	$(Q)python3 tests/oracle/check_what_if.py --bin $(B) --random 500
	$(Q)python3 tests/fake/libcupti_versions.py --bin $(B)
	$(Q)$(MAKE) --no-print-directory SAN=1 FULL=1 check-fake check-cupti
	$(Q)$(MAKE) --no-print-directory TSAN=1 FULL=1 check-fake check-cupti
	$(Q)$(MAKE) --no-print-directory check SAN=1 CC=clang NVCC= B=build-clang CHECKS="check-unit check-replay"
	$(Q)$(MAKE) --no-print-directory check-clients FULL=1 CLIENTS="perfetto torch torch-profiler torch-distributed"
# On a machine with a GPU only: counts against known launches, and what recording costs.
check-gpu: all $(B)/tests/dump
	$(Q)B=$(B) sh tests/gpu/check_gpu.sh
# All of that in one folder, for a machine that has a GPU and nothing of ours.
.PHONY: gpu-kit
gpu-kit:
	$(Q)B=$(B) CC=$(CC) MAKE=$(MAKE) sh tests/gpu/kit.sh
bench-gpu: all
	$(Q)B=$(B) sh tests/gpu/bench_gpu.sh

demo: all
	$(Q)B=$(B) sh tests/demo.sh

stats:
	$(Q)sh tests/stats.sh
check-size:
	$(Q)sh tests/stats.sh --check

# What is made from the code and kept in the tree.  Read the diff before you commit it.
regenerate: all
	$(Q)$(B)/tacho-analyze --schema >schemas/report.schema.json
	$(Q)$(B)/tacho-analyze --diff --schema >schemas/diff.schema.json
	$(Q)B=$(B) UPDATE=1 sh tests/cli/run.sh
	$(Q)$(B)/tacho-record --print-config >samples/tacho.json
	$(Q)python3 collector/python/keys.py samples/tacho.json >collector/python/tacho/_keys.py
	$(Q)git diff --stat -- schemas samples collector/python tests/cli/expect

include tests/bench/bench.mk
include tests/fuzz/fuzz.mk
include tests/limits/limits.mk
include collector/record/install.mk

clean:
	rm -rf build build-san build-tsan build-cov

-include $(shell find $(B) -name '*.d' -type f -not -path '*-venv/*' 2>/dev/null)
