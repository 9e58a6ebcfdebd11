/* Until the loader is there: nothing can be put into a process. */
#include "base/base.h"
#include "capture/heapinject.h"

#include <errno.h>

#include "capture/heaplaunch.h"

#define WEAK __attribute__((weak))

WEAK int heapinject_attach(struct heapinject **ret_h, const struct heapinject_spec *spec,
			   struct err *err)
{
	(void)ret_h, (void)spec;
	return err_set(err, -ENOTSUP, "the recorder cannot be put into processes yet");
}
WEAK int heapinject_start(struct heapinject *h, struct err *err)
{
	(void)h, (void)err;
	return -ENOTSUP;
}
WEAK int heapinject_stop(struct heapinject *h, struct err *err)
{
	(void)h, (void)err;
	return -ENOTSUP;
}
WEAK int heapinject_detach(struct heapinject *h, struct err *err)
{
	(void)h, (void)err;
	return -ENOTSUP;
}
WEAK void heapinject_free(struct heapinject *h)
{
	(void)h;
}
WEAK struct heap_shared *heapinject_shared(const struct heapinject *h)
{
	(void)h;
	return NULL;
}
WEAK struct heap_slot *heapinject_slots(const struct heapinject *h, uint32_t *ret_nr)
{
	(void)h, (void)ret_nr;
	return NULL;
}
WEAK const uint8_t *heapinject_ring(const struct heapinject *h, uint32_t i, uint32_t *ret_nr_bytes)
{
	(void)h, (void)i, (void)ret_nr_bytes;
	return NULL;
}
WEAK struct ktables_head *heapinject_tables(const struct heapinject *h, uint32_t *ret_nr_rows)
{
	(void)h, (void)ret_nr_rows;
	return NULL;
}
WEAK struct heapinject_info heapinject_info(const struct heapinject *h)
{
	(void)h;
	return (struct heapinject_info){0};
}
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
