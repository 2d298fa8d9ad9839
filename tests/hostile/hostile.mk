# SPDX-License-Identifier: Apache-2.0
#
# Programs that recorders stumble over, each alone and recorded, and kills at random times.  A third of the
# rows and 20 kills unless FULL=1; W: words of the rows to run, without kills.  Included by the Makefile.

.PHONY: check-hostile
check-hostile: all fake $(B)/tests/traced_program $(B)/tests/dump
	$(Q)python3 tests/hostile/run.py --bin $(B) $(if $(FULL)$(W),,--third) $(W)
	$(Q)$(if $(W),true,python3 tests/hostile/kills.py --bin $(B) --count $(if $(FULL),200,20))
