# SPDX-License-Identifier: Apache-2.0
# make man, make install, make uninstall, make wheel, make deb

LIBDIR ?= $(PREFIX)/lib
MANDIR ?= $(PREFIX)/share/man
DOCDIR ?= $(PREFIX)/share/doc/tacho
BASHDIR ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions
DATADIR := $(PREFIX)/share/tacho

MAN := $(B)/man/tacho-record.1 $(B)/man/tacho-convert.1 $(B)/man/tacho-analyze.1
COMPLETION := $(foreach tool,$(notdir $(TOOLS)),$(B)/completion/bash/$(tool) $(B)/completion/zsh/_$(tool))
DOCS := README.md LICENSE BENCHMARKS.md schemas/LOG.md analyze/DEFINITIONS.md
EXAMPLES := $(filter-out samples/generate% %/__pycache__,$(wildcard samples/*))

.PHONY: man uninstall wheel deb
all: man $(COMPLETION)
man: $(MAN)

# The options come from --help, so they cannot differ.
$(B)/man/tacho-record.1: collector/record/tacho-record.man $(B)/tacho-record
$(B)/man/tacho-convert.1: convert/cli/tacho-convert.man $(B)/tacho-convert
$(B)/man/tacho-analyze.1: analyze/cli/tacho-analyze.man $(B)/tacho-analyze
$(MAN): collector/record/man.awk VERSION
	@mkdir -p $(@D)
	$(call say,MAN,$@)
	$(Q)$(filter $(B)/tacho-%,$^) --help >$@.help
	$(Q)awk -v version="$(VERSION)" -v help=$@.help -f collector/record/man.awk $(filter %.man,$^) >$@
	$(Q)rm $@.help

# Completion comes from --help too.  VALUES: whose values are the rows of which of its tables.
VALUES := type=Formats for -t;report=reports;format=formats
$(B)/completion/bash/%: $(B)/% collector/record/completion.awk
	@mkdir -p $(@D)
	$(Q)$< --help | awk -v shell=bash -v tool=$* -v tables="$(VALUES)" -f collector/record/completion.awk >$@
$(B)/completion/zsh/_%: $(B)/% collector/record/completion.awk
	@mkdir -p $(@D)
	$(Q)$< --help | awk -v shell=zsh -v tool=$* -v tables="$(VALUES)" -f collector/record/completion.awk >$@

# Quotes in flags are pkg-config's, for blanks.
$(B)/tacho.pc: VERSION FORCE
	@printf '%s\n' $(call quoted,prefix=$(PREFIX)) $(call quoted,libdir=$(LIBDIR)) 'includedir=$${prefix}/include' '' \
		'Name: tacho' 'Description: marks of a training program, and their recording' \
		'Version: $(VERSION)' 'Libs: "-L$${libdir}" -ltacho' 'Cflags: "-I$${includedir}"' >$@

# What is installed where: each row is a folder, a mode and files.  $(1): what is done with a row.
# Quotes are for blanks in DESTDIR, PREFIX and what is made of them.
INSTALLED = \
	$(call $(1),$(PREFIX)/bin,755,$(TOOLS)) && \
	$(call $(1),$(LIBDIR),755,$(B)/libtacho.so.1) && \
	$(if $(MPICC),$(call $(1),$(LIBDIR)/tacho,755,$(B)/libtacho-mpi.so) &&) \
	$(call $(1),$(LIBDIR)/pkgconfig,644,$(B)/tacho.pc) && \
	$(call $(1),$(PREFIX)/include,644,collector/api/tacho.h) && \
	$(call $(1),$(DATADIR)/tacho/hook,644,$(filter collector/python/tacho/hook/%,$(PACKAGE))) && \
	$(call $(1),$(DATADIR)/tacho,644,$(filter-out collector/python/tacho/hook/%,$(PACKAGE))) && \
	$(call $(1),$(MANDIR)/man1,644,$(MAN)) && \
	$(call $(1),$(BASHDIR),644,$(filter $(B)/completion/bash/%,$(COMPLETION))) && \
	$(call $(1),$(ZSHDIR),644,$(filter $(B)/completion/zsh/%,$(COMPLETION))) && \
	$(call $(1),$(DOCDIR)/samples,644,$(EXAMPLES)) && \
	$(call $(1),$(DOCDIR),644,$(DOCS))
quoted = '$(subst ','\'',$(1))'
to = $(call quoted,$(DESTDIR)$(1))
put = install -d $(call to,$(1)) && install -m $(2) $(3) $(call to,$(1))
# Other people's files stay, and so does a folder that is then not empty.
take = for file in $(notdir $(3)); do rm -f $(call to,$(1))/"$$file"; done

install: all $(B)/tacho.pc
	$(call INSTALLED,put)
	ln -sf libtacho.so.1 $(call to,$(LIBDIR)/libtacho.so)
	$(if $(DESTDIR),,-ldconfig 2>/dev/null)

uninstall:
	[ "$$(readlink $(call to,$(LIBDIR)/libtacho.so))" != libtacho.so.1 ] || rm $(call to,$(LIBDIR)/libtacho.so)
	$(call INSTALLED,take)
	-rmdir $(call to,$(DATADIR)/tacho/hook) $(call to,$(DATADIR)/tacho) \
		$(call to,$(DATADIR)) $(call to,$(LIBDIR)/tacho) $(call to,$(DOCDIR)/samples) $(call to,$(DOCDIR)) 2>/dev/null

# The Python package with the library and all tools inside; pip install $(B)/wheel/*.whl
# It is for this machine's C library or a newer one; GLIBC=2.28: for that one (x86_64 and aarch64).
GLIBC ?=
WHEEL_B := $(if $(GLIBC),$(B)/glibc-$(GLIBC)/build,$(B))
wheel: $(if $(GLIBC),portable,$(B)/libtacho.so $(TOOLS))
	@rm -rf $(B)/wheel && mkdir -p $(B)/wheel
	$(Q)python3 collector/python/wheel.py --version $(VERSION) --bin $(WHEEL_B) \
		$(if $(GLIBC),--glibc $(GLIBC)) $(B)/wheel
.PHONY: portable
portable:
	$(Q)sh tests/packages.sh --print build portable
	$(Q)sh collector/python/portable.sh $(GLIBC) $(B)/glibc-$(GLIBC)

# A package for the release of Debian or Ubuntu on which it is made.
deb:
	$(Q)sh tests/packages.sh --print build deb
	@mkdir -p $(B)/deb
	$(Q)sh collector/record/deb.sh "$(MAKE)" $(B)/deb $(VERSION)
