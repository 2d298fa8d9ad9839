# SPDX-License-Identifier: Apache-2.0
#
# NVTX: programs that speak it, and what libtacho makes of that.  Included by the Makefile.
# Without NVTX's headers (a CUDA toolkit, or the wheel nvidia-nvtx) it says so and checks nothing.

NVTX := $(B)/nvtx
NVTX_CC = $(CC) $(ALL_CFLAGS) $$(cat $(NVTX)/include)

.PHONY: check-nvtx
bench: $(NVTX)/done
check-nvtx: all $(NVTX)/done $(B)/tests/dump
	$(Q)B=$(B) sh tests/collector/nvtx_run.sh

$(NVTX)/include: tests/fake/headers.sh
	@mkdir -p $(@D)
	@sh tests/fake/headers.sh $(B)/fake/headers >$@ 2>$(NVTX)/none
$(NVTX)/abi: tests/collector/nvtx_abi.c collector/probe/nvtx/abi.h $(NVTX)/include
	$(Q)$(NVTX_CC) $(ALL_LDFLAGS) -o $@ $< -ldl
$(NVTX)/nvtx_program: tests/collector/nvtx_program.c tests/fake/fake_guard.h $(NVTX)/include
	$(Q)$(NVTX_CC) $(ALL_LDFLAGS) -o $@ $< -ldl
$(NVTX)/lib%.so: tests/fake/fake_nvtx_%.c tests/fake/fake_nvtx.h $(NVTX)/include
	$(Q)$(NVTX_CC) $(ALL_LDFLAGS) -fPIC -shared -o $@ $<
$(NVTX)/program: tests/fake/fake_nvtx.c $(NVTX)/liba.so $(NVTX)/libb.so
	$(Q)$(NVTX_CC) $(ALL_LDFLAGS) -o $@ $^ -Wl,-rpath,'$$ORIGIN' -ldl
# stands where the sanitizers stand, so never with them
$(NVTX)/libguard.so: tests/fake/fake_guard.c tests/fake/fake_guard.h
	@mkdir -p $(@D)
	$(Q)$(CC) $(filter-out -fsanitize% -fno-sanitize%,$(ALL_CFLAGS)) -fno-builtin -fPIC -shared \
		-o $@ $< -ldl
$(NVTX)/bench: tests/bench/bench_nvtx.c $(NVTX)/include
	$(Q)$(NVTX_CC) $(ALL_LDFLAGS) -o $@ $< -ldl

$(NVTX)/done: $(NVTX)/include FORCE
	@if [ -s $(NVTX)/include ]; then $(MAKE) --no-print-directory B=$(B) $(NVTX)/abi \
		$(NVTX)/nvtx_program $(NVTX)/program $(NVTX)/libguard.so $(NVTX)/bench; fi
	@touch $@
