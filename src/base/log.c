/* Messages to the user; see log.h. */
#include "base/base.h"
#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/text/escape.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/process/term.h"
#include "base/text/suggest.h"
#include "base/text/wrap.h"

#define MESSAGE_MAX 1200 /* bytes of a message; a longer one lacks its middle */
#define ERASE_LINE  "\r\x1b[K"

static struct {
	pthread_mutex_t lock;
	enum log_level level;
	const char *command;
	uint8_t depth[LOG_DOMAIN_NR];
	char *status; /* the transient line on the screen, or NULL */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER, .level = LOG_NOTE};

/* The level of this thread's last message: a hint belongs to the message before it. */
static _Thread_local enum log_level hint_level = LOG_NOTE;

static const char *const domain_names[LOG_DOMAIN_NR] = {
	[LOG_PERF] = "perf",       [LOG_BPF] = "bpf",       [LOG_UNWIND] = "unwind",
	[LOG_SYMBOL] = "symbol",   [LOG_INGEST] = "ingest", [LOG_FORMAT] = "format",
	[LOG_SESSION] = "session", [LOG_HOST] = "host",
};

void log_set_command(const char *name)
{
	state.command = name;
}

void log_set_level(enum log_level level)
{
	state.level = level;
}

enum log_level log_get_level(void)
{
	return state.level;
}

static int set_domain(struct sv name, uint8_t depth, struct err *err)
{
	struct suggest s = suggest_for(name);
	for (size_t i = 0; i < LOG_DOMAIN_NR; i++) {
		if (sv_eq_str(name, domain_names[i]) || sv_eq_str(name, "all")) {
			state.depth[i] = depth;
			if (!sv_eq_str(name, "all"))
				return 0;
		}
		suggest_offer(&s, sv_from_str(domain_names[i]));
	}
	if (sv_eq_str(name, "all"))
		return 0;
	err_set(err, -EINVAL, "unknown debug domain '%.*s'", SV_ARGS(name));
	if (s.best.n)
		return err_hint(err, "did you mean '%.*s'?", SV_ARGS(s.best));
	return err_hint(err, "all, perf, bpf, unwind, symbol, ingest, format, session, host");
}

int log_set_debug(const char *domains, struct err *err)
{
	struct sv left = sv_from_str(domains);
	while (left.n) {
		struct sv item = sv_split(&left, ',');
		struct sv name = sv_split(&item, ':');
		uint64_t depth = 1;
		if (item.n && (!sv_to_u64(item, &depth) || depth > 3))
			return err_set(err, -EINVAL, "debug level '%.*s' is not 0 to 3",
				       SV_ARGS(item));
		TRY(set_domain(name, (uint8_t)depth, err));
	}
	return 0;
}

/* One write per message, so that lines of several threads do not mix. */
static void emit(const struct buf *line)
{
	pthread_mutex_lock(&state.lock);
	CLEANUP(buf_release) struct buf whole = {0};
	if (state.status)
		buf_add_str(&whole, ERASE_LINE);
	buf_add(&whole, buf_str(line), line->n);
	if (state.status)
		buf_add_str(&whole, state.status);
	(void)file_write_all(STDERR_FILENO, whole.p, whole.n, NULL); /* cannot be reported */
	pthread_mutex_unlock(&state.lock);
}

/* A user's word of 100 kB in a message would hide the message. */
static void add_bounded(struct buf *to, struct sv text)
{
	if (text.n <= MESSAGE_MAX) {
		escape_term(to, text);
		return;
	}
	escape_term(to, sv_from(text.p, MESSAGE_MAX / 2));
	buf_add_str(to, " ... ");
	escape_term(to, sv_from(text.p + text.n - MESSAGE_MAX / 4, MESSAGE_MAX / 4));
}

/* Ends the line that begins at @from. On a terminal it is wrapped at words. */
static void end_line(struct buf *to, size_t from)
{
	CLEANUP(buf_release) struct buf lines = {0};
	if (isatty(STDERR_FILENO)) {
		size_t width = (size_t)term_columns(STDERR_FILENO);
		wrap_add(&lines, sv_from_idx(buf_sv(to), from), 0, 2, width);
		to->n = from;
		buf_add_sv(to, buf_sv(&lines));
	}
	buf_add_ch(to, '\n');
}

void log_at(enum log_level level, const char *tag, const char *fmt, ...)
{
	int saved = errno;
	hint_level = level;
	if (level > state.level)
		return;
	CLEANUP(buf_release) struct buf text = {0};
	va_list ap;
	va_start(ap, fmt);
	buf_vaddf(&text, fmt, ap);
	va_end(ap);
	CLEANUP(buf_release) struct buf line = {0};
	buf_addf(&line, "assay%s%s: %s", state.command ? " " : "",
		 state.command ? state.command : "", tag);
	add_bounded(&line, buf_sv(&text));
	end_line(&line, 0);
	emit(&line);
	errno = saved;
}

/* A hint may have several lines; each gets its own prefix and "hint: ". */
static void say_hint(const char *hint)
{
	if (hint_level > state.level)
		return;
	CLEANUP(buf_release) struct buf line = {0};
	struct sv left = sv_from_str(hint);
	while (left.n) {
		struct sv one = sv_split(&left, '\n');
		size_t from = line.n;
		buf_add_str(&line, "hint: ");
		add_bounded(&line, one);
		end_line(&line, from);
	}
	emit(&line);
}

void log_hint(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	CLEANUP(free_p) char *text = xvasprintf(fmt, ap);
	va_end(ap);
	say_hint(text);
}

void log_err(const struct err *err)
{
	log_error("%s", err_msg(err));
	if (err && err->hint)
		say_hint(err->hint);
}

bool log_has_debug(enum log_domain domain, int depth)
{
	return state.depth[domain] >= depth || (state.level >= LOG_DEBUG && depth <= 1);
}

void log_debug_at(enum log_domain domain, const char *fmt, ...)
{
	int saved = errno;
	va_list ap;
	va_start(ap, fmt);
	CLEANUP(free_p) char *text = xvasprintf(fmt, ap);
	va_end(ap);
	CLEANUP(buf_release) struct buf line = {0};
	buf_addf(&line, "%s: ", domain_names[domain]);
	escape_term(&line, sv_from_str(text));
	buf_add_ch(&line, '\n');
	emit(&line);
	errno = saved;
}

void log_status(const char *line)
{
	static const struct buf nothing;
	pthread_mutex_lock(&state.lock);
	bool had = state.status != NULL;
	free(state.status);
	state.status = NULL;
	if (line) {
		struct buf safe = {0};
		escape_term(&safe, sv_from_str(line));
		state.status = buf_detach(&safe);
	}
	pthread_mutex_unlock(&state.lock);
	if (had && !line) {
		CLEANUP(buf_release) struct buf erase = {0};
		buf_add_str(&erase, ERASE_LINE);
		emit(&erase);
	} else if (line) {
		emit(&nothing); /* erases and draws */
	}
}
