/* Finds span probes by name; see spanprobes.h. */
#include "base/base.h"
#include "plan/spanprobes.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "host/proc.h"
#include "host/reader/hostfile.h"
#include "kernel_span.h"
#include "object/debugfile.h"
#include "object/elf.h"
#include "object/sdtnotes.h"
#include "plan/binaries.h"
#include "symbol/funcfind.h"

struct binary {
	int fd; /* owned by the probes */
	struct elf *elf;
	struct elf *debug; /* the separate symbol table of a stripped one, or NULL */
	char *path;
};

struct finder {
	struct span_probes *probes;
	VEC(struct binary) binaries; /* the executable first */
	struct map seen;             /* device and inode */
	int32_t pid;                 /* process being inspected */
};

static void finder_release(struct finder *f)
{
	vec_foreach(b, &f->binaries) {
		elf_free(b->elf);
		elf_free(b->debug);
		free_p(&b->path);
	}
	vec_release(&f->binaries);
	map_release(&f->seen);
}

void span_probes_release(struct span_probes *p)
{
	vec_foreach(one, &p->list) {
		char *name = (char *)(uintptr_t)one->name;
		free_p(&name);
		struct span_point *points = (struct span_point *)(uintptr_t)one->from;
		free_p(&points); /* one array with those of `to` */
	}
	vec_foreach(fd, &p->fds)
		close_p(fd);
	vec_foreach(e, &p->unknown)
		err_release(e);
	free_p(&p->similar);
	vec_release(&p->list);
	vec_release(&p->unknown);
	vec_release(&p->pids);
	vec_release(&p->fds);
}

/* Takes ownership of @source. A file that is not ELF is ignored. */
static void add_binary(struct finder *f, struct byte_source source, const char *path)
{
	struct binary b = {.fd = hostfile_name(&source)};
	struct debug_search host = {.open = hostfile_open_path, .root_fd = -1};
	CLEANUP(err_release) struct err err = {0};
	vec_push(&f->probes->fds, b.fd);
	if (elf_open_source(&b.elf, source, &err))
		return;
	b.path = xstrdup(path);
	if (!elf_section(b.elf, ".symtab")) {
		(void)debugfile_mini(&b.debug, b.elf, &err);
		if (!b.debug)
			b.debug = debugfile_find(b.elf, path, &host, NULL);
	}
	vec_push(&f->binaries, b);
}

static int on_mapping(void *ctx, const struct proc_map *m, struct err *err UNUSED)
{
	struct finder *f = ctx;
	bool is_new;
	if (!m->is_exec || !m->inode || m->path[0] != '/')
		return 0;
	uint64_t dev = (uint64_t)m->dev_major << 20 | m->dev_minor;
	(void)map_put(&f->seen, dev << 40 ^ m->inode, &is_new);
	if (!is_new)
		return 0;
	struct byte_source source;
	if (!proc_open_mapped(&source, f->pid, m))
		add_binary(f, source, m->path);
	return 0;
}

static int inspect_process(struct finder *f, int32_t pid, struct err *err)
{
	f->pid = pid;
	int rc = proc_maps(pid, on_mapping, f, err);
	if (rc)
		return rc == -ESRCH || rc == -ENOENT ? 0 : rc;
	vec_push(&f->probes->pids, pid);
	return 0;
}

static int inspect_command(struct finder *f, const char *name, struct err *err)
{
	CLEANUP(buf_release) struct buf path = {0};
	struct byte_source source;
	if (binaries_open_command(&source, name, &path))
		return err_set(err, -ENOENT, "cannot find the command '%s'", name);
	add_binary(f, source, buf_str(&path));
	return 0;
}

struct place {
	struct func_found func;
	uint64_t semaphore_offset;
	int fd;
};

struct places {
	VEC(struct place) list;
};

static void places_release(struct places *p)
{
	vec_foreach(one, &p->list)
		free_p(&one->func.name);
	vec_release(&p->list);
}

/* Whether it is "provider:probe"; function names have no single colon. */
static bool is_static(const char *pattern)
{
	return strchr(pattern, ':') && !strstr(pattern, "::");
}

struct note_search {
	const char *pattern;
	const struct binary *b;
	struct places *to;
	size_t max;
	size_t *ret_nr_more;
};

static int on_note(void *ctx, const struct sdt_note *n, struct err *err UNUSED)
{
	const struct note_search *s = ctx;
	CLEANUP(buf_release) struct buf name = {0};
	uint8_t code = 0;
	buf_add(&name, n->provider.p, n->provider.n);
	buf_add_ch(&name, ':');
	buf_add(&name, n->name.p, n->name.n);
	if (!func_matches(s->pattern, buf_str(&name)))
		return 0;
	if (s->to->list.n >= s->max) {
		++*s->ret_nr_more;
		return 0;
	}
	/* x86-64 emulates only some instructions; other kernels emulate these points */
	bool is_nop = !elf_read(s->b->elf, &code, 1, n->offset, NULL) && code == 0x90;
	bool is_x86 = elf_machine(s->b->elf) == ELF_MACHINE_X86_64;
	struct place p = {.func = {.name = xstrdup(buf_str(&name)),
				   .offset = n->offset,
				   .is_emulated = is_nop || !is_x86},
			  .semaphore_offset = n->semaphore_offset,
			  .fd = s->b->fd};
	vec_push(&s->to->list, p);
	return 0;
}

