/* Reads the state files of container engines; see containerstate.h. */
#include "base/base.h"
#include "host/container/containerstate.h"

#include <dirent.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/text/jsonread.h"
#include "host/reader/hostfile.h"

#define STATE_BYTES_MAX   ((size_t)4 << 20)
#define COMMAND_BYTES_MAX ((size_t)64 << 10)
#define TEXT_MAX          256u /* bytes of a name, image or label */
#define FOLDERS_MAX       64u  /* namespaces of containerd, drivers of podman */
#define LOGS_MAX          20000u

/* Sets a text that is not known yet. An empty one says nothing. */
static void set(char **to, struct sv text)
{
	if (!*to && text.n)
		*to = xstrndup(text.p, MIN(text.n, (size_t)TEXT_MAX));
}

static void set_engine(struct container *c, const char *engine)
{
	if (!*c->engine)
		c->engine = engine;
}

/* "k8s_app_web-1_default_<uid>_0": no part can contain an underscore. */
bool containerstate_kubernetes_name(struct container *c, struct sv name)
{
	struct sv left = name;
	if (!sv_eq(sv_split(&left, '_'), SV("k8s")))
		return false;
	struct sv container = sv_split(&left, '_');
	struct sv pod = sv_split(&left, '_');
	struct sv space = sv_split(&left, '_');
	if (!container.n || !pod.n || !space.n)
		return false;
	set(&c->name, container);
	set(&c->pod, pod);
	set(&c->pod_namespace, space);
	c->is_pause |= sv_eq(container, SV("POD"));
	return true;
}

static void set_name(struct container *c, struct sv name)
{
	if (sv_has_prefix(name, SV("/"))) /* Docker's names begin with it */
		name = sv_from_idx(name, 1);
	if (!containerstate_kubernetes_name(c, name))
		set(&c->name, name);
}

/* ---- labels and annotations --------------------------------------------------------------- */

static const struct label {
	const char *key;
	size_t at;
} labels[] = {
	{"com.docker.compose.service", offsetof(struct container, service)},
	{"com.docker.compose.project", offsetof(struct container, project)},
	{"io.podman.compose.service", offsetof(struct container, service)},
	{"io.podman.compose.project", offsetof(struct container, project)},
	{"io.kubernetes.container.name", offsetof(struct container, name)},
	{"io.kubernetes.pod.name", offsetof(struct container, pod)},
	{"io.kubernetes.pod.namespace", offsetof(struct container, pod_namespace)},
	{"io.kubernetes.cri.container-name", offsetof(struct container, name)},
	{"io.kubernetes.cri.sandbox-name", offsetof(struct container, pod)},
	{"io.kubernetes.cri.sandbox-namespace", offsetof(struct container, pod_namespace)},
	{"io.kubernetes.cri.image-name", offsetof(struct container, image)},
	{"io.kubernetes.cri-o.ImageName", offsetof(struct container, image)},
	{"nerdctl/name", offsetof(struct container, name)},
};

static void read_label(struct container *c, const struct buf *key, const struct buf *value)
{
	for (size_t i = 0; i < ARRAY_LEN(labels); i++)
		if (!strcmp(buf_str(key), labels[i].key))
			set((char **)((char *)c + labels[i].at), buf_sv(value));
	if (!strcmp(buf_str(key), "io.kubernetes.cri.container-type") ||
	    !strcmp(buf_str(key), "io.kubernetes.cri-o.ContainerType") ||
	    !strcmp(buf_str(key), "io.kubernetes.docker.type"))
		c->is_pause |=
			!strcmp(buf_str(value), "sandbox") || !strcmp(buf_str(value), "podsandbox");
	if (!strncmp(buf_str(key), "io.kubernetes.cri-o.ContainerT", 30))
		set_engine(c, "cri-o");
}

static void read_labels(struct container *c, struct jsonread *j)
{
	CLEANUP(buf_release) struct buf key = {0};
	CLEANUP(buf_release) struct buf value = {0};
	if (!jsonread_obj(j))
		return;
	while (jsonread_key(j, &key))
		if (jsonread_str(j, &value))
			read_label(c, &key, &value);
}

/* ---- files -------------------------------------------------------------------------------- */

static void read_docker_config(struct container *c, struct jsonread *j)
{
	CLEANUP(buf_release) struct buf key = {0};
	CLEANUP(buf_release) struct buf value = {0};
	if (!jsonread_obj(j))
		return;
	while (jsonread_key(j, &key)) {
		if (!strcmp(buf_str(&key), "Labels"))
			read_labels(c, j);
		else if (jsonread_str(j, &value) && !strcmp(buf_str(&key), "Image"))
			set(&c->image, buf_sv(&value));
	}
}

