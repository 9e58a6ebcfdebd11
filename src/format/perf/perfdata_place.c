/*
 * perf.data writer: assigns addresses to the locations of a profile.
 *
 * A profile has (module, offset); perf.data needs addresses. They are computed with the mapping
 * that the process had at the time of the sample; else with the mapping of the process that it is
 * most likely a fork of; else the module gets its own address range, the same in every process,
 * above those of programs. A frame without an address gets one in a kernel range that no kernel
 * uses, and a symbol there.
 */
#include "base/base.h"
#include "format/perf/perfdata_writer.h"

#include "base/hash.h"

#define RANGE_START   0x600000000000ull /* modules without a mapping */
#define RANGE_END     0x7e0000000000ull
#define RANGE_LEN_MAX ((uint64_t)1 << 40)   /* larger offsets are not file offsets */
#define NAMES_START   0xffffa00000000000ull /* frames without an address */
#define NAME_BYTES    16u
#define PAGE          4096u
#define CHAIN_LEN_MAX 8000u /* a record has at most 65,528 bytes */

static int by_module_pid_time(const void *a, const void *b)
{
	const struct pw_map *x = a;
	const struct pw_map *y = b;
	return COMPARE(x->module, y->module)
		       ?: COMPARE(x->pid, y->pid)
		       ?: COMPARE(x->from_ns, y->from_ns)
		       ?: COMPARE(x->mapping, y->mapping);
}

static bool has_file_offset(enum module_kind kind)
{
	return kind == MODULE_ELF || kind == MODULE_VDSO;
}

/* Assigns ranges to modules, as long as their highest offset in use. */
static void lay_out_modules(struct pw_writer *w)
{
	const struct profile *p = w->p;
	vec_foreach(l, &p->locations) {
		uint64_t *len = &w->module_len.p[l->module];
		if (has_file_offset(p->modules.p[l->module].kind) && l->offset < RANGE_LEN_MAX)
			*len = MAX(*len, l->offset + 1);
	}
	uint64_t at = RANGE_START;
	for (size_t i = 0; i < p->modules.n; i++) {
		uint64_t len = (w->module_len.p[i] + PAGE) & ~(uint64_t)(PAGE - 1);
		if (!w->module_len.p[i] || len > RANGE_END - at)
			continue;
		w->module_len.p[i] = len;
		w->module_base.p[i] = at;
		at += len + PAGE;
	}
}

void pw_place_init(struct pw_writer *w)
{
	const struct profile *p = w->p;
	for (size_t i = 0; i < p->mappings.n; i++) {
		const struct mapping *m = &p->mappings.p[i];
		vec_push(&w->maps, (struct pw_map){m->module, m->pid, m->from_ns, (uint32_t)i});
	}
	if (w->maps.n)
		qsort(w->maps.p, w->maps.n, sizeof(*w->maps.p), by_module_pid_time);
	size_t at = 0;
	for (size_t i = 0; i <= p->modules.n; i++) {
		while (at < w->maps.n && w->maps.p[at].module < i)
			at++;
		vec_push(&w->first_map, (uint32_t)at);
		if (i == p->modules.n)
			break;
		vec_push(&w->module_base, 0);
		vec_push(&w->module_len, 0);
	}
	lay_out_modules(w);
	vec_foreach(t, &p->tasks)
		*map_put(&w->comms, (uint64_t)(uint32_t)t->pid << 32 | t->comm, NULL) = 1;
}

void pw_place_release(struct pw_writer *w)
{
	vec_release(&w->maps);
	vec_release(&w->first_map);
	vec_release(&w->module_base);
	vec_release(&w->module_len);
	vec_release(&w->chains);
	vec_release(&w->chain_text);
	map_release(&w->guessed);
	map_release(&w->comms);
	map_release(&w->parents);
	map_release(&w->names);
	map_release(&w->chain_index);
}

static bool covers(const struct mapping *m, uint64_t offset)
{
	return offset >= m->pgoff && offset - m->pgoff < m->len;
}

/* The mappings of a module in a process, as a range of w->maps. */
struct range {
	uint32_t from;
	uint32_t to;
};

