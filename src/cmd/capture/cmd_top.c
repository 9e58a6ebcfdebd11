/* assay top: the hottest functions and waits of a target now, refreshed each second. */
#include "base/base.h"
#include "cmd/cmd.h"

#include <errno.h>
#include <unistd.h>

#include "analyze/stacks/top.h"
#include "analyze/wait/waittables.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/process/stop.h"
#include "base/text/num.h"
#include "capture/wait/waitsource.h"
#include "cmd/capture/capture_command.h"
#include "cmd/capture/targetopts.h"
#include "cmd/optgroups.h"
#include "host/privileges.h"
#include "render/renderers.h"
#include "render/screen.h"
#include "render/text.h"
#include "session/capture.h"

#define EVERY_MIN_NS (100 * NS_PER_MS)
#define EVERY_MAX_NS (3600 * NS_PER_SEC)
#define ROWS_PIPE    20  /* of a table in a pipe */
#define ROWS_BOTH    12  /* if it has two */
#define OTHER_LINES  10  /* of a page: titles, heads, notes */
#define MIN_PCT      0.1 /* hide functions that only call others */

enum top_shown { TOP_FUNCTIONS = 1 << 0, TOP_WAITS = 1 << 1 };

struct top_opts {
	struct target_opts target;
	struct capture_opts capture; /* only its rate */
	struct renderer_choice form;
	uint64_t every_ns;
	uint64_t nr_pages; /* 0 = no limit */
	bool has_idle;
};

static const struct opt top_table[] = {
	OPT_DURATION('d', "every", struct top_opts, every_ns, "TIME",
		     "time between pages, from 100ms (default 1s)"),
	OPT_U64('n', "pages", struct top_opts, nr_pages, "N",
		"end after N pages (default: until q or Ctrl-C)"),
	OPT_FLAG(0, "idle", struct top_opts, has_idle,
		 "also idle waits: threads that wait for work"),
	OPT_END,
};
static const struct opt_group top_group = {"Pages", top_table};

static const char details[] =
	"Shows which functions use the CPU and what threads wait for, in the last second, and then in "
	"the next one. On a terminal it is a live page with the keys of top: q quits, h is help, space "
	"shows the time since the last page now, s or d set the time between pages, f shows functions, "
	"w waits, b both, i idle waits. In a pipe each page is printed after the other.\n"
	"\n"
	"Nothing is recorded. A page has the samples and the ended waits since the page before; a wait "
	"that lasts longer counts in each page by its part. Functions whose names are still being "
	"read from a large binary appear as addresses at first.";

static const char examples[] = "assay top redis-server\tuntil q\n"
			       "sudo assay top -a\tthe whole system\n"
			       "assay top -d 5 -n 3 redis-server | cat\tthree pages of 5 seconds\n"
			       "assay top -n 1 --json redis-server\tone page as JSON\n";

static const char keys_text[] = "q      quit\n"
				"space  show the time since the last page now\n"
				"s, d   set the time between pages\n"
				"f      functions only      w   waits only      b   both\n"
				"i      idle waits too, or not\n"
				"h      this help, any key leaves it\n";

struct top {
	const struct top_opts *o;
	const char *name;
	struct screen screen;
	bool has_screen;
	unsigned shown; /* enum top_shown */
	bool has_idle;
	bool shows_help;
	bool is_typing; /* the time between pages */
	struct buf typed;
	struct buf page; /* the last one, to be drawn again */
	uint64_t nr_pages;
	bool has_lost_reader;
	struct capture_live live;
};

/* ---- a page --------------------------------------------------------------------------------- */

static bool select_table_of(struct arena *a, const struct profile *p, const char *event,
			    unsigned flags, struct selection *ret_sel)
{
	CLEANUP(err_release) struct err err = {0};
	struct select_spec spec = {.event = event, .flags = flags};
	return !select_run(a, p, &spec, ret_sel, &err) && ret_sel->nr_rows;
}

static double cpus_in_use(const struct selection *sel, double seconds)
{
	double hz = sel->p->tables.p[sel->table].freq_hz;
	if (sel->unit == UNIT_NS)
		return (double)sel->weight / 1e9 / seconds;
	return hz > 0 ? (double)sel->nr_samples / hz / seconds : 0;
}

static struct view_limits limits_of(const struct top *t)
{
	bool has_both = t->shown == (TOP_FUNCTIONS | TOP_WAITS);
	uint64_t rows = (uint64_t)MAX(t->screen.rows - OTHER_LINES, 2);
	if (!renderer_is_text(&t->o->form))
		return (struct view_limits){0};
	if (!t->has_screen)
		rows = has_both ? ROWS_BOTH : ROWS_PIPE;
	else if (has_both)
		rows = MAX(rows / 2, (uint64_t)1);
	return (struct view_limits){.max_rows = rows, .min_pct = MIN_PCT};
}

