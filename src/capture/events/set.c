/* Resolves names of events on this kernel; see set.h. */
#include "base/base.h"
#include "capture/events/set.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file/file.h"
#include "base/text/lines.h"
#include "base/text/suggest.h"
#include "capture/events/readysets.h"

#define FILE_BYTES_MAX ((size_t)1 << 20)
#define WORD_MAX       128
#define WORDS_MAX      10000
#define NEAR_MAX       3

void event_set_release(struct event_set *s)
{
	vec_foreach(e, &s->events)
		trace_format_release(&e->format);
	vec_release(&s->events);
	vec_release(&s->words);
	vec_release(&s->notes);
	arena_release(&s->arena);
}

static int add_word(struct event_set *s, struct sv word, const char *where, struct err *err)
{
	if (word.n > WORD_MAX || s->words.n == WORDS_MAX)
		return err_set(err, -EINVAL, "%s%s: this is not a list of event names",
			       where ? "" : "events", where ? where : "");
	for (size_t i = 0; i < word.n; i++)
		if (word.p[i] <= ' ' || word.p[i] > '~')
			return err_set(err, -EINVAL, "%s%s'%.*s' is not the name of an event",
				       where ? where : "", where ? ": " : "", SV_ARGS(word));
	vec_push(&s->words, (struct event_word){arena_strndup(&s->arena, word.p, word.n), where});
	return 0;
}

int event_set_add_list(struct event_set *s, const char *list, struct err *err)
{
	struct sv rest = sv_from_str(list);
	size_t before = s->words.n;
	while (rest.n) {
		struct sv word = sv_trim(sv_split(&rest, ','));
		TRY(word.n ? add_word(s, word, NULL, err) : 0);
	}
	return s->words.n > before ? 0 : err_set(err, -EINVAL, "'%s' names no event", list);
}

int event_set_add_text(struct event_set *s, struct sv text, const char *name, struct err *err)
{
	struct lines in = lines_from(text.p, text.n);
	struct sv line;
	size_t before = s->words.n;
	while (lines_next(&in, &line)) {
		ssize_t comment = sv_index(line, '#');
		if (comment >= 0)
			line.n = (size_t)comment;
		struct sv rest = sv_trim(line);
		while (rest.n) {
			struct sv word = sv_trim(sv_split(&rest, ','));
			const char *where = arena_fmt(&s->arena, "%s:%" PRIu64, name, in.nr);
			TRY(word.n ? add_word(s, word, where, err) : 0);
		}
	}
	if (s->words.n > before)
		return 0;
	return err_set(err, -EINVAL, "'%s' names no event", name);
}

int event_set_add_file(struct event_set *s, const char *path, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	TRY(strcmp(path, "-") ? file_read_named(&text, path, FILE_BYTES_MAX, err)
			      : file_read_fd(&text, STDIN_FILENO, FILE_BYTES_MAX, err));
	return event_set_add_text(s, buf_sv(&text), arena_strdup(&s->arena, path), err);
}

int event_set_add_predefined(struct event_set *s, const char *name, struct err *err)
{
	CLEANUP(buf_release) struct buf all = {0};
	for (size_t i = 0; ready_sets[i].name; i++) {
		if (!strcmp(ready_sets[i].name, name))
			return event_set_add_text(s, sv_from_str(ready_sets[i].text), name, err);
		buf_addf(&all, "%s%s", i ? ", " : "", ready_sets[i].name);
	}
	err_set(err, -ENOENT, "there is no set of events '%s'", name);
	return err_hint(err, "ready sets: %s", buf_str(&all));
}

/* Events of other kernel versions or configurations: not misspelt, but missing here. */
static const char *const elsewhere[] = {
	"syscalls:sys_*_futex_wait*",
	"syscalls:sys_*_futex_wake",
	"syscalls:sys_*_futex_requeue",
	"syscalls:sys_*_epoll_pwait2",
	"syscalls:sys_*_epoll_wait",
	"syscalls:sys_*_poll",
	"syscalls:sys_*_select",
	"syscalls:sys_*_open",
	"syscalls:sys_*_openat2",
	"syscalls:sys_*_fork",
	"syscalls:sys_*_vfork",
	"syscalls:sys_*_pipe",
	"syscalls:sys_*_preadv2",
	"syscalls:sys_*_pwritev2",
	"syscalls:sys_*_io_uring_*",
	"syscalls:sys_*_statx",
	"syscalls:sys_*_renameat2",
	"syscalls:sys_*_process_madvise",
	"syscalls:sys_*_cachestat",
	"syscalls:sys_*_sync_file_range*",
	"sched:sched_stat_*",
	"sched:sched_blocked_reason",
	"block:block_io_*",
	"block:block_rq_error",
	"block:block_bio_*",
	"vmscan:mm_vmscan_*",
	"writeback:*",
	"exceptions:page_fault_*",
	"lock:contention_*",
	"filemap:*",
	"oom:*",
	"compaction:*",
	"migrate:*",
	"huge_memory:*",
	"mmap_lock:*",
	"io_uring:*",
	"readahead:*",
};

