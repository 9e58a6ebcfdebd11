/*
 * Compares the stacks that the recorder (inject/) records with those of the unwinder in src/unwind
 * at the same place: deep and shallow, repeatedly, so that most frames are reused from the last
 * stack; in signal handlers, threads, on stacks that the program allocates, with bad unwind rules.
 */
#include "base/base.h"
#include "tap.h"

#if defined(__x86_64__)
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "local_recorder.h"

#define NO_FP      __attribute__((noinline, noclone, optimize("O2", "omit-frame-pointer")))
#define NR_NUMBERS 65537

static struct local_recorder *hw;
static void *(*hooked)(size_t);
static volatile unsigned sink;
static uint64_t rng;
static int nr_compared;
static uint64_t nr_frames_compared;
/* Of the stack that is in use. */
static uint64_t stack_end;
/* Frames by number, as reported. */
static uint64_t *reported[NR_NUMBERS];
static uint32_t nr_reported[NR_NUMBERS];
static uint32_t end_reported[NR_NUMBERS];

static uint32_t draw(uint32_t n)
{
	rng = rng * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(rng >> 33) % n;
}

static void *give(size_t n)
{
	return (void *)(uintptr_t)(0x10000 + n);
}

static bool begin(const struct local_recorder_spec *spec)
{
	hw = local_recorder_new(spec);
	if (!hw)
		tap_skip("no recorder for this machine");
	hooked = (void *(*)(size_t))local_recorder_hook(hw, HEAP_ALLOC_0, (heap_fn)give);
	stack_end = hw->process.stack_end;
	rng = 1;
	local_recorder_start(hw);
	return true;
}

static const struct local_recorder_spec every = {.is_full_trace = true};

struct shot {
	uint64_t regs[3]; /* bp sp ip */
};
#define TAKE_SHOT(s)                                                      \
	__asm__ volatile("mov %%rbp, %0; mov %%rsp, %1; lea 0(%%rip), %2" \
			 : "=m"((s)->regs[0]), "=r"((s)->regs[1]), "=r"((s)->regs[2]))

/* The number of the stack of the last block. */
static uint32_t drain(void)
{
	struct heap_slot *s = local_recorder_slot(hw);
	struct heap_seen r = {0};
	uint32_t stack = 0;

	while (s && local_recorder_next(hw, s, &r)) {
		if (r.kind == HEAP_RECORD_ALLOC)
			stack = r.stack;
		if (r.kind != HEAP_RECORD_STACK)
			continue;
		CHECK(r.stack > 0 && r.stack < NR_NUMBERS && !reported[r.stack]);
		reported[r.stack] = xmemdup(r.frames, (r.nr_frames + 1) * sizeof(uint64_t));
		nr_reported[r.stack] = r.nr_frames;
		end_reported[r.stack] = r.end;
	}
	return stack;
}

static void compare(const struct shot *s)
{
	const struct walk_frame *f;
	uint32_t nr = 0;
	uint32_t stack = drain();

	CHECK(stack != 0 && reported[stack]);
	if (!stack || !reported[stack])
		return;
	struct walk_input in = {.space = hw->process.space,
				.regs = s->regs,
				.regs_mask = 1 << 6 | 1 << 7 | 1 << 8,
				.stack = (const void *)(uintptr_t)s->regs[1],
				.nr_stack = stack_end - s->regs[1]};
	enum walk_end end = walker_walk(hw->process.walker, &in, &f, &nr);
	nr_compared++;
	nr_frames_compared += nr;
	bool is_deep = nr > HEAP_FRAMES_MAX;
	uint32_t nr_kept = is_deep ? HEAP_FRAMES_MAX : nr;
	if (nr_reported[stack] != nr_kept ||
	    (!is_deep && end == WALK_ROOT && end_reported[stack]) ||
	    (is_deep && end_reported[stack] != WALK_DEPTH))
		tap_fail(__FILE__, __LINE__, "%u frames, end %u; %u frames, end %d",
			 nr_reported[stack], end_reported[stack], nr, (int)end);
	/* The leaf is in the same function. */
	CHECK(reported[stack][0] - f[0].addr < 256);
	for (uint32_t i = 1; i < nr_kept && i < nr_reported[stack]; i++)
		if (reported[stack][i] != f[i].addr) {
			tap_fail(__FILE__, __LINE__,
				 "frame %u of %u: 0x%" PRIx64 ", not 0x%" PRIx64, i, nr,
				 reported[stack][i], f[i].addr);
			break;
		}
}

