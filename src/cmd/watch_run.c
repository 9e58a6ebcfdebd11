/* assay watch: the loop; see watch_run.h. */
#include "base/base.h"
#include "cmd/watch_run.h"

#include <poll.h>
#include <unistd.h>

#include "analyze/memverdict.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/spawn.h"
#include "base/stop.h"
#include "cmd/cmd.h"
#include "cmd/watch_end.h"
#include "cmd/watch_lines.h"
#include "cmd/watch_screen.h"

/* Rows of the live table that are kept to be drawn again. */
#define SHOWN_MAX 500

struct loop {
	const struct watch_opts *o;
	struct watch_state *s;
	struct watch_screen *screen; /* NULL: lines */
	struct spawn *child;         /* NULL: none */
	int lines_fd;
	bool shows_mappings;
	bool has_lost_reader;
	VEC(struct watch_tick) shown;
	int rows; /* of the terminal when it was drawn last */
	int columns;
	uint64_t deadline_ns;
};

/* ---- the screen --------------------------------------------------------------------------- */

static void add_head(struct buf *to, const struct loop *l, const struct watch_tick *t)
{
	const struct watch_state *s = l->s;
	CLEANUP(buf_release) struct buf name = {0};
	escape_term(&name, sv_from_str(s->name));
	buf_addf(to, "assay watch %s: ", buf_str(&name));
	if (t->m.nr_processes == 1)
		buf_addf(to, "process %d, ", s->probe.processes.p[0].pid);
	else
		buf_addf(to, "%u processes, ", t->m.nr_processes);
	buf_addf(to, "%u thread%s; ", t->m.nr_threads, t->m.nr_threads == 1 ? "" : "s");
	num_add_ns(to, t->time_ns - s->lines.start_ns);
	buf_add_str(to, "   q quit, m mappings, space now\n");
}

static void add_levels(struct buf *to, const struct loop *l, const struct watch_tick *t)
{
	const struct watch_state *s = l->s;
	buf_add_str(to, "page tables ");
	num_add_bytes(to, t->m.page_table_bytes);
	if (t->has_pss) {
		buf_add_str(to, "; private ");
		num_add_bytes(to, t->m.private_clean_bytes + t->m.private_dirty_bytes);
		buf_add_str(to, ", huge pages ");
		num_add_bytes(to,
			      t->m.anon_huge_bytes + t->m.file_huge_bytes + t->m.shmem_huge_bytes);
	} else {
		buf_add_str(to, "; PSS: no right to read it");
	}
	if (t->has_group) {
		CLEANUP(buf_release) struct buf path = {0};
		escape_term(&path, sv_from_str(s->probe.group.path));
		buf_add_str(to, "; cgroup ");
		num_add_bytes(to, t->group.usage_bytes);
		if (t->group.limit_bytes != MEMGROUP_NO_LIMIT) {
			buf_add_str(to, " of ");
			num_add_bytes(to, t->group.limit_bytes);
		}
		buf_addf(to, " (%s)", buf_str(&path));
	}
	buf_add_ch(to, '\n');
}

static void add_trend(struct buf *to, const struct loop *l)
{
	CLEANUP(arena_release) struct arena a = {0};
	struct memverdict v = watch_state_verdict(l->s, &a);
	buf_add_str(to, "so far: ");
	if (v.kept.is_known) {
		buf_add_str(to, "kept memory ");
		memslope_add(to, &v.kept);
		buf_add_str(to, "; ");
	}
	buf_addf(to, "%s\n", memverdict_key(v.kind));
}

static void add_ticks(struct buf *to, const struct loop *l, int rows)
{
	watch_lines_heading(to, &l->s->lines);
	size_t nr = rows > 0 ? MIN((size_t)rows, l->shown.n) : 0;
	for (size_t i = l->shown.n - nr; i < l->shown.n; i++) {
		buf_add_ch(to, '\n');
		watch_lines_add(to, &l->s->lines, &l->shown.p[i]);
	}
}

static void draw(struct loop *l)
{
	CLEANUP(buf_release) struct buf page = {0};
	if (!l->shown.n)
		return;
	const struct watch_tick *t = vec_last(&l->shown);
	int rows = l->rows = watch_screen_rows(l->screen);
	l->columns = watch_screen_columns(l->screen);
	l->s->lines.columns = (unsigned)l->columns;
	add_head(&page, l, t);
	add_levels(&page, l, t);
	add_trend(&page, l);
	buf_add_ch(&page, '\n');
	if (l->shows_mappings)
		watch_end_mappings(&page, l->s, (uint64_t)MAX(rows - 8, 3), l->s->lines.columns);
	else
		add_ticks(&page, l, rows - 5);
	watch_screen_draw(l->screen, &page);
}

/* ---- lines -------------------------------------------------------------------------------- */

static void put(struct loop *l, const struct buf *b)
{
	CLEANUP(err_release) struct err err = {0};
	/* `assay watch | head` is over when head has read enough. */
	if (!l->has_lost_reader && file_write_all(l->lines_fd, b->p, b->n, &err))
		l->has_lost_reader = true;
}

static void put_heading(struct loop *l)
{
	CLEANUP(buf_release) struct buf b = {0};
	if (l->o->is_csv) {
		watch_lines_csv_heading(&b);
	} else if (!l->o->is_json) {
		watch_lines_heading(&b, &l->s->lines);
		buf_add_ch(&b, '\n');
	}
	if (b.n)
		put(l, &b);
}