/* Tracepoints that were renamed, newest last. */
static const struct {
	const char *old;
	const char *now;
} moved[] = {
	{"writeback:writeback_dirty_page", "writeback:writeback_dirty_folio"},
	{"writeback:writeback_pages_written", "writeback:writeback_written"},
	{"writeback:wait_on_page_writeback", "writeback:folio_wait_writeback"},
	{"kmem:mm_page_free_direct", "kmem:mm_page_free"},
	{"vmscan:mm_vmscan_writepage", "vmscan:mm_vmscan_write_folio"},
	{"block:block_rq_abort", "block:block_rq_error"},
	{"block:block_sleeprq", "block:block_getrq"},
	{"syscalls:sys_enter_pread", "syscalls:sys_enter_pread64"},
	{"syscalls:sys_exit_pread", "syscalls:sys_exit_pread64"},
	{"syscalls:sys_enter_pwrite", "syscalls:sys_enter_pwrite64"},
	{"syscalls:sys_exit_pwrite", "syscalls:sys_exit_pwrite64"},
	{"syscalls:sys_enter_sendfile", "syscalls:sys_enter_sendfile64"},
	{"syscalls:sys_exit_sendfile", "syscalls:sys_exit_sendfile64"},
	{"syscalls:sys_enter_send", "syscalls:sys_enter_sendto"},
	{"syscalls:sys_exit_send", "syscalls:sys_exit_sendto"},
	{"syscalls:sys_enter_recv", "syscalls:sys_enter_recvfrom"},
	{"syscalls:sys_exit_recv", "syscalls:sys_exit_recvfrom"},
	{"syscalls:sys_enter_stat", "syscalls:sys_enter_newstat"},
	{"syscalls:sys_exit_stat", "syscalls:sys_exit_newstat"},
	{"syscalls:sys_enter_fstat", "syscalls:sys_enter_newfstat"},
	{"syscalls:sys_exit_fstat", "syscalls:sys_exit_newfstat"},
	{"syscalls:sys_enter_fdsync", "syscalls:sys_enter_fdatasync"},
};

static bool is_known(const struct tracefs_names *known, struct sv name)
{
	size_t low = 0;
	size_t high = known->names.n;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		struct sv at = known->names.p[mid];
		int c = memcmp(at.p, name.p, MIN(at.n, name.n));
		c = c ? c : (at.n > name.n) - (at.n < name.n);
		if (!c)
			return true;
		if (c < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return false;
}

/* Adds an event; NULL: it is in the set already. */
static struct named_event *add_event(struct event_set *s, struct sv name)
{
	vec_foreach(e, &s->events)
		if (sv_eq_str(name, e->name))
			return NULL;
	struct named_event *e = vec_add(&s->events);
	e->name = arena_strndup(&s->arena, name.p, name.n);
	e->cost = event_cost_of(name);
	return e;
}

static void add_software(struct event_set *s, const struct software_event *software)
{
	struct named_event *e = add_event(s, sv_from_str(software->name));
	if (!e)
		return;
	e->software = software;
	e->config = software->config;
}

static void add_note(struct event_set *s, const struct event_word *w, const char *text)
{
	vec_push(&s->notes, arena_fmt(&s->arena, "%s%s%s", w->where ? w->where : "",
				      w->where ? ": " : "", text));
}

struct near_names {
	struct sv word;
	struct sv names[NEAR_MAX];
	size_t distances[NEAR_MAX];
	size_t n;
};

static void consider_name(struct near_names *near, struct sv name)
{
	struct sv event = name;
	if (sv_index(name, ':') >= 0)
		(void)sv_split(&event, ':');
	bool is_bare = sv_index(near->word, ':') < 0;
	size_t d = is_bare && sv_eq(near->word, event) ? 0 : suggest_distance(near->word, name);
	if (is_bare && d)
		d = MIN(d, suggest_distance(near->word, event));
	if (d > MAX(near->word.n / 5, (size_t)2))
		return;
	size_t at = near->n;
	while (at > 0 && near->distances[at - 1] > d)
		at--;
	if (at == NEAR_MAX)
		return;
	near->n = MIN(near->n + 1, (size_t)NEAR_MAX);
	memmove(&near->names[at + 1], &near->names[at], (near->n - 1 - at) * sizeof(*near->names));
	memmove(&near->distances[at + 1], &near->distances[at],
		(near->n - 1 - at) * sizeof(*near->distances));
	near->names[at] = name;
	near->distances[at] = d;
}

/* Whether the kernel has the group (before the colon); a module may not be loaded. */
static bool has_system(const struct tracefs_names *known, struct sv system)
{
	for (size_t i = 0; i < known->names.n; i++) {
		struct sv name = known->names.p[i];
		if (name.n > system.n && name.p[system.n] == ':' && sv_has_prefix(name, system))
			return true;
	}
	return false;
}

static bool exists_in_other_kernels(const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(elsewhere); i++)
		if (!fnmatch(elsewhere[i], word, 0))
			return true;
	return false;
}

