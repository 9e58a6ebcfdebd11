/*
 * Stacks that were told ahead (EVENT_STACK) and the rows that refer to them; see builder.h.
 *
 * A user part is a stack of the profile at once. A kernel part is a list of locations, since it
 * goes on top of many user stacks; which two were joined before is remembered.
 */
#include "base/base.h"
#include "ingest/builder_priv.h"

void refs_release(struct refs *r)
{
	map_release(&r->user);
	map_release(&r->kernel);
	map_release(&r->joined);
	vec_release(&r->stacks);
	vec_release(&r->frames);
	vec_release(&r->late);
}

/* ---- told --------------------------------------------------------------------------------- */

static struct ref_stack kernel_part(struct builder *b, const struct event_stack *s)
{
	struct refs *r = &b->refs;
	struct ref_stack part = {.first = (uint32_t)r->frames.n, .loss = LOSS_NR};
	part.nr = MIN(s->nr_chain, (uint32_t)CHAIN_DEPTH_MAX);
	for (uint32_t i = 0; i < part.nr; i++)
		vec_push(&r->frames,
			 builder_kernel_location(b, s->chain[i], i > 0 || s->is_callers));
	return part;
}

static struct ref_stack user_part(struct builder *b, const struct event *ev)
{
	const struct event_stack *s = &ev->stack;
	struct space *sp = spaces_get(&b->spaces, ev->pid);
	enum loss_kind loss = s->loss;
	vec_clear(&b->scratch);
	builder_list_mappings(b, ev);
	for (uint32_t i = 0; i < s->nr_chain && i < CHAIN_DEPTH_MAX; i++)
		vec_push(&b->scratch, builder_user_location(b, ev->pid, sp, s->chain[i],
							    i > 0 || s->is_callers));
	if (s->regs)
		loss = builder_walk(b, ev,
				    &(struct walk_input){.space = sp,
							 .regs = s->regs,
							 .regs_mask = s->regs_mask,
							 .stack = s->stack,
							 .nr_stack = s->nr_stack});
	else if (loss > LOSS_NR)
		loss = LOSS_NR;
	if (s->regs && s->is_callers && b->scratch.n) /* the leaf comes with each sample */
		memmove(b->scratch.p, b->scratch.p + 1, --b->scratch.n * sizeof(*b->scratch.p));
	return (struct ref_stack){.stack = builder_user_stack(b, ev, loss), .loss = loss};
}

/* A reference never changes its meaning, but a second telling may be a better one. */
void builder_on_stack(struct builder *b, const struct event *ev)
{
	struct refs *r = &b->refs;
	struct map *index = ev->stack.is_kernel ? &r->kernel : &r->user;
	bool is_new;
	uint32_t idx = *map_put(index, ev->stack.ref, &is_new);
	if (!is_new && (ev->stack.is_kernel || r->stacks.p[idx].loss == LOSS_NR))
		return;
	struct ref_stack s = ev->stack.is_kernel ? kernel_part(b, &ev->stack) : user_part(b, ev);
	if (!is_new) {
		r->stacks.p[idx] = s;
		return;
	}
	*map_put(index, ev->stack.ref, NULL) = (uint32_t)r->stacks.n;
	vec_push(&r->stacks, s);
}

/* ---- referred to -------------------------------------------------------------------------- */

static stack_id lost_stack(struct builder *b)
{
	struct refs *r = &b->refs;
	if (!r->lost)
		r->lost = profile_stack(b->p, 0, profile_pseudo_location(b->p, "[lost stack]"));
	return r->lost;
}

static stack_id find_user(struct builder *b, uint64_t ref, enum loss_kind *ret_loss)
{
	*ret_loss = LOSS_NR;
	if (!ref)
		return 0;
	const uint32_t *idx = map_get(&b->refs.user, ref);
	if (!idx) {
		*ret_loss = LOSS_STACK_LOST;
		return lost_stack(b);
	}
	*ret_loss = b->refs.stacks.p[*idx].loss;
	return b->refs.stacks.p[*idx].stack;
}

static stack_id join_kernel(struct builder *b, stack_id user, uint64_t ref,
			    enum loss_kind *ret_loss)
{
	struct refs *r = &b->refs;
	const uint32_t *idx = ref ? map_get(&r->kernel, ref) : NULL;
	if (!ref)
		return user;
	if (!idx) {
		*ret_loss = LOSS_STACK_LOST;
		return user ? user : lost_stack(b);
	}
	bool is_new;
	uint32_t *joined = map_put(&r->joined, (uint64_t)user << 32 | *idx, &is_new);
	if (is_new) {
		const struct ref_stack *part = &r->stacks.p[*idx];
		stack_id stack = user;
		for (uint32_t i = part->nr; i-- > 0;)
			stack = profile_stack(b->p, stack, r->frames.p[part->first + i]);
		*joined = stack;
	}
	return *joined;
}

