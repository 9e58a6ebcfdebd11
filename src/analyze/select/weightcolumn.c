/* Weight columns; see weightcolumn.h. */
#include "base/base.h"
#include "analyze/select/weightcolumn.h"

#include <errno.h>

#include "analyze/select/select.h"
#include "analyze/views.h"
#include "base/buf.h"

/* Columns that are levels have a largest value, but no sum. */
static bool find_column(const struct profile *p, const struct table *t, const char *name,
			uint32_t *ret_column)
{
	for (uint32_t i = 0; i < t->nr_columns; i++)
		if (!t->columns[i].is_level && !strcmp(profile_text(p, t->columns[i].name), name)) {
			*ret_column = i;
			return true;
		}
	return false;
}

static void add_columns(struct buf *to, const struct profile *p, const struct table *t)
{
	bool is_first = true;
	for (uint32_t i = 0; i < t->nr_columns; i++) {
		if (t->columns[i].is_level)
			continue;
		if (is_first)
			buf_addf(to, "%s%s: ", to->n ? "; " : "", profile_text(p, t->event));
		buf_addf(to, "%s%s", is_first ? "" : ", ", profile_text(p, t->columns[i].name));
		is_first = false;
	}
}

static int fail_unknown(const struct profile *p, const char *event, uint32_t only,
			const char *column, struct err *err)
{
	CLEANUP(buf_release) struct buf known = {0};
	for (uint32_t i = 0; i < p->tables.n; i++)
		if ((!event || i == only) && p->tables.p[i].n)
			add_columns(&known, p, &p->tables.p[i]);
	if (event)
		err_set(err, -EINVAL, "event '%s' has no column '%s' to weigh by", event, column);
	else
		err_set(err, -EINVAL, "no event of this profile has a column '%s' to weigh by",
			column);
	return known.n ? err_hint(err, "there are: %s", buf_str(&known)) : -EINVAL;
}

int weightcolumn_set(struct profile *p, const char *event, const char *column, struct err *err)
{
	uint32_t only = 0;
	uint32_t at;
	size_t nr_set = 0;
	TRY(event ? select_table(p, event, &only, err) : 0);
	if (!event && views_default(p)->is_mixed) {
		err_set(err, -EINVAL, "CPU time and waits together are weighed by time");
		return err_hint(err, "choose one of them: --event off-cpu --weight %s", column);
	}
	for (uint32_t i = 0; i < p->tables.n; i++) {
		struct table *t = &p->tables.p[i];
		if ((event && i != only) || !find_column(p, t, column, &at))
			continue;
		t->weight_column = at;
		nr_set++;
	}
	return nr_set ? 0 : fail_unknown(p, event, only, column, err);
}
