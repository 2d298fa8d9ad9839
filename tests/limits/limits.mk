# SPDX-License-Identifier: Apache-2.0
#
# What happens at the limits: memory, disks, signals, pipes.  Included by the Makefile.
#
#	make check-limits            little memory and large inputs, faults at every call that writes,
#	                             cost that grows with the input and no faster
#	make check-same              the same bytes whenever, wherever and however often it is run
#	make check-widths            pages in terminals of five widths; TRACES="FILE..." of these
#	make check-browser           pages in a browser of three widths, by Chromium if it is there
#	make check-new-user          packages tried in a bare Debian (root, debootstrap, the network)
#	make check-static            gcc -fanalyzer, clang-tidy, cppcheck: four minutes of one core
#	make coverage                lines that the unit tests and the command lines reach

COV_B := $(if $(filter-out file,$(origin B)),$(B),build-cov)
.PHONY: check-limits check-faults check-memory-limits check-linear check-same check-widths check-browser check-static check-new-user coverage
$(B)/tests/libfault.so: tests/limits/fault.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -fsanitize% -fno-sanitize%,$(ALL_CFLAGS)) -fPIC -shared -o $@ $< -ldl
check-limits: check-faults check-memory-limits check-linear
check-faults: all $(B)/tests/libfault.so $(B)/tests/busy
	$(Q)python3 tests/limits/faults.py --bin $(B) $(if $(FULL),,--few) $(if $(ONLY),--only "$(ONLY)")
$(B)/tests/busy: $(call objs,tests/limits/busy.c) $(B)/libtacho.so
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) -L$(B) -l:libtacho.so -Wl,-rpath,'$$ORIGIN/..'
check-memory-limits: all $(B)/tests/busy
	$(Q)python3 tests/limits/memory.py --bin $(B) --times $(if $(FULL),20,6) $(if $(ONLY),--only "$(ONLY)")
check-linear: all
	$(Q)sh tests/packages.sh linear && python3 tests/limits/linear.py --bin $(B) $(if $(ONLY),--only "$(ONLY)")
check-same: all
	$(Q)python3 tests/limits/same.py --bin $(B)
check-widths: all
	$(Q)python3 tests/limits/widths.py --bin $(B) $(TRACES)
check-browser: all
	$(Q)python3 tests/limits/browser.py --bin $(B) $(TRACES)
check-new-user: wheel deb
	$(Q)sh tests/packages.sh new-user && B=$(B) sh tests/limits/new_user.sh wheel deb install container
check-static:
	$(Q)sh tests/packages.sh static && B=$(B) sh tests/limits/static.sh
# Tests that fail do not keep the figures back.  COV_RUNS: what runs.
COV_RUNS ?= check-unit check-cli
coverage:
	$(Q)$(MAKE) --no-print-directory COV=1 all
	$(Q)find $(COV_B) -name '*.gcda' -delete
	-$(Q)$(MAKE) --no-print-directory -k COV=1 $(COV_RUNS) >$(COV_B)/runs.log 2>&1
	$(Q)grep -E '(^|: )[0-9]+ passed' $(COV_B)/runs.log || true
	$(Q)python3 tests/limits/coverage.py $(COV_B)