/* The event of the first table of this kind that has rows; NULL: there is none. */
static const char *event_of(const struct profile *p, enum table_id id)
{
	vec_foreach(t, &p->tables)
		if (t->id == id && t->n)
			return profile_text(p, t->event);
	return NULL;
}

static void add_functions(struct report *r, struct arena *a, const struct profile *p,
			  const struct view_limits *limits, struct buf *title)
{
	struct selection sel;
	double seconds = (double)MAX(p->end_ns - p->start_ns, (uint64_t)1) / 1e9;
	const char *event = event_of(p, TABLE_SAMPLES);
	if (!event || !select_table_of(a, p, event, 0, &sel)) {
		buf_add_str(title, ", no CPU time");
		return;
	}
	buf_addf(title, ", %.2f CPUs in use", cpus_in_use(&sel, seconds));
	top_report(r, &sel, BY_FUNCTION, limits);
}

static void add_waits(struct report *r, struct arena *a, const struct profile *p,
		      const struct view_limits *limits, bool has_idle)
{
	struct selection sel;
	const char *event = event_of(p, TABLE_OFF_CPU);
	if (event && select_table_of(a, p, event, has_idle ? SELECT_IDLE : 0, &sel))
		waits_table(r, &sel, WAITS_FUNCTIONS, limits);
	else
		report_note(r, "no waits%s", has_idle ? "" : "; idle waits are not shown (--idle)");
}

static void make_page(struct top *t, const struct profile *p)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(buf_release) struct buf title = {0};
	struct text_style style = output_style(&t->o->form, STDOUT_FILENO);
	struct view_limits limits = limits_of(t);
	buf_addf(&title, "%s, last %s", t->name, num_ns(p->end_ns - p->start_ns).s);
	if (t->shown & TOP_FUNCTIONS)
		add_functions(r, &a, p, &limits, &title);
	if (t->shown & TOP_WAITS)
		add_waits(r, &a, p, &limits, t->has_idle);
	if (p->losses.nr[LOSS_LOST])
		report_note(r, "%s lost since the start: rings were full",
			    num_noun(p->losses.nr[LOSS_LOST], "events").s);
	r->has_no_samples = true;
	r->title = buf_str(&title);
	if (t->has_screen) {
		style.width = (unsigned)t->screen.columns;
		style.has_color = false; /* the screen has styles of its own */
	}
	style.max_lines = 0; /* limits_of cuts the tables */
	style.add_hint = NULL;
	buf_clear(&t->page);
	renderer_render(&t->o->form, &t->page, r, &style);
}

/* ---- the screen ----------------------------------------------------------------------------- */

static void draw(struct top *t)
{
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(buf_release) struct buf last = {0};
	buf_add_sv(&text, t->shows_help ? sv_from_str(keys_text) : buf_sv(&t->page));
	screen_clear(&t->screen);
	int row = 0;
	for (struct sv left = buf_sv(&text); left.n && row < t->screen.rows - 1; row++) {
		CLEANUP(buf_release) struct buf line = {0};
		buf_add_sv(&line, sv_split(&left, '\n'));
		screen_put(&t->screen, row, 0, row ? SCREEN_PLAIN : SCREEN_BOLD, buf_str(&line));
	}
	if (t->is_typing)
		buf_addf(&last, "time between pages (now %s): %s", num_ns(t->live.every_ns).s,
			 buf_str(&t->typed));
	else
		buf_addf(&last,
			 "every %s   q quit  h help  space now  s interval  f w b what is shown",
			 num_ns(t->live.every_ns).s);
	screen_put(&t->screen, t->screen.rows - 1, 0, SCREEN_FAINT, buf_str(&last));
	screen_show(&t->screen);
}

/* Takes the typed time; a wrong one is left as it was. */
static void set_every(struct top *t)
{
	uint64_t ns;
	if (!opt_to_duration(&ns, buf_str(&t->typed), NULL) && ns >= EVERY_MIN_NS &&
	    ns <= EVERY_MAX_NS)
		t->live.every_ns = ns;
}

static void type_key(struct top *t, int key)
{
	if (key == SCREEN_ENTER)
		set_every(t);
	if (key == SCREEN_ENTER || key == SCREEN_ESCAPE) {
		t->is_typing = false;
		buf_clear(&t->typed);
	} else if (key == SCREEN_BACKSPACE && t->typed.n) {
		t->typed.p[--t->typed.n] = 0;
	} else if (key > ' ' && key < 0x7f && t->typed.n < 12) {
		buf_add_ch(&t->typed, (char)key);
	}
}