/* A static probe can have several locations, by inlining or repeated use; all are probed. */
static int find_static(const struct finder *f, const char *pattern, struct places *to, size_t max,
		       size_t *ret_nr_more, struct err *err)
{
	for (size_t i = 0; i < f->binaries.n; i++) {
		struct note_search s = {pattern, &f->binaries.p[i], to, max, ret_nr_more};
		if (sdt_notes(s.b->elf, on_note, &s, err))
			return err_wrap(err, "reading the static probes of '%s'", s.b->path);
	}
	return 0;
}

/* Finds matches in all binaries; stops after an exact name in the executable. */
static int find_places(const struct finder *f, const char *pattern, struct places *to, size_t max,
		       size_t *ret_nr_more, struct err *err)
{
	if (is_static(pattern))
		return find_static(f, pattern, to, max, ret_nr_more, err);
	for (size_t i = 0; i < f->binaries.n; i++) {
		const struct binary *b = &f->binaries.p[i];
		struct funcs_found found = {0};
		size_t room = max > to->list.n ? max - to->list.n : 0;
		int rc = func_find(&found, b->elf, b->debug, pattern, room, ret_nr_more, err);
		vec_foreach(one, &found.list)
			vec_push(&to->list, ((struct place){.func = *one, .fd = b->fd}));
		vec_release(&found.list); /* the names were moved to @to */
		if (rc)
			return err_wrap(err, "reading the symbols of '%s'", b->path);
		if (!i && to->list.n && !strpbrk(pattern, "*?"))
			return 0;
	}
	return 0;
}

static int offer_note(void *ctx, const struct sdt_note *n, struct err *err UNUSED)
{
	CLEANUP(buf_release) struct buf name = {0};
	buf_addf(&name, "%.*s:%.*s", SV_ARGS(n->provider), SV_ARGS(n->name));
	funcs_near_offer(ctx, buf_str(&name));
	return 0;
}

static void find_near(const struct finder *f, const char *pattern, struct funcs_near *to)
{
	for (size_t i = 0; i < f->binaries.n; i++) {
		const struct binary *b = &f->binaries.p[i];
		if (is_static(pattern))
			(void)sdt_notes(b->elf, offer_note, to, NULL);
		else
			(void)func_find_near(to, b->elf, b->debug, NULL);
	}
}

/* Adds "'a', 'b'": names similar to a pattern; for a static probe else those of its provider. */
static void add_near(const struct finder *f, const char *pattern, struct buf *to)
{
	CLEANUP(funcs_near_release) struct funcs_near near = funcs_near_of(pattern);
	find_near(f, pattern, &near);
	if (!near.n && is_static(pattern)) {
		near.word.n = strcspn(near.word.p, ":") + 1;
		find_near(f, pattern, &near);
	}
	for (size_t i = 0; i < near.n; i++)
		buf_addf(to, "%s'%s'", to->n ? ", " : "", near.best[i].name);
}

/* A function of Python as assay prints it, "views.py:12 Page.get", or as "python -X perf" does. */
static bool is_of_python(const char *pattern)
{
	return strstr(pattern, ".py:") || !strncmp(pattern, "py::", 4);
}

static bool runs_python(const struct finder *f)
{
	vec_foreach(b, &f->binaries) {
		const char *slash = strrchr(b->path, '/');
		const char *name = slash ? slash + 1 : b->path;
		if (!strncmp(name, "python", 6) || !strncmp(name, "libpython", 9))
			return true;
	}
	return false;
}

/*
 * The interpreter runs functions of Python in a loop: they have no code at whose entry a probe could be.
 */
static int fail_python(const char *pattern, struct err *err)
{
	int rc = err_set(err, -ENOENT,
			 "'%s' is a function of Python, which has no machine code whose entry "
			 "could be probed",
			 pattern);
	err_hint(err,
		 "what the time in it is: assay cpu --offcpu, then assay report --within '%s'; "
		 "--span works on functions of the interpreter and of libraries that it calls",
		 pattern);
	return rc;
}

static int fail_unknown(const struct finder *f, const char *pattern, struct err *err)
{
	CLEANUP(buf_release) struct buf names = {0};
	const char *what = is_static(pattern) ? "static probe" : "function";
	if (is_of_python(pattern))
		return fail_python(pattern, err);
	int rc = err_set(err, -ENOENT, "no %s '%s' in the target's binaries", what, pattern);
	add_near(f, pattern, &names);
	if (names.n)
		err_hint(err, "did you mean: %s?", buf_str(&names));
	else
		err_hint(err,
			 "names are as `assay report` shows them, whole; * and ? stand for "
			 "any characters; inlined functions%s have no entry of their own",
			 runs_python(f) ? " and functions of Python" : "");
	return rc;
}

