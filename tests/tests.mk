# Tests. `make check` is everything that CI runs; `make check-fast` needs no root and 60 s.

.PHONY: help check check-long check-fast lint golden golden-update e2e fuzz-replay san clang bench demo deps
help:
	@echo 'make             build ./assay'
	@echo 'make deps        install the packages that the build needs (Debian, as root)'
	@echo 'make deps-check  install these and those that the tests need'
	@echo 'make demo        make deps, build on all CPUs, profile a real service'
	@echo 'make check       everything that CI runs (root, about 10 minutes on 2 cores)'
	@echo 'make check-long  random kills, fuzzing, soak, lock holders, planted causes: LONG minutes (root); result in tests/long/RESULT'
	@echo 'make libfuzzer   the fuzzer of every parser with libFuzzer (clang): build/fuzz/tests/fuzz/fuzz_*-long'
	@echo 'make check-fast  lint, unit and golden tests (no root, at most 60 s)'
	@echo 'make unit golden e2e lint san static fuzz-replay clang    one part of check; make e2e E2E=heap_*'
	@echo 'make golden-update   update expected outputs and the options of manual pages; see git diff'
	@echo 'make bench       ratios against perf and other profilers, measured side by side'
	@echo 'make install     PREFIX=/usr/local DESTDIR=; make uninstall removes the same files'
	@echo 'make deb dist    Debian packages; a source archive; into build/package'
	@echo 'make targets     build the programs that tests profile; make clean removes build files'
	@echo 'variables: V=1 CC=clang SAN=address,undefined STATIC=1 BPF=0 ISAL=0 CAPSTONE=0 DEV= O=dir E2E= LONG=180'

# For targets that call make: as many jobs as CPUs, unless -j is given.
JOBS = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))

# Debian packages: for the build, for the tests, for the benchmarks.
deps:
	$(Q)tests/lib/deps.sh build
.PHONY: deps-check deps-bench
deps-check:
	$(Q)tests/lib/deps.sh build check
deps-bench:
	$(Q)tests/lib/deps.sh build check bench

lint:
	$(Q)CC="$(CC)" tests/lib/lint.sh

golden: $(BIN)
	$(Q)tests/lib/golden.sh $(BIN) tests/golden
golden-update: $(BIN)
	$(Q)tests/lib/man_options.sh $(BIN)
	$(Q)tests/lib/golden.sh --update $(BIN) tests/golden

# The release builds of all parts of `make check`. The targets, which one job builds, come first.
.PHONY: builds e2e-builds
builds: targets e2e-builds all $(UNIT_BIN)
e2e-builds: $(BIN) targets $(addprefix $(O)/tests/oracle/,waits_rows heap_cycle perfdata_dump perfdata_rewrite) $(if $(filter 0,$(BPF)),,$(O)/tests/oracle/kstack)
e2e: e2e-builds
	$(Q)tests/lib/e2e.sh $(BIN) tests/e2e

# Test programs whose behaviour is known; each has its flags in a line "/* build: ... */".
TARGET_SRCS := $(sort $(wildcard tests/targets/*.c tests/targets/*.cc tests/targets/*.rs tests/targets/*/*.c tests/targets/*/*.cc tests/targets/*/*.rs))
.PHONY: targets
targets:
	$(Q)MAKEFLAGS= tests/lib/targets.sh $(O)/targets $(TARGET_SRCS)

# Every fuzzer's corpus, replayed by a plain driver under AddressSanitizer.
FUZZ_SRCS := $(sort $(wildcard tests/fuzz/fuzz_*.c))
FUZZ_BINS := $(FUZZ_SRCS:%.c=$(O)/%)
.PRECIOUS: $(O)/tests/fuzz/%.o
$(O)/tests/fuzz/%: $(O)/tests/fuzz/%.o $(O)/tests/fuzz/replay.o $(LIB)
	$(call say,LINK,$@)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)
.PHONY: fuzz-replay-here
fuzz-replay-here: $(FUZZ_BINS)
	$(Q)ok=0; bad=0; for f in $(FUZZ_SRCS:tests/fuzz/fuzz_%.c=%); do \
		if $(O)/tests/fuzz/fuzz_$$f tests/fuzz/corpus/$$f; then ok=$$((ok + 1)); \
		else echo "not ok - fuzz_$$f"; bad=$$((bad + 1)); fi; done; \
		echo "fuzz-replay: $$ok passed, $$bad failed"; [ $$bad = 0 ]
# -O1 -g1: compiles in half the time, stack traces still have lines.
ASAN := SAN=address,undefined OPT='-O1 -g1'
# Threads share data in user space only, so this build is without BPF programs, which tests BPF=0 too.
TSAN := SAN=thread BPF=0 OPT='-O1 -g1'
fuzz-replay:
	$(Q)$(MAKE) --no-print-directory $(ASAN) fuzz-replay-here

.PHONY: san-address san-thread unit-tsan
san: san-address san-thread
san-address:
	$(Q)$(MAKE) --no-print-directory $(ASAN) unit
san-thread:
	$(Q)$(MAKE) --no-print-directory $(TSAN) unit-tsan
