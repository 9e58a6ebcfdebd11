/* Stacks sent once and referred to later; see stackrefs.h. */
#include "base/base.h"
#include "ingest/stackrefs.h"

#include "ingest/pythonframes.h"
#include "kernel_python.h"

void stackrefs_release(struct stackrefs *r)
{
	pythonframes_free(r->python);
	map_release(&r->user);
	map_release(&r->kernel);
	map_release(&r->joined);
	vec_release(&r->parts);
	vec_release(&r->frames);
}

static struct stackref_part kernel_part(struct stackrefs *r, const struct event_stack *s)
{
	struct stackref_part part = {.first = (uint32_t)r->frames.n, .loss = LOSS_NR};
	part.nr = MIN(s->nr_chain, (uint32_t)CHAIN_DEPTH_MAX);
	for (uint32_t i = 0; i < part.nr; i++)
		vec_push(&r->frames, stackbuild_kernel_location(r->stackbuild, s->chain[i],
								i > 0 || s->is_callers));
	return part;
}

static struct stackref_part user_part(struct stackrefs *r, const struct event *ev)
{
	struct stackref_part part = {0};
	part.stack = stackbuild_user(r->stackbuild, ev, &part.loss);
	return part;
}

bool stackrefs_needs(const struct stackrefs *r, const struct event_stack *s)
{
	const uint32_t *idx = map_get(s->is_kernel ? &r->kernel : &r->user, s->ref);
	return !idx || (!s->is_kernel && r->parts.p[*idx].loss != LOSS_NR);
}

void stackrefs_add(struct stackrefs *r, const struct event *ev)
{
	const struct event_stack *s = &ev->stack;
	if (!stackrefs_needs(r, s))
		return;
	struct stackref_part part = s->is_kernel ? kernel_part(r, s) : user_part(r, ev);
	bool is_new;
	uint32_t *idx = map_put(s->is_kernel ? &r->kernel : &r->user, s->ref, &is_new);
	if (!is_new) {
		r->parts.p[*idx] = part;
		return;
	}
	*idx = (uint32_t)r->parts.n;
	vec_push(&r->parts, part);
}

static struct pythonframes *python_of(struct stackrefs *r)
{
	if (!r->python)
		r->python = pythonframes_new(r->p, r->modules);
	return r->python;
}

void stackrefs_add_pycode(struct stackrefs *r, const struct event *ev)
{
	pythonframes_add_code(python_of(r), ev->pycode);
}

void stackrefs_add_pystack(struct stackrefs *r, const struct event *ev)
{
	const struct kernel_pystack *s = ev->pystack;
	const uint32_t *native = map_get(&r->user, s->native_ref);
	const uint32_t *known = map_get(&r->user, s->ref);
	if (!native || (known && r->parts.p[*known].loss == LOSS_NR))
		return;
	struct stackref_part part = r->parts.p[*native];
	part.stack = pythonframes_merge(python_of(r), s, part.stack, &part.has_leaf);
	uint32_t idx = known ? *known : (uint32_t)r->parts.n;
	*map_put(&r->user, s->ref, NULL) = idx;
	if (known)
		r->parts.p[idx] = part;
	else
		vec_push(&r->parts, part);
}

bool stackrefs_has_user(const struct stackrefs *r, uint64_t ref)
{
	return !ref || map_get(&r->user, ref);
}

bool stackrefs_has_kernel(const struct stackrefs *r, uint64_t ref)
{
	return !ref || map_get(&r->kernel, ref);
}

/* ---- lookup ------------------------------------------------------------------------------- */

static stack_id lost_stack(struct stackrefs *r)
{
	if (!r->lost)
		r->lost = profile_stack(r->p, 0, profile_pseudo_location(r->p, "[lost stack]"));
	return r->lost;
}

stack_id stackrefs_user(struct stackrefs *r, uint64_t ref, enum loss_kind *ret_loss)
{
	*ret_loss = LOSS_NR;
	if (!ref)
		return 0;
	const uint32_t *idx = map_get(&r->user, ref);
	if (!idx) {
		*ret_loss = LOSS_STACK_LOST;
		return lost_stack(r);
	}
	const struct stackref_part *part = &r->parts.p[*idx];
	*ret_loss = part->loss;
	return part->stack;
}

static stack_id join_kernel(struct stackrefs *r, stack_id user, uint64_t ref,
			    enum loss_kind *ret_loss)
{
	const uint32_t *idx = ref ? map_get(&r->kernel, ref) : NULL;
	if (!ref)
		return user;
	if (!idx) {
		*ret_loss = LOSS_STACK_LOST;
		return user ? user : lost_stack(r);
	}
	bool is_new;
	uint32_t *joined = map_put(&r->joined, (uint64_t)user << 32 | *idx, &is_new);
	if (is_new) {
		const struct stackref_part *part = &r->parts.p[*idx];
		stack_id stack = user;
		for (uint32_t i = part->nr; i-- > 0;)
			stack = profile_stack(r->p, stack, r->frames.p[part->first + i]);
		*joined = stack;
	}
	return *joined;
}

stack_id stackrefs_stack(struct stackrefs *r, uint64_t user_ref, uint64_t kernel_ref,
			 enum loss_kind *ret_loss)
{
	stack_id user = stackrefs_user(r, user_ref, ret_loss);
	return join_kernel(r, user, kernel_ref, ret_loss);
}

stack_id stackrefs_sample(struct stackrefs *r, const struct event *ev, enum loss_kind *ret_loss)
{
	const struct event_sample *s = &ev->sample;
	stack_id stack = stackrefs_stack(r, s->user_ref, s->kernel_ref, ret_loss);
	if (s->kernel_ref || !s->ip)
		return stack;
	const uint32_t *idx = r->python && s->is_user ? map_get(&r->user, s->user_ref) : NULL;
	if (idx && r->parts.p[*idx].has_leaf)
		return stack;
	loc_id leaf =
		s->is_user ? stackbuild_user_location(r->stackbuild, ev->pid,
						      spaces_get(r->spaces, ev->pid), s->ip, false)
			   : stackbuild_kernel_location(r->stackbuild, s->ip, false);
	return profile_stack(r->p, stack, leaf);
}
