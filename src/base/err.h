/*
 * The error channel: what the world did to us (kernel, files, permissions, formats).
 *
 * A function that can fail returns int: 0, or a negative errno-like code, and fills *err where
 * the facts are known. Callers prefix with err_wrap(); only cmd/ prints. Library code never
 * prints and never exits.
 *
 *	CLEANUP(err_release) struct err err = {0};
 *	if (file_view_open(&v, path, &err))
 *		return err_wrap(&err, "reading '%s'", path);
 *
 * Messages: lower case, no full stop, verb of failure first, subject in 'single quotes', errno
 * text last. A hint is the exact remedy. All functions accept err == NULL (nothing is kept).
 */
#ifndef ASSAY_BASE_ERR_H
#define ASSAY_BASE_ERR_H

#include "base/base.h"

struct err {
	int code;   /* negative errno; 0 = no error */
	char *msg;  /* owned */
	char *hint; /* owned, may be NULL */
};

void err_release(struct err *err);

/* Replaces any message. @code: negative errno (or positive, negated). Returns the negative code. */
int err_set(struct err *err, int code, const char *fmt, ...) PRINTF(3, 4);
/* The same with errno as code and ": strerror" appended. */
int err_sys(struct err *err, const char *fmt, ...) PRINTF(2, 3);
/* Puts "prefix: " before the message that is there; returns its code. */
int err_wrap(struct err *err, const char *fmt, ...) PRINTF(2, 3);
/* Sets the hint (the last one stays); returns the code. */
int err_hint(struct err *err, const char *fmt, ...) PRINTF(2, 3);
/* Moves @from into @to (which is released first) and leaves @from empty. Returns the code. */
int err_move(struct err *to, struct err *from);
/* The message, never NULL. */
const char *err_msg(const struct err *err);

/*
 * The one way to chain calls that can fail: what they return other than 0 is returned at once.
 * What has to be released by then is released by CLEANUP.
 *
 *	TRY(elf_open(&elf, path, err));
 *	TRY(elf_sections(elf, err));
 *	return elf_symbols(elf, ret_symbols, err);
 */
#define TRY(call)                      \
	do {                           \
		int try_rc = (call);   \
		if (try_rc)            \
			return try_rc; \
	} while (0)

#endif