static struct span_point point_of(struct span_probes *p, const struct place *at)
{
	p->nr_points++;
	p->nr_stepped += !at->func.is_emulated;
	return (struct span_point){at->fd, at->func.offset, at->semaphore_offset};
}

static void add_probe(struct span_probes *p, const char *name, const struct place *from,
		      size_t nr_from, const struct place *to, size_t nr_to)
{
	struct span_point *points = xcalloc(nr_from + nr_to, sizeof(*points));
	for (size_t i = 0; i < nr_from; i++)
		points[i] = point_of(p, &from[i]);
	for (size_t i = 0; i < nr_to; i++)
		points[nr_from + i] = point_of(p, &to[i]);
	vec_push(&p->list, (struct span_probe){.name = xstrdup(name),
					       .from = points,
					       .nr_from = nr_from,
					       .to = points + nr_from,
					       .nr_to = nr_to});
}

/* Go's runtime walks stacks itself, and ends the program if a return address is not its own. */
static int fail_go(const char *name, struct err *err)
{
	int rc = err_set(
		err, -ENOTSUP,
		"'%s' is a function of Go: a probe at its return would make the program crash",
		name);
	err_hint(
		err,
		"what the time in it is: assay cpu --offcpu, then assay report --within '%s'; --span works "
		"on functions of C that the program calls",
		name);
	return rc;
}

static int add_calls(struct span_probes *p, const char *pattern, const struct places *from,
		     struct err *err)
{
	if (is_static(pattern)) {
		err_set(err, -EINVAL, "'%s' is a static probe, which has no end", pattern);
		return err_hint(err, "name where the span ends: --span '%s..PROVIDER:PROBE'",
				pattern);
	}
	vec_foreach(one, &from->list)
		if (one->func.is_go)
			return fail_go(one->func.name, err);
	vec_foreach(one, &from->list)
		add_probe(p, one->func.name, one, 1, NULL, 0);
	return 0;
}

static bool is_one(const char *pattern, const struct places *places)
{
	return places->list.n == 1 || is_static(pattern);
}

static int add_span(const struct finder *f, const char *span, struct err *err)
{
	struct span_probes *p = f->probes;
	CLEANUP(places_release) struct places from = {0};
	CLEANUP(places_release) struct places to = {0};
	const char *dots = strstr(span, "..");
	CLEANUP(free_p) char *first = dots ? xstrndup(span, (size_t)(dots - span)) : xstrdup(span);
	size_t room = SPANS_MAX - p->list.n;
	TRY(find_places(f, first, &from, room, &p->nr_more, err));
	if (!from.list.n)
		return fail_unknown(f, first, err);
	if (!dots)
		return add_calls(p, first, &from, err);
	TRY(find_places(f, dots + 2, &to, room, &p->nr_more, err));
	if (!to.list.n)
		return fail_unknown(f, dots + 2, err);
	if (!is_one(first, &from) || !is_one(dots + 2, &to))
		return err_set(err, -EINVAL,
			       "'%s': %zu functions match the start, %zu the end; one each is "
			       "needed",
			       span, from.list.n, to.list.n);
	add_probe(p, span, from.list.p, from.list.n, to.list.p, to.list.n);
	return 0;
}

static int inspect_target(struct finder *f, const struct target *t, char **command, struct err *err)
{
	if (!t)
		return inspect_command(f, command[0], err);
	if (t->is_system) {
		err_set(err, -EINVAL, "spans are measured in processes, not system-wide");
		return err_hint(err, "name a process, or several with --all-matching");
	}
	vec_foreach(pid, &t->pids.pids)
		TRY(inspect_process(f, *pid, err));
	vec_foreach(tid, &t->tids.pids) {
		int32_t pid;
		TRY(proc_tgid(*tid, &pid, err));
		TRY(inspect_process(f, pid, err));
	}
	return 0;
}

int span_probes_find(struct span_probes *p, const char *const *spans, size_t nr_spans,
		     const struct target *t, char **command, struct err *err)
{
	struct finder f CLEANUP(finder_release) = {.probes = p};
	TRY(inspect_target(&f, t, command, err));
	CLEANUP(buf_release) struct buf similar = {0};
	for (size_t i = 0; i < nr_spans; i++) {
		CLEANUP(err_release) struct err e = {0};
		if (add_span(&f, spans[i], &e) == -ENOENT)
			err_move(vec_add(&p->unknown), &e);
		else if (e.code)
			return err_move(err, &e);
		else if (!strpbrk(spans[i], "*?") && !strstr(spans[i], ".."))
			add_near(&f, spans[i], &similar);
	}
	p->similar = similar.n ? xstrdup(buf_str(&similar)) : NULL;
	return p->list.n ? 0 : err_move(err, &p->unknown.p[0]);
}
