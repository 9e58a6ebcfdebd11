/* Options for what is in view; see select_opts.h. */
#include "base/base.h"
#include "cmd/select_opts.h"

static const struct opt opts[] = {
	OPT_STR('e', "event", struct select_opts, event, "EVENT",
		"samples of this event (default: the one with most samples)"),
	OPT_STR(0, "time", struct select_opts, time, "FROM..TO",
		"from the capture's start: 2..5, 500ms..2s, ..3s, 10%-20%"),
	OPT_STR(0, "thread", struct select_opts, thread, "REGEX",
		"threads by name, or one by its id"),
	OPT_STR('p', "pid", struct select_opts, pid, "PID,...", "these processes"),
	OPT_STR(0, "comm", struct select_opts, comm, "REGEX", "processes by name"),
	OPT_STR(0, "module", struct select_opts, module, "REGEX",
		"samples that hit in these binaries"),
	OPT_STR(0, "function", struct select_opts, function, "REGEX",
		"stacks with such a function in them"),
	OPT_STR(0, "exclude", struct select_opts, exclude, "REGEX",
		"stacks without such a function"),
	OPT_STR(0, "within", struct select_opts, within, "REGEX",
		"the outermost such function becomes 100 %"),
	OPT_SET(0, "user", struct select_opts, mode, SELECT_USER, "samples that hit in user mode"),
	OPT_SET(0, "kernel", struct select_opts, mode, SELECT_KERNEL,
		"samples that hit in the kernel"),
	OPT_END,
};

const struct opt_group select_group = {"What is in view", opts};

struct select_spec select_opts_spec(const struct select_opts *o)
{
	return (struct select_spec){
		.event = o->event,
		.time = o->time,
		.thread = o->thread,
		.pid = o->pid,
		.comm = o->comm,
		.module = o->module,
		.function = o->function,
		.exclude = o->exclude,
		.within = o->within,
		.mode = (enum select_mode)o->mode,
	};
}