static void put_tick(struct loop *l, const struct watch_tick *t)
{
	CLEANUP(buf_release) struct buf b = {0};
	if (l->o->is_csv) {
		watch_lines_csv(&b, &l->s->lines, t);
	} else if (l->o->is_json) {
		struct json j = json_to(&b);
		json_obj(&j);
		watch_lines_json(&j, &l->s->lines, t);
		json_end(&j);
		buf_add_ch(&b, '\n');
	} else {
		watch_lines_add(&b, &l->s->lines, t);
		buf_add_ch(&b, '\n');
	}
	put(l, &b);
}

/* ---- the loop ----------------------------------------------------------------------------- */

static void take(struct loop *l, const struct watch_tick *t)
{
	bool is_first = !l->s->points.n;
	watch_state_add(l->s, t);
	if (!l->screen) {
		if (is_first)
			put_heading(l);
		put_tick(l, t);
		return;
	}
	if (l->shown.n >= SHOWN_MAX) {
		memmove(l->shown.p, l->shown.p + 1, (l->shown.n - 1) * sizeof(*l->shown.p));
		l->shown.n--;
	}
	vec_push(&l->shown, *t);
	draw(l);
}

/* True: take a reading now. */
static bool handle_key(struct loop *l, char key)
{
	if (key == 'q' || key == 'Q')
		stop_request();
	if (key == 'm')
		l->shows_mappings = !l->shows_mappings;
	return key == ' ' || key == 'm';
}

static bool is_over(struct loop *l)
{
	return stop_count() || l->has_lost_reader || (l->child && spawn_has_ended(l->child)) ||
	       clock_mono_ns() >= l->deadline_ns;
}

static void wait_until(struct loop *l, uint64_t until_ns)
{
	for (;;) {
		uint64_t now = clock_mono_ns();
		if (now >= until_ns || is_over(l))
			return;
		struct pollfd fds[] = {
			{.fd = stop_fd(), .events = POLLIN},
			{.fd = l->screen ? watch_screen_fd(l->screen) : -1, .events = POLLIN},
		};
		uint64_t left_ms = (until_ns - now) / NS_PER_MS + 1;
		(void)poll(fds, ARRAY_LEN(fds), (int)MIN(left_ms, (uint64_t)250));
		if (l->screen && (l->rows != watch_screen_rows(l->screen) ||
				  l->columns != watch_screen_columns(l->screen)))
			draw(l);
		stop_drain();
		char key = l->screen ? watch_screen_key(l->screen) : 0;
		if (key && handle_key(l, key))
			return;
	}
}

/* Until the time is up, the target or the command ends, or somebody stops it. */
static int watch(struct loop *l, struct err *err)
{
	uint64_t next_ns = clock_mono_ns();
	for (;;) {
		struct watch_tick t;
		if (watch_state_read(l->s, &t, err)) {
			/* The end of a target is the end of the watch, not a failure. */
			if (!l->s->points.n && !l->child)
				return err->code;
			err_clear(err);
			return 0;
		}
		take(l, &t);
		next_ns += l->o->every_ns;
		uint64_t now = clock_mono_ns();
		if (next_ns < now) /* stopped, or slower than it was to be: no burst after it */
			next_ns = now;
		wait_until(l, MIN(next_ns, l->deadline_ns));
		if (is_over(l))
			return 0;
	}
}

static int loop_on(struct loop *l, const struct opt_args *args, struct err *err)
{
	bool is_plain = !l->o->is_csv && !l->o->is_json && !args->command;
	l->lines_fd =
		args->command && !l->o->is_csv && !l->o->is_json ? STDERR_FILENO : STDOUT_FILENO;
	if (is_plain && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) &&
	    watch_screen_open(&l->screen, err))
		err_clear(err); /* lines, then */
	l->shows_mappings = l->o->shows_mappings;
	int rc = watch(l, err);
	watch_screen_free(l->screen);
	l->screen = NULL;
	vec_release(&l->shown);
	return rc;
}

static int watch_chosen(const struct watch_opts *o, const struct chosen_target *t,
			const struct opt_args *args, struct spawn *child)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(watch_state_release) struct watch_state s = {0};
	struct loop l = {.o = o, .s = &s, .child = child};
	l.deadline_ns = t->duration_ns ? clock_mono_ns() + t->duration_ns : UINT64_MAX;
	int rc = watch_state_open(&s, o, t, child ? child->pid : 0, args, &err);
	rc = rc ? rc : loop_on(&l, args, &err);
	if (rc) {
		log_err(&err);
		watch_state_abandon(&s);
		return EXIT_FAILED;
	}
	return watch_end(&s, o, args->command != NULL);
}

static int watch_command(const struct watch_opts *o, const struct chosen_target *t,
			 const struct opt_args *args)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(spawn_release) struct spawn child = {.gate_fd = -1, .status_fd = -1};
	int rc = spawn_open(&child, args->command, &err);
	rc = rc ? rc : spawn_release_gate(&child, args->command[0], &err);
	if (rc) {
		log_err(&err);
		return child.is_reaped ? spawn_exit_code(&child) : EXIT_ASSAY_FAILED;
	}
	int status = watch_chosen(o, t, args, &child);
	while (!child.is_reaped && stop_count() < 2)
		(void)spawn_wait(&child); /* interrupted by signals: then asks again */
	int code = child.is_reaped ? spawn_exit_code(&child) : status;
	return status == EXIT_FAILED && !code ? EXIT_ASSAY_FAILED : code;
}

int watch_run(const struct watch_opts *o, const struct chosen_target *t,
	      const struct opt_args *args)
{
	CLEANUP(err_release) struct err err = {0};
	if (stop_install(&err)) {
		log_err(&err);
		return args->command ? EXIT_ASSAY_FAILED : EXIT_FAILED;
	}
	return args->command ? watch_command(o, t, args) : watch_chosen(o, t, args, NULL);
}
