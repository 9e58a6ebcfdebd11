/* Replaces engine.c and all sources with BPF programs in a build without BPF (BPF=0). */
#include "base/base.h"
#include "capture/bpf/cputime.h"
#include "capture/bpf/engine.h"

#include <errno.h>

int engine_open(struct engine **ret_e UNUSED, const struct engine_spec *spec UNUSED,
		struct err *err)
{
	err_set(err, -ENOTSUP, "this assay was built without BPF programs (BPF=0)");
	return err_hint(err, "build it with clang, llvm-strip, bpftool and libbpf installed");
}

/* engine_open fails, so none of these is called. */
int engine_load(struct engine *e UNUSED, struct err *err UNUSED)
{
	BUG("no engine");
}

int engine_start(struct engine *e, struct err *err)
{
	return engine_load(e, err);
}

int engine_add(struct engine *e, int32_t pid UNUSED, struct err *err)
{
	return engine_load(e, err);
}

int engine_deliver(void *e, const struct event_sink *sink UNUSED, struct err *err)
{
	return engine_load(e, err);
}

int engine_emit_losses(struct engine *e, const struct event_sink *sink UNUSED, struct err *err)
{
	return e ? engine_load(e, err) : 0;
}

uint64_t engine_peek_ns(void *e UNUSED)
{
	return UINT64_MAX;
}

int engine_sample_prog(const struct engine *e UNUSED)
{
	return -1;
}

struct engine_info engine_info(const struct engine *e UNUSED)
{
	return (struct engine_info){0};
}

bool engine_works_without_caps(struct engine *e UNUSED)
{
	return true;
}

void engine_publish(struct engine *e UNUSED, int32_t pid UNUSED, const struct space *sp UNUSED)
{
}

void engine_applied(struct engine *e UNUSED, uint64_t time_ns UNUSED)
{
}

int engine_wakeups_fd(const struct engine *e UNUSED)
{
	return -1;
}

bool engine_take_wakeups(struct engine *e UNUSED)
{
	return false;
}

void engine_rest(struct engine *e UNUSED, bool is_resting UNUSED)
{
}

void cputime_choose(struct engine *e UNUSED, bool is_wanted UNUSED)
{
}

void cputime_begin(struct engine *e UNUSED)
{
}

uint64_t cputime_ns(const struct engine *e UNUSED)
{
	return 0;
}

void engine_stop(struct engine *e UNUSED)
{
}

void engine_free(struct engine *e UNUSED)
{
}

void engine_free_p(struct engine **e UNUSED)
{
}