/* Returns true if a page is to be made now. */
static bool take_key(struct top *t, int key)
{
	if (t->is_typing) {
		type_key(t, key);
		return false;
	}
	bool was_help = t->shows_help;
	t->shows_help = !was_help && (key == 'h' || key == '?');
	if (was_help && key != 'q')
		return false;
	switch (key) {
	case 'q':
	case 'Q':
	case SCREEN_CLOSED:
		stop_request();
		return false;
	case 's':
	case 'd':
		t->is_typing = true;
		return false;
	case 'f':
		t->shown = TOP_FUNCTIONS;
		return true;
	case 'w':
		t->shown = TOP_WAITS;
		return true;
	case 'b':
		t->shown = TOP_FUNCTIONS | TOP_WAITS;
		return true;
	case 'i':
		t->has_idle = !t->has_idle;
		return true;
	default:
		return key == ' ';
	}
}

static bool take_input(void *ctx)
{
	struct top *t = ctx;
	bool is_asked = false;
	bool has_changed = screen_measure(&t->screen);
	int key;
	while ((key = screen_key(&t->screen, 0)) != SCREEN_NO_KEY) {
		has_changed = true;
		is_asked |= take_key(t, key);
		if (key == SCREEN_CLOSED)
			break;
	}
	if (has_changed)
		draw(t);
	return is_asked;
}

static bool show(void *ctx, const struct profile *p)
{
	struct top *t = ctx;
	make_page(t, p);
	t->nr_pages++;
	if (t->has_screen) {
		draw(t);
	} else {
		if (renderer_is_text(&t->o->form))
			buf_add_ch(&t->page, '\n');
		t->has_lost_reader = file_write_all(STDOUT_FILENO, t->page.p, t->page.n, NULL) != 0;
	}
	return t->has_lost_reader || t->nr_pages == t->o->nr_pages;
}

/* ---- the command ---------------------------------------------------------------------------- */

static int watch_target(struct top *t, struct chosen_target *target, struct capture_result *r,
			struct err *err)
{
	const struct top_opts *o = t->o;
	CLEANUP(free_p) char *cache_dir = cmd_cache_dir();
	struct capture_options c = {
		.kind = "top",
		.tables = TABLE_SET(SAMPLES) | (WAIT_TABLES & ~TABLE_SET(BLAME)),
		.target = &target->target,
		.duration_ns = target->duration_ns,
		.freq_hz = capture_freq_hz(&o->capture, target->duration_ns),
		.cache_dir = cache_dir,
		.recording_fd = -1,
		.live = &t->live,
	};
	t->live = (struct capture_live){.show = show,
					.input = t->has_screen ? take_input : NULL,
					.fd = t->has_screen ? screen_fd(&t->screen) : -1,
					.every_ns = o->every_ns,
					.ctx = t};
	return capture_run(r, &c, err);
}

static int run(const struct top_opts *o, struct chosen_target *target)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(capture_result_release) struct capture_result r = {0};
	struct top t = {.o = o,
			.name = target->target.name,
			.shown = TOP_FUNCTIONS | TOP_WAITS,
			.live.every_ns = o->every_ns,
			.has_idle = o->has_idle};
	if (host_become_invoker(&err) || stop_install(&err))
		return cmd_fail(&err);
	bool wants_screen =
		renderer_is_text(&o->form) && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO);
	if (wants_screen && !screen_open(&t.screen, cmd_color() != TERM_NEVER, &err)) {
		t.has_screen = true;
		(void)screen_measure(&t.screen);
		buf_addf(&t.page, "%s: starting\n", t.name);
		draw(&t);
	}
	err_release(&err);
	err = (struct err){0};
	int rc = watch_target(&t, target, &r, &err);
	if (t.has_screen)
		screen_close(&t.screen);
	buf_release(&t.page);
	buf_release(&t.typed);
	if (rc)
		return cmd_fail(&err);
	if (r.end == CAPTURE_END_TARGET)
		log_note("the target has ended");
	return t.nr_pages ? EXIT_OK : EXIT_NOTHING;
}

int cmd_top(int argc, char **argv)
{
	struct top_opts o = {.every_ns = NS_PER_SEC};
	CLEANUP(opt_args_release) struct opt_args args = {0};
	CLEANUP(chosen_target_release) struct chosen_target target = {0};
	const struct opt_cmd cmd = {
		.name = "top",
		.usage = {"[OPTION...] TARGET [SECONDS]"},
		.details = details,
		.examples = examples,
		.groups = {{&top_group, &o},
			   {&target_group, &o.target},
			   {&capture_freq_group, &o.capture},
			   {&renderer_group, &o.form}},
	};
	int status;
	if (!cmd_parse(&args, &cmd, argc, argv, &status))
		return status;
	if (o.every_ns < EVERY_MIN_NS || o.every_ns > EVERY_MAX_NS)
		return cmd_usage("top", "option '--every': from 100ms to 1h");
	if (!target_opts_choose(&target, &o.target, &args, &status))
		return status;
	return run(&o, &target);
}