static struct range maps_of(const struct pw_writer *w, module_id module, int32_t pid)
{
	uint32_t from = w->first_map.p[module];
	uint32_t end = w->first_map.p[module + 1];
	from += (uint32_t)lower_bound(&w->maps.p[from], end - from, pid, pid);
	uint32_t to = from;
	while (to < end && w->maps.p[to].pid == pid)
		to++;
	return (struct range){from, to};
}

/* Finds the latest mapping up to now with the offset; with ANY_TIME else the first; or NULL. */
enum search_flags { ANY_TIME = 1 << 0 };
static const struct mapping *search(const struct pw_writer *w, struct range r, uint64_t offset,
				    unsigned flags)
{
	const struct mapping *found = NULL;
	for (uint32_t i = r.from; i < r.to; i++) {
		const struct mapping *m = &w->p->mappings.p[w->maps.p[i].mapping];
		if (!covers(m, offset))
			continue;
		if (m->from_ns <= w->now_ns || (!found && (flags & ANY_TIME)))
			found = m;
	}
	return found;
}

/* Score of a process as the assumed parent of another: same name, then the lower pid. */
static uint64_t kinship(const struct pw_writer *w, int32_t parent, int32_t child, str_id comm)
{
	uint64_t names = map_get(&w->comms, (uint64_t)(uint32_t)parent << 32 | comm) ? 2 : 0;
	uint64_t below = parent < child ? 1 : 0;
	uint64_t distance =
		(uint64_t)(parent < child ? (int64_t)child - parent : (int64_t)parent - child);
	return (names + below) << 40 | (((uint64_t)1 << 40) - 1 - distance);
}

/*
 * Finds the module's mapping in the process that this one is most likely a fork of. The choice is
 * stored, since a child has all its mappings from one parent.
 */
static const struct mapping *search_parent(struct pw_writer *w, int32_t pid, module_id module,
					   uint64_t offset)
{
	const uint32_t *known = map_get(&w->parents, (uint32_t)pid);
	const struct mapping *found =
		known ? search(w, maps_of(w, module, (int32_t)*known), offset, 0) : NULL;
	if (found)
		return found;
	uint64_t best = 0;
	for (uint32_t i = w->first_map.p[module]; i < w->first_map.p[module + 1]; i++) {
		const struct mapping *m = &w->p->mappings.p[w->maps.p[i].mapping];
		if (m->pid == pid || m->from_ns > w->now_ns || !covers(m, offset))
			continue;
		uint64_t score = kinship(w, m->pid, pid, w->now_comm);
		if (score >= best) { /* equal: a later mapping of the same process */
			best = score;
			found = m;
		}
	}
	if (found && !known)
		*map_put(&w->parents, (uint32_t)pid, NULL) = (uint32_t)found->pid;
	return found;
}

/* Writes an mmap record for a mapping that was not recorded, once. */
static void guess(struct pw_writer *w, int32_t pid, uint64_t what, struct pw_region at,
		  const struct module *m)
{
	bool is_new;
	(void)map_put(&w->guessed, hash_mix((uint32_t)pid, what), &is_new);
	if (!is_new)
		return;
	at.pid = pid;
	pw_add_mmap(w, &at, m);
	w->stats.nr_guessed_maps++;
}

/* Name of the function that contains the location, 0 = none. */
static str_id name_of(const struct profile *p, const struct location *l)
{
	const struct frame *f = profile_physical_frame(p, l);
	return f ? p->functions.p[f->func].name : 0;
}

static uint64_t name_address(struct pw_writer *w, const struct location *l)
{
	const uint32_t *idx = map_get(&w->names, name_of(w->p, l));
	return NAMES_START + (uint64_t)(idx ? *idx : 0) * NAME_BYTES;
}

static bool is_nameless_place(const struct pw_writer *w, const struct location *l)
{
	const struct module *m = &w->p->modules.p[l->module];
	switch (m->kind) {
	case MODULE_NONE:
	case MODULE_PSEUDO:
	case MODULE_NAMED:
		return true;
	case MODULE_ELF:
	case MODULE_VDSO:
		return w->first_map.p[l->module] == w->first_map.p[l->module + 1] &&
		       (!w->module_base.p[l->module] || l->offset >= RANGE_LEN_MAX);
	case MODULE_KERNEL:
	case MODULE_KMODULE:
	case MODULE_JIT:
	case MODULE_UNKNOWN:
		return false;
	}
	return true;
}

