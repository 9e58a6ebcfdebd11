/* Measures of the capture itself: duration, losses, quota, what the program is made of; see measures.h. */
#include "base/base.h"
#include "analyze/diagnose/measurebase.h"

#include <math.h>

#include "analyze/select/window.h"
#include "base/text/num.h"
#include "model/facts.h"

#define NUMBER(name) static double name(struct measures *m)
#define TEXT(name)   static const char *name(struct measures *m)

static double duration_ns(const struct measures *m)
{
	return (double)window_recorded_ns(m->p, window_of_profile(m->p));
}

NUMBER(duration)
{
	double ns = duration_ns(m);
	return ns > 0 ? ns : (double)NAN;
}

NUMBER(cpus)
{
	uint64_t nr = profile_get_fact_nr(m->p, FACT_CPUS);
	return nr ? (double)nr : (double)NAN;
}

/* The CPU quota of the cgroup held threads back; without a quota for no time. Known of the whole only. */
NUMBER(throttled_time)
{
	return select_scope(&m->spec) == SELECT_ALL
		       ? (double)profile_get_fact_nr(m->p, FACT_THROTTLED_NS)
		       : (double)NAN;
}

/* Known of the whole only. */
TEXT(other_programs)
{
	const char *text = profile_get_fact(m->p, FACT_OTHER_CPU);
	return text && select_scope(&m->spec) == SELECT_ALL ? text : "";
}

NUMBER(steal_pct)
{
	const char *steal = profile_get_fact(m->p, FACT_STEAL);
	double all_ns = duration_ns(m) * cpus(m);
	return steal && all_ns > 0 ? 100 * (double)profile_get_fact_nr(m->p, FACT_STEAL) / all_ns
				   : (double)NAN;
}

static double pct_of_nr(uint64_t nr, uint64_t all)
{
	return all ? 100 * (double)nr / (double)all : (double)NAN;
}

NUMBER(lost_pct)
{
	uint64_t nr = 0;
	for (enum loss_kind k = 0; k < LOSS_NR; k++)
		nr += loss_class(k) == LOSS_CLASS_LOST ? m->p->losses.nr[k] : 0;
	return pct_of_nr(nr, m->p->losses.nr[LOSS_SEEN]);
}

/* Of what was written, as on the pages. */
NUMBER(unsymbolized_pct)
{
	return pct_of_nr(losses_unsymbolized(&m->p->losses), m->p->losses.nr[LOSS_WRITTEN]);
}

NUMBER(truncated_pct)
{
	return pct_of_nr(losses_truncated(&m->p->losses), m->p->losses.nr[LOSS_WRITTEN]);
}

TEXT(kernel)
{
	return profile_get_fact(m->p, FACT_KERNEL);
}

/* "6.1.0-18-amd64" is 6001. */
NUMBER(kernel_number)
{
	const char *text = profile_get_fact(m->p, FACT_KERNEL);
	struct sv rest = sv_from_str(text ? text : "");
	uint64_t major;
	uint64_t minor;
	struct sv first = sv_split(&rest, '.');
	bool is_known = sv_to_u64(first, &major) && sv_to_u64(sv_take(&rest, "0123456789"), &minor);
	return is_known && minor < 1000 ? (double)major * 1000 + (double)minor : (double)NAN;
}

/* ---- what the program is made of ------------------------------------------------------------- */

struct part {
	const char *name;
	const char *module;   /* begins the file name of a module, or NULL */
	const char *function; /* begins the name of a function, or NULL */
};

static bool has_module(const struct profile *p, const char *prefix)
{
	vec_foreach(module, &p->modules) {
		struct sv path = sv_from_str(profile_text(p, module->path));
		ssize_t slash = sv_rindex(path, '/');
		struct sv name = sv_from_idx(path, (size_t)(slash + 1));
		if (sv_has_prefix(name, sv_from_str(prefix)))
			return true;
	}
	return false;
}

static bool has_function(const struct profile *p, const char *prefix)
{
	vec_foreach(f, &p->functions)
		if (sv_has_prefix(sv_from_str(profile_text(p, f->name)), sv_from_str(prefix)))
			return true;
	return false;
}

