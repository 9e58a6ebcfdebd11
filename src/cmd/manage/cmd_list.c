/* assay list events: lists the events of this kernel. `assay list` alone lists recordings. */
#include "base/base.h"
#include "cmd/cmd.h"

#include <fnmatch.h>
#include <unistd.h>

#include "base/text/json.h"
#include "base/log.h"
#include "base/text/num.h"
#include "capture/events/set.h"
#include "capture/events/readysets.h"
#include "host/tracefs.h"

struct list_opts {
	bool is_json;
	bool has_names_only;
};

static const struct opt list_opts[] = {
	OPT_FLAG(0, "names", struct list_opts, has_names_only,
		 "print names only, one a line, as assay events --file reads them"),
	OPT_FLAG('j', "json", struct list_opts, is_json, "print JSON instead of a table"),
	OPT_END,
};
static const struct opt_group list_group = {"Options", list_opts};

static const char details[] =
	"Lists the events that assay events can count on this kernel: the fields of each, what "
	"counting it costs, and who may count it. GLOB (with * and ?) or a part of a name "
	"selects. COST is \"low\", \"call\" (a system call: while it is counted, each system "
	"call of every process takes about 25 ns longer) or \"high\" (the event may be very "
	"frequent). Without the word events, assay list lists recordings, as assay ls does.";

static const char examples[] =
	"assay list events\tall events\n"
	"assay list events futex\tevents with futex in their name\n"
	"assay list events 'block:*' --names > my-events.conf\ta file for assay events\n";

struct event_rows {
	VEC(struct named_event) events;
	struct arena arena;
};

static void event_rows_release(struct event_rows *r)
{
	vec_foreach(e, &r->events)
		trace_format_release(&e->format);
	vec_release(&r->events);
	arena_release(&r->arena);
}

static bool is_wanted(const char *name, const char *glob)
{
	if (!glob)
		return true;
	return strpbrk(glob, "*?[") ? !fnmatch(glob, name, 0) : strstr(name, glob) != NULL;
}

static void add_software(struct event_rows *r, const char *glob)
{
	const struct software_event *e;
	for (size_t i = 0; (e = event_software_at(i)); i++)
		if (is_wanted(e->name, glob))
			vec_push(&r->events,
				 (struct named_event){.name = e->name,
						      .software = e,
						      .cost = event_cost_of(sv_from_str(e->name))});
}

static int add_tracepoints(struct event_rows *r, const char *glob, struct err *err)
{
	CLEANUP(tracefs_names_release) struct tracefs_names known = {0};
	CLEANUP(close_p) int fd = -1;
	TRY(tracefs_open(&fd, err));
	TRY(tracefs_list(&known, fd, err));
	vec_foreach(name, &known.names) {
		struct named_event e;
		if (!is_wanted(name->p, glob) ||
		    event_open_tracepoint(&e, &r->arena, fd, *name, NULL))
			continue; /* its module was unloaded meanwhile */
		vec_push(&r->events, e);
	}
	return 0;
}

static const char *const cost_texts[] = {
	[EVENT_COST_LOW] = "low", [EVENT_COST_CALL] = "call", [EVENT_COST_HIGH] = "high"};

/* Some software events of a user's own processes need no privilege. */
static const char *right_text(const struct named_event *e)
{
	return e->software && e->software->unprivileged ? "user" : "root";
}

static void add_text(struct buf *to, const struct event_rows *r)
{
	size_t width = strlen("EVENT");
	vec_foreach(e, &r->events)
		width = MAX(width, strlen(e->name));
	buf_addf(to, "%-*s  COST  NEEDS  FIELDS\n", (int)width, "EVENT");
	vec_foreach(e, &r->events) {
		buf_addf(to, "%-*s  %-4s  %-5s", (int)width, e->name, cost_texts[e->cost],
			 right_text(e));
		size_t before = to->n;
		buf_add_str(to, "  ");
		trace_format_list(to, &e->format);
		if (to->n == before + 2)
			to->n = before;
		buf_add_ch(to, '\n');
	}
	buf_addf(to, "%s\n", num_noun(r->events.n, "events").s);
}