static NO_FP void leaf_a(void)
{
	struct shot s;
	TAKE_SHOT(&s);
	(void)hooked(1);
	compare(&s);
}

static NO_FP void leaf_b(void)
{
	struct shot s;
	volatile char room[200];
	TAKE_SHOT(&s);
	(void)hooked(2);
	room[0] = 1;
	sink += room[0];
	compare(&s);
}

/* A tree of calls, which comes by each of them from several places and with frames of all sizes. */
static NO_FP void grow_a(int depth);
static __attribute__((noinline)) void grow_fp(int depth);

static int nr_wanted = 1000000;

static NO_FP void grow_b(int depth)
{
	if (nr_compared > nr_wanted)
		return;
	volatile char room[72];
	room[0] = 0;
	if (draw(3) == 0)
		leaf_a();
	if (depth > 0 && draw(4))
		grow_fp(depth - 1);
	if (draw(3) == 0)
		leaf_a();
	sink += room[0];
}

/* With a frame pointer, and a frame whose size is known only when it runs. */
static __attribute__((noinline)) void grow_fp(int depth)
{
	size_t n = 16 + draw(5) * 16;
	char *room = __builtin_alloca(n);
	memset(room, 1, n);
	if (draw(2))
		leaf_b();
	if (depth > 0)
		grow_a(depth - 1);
	sink += room[n - 1];
}

static NO_FP void grow_a(int depth)
{
	if (nr_compared > nr_wanted)
		return;
	if (depth <= 0) {
		leaf_b();
		return;
	}
	uint32_t what = draw(6);
	if (what < 2)
		grow_a(depth - 1);
	else if (what < 4)
		grow_b(depth - 1);
	else
		grow_fp(depth - 1);
	leaf_a();
	if (draw(8) == 0)
		grow_b(depth - 1);
	sink++;
}

TEST(heapblob_walk_equals_the_unwinder_in_a_tree_of_calls)
{
	begin(&every);
	nr_wanted = 20000;
	while (nr_compared < nr_wanted)
		grow_a((int)draw(40));
	nr_wanted = 21000;
	while (nr_compared < nr_wanted)
		grow_a(700);
	CHECK_U64(hw->shared->nr_no_stack, 0);
	CHECK_U64(local_recorder_slot(hw)->nr_dropped, 0);
	local_recorder_free(hw);
}

/*
 * The frame of `below` moves, and the frame pointer that leads over it with it. Where its return
 * address was before there is the same word again, and all else is as it was: but it was called
 * from another place.
 */
static volatile uint64_t ghost;

static NO_FP void three_up(int depth)
{
	if (depth)
		three_up(depth - 1);
	else
		leaf_a();
	sink++;
}

static __attribute__((noinline, noclone)) void with_fp_of_its_own(size_t room)
{
	volatile char *p = __builtin_alloca(room);
	p[0] = 1;
	three_up(4);
	sink += p[0];
}

static __attribute__((noinline, noclone)) void below(size_t room, bool is_direct)
{
	volatile char *p = __builtin_alloca(room);
	p[0] = 1;
	if (is_direct)
		three_up(4);
	else
		with_fp_of_its_own(32);
	ghost = (uint64_t)(uintptr_t)__builtin_return_address(0);
	sink += p[0];
}

static __attribute__((noinline, noclone)) void above(size_t room, bool is_second, bool is_direct)
{
	volatile uint64_t *p = __builtin_alloca(room);
	for (size_t i = 0; i < room / 8; i++)
		p[i] = i % 2 ? ghost : (uint64_t)(uintptr_t)__builtin_frame_address(0);
	if (is_second) {
		below(256 - room, is_direct);
		sink += 2;
	} else {
		below(256 - room, is_direct);
		sink += 3;
	}
	sink += (unsigned)p[0];
}

TEST(heapblob_walk_does_not_reuse_a_frame_that_moved)
{
	begin(&every);
	for (int i = 0; i < 32; i++) {
		bool is_second = i % 2;
		above(is_second ? 32 + (size_t)i / 4 * 16 : 16, is_second, i & 2);
		leaf_b();
	}
	CHECK_U64((uint64_t)nr_compared, 64);
	local_recorder_free(hw);
}

