/*
 * What is said to a person: messages on stderr, `assay <cmd>: ` in front, terminal-safe whatever
 * a target was named. Only cmd/ and main print errors and notes; libraries use log_debug alone.
 *
 *	log_err(&err);                      assay cpu: cannot open ...: Permission denied
 *	                                    hint: sysctl kernel.perf_event_paranoid=1
 *	log_note("using cpu-clock: ...");   assay cpu: using cpu-clock: ...
 *
 * Levels: -q errors only; default warnings and notes; -v info; -vv or --debug=DOMAIN[:N],...
 * debug. State is process-wide (level, command name): set once, before threads start. Messages
 * may come from any thread; each is one write.
 */
#ifndef ASSAY_BASE_LOG_H
#define ASSAY_BASE_LOG_H

#include "base/base.h"
#include "base/err.h"

enum log_level { LOG_ERROR = 0, LOG_WARN, LOG_NOTE, LOG_INFO, LOG_DEBUG };

enum log_domain {
	LOG_PERF,
	LOG_BPF,
	LOG_UNWIND,
	LOG_SYMBOL,
	LOG_INGEST,
	LOG_FORMAT,
	LOG_SESSION,
	LOG_HOST,
	LOG_DOMAIN_NR
};

void log_set_command(const char *name); /* borrowed for good; NULL: "assay: " */
void log_set_level(enum log_level level);
enum log_level log_get_level(void);
/* "perf,bpf:2,all": levels 1 to 3 of debug talk by domain. */
int log_set_debug(const char *domains, struct err *err);

void log_at(enum log_level level, const char *tag, const char *fmt, ...) PRINTF(3, 4);
#define log_error(...) log_at(LOG_ERROR, "", __VA_ARGS__)
#define log_warn(...)  log_at(LOG_WARN, "warning: ", __VA_ARGS__)
#define log_note(...)  log_at(LOG_NOTE, "", __VA_ARGS__)
#define log_info(...)  log_at(LOG_INFO, "", __VA_ARGS__)
/* A line of its own, "hint: " in front; shown with notes. */
void log_hint(const char *fmt, ...) PRINTF(1, 2);
/* The error's message and, if there is one, its hint. */
void log_err(const struct err *err);

/* Cheap when off. @depth 1..3. */
bool log_has_debug(enum log_domain domain, int depth);
void log_debug_at(enum log_domain domain, const char *fmt, ...) PRINTF(2, 3);
#define log_debug(domain, depth, ...)                       \
	do {                                                \
		if (UNLIKELY(log_has_debug(domain, depth))) \
			log_debug_at(domain, __VA_ARGS__);  \
	} while (0)

/*
 * One transient line at the bottom, for progress.h: replaced by the next one, erased with NULL,
 * and kept out of the way of messages.
 */
void log_status(const char *line);

#endif