/* The first part that the profile has; "" if none is seen. */
static const char *find_part(const struct profile *p, const struct part *parts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if ((parts[i].module && has_module(p, parts[i].module)) ||
		    (parts[i].function && has_function(p, parts[i].function)))
			return parts[i].name;
	return "";
}

TEXT(allocator)
{
	static const struct part parts[] = {{"jemalloc", "libjemalloc", "_rjem_"},
					    {"jemalloc", NULL, "je_"},
					    {"mimalloc", "libmimalloc", "mi_"},
					    {"tcmalloc", "libtcmalloc", "tcmalloc::"},
					    {"musl", "ld-musl", NULL},
					    {"glibc", "libc.so.6", NULL},
					    {"glibc", "libc-2", NULL}};
	const char *fact = profile_get_fact(m->p, FACT_HEAP_ALLOCATOR);
	for (size_t i = 0; fact && i < ARRAY_LEN(parts); i++)
		if (sv_has_prefix(sv_from_str(fact), sv_from_str(parts[i].name)))
			return parts[i].name;
	return find_part(m->p, parts, ARRAY_LEN(parts));
}

/* jemalloc reads its options from a variable that has the prefix of its functions. */
TEXT(allocator_variable)
{
	vec_foreach(f, &m->p->functions)
		if (sv_eq_str(profile_sv(m->p, f->name), "je_malloc"))
			return "JE_MALLOC_CONF";
	return has_function(m->p, "_rjem_") ? "_RJEM_MALLOC_CONF" : "MALLOC_CONF";
}

TEXT(runtime)
{
	static const struct part parts[] = {
		{"tokio", NULL, "tokio::"},           {"python", "libpython", "_PyEval_"},
		{"go", NULL, "runtime.gopark"},       {"go", NULL, "runtime.mcall"},
		{"java", "libjvm.so", NULL},          {"node", NULL, "node::"},
		{"rust", NULL, "std::rt::lang_start"}};
	return find_part(m->p, parts, ARRAY_LEN(parts));
}

NUMBER(has_samples)
{
	return tables_has_rows(m->p, TABLE_SAMPLES);
}

TEXT(file)
{
	return m->input ? m->input : "FILE";
}

static const struct measure rows[] = {
	{"file", FORMULA_TEXT, NULL, "the recording, as commands name it", .text = file},
	{"duration", FORMULA_NS, NULL, "length of the recording", .number = duration},
	{"cpus", FORMULA_COUNT, NULL, "CPUs of the machine", .number = cpus},
	{"throttled.time", FORMULA_NS, NULL,
	 "time that the CPU quota of the cgroup held threads back", .number = throttled_time},
	{"other.programs", FORMULA_TEXT, NULL,
	 "other programs that used the CPUs: \"1.73 CPUs: cc1 0.43, ...\"; empty: not known",
	 .text = other_programs},
	{"steal.pct", FORMULA_PERCENT, "time of all CPUs", "CPU time taken by the hypervisor",
	 .number = steal_pct},
	{"lost.pct", FORMULA_PERCENT, "samples", "samples that were lost", .number = lost_pct},
	{"unsymbolized.pct", FORMULA_PERCENT, "events",
	 "events whose innermost frame is unsymbolized", .number = unsymbolized_pct},
	{"truncated.pct", FORMULA_PERCENT, "events", "events whose stack is truncated",
	 .number = truncated_pct},
	{"samples.exist", FORMULA_PLAIN, NULL, "1: CPU samples were recorded",
	 .number = has_samples},
	{"kernel", FORMULA_TEXT, NULL, "version of the kernel", .text = kernel},
	{"kernel.number", FORMULA_PLAIN, NULL, "1000 times its major version plus the minor one",
	 .number = kernel_number},
	{"allocator.variable", FORMULA_TEXT, NULL, "environment variable with jemalloc's options",
	 .text = allocator_variable},
	{"allocator", FORMULA_TEXT, NULL,
	 "memory allocator: glibc, jemalloc, mimalloc, tcmalloc, musl; empty: not seen",
	 .text = allocator},
	{"runtime", FORMULA_TEXT, NULL,
	 "runtime: tokio, go, python, java, node, rust; empty: none is seen", .text = runtime},
};

const struct measure *capture_measures(size_t *ret_nr)
{
	*ret_nr = ARRAY_LEN(rows);
	return rows;
}
