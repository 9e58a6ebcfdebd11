/* Chooses a method and functions for a process; see heapchoice.h. */
#include "base/base.h"
#include "plan/heapchoice.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/text/num.h"
#include "host/bpfrights.h"
#include "host/privileges.h"
#include "host/proc.h"
#include "host/procmem.h"

static const struct {
	const char *name;
	enum heap_method method;
} methods[] = {
	{"prof", HEAP_METHOD_PROF},     {"hooks", HEAP_METHOD_HOOKS},
	{"patch", HEAP_METHOD_PATCH},   {"uprobes", HEAP_METHOD_UPROBES},
	{"growth", HEAP_METHOD_GROWTH},
};

const char *heapchoice_method_name(enum heap_method method)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (methods[i].method == method)
			return methods[i].name;
	return "none";
}

bool heapchoice_method_from_name(const char *name, enum heap_method *ret_method)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		if (strcmp(name, methods[i].name))
			continue;
		*ret_method = methods[i].method;
		return true;
	}
	return false;
}

bool heapchoice_has_hooks(const uint32_t version[3])
{
	return version[0] == 5 && (version[1] == 2 || (version[1] == 3 && version[2] <= 1));
}

/* ---- the allocator --------------------------------------------------------------------------- */

static bool is_wanted(const struct heaptarget_image *m, const struct allocfind_function *fn)
{
	const char *prefix = m->found->jemalloc.prefix;
	switch (fn->kind) {
	case HEAP_ALLOCATOR_MIMALLOC:
	case HEAP_ALLOCATOR_TCMALLOC:
	case HEAP_ALLOCATOR_PAGES:
		return true;
	case HEAP_ALLOCATOR_JEMALLOC:
		return m->is_used || (prefix && *prefix);
	case HEAP_ALLOCATOR_GLIBC:
	case HEAP_ALLOCATOR_MUSL:
	case HEAP_ALLOCATOR_OTHER:
		return m->is_used;
	case HEAP_ALLOCATOR_NONE:
	case HEAP_ALLOCATOR_NR:
		break;
	}
	return false;
}

static size_t count(const struct heaptarget *h, enum heap_allocator kind,
		    const struct heaptarget_image **ret_m)
{
	size_t n = 0;
	vec_foreach(m, &h->images) {
		vec_foreach(fn, &m->found->functions) {
			if (fn->kind != kind || !is_wanted(m, fn))
				continue;
			n++;
			*ret_m = m;
		}
	}
	return n;
}

static void add_place(struct buf *to, const struct heaptarget_image *m)
{
	if (m->is_executable)
		buf_add_str(to, ", static");
	else
		buf_addf(to, ", %s", path_base(m->path));
}

static void add_jemalloc(struct buf *to, const struct heaptarget_image *m)
{
	const struct allocfind_jemalloc *j = &m->found->jemalloc;
	buf_add_str(to, "jemalloc");
	if (j->version[0])
		buf_addf(to, " %u.%u.%u", j->version[0], j->version[1], j->version[2]);
	add_place(to, m);
	if (j->prefix && *j->prefix)
		buf_addf(to, ", prefix %s", j->prefix);
	if (j->is_stripped || !j->prefix)
		buf_add_str(to, ", without symbols");
}

char *heaptarget_describe(const struct heaptarget *h)
{
	static const enum heap_allocator kinds[] = {HEAP_ALLOCATOR_TCMALLOC,
						    HEAP_ALLOCATOR_MIMALLOC, HEAP_ALLOCATOR_OTHER,
						    HEAP_ALLOCATOR_GLIBC, HEAP_ALLOCATOR_MUSL};
	CLEANUP(buf_release) struct buf text = {0};
	const struct heaptarget_image *m = heaptarget_jemalloc(h);
	if (m)
		add_jemalloc(&text, m);
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (!count(h, kinds[i], &m))
			continue;
		if (text.n)
			buf_add_str(&text, "; ");
		buf_add_str(&text, kinds[i] == HEAP_ALLOCATOR_OTHER
					   ? "a malloc of its own"
					   : heap_allocator_name(kinds[i]));
		add_place(&text, m);
	}
	if (!text.n)
		buf_add_str(&text, "none found");
	return buf_detach(&text);
}

