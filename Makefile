# assay: GNU make, out of tree. `make help` lists the targets.
#
# Variables: V=1 (show commands), CC=clang, SAN=address,undefined | thread, DEV=1 (-Werror),
# STATIC=1, BPF=0 (no BPF programs), ISAL=0 (zlib inflates), CAPSTONE=0 (no assembly), O=dir, PREFIX=/usr/local, DESTDIR=.

MAKEFLAGS += --no-builtin-rules --no-builtin-variables
.DELETE_ON_ERROR:
.SUFFIXES:
SHELL := /bin/sh

CC      = gcc
AR      = ar
PREFIX  = /usr/local
SAN     =
STATIC  =
BPF     = 1
# Debian has no static library of ISA-L.
ISAL    = $(if $(STATIC),0,1)
CAPSTONE = 1
BPF_CC  = clang
DEV     = 1
V       =
Q       = $(if $(V),,@)
say     = $(if $(V),,@printf '  %-8s %s\n' $(1) $(2);)

comma   := ,
empty   :=
space   := $(empty) $(empty)
variant := $(if $(SAN),san-$(subst $(comma),-,$(SAN)),release)$(if $(filter clang%,$(notdir $(CC))),-$(notdir $(CC)))$(if $(STATIC),-static)$(if $(filter 0,$(BPF)),-nobpf)$(if $(STATIC),,$(if $(filter 0,$(ISAL)),-noisal))$(if $(filter 0,$(CAPSTONE)),-nocapstone)
O       = build/$(variant)

WARN = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wwrite-strings \
       -Wpointer-arith -Wformat=2 -Wimplicit-fallthrough -Wundef -Wno-missing-field-initializers $(if $(DEV),-Werror)
OPT     = -O2 -g
CFLAGS  =
LDFLAGS =
ALL_CFLAGS  = -std=gnu11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 $(OPT) -fno-omit-frame-pointer \
              -fno-common -pthread $(WARN) $(ALL_CPPFLAGS) -Isrc -Iwire -I$(O)/gen \
              $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all) $(CFLAGS)
ALL_LDFLAGS = -pthread $(if $(SAN),-fsanitize=$(SAN)) $(if $(STATIC),-static) $(LDFLAGS)
# docs/internals.md has the purpose of each library. Only tests use TEST_LIBS.
ALL_CPPFLAGS = $(if $(filter 0,$(BPF)),-DASSAY_NO_BPF) $(if $(filter 0,$(ISAL)),-DASSAY_NO_ISAL) $(if $(filter 0,$(CAPSTONE)),-DASSAY_NO_CAPSTONE)
LIBS        = $(if $(filter 0,$(BPF)),,-lbpf -lelf) -lncursesw -ltinfo -lpcre2-8 -liberty -llzma -lzstd $(if $(filter 0,$(ISAL)),,-lisal) $(if $(filter 0,$(CAPSTONE)),,-lcapstone) -lz -lm
TEST_LIBS   = -ljansson

# Sources that need our BPF programs; BPF=0 replaces them by engine_none.c.
BPF_SRCS := $(addprefix src/capture/,bpf/btfhas.c bpf/coretypes.c bpf/cputime.c bpf/deferclose.c bpf/engine.c \
            bpf/syscallprobe.c events/counts.c heap/growth.c heap/probes.c io/faults.c io/io.c \
            wait/spans.c wait/waitsource.c)
