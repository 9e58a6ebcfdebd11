/* Sums of blame; see blamerows.h. */
#include "base/base.h"
#include "capture/wait/blamerows.h"

#include "base/hash.h"
#include "wait_reason.h"

_Static_assert(sizeof(struct blamerows_site) == 40, "no padding");

void blamerows_release(struct blamerows *b)
{
	vec_release(&b->sites);
	vec_release(&b->kernel_refs);
	vec_release(&b->rows);
	map_release(&b->site_of);
	map_release(&b->row_of);
}

/*
 * Long waits keep their duration, by which the analysis knows those of most of a capture; others do not,
 * so that there are few rows.
 */
#define LONG_LOG2 28 /* 0.27 s */

static uint8_t kept_log2(const struct wait_interval *v)
{
	uint8_t k = interval_log2_of(v->woken_ns - v->off_ns);
	return k >= LONG_LOG2 ? k : LOG2_NONE;
}

uint32_t blamerows_site(struct blamerows *b, const struct wait_interval *v)
{
	struct blamerows_site site = {
		.user_ref = v->user_ref,
		.object = v->object,
		.dev = v->dev,
		.tgid = v->tgid,
		.tid = v->tid,
		.fd = v->fd,
		.syscall = v->syscall,
		.reason = v->reason,
		.evidence = v->evidence & (EVIDENCE_LOCK_WORD | EVIDENCE_OPEN),
		.object_kind = v->object_kind,
		.log2_ns = kept_log2(v),
	};
	for (uint64_t hash = hash_bytes(&site, sizeof(site));; hash++) {
		bool is_new;
		uint32_t *at = map_put(&b->site_of, hash, &is_new);
		if (is_new) {
			*at = (uint32_t)b->sites.n;
			vec_push(&b->sites, site);
			vec_push(&b->kernel_refs, v->kernel_ref);
			return *at;
		}
		if (!memcmp(&b->sites.p[*at], &site, sizeof(site)))
			return *at;
	}
}

void blamerows_add(struct blamerows *b, const struct blamerows_at *at, const struct blame_part *p,
		   unsigned nr_waits)
{
	struct blamerows_row *r;
	uint64_t hash = hash_mix((uint64_t)at->site << 32 | p->cause,
				 (uint64_t)at->lock << 32 | at->second);
	for (;; hash++) {
		bool is_new;
		uint32_t *idx = map_put(&b->row_of, hash, &is_new);
		if (is_new) {
			*idx = (uint32_t)b->rows.n;
			vec_push(&b->rows, (struct blamerows_row){.at = *at,
								  .cause = p->cause,
								  .nr_steps = p->nr_steps});
		}
		r = &b->rows.p[*idx];
		if (r->at.site == at->site && r->cause == p->cause && r->at.lock == at->lock &&
		    r->at.second == at->second)
			break;
	}
	r->nr_steps = MIN(r->nr_steps, p->nr_steps);
	r->count += nr_waits;
	r->ns += (int64_t)p->ns;
	r->longest_ns = MAX(r->longest_ns, (int64_t)p->ns);
}

static struct blamechain_row make_row(const struct blamerows *b, const struct blamerows_row *r,
				      const struct blame_cause *cause)
{
	const struct blamerows_site *s = &b->sites.p[r->at.site];
	return (struct blamechain_row){
		.user_ref = s->user_ref,
		.kernel_ref = b->kernel_refs.p[r->at.site],
		.object = s->object,
		.dev = s->dev,
		.second = r->at.second,
		.tgid = s->tgid,
		.tid = s->tid,
		.fd = s->fd,
		.syscall = s->syscall,
		.reason = s->reason,
		.evidence = s->evidence,
		.object_kind = s->object_kind,
		.log2_ns = s->log2_ns,
		.doing = cause->doing,
		.nr_steps = r->nr_steps,
		.culprit_ref = cause->ref,
		.culprit_tgid = cause->tgid,
		.culprit_tid = cause->tid,
		.direct_ref = cause->direct_ref,
		.direct_tgid = cause->direct_tgid,
		.direct_tid = cause->direct_tid,
		.count = r->count,
		.ns = r->ns,
		.longest_ns = r->longest_ns,
	};
}

int blamerows_take(struct blamerows *b, const struct blamecauses *causes,
		   const struct blamelocks *locks, blamechain_row_fn *fn, void *ctx)
{
	int rc = 0;
	for (size_t i = 0; i < b->rows.n && !rc; i++) {
		const struct blamerows_row *r = &b->rows.p[i];
		struct blamechain_row row = make_row(b, r, &causes->all.p[r->cause]);
		row.is_convoy = blamelocks_is_convoy(locks, r->at.lock);
		rc = fn(ctx, &row);
	}
	vec_clear(&b->rows);
	vec_clear(&b->sites);
	vec_clear(&b->kernel_refs);
	map_clear(&b->row_of);
	map_clear(&b->site_of);
	return rc;
}