enum heap_allocator heaptarget_allocator(const struct heaptarget *h)
{
	static const enum heap_allocator order[] = {HEAP_ALLOCATOR_MIMALLOC,
						    HEAP_ALLOCATOR_TCMALLOC, HEAP_ALLOCATOR_OTHER,
						    HEAP_ALLOCATOR_GLIBC, HEAP_ALLOCATOR_MUSL};
	const struct heaptarget_image *m;
	if (heaptarget_jemalloc(h))
		return HEAP_ALLOCATOR_JEMALLOC;
	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		if (count(h, order[i], &m))
			return order[i];
	return HEAP_ALLOCATOR_NONE;
}

/* ---- functions ----------------------------------------------------------------------------- */

static void add_function(struct heap_plan *p, const struct heaptarget_image *m,
			 const struct allocfind_function *fn)
{
	uint64_t offset = 0;
	if (p->functions.n >= HEAP_SITES_MAX || !elf_offset_from_vaddr(m->elf, fn->vaddr, &offset))
		return;
	vec_push(&p->functions, (struct heap_function){.addr = fn->vaddr + m->bias,
						       .end = fn->end ? fn->end + m->bias : 0,
						       .shape = fn->shape,
						       .name = xstrdup(fn->name),
						       .path = xstrdup(m->path),
						       .file_offset = offset});
}

/* Allocators first: if there are too many functions, the mapping functions are omitted. */
static void add_functions(struct heap_plan *p, const struct heaptarget *h, bool has_jemalloc)
{
	for (int pass = 0; pass < 2; pass++)
		vec_foreach(m, &h->images)
			vec_foreach(fn, &m->found->functions)
				if (is_wanted(m, fn) &&
				    (fn->kind == HEAP_ALLOCATOR_PAGES) == pass &&
				    (has_jemalloc || fn->kind != HEAP_ALLOCATOR_JEMALLOC))
					add_function(p, m, fn);
}

static void add_code(struct heap_plan *p, const struct heaptarget *h)
{
	vec_foreach(m, &h->images) {
		vec_foreach(r, &m->found->code)
			vec_push(&p->allocator_code,
				 (struct heap_range){r->start + m->bias, r->end + m->bias});
		/* All code of a library that is only an allocator, or has no symbols. */
		size_t nr;
		const struct elf_segment *s = elf_segments(m->elf, &nr);
		bool is_whole = !m->is_executable && m->found->jemalloc.version_text &&
				(strstr(path_base(m->path), "jemalloc") || !m->found->code.n);
		for (size_t i = 0; is_whole && i < nr; i++)
			if (s[i].type == 1 /* PT_LOAD */ && s[i].flags & 1 /* PF_X */)
				vec_push(&p->allocator_code,
					 (struct heap_range){s[i].vaddr + m->bias,
							     s[i].vaddr + s[i].nr_mem_bytes +
								     m->bias});
	}
}

static void set_skip(struct heap_plan *p, const struct heaptarget *h)
{
	const struct heaptarget_image *m = heaptarget_jemalloc(h);
	if (m && m->found->jemalloc.span.end) {
		const struct heap_range *span = &m->found->jemalloc.span;
		p->skip = (struct heap_range){span->start + m->bias, span->end + m->bias};
		return;
	}
	p->skip.start = p->allocator_code.n ? UINT64_MAX : 0;
	vec_foreach(r, &p->allocator_code) {
		p->skip.start = MIN(p->skip.start, r->start);
		p->skip.end = MAX(p->skip.end, r->end);
	}
}

static void add_jemalloc_facts(struct heap_plan *p, const struct heaptarget *h)
{
	const struct heaptarget_image *m = heaptarget_jemalloc(h);
	if (!m)
		return;
	const struct allocfind_jemalloc *j = &m->found->jemalloc;
	p->mallctl = j->mallctl ? j->mallctl + m->bias : 0;
	p->expected_version = j->is_stripped && j->version_text ? xstrdup(j->version_text) : NULL;
	memcpy(p->version, j->version, sizeof(p->version));
	p->has_prof = j->has_prof;
}

/* ---- the choice ---------------------------------------------------------------------------- */

