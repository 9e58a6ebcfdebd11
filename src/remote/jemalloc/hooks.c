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
#include "remote/patch/patchtext.h"

struct jemalloc_hooks {
	uint64_t alloc;
	uint64_t dalloc;
	uint64_t expand;
	uint64_t extra;
};

/* stub_head.hooks while they are installed: the handle is where the target stores it, 0 = none. */
#define HANDLE_UNKNOWN 1u

/* A word of the image's data that no patch uses with these methods. */
static uint64_t spare_word(const struct heapinject *h)
{
	return h->image + heap_image()->data + offsetof(struct heap_data, original);
}

/* @old_at: where the target stores the old value; 0 = anywhere. */
static int control(struct heapinject *h, struct remote *r, const char *name, uint64_t old_at,
		   uint64_t *old, const void *new, size_t nr_new, struct err *err)
{
	struct jemalloc j = {.r = r, .mallctl = h->mallctl, .old_at = old_at};
	TRY(jemalloc_prepare(&j, err));
	return jemalloc_control(&j, name, old, sizeof(*old), new, nr_new, err);
}

/*
 * The heads of the stub regions are written before each step, since assay may be killed: they say
 * what may have to be undone, and never that a handle is valid that jemalloc has released.
 */
static int note_hooks(struct heapinject *h, uint64_t hooks, struct err *err)
{
	h->hooks = hooks;
	return heaptext_write_heads(h, err);
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
	const uint64_t none = 0;
	uint64_t handle = 0;
	TRY(heapinject_write(h, spare_word(h), &none, sizeof(none), err));
	TRY(note_hooks(h, HANDLE_UNKNOWN, err));
	int rc = control(h, r, "experimental.hooks.install", spare_word(h), &handle, &hooks,
			 sizeof(hooks), err);
	h->hooks = handle;
	return rc;
}

int heaphooks_remove(struct heapinject *h, struct remote *r, struct err *err)
{
	uint64_t handle = h->hooks;
	if (handle == HANDLE_UNKNOWN && heapinject_read(h, spare_word(h), &handle, sizeof(handle)))
		handle = 0;
	if (!h->hooks)
		return 0;
	TRY(note_hooks(h, 0, err));
	if (!handle)
		return 0;
	int rc = control(h, r, "experimental.hooks.remove", 0, NULL, &handle, sizeof(handle), err);
	if (rc)
		(void)note_hooks(h, handle, NULL); /* fails if it has ended */
	return rc;
}

int heaphooks_backtrace(struct heapinject *h, struct remote *r, bool is_ours, struct err *err)
{
	static const char name[] = "experimental.hooks.prof_backtrace";
	uint64_t ours = h->image + heap_image()->prof_backtrace;
	uint64_t old = 0;
	if (is_ours) {
		TRY(control(h, r, name, 0, &old, NULL, 0, err));
		if (!old || old == ours)
			return err_set(err, -ENOTSUP,
				       "jemalloc of pid %d has no prof_backtrace hook", h->pid);
		/* Before the switch: the image calls the old function when it has no stack. */
		TRY(heapinject_write(h, spare_word(h), &old, sizeof(old), err));
		h->backtrace = old;
		TRY(heaptext_write_heads(h, err));
	} else if (!h->backtrace) {
		return 0;
	}
	TRY(control(h, r, name, 0, NULL, is_ours ? &ours : &h->backtrace, 8, err));
	h->backtrace = is_ours ? old : 0;
	return 0;
}