void containerstate_docker(struct container *c, struct sv text)
{
	CLEANUP(buf_release) struct buf key = {0};
	CLEANUP(buf_release) struct buf value = {0};
	struct jsonread j = jsonread_from(text);
	if (!jsonread_obj(&j))
		return;
	while (jsonread_key(&j, &key)) {
		if (!strcmp(buf_str(&key), "Config"))
			read_docker_config(c, &j);
		else if (jsonread_str(&j, &value) && !strcmp(buf_str(&key), "Name"))
			set_name(c, buf_sv(&value));
	}
	set_engine(c, "docker");
}

void containerstate_oci(struct container *c, struct sv text)
{
	CLEANUP(buf_release) struct buf key = {0};
	struct jsonread j = jsonread_from(text);
	if (!jsonread_obj(&j))
		return;
	while (jsonread_key(&j, &key)) {
		if (!strcmp(buf_str(&key), "annotations"))
			read_labels(c, &j);
		else
			jsonread_skip(&j);
	}
}

static struct container *by_id(struct containers *l, const struct buf *id)
{
	vec_foreach(c, &l->list)
		if (!strcmp(c->id, buf_str(id)))
			return c;
	return NULL;
}

static void read_first_name(struct jsonread *j, struct buf *to)
{
	CLEANUP(buf_release) struct buf other = {0};
	buf_clear(to);
	if (!jsonread_arr(j))
		return;
	while (jsonread_more(j))
		(void)jsonread_str(j, to->n ? &other : to);
}

/* "metadata" is JSON once more, as a string. */
static void read_image_name(struct container *c, struct sv text)
{
	CLEANUP(buf_release) struct buf key = {0};
	CLEANUP(buf_release) struct buf value = {0};
	struct jsonread j = jsonread_from(text);
	if (!jsonread_obj(&j))
		return;
	while (jsonread_key(&j, &key))
		if (jsonread_str(&j, &value) && !strcmp(buf_str(&key), "image-name"))
			set(&c->image, buf_sv(&value));
}

/* One object of a list of containers. */
struct listed {
	struct buf id;
	struct buf name;
	struct buf image;
	struct buf metadata;
	struct container labelled; /* only the texts that labels set */
};

static void listed_release(struct listed *o)
{
	struct containers one = {0};
	buf_release(&o->id);
	buf_release(&o->name);
	buf_release(&o->image);
	buf_release(&o->metadata);
	vec_push(&one.list, o->labelled);
	containers_release(&one);
}

static void read_listed(struct listed *o, struct jsonread *j)
{
	CLEANUP(buf_release) struct buf key = {0};
	CLEANUP(buf_release) struct buf other = {0};
	while (jsonread_key(j, &key)) {
		const char *k = buf_str(&key);
		if (!strcasecmp(k, "names"))
			read_first_name(j, &o->name);
		else if (!strcmp(k, "Labels"))
			read_labels(&o->labelled, j);
		else
			(void)jsonread_str(j, !strcasecmp(k, "id")     ? &o->id
					      : !strcmp(k, "Image")    ? &o->image
					      : !strcmp(k, "metadata") ? &o->metadata
								       : &other);
	}
}

static void move(char **to, char **from)
{
	if (!*to)
		*to = TAKE(*from);
}

static void apply_listed(struct containers *l, struct listed *o, const char *engine)
{
	struct container *c = by_id(l, &o->id);
	if (!c)
		return;
	if (engine)
		set_engine(c, engine);
	move(&c->service, &o->labelled.service);
	move(&c->project, &o->labelled.project);
	move(&c->pod, &o->labelled.pod);
	move(&c->pod_namespace, &o->labelled.pod_namespace);
	move(&c->name, &o->labelled.name);
	c->is_pause |= o->labelled.is_pause;
	set_name(c, buf_sv(&o->name));
	set(&c->image, buf_sv(&o->image));
	if (o->metadata.n)
		read_image_name(c, buf_sv(&o->metadata));
}

static void read_list(struct containers *l, struct sv text, const char *engine)
{
	struct jsonread j = jsonread_from(text);
	if (!jsonread_arr(&j))
		return;
	while (jsonread_more(&j)) {
		CLEANUP(listed_release) struct listed o = {.labelled.engine = ""};
		if (!jsonread_obj(&j))
			continue;
		read_listed(&o, &j);
		apply_listed(l, &o, engine);
	}
}

