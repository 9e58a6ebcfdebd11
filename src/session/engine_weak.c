/* Stands in for capture/engine.c and capture/switches.c until they are there; then it goes. */
#include "base/base.h"

#include <errno.h>

#include "capture/engine.h"
#include "capture/switches.h"

#define WEAK __attribute__((weak))

WEAK int engine_open(struct engine **ret_e, const struct engine_spec *spec, struct err *err)
{
	(void)ret_e;
	(void)spec;
	return err_set(err, -ENOTSUP, "no engine yet");
}
WEAK int engine_load(struct engine *e, struct err *err)
{
	(void)e;
	return err_set(err, -ENOTSUP, "no engine yet");
}
WEAK int engine_start(struct engine *e, struct err *err)
{
	return engine_load(e, err);
}
WEAK void engine_stop(struct engine *e)
{
	(void)e;
}
WEAK void engine_free(struct engine *e)
{
	(void)e;
}
WEAK int engine_sample_prog(const struct engine *e)
{
	(void)e;
	return -1;
}
WEAK void engine_publish(struct engine *e, int32_t pid, const struct space *sp)
{
	(void)e;
	(void)pid;
	(void)sp;
}
WEAK void engine_applied(struct engine *e, uint64_t time_ns)
{
	(void)e;
	(void)time_ns;
}
WEAK uint64_t engine_peek_ns(void *e)
{
	(void)e;
	return UINT64_MAX;
}
WEAK int engine_deliver(void *e, const struct event_sink *sink, struct err *err)
{
	(void)e;
	(void)sink;
	(void)err;
	return 0;
}
WEAK struct engine_info engine_info(const struct engine *e)
{
	(void)e;
	return (struct engine_info){0};
}
WEAK int switches_open(struct switches **ret_s, const struct switches_spec *spec, struct err *err)
{
	(void)ret_s;
	(void)spec;
	return err_set(err, -ENOTSUP, "no ledger without programs in the kernel yet");
}
WEAK int switches_start(struct switches *s, const struct event_sink *sink, struct err *err)
{
	(void)s;
	(void)sink;
	(void)err;
	return 0;
}
WEAK const int *switches_fds(const struct switches *s, size_t *ret_nr)
{
	(void)s;
	*ret_nr = 0;
	return NULL;
}
WEAK int switches_patience_ms(const struct switches *s)
{
	(void)s;
	return 0;
}
WEAK int switches_drain(struct switches *s, const struct event_sink *sink, struct err *err)
{
	return switches_start(s, sink, err);
}
WEAK int switches_stop(struct switches *s, const struct event_sink *sink, struct err *err)
{
	return switches_start(s, sink, err);
}
WEAK void switches_grow(struct switches *s, int32_t tid, uint64_t nr_bytes)
{
	(void)s;
	(void)tid;
	(void)nr_bytes;
}
WEAK struct switches_info switches_info(const struct switches *s)
{
	(void)s;
	return (struct switches_info){.accuracy = "", .remedy = ""};
}
WEAK void switches_free(struct switches *s)
{
	(void)s;
}
