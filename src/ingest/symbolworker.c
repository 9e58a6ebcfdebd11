/*
 * Symbolizes locations on a worker thread; see symbolworker.h. A batch has the new locations of one
 * module:
 *
 *	owner thread                          worker thread
 *	batch_new ─► queue ────────────────► name_batch: symbolizer / kallsyms / perf map
 *	apply  ◄──────────────── done ◄───── results in the batch's own arena
 */
#include "base/base.h"
#include "ingest/symbolworker.h"

#include <pthread.h>
#include <time.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "symbol/demangle.h"
#include "symbol/kallsyms.h"
#include "symbol/perfmap.h"
#include "symbol/symbolizer.h"

struct named_frame {
	const char *name; /* as shown, or NULL: module!fn_... is made by apply() */
	const char *linkage;
	const char *file;
	const char *module; /* kernel module's name, or NULL */
	uint64_t func_start;
	uint32_t line;
	bool is_inlined;
	bool is_guessed;
};

struct named_loc {
	struct named_frame *frames;
	uint32_t nr;
	enum loss_kind unsym;
};

struct batch {
	struct batch *next;
	struct ingest_module *module;
	VEC(loc_id) locs;
	VEC(uint64_t) addrs; /* look-up addresses: link-time, or absolute for kernel and JIT */
	struct named_loc *results;
	struct elf *elf; /* of the module, with its first batch */
	struct arena arena;
};

/* Used by the worker thread only, by module index. */
struct worker_module {
	struct symbolizer *symbolizer;
	struct perfmap *perfmap;
	struct debug_search search;
	bool is_tried;
};

struct symbolworker {
	struct profile *p;
	struct modules *modules;
	const struct file_access *files;
	struct symbolworker_options options;
	size_t next_loc; /* first location that was not submitted */
	VEC(loc_id) jit_waiting;
	struct map module_idx; /* module_id -> index + 1 into states; worker only */
	VEC(struct worker_module *) states;
	struct intern texts; /* of all results; added by the worker only, texts do not move */
	struct map shown;    /* id of a linkage name in texts -> id of its shown name */
	struct kallsyms *kallsyms;
	bool is_cached_kallsyms_tried;
	bool is_kallsyms_tried;
	struct map str_of; /* address of a text -> its id in the profile; owner only */

	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t changed;
	struct batch *queue;
	struct batch **queue_tail;
	struct batch *done;
	struct batch **done_tail;
	uint64_t nr_submitted;
	uint64_t nr_done;
	uint64_t nr_batches_open;
	uint64_t cpu_ns;
	bool is_ending;
};

static void batch_free(struct batch *b)
{
	elf_free(b->elf);
	vec_release(&b->locs);
	vec_release(&b->addrs);
	arena_release(&b->arena);
	free(b);
}

/* ---- worker thread ----------------------------------------------------------------------- */

/* Interns a text: locations share functions and files, so each is stored once. */
static const char *keep(struct symbolworker *n, struct sv s)
{
	return s.n ? intern_str(&n->texts, intern_add(&n->texts, s.p, s.n)) : NULL;
}

/* Returns the demangled name, cached by linkage name: demangling takes 1 us. */
static const char *shown_name(struct symbolworker *n, struct sv linkage)
{
	if (!linkage.n)
		return NULL;
	bool is_new;
	uint32_t id = intern_add(&n->texts, linkage.p, linkage.n);
	uint32_t *shown = map_put(&n->shown, id, &is_new);
	if (is_new) {
		CLEANUP(buf_release) struct buf text = {0};
		demangle(&text, linkage, n->options.demangle_flags);
		*shown = intern_add(&n->texts, buf_str(&text), text.n);
	}
	return intern_str(&n->texts, *shown);
}

struct query {
	struct symbolworker *n;
	struct batch *b;
};