/* Clocks: these are sampled by assay cpu. */
static bool is_clock(const char *word)
{
	static const char *const clocks[] = {"cycles", "instructions", "cpu-clock", "task-clock"};
	for (size_t i = 0; i < ARRAY_LEN(clocks); i++)
		if (!strcmp(word, clocks[i]))
			return true;
	return false;
}

/* Names that perf has for hardware counters. */
static bool is_hardware(const char *word)
{
	static const char *const starts[] = {
		"cache-", "branch", "ref-cycles", "bus-cycles", "stalled-cycles",
		"L1-",    "LLC-",   "dTLB-",      "iTLB-",      "node-",
	};
	for (size_t i = 0; i < ARRAY_LEN(starts); i++)
		if (!strncmp(word, starts[i], strlen(starts[i])))
			return true;
	return false;
}

static int unknown_name_error(const struct event_word *w, const struct near_names *near,
			      struct err *err)
{
	CLEANUP(buf_release) struct buf names = {0};
	for (size_t i = 0; i < near->n; i++)
		buf_addf(&names, "%s%.*s", i ? ", " : "", SV_ARGS(near->names[i]));
	err_set(err, -EINVAL, "%s%sthere is no event '%s'", w->where ? w->where : "",
		w->where ? ": " : "", w->text);
	if (is_clock(w->text))
		return err_hint(err, "it is sampled, not counted by name: assay cpu -e %s",
				w->text);
	if (is_hardware(w->text))
		return err_hint(err,
				"it is a hardware event, which is sampled, not counted by name: "
				"assay cpu -e cycles or -e instructions where the machine has "
				"counters; others: perf record -g -e %s, then assay report "
				"perf.data",
				w->text);
	if (near->n)
		return err_hint(err, "did you mean %s?", buf_str(&names));
	return err_hint(err, "assay list events '*%s*' searches what there is", w->text);
}

/* Whether a word ends in modifiers as perf has them: "page-faults:u". */
static bool has_modifier(const char *word)
{
	const char *colon = strrchr(word, ':');
	return colon && colon[1] && strspn(colon + 1, "ukhpGHPSDIWe") == strlen(colon + 1) &&
	       strlen(colon + 1) <= 4;
}

static int modifier_error(const struct event_word *w, struct err *err)
{
	const char *colon = strrchr(w->text, ':');
	err_set(err, -EINVAL, "%s%s'%s': events take no modifiers", w->where ? w->where : "",
		w->where ? ": " : "", w->text);
	return err_hint(err,
			"count '%.*s', whoever caused it: rows have their stacks, kernel "
			"code included",
			(int)(colon - w->text), w->text);
}

static int resolve_unknown(struct event_set *s, const struct event_word *w,
			   const struct tracefs_names *known, struct err *err)
{
	if (has_modifier(w->text))
		return modifier_error(w, err);
	struct near_names near = {.word = sv_from_str(w->text)};
	for (size_t i = 0; i < known->names.n; i++)
		consider_name(&near, known->names.p[i]);
	const struct software_event *e;
	for (size_t i = 0; (e = event_software_at(i)); i++)
		consider_name(&near, sv_from_str(e->name));
	struct sv rest = near.word;
	struct sv system = sv_split(&rest, ':');
	bool has_event = rest.n > 0;
	/* "syscals:": the group is misspelt; "xfs:": no group has a similar name. */
	bool is_other_system = has_event && !near.n && !has_system(known, system);
	if (has_event && (exists_in_other_kernels(w->text) || is_other_system)) {
		add_note(s, w,
			 arena_fmt(&s->arena, "this kernel has no event '%s', left out", w->text));
		return 0;
	}
	return unknown_name_error(w, &near, err);
}

