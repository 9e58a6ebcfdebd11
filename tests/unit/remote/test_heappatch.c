/* Which bytes of real functions become jumps; stubs and moved instructions are executed. */
#include "base/base.h"
#include "tap.h"

#include <ctype.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "remote/patch/patch.h"
#include "object/x86insn.h"

#if defined(__x86_64__)

static int read_self(void *ctx, uint64_t addr, void *to, size_t n)
{
	(void)ctx;
	memcpy(to, (const void *)(uintptr_t)addr, n);
	return 0;
}

/* Functions made of bytes, in a page of their own. */
static uint8_t *code_page(void)
{
	return mmap(NULL, 65536, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
}

static void plan_at(struct heap_patch *p, const uint8_t *at, size_t n, bool allow_multi)
{
	CLEANUP(vec_free_p) struct heap_gaps gaps = {0};
	struct heap_bounds none = {0};
	struct heap_function site = {.addr = (uint64_t)(uintptr_t)at,
				     .end = (uint64_t)(uintptr_t)at + n};
	heappatch_plan(p, &site, 7, allow_multi, &none, &gaps, read_self, NULL);
}

TEST(heappatch_replaces_a_long_first_instruction_in_place)
{
	uint8_t *page = code_page();
	/* mov $0x11223344, %eax; ret */
	memcpy(page + 64, "\xb8\x44\x33\x22\x11\xc3", 6);
	struct heap_patch p;
	plan_at(&p, page + 64, 6, false);
	CHECK_U64(p.kind, PATCH_DIRECT);
	CHECK_U64(p.nr_displaced, 5);
	/* At the end of a word it would take two stores. */
	memcpy(page + 68 + 64, "\xb8\x44\x33\x22\x11\xc3", 6);
	plan_at(&p, page + 68 + 64, 6, false);
	CHECK_U64(p.kind, PATCH_NONE);
	CHECK(p.why);
}

TEST(heappatch_finds_padding_before_a_function)
{
	uint8_t *page = code_page();
	memset(page, 0xc3, 64);
	/* ret; nopw 0(%rax,%rax,1); nop | push %r12; push %rbp; mov %rdi, %rbp; ret */
	memcpy(page + 64, "\xc3\x66\x0f\x1f\x84\x00\x00\x00\x00\x00\x90\x90\x90\x90\x90\x90", 16);
	memcpy(page + 80, "\x41\x54\x55\x48\x89\xfd\xc3", 7);
	struct heap_patch p;
	plan_at(&p, page + 80, 7, false);
	CHECK_U64(p.kind, PATCH_GAP);
	CHECK_U64(p.gap, (uint64_t)(uintptr_t)(page + 75));
	CHECK_U64(p.nr_displaced, 2);
	/* Padding that the code before may fall into is none. */
	page[64] = 0x90;
	page[63] = 0x01;
	memset(page, 0x01, 64);
	plan_at(&p, page + 80, 7, false);
	CHECK_U64(p.kind, PATCH_NONE);
}

TEST(heappatch_goes_behind_pushes_and_takes_them_back)
{
	uint8_t *page = code_page();
	/* push %rbp; push %rbx; sub $8, %rsp; nop; mov $42, %eax ... */
	static const uint8_t code[] = {0x55, 0x53, 0x48, 0x83, 0xec, 0x08, 0x66, 0x90, 0xb8, 42,
				       0,    0,    0,    0x48, 0x83, 0xc4, 0x08, 0x5b, 0x5d, 0xc3};
	memcpy(page + 128, code, sizeof(code));
	struct heap_patch p;
	plan_at(&p, page + 128, sizeof(code), false);
	CHECK_U64(p.kind, PATCH_DIRECT);
	CHECK_U64(p.at, (uint64_t)(uintptr_t)(page + 136));
	CHECK_U64(p.nr_displaced, 13);
	/* lea 8(%rsp), %rsp; pop %rbx; pop %rbp */
	CHECK_U64(p.nr_undo, 10);
	CHECK(!memcmp(p.undo + 8, "\x5b\x5d", 2));
}

/*
 * As compilers begin a large function: registers that were saved get what is saved_layouts in them.
 */
TEST(heappatch_goes_behind_what_changes_saved_registers)
{
	uint8_t *page = code_page();
	/*
	 * push %r14; push %r12; movslq %esi, %r12; push %rbp; mov %r12d, %r14d; mov %rdi, %rbp;
	 * and $0xfff00, %r14d; ret
	 */
	static const uint8_t code[] = {0x41, 0x56, 0x41, 0x54, 0x4c, 0x63, 0xe6, 0x55,
				       0x45, 0x89, 0xe6, 0x48, 0x89, 0xfd, 0x66, 0x90,
				       0x41, 0x81, 0xe6, 0x00, 0xff, 0x0f, 0x00, 0xc3};
	memcpy(page + 128, code, sizeof(code));
	struct heap_patch p;
	plan_at(&p, page + 128, sizeof(code), true);
	CHECK_U64(p.kind, PATCH_DIRECT);
	CHECK_U64(p.at, (uint64_t)(uintptr_t)(page + 144));
	CHECK_U64(p.nr_undo, 5);
	CHECK(!memcmp(p.undo, "\x5d\x41\x5c\x41\x5e", 5));
	/* One that was not saved: movslq %esi, %r13. */
	page[128 + 6] = 0xee;
	plan_at(&p, page + 128, sizeof(code), false);
	CHECK_U64(p.kind, PATCH_NONE);
}

TEST(heappatch_does_not_go_behind_what_changes_arguments)
{
	uint8_t *page = code_page();
	/* mov %rsi, %rdi; nop5; mov $42, %eax */
	memcpy(page + 64, "\x48\x89\xf7\x0f\x1f\x44\x00\x00\xb8\x2a\x00\x00\x00\xc3", 14);
	struct heap_patch p;
	plan_at(&p, page + 64, 14, false);
	CHECK_U64(p.kind, PATCH_NONE);
	plan_at(&p, page + 64, 14, true);
	CHECK_U64(p.kind, PATCH_MULTI);
	CHECK_U64(p.nr_displaced, 8);
}

/* The kernel writes two pages one after the other; assay may be killed between them. */
TEST(heappatch_keeps_a_jump_within_one_page)
{
	uint8_t *page = code_page();
	struct heap_patch p;
	for (size_t at = 4096 - 8; at <= 4096; at++) {
		memcpy(page + at, "\x48\x89\xf7\x0f\x1f\x44\x00\x00\xb8\x2a\x00\x00\x00\xc3", 14);
		plan_at(&p, page + at, 14, true);
		CHECK_U64(p.kind, at > 4096 - 5 && at < 4096 ? PATCH_NONE : PATCH_MULTI);
	}
}

TEST(heappatch_refuses_a_function_that_jumps_into_its_first_bytes)
{
	uint8_t *page = code_page();
	/* mov %rsi, %rdi; 3: dec %edi; jne 3; ret */
	memcpy(page + 64, "\x48\x89\xf7\xff\xcf\x75\xfc\xc3", 8);
	struct heap_patch p;
	plan_at(&p, page + 64, 8, true);
	CHECK_U64(p.kind, PATCH_NONE);
}

/*
 * A patched function called: its stub jumps to an "entry" that calls the trampoline and adds one,
 * with all that heappatch and heapcode made.
 */
static uint64_t call_patched(uint8_t *page, uint8_t *function, size_t n, uint64_t arg)
{
	struct heap_patch p;
	uint8_t jump[5];
	plan_at(&p, function, n, true);
	CHECK(p.kind != PATCH_NONE);
	if (p.kind == PATCH_NONE)
		return 0;
	uint8_t *stub = page + 8192;
	uint8_t *entry = page + 12288;
	p.stub = (uint64_t)(uintptr_t)stub;
	struct heapcode_stub s = {.at = p.stub,
				  .entry = (uint64_t)(uintptr_t)entry,
				  .site = p.site,
				  .function = p.function,
				  .nr_displaced = p.nr_displaced,
				  .nr_undo = p.nr_undo};
	memcpy(s.displaced, p.displaced, sizeof(s.displaced));
	memcpy(s.undo, p.undo, sizeof(s.undo));
	CHECK(heapcode_stub(&s, stub));
	/* sub $8, %rsp; push %r11; push %r11; movabs trampoline, %rax; call *%rax;
	 * pop %r11; pop %r11; add $8, %rsp; add %r11, %rax; ret */
	uint64_t trampoline = p.stub + HEAPCODE_TRAMPOLINE;
	memcpy(entry, "\x48\x83\xec\x08\x41\x53\x41\x53\x48\xb8", 10);
	memcpy(entry + 10, &trampoline, 8);
	memcpy(entry + 18, "\xff\xd0\x41\x5b\x41\x5b\x48\x83\xc4\x08\x4c\x01\xd8\xc3", 14);
	size_t nr_jump = heappatch_jump(&p, jump);
	CHECK(nr_jump);
	if (p.kind == PATCH_GAP)
		CHECK(heapcode_jump((uint8_t *)(uintptr_t)p.gap, p.gap, p.stub));
	memcpy((void *)(uintptr_t)p.at, jump, nr_jump);
	uint64_t (*f)(uint64_t) = (uint64_t(*)(uint64_t))(uintptr_t)function;
	return f(arg);
}

TEST(heapcode_runs_displaced_instructions_as_they_were)
{
	uint8_t *page = code_page();
	/* mov 10(%rip), %rax: a value behind the function; add %rdi, %rax; ret */
	memcpy(page + 64, "\x48\x8b\x05\x04\x00\x00\x00\x48\x01\xf8\xc3\xe8\x03\0\0\0\0\0\0", 19);
	CHECK_U64(call_patched(page, page + 64, 11, 5), 1000 + 5 + 7);

	/* test %rdi, %rdi; je +6: lea 1(%rdi), %rax; ret; nop; mov $99, %eax; ret: wide */
	memcpy(page + 256, "\x48\x85\xff\x74\x06\x48\x8d\x47\x01\xc3\x90\xb8\x63\0\0\0\xc3", 17);
	CHECK_U64(call_patched(page, page + 256, 17, 0), 99 + 7);
	memcpy(page + 256, "\x48\x85\xff\x74\x06\x48\x8d\x47\x01\xc3\x90\xb8\x63\0\0\0\xc3", 17);
	CHECK_U64(call_patched(page, page + 256, 17, 10), 11 + 7);

	/* push %rbp; mov %rsp, %rbp; push %rbx; mov %rdi, %rbx; xchg; mov $1, %eax; add %rbx, %rax;
	 * pop %rbx; pop %rbp; ret: behind the pushes */
	static const uint8_t pushes[] = {0x55, 0x48, 0x89, 0xe5, 0x53, 0x48, 0x89, 0xfb, 0xb8, 1,
					 0,    0,    0,    0x48, 0x01, 0xd8, 0x5b, 0x5d, 0xc3};
	memcpy(page + 512, pushes, sizeof(pushes));
	CHECK_U64(call_patched(page, page + 512, sizeof(pushes), 30), 31 + 7);
}

/* ---- the functions of real allocators
 * ------------------------------------------------------------ */

/* "  98930:	41 54                	push   %r12": the bytes of one instruction. */
static size_t raw_bytes(const char *line, uint8_t *to, size_t cap)
{
	const char *at = strchr(line, ':');
	size_t n = 0;
	if (!at || at[1] != '\t')
		return 0;
	for (at += 2; n < cap; at += 3) {
		if (!isxdigit((unsigned char)at[0]) || !isxdigit((unsigned char)at[1]))
			break;
		to[n++] = (uint8_t)strtoul(at, NULL, 16);
	}
	return n;
}

/* The length of each instruction at a function's start, by objdump. */
static size_t check_lengths(const char *path, const char *name)
{
	char command[512];
	char line[512];
	(void)snprintf(command, sizeof(command),
		       "a=$(nm -D %s | awk '$3 ~ /^%s(@|$)/ { print $1; exit }'); objdump -d -w "
		       "--start-address=0x$a --stop-address=$((0x$a + 120)) %s 2> /dev/null",
		       path, name, path);
	int fds[2];
	CHECK(!pipe(fds));
	pid_t pid = fork();
	if (!pid) {
		dup2(fds[1], 1);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	FILE *f = fdopen(fds[0], "r");
	size_t nr = 0;
	while (f && fgets(line, sizeof(line), f)) {
		uint8_t code[16];
		struct x86_insn i;
		size_t n = raw_bytes(line, code, sizeof(code));
		if (!n)
			continue;
		if (strstr(line, ".byte") || strstr(line, "rex") || n == 1)
			n = n == 1 && x86_decode(code, n, &i) ? n : 0; /* the last is cut off */
		if (!n)
			break;
		if (!x86_decode(code, n, &i) || i.nr_bytes != n)
			tap_fail(__FILE__, __LINE__, "%s %s: %u, not %zu: %s", path, name,
				 i.nr_bytes, n, line);
		nr++;
	}
	if (f)
		fclose(f);
	waitpid(pid, NULL, 0);
	return nr;
}

TEST(heappatch_instruction_lengths_are_those_of_objdump)
{
	static const char *const libraries[] = {
		"/lib/x86_64-linux-gnu/libc.so.6",
		"/usr/lib/x86_64-linux-gnu/libjemalloc.so.2",
		"/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4",
		"/usr/lib/x86_64-linux-gnu/libmimalloc.so.2",
		"/usr/lib/x86_64-linux-musl/libc.so",
	};
	static const char *const names[] = {"malloc", "free", "calloc", "realloc"};
	if (access("/usr/bin/objdump", X_OK))
		tap_skip("objdump is not installed");
	for (size_t i = 0; i < ARRAY_LEN(libraries); i++)
		for (size_t k = 0; !access(libraries[i], R_OK) && k < ARRAY_LEN(names); k++)
			CHECK(check_lengths(libraries[i], names[k]) > 2);
}

#endif
