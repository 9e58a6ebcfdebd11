/* Removes what identifies people and places; see redact.h. */
#include "base/base.h"
#include "model/redact.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/file/file.h"
#include "base/mem.h"

#define REDACTED_TEXT \
	"host, command, paths, names of files and peers, and texts of marks were removed"

/* Facts that say nothing about people or places. A fact that is not here is removed. */
static const enum fact_id harmless[] = {
	FACT_RECORDER,
	FACT_KIND,
	FACT_SOURCE,
	FACT_KERNEL,
	FACT_ARCH,
	FACT_CPU,
	FACT_CPUS,
	FACT_TARGET,
	FACT_TARGET_END,
	FACT_CONTAINER_ENGINE,
	FACT_JOINED,
	FACT_EVENT,
	FACT_FREQUENCY,
	FACT_MODE,
	FACT_STACKS,
	FACT_PYTHON,
	FACT_TAIL_CALLS,
	FACT_CPU_TIME,
	FACT_CPU_TIME_NS,
	FACT_THROTTLED_NS,
	FACT_ACCURACY,
	FACT_REMEDY,
	FACT_RECORDING_NOTE,
	FACT_DAMAGED,
	FACT_LOSSES_IGNORED,
	FACT_STEAL,
	FACT_HEAP_ALLOCATOR,
	FACT_HEAP_METHOD,
	FACT_HEAP_SAMPLING,
	FACT_HEAP_ATTACHED,
	FACT_HEAP_SLICES,
	FACT_HEAP_TICK,
	FACT_HEAP_ENDED,
	FACT_HEAP_PROGRAMS_ENDED,
	FACT_HEAP_ALLOCATIONS,
	FACT_HEAP_BYTES,
	FACT_HEAP_FREES,
	FACT_HEAP_FULL_FOR,
	FACT_HEAP_SIZES,
	FACT_HEAP_CHECK,
	FACT_HEAP_PROCESSES,
	FACT_HEAP_UNPATCHED_NAME,
	FACT_HEAP_RECORDER_STOPPED,
	FACT_HEAP_RECORDED_UNTIL,
	FACT_HEAP_THREADS_STOPPED,
	FACT_HEAP_LONGEST_THREAD_STOP,
	FACT_HEAP_LONGEST_STOP,
	FACT_HEAP_RING_READING,
	FACT_HEAP_LONGEST_GAP,
	FACT_HEAP_TABLE_BYTES,
	FACT_HEAP_PROBES,
	FACT_GROWTH,
	FACT_MEMORY_MACHINE,
	FACT_MEMORY_LIMIT,
	FACT_MEMORY_PEAK,
	FACT_AT_LIMIT,
	FACT_OUT_OF_MEMORY,
	FACT_MEMORY_PEAK_RSS,
	FACT_MEMORY_READINGS,
	FACT_MEMORY_PRESSURE,
	FACT_DISK_READS,
	FACT_IO_NOTHING,
	FACT_IO_CALLS_AT_START,
	FACT_BLOCK_IN_FLIGHT,
	FACT_EVENTS_WITH_STACKS,
	FACT_EVENTS_OF_MACHINE,
	FACT_EVENTS_SINGLE_FOR,
	FACT_NEVER_CALLED,
	FACT_INTERVALS,
	FACT_MASSIF_UNIT,
	FACT_MASSIF_LAST_SITES,
	FACT_FOLDED_ROUNDED,
};

/* ---- texts -------------------------------------------------------------------------------- */

static bool ends_path(char c)
{
	return !c || strchr("'\"<>(){}[],;", c);
}

/* Length of the folders of a path that begins at @s; 0: none begins there. */
static size_t folders_at(struct sv s, size_t at)
{
	char before = at ? s.p[at - 1] : ' ';
	if (isalnum((unsigned char)before) || strchr("_./-~$", before))
		return 0;
	size_t i = at;
	while (i < s.n && (s.p[i] == '.' || s.p[i] == '~')) /* "../x", "~/x" */
		i++;
	if (i >= s.n || s.p[i] != '/')
		return 0;
	size_t end = i + 1;
	for (; i < s.n && !ends_path(s.p[i]); i++)
		end = s.p[i] == '/' ? i + 1 : end;
	return end - at;
}

/*
 * Appends a text without the folders of the paths in it. Names of folders may have blanks, so of two
 * paths with a blank between them only the name of the last file is left.
 */
static void add_without_folders(struct buf *to, struct sv s)
{
	for (size_t i = 0; i < s.n;) {
		size_t n = folders_at(s, i);
		i += n;
		if (!n)
			buf_add_ch(to, s.p[i++]);
	}
}

static str_id without_folders(struct profile *p, str_id id)
{
	CLEANUP(buf_release) struct buf b = {0};
	struct sv s = profile_sv(p, id);
	if (!memchr(s.p, '/', s.n))
		return id;
	add_without_folders(&b, s);
	return profile_str(p, b.p, b.n);
}

static str_id base_of(struct profile *p, str_id id)
{
	struct sv s = profile_sv(p, id);
	struct sv base = sv_from_idx(s, (size_t)(sv_rindex(s, '/') + 1));
	return base.n == s.n ? id : profile_str(p, base.p, base.n);
}

/* ---- objects ------------------------------------------------------------------------------ */

