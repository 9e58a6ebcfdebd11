/* Locations of text formats; see textframes.h. */
#include "base/base.h"
#include "format/textframes.h"

#include "base/hash.h"

#define OFFSET_NAMED ((uint64_t)2 << 62) /* | function id */
#define OFFSET_GROUP ((uint64_t)3 << 62) /* | hash of the frames */

static module_id named_module(struct profile *p, str_id path)
{
	return profile_module(p, &(struct module){.kind = MODULE_NAMED, .path = path});
}

loc_id text_location(struct profile *p, const struct text_frame *frames, size_t nr)
{
	const struct text_frame *physical = &frames[nr - 1];
	module_id mod = named_module(p, physical->path);
	uint64_t key = 0;
	func_id first_func = 0;
	for (size_t i = 0; i < nr; i++) {
		const struct text_frame *f = &frames[i];
		func_id fn = profile_function(p, &(struct function){.name = f->name,
								    .module = mod,
								    .flags = f->func_flags});
		if (!i)
			first_func = fn;
		key = hash_mix(key ^ ((uint64_t)fn << 32 | f->file),
			       (uint64_t)f->line << 2 | (uint64_t)f->is_inferred << 1 |
				       f->is_inlined);
	}
	bool is_plain =
		nr == 1 && !physical->file && !physical->is_inlined && !physical->is_inferred;
	key = is_plain ? OFFSET_NAMED | first_func : OFFSET_GROUP | key;
	uint32_t flags = physical->func_flags & FUNC_KERNEL ? LOCATION_KERNEL : 0;
	loc_id loc = profile_location(p, mod, key, flags);
	if (p->locations.p[loc].flags & LOCATION_SYMBOLIZED)
		return loc;

	VEC(struct frame) named = {0};
	for (size_t i = 0; i < nr; i++) {
		const struct text_frame *f = &frames[i];
		func_id fn = profile_function(p, &(struct function){.name = f->name,
								    .module = mod,
								    .flags = f->func_flags});
		vec_push(&named, (struct frame){.func = fn,
						.file = f->file,
						.line = f->line,
						.is_inlined = f->is_inlined,
						.is_inferred = f->is_inferred});
	}
	profile_set_frames(p, loc, named.p, named.n, 0);
	vec_release(&named);
	return loc;
}

static enum loss_kind why_unnamed(struct profile *p, str_id path, unsigned func_flags)
{
	if (!path)
		return LOSS_UNSYM_NO_MAP;
	if (func_flags & FUNC_KERNEL)
		return LOSS_UNSYM_NO_KERNEL;
	if (func_flags & FUNC_JIT || sv_has_prefix(profile_sv(p, path), SV("//anon")))
		return LOSS_UNSYM_JIT;
	return LOSS_UNSYM_STRIPPED;
}

loc_id text_unsymbolized(struct profile *p, uint64_t address, str_id path, unsigned func_flags)
{
	uint32_t flags = func_flags & FUNC_KERNEL ? LOCATION_KERNEL : 0;
	loc_id loc = profile_location(p, named_module(p, path), address, flags);
	if (!(p->locations.p[loc].flags & LOCATION_SYMBOLIZED))
		profile_set_frames(p, loc, NULL, 0, why_unnamed(p, path, func_flags));
	return loc;
}

static bool is_perf_map(struct sv path)
{
	if (!sv_has_prefix(path, SV("/tmp/perf-")) || !sv_has_suffix(path, SV(".map")))
		return false;
	for (size_t i = SV("/tmp/perf-").n; i < path.n - SV(".map").n; i++)
		if (path.p[i] < '0' || path.p[i] > '9')
			return false;
	return true;
}

/* "[kernel.kallsyms]", "[guest.kernel.kallsyms.0]" and "[nf_tables]", but not "[vdso]". */
static bool is_bracketed_kernel(struct sv path)
{
	static const char *const user[] = {"[vdso",    "[vsyscall", "[heap",    "[stack",  "[anon",
					   "[unknown", "[uprobes",  "[vectors", "[sigpage"};
	if (path.n < 3 || path.p[0] != '[')
		return false;
	for (size_t i = 0; i < ARRAY_LEN(user); i++)
		if (sv_has_prefix(path, sv_from_str(user[i])))
			return false;
	return true;
}

unsigned text_func_flags(struct sv module_path)
{
	if (is_perf_map(module_path) || sv_eq(module_path, SV("[jit]")))
		return FUNC_JIT;
	ssize_t slash = sv_rindex(module_path, '/');
	struct sv base = sv_from_idx(module_path, (size_t)(slash + 1));
	if (sv_has_prefix(base, SV("jitted-")) && sv_has_suffix(base, SV(".so")))
		return FUNC_JIT;
	if (is_bracketed_kernel(module_path) || sv_has_prefix(base, SV("vmlinux")) ||
	    sv_has_suffix(base, SV(".ko")) || sv_has_suffix(base, SV(".ko.xz")) ||
	    sv_has_suffix(base, SV(".ko.zst")) || sv_has_suffix(base, SV(".ko.gz")) ||
	    sv_has_prefix(base, SV("bpf_prog_")))
		return FUNC_KERNEL;
	return 0;
}

void text_add_unsymbolized(struct buf *to, const struct profile *p, loc_id loc, unsigned flags)
{
	const struct location *l = &p->locations.p[loc];
	struct sv mod = sv_from_str(profile_module_name(p, l->module));
	if (mod.n >= 2 && mod.p[0] == '[' && mod.p[mod.n - 1] == ']')
		mod = sv_from(mod.p + 1, mod.n - 2);
	buf_add_ch(to, '[');
	buf_add_sv(to, mod.n ? mod : SV("unknown"));
	if (flags & TEXT_ADDRS) {
		buf_add_str(to, " <");
		buf_add_hex(to, l->offset);
		buf_add_ch(to, '>');
	}
	buf_add_ch(to, ']');
}
