/*
 * pprof profiles: any input gives a profile or an error; samples in are samples out plus losses; what
 * is written of it is read with the same stacks and counts.
 */
#include "base/base.h"

#include "format/format.h"
#include "model/tables.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct profile *read_pprof(struct sv bytes)
{
	struct profile *p = profile_new();
	struct format_input in = {.head = bytes};
	struct err err = {0};
	int rc = pprof_read(p, &in, &(struct format_options){0}, &err);
	if (rc && !*err_msg(&err))
		BUG("an error without a message");
	err_release(&err);
	profile_seal(p);
	if (!rc)
		return p;
	profile_free(p);
	return NULL;
}

/* Whether sums may wrap. */
static bool is_huge(const struct profile *p)
{
	vec_foreach(t, &p->tables)
		for (size_t i = 0; i < t->n * t->nr_columns; i++)
			if (t->values[i] < 0 || t->values[i] > (int64_t)1 << 40)
				return true;
	return false;
}

static uint64_t total_of(const struct profile *p, size_t table)
{
	const struct table *t = &p->tables.p[table];
	uint64_t sum = 0;
	for (size_t i = 0; i < t->n; i++)
		sum += (uint64_t)t->values[i * t->nr_columns + t->weight_column];
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct profile *p = read_pprof(sv_from((const char *)data, n));
	if (!p)
		return 0;
	const struct losses *l = &p->losses;
	bool is_full = false; /* a counter stopped at its end */
	for (enum loss_kind k = 0; k < LOSS_NR; k++)
		is_full |= l->nr[k] > UINT64_MAX / 64;
	uint64_t lost = l->nr[LOSS_LOST] + l->nr[LOSS_UNPARSED] + l->nr[LOSS_FILTERED] +
			l->nr[LOSS_DISK] + l->nr[LOSS_DAMAGED] + l->nr[LOSS_STACK_LOST];
	if (!is_full && l->nr[LOSS_SEEN] > l->nr[LOSS_WRITTEN] + lost)
		BUG("samples are missing");
	if (p->tables.n == 1 && !is_huge(p)) {
		struct format_output to = {0};
		if (pprof_write(&to, p, &(struct format_options){0}, NULL))
			BUG("cannot be written");
		struct profile *q = read_pprof(buf_sv(&to.buf));
		if (p->tables.p[0].n && !q)
			BUG("written, not readable");
		if (q && q->tables.n == 1 && q->tables.p[0].id == p->tables.p[0].id &&
		    total_of(p, 0) != total_of(q, 0))
			BUG("a total changes");
		if (q)
			profile_free(q);
		buf_release(&to.buf);
	}
	profile_free(p);
	return 0;
}
