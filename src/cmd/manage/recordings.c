/* Checks names that select recordings; see recordings.h. */
#include "base/base.h"
#include "cmd/manage/recordings.h"

#include <errno.h>

#include "base/text/suggest.h"
#include "cmd/cmd_table.h"

static bool is_kind(const struct cmd *c)
{
	bool is_capture = c->group == CMD_GROUP_ALL || c->group == CMD_GROUP_CPU ||
			  c->group == CMD_GROUP_WAIT || c->group == CMD_GROUP_MEMORY;
	return is_capture && !c->is_live;
}

int recordings_check_kind(const struct store_list *l, const char *kind, struct err *err)
{
	if (!kind || !strcmp(kind, STORE_DUMP_KIND))
		return 0;
	struct suggest s = suggest_for(sv_from_str(kind));
	CLEANUP(buf_release) struct buf all = {0};
	for (size_t i = 0; i < nr_cmds; i++) {
		if (!is_kind(&cmd_table[i]))
			continue;
		if (!strcmp(cmd_table[i].name, kind))
			return 0;
		suggest_offer(&s, sv_from_str(cmd_table[i].name));
		buf_addf(&all, "%s, ", cmd_table[i].name);
	}
	vec_foreach(e, &l->entries)
		if (!strcmp(e->info.kind, kind))
			return 0;
	err_set(err, -EINVAL, "unknown kind of recordings '%s'", kind);
	if (s.best.n)
		return err_hint(err, "did you mean '%.*s'?", SV_ARGS(s.best));
	return err_hint(err, "kinds: %s%s", buf_str(&all), STORE_DUMP_KIND);
}

int recordings_check_target(const struct store_list *l, const char *target, const char *topic,
			    struct err *err)
{
	if (!target)
		return 0;
	struct suggest s = suggest_for(sv_from_str(target));
	vec_foreach(e, &l->entries) {
		if (!strcmp(e->target, target))
			return 0;
		suggest_offer(&s, sv_from_str(e->target));
	}
	if (topic)
		suggest_offer(&s, sv_from_str(topic));
	err_set(err, -ENOENT, "no recording of target '%s'", target);
	if (topic && sv_eq_str(s.best, topic))
		return err_hint(err, "did you mean 'assay list %s'?", topic);
	if (s.best.n)
		return err_hint(err, "did you mean '%.*s'?", SV_ARGS(s.best));
	return err_hint(err, "list all recordings with: assay ls");
}