static int by_value(const void *a, const void *b)
{
	leaf_a();
	return *(const int *)a - *(const int *)b;
}

TEST(heapblob_walk_passes_through_libraries)
{
	begin(&every);
	int v[] = {5, 3, 9, 1, 7, 2, 8};
	qsort(v, ARRAY_LEN(v), sizeof(*v), by_value);
	CHECK(nr_compared > 5);
	local_recorder_free(hw);
}

static void on_signal(int sig)
{
	(void)sig;
	leaf_a();
	grow_a(5);
}

static NO_FP void raise_deep(int depth)
{
	if (depth) {
		raise_deep(depth - 1);
		leaf_b();
		sink++;
		return;
	}
	raise(SIGUSR1);
	leaf_b();
}

TEST(heapblob_walk_passes_through_signal_frames)
{
	begin(&every);
	signal(SIGUSR1, on_signal);
	for (int i = 0; i < 50; i++)
		raise_deep((int)draw(30));
	CHECK(nr_compared > 500);
	local_recorder_free(hw);
}

/* On a stack of their own, the walker of src/unwind has no copy of the rest. */
static uint32_t end_elsewhere;
static uint32_t nr_elsewhere;

static void on_signal_elsewhere(int sig)
{
	(void)sig;
	(void)hooked(3);
	uint32_t stack = drain();
	CHECK(stack != 0);
	end_elsewhere = end_reported[stack];
	nr_elsewhere = nr_reported[stack];
}

TEST(heapblob_walk_comes_from_a_signal_stack_to_the_thread_s)
{
	begin(&every);
	static char room[65536];
	stack_t ss = {.ss_sp = room, .ss_size = sizeof(room)};
	CHECK(sigaltstack(&ss, NULL) == 0);
	struct sigaction sa = {.sa_handler = on_signal_elsewhere, .sa_flags = SA_ONSTACK};
	sigaction(SIGUSR1, &sa, NULL);
	raise_deep(30);
	CHECK_U64(end_elsewhere, WALK_ROOT);
	CHECK(nr_elsewhere > 35);
	for (int i = 0; i < 20; i++) {
		raise_deep((int)draw(20));
		CHECK_U64(end_elsewhere, WALK_ROOT);
	}
	CHECK(nr_compared > 20);
	local_recorder_free(hw);
}

static void *run_thread(void *arg)
{
	pthread_attr_t attr;
	void *lo = NULL;
	size_t n = 0;

	(void)arg;
	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getstack(&attr, &lo, &n);
	pthread_attr_destroy(&attr);
	stack_end = (uint64_t)(uintptr_t)lo + n;
	for (int i = 0; i < 30; i++)
		grow_a((int)draw(60));
	return NULL;
}

TEST(heapblob_walk_knows_stacks_of_threads)
{
	begin(&every);
	for (int i = 0; i < 3; i++) {
		pthread_t t;
		CHECK(pthread_create(&t, NULL, run_thread, NULL) == 0);
		pthread_join(t, NULL);
	}
	CHECK(nr_compared > 200);
	local_recorder_free(hw);
}

/* As where a seccomp filter might object. */
TEST(heapblob_walk_does_without_system_calls)
{
	begin(&(struct local_recorder_spec){.is_full_trace = true, .has_no_kernel = true});
	grow_a(30);
	pthread_t t;
	CHECK(pthread_create(&t, NULL, run_thread, NULL) == 0);
	pthread_join(t, NULL);
	CHECK(nr_compared > 100);
	local_recorder_free(hw);
}

static ucontext_t main_context;
static ucontext_t coroutine[2];
static int nr_switches;

static void run_coroutine(int me)
{
	for (int i = 0; i < 50; i++) {
		(void)hooked(3);
		uint32_t stack = drain();
		CHECK(stack != 0);
		nr_switches++;
		swapcontext(&coroutine[me], me ? &main_context : &coroutine[1]);
	}
}

