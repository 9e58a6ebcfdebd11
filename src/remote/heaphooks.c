/*
 * jemalloc's own hooks, by its experimental.hooks.install (5.2.0 to 5.3.1): a structure of three
 * functions and a word for them; what comes back is the handle that .remove wants. Source of the
 * interface: jemalloc's manual has it not; hook.h of these versions.
 */
#include "base/base.h"
#include "remote/heapinjectpriv.h"

#include <errno.h>

#include "base/mem.h"
#include "remote/heapimage.h"

struct jemalloc_hooks {
	uint64_t alloc;
	uint64_t dalloc;
	uint64_t expand;
	uint64_t extra;
};

/* int mallctl(name, oldp, oldlenp, newp, newlen); *old: 8 bytes out, if asked for. */
static int control(struct heapinject *h, struct remote *r, const char *name, uint64_t *old,
		   const void *new, size_t nr_new, struct err *err)
{
	struct {
		char name[64];
		uint64_t old;
		uint64_t old_bytes;
		uint8_t new[64];
	} args = {.old_bytes = 8};
	uint64_t at = 0;
	uint64_t got = 0;
	ASSERT(nr_new <= sizeof(args.new));
	(void)snprintf(args.name, sizeof(args.name), "%s", name);
	if (nr_new)
		memcpy(args.new, new, nr_new);
	TRY(remote_scratch(r, sizeof(args), &at, err));
	TRY(remote_write(r, at, &args, sizeof(args), err));
	uint64_t old_at = at + sizeof(args.name);
	uint64_t v[REMOTE_ARGS_MAX] = {at, old ? old_at : 0, old ? old_at + 8 : 0,
				       nr_new ? old_at + 16 : 0, nr_new};
	TRY(remote_call(r, h->mallctl, v, &got, err));
	if ((int32_t)got)
		return err_set(err, -(int32_t)got, "jemalloc of pid %d refuses '%s': %s", h->pid,
			       name, strerror((int32_t)got));
	return old ? remote_read(r, old_at, old, 8, err) : 0;
}

int heaphooks_install(struct heapinject *h, struct remote *r, struct err *err)
{
	const struct heap_image *im = heap_image();
	struct jemalloc_hooks hooks = {
		.alloc = h->image + im->hook_alloc,
		.dalloc = h->image + im->hook_dalloc,
		.expand = h->image + im->hook_expand,
		.extra = h->has_pvalloc ? HEAP_HOOK_PVALLOC : HEAP_HOOK_PLAIN,
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

/* The image asks it where the recorder cannot say the stack: it must be there before the switch. */
static int tell_former(struct heapinject *h, uint64_t former, struct err *err)
{
	uint64_t at = h->image + heap_image()->data + offsetof(struct heap_data, original);
	return heapinject_write(h, at, &former, sizeof(former), err);
}

int heaphooks_backtrace(struct heapinject *h, struct remote *r, bool is_ours, struct err *err)
{
	static const char name[] = "experimental.hooks.prof_backtrace";
	uint64_t ours = h->image + heap_image()->prof_backtrace;
	uint64_t old = 0;
	if (is_ours) {
		TRY(control(h, r, name, &old, NULL, 0, err));
		if (!old || old == ours)
			return err_set(err, -ENOTSUP,
				       "jemalloc of pid %d has no function for stacks", h->pid);
		TRY(tell_former(h, old, err));
	} else if (!h->backtrace) {
		return 0;
	}
	TRY(control(h, r, name, NULL, is_ours ? &ours : &h->backtrace, 8, err));
	h->backtrace = is_ours ? old : 0;
	return 0;
}