static const char *kind_of(struct sv object)
{
	static const char *const kinds[] = {"tcp",  "udp",      "unix", "socket",
					    "pipe", "terminal", "file", "device"};
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		size_t n = strlen(kinds[i]);
		if (object.n > n && !memcmp(object.p, kinds[i], n) &&
		    (object.p[n] == ' ' || object.p[n] == ':'))
			return kinds[i];
	}
	return object.n && object.p[0] == '/' ? "file" : "object";
}

static bool is_harmless_object(struct sv object)
{
	static const char *const names[] = {"eventfd",  "eventpoll", "timerfd",
					    "signalfd", "inotify",   "io_uring"};
	if (sv_has_prefix(object, SV("lock 0x")))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (sv_eq_str(object, names[i]))
			return true;
	return false;
}

/* Objects of spans are names of functions. Returns by tag: it is one of a span. */
static uint8_t *tags_of_spans(const struct profile *p)
{
	uint8_t *is_span = xcalloc(p->tags.n, 1);
	vec_foreach(t, &p->tables) {
		if (t->id != TABLE_SPANS && t->id != TABLE_SPAN_TIME &&
		    t->id != TABLE_SLOWEST_SPANS)
			continue;
		for (size_t i = 0; i < t->n; i++)
			is_span[t->tag[i]] = 1;
	}
	return is_span;
}

static void redact_objects(struct profile *p)
{
	CLEANUP(free_p) uint8_t *is_span = tags_of_spans(p);
	CLEANUP(map_release) struct map numbered = {0};
	unsigned nr = 0;
	for (size_t i = 1; i < p->tags.n; i++) {
		struct tag *tag = &p->tags.p[i];
		struct sv object = profile_sv(p, tag->object);
		if (!tag->object || is_span[i] || is_harmless_object(object))
			continue;
		uint32_t *id = map_put(&numbered, tag->object, NULL);
		if (!*id) {
			char text[32];
			int n = snprintf(text, sizeof(text), "%s %u", kind_of(object), ++nr);
			*id = profile_str(p, text, (size_t)n);
		}
		tag->object = *id;
	}
}

/* ---- facts -------------------------------------------------------------------------------- */

static bool is_harmless(const char *key)
{
	for (size_t i = 0; i < ARRAY_LEN(harmless); i++)
		if (!strcmp(key, fact_key(harmless[i])))
			return true;
	return false;
}

/* The target may be the name of a container or a pattern: it stays if it is that of a thread. */
static bool is_thread(const struct profile *p, const char *name)
{
	for (size_t i = 1; i < p->tasks.n; i++)
		if (!strncmp(profile_text(p, p->tasks.p[i].comm), name, 15))
			return true;
	return false;
}

static void redact_facts(struct profile *p)
{
	size_t n = 0;
	bool is_page = profile_get_fact(p, FACT_PAGE_OF) != NULL;
	vec_foreach(f, &p->facts) {
		if (!is_harmless(profile_text(p, f->key)))
			continue;
		f->value = without_folders(p, f->value);
		p->facts.p[n++] = *f;
	}
	p->facts.n = n;
	const char *target = profile_get_fact(p, FACT_TARGET);
	if (target && !is_thread(p, target))
		profile_fact(p, FACT_TARGET, "target");
	/* "6.1.0-customer-7": what follows the version was chosen by whoever built it. */
	const char *kernel = profile_get_fact(p, FACT_KERNEL);
	if (kernel)
		profile_factf(p, FACT_KERNEL, "%.*s", (int)strcspn(kernel, "-+ "), kernel);
	if (is_page)
		profile_fact(p, FACT_PAGE_OF, "");
	profile_fact(p, FACT_REDACTED, REDACTED_TEXT);
}

/* ---- the profile -------------------------------------------------------------------------- */

static void redact_code(struct profile *p)
{
	for (size_t i = 1; i < p->modules.n; i++) {
		struct module *m = &p->modules.p[i];
		m->path = base_of(p, m->path);
		m->dev = 0;
		/* Two files of the same name stay two modules. */
		m->inode = m->kind == MODULE_ELF ? i : m->inode;
	}
	for (size_t i = 1; i < p->functions.n; i++) {
		struct function *f = &p->functions.p[i];
		f->name = without_folders(p, f->name);
		f->linkage = without_folders(p, f->linkage);
	}
	vec_foreach(f, &p->frames)
		f->file = base_of(p, f->file);
}

void profile_redact(struct profile **pp)
{
	struct profile *p = *pp;
	ASSERT(p->is_sealed);
	redact_code(p);
	redact_objects(p);
	redact_facts(p);
	for (size_t i = 1; i < p->tasks.n; i++)
		p->tasks.p[i].comm = without_folders(p, p->tasks.p[i].comm);
	vec_foreach(t, &p->tables)
		t->event = without_folders(p, t->event);
	for (size_t i = 0; i < p->marks.n; i++) {
		char text[32];
		int n = snprintf(text, sizeof(text), "mark %zu", i + 1);
		p->marks.p[i].text = profile_str(p, text, (size_t)n);
	}
	/* The old texts are still in the table of strings: a copy has only those in use. */
	struct profile *copy = profile_copy(p, 0);
	profile_free(p);
	*pp = copy;
}

void profile_drop_arguments(struct profile *p)
{
	const char *command = profile_get_fact(p, FACT_COMMAND);
	size_t n = command ? strcspn(command, " \t\n") : 0;
	if (command && command[n])
		profile_factf(p, FACT_COMMAND, "%.*s", (int)n, command);
}
