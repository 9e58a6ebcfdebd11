/* Options of assay diagnose about its rules; see diagnoserules.h. */
#include "base/base.h"
#include "cmd/diagnoserules.h"

#include "analyze/diagnose/diagnosis.h"
#include "base/file/file.h"

static const struct opt opts[] = {
	OPT_FLAG(0, "all-rules", struct diagnose_rules, lists_all,
		 "also list every rule: fired, not fired with its values, or what it lacks"),
	OPT_STR(0, "rules", struct diagnose_rules, path, "FILE",
		"add the rules in FILE; one with the id of a built-in rule replaces it"),
	OPT_END,
};
const struct opt_group diagnose_rules_group = {"Rules", opts};

int diagnose_rules_read(struct diagnose_rules *o, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	rules_add_builtin(&o->all, &o->a);
	if (!o->path)
		return 0;
	if (file_read_named(&text, o->path, RULES_BYTES_MAX, err))
		return err_wrap(err, "--rules");
	struct sv copy = sv_from(arena_strndup(&o->a, text.p, text.n), text.n);
	return rules_add(&o->all, &o->a, copy, err) ? err_wrap(err, "--rules '%s'", o->path) : 0;
}

void diagnose_rules_release(struct diagnose_rules *o)
{
	rules_release(&o->all);
	arena_release(&o->a);
}

unsigned diagnose_rules_flags(const struct diagnose_rules *o)
{
	return o->lists_all ? DIAGNOSIS_ALL_RULES : 0;
}