static void take_result(void *ctx, size_t i, const struct symbol_frame *frames, size_t nr,
			enum symbol_source source)
{
	struct query *q = ctx;
	struct named_loc *r = &q->b->results[i];
	nr = MIN(nr, (size_t)UINT16_MAX);
	if (!nr || source == SYMBOL_NONE) {
		r->unsym = LOSS_UNSYM_STRIPPED;
		return;
	}
	r->frames = arena_calloc(&q->b->arena, nr, sizeof(*r->frames));
	r->nr = (uint32_t)nr;
	for (size_t k = 0; k < nr; k++) {
		const struct symbol_frame *f = &frames[k];
		r->frames[k] = (struct named_frame){.name = shown_name(q->n, f->linkage),
						    .linkage = keep(q->n, f->linkage),
						    .file = keep(q->n, f->file),
						    .func_start = f->func_start,
						    .line = f->line,
						    .is_inlined = f->is_inlined,
						    .is_guessed = f->is_guessed};
	}
}

static struct worker_module *state_of(struct symbolworker *n, const struct ingest_module *im)
{
	uint32_t *idx = map_put(&n->module_idx, im->unwind.id, NULL);
	if (!*idx) {
		vec_push(&n->states, xcalloc(1, sizeof(struct worker_module)));
		*idx = (uint32_t)n->states.n;
	}
	return n->states.p[*idx - 1];
}

static void all_unnamed(struct batch *b, enum loss_kind why)
{
	for (size_t i = 0; i < b->locs.n; i++)
		if (!b->results[i].nr)
			b->results[i].unsym = why;
}

static void name_elf(struct symbolworker *n, struct batch *b)
{
	struct ingest_module *im = b->module;
	struct worker_module *w = state_of(n, im);
	if (!w->is_tried) {
		w->is_tried = true;
		w->search = (struct debug_search){im->root_fd, n->options.debug_dirs,
						  n->options.nr_debug_dirs};
		struct elf *elf = TAKE(b->elf);
		if (elf) {
			w->symbolizer = symbolizer_new(elf, im->path, &w->search,
						       n->options.symbolizer_flags);
			symbolizer_use_cache(w->symbolizer, n->options.cache_dir);
		}
	}
	if (!w->symbolizer) {
		all_unnamed(b, im->missing == MODULE_CHANGED ? LOSS_UNSYM_CHANGED
							     : LOSS_UNSYM_NO_FILE);
		return;
	}
	struct query q = {n, b};
	if (symbolizer_query(w->symbolizer, b->addrs.p, b->addrs.n, take_result, &q, NULL))
		all_unnamed(b, LOSS_UNSYM_STRIPPED);
}

/* Reads kernel symbols with @read, once; the previous ones stay if it has none. */
static void load_kallsyms(struct symbolworker *n, int (*read)(void *ctx, struct buf *to),
			  bool *is_tried)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct kallsyms *k;
	if (*is_tried)
		return;
	*is_tried = true;
	if (!read || read(n->files->ctx, &text) || kallsyms_parse(&k, buf_sv(&text), NULL))
		return;
	kallsyms_free(n->kallsyms);
	n->kallsyms = k;
}

static bool find_kernel(struct symbolworker *n, uint64_t addr, struct sv *ret_name,
			struct sv *ret_module, uint64_t *ret_start)
{
	load_kallsyms(n, n->files->read_cached_kallsyms, &n->is_cached_kallsyms_tried);
	if (n->kallsyms && kallsyms_find(n->kallsyms, addr, ret_name, ret_module, ret_start))
		return true;
	if (n->is_kallsyms_tried)
		return false;
	load_kallsyms(n, n->files->read_kallsyms, &n->is_kallsyms_tried);
	return n->kallsyms && kallsyms_find(n->kallsyms, addr, ret_name, ret_module, ret_start);
}

static void name_kernel(struct symbolworker *n, struct batch *b)
{
	for (size_t i = 0; i < b->locs.n; i++) {
		struct named_loc *r = &b->results[i];
		struct sv name;
		struct sv module;
		uint64_t start;
		if (!find_kernel(n, b->addrs.p[i], &name, &module, &start)) {
			r->unsym = LOSS_UNSYM_KERNEL;
			continue;
		}
		r->frames = arena_calloc(&b->arena, 1, sizeof(*r->frames));
		r->nr = 1;
		r->frames[0] = (struct named_frame){
			.name = keep(n, name), .module = keep(n, module), .func_start = start};
	}
}

/* Reads the symbols of JIT code: from its jitdump, else its perf map. NULL: none. */
static struct perfmap *read_jit_names(struct symbolworker *n, const struct ingest_module *im)
{
	const struct file_access *o = n->files;
	struct perfmap *map = NULL;
	CLEANUP(buf_release) struct buf bytes = {0};
	if (im->jitdump && o->read_jitdump &&
	    !o->read_jitdump(o->ctx, im->pid, im->jitdump, &bytes) &&
	    !perfmap_parse_jitdump(&map, buf_sv(&bytes), NULL))
		return map;
	buf_clear(&bytes);
	if (o->read_perfmap && !o->read_perfmap(o->ctx, im->pid, &bytes) &&
	    !perfmap_parse(&map, buf_sv(&bytes), NULL))
		return map;
	return NULL;
}

static void name_jit(struct symbolworker *n, struct batch *b)
{
	struct worker_module *w = state_of(n, b->module);
	if (!w->is_tried) {
		w->is_tried = true;
		w->perfmap = read_jit_names(n, b->module);
	}
	for (size_t i = 0; i < b->locs.n; i++) {
		struct named_loc *r = &b->results[i];
		struct sv name;
		struct sv file;
		uint64_t start;
		uint32_t line;
		if (!w->perfmap ||
		    !perfmap_find(w->perfmap, b->addrs.p[i], 0, &name, &start, &file, &line)) {
			r->unsym = LOSS_UNSYM_JIT;
			continue;
		}
		r->frames = arena_calloc(&b->arena, 1, sizeof(*r->frames));
		r->nr = 1;
		r->frames[0] = (struct named_frame){.name = shown_name(n, name),
						    .linkage = keep(n, name),
						    .file = keep(n, file),
						    .line = line,
						    .func_start = start};
	}
}

static void name_batch(struct symbolworker *n, struct batch *b)
{
	b->results = arena_calloc(&b->arena, b->locs.n, sizeof(*b->results));
	switch (b->module->kind) {
	case MODULE_ELF:
	case MODULE_VDSO:
		name_elf(n, b);
		break;
	case MODULE_KERNEL:
	case MODULE_KMODULE:
		name_kernel(n, b);
		break;
	case MODULE_JIT:
		name_jit(n, b);
		break;
	case MODULE_UNKNOWN:
		all_unnamed(b, LOSS_UNSYM_NO_MAP);
		break;
	case MODULE_NONE:
	case MODULE_PSEUDO:
	case MODULE_NAMED:
		BUG("locations of module kind %d need no symbolization", (int)b->module->kind);
	}
}

static void *worker_main(void *arg)
{
	struct symbolworker *n = arg;
	if (n->options.on_thread_start)
		n->options.on_thread_start();
	pthread_mutex_lock(&n->lock);
	for (;;) {
		while (!n->queue && !n->is_ending)
			pthread_cond_wait(&n->changed, &n->lock);
		struct batch *b = n->queue;
		if (!b)
			break;
		n->queue = b->next;
		if (!n->queue)
			n->queue_tail = &n->queue;
		b->next = NULL;
		pthread_mutex_unlock(&n->lock);

		name_batch(n, b);
		uint64_t cpu_ns = clock_thread_cpu_ns();

		pthread_mutex_lock(&n->lock);
		n->cpu_ns = cpu_ns;
		*n->done_tail = b;
		n->done_tail = &b->next;
		n->nr_done += b->locs.n;
		n->nr_batches_open--;
		pthread_cond_broadcast(&n->changed);
	}
	pthread_mutex_unlock(&n->lock);
	return NULL;
}

/* ---- owner's thread ---------------------------------------------------------------------- */

struct symbolworker *symbolworker_new(struct profile *p, struct modules *m,
				      const struct file_access *files,
				      const struct symbolworker_options *options)
{
	struct symbolworker *n = xcalloc(1, sizeof(*n));
	n->p = p;
	n->modules = m;
	n->files = files;
	n->options = *options;
	n->next_loc = 1;
	n->queue_tail = &n->queue;
	n->done_tail = &n->done;
	pthread_mutex_init(&n->lock, NULL);
	pthread_cond_init(&n->changed, NULL);
	return n;
}

void symbolworker_free(struct symbolworker *n)
{
	if (!n)
		return;
	if (n->has_thread) {
		pthread_mutex_lock(&n->lock);
		n->is_ending = true;
		pthread_cond_broadcast(&n->changed);
		pthread_mutex_unlock(&n->lock);
		pthread_join(n->thread, NULL);
	}
	while (n->done) {
		struct batch *b = n->done;
		n->done = b->next;
		batch_free(b);
	}
	vec_foreach(w, &n->states) {
		symbolizer_free((*w)->symbolizer);
		perfmap_free((*w)->perfmap);
		free(*w);
	}
	kallsyms_free(n->kallsyms);
	vec_release(&n->states);
	vec_release(&n->jit_waiting);
	intern_release(&n->texts);
	map_release(&n->shown);
	map_release(&n->str_of);
	map_release(&n->module_idx);
	pthread_cond_destroy(&n->changed);
	pthread_mutex_destroy(&n->lock);
	free(n);
}

static void enqueue(struct symbolworker *n, struct batch *b)
{
	pthread_mutex_lock(&n->lock);
	*n->queue_tail = b;
	n->queue_tail = &b->next;
	n->nr_submitted += b->locs.n;
	n->nr_batches_open++;
	pthread_cond_broadcast(&n->changed);
	pthread_mutex_unlock(&n->lock);
	if (!n->has_thread) {
		if (pthread_create(&n->thread, NULL, worker_main, n))
			BUG("cannot start a thread");
		n->has_thread = true;
	}
}

/* Returns the address to look up: of a return address, the byte before it, inside the call. */
static uint64_t lookup_address(const struct ingest_module *im, const struct location *l)
{
	uint64_t offset = l->offset - ((l->flags & LOCATION_CALL) ? 1 : 0);
	return im->has_absolute_offsets ? offset : module_vaddr(im, offset);
}

/* Queues locations, sorted by module, so that one batch has all of a module's. */
static void submit_locs(struct symbolworker *n, const loc_id *locs, size_t nr)
{
	struct batch **by_module = xcalloc(n->p->modules.n, sizeof(struct batch *));
	for (size_t i = 0; i < nr; i++) {
		const struct location *l = &n->p->locations.p[locs[i]];
		struct ingest_module *im = modules_by_id(n->modules, l->module);
		if (!im)
			continue;
		struct batch **b = &by_module[l->module];
		if (!*b) {
			*b = xcalloc(1, sizeof(**b));
			(*b)->module = im;
			(*b)->elf = TAKE(im->elf); /* no longer needed for unwinding */
		}
		vec_push(&(*b)->locs, locs[i]);
		vec_push(&(*b)->addrs, lookup_address(im, l));
	}
	for (size_t m = 0; m < n->p->modules.n; m++)
		if (by_module[m])
			enqueue(n, by_module[m]);
	free(by_module);
}

void symbolworker_submit(struct symbolworker *n)
{
	VEC(loc_id) locs = {0};
	for (; n->next_loc < n->p->locations.n; n->next_loc++) {
		const struct location *l = &n->p->locations.p[n->next_loc];
		if (l->flags & LOCATION_SYMBOLIZED)
			continue;
		if (n->p->modules.p[l->module].kind == MODULE_JIT)
			vec_push(&n->jit_waiting, (loc_id)n->next_loc);
		else
			vec_push(&locs, (loc_id)n->next_loc);
	}
	submit_locs(n, locs.p, locs.n);
	vec_release(&locs);
}

void symbolworker_submit_jit(struct symbolworker *n)
{
	submit_locs(n, n->jit_waiting.p, n->jit_waiting.n);
	vec_clear(&n->jit_waiting);
}

/* Makes the name "module!fn_1a2b0" for stripped code, by the start of the function. */
static str_id guessed_name(struct symbolworker *n, module_id module, uint64_t start)
{
	CLEANUP(buf_release) struct buf text = {0};
	buf_addf(&text, "%s!fn_%" PRIx64, profile_module_name(n->p, module), start);
	return profile_str(n->p, text.p, text.n);
}

static module_id kernel_module(struct symbolworker *n, module_id kernel, const char *name)
{
	if (!name)
		return kernel;
	CLEANUP(buf_release) struct buf path = {0};
	buf_addf(&path, "[%s]", name);
	return profile_module(n->p, &(struct module){.kind = MODULE_KMODULE,
						     .path = profile_str(n->p, path.p, path.n)});
}

static str_id text_id(struct symbolworker *n, const char *text)
{
	if (!text)
		return 0;
	bool is_new;
	str_id *id = map_put(&n->str_of, (uintptr_t)text, &is_new);
	if (is_new)
		*id = profile_cstr(n->p, text);
	return *id;
}

static void apply_loc(struct symbolworker *n, const struct batch *b, size_t i)
{
	const struct named_loc *r = &b->results[i];
	loc_id loc = b->locs.p[i];
	module_id module = b->module->unwind.id;
	CLEANUP(free_p) struct frame *frames = xcalloc(r->nr, sizeof(*frames));
	bool is_kernel = b->module->kind == MODULE_KERNEL;
	for (uint32_t k = 0; k < r->nr; k++) {
		const struct named_frame *f = &r->frames[k];
		struct function fn = {.name = f->name ? text_id(n, f->name)
						      : guessed_name(n, module, f->func_start),
				      .module = kernel_module(n, module, f->module),
				      .start = f->func_start,
				      .flags = (f->is_guessed ? FUNC_GUESSED : 0) |
					       (is_kernel ? FUNC_KERNEL : 0) |
					       (b->module->kind == MODULE_JIT ? FUNC_JIT : 0)};
		if (f->linkage && f->linkage != f->name)
			fn.linkage = text_id(n, f->linkage);
		frames[k] = (struct frame){.func = profile_function(n->p, &fn),
					   .file = text_id(n, f->file),
					   .line = f->line,
					   .is_inlined = f->is_inlined};
	}
	profile_set_frames(n->p, loc, frames, r->nr, r->unsym);
}

void symbolworker_collect(struct symbolworker *n, unsigned flags)
{
	pthread_mutex_lock(&n->lock);
	while ((flags & SYMBOLWORKER_WAIT) && n->nr_batches_open)
		pthread_cond_wait(&n->changed, &n->lock);
	struct batch *done = n->done;
	n->done = NULL;
	n->done_tail = &n->done;
	pthread_mutex_unlock(&n->lock);
	while (done) {
		struct batch *b = done;
		done = b->next;
		for (size_t i = 0; i < b->locs.n; i++)
			apply_loc(n, b, i);
		batch_free(b);
	}
}

uint64_t symbolworker_cpu_ns(const struct symbolworker *n)
{
	struct symbolworker *m =
		(struct symbolworker *)(uintptr_t)n; /* the lock is not part of the value */
	pthread_mutex_lock(&m->lock);
	uint64_t ns = m->cpu_ns;
	pthread_mutex_unlock(&m->lock);
	return ns;
}

void symbolworker_progress(const struct symbolworker *n, uint64_t *ret_done, uint64_t *ret_total)
{
	struct symbolworker *m = (struct symbolworker *)(uintptr_t)n;
	pthread_mutex_lock(&m->lock);
	*ret_done = m->nr_done;
	*ret_total = m->nr_submitted;
	pthread_mutex_unlock(&m->lock);
}

void symbolworker_redemangle(struct profile *p, unsigned demangle_flags)
{
	ASSERT(!p->is_sealed);
	CLEANUP(buf_release) struct buf text = {0};
	for (size_t i = 1; i < p->functions.n; i++) {
		str_id linkage = p->functions.p[i].linkage;
		if (!linkage)
			continue;
		buf_clear(&text);
		demangle(&text, profile_sv(p, linkage), demangle_flags);
		p->functions.p[i].name = profile_str(p, text.p, text.n);
	}
}
