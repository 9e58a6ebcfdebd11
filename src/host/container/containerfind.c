/* Finds containers by the cgroups of processes; see container.h. */
#include "base/base.h"
#include "host/container/container.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/file.h"
#include "base/mem.h"
#include "base/text/lines.h"
#include "base/text/num.h"
#include "host/container/containerstate.h"

#define CGROUP_BYTES_MAX ((size_t)64 << 10)
#define CONTAINERS_MAX   4096u
#define SHORT_ID         12u

static const struct {
	const char *prefix;
	const char *engine;
} prefixes[] = {
	{"cri-containerd", "containerd"},
	{"nerdctl", "containerd"},
	{"crio", "cri-o"},
	{"docker", "docker"},
	{"libpod", "podman"},
};

void containers_release(struct containers *l)
{
	vec_foreach(c, &l->list) {
		free(c->name);
		free(c->image);
		free(c->service);
		free(c->project);
		free(c->pod);
		free(c->pod_namespace);
		free(c->cgroup);
		free(c->controllers);
		pid_list_release(&c->pids);
	}
	vec_release(&l->list);
}

/* ---- cgroup paths ------------------------------------------------------------------------- */

static size_t hex_digits(struct sv s)
{
	size_t n = 0;
	while (n < s.n && ((s.p[n] >= '0' && s.p[n] <= '9') || (s.p[n] >= 'a' && s.p[n] <= 'f')))
		n++;
	return n;
}

static const char *engine_of(struct sv prefix, struct sv parent)
{
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
		if (sv_eq_str(prefix, prefixes[i].prefix))
			return prefixes[i].engine;
	return sv_eq(parent, SV("docker"))          ? "docker"
	       : sv_eq(parent, SV("libpod_parent")) ? "podman"
						    : "";
}

/* The name of a folder: "ID", "PREFIX-ID", "PREFIX-ID.scope", "SLICE:PREFIX:ID". */
static bool parse_folder(struct sv name, struct sv parent, struct sv *ret_id,
			 const char **ret_engine)
{
	if (sv_has_suffix(name, SV(".scope")))
		name.n -= strlen(".scope");
	if (name.n < CONTAINER_ID_LEN)
		return false;
	struct sv id = sv_from_idx(name, name.n - CONTAINER_ID_LEN);
	struct sv prefix = sv_from(name.p, name.n - CONTAINER_ID_LEN);
	if (hex_digits(id) != CONTAINER_ID_LEN)
		return false;
	if (prefix.n) {
		char separator = prefix.p[--prefix.n];
		if (separator != '-' && separator != ':')
			return false;
		prefix = sv_from_idx(prefix, (size_t)(sv_rindex(prefix, ':') + 1));
	}
	/* The process that waits for the container has a folder of its own. */
	if (sv_has_suffix(prefix, SV("conmon")))
		return false;
	*ret_id = id;
	*ret_engine = engine_of(prefix, parent);
	return true;
}

bool container_id_in(struct sv path, size_t from, struct sv *ret_id, size_t *ret_end,
		     const char **ret_engine)
{
	struct sv parent = {0};
	for (size_t at = 0; at < path.n;) {
		struct sv left = sv_from_idx(path, at);
		struct sv name = sv_split(&left, '/');
		if (at >= from && parse_folder(name, parent, ret_id, ret_engine)) {
			*ret_end = at + name.n;
			return true;
		}
		parent = name;
		at += name.n + 1;
	}
	return false;
}

/* ---- processes ---------------------------------------------------------------------------- */

static struct container *get_container(struct containers *l, struct sv id, const char *engine,
				       struct sv cgroup, struct sv controllers)
{
	vec_foreach(c, &l->list)
		if (sv_eq_str(id, c->id))
			return c;
	if (l->list.n >= CONTAINERS_MAX)
		return NULL;
	struct container *c = vec_add(&l->list);
	memcpy(c->id, id.p, CONTAINER_ID_LEN);
	c->engine = engine;
	c->cgroup = xstrndup(cgroup.p, cgroup.n);
	c->controllers = xstrndup(controllers.p, controllers.n);
	return c;
}

/* Adds the process to the containers in a path. Returns whether there is one. */
static bool add_by_path(struct containers *l, int32_t pid, struct sv path, struct sv controllers)
{
	struct sv id;
	const char *engine;
	size_t end = 0;
	bool is_found = false;
	while (container_id_in(path, end, &id, &end, &engine)) {
		struct container *c =
			get_container(l, id, engine, sv_from(path.p, end), controllers);
		if (c && !pid_list_has(&c->pids, pid))
			vec_push(&c->pids.pids, pid);
		is_found = true;
	}
	return is_found;
}

