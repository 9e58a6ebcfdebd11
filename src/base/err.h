/*
 * Errors from outside the program: kernel, files, permissions, formats.
 *
 * A function that can fail returns 0 or a negative errno code and fills *err with a message where
 * the details are known. Callers add a prefix with err_wrap(); only cmd/ prints. Library code
 * never prints and never exits.
 *
 *	CLEANUP(err_release) struct err err = {0};
 *	if (file_view_open(&v, path, &err))
 *		return err_wrap(&err, "reading '%s'", path);
 *
 * Messages: lower case, no full stop, verb of failure first, subject in 'single quotes', errno
 * text last. A hint is the exact remedy. All functions accept err == NULL and then keep no message.
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

/* Sets the message and the code (errno, either sign). Returns the negative code. */
int err_set(struct err *err, int code, const char *fmt, ...) PRINTF(3, 4);
/* Like err_set with errno as the code and ": <strerror>" appended to the message. */
int err_sys(struct err *err, const char *fmt, ...) PRINTF(2, 3);
/* Prepends "prefix: " to the message; returns the error's code (NULL: that of the last err_set). */
int err_wrap(struct err *err, const char *fmt, ...) PRINTF(2, 3);
/* Sets the hint, replacing any; returns the error's code (NULL: that of the last err_set). */
int err_hint(struct err *err, const char *fmt, ...) PRINTF(2, 3);
/* Releases @to, moves @from into it and leaves @from empty. Returns the code. */
int err_move(struct err *to, struct err *from);
/* The message, never NULL. */
const char *err_msg(const struct err *err);

/*
 * Calls a function that can fail and returns its result from the calling function unless it is 0.
 * Resources are released by CLEANUP.
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