/* Each stack ends at a page that cannot be read. */
TEST(heapblob_walk_stays_on_small_stacks)
{
	begin(&every);
	for (int i = 0; i < 2; i++) {
		size_t n = 4 * 4096;
		uint8_t *p = mmap(NULL, n + 8192, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(p != MAP_FAILED);
		mprotect(p, 4096, PROT_NONE);
		mprotect(p + 4096 + n, 4096, PROT_NONE);
		getcontext(&coroutine[i]);
		coroutine[i].uc_stack.ss_sp = p + 4096;
		coroutine[i].uc_stack.ss_size = n;
		coroutine[i].uc_link = &main_context;
		makecontext(&coroutine[i], (void (*)(void))run_coroutine, 1, i);
	}
	for (int i = 0; i < 40; i++) {
		swapcontext(&main_context, &coroutine[0]);
		leaf_a();
	}
	CHECK_U64(nr_switches, 80);
	CHECK_U64(nr_compared, 40);
	local_recorder_free(hw);
}

static __attribute__((noinline)) void chain(int depth)
{
	if (depth)
		chain(depth - 1);
	else
		(void)hooked(1);
	sink++;
}

TEST(heapblob_walk_without_rules_follows_frame_pointers)
{
	begin(&(struct local_recorder_spec){.is_full_trace = true, .has_no_tables = true});
	for (int i = 0; i < 3; i++) {
		chain(10);
		uint32_t stack = drain();
		CHECK(stack != 0 && nr_reported[stack] >= 12);
	}
	local_recorder_free(hw);
}

/* sub $8, %rsp; mov $1, %edi; movabs $hooked, %rax; call *%rax; add $8, %rsp; ret */
static const uint8_t caller_text[] = {0x48, 0x83, 0xec, 8,    0xbf, 1,    0, 0,   0,
				      0x48, 0xb8, 0,    0,    0,    0,    0, 0,   0,
				      0,    0xff, 0xd0, 0x48, 0x83, 0xc4, 8, 0xc3};
#define CALLER_HOOKED  11
#define CALLER_RETURNS 21

TEST(heapblob_walk_reports_a_caller_in_a_library_that_is_not_known_yet)
{
	begin(&every);
	uint8_t *text = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(text != MAP_FAILED);
	memcpy(text, caller_text, sizeof(caller_text));
	memcpy(text + CALLER_HOOKED, &hooked, sizeof(hooked));
	void (*caller)(void) = (void (*)(void))(uintptr_t)text;
	uint32_t first = 0;
	for (int i = 0; i < 3; i++) {
		caller();
		uint32_t stack = drain();
		CHECK(stack != 0 && reported[stack]);
		first = first ? first : stack;
		CHECK_U64(stack, first);
		CHECK_U64(nr_reported[stack], 1);
		CHECK_U64(reported[stack][0], (uint64_t)(uintptr_t)text + CALLER_RETURNS);
		CHECK_U64(end_reported[stack], WALK_NO_MAP);
		leaf_a(); /* with a whole stack, in between */
	}
	CHECK_U64(__atomic_load_n(&hw->shared->nr_no_stack, __ATOMIC_RELAXED), 0);
	local_recorder_free(hw);
}

static NO_FP void nonsense(int depth)
{
	if (depth)
		nonsense(depth - 1);
	else
		(void)hooked(1);
	sink++;
}

TEST(heapblob_walk_survives_any_rules)
{
	begin(&every);
	struct ktables_head *head = hw->k.spec.head;
	struct unwind_row *rows = (void *)((uint8_t *)head + KTABLES_HEAD_BYTES);
	struct heap_seen *r = xmalloc(sizeof(*r));
	for (int round = 0; round < 300; round++) {
		uint32_t nr = 1u << 21;
		/* All rules in use are of a few modules, at the beginning. */
		nr = MIN(nr, 200000u);
		uint32_t kinds = draw(8);
		if (round % 30 == 0)
			for (uint32_t i = 0; i < nr; i++)
				rows[i].rule = kinds < 4 ? row_make(ROW_SP + draw(2), draw(64) * 8,
								    (int32_t)draw(8) - 5)
							 : draw(0x7fffffff) * 2 + draw(2);
		for (uint32_t i = 0; i < 64; i++) {
			struct unwind_special *s = &head->specials[draw(1000)];
			uint8_t *bytes = (uint8_t *)s;
			for (size_t k = 0; k < sizeof(*s); k++)
				bytes[k] = (uint8_t)draw(k < 8 ? 8 : 256);
		}
		/* What was looked up before is forgotten. */
		uint64_t now = head->spaces[0].now;
		__atomic_store_n(&head->spaces[0].now, now + ((uint64_t)1 << 32), __ATOMIC_RELEASE);
		nonsense((int)draw(30));
		nonsense((int)draw(30));
		local_recorder_skip(local_recorder_slot(hw));
	}
	CHECK_U64(local_recorder_slot(hw)->nr_allocs, 600);
	free(r);
	local_recorder_free(hw);
}

/* ---- others' unwinders ------------------------------------------------------------------------
 */

static uint32_t nr_inside;
static bool is_main_reached;
static int (*libc_backtrace)(void **, int);

/* In the original function: the recorder's frames are on the stack. */
static NO_FP void *give_within(size_t n)
{
	struct shot s;
	TAKE_SHOT(&s);
	const struct walk_frame *f;
	struct walk_input in = {.space = hw->process.space,
				.regs = s.regs,
				.regs_mask = 1 << 6 | 1 << 7 | 1 << 8,
				.stack = (const void *)(uintptr_t)s.regs[1],
				.nr_stack = stack_end - s.regs[1]};
	is_main_reached = walker_walk(hw->process.walker, &in, &f, &nr_inside) == WALK_ROOT;
	return give(n);
}

TEST(heapblob_frames_are_passed_by_our_unwinder)
{
	begin(&every);
	hooked = (void *(*)(size_t))local_recorder_hook(hw, HEAP_ALLOC_0, (heap_fn)give_within);
	nonsense(12);
	CHECK(is_main_reached);
	CHECK(nr_inside > 15);
	void *(*again)(size_t, size_t) = (void *(*)(size_t, size_t))local_recorder_hook(
		hw, HEAP_REALLOC_1, (heap_fn)give_within);
	is_main_reached = false;
	(void)again(1, 2);
	CHECK(is_main_reached);
	local_recorder_free(hw);
}

static void *nr_backtrace(size_t n)
{
	void *frames[64];
	nr_inside = (uint32_t)libc_backtrace(frames, ARRAY_LEN(frames));
	return give(n);
}

/* As exceptions need it that pass through an operator new. */
TEST(heapblob_frames_are_passed_by_a_compiler_s_unwinder_with_a_table)
{
	begin(&every);
	hooked = (void *(*)(size_t))local_recorder_hook(hw, HEAP_ALLOC_0, (heap_fn)nr_backtrace);
	void *libgcc = dlopen("libgcc_s.so.1", RTLD_NOW);
	void (*emit)(const void *) =
		libgcc ? (void (*)(const void *))(uintptr_t)dlsym(libgcc, "__register_frame")
		       : NULL;
	libc_backtrace = (int (*)(void **, int))(uintptr_t)dlsym(RTLD_DEFAULT, "backtrace");
	if (!emit || !libc_backtrace)
		tap_skip("no libgcc_s with __register_frame");
	nonsense(12);
	CHECK(nr_inside < 12);
	emit(hw->image + heap_image()->frames);
	nonsense(12);
	CHECK(nr_inside > 14);
	local_recorder_free(hw);
}

/* ---- jemalloc
 * ------------------------------------------------------------------------------------ */

typedef int (*mallctl_fn)(const char *, void *, size_t *, void *, size_t);

struct je_hooks {
	heap_fn alloc;
	heap_fn dalloc;
	heap_fn expand;
	void *extra;
};

static void *jemalloc;

static heap_fn je(const char *name)
{
	heap_fn f = (heap_fn)(uintptr_t)dlsym(jemalloc, name);
	if (!f)
		tap_skip("jemalloc without %s", name);
	return f;
}

/* Its thread-local storage wants more room than a library that comes late is given. */
#define MORE_TLS "glibc.rtld.optional_static_tls=16384"

/* Runs this test once more, with that room. True: done. */
static bool run_with_room(const char *test)
{
	if (getenv("GLIBC_TUNABLES"))
		return false;
	setenv("GLIBC_TUNABLES", MORE_TLS, 1);
	pid_t pid = fork();
	if (!pid) {
		(void)dup2(STDERR_FILENO, STDOUT_FILENO); /* a report within ours is no TAP */
		execl("/proc/self/exe", "unit-tests", test, NULL);
		_exit(127);
	}
	int status = 0;
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	return true;
}

static mallctl_fn open_jemalloc(const char *conf)
{
	setenv("MALLOC_CONF", conf, 1);
	jemalloc = dlopen("libjemalloc.so.2", RTLD_NOW | RTLD_LOCAL);
	if (!jemalloc)
		tap_skip("no libjemalloc.so.2 here");
	mallctl_fn ctl = (mallctl_fn)je("mallctl");
	CHECK(local_recorder_refresh(hw));
	return ctl;
}

static bool next_event(struct heap_seen *r)
{
	struct heap_slot *s = local_recorder_slot(hw);

	while (s && local_recorder_next(hw, s, r)) {
		if (r->kind != HEAP_RECORD_STACK)
			return true;
		reported[r->stack] = xmemdup(r->frames, (r->nr_frames + 1) * sizeof(uint64_t));
		nr_reported[r->stack] = r->nr_frames;
		end_reported[r->stack] = r->end;
	}
	return false;
}

static void check_event(int line, uint32_t kind, const void *block, uint64_t n)
{
	struct heap_seen r = {0};

	if (!next_event(&r) || r.kind != kind || r.block != (uint64_t)(uintptr_t)block ||
	    (kind == HEAP_RECORD_ALLOC && r.n != n) || r.site != HEAP_SITE_NONE)
		tap_fail(__FILE__, line, "kind %u block 0x%" PRIx64 " n %" PRIu64, (unsigned)r.kind,
			 r.block, r.n);
	if (kind == HEAP_RECORD_ALLOC && (!reported[r.stack] || end_reported[r.stack] != WALK_ROOT))
		tap_fail(__FILE__, line, "stack ends with %u", end_reported[r.stack]);
}
#define CHECK_EVENT(kind, block, n) check_event(__LINE__, kind, block, n)

TEST(heapblob_hooks_of_jemalloc_see_all_its_functions)
{
	if (run_with_room("heapblob_hooks_of_jemalloc_see_all_its_functions"))
		return;
	begin(&every);
	mallctl_fn ctl = open_jemalloc("");
	struct je_hooks hooks = {.alloc = local_recorder_fn(hw, heap_image()->hook_alloc),
				 .dalloc = local_recorder_fn(hw, heap_image()->hook_dalloc),
				 .expand = local_recorder_fn(hw, heap_image()->hook_expand)};
	void *handle = NULL;
	size_t n = sizeof(handle);
	if (ctl("experimental.hooks.install", &handle, &n, &hooks, sizeof(hooks)))
		tap_skip("this jemalloc has no hooks");
	void *(*je_malloc)(size_t) = (void *(*)(size_t))je("malloc");
	void *(*je_calloc)(size_t, size_t) = (void *(*)(size_t, size_t))je("calloc");
	void *(*je_realloc)(void *, size_t) = (void *(*)(void *, size_t))je("realloc");
	int (*je_memalign)(void **, size_t, size_t) =
		(int (*)(void **, size_t, size_t))je("posix_memalign");
	void *(*je_aligned)(size_t, size_t) = (void *(*)(size_t, size_t))je("aligned_alloc");
	void *(*je_mallocx)(size_t, int) = (void *(*)(size_t, int))je("mallocx");
	void *(*je_rallocx)(void *, size_t, int) = (void *(*)(void *, size_t, int))je("rallocx");
	void (*je_free)(void *) = (void (*)(void *))je("free");

	void *p = je_malloc(100);
	CHECK_EVENT(HEAP_RECORD_ALLOC, p, 100);
	void *q = je_realloc(p, 5000);
	CHECK_EVENT(HEAP_RECORD_ALLOC, q, 5000);
	CHECK_EVENT(HEAP_RECORD_FREE, p, 0);
	je_free(q);
	CHECK_EVENT(HEAP_RECORD_FREE, q, 0);
	p = je_calloc(7, 9);
	CHECK_EVENT(HEAP_RECORD_ALLOC, p, 63);
	CHECK(je_memalign(&q, 64, 77) == 0);
	CHECK_EVENT(HEAP_RECORD_ALLOC, q, 77);
	je_free(q);
	CHECK_EVENT(HEAP_RECORD_FREE, q, 0);
	CHECK(je_memalign(&q, 3, 77) != 0);
	q = je_aligned(64, 128);
	CHECK_EVENT(HEAP_RECORD_ALLOC, q, 128);
	void *r = je_mallocx(33, 0);
	CHECK_EVENT(HEAP_RECORD_ALLOC, r, 33);
	void *s = je_rallocx(r, 9999, 0);
	CHECK_EVENT(HEAP_RECORD_ALLOC, s, 9999);
	CHECK_EVENT(HEAP_RECORD_FREE, r, 0);
	je_free(p);
	CHECK_EVENT(HEAP_RECORD_FREE, p, 0);
	je_free(q);
	CHECK_EVENT(HEAP_RECORD_FREE, q, 0);
	CHECK(ctl("experimental.hooks.remove", NULL, NULL, &handle, sizeof(handle)) == 0);
	je_free(s);
	struct heap_seen rest;
	CHECK(!next_event(&rest));
	local_recorder_free(hw);
}

static NO_FP void *through(void *(*f)(size_t), int depth, size_t n)
{
	if (!depth)
		return f(n);
	void *p = through(f, depth - 1, n);
	sink++;
	return p;
}

/* In a dump of now: how often the same return address follows itself in one stack, at most. */
static uint32_t deepest_recursion(mallctl_fn ctl)
{
	char path[] = "/tmp/assay-heapblob-XXXXXX";
	CLEANUP(close_p) int fd = mkstemp(path);
	const char *arg = path;
	CHECK(fd >= 0 && ctl("prof.dump", NULL, NULL, &arg, sizeof(arg)) == 0);
	CLEANUP(buf_release) struct buf text = {0};
	CHECK(file_read(&text, path, 1 << 24, NULL) == 0);
	unlink(path);
	const char *line = strstr(buf_str(&text), "@ 0x");
	uint32_t nr_most = 0;
	for (; line; line = strstr(line + 1, "@ 0x")) {
		uint32_t nr = 0, nr_same = 0;
		uint64_t last = 0;
		const char *end = strchr(line, '\n');
		for (const char *at = line + 2; at < end && *at == '0'; nr++) {
			char *next_at = NULL;
			uint64_t addr = strtoull(at, &next_at, 16);
			nr_same += addr == last;
			last = addr;
			at = next_at + (*next_at == ' ');
		}
		nr_most = MAX(nr_most, nr_same);
	}
	return nr_most;
}

TEST(heapblob_unwinds_for_jemalloc_s_profiler)
{
	if (run_with_room("heapblob_unwinds_for_jemalloc_s_profiler"))
		return;
	begin(&every);
	mallctl_fn ctl = open_jemalloc("prof:true,prof_active:true,lg_prof_sample:0");
	heap_fn ours = local_recorder_fn(hw, heap_image()->prof_backtrace);
	uint64_t former = 0;
	size_t nr = sizeof(former);
	if (ctl("experimental.hooks.prof_backtrace", &former, &nr, &ours, sizeof(ours)))
		tap_skip("this jemalloc has no profiler");
	void *(*je_malloc)(size_t) = (void *(*)(size_t))je("malloc");
	CHECK(through(je_malloc, 9, 123456) != NULL);
	uint32_t nr_most = deepest_recursion(ctl);
	CHECK(nr_most >= 8 && nr_most < 20);

	/* Stopped, it asks the former function; where there is none, a stack is empty. */
	local_recorder_stop(hw);
	CHECK(through(je_malloc, 24, 1234) != NULL);
	CHECK(deepest_recursion(ctl) == nr_most);
	hw->data->original[0] = former;
	CHECK(through(je_malloc, 24, 12345) != NULL);
	nr_most = deepest_recursion(ctl);
	CHECK(nr_most >= 23 && nr_most < 30);

	/* So it does when assay has been silent for too long, and then for good. */
	hw->local->assay_timeout_tsc = 1;
	hw->shared->alive_tsc = 1;
	local_recorder_start(hw);
	CHECK(through(je_malloc, 40, 1234567) != NULL);
	CHECK(deepest_recursion(ctl) >= 39);
	CHECK(!hw->local->is_active && hw->shared->went_inert_tsc);
	local_recorder_free(hw);
}
#endif
