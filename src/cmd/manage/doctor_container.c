/* Flags for containers; see doctor_container.h. */
#include "base/base.h"
#include "cmd/manage/doctor_container.h"

#include <linux/capability.h>

#include "analyze/rightsreport.h"

#define CAP(n) ((uint64_t)1 << (n))

static const struct report_column columns[] = {
	{"from", "from", CELL_TEXT, .is_prose = true},
	{"run", "run", CELL_TEXT, .is_prose = true},
};

/* docker and podman, whose options are alike. */
static void add_runs(struct report *r, struct report_table *t, const char *engine, const char *name,
		     const struct rights_needs *needs, int32_t pid)
{
	CLEANUP(buf_release) struct buf beside = {0};
	CLEANUP(buf_release) struct buf full = {0};
	const uint64_t caps = needs->caps | CAP(CAP_SYS_PTRACE);
	static const char run[] = "run --rm -v \"$PWD/profiling\":/out/profiling";
	buf_addf(&beside, "%s %s --pid=container:%s ", engine, run, name);
	rights_add_flags(&beside, caps & ~CAP(HOST_CAP_BPF), needs->bits | RIGHTS_IS_ALONE);
	buf_add_str(&beside, " assay cpu -p 1 --children 30");
	buf_addf(&full, "%s %s ", engine, run);
	rights_add_flags(&full, caps, needs->bits);
	buf_addf(&full, " assay cpu -p %d --children 30", pid);
	report_add_texts(r, t, "a container beside it, without BPF programs", buf_str(&beside));
	report_add_texts(r, t, "a container that sees all processes, with BPF programs",
			 buf_str(&full));
}

static void add_pod(struct report *r, struct report_table *t, const struct rights_needs *needs)
{
	CLEANUP(buf_release) struct buf caps = {0};
	rights_add_caps(&caps, (needs->caps | CAP(CAP_SYS_PTRACE)) & ~CAP(HOST_CAP_BPF));
	report_add_texts(
		r, t, "a container of its pod, without BPF programs",
		arena_fmt(&r->arena,
			  "shareProcessNamespace: true; of assay's container, in securityContext: "
			  "capabilities: drop ALL, add %s; seccompProfile: assay-seccomp.json",
			  buf_str(&caps)));
}

void doctor_add_container(struct report *r, const struct target_container *c,
			  const struct rights_needs *needs, int32_t pid)
{
	const char *name = c->name[0] ? c->name : c->id;
	bool is_run = !strcmp(c->engine, "docker") || !strcmp(c->engine, "podman");
	struct report_table *t =
		report_add_table(r, "container",
				 arena_fmt(&r->arena, "how to profile the container %s", name),
				 columns, ARRAY_LEN(columns));
	t->note =
		"the image assay is built by contrib/Dockerfile; assay-seccomp.json is in contrib/";
	report_add_texts(r, t, "this machine, as root",
			 arena_fmt(&r->arena,
				   "assay cpu --container %s 30 (the container needs no flags)",
				   name));
	if (is_run)
		add_runs(r, t, c->engine, name, needs, pid);
	else
		add_pod(r, t, needs);
}
