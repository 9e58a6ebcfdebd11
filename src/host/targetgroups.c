/* Containers, cgroups and users as targets; see targetgroups.h. */
#include "base/base.h"
#include "host/targetgroups.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "host/container/enginesocket.h"
#include "host/container/members.h"

#define ROOT        "/"
#define LISTED_MAX  8u
#define SIMILAR_MAX 5u

void known_containers_release(struct known_containers *k)
{
	containers_release(&k->list);
	err_release(&k->no_answer);
}

static const struct containers *known(struct known_containers *k)
{
	if (!k->is_found)
		(void)containers_find(&k->list, ROOT, NULL);
	k->is_found = true;
	return &k->list;
}

static void ask_engines(struct known_containers *k)
{
	if (!k->is_asked)
		(void)enginesocket_ask_all(&k->list, &k->no_answer);
	k->is_asked = true;
}

static bool has_nameless(const struct containers *l)
{
	vec_foreach(c, &l->list)
		if (!c->name && !c->is_pause)
			return true;
	return false;
}

/* Labels of podman's containers are in no state file. */
static bool has_unlabelled(const struct containers *l)
{
	vec_foreach(c, &l->list)
		if (!c->service && !strcmp(c->engine, "podman"))
			return true;
	return false;
}

/* ---- containers --------------------------------------------------------------------------- */

static void add_group(struct target *t, struct members *m)
{
	CLEANUP(pid_list_release) struct pid_list pids = {0};
	members_list(&pids, m, ROOT);
	vec_foreach(pid, &pids.pids)
		target_add_pid(t, *pid);
	vec_push(&t->groups, *m);
}

static void add_container(struct target *t, const struct container *c)
{
	struct members m = MEMBERS_INIT;
	members_of_container(&m, ROOT, c);
	add_group(t, &m);
	struct target_container *to = vec_add(&t->containers);
	CLEANUP(buf_release) struct buf name = {0};
	container_add_name(&name, c);
	to->name = buf_detach(&name);
	to->id = xstrdup(c->id);
	to->image = xstrdup(c->image ?: "");
	to->engine = c->engine;
}

static int list_several(const struct containers *l, const struct container_matches *m,
			const char *word, struct target_candidates *ret_c, struct err *err)
{
	vec_foreach(i, &m->idx) {
		const struct container *c = &l->list.p[*i];
		CLEANUP(buf_release) struct buf text = {0};
		buf_add_str(&text, "container ");
		container_add_name(&text, c);
		buf_add_str(&text, ": ");
		container_describe(&text, c);
		vec_push(&ret_c->list, (struct target_candidate){0, buf_detach(&text)});
	}
	(void)err_set(err, -ENOTUNIQ, "%zu containers are called '%s'", m->idx.n, word);
	return err_hint(err, "choose one by its name or id with --container, or take all of them "
			     "with --all-matching");
}

int targetgroups_add_container(struct target *t, struct known_containers *k, const char *word,
			       unsigned flags, bool takes_all, struct target_candidates *ret_c,
			       struct err *err)
{
	const struct containers *l = known(k);
	struct container_matches m = containers_match(l, word, flags);
	if (!m.idx.n && (has_nameless(l) || (flags & CONTAINER_SHORT_ID && has_unlabelled(l)))) {
		ask_engines(k);
		m = containers_match(l, word, flags);
	}
	int rc = m.idx.n ? 0 : -ENOENT;
	if (m.idx.n > 1 && !takes_all)
		rc = list_several(l, &m, word, ret_c, err);
	for (size_t i = 0; !rc && i < m.idx.n; i++)
		add_container(t, &l->list.p[m.idx.p[i]]);
	vec_release(&m.idx);
	return rc;
}

int targetgroups_no_container(struct known_containers *k, const char *word, struct err *err)
{
	const struct containers *l = known(k);
	CLEANUP(buf_release) struct buf names = {0};
	size_t nr = 0;
	vec_foreach(c, &l->list) {
		if (c->is_pause || nr >= LISTED_MAX)
			continue;
		buf_add_str(&names, nr++ ? ", " : "");
		container_add_name(&names, c);
	}
	(void)err_set(err, -ESRCH, "no running container is called '%s'", word);
	bool is_refused = has_nameless(l) && k->no_answer.code;
	return err_hint(err, "%s%s%s%s",
			nr ? "running containers: " : "no container is running here",
			buf_str(&names), is_refused ? "\nsome names cannot be read: " : "",
			is_refused ? err_msg(&k->no_answer) : "");
}

/* ---- cgroups and users -------------------------------------------------------------------- */

static int check_group(struct target *t, struct members *m, size_t nr_before, const char *what,
		       const char *name, struct err *err)
{
	add_group(t, m);
	if (t->pids.pids.n > nr_before)
		return 0;
	return err_set(err, -ESRCH, "no process is running in %s '%s'", what, name);
}

int targetgroups_add_cgroup(struct target *t, const char *path, struct err *err)
{
	struct members m = MEMBERS_INIT;
	TRY(members_of_cgroup(&m, ROOT, path, err));
	return check_group(t, &m, t->pids.pids.n, "cgroup", path, err);
}

int targetgroups_add_user(struct target *t, const char *user, struct err *err)
{
	struct members m = MEMBERS_INIT;
	TRY(members_of_user(&m, user, err));
	return check_group(t, &m, t->pids.pids.n, "the name of user", user, err);
}

/* ---- messages ----------------------------------------------------------------------------- */

void targetgroups_add_similar(struct buf *to, struct known_containers *k, const char *name)
{
	size_t nr = 0;
	vec_foreach(c, &known(k)->list) {
		if (c->is_pause || !c->name || nr >= SIMILAR_MAX ||
		    !(target_is_similar(c->name, name) ||
		      (c->service && target_is_similar(c->service, name))))
			continue;
		nr++;
		buf_add_str(to, to->n ? ", " : "");
		container_add_name(to, c);
		buf_add_str(to, " (container)");
	}
}

void targetgroups_add_place(struct buf *to, struct known_containers *k, int32_t pid)
{
	const struct container *c = containers_of(known(k), pid);
	if (!c)
		return;
	buf_add_str(to, "  (container ");
	container_add_name(to, c);
	buf_add_ch(to, ')');
}
