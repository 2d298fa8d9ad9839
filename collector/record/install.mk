# SPDX-License-Identifier: Apache-2.0
# make man, make install, make uninstall, make wheel

LIBDIR ?= $(PREFIX)/lib
MANDIR ?= $(PREFIX)/share/man
DOCDIR ?= $(PREFIX)/share/doc/tacho
DATADIR := $(PREFIX)/share/tacho

MAN := $(B)/man/tacho-record.1 $(B)/man/tacho-convert.1 $(B)/man/tacho-analyze.1
DOCS := README.md LICENSE BENCHMARKS.md schemas/LOG.md analyze/DEFINITIONS.md
EXAMPLES := $(filter-out samples/generate%,$(wildcard samples/*))

.PHONY: man uninstall wheel
all: man
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

$(B)/tacho.pc: VERSION FORCE
	@printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$(LIBDIR)' 'includedir=$${prefix}/include' '' \
		'Name: tacho' 'Description: marks of a training program, and their recording' \
		'Version: $(VERSION)' 'Libs: -L$${libdir} -ltacho' 'Cflags: -I$${includedir}' >$@

install: all $(B)/tacho.pc
	install -d $(addprefix $(DESTDIR),$(PREFIX)/bin $(LIBDIR)/pkgconfig $(PREFIX)/include \
		$(DATADIR) $(MANDIR)/man1 $(DOCDIR)/samples)
	install -m 755 $(TOOLS) $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(B)/libtacho.so $(DESTDIR)$(LIBDIR)/libtacho.so.1
	ln -sf libtacho.so.1 $(DESTDIR)$(LIBDIR)/libtacho.so
	$(if $(MPICC),install -D -m 755 $(B)/libtacho-mpi.so $(DESTDIR)$(LIBDIR)/tacho/libtacho-mpi.so)
	install -m 644 collector/api/tacho.h $(DESTDIR)$(PREFIX)/include
	install -d $(DESTDIR)$(DATADIR)/tacho/hook
	$(foreach file,$(PACKAGE),install -m 644 $(file) $(DESTDIR)$(file:collector/python/%=$(DATADIR)/%) &&) true
	install -m 644 $(B)/tacho.pc $(DESTDIR)$(LIBDIR)/pkgconfig
	install -m 644 $(MAN) $(DESTDIR)$(MANDIR)/man1
	install -m 644 $(DOCS) $(DESTDIR)$(DOCDIR)
	install -m 644 $(EXAMPLES) $(DESTDIR)$(DOCDIR)/samples
	$(if $(DESTDIR),,-ldconfig 2>/dev/null)

uninstall:
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/bin/,$(notdir $(TOOLS))) \
		$(addprefix $(DESTDIR)$(LIBDIR)/,libtacho.so libtacho.so.1 tacho/libtacho-mpi.so pkgconfig/tacho.pc) \
		$(DESTDIR)$(PREFIX)/include/tacho.h $(PACKAGE:collector/python/%=$(DESTDIR)$(DATADIR)/%) \
		$(addprefix $(DESTDIR)$(MANDIR)/man1/,$(notdir $(MAN))) \
		$(addprefix $(DESTDIR)$(DOCDIR)/,$(notdir $(DOCS))) \
		$(addprefix $(DESTDIR)$(DOCDIR)/,$(EXAMPLES))
	-rmdir $(addprefix $(DESTDIR),$(DATADIR)/tacho/hook $(DATADIR)/tacho $(DATADIR) $(DOCDIR)/samples $(DOCDIR)) 2>/dev/null

# The Python package with the library inside; pip install $(B)/wheel/*.whl
wheel: $(B)/libtacho.so $(B)/tacho-record
	@rm -rf $(B)/wheel && mkdir -p $(B)/wheel
	$(Q)python3 collector/python/wheel.py --version $(VERSION) --bin $(B) $(B)/wheel