void containerstate_storage(struct containers *l, struct sv text)
{
	read_list(l, text, NULL);
}

void containerstate_list(struct containers *l, struct sv text, const char *engine)
{
	read_list(l, text, engine);
}

/* ---- where they are ----------------------------------------------------------------------- */

static bool read_state(struct buf *to, const char *path)
{
	CLEANUP(source_close) struct byte_source s = {0};
	buf_clear(to);
	return !hostfile_open_path(&s, -1, path) && !source_read_all(to, &s, STATE_BYTES_MAX, NULL);
}

static void read_docker(struct container *c, const char *root)
{
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(free_p)
	char *path = xasprintf("%svar/lib/docker/containers/%s/config.v2.json", root, c->id);
	if (read_state(&text, path))
		containerstate_docker(c, buf_sv(&text));
}

/* Calls @fn for each entry of a folder, of which at most @max are read. */
static void each_entry(const char *path, size_t max, void (*fn)(void *ctx, const char *name),
		       void *ctx)
{
	DIR *dir = opendir(path);
	if (!dir)
		return;
	size_t nr = 0;
	for (struct dirent *e; nr < max && (e = readdir(dir)); nr++)
		if (e->d_name[0] != '.')
			fn(ctx, e->d_name);
	(void)closedir(dir);
}

struct search {
	struct containers *l;
	const char *folder;
};

static void read_containerd_namespace(void *ctx, const char *name)
{
	const struct search *s = ctx;
	vec_foreach(c, &s->l->list) {
		CLEANUP(buf_release) struct buf text = {0};
		CLEANUP(free_p)
		char *path = xasprintf("%s/%s/%s/config.json", s->folder, name, c->id);
		if (c->name || !read_state(&text, path))
			continue;
		containerstate_oci(c, buf_sv(&text));
		set_engine(c, !strcmp(name, "moby") ? "docker" : "containerd");
	}
}

static void read_storage_file(struct containers *l, const char *folder)
{
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(free_p) char *path = xasprintf("%s/containers.json", folder);
	if (read_state(&text, path))
		containerstate_storage(l, buf_sv(&text));
}

static void read_storage(void *ctx, const char *name)
{
	const struct search *s = ctx;
	CLEANUP(free_p) char *folder = xasprintf("%s/%s", s->folder, name);
	if (!sv_has_suffix(sv_from_str(name), SV("-containers")))
		return;
	read_storage_file(s->l, folder);
	vec_foreach(c, &s->l->list) {
		CLEANUP(buf_release) struct buf text = {0};
		CLEANUP(free_p) char *path = xasprintf("%s/%s/userdata/config.json", folder, c->id);
		if (!c->pod && read_state(&text, path))
			containerstate_oci(c, buf_sv(&text));
	}
}

/* "web-1_default_app-<64 digits>.log" */
static void read_log_name(void *ctx, const char *name)
{
	const struct search *s = ctx;
	struct sv left = sv_from_str(name);
	size_t nr_tail = CONTAINER_ID_LEN + strlen(".log");
	if (!sv_has_suffix(left, SV(".log")) || left.n < nr_tail + 6)
		return;
	struct sv id = sv_from(left.p + left.n - nr_tail, CONTAINER_ID_LEN);
	left.n -= nr_tail + 1; /* and the dash */
	struct sv pod = sv_split(&left, '_');
	struct sv space = sv_split(&left, '_');
	vec_foreach(c, &s->l->list) {
		if (!sv_eq_str(id, c->id))
			continue;
		set(&c->pod, pod);
		set(&c->pod_namespace, space);
		set(&c->name, left);
	}
}

/* ---- conmon ------------------------------------------------------------------------------- */

struct conmon {
	struct sv id;
	struct sv name;
	struct sv folder;
};

/* The arguments, each of which ends with NUL. Those after --exit-command-arg are of another program. */
static bool parse_conmon(struct conmon *ret_c, struct sv left)
{
	struct conmon c = {0};
	(void)sv_split(&left, 0);
	while (left.n) {
		struct sv arg = sv_split(&left, 0);
		if (sv_eq(arg, SV("-c")) || sv_eq(arg, SV("--cid")))
			c.id = sv_split(&left, 0);
		else if (sv_eq(arg, SV("-n")) || sv_eq(arg, SV("--name")))
			c.name = sv_split(&left, 0);
		else if (sv_eq(arg, SV("-b")) || sv_eq(arg, SV("--bundle")))
			c.folder = sv_split(&left, 0);
		else if (sv_eq(arg, SV("--exit-command-arg")))
			(void)sv_split(&left, 0);
	}
	*ret_c = c;
	return c.id.n == CONTAINER_ID_LEN && c.name.n;
}

