/* Option groups that several commands share; see optgroups.h. */
#include "base/base.h"
#include "cmd/optgroups.h"

#include <errno.h>
#include <unistd.h>

#include "analyze/memory/suppress.h"
#include "analyze/views.h"
#include "analyze/select/weightcolumn.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/sv.h"
#include "cmd/cmd.h"
#include "cmd/hints.h"
#include "host/cachedir.h"
#include "model/redact.h"

#define SUPPRESS_BYTES_MAX ((size_t)1 << 20)

/* Only digits: the selection takes a word of digits for an id, any other for a regex. */
static int set_tid(void *to, const char *arg, struct err *err)
{
	struct filter_opts *f = to;
	uint64_t tid;
	f->spec.thread = arg;
	if (sv_to_u64(sv_from_str(arg), &tid))
		return 0;
	err_set(err, -EINVAL, "'%s' is not a thread id", arg);
	return err_hint(err, "threads by name: --thread REGEX");
}

static const struct opt event_opts[] = {
	OPT_STR('e', "event", struct filter_opts, spec.event, "NAME",
		"event to show (default: the first with samples)"),
	OPT_STR(0, "weight", struct filter_opts, weight, "COLUMN",
		"column to add up, if the event has several: calls, bytes, time ... "
		"(default: mostly time); memory: allocated, calls, live, leaked, peak, temporary "
		"(allocations freed by their thread before its next allocation), temporary-bytes, "
		"freed, held (at exit, by processes that ended while others were recorded), mapped (outside the allocator), growth (anonymous memory touched for the "
		"first time; without page faults: allocated less freed); default: peak of a launched program, else live"),
	OPT_END,
};
const struct opt_group filter_event_group = {"Event", event_opts};

static const struct opt sample_opts[] = {
	OPT_STR(0, "time", struct filter_opts, spec.time, "FROM..TO",
		"only this time window, from the start: 2..5 (seconds), 500ms..2s, ..3s, "
		"10%..20%"),
	OPT_STR(0, "function", struct filter_opts, spec.function, "REGEX",
		"only samples with a matching function on the stack"),
	OPT_STR(0, "exclude", struct filter_opts, spec.exclude, "REGEX",
		"only samples without a matching function on the stack"),
	OPT_STR(0, "within", struct filter_opts, spec.within, "REGEX",
		"only what the outermost matching function calls; it becomes 100 %"),
	OPT_STR(0, "module", struct filter_opts, spec.module, "REGEX",
		"only samples whose leaf is in a matching binary or library"),
	OPT_STR('p', "pid", struct filter_opts, spec.pid, "PID,...", "only these processes"),
	OPT_STR(0, "comm", struct filter_opts, spec.comm, "REGEX",
		"only processes whose name (of the main thread) matches"),
	OPT_CALL('t', "tid", set_tid, "TID", "only the thread with this id"),
	OPT_STR(0, "thread", struct filter_opts, spec.thread, "REGEX",
		"only threads one of whose names matches"),
	OPT_SET('U', "user", struct filter_opts, mode, SELECT_USER, "only samples in user mode"),
	OPT_SET('K', "kernel", struct filter_opts, mode, SELECT_KERNEL,
		"only samples in the kernel"),
	OPT_LIST(0, "phase", struct filter_opts, phases, "NAME=RULE",
		 "define a phase: RULE is a regex on functions (the one nearest to the root wins) "
		 "or @FROM..TO; may be repeated"),
	OPT_STR(0, "only-phase", struct filter_opts, spec.phase, "NAME",
		"only samples of this phase"),
	OPT_END,
};
const struct opt_group filter_group = {"Filters (REGEX: Perl syntax, matches anywhere)",
				       sample_opts};

static const struct opt wait_opts[] = {
	OPT_STR(0, "reason", struct filter_opts, spec.reason, "REASON,...",
		"only waits for these reasons: lock, park, fsync, fault ... (assay report lists "
		"them), idle (all idle waits), active (all others), futex (sync, lock, park, "
		"join, backpressure, permit); !REASON: all but this one"),
	OPT_FLAG(0, "idle", struct filter_opts, shows_idle,
		 "also idle waits (park, poll, sleep ...), which are hidden by default"),
	OPT_STR(0, "min-duration", struct filter_opts, spec.min_duration, "TIME",
		"only waits of at least TIME: 500us, 10ms, 2s; rounded down to a power of two in ns"),
	OPT_STR(0, "max-duration", struct filter_opts, spec.max_duration, "TIME",
		"only waits of at most TIME; rounded up to a power of two in ns"),
	OPT_STR(0, "object", struct filter_opts, spec.object, "REGEX",
		"only waits for a matching file, socket or lock"),
	OPT_STR(0, "waker", struct filter_opts, spec.waker, "REGEX",
		"only waits ended by a matching thread or function"),
	OPT_END,
};
const struct opt_group filter_wait_group = {"Filters of waits", wait_opts};