/* Whether ptrace and system calls in the process are possible; else adds the reason. */
static bool may_inject(int32_t pid, struct buf *why)
{
	int mem CLEANUP(close_p) = host_open_mem(pid, O_RDONLY);
	if (mem < 0) {
		buf_addf(why, "tracing it is refused (%s)", strerror(-mem));
		return false;
	}
	int32_t tracer = 0;
	unsigned seccomp = 0;
	if (host_find_tracer(pid, pid, &tracer, &seccomp))
		return true; /* it has ended: the attach reports that */
	if (tracer) {
		host_add_tracer(why, tracer);
		buf_add_str(why, " traces it already");
		return false;
	}
	/* Strict mode also forbids rdtsc. */
	if (seccomp == 1) {
		buf_add_str(why, "seccomp (strict) would kill it for calls of the recorder");
		return false;
	}
	if (seccomp == 2 && !host_has_cap(CAP_SYS_ADMIN)) {
		buf_add_str(why, "its seccomp filter cannot be suspended without CAP_SYS_ADMIN");
		return false;
	}
	return true;
}

static size_t nr_heap_sites(const struct heap_plan *p)
{
	size_t n = 0;
	vec_foreach(s, &p->functions)
		n += s->shape < HEAP_MMAP;
	return n;
}

static size_t nr_jemalloc_sites(const struct heaptarget *h)
{
	const struct heaptarget_image *m;
	return count(h, HEAP_ALLOCATOR_JEMALLOC, &m);
}

static void set_reason(struct heap_plan *p, enum heap_method method, struct buf *text)
{
	p->method = method;
	p->reason = buf_detach(text);
}

/* Whether functions of the process may be called: else it is stopped before its first instruction. */
static bool may_call(const struct heaptarget *h)
{
	return !h->is_held || h->has_started;
}

/* Whether only GROWTH is possible; sets the reason. */
static bool needs_growth(struct heap_plan *p, const struct heaptarget *h, struct buf *why)
{
	bool has_sites = nr_jemalloc_sites(h) > 0;
	if (!h->has_recorder)
		buf_add_str(why, "the injected recorder supports x86-64 only");
	else if (h->is_32bit)
		buf_add_str(why,
			    "it is a 32-bit program, which the recorder and the unwinder do not "
			    "support");
	else if (h->is_go)
		buf_add_str(why, "the Go runtime manages its own heap without malloc");
	else if (h->is_jvm)
		buf_add_str(why, "the Java virtual machine manages its own heap; --method patch "
				 "records what its native code allocates by malloc");
	else if (p->allocator == HEAP_ALLOCATOR_JEMALLOC && !p->mallctl && !has_sites)
		buf_add_str(why, "its jemalloc has no symbols, and its functions were not found by "
				 "its data tables");
	else if (p->allocator == HEAP_ALLOCATOR_JEMALLOC && !has_sites &&
		 !heapchoice_has_hooks(p->version))
		buf_add_str(why, "its jemalloc has no symbols, and no hooks, which are in versions "
				 "5.2.0 to 5.3.1");
	else if (p->allocator == HEAP_ALLOCATOR_JEMALLOC && !has_sites && !may_call(h) && !h->main)
		buf_add_str(why,
			    "its jemalloc has no symbols and can be called only from the "
			    "program's main function on, which was not found: start it, then run "
			    "`assay heap NAME`");
	else if (p->allocator == HEAP_ALLOCATOR_NONE ||
		 (p->allocator != HEAP_ALLOCATOR_JEMALLOC && !nr_heap_sites(p)))
		buf_add_str(why, "no allocator's functions were found in it");
	if (!why->n)
		return false;
	buf_add_str(why, ": recording memory growth by page faults and mappings");
	return true;
}

/*
 * Whether symbols name the functions that every jemalloc has. These are patched rather than hooked,
 * since hooks take every call off jemalloc's fast path, sampled or not.
 */
static bool has_all_functions(const struct heaptarget *h)
{
	static const enum heap_shape wanted[] = {HEAP_ALLOC_0, HEAP_ALLOC_01, HEAP_REALLOC_1,
						 HEAP_FREE_0};
	const struct heaptarget_image *m = heaptarget_jemalloc(h);
	if (!m || m->found->jemalloc.is_stripped || !m->found->jemalloc.prefix)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		bool is_there = false;
		vec_foreach(fn, &m->found->functions)
			is_there |= fn->kind == HEAP_ALLOCATOR_JEMALLOC && fn->shape == wanted[i] &&
				    is_wanted(m, fn);
		if (!is_there)
			return false;
	}
	return true;
}

