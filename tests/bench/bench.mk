# SPDX-License-Identifier: Apache-2.0
# make bench: what is measured, each a program of its own; run.sh runs them all, table.py the tools.
BENCHES := $(addprefix $(B)/bench_,hot cupti decode import chrome perfetto limits)
bench: all $(BENCHES)
	$(Q)sh tests/packages.sh bench && { $(MAKE) --no-print-directory $(B)/bench_simdjson || \
		echo "simdjson could not be built: left out" >&2; }
	$(Q)B=$(B) sh tests/bench/run.sh

# Parts of the tools, driven by themselves.
$(addprefix $(B)/bench_,decode import chrome perfetto): $(B)/bench_%: $(B)/tests/bench/bench_%.o \
		$(call objs,$(WRITING) $(OUTPUT) $(READING) $(SCHEMAS)) $(MADE_O)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(TOOLS_LIBS)
$(B)/bench_cupti: $(call objs,tests/bench/bench_cupti.c $(COLLECTOR) $(SCHEMAS))
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) -ldl -lm
$(B)/bench_limits: $(call objs,tests/bench/bench_limits.c)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ -lcjson -lz
$(B)/bench_simdjson: tests/bench/bench_simdjson.cc
	$(Q)$(CXX) -O2 -std=c++17 -Wall -Wextra $(CFLAGS) -o $@ $< $(LDFLAGS) -lsimdjson
$(B)/bench_hot: $(call objs,tests/bench/bench_hot.c) $(B)/libtacho.so
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) -L$(B) -l:libtacho.so -Wl,-rpath,'$$ORIGIN' -ldl
