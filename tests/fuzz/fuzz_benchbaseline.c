/*
 * Baselines of benchmarks: any input gives rows or an error; each row is found by its name, and compared
 * with itself it is neither slower nor faster.
 */
#include "base/base.h"

#include "cmd/bench/benchbaseline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void compare_with_itself(const struct bench_baseline *b,
				const struct bench_baseline_row *row)
{
	struct bench_against a;
	const struct bench_baseline_row *found = bench_baseline_find(b, row->command, b->rows.n);
	if (!row->session.nr)
		return;
	if (!found || strcmp(found->command, row->command) != 0)
		BUG("'%s' is not found", row->command);
	bench_against(&a, &row->session, &row->session, 0.01);
	if (a.verdict == BENCH_SLOWER || a.verdict == BENCH_FASTER)
		BUG("'%s' differs from itself", row->command);
	struct report *r = report_new();
	bench_against_report(r, row->command, &a, &row->session, &row->session);
	report_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct bench_baseline b = {0};
	struct err err = {0};
	int rc = bench_baseline_parse(&b, sv_from((const char *)data, n), "base.json", &err);
	if (rc && !*err_msg(&err))
		BUG("an error without a message");
	vec_foreach(row, &b.rows)
		if (!rc)
			compare_with_itself(&b, row);
	err_release(&err);
	bench_baseline_release(&b);
	return 0;
}
