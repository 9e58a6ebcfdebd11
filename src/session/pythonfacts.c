/* Missing Python frames; see pythonfacts.h. */
#include "base/base.h"
#include "session/pythonfacts.h"

#include "base/text/num.h"
#include "model/facts.h"

static const struct ingest_module *find(const struct modules *m, enum pyruntime_kind kind)
{
	vec_foreach(it, &m->list)
		if ((*it)->python && (*it)->python->kind == kind)
			return *it;
	return NULL;
}

/* Whether stacks were taken by a recorder in the process, which reads native frames only. */
static bool is_from_recorder(const struct profile *p)
{
	const char *method = profile_get_fact(p, FACT_HEAP_METHOD);
	struct sv s = sv_from_str(method ? method : "");
	return sv_has_prefix(s, SV("patch")) || sv_has_prefix(s, SV("hooks")) ||
	       sv_has_prefix(s, SV("prof"));
}

void python_facts(struct profile *p, const struct modules *m, const struct engine_info *e)
{
	const struct ingest_module *unknown = find(m, PYRUNTIME_UNKNOWN);
	if (unknown) {
		uint32_t v = unknown->python->version;
		char version[32] = "a version before 3.11";
		if (v)
			(void)snprintf(version, sizeof(version), "Python %u.%u", v >> 24,
				       v >> 16 & 255);
		profile_factf(
			p, FACT_PYTHON,
			"not read from %s: it is %s, or built without a GIL; 3.11 to 3.13 are read",
			unknown->path, version);
	} else if (!find(m, PYRUNTIME_KNOWN)) {
		return;
	} else if (is_from_recorder(p)) {
		profile_fact(p, FACT_PYTHON,
			     "not read by this method; --method uprobes and growth read them");
	} else if (!e) {
		profile_fact(p, FACT_PYTHON, "not read: that takes BPF programs (assay doctor)");
	} else if (e->nr_pythons_partly) {
		profile_factf(p, FACT_PYTHON, "some are missing in %" PRIu64 " of %s",
			      e->nr_pythons_partly, num_noun(e->nr_pythons, "stacks").s);
	}
}