SRCS := $(filter-out $(if $(filter 0,$(BPF)),$(BPF_SRCS),src/capture/bpf/engine_none.c),$(sort $(wildcard src/*/*.c src/*/*/*.c)))
OBJS := $(SRCS:%.c=$(O)/%.o)
ASSETS := $(sort $(wildcard src/render/assets/*.*))
# The script of the HTML page: one function, in this order.
PAGE_JS_SRCS := $(addprefix src/render/assets/,unpack.js names.js) $(addprefix src/render/assets/page/,text.js data.js weigh.js \
                engine.js state.js timeaxis.js flameview.js tableviews.js details.js lines.js code.js main.js)
PAGE_CSS := $(addprefix src/render/assets/page/,page.css diff.css)
# That of the page of a comparison: the script of a flame graph, then that of the tables.
FLAME_JS_SRCS := $(addprefix src/render/assets/,unpack.js names.js flame.js)
DIFF_JS_SRC := src/render/assets/page/diff.js
LIB  := $(O)/libassay.a
BIN  := $(O)/assay

# ./assay is the program for this machine, without sanitizers; other builds are used where they are.
.PHONY: all
all: $(BIN)
	$(Q)$(if $(STATIC)$(SAN),echo $(BIN),ln -sfn $(BIN) assay)

# $(call split_debug,FROM,TO): the stripped program, its debug file TO.debug apart.
split_debug = objcopy --only-keep-debug --compress-debug-sections $(1) $(2).debug && chmod 644 $(2).debug && \
	objcopy --strip-all --add-gnu-debuglink=$(2).debug $(1) $(2)

# A static program is stripped at once: it is to be copied to another machine.
$(BIN): $(O)/src/main.o $(LIB) $(O)/flags
	$(call say,LINK,$@)$(CC) $(ALL_LDFLAGS) -o $@ $(O)/src/main.o $(LIB) $(LIBS)$(if $(STATIC), && $(call split_debug,$@,$@))

$(LIB): $(OBJS)
	$(call say,AR,$@)rm -f $@ && $(AR) rcs $@ $(OBJS)

$(O)/%.o: %.c $(O)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# ---- BPF programs -------------------------------------------------------------------------
# One object; capture/ includes its skeleton, a generated header. Debug sections except BTF are
# stripped: they are ten times as large as the programs.
BPF_ARCH = $(if $(filter aarch64 arm64,$(shell uname -m)),arm64,x86)
BPF_MULTIARCH = $(firstword $(wildcard /usr/include/$(shell uname -m)-linux-gnu))
BPF_CFLAGS = -target bpf -mcpu=v3 -D__TARGET_ARCH_$(BPF_ARCH) -D__$(if $(filter x86,$(BPF_ARCH)),x86_64,aarch64)__ \
             -O2 -g -std=gnu11 -Wall -Wextra -Wno-unused-parameter $(if $(DEV),-Werror) \
             $(if $(BPF_MULTIARCH),-idirafter $(BPF_MULTIARCH)) -Iwire -Ibpf
SKEL = $(O)/gen/assay.skel.h

$(O)/bpf/assay.bpf.o: bpf/assay.bpf.c $(O)/flags
	@mkdir -p $(@D)
	$(call say,BPF,$<)$(BPF_CC) $(BPF_CFLAGS) -MMD -MP -c -o $@ $< && llvm-strip -g $@
$(SKEL): $(O)/bpf/assay.bpf.o
	$(call say,SKEL,$@)mkdir -p $(@D) && bpftool gen skeleton $< name assay_bpf > $@
ifneq ($(BPF),0)
$(OBJS): | $(SKEL)
endif

# ---- the heap recorder that is mapped into targets --------------------------------------------------------------
# One image that is mapped unchanged: no libc, no relocations, general registers only, since callers of
# an allocator may keep values in the others. It is built without the flags of the host's build
# (sanitizers).
INJECT_CFLAGS = -std=gnu11 -O2 -g -fPIC -fvisibility=hidden -ffreestanding -fno-stack-protector \
                -mgeneral-regs-only -fno-jump-tables -fno-builtin -fomit-frame-pointer \
                -fasynchronous-unwind-tables -fcf-protection=none -fno-common -U_FORTIFY_SOURCE \
                -fno-lto $(if $(findstring clang,$(notdir $(CC))),,-fno-tree-loop-distribute-patterns) \
                $(WARN) -Iwire -Iinject
INJECT_SRCS := $(sort $(wildcard inject/*.c inject/*.S))
INJECT_OBJS := $(INJECT_SRCS:%=$(O)/%.o)
HEAP_IMAGE  = $(O)/gen/heap.image

$(O)/inject/%.o: inject/% $(O)/flags Makefile
	@mkdir -p $(@D)
	$(call say,INJECT,$<)$(CC) $(INJECT_CFLAGS) -MMD -MP -c -o $@ $<
ifeq ($(shell uname -m),x86_64)
$(HEAP_IMAGE): $(INJECT_OBJS) inject/heap_image.ld
	$(call say,IMAGE,$@)$(CC) -nostdlib -shared -o $@ $(INJECT_OBJS) -Wl,-T,inject/heap_image.ld \
		-Wl,-z,noseparate-code,-z,norelro,-z,max-page-size=4096,--build-id,--eh-frame-hdr,--no-undefined,-Bsymbolic \
		&& strip -g $@
$(O)/gen/heap_image.h: $(HEAP_IMAGE) inject/heap_image.sh
	$(Q)inject/heap_image.sh $(HEAP_IMAGE) > $@
else
$(HEAP_IMAGE) $(O)/gen/heap_image.h: $(O)/flags
	$(Q)echo '/* No recorder for this machine. */' > $@
endif
$(O)/src/remote/patch/image.o: $(O)/gen/heap_image.h $(HEAP_IMAGE)
$(O)/src/analyze/diagnose/rules.o: $(wildcard src/analyze/diagnose/rules/*.txt)

# Assets are embedded by .incbin, so their objects depend on them.
$(O)/src/render/assets.o: $(ASSETS) $(O)/gen/page.js $(O)/gen/diff.js $(PAGE_CSS)
$(O)/src/render/assets.o: ALL_CPPFLAGS += -DPAGE_JS='"$(O)/gen/page.js"' -DDIFF_JS='"$(O)/gen/diff.js"'
STRIP_JS := src/render/assets/strip.awk
$(O)/gen/page.js: $(PAGE_JS_SRCS) $(STRIP_JS) Makefile
	@mkdir -p $(@D)
	$(Q){ printf "(function () {\n'use strict';\n"; awk -f $(STRIP_JS) $(PAGE_JS_SRCS); } > $@.tmp && printf '})();\n' >> $@.tmp && mv $@.tmp $@
$(O)/gen/diff.js: $(FLAME_JS_SRCS) $(DIFF_JS_SRC) Makefile
	@mkdir -p $(@D)
	$(Q){ printf "(function () {\n'use strict';\n"; cat $(FLAME_JS_SRCS); printf '})();\n'; \
		printf "(function () {\n'use strict';\n"; cat $(DIFF_JS_SRC); printf '})();\n'; } > $@
# Hash of the script for the page's content security policy.
sha256 = $$(sha256sum < $(1) | cut -c1-64 | tr a-f A-F | basenc --base16 -d | base64)
$(O)/gen/page_hash.h: $(O)/gen/page.js
	$(Q)printf '#define PAGE_JS_HASH "%s"\n' "$(call sha256,$(O)/gen/page.js)" > $@
$(O)/src/render/page/pagehtml.o: $(O)/gen/page_hash.h
$(O)/gen/diff_hash.h: $(O)/gen/diff.js
	$(Q)printf '#define DIFF_JS_HASH "%s"\n' "$(call sha256,$(O)/gen/diff.js)" > $@
$(O)/src/render/page/diffhtml.o: $(O)/gen/diff_hash.h

# Version and commit. Parts of `make check` run beside each other: the file has a name of its own meanwhile.
$(O)/gen/version.h: FORCE
	@mkdir -p $(@D)
	$(Q)packaging/version.sh | sed 's/\(.*\) \(.*\) \(.*\)/#define ASSAY_VERSION "\1"\n#define ASSAY_COMMIT "\2"\n#define ASSAY_DATE "\3"/' > $@.$$$$ && \
		if cmp -s $@.$$$$ $@; then rm $@.$$$$; else mv $@.$$$$ $@; fi
$(O)/src/cmd/manage/cmd_help.o: $(O)/gen/version.h

# A stamp that changes with the flags, so that changed flags rebuild everything. A first build checks
# that tools and libraries are there.
.PHONY: FORCE
FORCE:
$(O)/flags: FORCE
	@mkdir -p $(@D) $(O)/gen
	@echo '$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(LIBS)' | cmp -s - $@ || { \
		tests/lib/needs.sh $(firstword $(CC)) $(if $(filter 0,$(BPF)),-,$(firstword $(BPF_CC))) $(ISAL) $(CAPSTONE) && \
		echo '$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(LIBS)' > $@; }

-include $(wildcard $(O)/bpf/*.d $(O)/inject/*.d $(O)/src/*.d $(O)/src/*/*.d $(O)/src/*/*/*.d $(O)/tests/*/*.d $(O)/tests/*/*/*.d)

# ---- tests --------------------------------------------------------------------------------
# tests/unit/<folder>/test_<module>.c, each linked against the shipped library and run forked, TAP.
UNIT_SRCS := $(sort $(wildcard tests/unit/*/test_*.c))
TEST_LIB_SRCS := $(sort $(wildcard tests/lib/*.c tests/lib/*/*.c))
UNIT_BIN  := $(O)/tests/unit-tests

$(O)/tests/%.o: private ALL_CFLAGS += -Itests/lib -Itests/lib/made
# They run once: compiled in two thirds of the time.
$(O)/tests/unit/%.o: private OPT = -O1 -g1
$(UNIT_BIN): $(UNIT_SRCS:%.c=$(O)/%.o) $(TEST_LIB_SRCS:%.c=$(O)/%.o) $(LIB)
	$(call say,LINK,$@)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS) $(TEST_LIBS)

.PHONY: unit
unit: $(UNIT_BIN)
	$(Q)$(UNIT_BIN)

-include tests/tests.mk
include packaging/install.mk

.PHONY: clean
clean:
	rm -rf build assay
