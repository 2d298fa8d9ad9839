# SPDX-License-Identifier: Apache-2.0
#
# The stand-ins for CUPTI, the driver and NVML, and the programs that use them, in $(B)/fake.
#	make -f tests/fake/fake.mk B=build fake          by itself, or included by the Makefile
# Without CUPTI's headers only $(B)/fake/none is made, which says why.

B ?= build
CC ?= gcc
FAKE := $(B)/fake
ALL_CFLAGS ?= -std=c11 -D_GNU_SOURCE -I. -g -O2 -Wall -Wextra -Wshadow -Wstrict-prototypes \
	-Wmissing-prototypes -Wpointer-arith -Wno-unused-parameter -pthread $(SANFLAGS)
ALL_LDFLAGS ?= -pthread $(SANFLAGS)

FAKE_PROFILES := 12:1204 13:1300 13.5:1305 14:1400
FAKE_CUPTI := fake_cupti fake_cupti_profile fake_cupti_control fake_cupti_records \
	fake_cupti_calls fake_cupti_buffers fake_cupti_hand
FAKE_HEADERS := $(wildcard tests/fake/*.h)
FAKE_CC = $(CC) $(ALL_CFLAGS) $$(cat $(FAKE)/include) -I$(FAKE)

.PHONY: fake check-fake
fake: $(FAKE)/done
check-fake: fake
	@B=$(B) CC="$(CC)" sh tests/fake/run.sh

$(FAKE)/include: tests/fake/headers.sh
	@mkdir -p $(FAKE)
	@sh tests/fake/headers.sh $(FAKE)/headers >$@ 2>$(FAKE)/none
	@if [ -s $@ ]; then rm -f $(FAKE)/none; else \
		echo "  no stand-in for CUPTI: $$(cat $(FAKE)/none)"; fi

# callback and result names, by their numbers
$(FAKE)/fake_names.inc: tests/fake/names.sh $(FAKE)/include
	@sh tests/fake/names.sh $(FAKE)/include >$@

# $(1) folder, $(2) number of the profile
define fake_profile
$(FAKE)/$(1)/%.o: tests/fake/%.c $(FAKE_HEADERS) $(FAKE)/include $(FAKE)/fake_names.inc
	@mkdir -p $$(@D)
	@$$(FAKE_CC) -DFAKE_PROFILE=$(2) -fPIC -fvisibility=hidden -c -o $$@ $$<
$(FAKE)/$(1)/made: $$(patsubst %,$(FAKE)/$(1)/%.o,$$(FAKE_CUPTI))
	@name=libcupti.so.$$(firstword $$(subst ., ,$(1))); \
	echo "$$$$name { global: cupti*; InitializeInjection*; fake_cupti_*; local: *; };" \
		>$$(@D)/map; \
	$$(CC) $$(ALL_LDFLAGS) -shared -Wl,-soname,$$$$name -Wl,--version-script=$$(@D)/map \
		-o $$(@D)/$$$$name $$^ -ldl && ln -sf $$$$name $$(@D)/libcupti.so
	@touch $$@
endef
$(foreach p,$(FAKE_PROFILES),$(eval $(call fake_profile,$(firstword $(subst :, ,$(p))),$(lastword $(subst :, ,$(p))))))

# these need no header of CUDA
FAKE_PLAIN = $(CC) $(ALL_CFLAGS) -fPIC $(ALL_LDFLAGS)
$(FAKE)/driver/libcuda.so.1: tests/fake/fake_cuda.c tests/fake/fake_cuda_api.c $(FAKE_HEADERS)
	@mkdir -p $(@D)
	@$(FAKE_PLAIN) -shared -Wl,-soname,libcuda.so.1 -o $@ $(filter %.c,$^) -ldl
$(FAKE)/driver/libcudart.so.%: tests/fake/fake_cudart.c $(FAKE)/driver/libcuda.so.1
	@$(FAKE_PLAIN) -shared -Wl,-soname,$(@F) -o $@ $< $(FAKE)/driver/libcuda.so.1
$(FAKE)/nvml/libnvidia-ml.so.1: tests/fake/fake_nvml.c
	@mkdir -p $(@D)
	@$(FAKE_PLAIN) -shared -Wl,-soname,libnvidia-ml.so.1 -o $@ $<
# stands where the sanitizers stand, so never with them
$(FAKE)/libfake_guard.so: tests/fake/fake_guard.c $(FAKE_HEADERS)
	@mkdir -p $(@D)
	@$(CC) $(filter-out -fsanitize%,$(ALL_CFLAGS)) -fno-builtin -fPIC -shared -o $@ $< -ldl
FAKE_TRAIN := tests/fake/fake_train.c tests/fake/fake_train_known.c tests/fake/fake_train_tool.c tests/forked_child.c
$(FAKE)/fake_train: $(FAKE_TRAIN) $(FAKE_HEADERS) $(FAKE)/driver/libcudart.so.13 \
		$(FAKE)/driver/libcudart.so.12
	@$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(FAKE_TRAIN) $(FAKE)/driver/libcudart.so.13 \
		$(FAKE)/driver/libcuda.so.1 -ldl
$(FAKE)/fake_train_12: $(FAKE_TRAIN) $(FAKE_HEADERS) $(FAKE)/driver/libcudart.so.12
	@$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $(FAKE_TRAIN) $(FAKE)/driver/libcudart.so.12 \
		$(FAKE)/driver/libcuda.so.1 -ldl
$(FAKE)/compare_libcupti: tests/fake/compare_libcupti.c
	@mkdir -p $(@D)
	@$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $< -ldl

$(FAKE)/fake_nccl: tests/fake/fake_nccl.c $(FAKE_HEADERS) $(FAKE)/include $(FAKE)/driver/libcudart.so.13
	@$(FAKE_CC) $(ALL_LDFLAGS) -o $@ $< $(FAKE)/driver/libcudart.so.13 $(FAKE)/driver/libcuda.so.1 -ldl
$(FAKE)/libfake_nvtx_%.so: tests/fake/fake_nvtx_%.c $(FAKE_HEADERS) $(FAKE)/include
	@$(FAKE_CC) $(ALL_LDFLAGS) -fPIC -shared -o $@ $<
$(FAKE)/fake_nvtx: tests/fake/fake_nvtx.c $(FAKE)/libfake_nvtx_a.so $(FAKE)/libfake_nvtx_b.so
	@$(FAKE_CC) $(ALL_LDFLAGS) -o $@ $^ -Wl,-rpath,'$$ORIGIN' -ldl
$(FAKE)/check_standin: $(wildcard tests/fake/check_standin*.c) $(FAKE_HEADERS) $(FAKE)/include \
		$(FAKE)/driver/libcudart.so.13
	@$(FAKE_CC) $(ALL_LDFLAGS) -o $@ $(filter %.c,$^) $(FAKE)/driver/libcudart.so.13 \
		$(FAKE)/driver/libcuda.so.1 -ldl
$(FAKE)/libfake_mini.so: tests/fake/fake_mini.c $(FAKE_HEADERS) $(FAKE)/include
	@$(FAKE_CC) $(ALL_LDFLAGS) -fPIC -shared -Wl,-z,nodelete -o $@ $< -ldl

FAKE_ALWAYS := $(FAKE)/driver/libcuda.so.1 $(FAKE)/driver/libcudart.so.13 \
	$(FAKE)/driver/libcudart.so.12 $(FAKE)/nvml/libnvidia-ml.so.1 $(FAKE)/libfake_guard.so \
	$(FAKE)/fake_train $(FAKE)/fake_train_12 $(FAKE)/compare_libcupti
FAKE_NEEDS_HEADERS := $(foreach p,$(FAKE_PROFILES),$(FAKE)/$(firstword $(subst :, ,$(p)))/made) \
	$(FAKE)/fake_nvtx $(FAKE)/libfake_nvtx_named.so $(FAKE)/libfake_nvtx_handler.so \
	$(FAKE)/libfake_mini.so $(FAKE)/check_standin $(FAKE)/fake_nccl

$(FAKE)/done: $(FAKE_ALWAYS) $(FAKE)/include FAKE_FORCE
	@echo '$(ALL_LDFLAGS)' >$(FAKE)/ldflags
	@if [ -s $(FAKE)/include ]; then \
		$(MAKE) --no-print-directory -f $(firstword $(MAKEFILE_LIST)) B=$(B) \
			$(FAKE_NEEDS_HEADERS); fi
	@touch $@
FAKE_FORCE:
