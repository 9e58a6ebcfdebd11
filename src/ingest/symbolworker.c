/*
 * Symbolizes locations on a worker thread; see symbolworker.h. A batch has the new locations of one
 * module:
 *
 *	owner thread                          worker thread
 *	batch_new ─► queue ────────────────► symbolize_batch: symbolizer / kallsyms / perf map
 *	apply  ◄──────────────── done ◄───── results in the batch's own arena
 */
#include "base/base.h"
#include "ingest/symbolworker.h"

#include <errno.h>
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
	VEC(loc_id) late;      /* of modules that are still loading */
	struct map module_idx; /* module_id -> index + 1 into states; worker only */
	VEC(struct worker_module *) states;
	struct intern texts; /* of all results; added by the worker only, texts do not move */
	struct map shown;    /* id of a linkage name in texts -> id of its shown name */
	struct kallsyms *kallsyms;
	bool is_cached_kallsyms_tried;
	bool is_kallsyms_tried;
	bool is_kernel_hidden; /* kallsyms has no addresses */
	struct map str_of;     /* address of a text -> its id in the profile; owner only */

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
static const char *keep(struct symbolworker *sw, struct sv s)
{
	return s.n ? intern_str(&sw->texts, intern_add(&sw->texts, s.p, s.n)) : NULL;
}

/* Returns the demangled name, cached by linkage name: demangling takes 1 us. */
static const char *shown_name(struct symbolworker *sw, struct sv linkage)
{
	if (!linkage.n)
		return NULL;
	bool is_new;
	uint32_t id = intern_add(&sw->texts, linkage.p, linkage.n);
	uint32_t *shown = map_put(&sw->shown, id, &is_new);
	if (is_new) {
		CLEANUP(buf_release) struct buf text = {0};
		demangle(&text, linkage, sw->options.demangle_flags);
		*shown = intern_add(&sw->texts, buf_str(&text), text.n);
	}
	return intern_str(&sw->texts, *shown);
}

struct query {
	struct symbolworker *sw;
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
		r->frames[k] = (struct named_frame){.name = shown_name(q->sw, f->linkage),
						    .linkage = keep(q->sw, f->linkage),
						    .file = keep(q->sw, f->file),
						    .func_start = f->func_start,
						    .line = f->line,
						    .is_inlined = f->is_inlined,
						    .is_guessed = f->is_guessed};
	}
}

static struct worker_module *state_of(struct symbolworker *sw, const struct ingest_module *im)
{
	uint32_t *idx = map_put(&sw->module_idx, im->unwind.id, NULL);
	if (!*idx) {
		vec_push(&sw->states, xcalloc(1, sizeof(struct worker_module)));
		*idx = (uint32_t)sw->states.n;
	}
	return sw->states.p[*idx - 1];
}

static void all_unnamed(struct batch *b, enum loss_kind why)
{
	for (size_t i = 0; i < b->locs.n; i++)
		if (!b->results[i].nr)
			b->results[i].unsym = why;
}

static void symbolize_elf(struct symbolworker *sw, struct batch *b)
{
	struct ingest_module *im = b->module;
	struct worker_module *w = state_of(sw, im);
	if (!w->is_tried) {
		w->is_tried = true;
		w->search =
			(struct debug_search){sw->files->open_path, im->root_fd,
					      sw->options.debug_dirs, sw->options.nr_debug_dirs};
		struct elf *elf = TAKE(b->elf);
		if (elf) {
			w->symbolizer =
				symbolizer_new(elf, im->path, w->search.open ? &w->search : NULL,
					       sw->options.symbolizer_flags);
			symbolizer_use_cache(w->symbolizer, sw->options.cache_dir);
		}
	}
	if (!w->symbolizer) {
		all_unnamed(b, im->missing == MODULE_CHANGED  ? LOSS_UNSYM_CHANGED
			       : im->missing == MODULE_SILENT ? LOSS_UNSYM_SILENT
							      : LOSS_UNSYM_NO_FILE);
		return;
	}
	struct query q = {sw, b};
	if (symbolizer_query(w->symbolizer, b->addrs.p, b->addrs.n, take_result, &q, NULL))
		all_unnamed(b, LOSS_UNSYM_STRIPPED);
	if (symbolizer_is_silent(w->symbolizer))
		all_unnamed(b, LOSS_UNSYM_SILENT);
}

static void load_cached_kallsyms(struct symbolworker *sw)
{
	CLEANUP(buf_release) struct buf lines = {0};
	if (sw->is_cached_kallsyms_tried)
		return;
	sw->is_cached_kallsyms_tried = true;
	if (sw->files->read_cached_kallsyms &&
	    !sw->files->read_cached_kallsyms(sw->files->ctx, &lines))
		sw->kallsyms = kallsyms_from_sorted(&lines);
}

/* The cached ones stay if there are no others. */
static void load_kallsyms(struct symbolworker *sw)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct kallsyms *k;
	sw->is_kallsyms_tried = true;
	if (!sw->files->read_kallsyms)
		return;
	int rc = sw->files->read_kallsyms(sw->files->ctx, &text)
			 ?: kallsyms_parse(&k, buf_sv(&text), NULL);
	sw->is_kernel_hidden = rc == -EACCES || rc == -EPERM;
	if (rc)
		return;
	kallsyms_free(sw->kallsyms);
	sw->kallsyms = k;
}

static bool find_kernel(struct symbolworker *sw, uint64_t addr, struct sv *ret_name,
			struct sv *ret_module, uint64_t *ret_start)
{
	load_cached_kallsyms(sw);
	if (sw->kallsyms && kallsyms_find(sw->kallsyms, addr, ret_name, ret_module, ret_start))
		return true;
	if (sw->is_kallsyms_tried)
		return false;
	load_kallsyms(sw);
	return sw->kallsyms && kallsyms_find(sw->kallsyms, addr, ret_name, ret_module, ret_start);
}

static void symbolize_kernel(struct symbolworker *sw, struct batch *b)
{
	for (size_t i = 0; i < b->locs.n; i++) {
		struct named_loc *r = &b->results[i];
		struct sv name;
		struct sv module;
		uint64_t start;
		if (!find_kernel(sw, b->addrs.p[i], &name, &module, &start)) {
			r->unsym = sw->is_kernel_hidden ? LOSS_UNSYM_KERNEL : LOSS_UNSYM_NO_KERNEL;
			continue;
		}
		r->frames = arena_calloc(&b->arena, 1, sizeof(*r->frames));
		r->nr = 1;
		r->frames[0] = (struct named_frame){
			.name = keep(sw, name), .module = keep(sw, module), .func_start = start};
	}
}

/* Reads the symbols of JIT code: from its jitdump, else its perf map. NULL: none. */
static struct perfmap *read_jit_names(struct symbolworker *sw, const struct ingest_module *im)
{
	const struct file_access *o = sw->files;
	struct perfmap *map = NULL;
	CLEANUP(buf_release) struct buf bytes = {0};
	if (im->jitdump && o->read_jitdump &&
	    !o->read_jitdump(o->ctx, im->pid, im->jitdump, &bytes) &&
	    !perfmap_parse_jitdump(&map, buf_sv(&bytes), NULL))
		return map;
	CLEANUP(source_close) struct byte_source file = {0};
	if (!o->open_perfmap || o->open_perfmap(o->ctx, im->pid, &file))
		return NULL;
	return perfmap_read(&map, &file, NULL) ? NULL : map;
}

static void symbolize_jit(struct symbolworker *sw, struct batch *b)
{
	struct worker_module *w = state_of(sw, b->module);
	if (!w->is_tried) {
		w->is_tried = true;
		w->perfmap = read_jit_names(sw, b->module);
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
		r->frames[0] = (struct named_frame){.name = shown_name(sw, name),
						    .linkage = keep(sw, name),
						    .file = keep(sw, file),
						    .line = line,
						    .func_start = start};
	}
}

static void name_all(struct symbolworker *sw, struct batch *b, struct sv name)
{
	struct named_frame *frame = arena_calloc(&b->arena, 1, sizeof(*frame));
	frame->name = keep(sw, name);
	for (size_t i = 0; i < b->locs.n; i++) {
		b->results[i].frames = frame;
		b->results[i].nr = 1;
	}
}

/* Names addresses in one of the kernel's pages by that page: it has no functions. */
static void symbolize_unknown(struct symbolworker *sw, struct batch *b)
{
	struct sv page = sv_from_str(b->module->path);
	if (sv_eq(page, SV(MODULES_UNKNOWN)))
		all_unnamed(b, LOSS_UNSYM_NO_MAP);
	else
		name_all(sw, b, page);
}

static void symbolize_batch(struct symbolworker *sw, struct batch *b)
{
	b->results = arena_calloc(&b->arena, b->locs.n, sizeof(*b->results));
	/* Its functions are of no interest to whoever profiles the process. */
	if (modules_is_recorder(b->module->path)) {
		name_all(sw, b, SV("[assay heap recorder]"));
		return;
	}
	switch (b->module->kind) {
	case MODULE_ELF:
	case MODULE_VDSO:
		symbolize_elf(sw, b);
		break;
	case MODULE_KERNEL:
	case MODULE_KMODULE:
		symbolize_kernel(sw, b);
		break;
	case MODULE_JIT:
		symbolize_jit(sw, b);
		break;
	case MODULE_UNKNOWN:
		symbolize_unknown(sw, b);
		break;
	case MODULE_NONE:
	case MODULE_PSEUDO:
	case MODULE_NAMED:
		BUG("locations of module kind %d need no symbolization", (int)b->module->kind);
	}
}

static void *worker_main(void *arg)
{
	struct symbolworker *sw = arg;
	if (sw->options.on_thread_start)
		sw->options.on_thread_start();
	pthread_mutex_lock(&sw->lock);
	for (;;) {
		while (!sw->queue && !sw->is_ending)
			pthread_cond_wait(&sw->changed, &sw->lock);
		struct batch *b = sw->queue;
		if (!b)
			break;
		sw->queue = b->next;
		if (!sw->queue)
			sw->queue_tail = &sw->queue;
		b->next = NULL;
		pthread_mutex_unlock(&sw->lock);

		symbolize_batch(sw, b);
		uint64_t cpu_ns = clock_thread_cpu_ns();

		pthread_mutex_lock(&sw->lock);
		sw->cpu_ns = cpu_ns;
		*sw->done_tail = b;
		sw->done_tail = &b->next;
		sw->nr_done += b->locs.n;
		sw->nr_batches_open--;
		pthread_cond_broadcast(&sw->changed);
	}
	pthread_mutex_unlock(&sw->lock);
	return NULL;
}

/* ---- owner's thread ---------------------------------------------------------------------- */

struct symbolworker *symbolworker_new(struct profile *p, struct modules *m,
				      const struct file_access *files,
				      const struct symbolworker_options *options)
{
	struct symbolworker *sw = xcalloc(1, sizeof(*sw));
	sw->p = p;
	sw->modules = m;
	sw->files = files;
	sw->options = *options;
	sw->next_loc = 1;
	sw->queue_tail = &sw->queue;
	sw->done_tail = &sw->done;
	pthread_mutex_init(&sw->lock, NULL);
	pthread_cond_init(&sw->changed, NULL);
	return sw;
}

void symbolworker_free(struct symbolworker *sw)
{
	if (!sw)
		return;
	if (sw->has_thread) {
		pthread_mutex_lock(&sw->lock);
		sw->is_ending = true;
		pthread_cond_broadcast(&sw->changed);
		pthread_mutex_unlock(&sw->lock);
		pthread_join(sw->thread, NULL);
	}
	while (sw->done) {
		struct batch *b = sw->done;
		sw->done = b->next;
		batch_free(b);
	}
	vec_foreach(w, &sw->states) {
		symbolizer_free((*w)->symbolizer);
		perfmap_free((*w)->perfmap);
		free(*w);
	}
	kallsyms_free(sw->kallsyms);
	vec_release(&sw->states);
	vec_release(&sw->jit_waiting);
	vec_release(&sw->late);
	intern_release(&sw->texts);
	map_release(&sw->shown);
	map_release(&sw->str_of);
	map_release(&sw->module_idx);
	pthread_cond_destroy(&sw->changed);
	pthread_mutex_destroy(&sw->lock);
	free(sw);
}

static void enqueue(struct symbolworker *sw, struct batch *b)
{
	pthread_mutex_lock(&sw->lock);
	*sw->queue_tail = b;
	sw->queue_tail = &b->next;
	sw->nr_submitted += b->locs.n;
	sw->nr_batches_open++;
	pthread_cond_broadcast(&sw->changed);
	pthread_mutex_unlock(&sw->lock);
	if (!sw->has_thread) {
		if (pthread_create(&sw->thread, NULL, worker_main, sw))
			BUG("cannot start a thread");
		sw->has_thread = true;
	}
}

/* Returns the address to look up: of a return address, the byte before it, inside the call. */
static uint64_t lookup_address(const struct ingest_module *im, const struct location *l)
{
	uint64_t offset = l->offset - ((l->flags & LOCATION_CALL) ? 1 : 0);
	return im->has_absolute_offsets ? offset : module_vaddr(im, offset);
}

/* Queues locations, sorted by module, so that one batch has all of a module's. */
static void submit_locs(struct symbolworker *sw, const loc_id *locs, size_t nr)
{
	struct batch **by_module = xcalloc(sw->p->modules.n, sizeof(struct batch *));
	for (size_t i = 0; i < nr; i++) {
		const struct location *l = &sw->p->locations.p[locs[i]];
		struct ingest_module *im = modules_by_id(sw->modules, l->module);
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
	for (size_t m = 0; m < sw->p->modules.n; m++)
		if (by_module[m])
			enqueue(sw, by_module[m]);
	free(by_module);
}

static bool is_loading(const struct symbolworker *sw, loc_id loc)
{
	const struct ingest_module *im = modules_by_id(sw->modules, sw->p->locations.p[loc].module);
	return im && im->missing == MODULE_LOADING;
}

void symbolworker_submit(struct symbolworker *sw)
{
	VEC(loc_id) locs = {0};
	size_t nr_late = 0;
	vec_foreach(loc, &sw->late) {
		if (is_loading(sw, *loc))
			sw->late.p[nr_late++] = *loc;
		else
			vec_push(&locs, *loc);
	}
	sw->late.n = nr_late;
	for (; sw->next_loc < sw->p->locations.n; sw->next_loc++) {
		const struct location *l = &sw->p->locations.p[sw->next_loc];
		if (l->flags & LOCATION_SYMBOLIZED)
			continue;
		if (sw->p->modules.p[l->module].kind == MODULE_JIT)
			vec_push(&sw->jit_waiting, (loc_id)sw->next_loc);
		else if (is_loading(sw, (loc_id)sw->next_loc))
			vec_push(&sw->late, (loc_id)sw->next_loc);
		else
			vec_push(&locs, (loc_id)sw->next_loc);
	}
	submit_locs(sw, locs.p, locs.n);
	vec_release(&locs);
}

void symbolworker_submit_jit(struct symbolworker *sw)
{
	submit_locs(sw, sw->jit_waiting.p, sw->jit_waiting.n);
	vec_clear(&sw->jit_waiting);
}

/* Makes the name "module!fn_1a2b0" for stripped code, by the start of the function. */
static str_id guessed_name(struct symbolworker *sw, module_id module, uint64_t start)
{
	CLEANUP(buf_release) struct buf text = {0};
	buf_addf(&text, "%s!fn_%" PRIx64, profile_module_name(sw->p, module), start);
	return profile_str(sw->p, text.p, text.n);
}

static module_id kernel_module(struct symbolworker *sw, module_id kernel, const char *name)
{
	if (!name)
		return kernel;
	CLEANUP(buf_release) struct buf path = {0};
	buf_addf(&path, "[%s]", name);
	return profile_module(sw->p, &(struct module){.kind = MODULE_KMODULE,
						      .path = profile_str(sw->p, path.p, path.n)});
}

static str_id text_id(struct symbolworker *sw, const char *text)
{
	if (!text)
		return 0;
	bool is_new;
	str_id *id = map_put(&sw->str_of, (uintptr_t)text, &is_new);
	if (is_new)
		*id = profile_cstr(sw->p, text);
	return *id;
}

/*
 * What the input says of an address holds before the symbols of this machine, which may have booted since.
 * Returns false if it says nothing.
 */
static bool apply_kernel_code(struct symbolworker *sw, const struct batch *b, size_t i)
{
	if (b->module->kind != MODULE_KERNEL)
		return false;
	const struct kernel_code *c = kernelcode_find(&sw->modules->kernelcode, b->addrs.p[i]);
	if (!c)
		return false;
	bool is_bpf = sv_has_prefix(sv_from_str(c->name), SV("bpf_"));
	const struct function fn = {.name = profile_cstr(sw->p, c->name),
				    .module = kernel_module(sw, b->module->unwind.id,
							    is_bpf ? "bpf" : NULL),
				    .start = c->start,
				    .flags = FUNC_KERNEL};
	const struct frame frame = {.func = profile_function(sw->p, &fn)};
	profile_set_frames(sw->p, b->locs.p[i], &frame, 1, 0);
	return true;
}

static void apply_loc(struct symbolworker *sw, const struct batch *b, size_t i)
{
	if (apply_kernel_code(sw, b, i))
		return;
	const struct named_loc *r = &b->results[i];
	loc_id loc = b->locs.p[i];
	module_id module = b->module->unwind.id;
	CLEANUP(free_p) struct frame *frames = xcalloc(r->nr, sizeof(*frames));
	bool is_kernel = b->module->kind == MODULE_KERNEL;
	for (uint32_t k = 0; k < r->nr; k++) {
		const struct named_frame *f = &r->frames[k];
		struct function fn = {.name = f->name ? text_id(sw, f->name)
						      : guessed_name(sw, module, f->func_start),
				      .module = kernel_module(sw, module, f->module),
				      .start = f->func_start,
				      .flags = (f->is_guessed ? FUNC_GUESSED : 0) |
					       (is_kernel ? FUNC_KERNEL : 0) |
					       (b->module->kind == MODULE_JIT ? FUNC_JIT : 0)};
		if (f->linkage && f->linkage != f->name)
			fn.linkage = text_id(sw, f->linkage);
		frames[k] = (struct frame){.func = profile_function(sw->p, &fn),
					   .file = text_id(sw, f->file),
					   .line = f->line,
					   .is_inlined = f->is_inlined};
	}
	profile_set_frames(sw->p, loc, frames, r->nr, r->unsym);
}

void symbolworker_collect(struct symbolworker *sw, unsigned flags)
{
	pthread_mutex_lock(&sw->lock);
	while ((flags & SYMBOLWORKER_WAIT) && sw->nr_batches_open)
		pthread_cond_wait(&sw->changed, &sw->lock);
	struct batch *done = sw->done;
	sw->done = NULL;
	sw->done_tail = &sw->done;
	pthread_mutex_unlock(&sw->lock);
	while (done) {
		struct batch *b = done;
		done = b->next;
		for (size_t i = 0; i < b->locs.n; i++)
			apply_loc(sw, b, i);
		batch_free(b);
	}
}

struct symbolizer *symbolworker_symbolizer(const struct symbolworker *sw, module_id module)
{
	const uint32_t *idx = map_get(&sw->module_idx, module);
	return idx && *idx ? sw->states.p[*idx - 1]->symbolizer : NULL;
}

uint64_t symbolworker_cpu_ns(const struct symbolworker *sw)
{
	struct symbolworker *m =
		(struct symbolworker *)(uintptr_t)sw; /* the lock is not part of the value */
	pthread_mutex_lock(&m->lock);
	uint64_t ns = m->cpu_ns;
	pthread_mutex_unlock(&m->lock);
	return ns;
}

void symbolworker_progress(const struct symbolworker *sw, uint64_t *ret_done, uint64_t *ret_total)
{
	struct symbolworker *m = (struct symbolworker *)(uintptr_t)sw;
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