static const struct opt heap_opts[] = {
	OPT_STR(0, "at", struct filter_opts, spec.heap.at, "TIME",
		"memory that was live TIME after the start: 12s, 500ms"),
	OPT_STR(0, "older-than", struct filter_opts, spec.heap.older_than, "TIME",
		"memory live at the end counts as leaked if it is at least this old (default: half "
		"of the capture; any age if the program has exited)"),
	OPT_STR(0, "suppress", struct filter_opts, suppress_path, "FILE",
		"show known leaks as one row: lines leak:PATTERN, as for LeakSanitizer"),
	OPT_STR(0, "dumps", struct filter_opts, dumps, "WHICH", DUMPS_HELP),
	OPT_END,
};
const struct opt_group filter_heap_group = {"Filters of memory", heap_opts};

int filter_finish(struct filter_opts *f, struct err *err)
{
	f->spec.mode = (enum select_mode)f->mode;
	f->spec.flags |= f->shows_idle ? SELECT_IDLE : 0;
	f->spec.heap.weight = f->weight;
	if (f->suppress_path) {
		int rc = file_read_named(&f->suppress, f->suppress_path, SUPPRESS_BYTES_MAX, err);
		rc = rc ? rc : suppress_check(buf_str(&f->suppress), err);
		if (rc)
			return err_wrap(err, "--suppress '%s'", f->suppress_path);
		f->spec.heap.suppress = buf_str(&f->suppress);
	}
	struct phase_rule *rules = arena_calloc(&f->arena, f->phases.n, sizeof(*rules));
	for (size_t i = 0; i < f->phases.n; i++) {
		const char *text = f->phases.p[i];
		const char *eq = strchr(text, '=');
		if (!eq || eq == text || !eq[1]) {
			err_set(err, -EINVAL, "--phase '%s': expected NAME=RULE", text);
			return err_hint(err, "for example --phase 'load=^read_input$' or "
					     "--phase 'warm-up=@0..5'");
		}
		rules[i] = (struct phase_rule){arena_strndup(&f->arena, text, (size_t)(eq - text)),
					       eq + 1};
	}
	f->spec.rules = rules;
	f->spec.nr_rules = f->phases.n;
	return 0;
}

int filter_weigh(const struct filter_opts *f, struct profile *p, struct err *err)
{
	if (!f->weight || views_find(p, &f->spec)->has_weights)
		return 0;
	return weightcolumn_set(p, f->spec.event, f->weight, err);
}

void filter_release(struct filter_opts *f)
{
	arena_release(&f->arena);
	buf_release(&f->suppress);
}

static const struct opt share_opts[] = {
	OPT_FLAG(0, "redact", struct share_opts, is_redacted,
		 "remove host, command, paths, names of files and peers, and texts of marks; names "
		 "of functions, modules and threads stay"),
	OPT_FLAG(0, "with-args", struct share_opts, has_arguments,
		 "keep the arguments of the profiled command (default: only its program)"),
	OPT_END,
};
const struct opt_group share_group = {"Privacy", share_opts};

void share_apply(const struct share_opts *o, struct profile **p)
{
	if (!o->has_arguments)
		profile_drop_arguments(*p);
	if (o->is_redacted)
		profile_redact(p);
}

static const struct opt source_opts[] = {
	OPT_LIST(
		0, "source", struct source_opts, folders, "DIR",
		"show the text of source lines, read below DIR: in the HTML page, in report --lines and "
		"--annotate; PREFIX=DIR: recorded paths PREFIX/x.c are DIR/x.c. May be repeated. "
		"Without it no source text is read"),
	OPT_END,
};
const struct opt_group source_group = {"Source text", source_opts};

int source_open(struct codefiles *c, const struct source_opts *o, struct err *err)
{
	codefiles_init(c);
	for (size_t i = 0; i < o->folders.n; i++)
		TRY(codefiles_add_source(c, o->folders.p[i], err));
	return 0;
}

void source_print_note(const struct codefiles *c)
{
	CLEANUP(buf_release) struct buf note = {0};
	codefiles_add_note(&note, c);
	if (note.n)
		log_note("%s", buf_str(&note));
}

static const struct opt output_opts[] = {
	OPT_STR('o', "output", struct output_opts, path, "FILE",
		"write to FILE (default '-', standard output)"),
	OPT_END,
};
const struct opt_group output_group = {"Output", output_opts};

struct text_style output_style(const struct renderer_choice *form, int fd)
{
	struct text_style style = renderer_style(form, fd);
	style.has_color = fd >= 0 && term_has_color(fd, cmd_color());
	style.add_hint = hint_add_words;
	return style;
}

static bool is_stdout(const struct output_opts *o)
{
	return !o->path || !strcmp(o->path, "-");
}

void output_render(const struct output_opts *o, struct buf *to, const struct report *r)
{
	struct text_style style = output_style(&o->form, is_stdout(o) ? STDOUT_FILENO : -1);
	renderer_render(&o->form, to, r, &style);
}

int output_write(const struct output_opts *o, const struct buf *b)
{
	if (is_stdout(o))
		return cmd_print(b);
	CLEANUP(err_release) struct err err = {0};
	return out_file(o->path, 0644, b, &err) ? cmd_fail(&err) : EXIT_OK;
}

int output_report(const struct output_opts *o, const struct report *r)
{
	CLEANUP(buf_release) struct buf b = {0};
	output_render(o, &b, r);
	return output_write(o, &b);
}

char *cmd_cache_dir(void)
{
	CLEANUP(err_release) struct err err = {0};
	char *dir = host_cache_dir(&err);
	if (!dir)
		log_info("%s", err_msg(&err));
	return dir;
}
