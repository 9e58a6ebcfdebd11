/*
 * Messages to the user on stderr, prefixed with `assay <cmd>: `. Control characters (for example in
 * names of targets) are escaped. Only cmd/ and main print errors and notes; other folders use
 * log_debug only.
 *
 *	log_err(&err);                      assay cpu: cannot open ...: Permission denied
 *	                                    hint: sysctl kernel.perf_event_paranoid=1
 *	log_note("using cpu-clock: ...");   assay cpu: using cpu-clock: ...
 *
 * Levels: -q errors only; default warnings and notes; -v info; -vv or --debug=DOMAIN[:N],...
 * debug. The level and the command name are process-wide: set them once, before threads start. Any
 * thread may log; each message is one write.
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

void log_set_command(const char *name); /* borrowed until exit; NULL: "assay: " */
void log_set_level(enum log_level level);
enum log_level log_get_level(void);
/* Enables debug messages by domain, with a level of 1 to 3: "perf,bpf:2,all". */
int log_set_debug(const char *domains, struct err *err);

void log_at(enum log_level level, const char *tag, const char *fmt, ...) PRINTF(3, 4);
#define log_error(...) log_at(LOG_ERROR, "", __VA_ARGS__)
#define log_warn(...)  log_at(LOG_WARN, "warning: ", __VA_ARGS__)
#define log_note(...)  log_at(LOG_NOTE, "", __VA_ARGS__)
#define log_info(...)  log_at(LOG_INFO, "", __VA_ARGS__)
/* Prints "hint: ..." on a line of its own, if the message before it (of this thread) was printed. */
void log_hint(const char *fmt, ...) PRINTF(1, 2);
/* Prints the error's message and its hint, if any. */
void log_err(const struct err *err);

/* Whether debug messages of this domain and level (@depth, 1 to 3) are enabled. Cheap. */
bool log_has_debug(enum log_domain domain, int depth);
void log_debug_at(enum log_domain domain, const char *fmt, ...) PRINTF(2, 3);
#define log_debug(domain, depth, ...)                       \
	do {                                                \
		if (UNLIKELY(log_has_debug(domain, depth))) \
			log_debug_at(domain, __VA_ARGS__);  \
	} while (0)

/*
 * Shows one transient status line (for progress.h): replaced by the next call, erased with NULL,
 * and redrawn below messages.
 */
void log_status(const char *line);

#endif
