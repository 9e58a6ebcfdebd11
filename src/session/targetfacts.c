/* Facts on what was captured; see targetfacts.h. */
#include "base/base.h"
#include "session/targetfacts.h"

#include "base/buf.h"
#include "base/text/num.h"
#include "model/facts.h"

static const struct ingest_module *find(const struct modules *m, enum pyruntime_kind kind)
{
	vec_foreach(it, &m->list)
		if ((*it)->python && (*it)->python->kind == kind)
			return *it;
	return NULL;
}

static bool is_heap_method(const struct profile *p, struct sv name)
{
	const char *method = profile_get_fact(p, FACT_HEAP_METHOD);
	return sv_has_prefix(sv_from_str(method ? method : ""), name);
}

void targetfacts_python(struct profile *p, const struct modules *m, const struct engine_info *e)
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
	} else if (is_heap_method(p, SV("prof"))) {
		profile_fact(p, FACT_PYTHON,
			     "not read by jemalloc's profiling; other methods read them");
	} else if (is_heap_method(p, SV("patch")) || is_heap_method(p, SV("hooks"))) {
		return; /* read by the recorder in the process, which says what is missing */
	} else if (!e) {
		profile_fact(p, FACT_PYTHON, "not read: that takes BPF programs (assay doctor)");
	} else if (e->nr_pythons_partly) {
		profile_factf(p, FACT_PYTHON, "some are missing in %" PRIu64 " of %s",
			      e->nr_pythons_partly, num_noun(e->nr_pythons, "stacks").s);
	}
}

static void add_text(struct buf *to, const char *text)
{
	buf_addf(to, "%s%s", to->n ? ", " : "", *text ? text : "not known");
}

void targetfacts_containers(struct profile *p, const struct target *t)
{
	CLEANUP(buf_release) struct buf names = {0};
	CLEANUP(buf_release) struct buf images = {0};
	CLEANUP(buf_release) struct buf ids = {0};
	CLEANUP(buf_release) struct buf engines = {0};
	bool has_image = false;
	if (!t->containers.n)
		return;
	vec_foreach(c, &t->containers) {
		add_text(&names, c->name);
		add_text(&images, c->image);
		add_text(&ids, c->id);
		add_text(&engines, c->engine);
		has_image |= *c->image;
	}
	profile_fact(p, FACT_CONTAINER, buf_str(&names));
	if (has_image)
		profile_fact(p, FACT_CONTAINER_IMAGE, buf_str(&images));
	profile_fact(p, FACT_CONTAINER_ENGINE, buf_str(&engines));
	profile_fact(p, FACT_CONTAINER_ID, buf_str(&ids));
}

void targetfacts_add_joined(struct profile *p, const struct targetfacts_joined *j,
			    const char *unprobed)
{
	CLEANUP(buf_release) struct buf text = {0};
	if (j->nr_from_outside)
		buf_addf(&text, "%s started in it from outside during the capture",
			 num_noun(j->nr_from_outside, "processes").s);
	if (j->nr_missed)
		buf_addf(&text, "; %u of them not recorded completely: that needs BPF programs",
			 j->nr_missed);
	if (j->nr_new && unprobed)
		buf_addf(&text,
			 "%s%s are not measured in %s that started during the capture: a new "
			 "capture measures them there, too",
			 text.n ? "; " : "", unprobed, num_noun(j->nr_new, "processes").s);
	if (text.n)
		profile_fact(p, FACT_JOINED, buf_str(&text));
}
