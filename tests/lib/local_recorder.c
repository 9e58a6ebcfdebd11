#include "base/base.h"
#include "local_recorder.h"

#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"

#define HWCAP_FSGSBASE 2
#define PAGE           4096u
#define NR_ROWS        (1u << 21)
#define STUB_BYTES     32u
#define PTHREAD_TID    0x2d0 /* glibc on x86-64 */

static void *map_memory(size_t n)
{
	void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		       -1, 0);
	ASSERT(p != MAP_FAILED);
	return p;
}

static uint64_t address(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static bool load_image(struct local_recorder *h)
{
	const struct heap_image *im = heap_image();
	size_t n;
	const uint8_t *bytes = heap_image_bytes(&n);

	if (!n)
		return false;
	int fd = memfd_create("assay-heap", MFD_CLOEXEC);
	ASSERT(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
	h->image = map_memory(im->data_start + im->data_bytes);
	void *text = mmap(h->image, im->text_bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED,
			  fd, 0);
	void *data = mmap(h->image + im->data_start, im->data_bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_FIXED, fd, (off_t)im->data_start);
	ASSERT(text != MAP_FAILED && data != MAP_FAILED);
	close(fd);
	h->data = (void *)(h->image + im->data);
	ASSERT(h->data->magic == HEAP_WIRE_MAGIC && h->data->version == HEAP_WIRE_VERSION);
	return true;
}

static bool find_space(void *ctx, int32_t pid, uint32_t *ret_idx)
{
	(void)ctx, (void)pid;
	*ret_idx = 0;
	return true;
}

static uint64_t stack_start(uint64_t end)
{
	/* As /proc/self/maps has it; the tests' own frames are all above. */
	return (address(__builtin_frame_address(0)) & ~(uint64_t)(PAGE - 1)) < end
		       ? address(__builtin_frame_address(0)) & ~(uint64_t)(PAGE - 1)
		       : end;
}

bool local_recorder_refresh(struct local_recorder *h)
{
	if (!unwind_process_refresh(&h->process))
		return false;
	kerneltables_changed(&h->k, 1, h->process.space);
	kerneltables_applied(&h->k, 1, 1);
	return kerneltables_is_published(&h->k, 1);
}

static void make_tables(struct local_recorder *h)
{
	h->k.spec.head = map_memory(KTABLES_HEAD_BYTES + NR_ROWS * sizeof(struct unwind_row));
	kerneltables_init(&h->k, &(struct kerneltables_spec){.head = h->k.spec.head,
							     .nr_rows = NR_ROWS,
							     .find_space = find_space});
	ASSERT(local_recorder_refresh(h));
	h->local->tables = address(h->k.spec.head);
	h->local->tables_rows = NR_ROWS;
}

static void make_memory(struct local_recorder *h, const struct local_recorder_spec *spec)
{
	struct heap_local *l = map_memory(PAGE);
	uint32_t nr_slots = spec->nr_slots ? spec->nr_slots : 64;
	uint32_t ring_bytes = spec->ring_bytes ? spec->ring_bytes : 1u << 20;

	h->local = l;
	l->generation = 1;
	l->nr_slots = nr_slots;
	l->ring_bytes = ring_bytes;
	l->slots_off = sizeof(struct heap_shared);
	l->rings_off =
		(l->slots_off + nr_slots * sizeof(struct heap_slot) + PAGE - 1) / PAGE * PAGE;
	l->shared_bytes = l->rings_off + (uint64_t)nr_slots * ring_bytes;
	h->shared = map_memory(l->shared_bytes);
	h->slots = (void *)((uint8_t *)h->shared + l->slots_off);
	h->rings = (uint8_t *)h->shared + l->rings_off;
	l->shared = address(h->shared);
	l->thread_states = address(map_memory((size_t)nr_slots * HEAP_THREAD_STATE_BYTES));
	l->pythons = address(map_memory((size_t)nr_slots * HEAP_PYTHON_STATE_BYTES));
	l->nr_stacks = spec->nr_stacks ? spec->nr_stacks : 65536;
	l->stacks = address(map_memory((size_t)l->nr_stacks * 8));
	l->nr_blocks = spec->is_full_trace ? 0 : spec->nr_blocks ? spec->nr_blocks : 65536;
	l->blocks = l->nr_blocks ? address(map_memory(HEAP_BLOCKS_BYTES(l->nr_blocks))) : 0;
	l->nr_rules = HEAP_RULES_DEFAULT;
	l->rules = address(map_memory((size_t)l->nr_rules * 16));
	l->main_stack_hi = h->process.stack_end;
	l->main_stack_lo = stack_start(l->main_stack_hi);
	l->image_lo = address(h->image);
	l->image_hi = l->image_lo + heap_image()->text_bytes;
	l->is_full_trace = spec->is_full_trace;
	l->interval_bytes = spec->interval_bytes;
	l->always_bytes = spec->is_full_trace || spec->starts_full ? 0 : spec->interval_bytes;
	l->wait_tsc = spec->wait_tsc;
	l->assay_timeout_tsc = spec->assay_timeout_tsc ? spec->assay_timeout_tsc : INT64_MAX;
	l->flags = spec->has_no_kernel ? 0 : HEAP_SYSCALLS_ALLOWED;
	if (getauxval(AT_HWCAP2) & HWCAP_FSGSBASE && !spec->has_no_kernel)
		l->flags |= HEAP_HAS_FSGSBASE;
	l->tid_off = PTHREAD_TID;
	h->shared->magic = HEAP_WIRE_MAGIC;
	h->shared->version = HEAP_WIRE_VERSION;
}

struct local_recorder *local_recorder_new(const struct local_recorder_spec *spec)
{
	struct local_recorder *h = xcalloc(1, sizeof(*h));

	if (!load_image(h)) {
		free(h);
		return NULL;
	}
	h->stubs = map_memory(HEAP_SITES_MAX * STUB_BYTES);
	ASSERT(!mprotect(h->stubs, HEAP_SITES_MAX * STUB_BYTES,
			 PROT_READ | PROT_WRITE | PROT_EXEC));
	ASSERT(unwind_process_init(&h->process));
	make_memory(h, spec);
	if (!spec->has_no_tables)
		make_tables(h);
	return h;
}

void local_recorder_free(struct local_recorder *h)
{
	/* Its memory stays: the process ends soon, and a thread may be in the image. */
	h->data->local = 0;
	if (h->local->tables)
		kerneltables_release(&h->k);
	unwind_process_release(&h->process);
	free(h);
}

heap_fn local_recorder_fn(const struct local_recorder *h, uint64_t off)
{
	return (heap_fn)(uintptr_t)(h->image + off);
}

/* mov $site, %r11d; jmp *2(%rip); then the entry's address */
heap_fn local_recorder_hook(struct local_recorder *h, enum heap_shape shape, heap_fn original)
{
	uint32_t site = h->nr_sites++;
	uint8_t *p = h->stubs + site * STUB_BYTES;
	uint8_t code[] = {0x41, 0xbb, (uint8_t)site, (uint8_t)(site >> 8), 0, 0, 0xff, 0x25, 0, 0,
			  0,    0};
	uint64_t entry = address(h->image) + heap_image()->entry[shape];

	h->data->original[site] = (uint64_t)(uintptr_t)original;
	memcpy(p, code, sizeof(code));
	memcpy(p + sizeof(code), &entry, 8);
	return (heap_fn)(uintptr_t)p;
}

void local_recorder_start(struct local_recorder *h)
{
	h->data->local = address(h->local);
	__atomic_store_n(&h->local->is_active, 1, __ATOMIC_SEQ_CST);
}

void local_recorder_stop(struct local_recorder *h)
{
	__atomic_store_n(&h->local->is_active, 0, __ATOMIC_SEQ_CST);
}

struct heap_slot *local_recorder_slot(const struct local_recorder *h)
{
	uint64_t tp;
	__asm__ volatile("mov %%fs:0, %0" : "=r"(tp));
	for (uint32_t i = 0; i < h->local->nr_slots; i++)
		if (h->slots[i].owner == tp)
			return &h->slots[i];
	return NULL;
}

void local_recorder_skip(struct heap_slot *s)
{
	__atomic_store_n(&s->tail, __atomic_load_n(&s->head, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
}

static uint32_t take_apart(const uint64_t *p, struct heap_seen *r)
{
	r->kind = (enum heap_record)(p[0] & HEAP_KIND_MASK);
	r->site = (uint32_t)(p[0] >> HEAP_SITE_SHIFT) & 0xff;
	r->tsc = p[0] >> HEAP_TSC_SHIFT;
	r->block = p[1] & HEAP_ADDR_MASK;
	switch (r->kind) {
	case HEAP_RECORD_ALLOC:
	case HEAP_RECORD_ALLOC_ALL:
	case HEAP_RECORD_MAP:
		r->n = p[2] & HEAP_ADDR_MASK;
		r->stack = (uint32_t)(p[1] >> HEAP_STACK_SHIFT) |
			   (uint32_t)(p[2] >> HEAP_STACK_SHIFT) << 16;
		return 3;
	case HEAP_RECORD_UNMAP:
		r->n = p[2];
		return 3;
	case HEAP_RECORD_FREE:
		return 2;
	case HEAP_RECORD_STACK:
		r->stack = (uint32_t)p[1];
		r->nr_frames = (uint32_t)(p[1] >> 32) & 0xffff;
		r->end = (uint32_t)(p[1] >> 48);
		ASSERT(r->nr_frames <= HEAP_FRAMES_MAX);
		memcpy(r->frames, p + 2, r->nr_frames * sizeof(uint64_t));
		return 2 + r->nr_frames;
	case HEAP_RECORD_PYCODE:
		r->pycode = (const void *)(p + 2);
		return 2 + (uint32_t)((p[1] + 7) / 8);
	case HEAP_RECORD_PYSTACK:
		r->stack = (uint32_t)p[1];
		r->native_stack = (uint32_t)(p[1] >> 32);
		r->nr_frames = (uint32_t)p[2];
		r->end = (uint32_t)(p[2] >> 32);
		r->python = (const void *)(p + 3);
		return 3 + 2 * r->nr_frames;
	default:
		BUG("record of kind %d", (int)r->kind);
	}
}

bool local_recorder_next(const struct local_recorder *h, struct heap_slot *s, struct heap_seen *ret)
{
	uint32_t size = h->local->ring_bytes;
	const uint8_t *ring = h->rings + (size_t)(s - h->slots) * size;

	for (;;) {
		uint64_t head = __atomic_load_n(&s->head, __ATOMIC_ACQUIRE);
		uint64_t off = s->tail % size;
		ASSERT(head - s->tail <= size && head % 8 == 0);
		if (head == s->tail)
			return false;
		const uint64_t *p = (const void *)(ring + off);
		if (*p == HEAP_RECORD_PAD) {
			__atomic_store_n(&s->tail, s->tail + size - off, __ATOMIC_RELEASE);
			continue;
		}
		ret->tid = s->tid;
		uint32_t nr = take_apart(p, ret);
		ASSERT(off + nr * 8 <= size);
		__atomic_store_n(&s->tail, s->tail + nr * 8, __ATOMIC_RELEASE);
		return true;
	}
}
