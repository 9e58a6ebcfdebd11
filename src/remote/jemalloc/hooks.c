/*
 * Installs the recorder as jemalloc's hooks by experimental.hooks.install (5.2.0 to 5.3.1). The
 * argument is a struct of three functions and a context word; the result is a handle for
 * experimental.hooks.remove. The interface is not in jemalloc's manual; see hook.h of these
 * versions.
 */
#include "base/base.h"
#include "remote/jemalloc/hooks.h"

#include <errno.h>

#include "remote/patch/image.h"
#include "remote/jemalloc/jemalloc.h"
#include "remote/patch/injectstate.h"

struct jemalloc_hooks {
	uint64_t alloc;
	uint64_t dalloc;
	uint64_t expand;
	uint64_t extra;
};

static int control(struct heapinject *h, struct remote *r, const char *name, uint64_t *old,
		   const void *new, size_t nr_new, struct err *err)
{
	struct jemalloc j = {.r = r, .mallctl = h->mallctl};
	TRY(jemalloc_prepare(&j, err));
	return jemalloc_control(&j, name, old, sizeof(*old), new, nr_new, err);
}

int heaphooks_install(struct heapinject *h, struct remote *r, struct err *err)
{
	const struct heap_image *im = heap_image();
	const uint32_t *v = h->spec->plan->version;
	bool has_pvalloc = v[0] == 5 && v[1] == 3 && v[2] >= 1;
	struct jemalloc_hooks hooks = {
		.alloc = h->image + im->hook_alloc,
		.dalloc = h->image + im->hook_dalloc,
		.expand = h->image + im->hook_expand,
		.extra = has_pvalloc ? HEAP_HOOK_PVALLOC : HEAP_HOOK_PLAIN,
	};
	return control(h, r, "experimental.hooks.install", &h->hooks, &hooks, sizeof(hooks), err);
}

int heaphooks_remove(struct heapinject *h, struct remote *r, struct err *err)
{
	if (!h->hooks)
		return 0;
	TRY(control(h, r, "experimental.hooks.remove", NULL, &h->hooks, sizeof(h->hooks), err));
	h->hooks = 0;
	return 0;
}

int heaphooks_backtrace(struct heapinject *h, struct remote *r, bool is_ours, struct err *err)
{
	static const char name[] = "experimental.hooks.prof_backtrace";
	uint64_t ours = h->image + heap_image()->prof_backtrace;
	uint64_t former = h->image + heap_image()->data + offsetof(struct heap_data, original);
	uint64_t old = 0;
	if (is_ours) {
		TRY(control(h, r, name, &old, NULL, 0, err));
		if (!old || old == ours)
			return err_set(err, -ENOTSUP,
				       "jemalloc of pid %d has no prof_backtrace hook", h->pid);
		/* Before the switch: the image calls the old function when it has no stack. */
		TRY(heapinject_write(h, former, &old, sizeof(old), err));
	} else if (!h->backtrace) {
		return 0;
	}
	TRY(control(h, r, name, NULL, is_ours ? &ours : &h->backtrace, 8, err));
	h->backtrace = is_ours ? old : 0;
	return 0;
}