void pw_write_names(struct pw_writer *w)
{
	const struct profile *p = w->p;
	vec_foreach(l, &p->locations) {
		if (l == p->locations.p || !is_nameless_place(w, l) || !l->nr_frames)
			continue;
		str_id name = name_of(p, l);
		bool is_new;
		uint32_t *idx = map_put(&w->names, name, &is_new);
		if (!is_new)
			continue;
		*idx = (uint32_t)w->names.n;
		w->stats.nr_named_frames++;
		pw_add_ksymbol(w, NAMES_START + (uint64_t)*idx * NAME_BYTES, NAME_BYTES,
			       profile_sv(p, name));
	}
}

/* Returns the address of a location in a process; *ret_is_kernel: kernel or user code. */
static uint64_t address_of(struct pw_writer *w, int32_t pid, const struct location *l,
			   bool *ret_is_kernel)
{
	const struct profile *p = w->p;
	const struct module *m = &p->modules.p[l->module];
	*ret_is_kernel = false;
	if (is_nameless_place(w, l)) {
		*ret_is_kernel = true;
		return name_address(w, l);
	}
	if (!has_file_offset(m->kind)) {
		*ret_is_kernel = m->kind == MODULE_KERNEL || m->kind == MODULE_KMODULE;
		return l->offset;
	}
	struct range own = maps_of(w, l->module, pid);
	const struct mapping *map = search(w, own, l->offset, 0);
	bool is_own = map != NULL;
	if (!map)
		map = search_parent(w, pid, l->module, l->offset);
	if (!map) {
		map = search(w, own, l->offset, ANY_TIME);
		is_own = map != NULL;
	}
	if (map && !is_own) {
		uint64_t idx = (uint64_t)(map - p->mappings.p);
		guess(w, pid, idx << 1,
		      (struct pw_region){.start = map->start, .len = map->len, .pgoff = map->pgoff},
		      m);
	}
	if (map)
		return map->start + (l->offset - map->pgoff);
	uint64_t base = w->module_base.p[l->module];
	if (!base || l->offset >= RANGE_LEN_MAX)
		return l->offset;
	guess(w, pid, (uint64_t)l->module << 1 | 1,
	      (struct pw_region){.start = base, .len = w->module_len.p[l->module]}, m);
	return base + l->offset;
}

static void build_chain(struct pw_writer *w, struct pw_chain *c)
{
	const struct profile *p = w->p;
	c->first = w->chain_text.n;
	bool was_kernel = false;
	bool is_first = true;
	for (stack_id s = c->stack; s; s = p->stacks.p[s].parent) {
		if (w->chain_text.n - c->first >= CHAIN_LEN_MAX) {
			w->stats.nr_truncated_stacks++;
			break;
		}
		bool is_kernel;
		uint64_t addr =
			address_of(w, c->pid, &p->locations.p[p->stacks.p[s].loc], &is_kernel);
		if (addr >= CHAIN_MAX) /* would be a context marker */
			addr = CHAIN_MAX - 1;
		if (is_first || is_kernel != was_kernel)
			vec_push(&w->chain_text, is_kernel ? CHAIN_KERNEL : CHAIN_USER);
		vec_push(&w->chain_text, addr);
		if (is_first) {
			c->ip = addr;
			c->is_kernel = is_kernel;
		}
		was_kernel = is_kernel;
		is_first = false;
	}
	c->nr = (uint32_t)(w->chain_text.n - c->first);
}

const struct pw_chain *pw_chain_of(struct pw_writer *w, int32_t pid, str_id comm, stack_id stack)
{
	w->now_comm = comm;
	const uint32_t *seen = map_get(&w->epochs, (uint32_t)pid);
	uint32_t epoch = seen ? *seen : 0;
	uint64_t key = hash_mix((uint64_t)(uint32_t)pid << 32 | stack, epoch);
	bool is_new;
	uint32_t *idx = map_put(&w->chain_index, key, &is_new);
	struct pw_chain *c = is_new ? NULL : &w->chains.p[*idx];
	if (c && c->pid == pid && c->stack == stack && c->epoch == epoch)
		return c;
	*idx = (uint32_t)w->chains.n;
	c = vec_add(&w->chains);
	c->pid = pid;
	c->stack = stack;
	c->epoch = epoch;
	build_chain(w, c);
	return c;
}