static void choose(struct heap_plan *p, const struct heaptarget *h)
{
	CLEANUP(buf_release) struct buf why = {0};
	if (needs_growth(p, h, &why)) {
		set_reason(p, HEAP_METHOD_GROWTH, &why);
		return;
	}
	if (!may_inject(h->pid, &why)) {
		CLEANUP(err_release) struct err refused = {0};
		if (!host_bpf_rights(HOST_BTF_PATH, &refused)) {
			buf_add_str(&why, ": recording by uprobes");
			set_reason(p, HEAP_METHOD_UPROBES, &why);
			return;
		}
		buf_addf(&why,
			 ", and probes are refused (%s): recording memory growth by page faults",
			 err_msg(&refused));
		set_reason(p, HEAP_METHOD_GROWTH, &why);
		return;
	}
	/*
	 * Called before the program starts, jemalloc would initialize without its environment. Where
	 * symbols name some of its functions, these are patched before the program starts.
	 */
	bool has_hooks = p->mallctl && heapchoice_has_hooks(p->version) &&
			 (may_call(h) || !nr_jemalloc_sites(h));
	p->is_all_or_none = has_hooks && has_all_functions(h);
	if (has_hooks && !p->is_all_or_none) {
		buf_add_str(&why,
			    "not all functions of this jemalloc were found; its hooks are called "
			    "for every allocation, its code is not changed");
		if (h->is_held)
			buf_add_str(&why, "; recorded from the program's main function on");
		set_reason(p, HEAP_METHOD_HOOKS, &why);
		return;
	}
	buf_addf(&why, "%s of the target's allocator %s patched %s",
		 num_noun(nr_heap_sites(p), "functions").s, nr_heap_sites(p) == 1 ? "is" : "are",
		 h->is_held ? "before the target starts" : "while the target runs");
	if (p->is_all_or_none)
		buf_add_str(&why, "; this slows the target down less than jemalloc's hooks");
	else if (p->allocator == HEAP_ALLOCATOR_JEMALLOC && !has_all_functions(h))
		buf_add_str(&why, "; its jemalloc has no symbols: calls of mallocx and the like, "
				  "if it makes any, are not recorded");
	set_reason(p, HEAP_METHOD_PATCH, &why);
}

static int force_jemalloc(const struct heap_plan *p, const struct heaptarget *h,
			  enum heap_method method, struct err *err)
{
	const char *name = heapchoice_method_name(method);
	if (p->allocator != HEAP_ALLOCATOR_JEMALLOC) {
		(void)err_set(err, -ENOTSUP, "method %s: process %d does not use jemalloc (%s)",
			      name, h->pid, p->allocator_text);
		return err_hint(err, "omit --method: assay chooses one that works");
	}
	if (!p->mallctl) {
		(void)err_set(err, -ENOTSUP, "method %s: mallctl was not found in process %d (%s)",
			      name, h->pid, p->allocator_text);
		return err_hint(err, "keep symbols (cargo: strip = false) or install the "
				     "binary's debug file");
	}
	if (method == HEAP_METHOD_PROF && !p->has_prof) {
		(void)err_set(err, -ENOTSUP,
			      "method %s: this jemalloc was built without profiling (%s)", name,
			      p->allocator_text);
		return err_hint(err, "build it with --enable-prof (tikv-jemallocator: feature "
				     "\"profiling\"), or use --method hooks or patch");
	}
	if (!may_call(h) && (method == HEAP_METHOD_PROF || !h->main)) {
		(void)err_set(err, -ENOTSUP,
			      "method %s: jemalloc cannot be called before the program has started",
			      name);
		return err_hint(err, "start it, then run `assay heap --method %s NAME`", name);
	}
	if (method == HEAP_METHOD_HOOKS && !heapchoice_has_hooks(p->version)) {
		(void)err_set(err, -ENOTSUP,
			      "method %s: hooks are in jemalloc 5.2.0 to 5.3.1, this is %s", name,
			      p->allocator_text);
		return err_hint(err, "use --method patch");
	}
	return 0;
}

