# SPDX-License-Identifier: Apache-2.0
#
# The flight recorder in real processes.  Included by the Makefile.

.PHONY: check-flight
check-flight: all $(B)/tests/flyer $(B)/tests/dump
	$(Q)B=$(B) sh tests/collector/flight_run.sh $(T)
$(B)/tests/flyer: $(call objs,tests/collector/flyer.c) $(B)/libtacho.so
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) -L$(B) -l:libtacho.so -Wl,-rpath,'$$ORIGIN/..'
