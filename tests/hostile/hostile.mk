# SPDX-License-Identifier: Apache-2.0
#
# Programs that recorders stumble over, each alone and recorded.  A third of the rows unless FULL=1; W: words
# of the rows to run.  Included by the Makefile.

.PHONY: check-hostile
check-hostile: all
	$(Q)python3 tests/hostile/run.py --bin $(B) $(if $(FULL)$(W),,--third) $(W)
