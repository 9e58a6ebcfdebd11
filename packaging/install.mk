# `make install`, `make uninstall`, packages. DESTDIR is put before PREFIX.
ZSHDIR = share/zsh/site-functions
PACKAGES = build/package
MAN_PAGES := $(sort $(wildcard docs/man/*.1.md))
DOC_FILES := README.md CHANGELOG.md SECURITY.md LICENSE docs/accuracy.md $(sort $(wildcard docs/guides/*.md docs/formats/*.md))

# FILE:DESTINATION below PREFIX.
INSTALLED = $(O)/install/assay:bin/assay $(O)/install/assay.debug:bin/.debug/assay.debug \
	$(foreach m,$(MAN_PAGES:docs/man/%.md=%),$(O)/install/$(m):share/man/man1/$(m)) \
	packaging/completion/assay.bash:share/bash-completion/completions/assay \
	packaging/completion/_assay:$(ZSHDIR)/_assay \
	packaging/completion/assay.fish:share/fish/vendor_completions.d/assay.fish \
	contrib/assay-seccomp.json:share/assay/assay-seccomp.json \
	$(foreach d,$(DOC_FILES),$(d):share/doc/assay/$(d))

# The debug file is found by gdb, perf and assay in .debug beside the program.
$(O)/install/assay: $(BIN)
	@mkdir -p $(@D)
	$(Q)$(if $(STATIC),cp $< $<.debug $(@D)/,$(call split_debug,$<,$@))
$(O)/install/assay.debug: $(O)/install/assay
$(O)/install/%.1: docs/man/%.1.md packaging/man.awk $(O)/gen/version.h
	@mkdir -p $(@D)
	$(Q)awk $$(sed -n 's/#define ASSAY_VERSION "\(.*\)"/-v version=\1/p; s/#define ASSAY_DATE "\(.*\)"/-v date=\1/p' \
		$(O)/gen/version.h) -f packaging/man.awk $< > $@

.PHONY: install uninstall dist deb
install: $(foreach i,$(INSTALLED),$(firstword $(subst :, ,$(i))))
	$(Q)for i in $(INSTALLED); do \
		mode=644; case $$i in *:bin/assay) mode=755 ;; esac; \
		install -Dm$$mode "$${i%%:*}" '$(DESTDIR)$(PREFIX)'/"$${i#*:}" || exit; done
	$(Q)echo 'installed: $(DESTDIR)$(PREFIX)/bin/assay'

# The folders that only assay uses go, too.
uninstall:
	$(Q)for i in $(INSTALLED); do rm -f '$(DESTDIR)$(PREFIX)'/"$${i#*:}"; done
	$(Q)cd '$(DESTDIR)$(PREFIX)' && rmdir share/doc/assay/docs/* share/doc/assay/docs share/doc/assay share/assay \
		bin/.debug 2> /dev/null || :

# The sources of the last commit, with their version in the file VERSION.
dist:
	$(Q)set -- $$(packaging/version.sh | sed 's/-modified//') && mkdir -p $(PACKAGES) && \
		git archive --prefix="assay-$$1/" --add-virtual-file="assay-$$1/VERSION:$$*" \
		-o "$(PACKAGES)/assay-$$1.tar.gz" HEAD && echo "$(PACKAGES)/assay-$$1.tar.gz"

deb: $(BIN)
	$(Q)rm -rf $(PACKAGES)/root
	$(Q)$(MAKE) --no-print-directory install DESTDIR=$(abspath $(PACKAGES))/root PREFIX=/usr ZSHDIR=share/zsh/vendor-completions > /dev/null
	$(Q)packaging/deb.sh $(PACKAGES)