/* Version 2 is the last line, and the only hierarchy where there is no other. */
static void add_process(struct containers *l, const char *root, int32_t pid)
{
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(free_p) char *path = xasprintf("%sproc/%d/cgroup", root, pid);
	struct sv line;
	if (file_read(&text, path, CGROUP_BYTES_MAX, NULL))
		return;
	struct sv v1_path = {0};
	struct sv v1_controllers = {0};
	struct lines in = lines_from(text.p, text.n);
	while (lines_next(&in, &line)) {
		struct sv number = sv_split(&line, ':');
		struct sv controllers = sv_split(&line, ':');
		struct sv id;
		const char *engine;
		size_t end;
		if (sv_eq(number, SV("0")) && add_by_path(l, pid, line, controllers))
			return;
		if (!v1_path.n && container_id_in(line, 0, &id, &end, &engine)) {
			v1_path = line;
			v1_controllers = controllers;
		}
	}
	(void)add_by_path(l, pid, v1_path, v1_controllers);
}

static int list_processes(struct pid_list *ret_l, const char *root, struct err *err)
{
	CLEANUP(free_p) char *path = xasprintf("%sproc", root);
	return proc_list_in(ret_l, path, err);
}

int containers_find(struct containers *ret_l, const char *root, struct err *err)
{
	CLEANUP(pid_list_release) struct pid_list all = {0};
	TRY(list_processes(&all, root, err));
	struct containers l = {0};
	vec_foreach(pid, &all.pids)
		add_process(&l, root, *pid);
	if (l.list.n)
		containerstate_read(&l, root, &all);
	*ret_l = l;
	return 0;
}

const struct container *containers_of(const struct containers *l, int32_t pid)
{
	const struct container *found = NULL;
	vec_foreach(c, &l->list)
		if (pid_list_has(&c->pids, pid) &&
		    (!found || strlen(c->cgroup) > strlen(found->cgroup)))
			found = c;
	return found;
}

/* ---- names -------------------------------------------------------------------------------- */

static bool is_text(const char *text, const char *word)
{
	return text && !strcmp(text, word);
}

static bool is_in_pod(const struct container *c, const char *word)
{
	struct sv left = sv_from_str(word);
	ssize_t at = sv_rindex(left, '/');
	if (!c->pod || at < 0)
		return false;
	struct sv pod = sv_from(left.p, (size_t)at);
	ssize_t slash = sv_index(pod, '/');
	struct sv space = sv_from(pod.p, slash > 0 ? (size_t)slash : 0);
	pod = sv_from_idx(pod, (size_t)(slash + 1));
	return is_text(c->name, word + at + 1) && sv_eq_str(pod, c->pod) &&
	       (!space.n || sv_eq_str(space, c->pod_namespace ?: ""));
}

enum meaning {
	MEANS_NAME,
	MEANS_ID,
	MEANS_SERVICE,
	MEANS_POD,
	MEANS_NR,
};

static bool means(const struct container *c, const char *word, enum meaning how, unsigned flags)
{
	size_t n = strlen(word);
	switch (how) {
	case MEANS_NAME:
		return is_text(c->name, word) || is_in_pod(c, word);
	case MEANS_ID:
		return n >= (flags & CONTAINER_SHORT_ID ? 1 : SHORT_ID) && !strncmp(c->id, word, n);
	case MEANS_SERVICE:
		return is_text(c->service, word);
	case MEANS_POD:
		return is_text(c->pod, word);
	case MEANS_NR:
		break;
	}
	return false;
}

struct container_matches containers_match(const struct containers *l, const char *word,
					  unsigned flags)
{
	struct container_matches m = {0};
	for (enum meaning how = 0; how < MEANS_NR && !m.idx.n; how++)
		for (size_t i = 0; i < l->list.n; i++)
			if (!l->list.p[i].is_pause && means(&l->list.p[i], word, how, flags))
				vec_push(&m.idx, i);
	return m;
}

void container_add_name(struct buf *to, const struct container *c)
{
	if (c->name && c->pod)
		buf_addf(to, "%s/%s", c->pod, c->name);
	else if (c->name)
		buf_add_str(to, c->name);
	else
		buf_addf(to, "%.*s", (int)SHORT_ID, c->id);
}

void container_describe(struct buf *to, const struct container *c)
{
	buf_addf(to, "%s", *c->engine ? c->engine : "engine not known");
	if (c->image)
		buf_addf(to, ", image %s", c->image);
	else
		buf_addf(to, ", cgroup %s", c->cgroup);
	if (c->service)
		buf_addf(to, ", service %s%s%s", c->project ?: "", c->project ? "/" : "",
			 c->service);
	buf_addf(to, ", %s", num_noun(c->pids.pids.n, "processes").s);
	if (c->name)
		buf_addf(to, ", id %.*s", (int)SHORT_ID, c->id);
}
