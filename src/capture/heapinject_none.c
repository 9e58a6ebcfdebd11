/* Until launches are held: none is. */
#include "base/base.h"
#include "capture/heaplaunch.h"

#include <errno.h>

#define WEAK __attribute__((weak))

WEAK int heaplaunch_open(struct heaplaunch **ret_l, int32_t pid, struct err *err)
{
	(void)ret_l, (void)pid;
	return err_set(err, -ENOTSUP, "the recorder cannot be put into processes yet");
}
WEAK int heaplaunch_poll(struct heaplaunch *l, int timeout_ms, bool *ret_is_held, struct err *err)
{
	(void)l, (void)timeout_ms, (void)ret_is_held, (void)err;
	return -ENOTSUP;
}
WEAK int heaplaunch_continue(struct heaplaunch *l, struct err *err)
{
	(void)l, (void)err;
	return -ENOTSUP;
}
WEAK void heaplaunch_free(struct heaplaunch *l)
{
	(void)l;
}