static void add_json_event(struct json *j, const struct named_event *e)
{
	json_obj(j);
	json_put_str(j, "name", e->name);
	json_put_str(j, "kind", e->software ? "software" : "tracepoint");
	json_put_str(j, "cost", cost_texts[e->cost]);
	json_put_str(j, "needs", right_text(e));
	json_put_bool(j, "machine_wide", e->count.flags & COUNT_MACHINE);
	json_put_arr(j, "arguments");
	for (uint32_t i = 0; i < e->format.nr_fields; i++)
		if (!sv_eq_str(e->format.fields[i].name, "__syscall_nr"))
			json_sv(j, e->format.fields[i].name);
	json_end(j);
	json_end(j);
}

static void add_json(struct buf *to, const struct event_rows *r)
{
	struct json j = json_to(to);
	json_obj(&j);
	json_put_str(&j, "schema", "assay-events");
	json_put_u64(&j, "version", 1);
	json_put_arr(&j, "events");
	vec_foreach(e, &r->events)
		add_json_event(&j, e);
	json_end(&j);
	json_put_arr(&j, "sets");
	for (size_t i = 0; ready_sets[i].name; i++) {
		json_obj(&j);
		json_put_str(&j, "name", ready_sets[i].name);
		json_put_str(&j, "about", ready_sets[i].help);
		json_end(&j);
	}
	json_end(&j);
	json_end(&j);
	buf_add_ch(to, '\n');
}

static int list_events(const struct list_opts *o, const char *glob)
{
	CLEANUP(event_rows_release) struct event_rows rows = {0};
	CLEANUP(err_release) struct err err = {0};
	add_software(&rows, glob);
	bool is_part = add_tracepoints(&rows, glob, &err) != 0;
	if (is_part) {
		log_warn("%s", err_msg(&err));
		if (err.hint)
			log_hint("%s", err.hint);
	}
	if (!rows.events.n) {
		log_error("no event matches '%s'", glob ? glob : "*");
		if (is_part)
			log_hint(
				"tracepoints could not be searched; to list the software events: assay list events");
		else
			log_hint(
				"a part of a name selects all that have it: assay list events futex");
		return EXIT_FAILED;
	}
	CLEANUP(buf_release) struct buf b = {0};
	if (o->is_json) {
		add_json(&b, &rows);
	} else if (o->has_names_only) {
		vec_foreach(e, &rows.events)
			buf_addf(&b, "%s\n", e->name);
	} else {
		add_text(&b, &rows);
		for (size_t i = 0; !glob && isatty(STDERR_FILENO) && ready_sets[i].name; i++)
			log_note("predefined set %s: %s", ready_sets[i].name, ready_sets[i].help);
	}
	return cmd_print(&b);
}

/* Is it `assay list events`, or a request for help? Otherwise recordings are listed. */
static bool is_events_or_help(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], "--help", 6) || !strcmp(argv[i], "-h"))
			return true;
		if (argv[i][0] != '-')
			return !strcmp(argv[i], "events");
	}
	return false;
}

int cmd_list(int argc, char **argv)
{
	struct list_opts o = {0};
	const struct opt_cmd cmd = {
		.name = "list",
		.usage = {"events [OPTION...] [GLOB]", "[OPTION...] [TARGET...]"},
		.details = details,
		.examples = examples,
		.groups = {{&list_group, &o}},
	};
	if (!is_events_or_help(argc, argv))
		return cmd_ls(argc, argv);
	CLEANUP(opt_args_release) struct opt_args args = {0};
	int status;
	if (!cmd_parse(&args, &cmd, argc, argv, &status))
		return status;
	if (args.operands.n > 2)
		return cmd_usage("list", "at most one GLOB");
	return list_events(&o, args.operands.n > 1 ? args.operands.p[1] : NULL);
}