/* Any user may start a program called conmon: it is believed of root's and of its own containers. */
static bool may_name(const struct container *c, const char *root, int32_t pid)
{
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(free_p) char *path = xasprintf("%sproc/%d/status", root, pid);
	if (file_read(&text, path, COMMAND_BYTES_MAX, NULL))
		return false;
	struct sv uids = proc_status_field(&text, "Uid");
	struct sv uid = sv_split(&uids, '\t');
	CLEANUP(free_p) char *slice = xasprintf("/user-%.*s.slice/", SV_ARGS(uid));
	return sv_eq(uid, SV("0")) || (uid.n && strstr(c->cgroup, slice));
}

static bool is_conmon(const char *root, int32_t pid)
{
	CLEANUP(buf_release) struct buf comm = {0};
	CLEANUP(free_p) char *path = xasprintf("%sproc/%d/comm", root, pid);
	return !file_read(&comm, path, COMMAND_BYTES_MAX, NULL) &&
	       sv_eq(sv_trim(buf_sv(&comm)), SV("conmon"));
}

/* From "DRIVER-containers/ID/userdata" two folders upwards. */
static void read_bundle(struct containers *l, struct container *c, const char *root,
			struct sv folder)
{
	CLEANUP(buf_release) struct buf text = {0};
	if (folder.n < 2 || folder.p[0] != '/')
		return;
	folder = sv_from_idx(folder, 1);
	CLEANUP(free_p) char *config = xasprintf("%s%.*s/config.json", root, SV_ARGS(folder));
	if (read_state(&text, config))
		containerstate_oci(c, buf_sv(&text));
	for (int i = 0; i < 2; i++)
		folder.n = (size_t)MAX(sv_rindex(folder, '/'), (ssize_t)0);
	CLEANUP(free_p) char *storage = xasprintf("%s%.*s", root, SV_ARGS(folder));
	if (folder.n && !c->image)
		read_storage_file(l, storage);
}

/* Another process reads those of /proc: the target's memory lock may be held. */
static bool read_command(struct buf *to, const char *root, int32_t pid)
{
	CLEANUP(free_p) char *path = xasprintf("%sproc/%d/cmdline", root, pid);
	return strcmp(root, "/") != 0 ? !file_read(to, path, COMMAND_BYTES_MAX, NULL)
				      : !hostfile_read_text(to, path, COMMAND_BYTES_MAX, NULL);
}

static void read_conmon(struct containers *l, const char *root, int32_t pid)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct conmon m;
	if (!is_conmon(root, pid) || !read_command(&text, root, pid) ||
	    !parse_conmon(&m, buf_sv(&text)))
		return;
	vec_foreach(c, &l->list) {
		if (!sv_eq_str(m.id, c->id) || !may_name(c, root, pid))
			continue;
		set_name(c, m.name);
		set_engine(c, c->pod ? "cri-o" : "podman");
		read_bundle(l, c, root, m.folder);
	}
}

static bool lacks_name(const struct containers *l)
{
	vec_foreach(c, &l->list)
		if (!c->name)
			return true;
	return false;
}

void containerstate_read(struct containers *l, const char *root, const struct pid_list *pids)
{
	CLEANUP(free_p)
	char *tasks = xasprintf("%srun/containerd/io.containerd.runtime.v2.task", root);
	CLEANUP(free_p) char *storage = xasprintf("%svar/lib/containers/storage", root);
	CLEANUP(free_p) char *running = xasprintf("%srun/containers/storage", root);
	CLEANUP(free_p) char *logs = xasprintf("%svar/log/containers", root);
	vec_foreach(c, &l->list)
		read_docker(c, root);
	vec_foreach(pid, &pids->pids)
		read_conmon(l, root, *pid);
	if (lacks_name(l))
		each_entry(tasks, FOLDERS_MAX, read_containerd_namespace,
			   &(struct search){l, tasks});
	if (lacks_name(l))
		each_entry(running, FOLDERS_MAX, read_storage, &(struct search){l, running});
	if (lacks_name(l))
		each_entry(storage, FOLDERS_MAX, read_storage, &(struct search){l, storage});
	if (lacks_name(l))
		each_entry(logs, LOGS_MAX, read_log_name, &(struct search){l, logs});
	vec_foreach(c, &l->list)
		pid_list_sort(&c->pids);
}
