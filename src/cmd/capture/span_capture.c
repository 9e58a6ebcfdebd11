/* The spans of a capture; see span_capture.h. */
#include "base/base.h"
#include "cmd/capture/span_capture.h"

#include "base/log.h"
#include "base/text/num.h"
#include "kernel_span.h"

#define SLOWEST 10

static const struct opt table[] = {
	OPT_LIST(0, "span", struct span_capture, names, "FUNCTION",
		 "measure from entry to return of FUNCTION, a name or a pattern with * and ?; "
		 "A..B: from entry of A to entry of B, which may be static probes (USDT), "
		 "PROVIDER:PROBE; may be repeated"),
	OPT_END,
};
const struct opt_group span_capture_group = {"Spans", table};

void span_capture_release(struct span_capture *s)
{
	span_probes_release(&s->probes);
}

/* Notes what each call costs, and warns about functions that are not measured. */
static void print_probes(const struct span_probes *p)
{
	size_t nr_cheap = p->nr_points - p->nr_stepped;
	CLEANUP(buf_release) struct buf text = {0};
	vec_foreach(e, &p->unknown) {
		log_warn("not measured: %s", err_msg(e));
		log_hint("%s", e->hint);
	}
	if (nr_cheap)
		buf_addf(&text, "%s of about 2 us per call", num_noun(nr_cheap, "probes").s);
	if (p->nr_stepped)
		buf_addf(
			&text,
			"%s%s of 10 to 20 us per call, because the kernel must single-step the first instruction",
			nr_cheap ? ", " : "", num_noun(p->nr_stepped, "probes").s);
	log_note("measuring %s: %s; the measured times include a part of this",
		 num_noun(p->list.n, "spans").s, buf_str(&text));
	if (p->nr_more)
		log_warn("not measured: %s that match; the maximum is %d",
			 num_noun(p->nr_more, "more functions").s, SPANS_MAX);
}

int span_capture_prepare(struct span_capture *s, struct capture_job *job, struct err *err)
{
	TRY(span_probes_find(&s->probes, s->names.p, s->names.n, job->options.target,
			     job->args.command, err));
	print_probes(&s->probes);
	s->spec = (struct spans_spec){.probes = s->probes.list.p,
				      .nr_probes = s->probes.list.n,
				      .pids = s->probes.pids.p,
				      .nr_pids = s->probes.pids.n,
				      .nr_slowest = SLOWEST};
	job->options.tables |= SPAN_TABLES;
	job->options.spans = &s->spec;
	return 0;
}

void span_capture_print_notes(const struct span_capture *s, const struct capture_job *job,
			      const struct capture_result *r)
{
	uint64_t nr_unfinished = r->profile->losses.nr[LOSS_SPANS_UNFINISHED];
	if (nr_unfinished)
		log_note(
			"%s did not return during the capture: still running, or left by an exception or longjmp",
			num_noun(nr_unfinished, "calls").s);
	else if (!views_has(job->view, r->profile) && s->probes.similar)
		log_hint("functions with similar names: %s", s->probes.similar);
}
