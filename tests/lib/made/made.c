/* Synthetic profiles; see made.h. */
#include "base/base.h"
#include "made.h"

#include "base/sv.h"

uint32_t made_table(struct profile *p, const char *event, uint32_t nr_columns)
{
	struct table shape = {
		.event = profile_cstr(p, event),
		.nr_columns = nr_columns,
		.weight_column = nr_columns - 1,
		.columns = {{.name = profile_cstr(p, "samples"), .unit = UNIT_COUNT},
			    {.name = profile_cstr(p, "time"), .unit = UNIT_NS}},
	};
	return profile_table(p, &shape);
}

loc_id made_named(struct profile *p, struct sv name, struct sv module_path, uint32_t flags)
{
	module_id mod = profile_module(
		p, &(struct module){.kind = MODULE_NAMED,
				    .path = profile_str(p, module_path.p, module_path.n)});
	str_id text = profile_str(p, name.p, name.n);
	/* A named frame has no address: its function stands in for the offset. */
	func_id fn = profile_function(
		p, &(struct function){.name = text,
				      .module = mod,
				      .flags = flags & LOCATION_KERNEL ? FUNC_KERNEL : 0});
	loc_id loc = profile_location(p, mod, fn, flags);
	if (!(p->locations.p[loc].flags & LOCATION_SYMBOLIZED))
		profile_set_frames(p, loc, &(struct frame){.func = fn}, 1, 0);
	return loc;
}

static loc_id inlined(struct profile *p, struct sv inner, struct sv outer, struct sv module)
{
	module_id mod =
		profile_module(p, &(struct module){.kind = MODULE_ELF,
						   .path = profile_str(p, module.p, module.n)});
	struct frame frames[2] = {
		{.func = profile_function(
			 p, &(struct function){.module = mod,
					       .name = profile_str(p, inner.p, inner.n)}),
		 .file = profile_cstr(p, "inner.c"),
		 .line = 10,
		 .is_inlined = true},
		{.func = profile_function(
			 p, &(struct function){.module = mod,
					       .name = profile_str(p, outer.p, outer.n)}),
		 .file = profile_cstr(p, "outer.c"),
		 .line = 20},
	};
	loc_id loc = profile_location(p, mod, frames[0].func * 1000u + frames[1].func, 0);
	if (!p->locations.p[loc].nr_frames)
		profile_set_frames(p, loc, frames, 2, 0);
	return loc;
}

stack_id made_stack(struct profile *p, const char *stack)
{
	stack_id s = 0;
	for (struct sv rest = sv_from_str(stack); rest.n;) {
		struct sv module = sv_split(&rest, ';');
		struct sv name = sv_split(&module, ' ');
		bool is_kernel = sv_eq_str(module, "[k]");
		ssize_t at = sv_index(name, '<');
		loc_id loc;
		if (at > 0)
			loc = inlined(p, sv_from(name.p, (size_t)at),
				      sv_from_idx(name, (size_t)at + 1), module);
		else
			loc = made_named(p, name, is_kernel ? SV("[kernel]") : module,
					 is_kernel ? LOCATION_KERNEL : 0);
		s = profile_stack(p, s, loc);
	}
	return s;
}

void made_sample(struct profile *p, uint32_t table, const struct made *m)
{
	int32_t pid = m->pid ? m->pid : 1;
	task_id task = profile_task(p, pid, m->tid ? m->tid : pid,
				    profile_cstr(p, m->comm ? m->comm : "comm"), m->ns);
	int64_t values[2] = {m->nr ? m->nr : 1, m->weight};
	if (!m->weight)
		values[1] = values[0];
	profile_sample(p, table, m->ns, made_stack(p, m->stack), task, m->cpu, values);
}