static stack_id find_stack(struct builder *b, uint64_t user_ref, uint64_t kernel_ref,
			   enum loss_kind *ret_loss)
{
	stack_id user = find_user(b, user_ref, ret_loss);
	return join_kernel(b, user, kernel_ref, ret_loss);
}

stack_id builder_ref_stack(struct builder *b, const struct event *ev, enum loss_kind *ret_loss)
{
	const struct event_sample *s = &ev->sample;
	stack_id stack = find_stack(b, s->user_ref, s->kernel_ref, ret_loss);
	if (s->kernel_ref || !s->ip)
		return stack;
	loc_id leaf = s->is_user
			      ? builder_user_location(b, ev->pid, spaces_get(&b->spaces, ev->pid),
						      s->ip, false)
			      : builder_kernel_location(b, s->ip, false);
	return profile_stack(b->p, stack, leaf);
}

/* ---- rows --------------------------------------------------------------------------------- */

static bool is_there(const struct builder *b, const struct late_row *row)
{
	return (!row->user_ref || map_get(&b->refs.user, row->user_ref)) &&
	       (!row->other_ref || map_get(&b->refs.user, row->other_ref)) &&
	       (!row->kernel_ref || map_get(&b->refs.kernel, row->kernel_ref));
}

static void write_row(struct builder *b, const struct late_row *row)
{
	const struct spec_table *t = builder_table_of(b, row->spec);
	struct losses *losses = &b->p->losses;
	uint64_t nr = (uint64_t)MAX(row->values[0], (int64_t)0);
	enum loss_kind loss;
	enum loss_kind other_loss;
	stack_id stack = find_stack(b, row->user_ref, row->kernel_ref, &loss);
	struct tag tag = row->tag;
	tag.other_stack = find_user(b, row->other_ref, &other_loss);
	if (b->p->tables.p[t->table - 1].has_tags)
		profile_tagged_sample(b->p, t->table - 1, row->time_ns, stack, row->task, row->cpu,
				      profile_tag(b->p, &tag), row->values);
	else
		profile_sample(b->p, t->table - 1, row->time_ns, stack, row->task, row->cpu,
			       row->values);
	if (table_kind(b->p->tables.p[t->table - 1].id)->is_derived)
		return;
	losses->nr[LOSS_SEEN] += nr;
	losses->nr[LOSS_WRITTEN] += nr;
	if (loss != LOSS_NR)
		losses->nr[loss] += nr;
}

static str_id text_of(struct builder *b, const char *text)
{
	return text ? profile_cstr(b->p, text) : 0;
}

void builder_on_aggregate(struct builder *b, const struct event *ev)
{
	const struct event_aggregate *y = &ev->aggregate;
	const struct spec_table *t = builder_table_of(b, y->spec);
	if (!t)
		return;
	struct late_row row = {
		.spec = y->spec,
		.cpu = (int16_t)ev->cpu,
		.time_ns = ev->time_ns,
		.task = builder_past_task(b, ev->pid, ev->tid, ev->time_ns),
		.user_ref = y->user_ref,
		.kernel_ref = y->kernel_ref,
		.other_ref = y->other_ref,
		.tag = {.reason = y->reason,
			.evidence = y->evidence,
			.log2_ns = y->log2_ns,
			.size_class = y->size_class,
			.syscall = y->syscall,
			.object = text_of(b, y->object),
			.detail = text_of(b, y->detail),
			.other = y->other_tid ? builder_past_task(b, y->other_pid, y->other_tid,
								  ev->time_ns)
					      : 0},
	};
	memcpy(row.values, y->values,
	       b->p->tables.p[t->table - 1].nr_columns * sizeof(*row.values));
	if (is_there(b, &row))
		write_row(b, &row);
	else
		vec_push(&b->refs.late, row);
}

/* Writes those that have been tried before, and those whose stacks are there now. */
static void settle(struct builder *b, bool is_last)
{
	struct refs *r = &b->refs;
	size_t kept = 0;
	for (size_t i = 0; i < r->late.n; i++) {
		struct late_row row = r->late.p[i];
		if (is_last || row.is_tried || is_there(b, &row)) {
			write_row(b, &row);
			continue;
		}
		row.is_tried = true;
		r->late.p[kept++] = row;
	}
	r->late.n = kept;
}

void builder_resolve_pending(struct builder *b)
{
	settle(b, false);
}

void builder_resolve_all(struct builder *b)
{
	settle(b, true);
}
