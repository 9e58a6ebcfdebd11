/* Error messages; see err.h. */
#include "base/base.h"
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>

#include "base/mem.h"

/* The code of the last error of this thread, for callers that keep no message. */
static _Thread_local int last_code = -EIO;

void err_release(struct err *err)
{
	if (!err)
		return;
	free(err->msg);
	free(err->hint);
	*err = (struct err){0};
}

int err_set(struct err *err, int code, const char *fmt, ...)
{
	code = code > 0 ? -code : code;
	ASSERT(code != 0);
	last_code = code;
	if (!err)
		return code;

	va_list ap;
	va_start(ap, fmt);
	char *msg = xvasprintf(fmt, ap);
	va_end(ap);
	err_release(err);
	err->code = code;
	err->msg = msg;
	return code;
}

int err_sys(struct err *err, const char *fmt, ...)
{
	int e = errno ? errno : EIO;
	last_code = -e;
	if (!err)
		return -e;

	va_list ap;
	va_start(ap, fmt);
	char *what = xvasprintf(fmt, ap);
	va_end(ap);
	err_set(err, -e, "%s: %s", what, strerror(e));
	free(what);
	return -e;
}

int err_wrap(struct err *err, const char *fmt, ...)
{
	if (!err)
		return last_code;

	va_list ap;
	va_start(ap, fmt);
	char *what = xvasprintf(fmt, ap);
	va_end(ap);
	char *old = err->msg;
	err->msg = xasprintf("%s: %s", what, old ? old : "failed");
	free(old);
	free(what);
	if (!err->code)
		err->code = -EIO;
	return err->code;
}

int err_hint(struct err *err, const char *fmt, ...)
{
	if (!err)
		return last_code;

	va_list ap;
	va_start(ap, fmt);
	free(err->hint);
	err->hint = xvasprintf(fmt, ap);
	va_end(ap);
	return err->code;
}

int err_move(struct err *to, struct err *from)
{
	int code = from->code;
	if (!to) {
		err_release(from);
		return code;
	}
	err_release(to);
	*to = *from;
	*from = (struct err){0};
	return code;
}

const char *err_msg(const struct err *err)
{
	return err && err->msg ? err->msg : "unknown error";
}