static int resolve_pattern(struct event_set *s, const struct event_word *w,
			   const struct tracefs_names *known, struct err *err)
{
	size_t before = s->events.n;
	bool has_any = false;
	for (size_t i = 0; i < known->names.n; i++) {
		if (fnmatch(w->text, known->names.p[i].p, 0))
			continue;
		has_any = true;
		add_event(s, known->names.p[i]);
	}
	const struct software_event *e;
	for (size_t i = 0; (e = event_software_at(i)); i++) {
		if (fnmatch(w->text, e->name, 0))
			continue;
		has_any = true;
		add_software(s, e);
	}
	if (s->events.n > COUNTS_EVENTS_MAX)
		return err_set(err, -EINVAL, "'%s' matches %zu events, at most %d can be counted",
			       w->text, s->events.n - before, COUNTS_EVENTS_MAX);
	if (!has_any)
		add_note(s, w, arena_fmt(&s->arena, "no event matches '%s', left out", w->text));
	return 0;
}

static int resolve_word(struct event_set *s, const struct event_word *w,
			const struct tracefs_names *known, struct err *err)
{
	struct sv word = sv_from_str(w->text);
	const struct software_event *e = event_software_find(w->text);
	if (strpbrk(w->text, "*?["))
		return resolve_pattern(s, w, known, err);
	if (e) {
		add_software(s, e);
		return 0;
	}
	if (is_known(known, word)) {
		add_event(s, word);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(moved); i++) {
		if (strcmp(moved[i].old, w->text) || !is_known(known, sv_from_str(moved[i].now)))
			continue;
		add_note(s, w,
			 arena_fmt(&s->arena, "'%s' is '%s' on this kernel", w->text,
				   moved[i].now));
		add_event(s, sv_from_str(moved[i].now));
		return 0;
	}
	return resolve_unknown(s, w, known, err);
}

int event_set_match(struct event_set *s, const struct tracefs_names *known, struct err *err)
{
	for (size_t i = 0; i < s->words.n; i++) {
		TRY(resolve_word(s, &s->words.p[i], known, err));
	}
	if (s->events.n > COUNTS_EVENTS_MAX)
		return err_set(err, -EINVAL, "these are %zu events, at most %d can be counted",
			       s->events.n, COUNTS_EVENTS_MAX);
	if (s->events.n)
		return 0;
	err_set(err, -ENOENT, "this kernel has none of these events");
	return err_hint(err, "assay list events shows what it has");
}

static bool needs_tracefs(const struct event_set *s)
{
	vec_foreach(w, &s->words)
		if (!event_software_find(w->text) && !is_clock(w->text) && !is_hardware(w->text))
			return true;
	return false;
}

static int open_formats(struct event_set *s, int fd, struct err *err)
{
	vec_foreach(e, &s->events) {
		if (e->software)
			continue;
		TRY(event_open_tracepoint(e, &s->arena, fd, sv_from_str(e->name), err));
	}
	return 0;
}

/* Software events are all that is left to users who may not use tracepoints. */
static int match_software(struct event_set *s, struct err *err)
{
	CLEANUP(buf_release) struct buf closed = {0};
	vec_foreach(w, &s->words) {
		const struct software_event *e = event_software_find(w->text);
		if (e)
			add_software(s, e);
		else
			buf_addf(&closed, "%s%s", closed.n ? ", " : "", w->text);
	}
	if (!s->events.n)
		return err->code;
	vec_push(&s->notes,
		 arena_fmt(&s->arena, "%s: left out: %s", err_msg(err), buf_str(&closed)));
	err_release(err);
	return 0;
}

int event_set_resolve(struct event_set *s, struct err *err)
{
	CLEANUP(tracefs_names_release) struct tracefs_names known = {0};
	CLEANUP(close_p) int fd = -1;
	if (needs_tracefs(s)) {
		int rc = tracefs_open(&fd, err);
		rc = rc ? rc : tracefs_list(&known, fd, err);
		if (rc)
			return rc == -EACCES ? match_software(s, err) : rc;
	}
	TRY(event_set_match(s, &known, err));
	return open_formats(s, fd, err);
}