static int force(struct heap_plan *p, const struct heaptarget *h, enum heap_method method,
		 struct err *err)
{
	if (method == HEAP_METHOD_PROF || method == HEAP_METHOD_HOOKS)
		TRY(force_jemalloc(p, h, method, err));
	if ((method == HEAP_METHOD_PATCH || method == HEAP_METHOD_UPROBES) && !nr_heap_sites(p)) {
		(void)err_set(err, -ENOTSUP,
			      "method %s: no allocator's functions were found in process %d (%s)",
			      heapchoice_method_name(method), h->pid, p->allocator_text);
		return err_hint(err, "use --method growth, which needs none");
	}
	CLEANUP(buf_release) struct buf refusal = {0};
	bool is_injected = method != HEAP_METHOD_UPROBES && method != HEAP_METHOD_GROWTH;
	if (is_injected && !may_inject(h->pid, &refusal)) {
		(void)err_set(err, -EPERM, "method %s: cannot record inside process %d: %s",
			      heapchoice_method_name(method), h->pid, buf_str(&refusal));
		return err_hint(err, "run as root, or give assay CAP_SYS_PTRACE; --method uprobes "
				     "and --method growth do not need that");
	}
	p->method = method;
	p->reason = xstrdup("set by --method");
	return 0;
}

int heapchoice_plan(const struct heaptarget *h, enum heap_method forced, const char *why_no_mallctl,
		    struct heap_plan *ret_p, struct err *err)
{
	CLEANUP(heap_plan_release) struct heap_plan p = {0};
	p.allocator = heaptarget_allocator(h);
	p.allocator_text = heaptarget_describe(h);
	p.is_loading = h->is_loading;
	p.is_held = h->is_held;
	p.is_at_main = h->has_started;
	p.image = h->image;
	add_jemalloc_facts(&p, h);
	if (why_no_mallctl) {
		char *text =
			xasprintf("%s, mallctl not found (%s)", p.allocator_text, why_no_mallctl);
		free(p.allocator_text);
		p.allocator_text = text;
		p.mallctl = 0;
	}
	add_functions(&p, h, true);
	add_code(&p, h);
	set_skip(&p, h);
	if (forced == HEAP_METHOD_NONE)
		choose(&p, h);
	else
		TRY(force(&p, h, forced, err));
	p.main = p.method == HEAP_METHOD_HOOKS && !may_call(h) ? h->main : 0;
	if (p.method == HEAP_METHOD_HOOKS || p.method == HEAP_METHOD_PROF) {
		/* Hooks and profiling cover jemalloc; other allocators are patched. */
		heap_plan_clear_functions(&p);
		if (p.method == HEAP_METHOD_HOOKS)
			add_functions(&p, h, false);
	}
	*ret_p = p;
	p = (struct heap_plan){0};
	return 0;
}

/* ---- the choice of the source ---------------------------------------------------------------- */

void heap_method_choice_release(struct heap_method_choice *w)
{
	free_p(&w->reason);
	*w = (struct heap_method_choice){0};
}

/* If BPF programs are refused, GROWTH is sampled: adds that to the reason. */
static void check_bpf(struct heap_method_choice *w)
{
	CLEANUP(err_release) struct err refused = {0};
	if (w->method != HEAP_METHOD_GROWTH || !host_bpf_rights(HOST_BTF_PATH, &refused))
		return;
	w->has_no_bpf = true;
	char *reason = xasprintf("%s; sampled, because BPF programs are refused (%s)", w->reason,
				 err_msg(&refused));
	free_p(&w->reason);
	w->reason = reason;
}

static bool is_external(enum heap_method method)
{
	return method == HEAP_METHOD_UPROBES || method == HEAP_METHOD_GROWTH;
}

void heapchoice_method(struct heap_method_choice *ret_choice, enum heap_method forced,
		       const struct heap_plan *plan)
{
	*ret_choice = (struct heap_method_choice){.method = HEAP_METHOD_NONE};
	if (is_external(forced))
		*ret_choice =
			(struct heap_method_choice){forced, .reason = xstrdup("set by --method")};
	else if (forced == HEAP_METHOD_NONE && plan && !plan->is_loading &&
		 is_external(plan->method))
		*ret_choice = (struct heap_method_choice){
			plan->method, .reason = xstrdup(plan->reason ? plan->reason : "")};
	check_bpf(ret_choice);
}