# The tests in which threads share data, and captures.
SAN_THREAD_TESTS := naming_ work_ dwarf_ symbolizer_ heapqueue_ ringwait_ heapring_reads_
TSAN_SRCS = $(shell grep -lE '^TEST.($(subst $(space),|,$(SAN_THREAD_TESTS)))' $(UNIT_SRCS))
$(O)/tests/unit-tests-threads: $(TSAN_SRCS:%.c=$(O)/%.o) $(TEST_LIB_SRCS:%.c=$(O)/%.o) $(LIB)
	$(call say,LINK,$@)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LIBS) $(TEST_LIBS)
unit-tsan: $(BIN) $(O)/tests/unit-tests-threads
	$(Q)bad=0; for t in $(SAN_THREAD_TESTS); do $(O)/tests/unit-tests-threads $$t || bad=1; done; \
		tests/lib/san_captures.sh $(BIN) tests/targets/allocmix.c || bad=1; exit $$bad

# Its warnings, those of data flow as well, come before optimization.
clang:
	$(Q)$(MAKE) --no-print-directory CC=clang OPT=-O0 binary

# The static program: its size, an empty root, the start. The linker warns of getpwnam, which needs libnss of the
# machine for users that are not in /etc/passwd.
.PHONY: static binary
binary: $(BIN)
static: $(BIN)
	$(Q)$(MAKE) --no-print-directory STATIC=1 binary
	$(Q)packaging/static_test.sh build/release-static/assay $(BIN)

# The builds of all these parts, for a background process of `make check`.
.PHONY: san-builds san-address-here san-thread-here
san-builds:
	$(Q)$(MAKE) --no-print-directory $(ASAN) san-address-here
	$(Q)$(MAKE) --no-print-directory $(TSAN) san-thread-here
	$(Q)$(MAKE) --no-print-directory clang
	$(Q)$(MAKE) --no-print-directory STATIC=1 binary
san-address-here: $(UNIT_BIN) $(FUZZ_BINS)
san-thread-here: $(BIN) $(O)/tests/unit-tests-threads

check-fast: all lint unit golden
check:
	$(Q)$(MAKE) --no-print-directory deps-check
	$(Q)tests/lib/check.sh "$(MAKE)" "$(SAN_THREAD_TESTS)"

# Tests that take too long for `make check`; their last result is kept in the repository.
LONG := 180
FUZZ := CC=clang SAN=address,undefined,fuzzer-no-link OPT='-O1 -g1' O=build/fuzz
$(O)/tests/fuzz/%-long: $(O)/tests/fuzz/%.o $(LIB)
	$(call say,LINK,$@)$(CC) $(ALL_LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(LIBS)
.PHONY: fuzz-long libfuzzer
fuzz-long: $(FUZZ_SRCS:%.c=$(O)/%-long)
libfuzzer:
	$(Q)$(MAKE) --no-print-directory $(JOBS) $(FUZZ) fuzz-long
check-long:
	$(Q)$(MAKE) --no-print-directory deps-check
	$(Q)$(MAKE) --no-print-directory $(JOBS) all targets $(O)/tests/oracle/heap_cycle
	$(Q)$(MAKE) --no-print-directory libfuzzer
	$(Q)tests/lib/check_long.sh $(BIN) build/fuzz/tests/fuzz tests/long/RESULT $(LONG)

# Benchmarks and oracles of single modules; those of unwinding share unwind_process.
PARTS := $(patsubst %.c,$(O)/%,$(wildcard tests/bench/bench_*.c) tests/oracle/unwind_step.c \
           $(addprefix tests/oracle/,waits_rows.c heap_cycle.c perfdata_dump.c perfdata_rewrite.c))
$(O)/tests/bench/bench_unwind $(O)/tests/oracle/unwind_step: $(O)/tests/lib/unwind_process.o
$(O)/tests/bench/bench_heapblob $(O)/tests/bench/bench_heapci: $(O)/tests/lib/unwind_process.o $(O)/tests/lib/local_recorder.o
# Tests the unwinder in BPF; it has BPF programs of its own.
ifneq ($(BPF),0)
PARTS += $(O)/tests/oracle/kstack
$(O)/tests/oracle/kstack: $(O)/tests/lib/unwind_process.o
$(O)/tests/oracle/kstack.bpf.o: tests/oracle/kstack.bpf.c $(O)/flags
	@mkdir -p $(@D)
	$(call say,BPF,$<)$(BPF_CC) $(BPF_CFLAGS) -Itests/oracle -MMD -MP -c -o $@ $< && llvm-strip -g $@
$(O)/gen/kstack.skel.h: $(O)/tests/oracle/kstack.bpf.o
	$(call say,SKEL,$@)bpftool gen skeleton $< name kstack_bpf > $@
$(O)/tests/oracle/kstack.o: $(O)/gen/kstack.skel.h
endif
$(PARTS): %: %.o $(LIB)
	$(call say,LINK,$@)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(LIB) $(LIBS)
bench: $(BIN) targets $(PARTS)
	$(Q)tests/bench/run.sh $(BIN)

demo:
	$(Q)$(MAKE) --no-print-directory deps
	$(Q)$(MAKE) --no-print-directory $(JOBS) all
	$(Q)tests/lib/demo.sh ./assay
