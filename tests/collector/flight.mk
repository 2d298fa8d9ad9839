# SPDX-License-Identifier: Apache-2.0
#
# The flight recorder in real processes.  Included by the Makefile.

.PHONY: check-flight
check-flight: all $(B)/tests/flight_program $(B)/tests/dump
	$(Q)B=$(B) sh tests/collector/flight_run.sh $(T)
$(B)/tests/flight_program: $(call objs,tests/collector/flight_program.c tests/forked_child.c) $(B)/libtacho.so
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) -L$(B) -l:libtacho.so -Wl,-rpath,'$$ORIGIN/..'

# LTTng-UST beside our hot paths; never with sanitizers, and left out where it cannot be had.
bench: $(B)/bench_lttng
.PHONY: bench-packages
bench-packages:
	$(Q)sh tests/packages.sh bench
$(B)/bench_lttng: tests/bench/bench_lttng.c tests/bench/lttng_events.h | bench-packages
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 -D_GNU_SOURCE -I. -g -O2 -o $@ $< -llttng-ust -ldl
