/* Results of benchmarks in hyperfine's formats; see benchexport.h. */
#include "base/base.h"
#include "render/benchexport.h"

#include <math.h>

#include "base/text/json.h"
#include "base/text/num.h"
#include "render/csvout.h"
#include "render/markdown.h"

#define DIGITS 9 /* of seconds: nanoseconds */

static void put_seconds(struct json *j, const char *key, double s)
{
	json_put_double(j, key, s, DIGITS);
}

static void put_array(struct json *j, const char *key, const double *v, size_t n)
{
	json_put_arr(j, key);
	for (size_t i = 0; i < n; i++)
		json_double(j, v[i], DIGITS);
	json_end(j);
}

static void put_times(struct json *j, const struct bench_export_times *t)
{
	put_seconds(j, "mean", t->mean_s);
	put_seconds(j, "stddev", t->stddev_s);
	put_seconds(j, "median", t->median_s);
	put_seconds(j, "min", t->min_s);
	put_seconds(j, "max", t->max_s);
	put_array(j, "times", t->values_s, t->nr);
}

static void put_interval(struct json *j, const struct bench_export_times *t)
{
	put_seconds(j, "median_low", t->median_low_s);
	put_seconds(j, "median_high", t->median_high_s);
}

static void put_metric(struct json *j, const struct bench_export *e, const char *key,
		       enum bench_metric m)
{
	json_put_arr(j, key);
	for (size_t i = 0; i < e->times.nr; i++)
		if (e->runs[i].v[m] == UINT64_MAX)
			json_null(j);
		else
			json_u64(j, e->runs[i].v[m]);
	json_end(j);
}

/* What was counted in a run, or in a phase of it; NULL: nothing. */
static const struct counter_value *counted(const struct bench_export *e,
					   const struct bench_export_phase *phase, size_t run)
{
	if (!phase)
		return e->runs[run].counters;
	return run < phase->nr_counts && phase->counts[run].nr ? phase->counts[run].v : NULL;
}

/* @phase: NULL: of whole runs. */
static void put_counters(struct json *j, const struct bench_export *e,
			 const struct bench_export_phase *phase)
{
	static const char *const states[] = {
		[COUNTER_COUNTED] = "counted",
		[COUNTER_NOT_COUNTED] = "not counted",
		[COUNTER_NOT_SUPPORTED] = "not supported",
		[COUNTER_NOT_PERMITTED] = "not permitted",
	};
	json_put_obj(j, "counters");
	for (size_t i = 0; i < e->nr_counters; i++) {
		const struct counter_row *c = &e->counters[i];
		json_put_obj(j, c->name);
		json_put_str(j, "state", states[c->state]);
		json_put_str(j, "unit", c->is_time ? "ns" : "");
		json_put_arr(j, "values");
		for (size_t k = 0; k < e->times.nr && !c->state; k++) {
			const struct counter_value *v = counted(e, phase, k);
			bool is_never = !v || (v[i].enabled_ns && !v[i].running_ns);
			json_double(j, is_never ? NAN : v[i].value, 0);
		}
		json_end(j);
		json_put_arr(j, "running_pct");
		for (size_t k = 0; k < e->times.nr && !c->state; k++) {
			const struct counter_value *v = counted(e, phase, k);
			json_double(j,
				    v && v[i].enabled_ns ? 100 * (double)v[i].running_ns /
								   (double)v[i].enabled_ns
							 : NAN,
				    2);
		}
		json_end(j);
		json_end(j);
	}
	json_end(j);
}

static void put_each(struct json *j, const struct bench_export *e)
{
	if (!e->each)
		return;
	json_put_str(j, "each_unit", e->each_is_time ? "s" : "");
	json_put_arr(j, "each");
	for (size_t i = 0; i < e->nr_each; i++)
		json_double(j, e->each_is_time ? e->each[i] / 1e9 : e->each[i], DIGITS);
	json_end(j);
}

static void put_machine(struct json *j, const struct bench_machine *m)
{
	json_put_obj(j, "machine");
	json_put_str(j, "date", m->when);
	json_put_str(j, "host", m->host);
	json_put_str(j, "kernel", m->kernel);
	json_put_str(j, "cpu", m->cpu);
	json_put_u64(j, "cpus", m->nr_cpus);
	json_put_str(j, "governor", m->governor);
	json_put_str(j, "build_id", m->build_id);
	json_end(j);
}

static void put_change(struct json *j, const char *key, const struct bench_export_change *c)
{
	if (!c)
		return;
	json_put_obj(j, key);
	json_put_str(j, "verdict", c->verdict);
	json_put_double(j, "ratio", c->ratio, 6);
	json_put_double(j, "low", c->low, 6);
	json_put_double(j, "high", c->high, 6);
	json_put_double(j, "floor", c->floor, 6);
	json_put_double(j, "spread", c->spread, 6);
	json_put_u64(j, "runs_each", c->nr_runs);
	json_end(j);
}

static void put_phases(struct json *j, const struct bench_export *e)
{
	if (!e->nr_phases)
		return;
	json_put_arr(j, "phases");
	for (size_t i = 0; i < e->nr_phases; i++) {
		const struct bench_export_phase *p = &e->phases[i];
		json_obj(j);
		json_put_str(j, "name", p->name);
		json_put_double(j, "share", p->share, 6);
		put_times(j, &p->times);
		put_interval(j, &p->times);
		put_change(j, "comparison", p->change);
		if (p->nr_counts)
			put_counters(j, e, p);
		json_end(j);
	}
	json_end(j);
}

static void put_own(struct json *j, const struct bench_export *e)
{
	static const struct {
		const char *key;
		enum bench_metric metric;
	} metrics[] = {
		{"wall_ns", BENCH_WALL},
		{"user_ns", BENCH_USER},
		{"system_ns", BENCH_SYSTEM},
		{"run_queue_ns", BENCH_RUN_QUEUE},
		{"stolen_ns", BENCH_STOLEN},
		{"minor_faults", BENCH_MINOR_FAULTS},
		{"major_faults", BENCH_MAJOR_FAULTS},
		{"voluntary_switches", BENCH_VOLUNTARY_SWITCHES},
		{"involuntary_switches", BENCH_INVOLUNTARY_SWITCHES},
		{"migrations", BENCH_MIGRATIONS},
		{"blocks_in", BENCH_BLOCKS_IN},
		{"blocks_out", BENCH_BLOCKS_OUT},
	};
	json_put_obj(j, "assay");
	put_seconds(j, "mad", e->mad_s);
	put_interval(j, &e->times);
	put_seconds(j, "p90", e->p90_s);
	put_seconds(j, "p95", e->p95_s);
	put_seconds(j, "p99", e->p99_s);
	put_seconds(j, "cold", e->cold_s);
	put_each(j, e);
	put_phases(j, e);
	put_change(j, "comparison", e->change);
	put_change(j, "baseline", e->against);
	put_machine(j, e->machine);
	put_counters(j, e, NULL);
	json_put_obj(j, "runs");
	for (size_t i = 0; i < ARRAY_LEN(metrics); i++)
		put_metric(j, e, metrics[i].key, metrics[i].metric);
	json_end(j);
	json_end(j);
}

static void put_result(struct json *j, const struct bench_export *e)
{
	json_obj(j);
	json_put_str(j, "command", e->command);
	put_times(j, &e->times);
	put_seconds(j, "user", e->user_s);
	put_seconds(j, "system", e->system_s);
	put_metric(j, e, "memory_usage_byte", BENCH_PEAK_RSS);
	json_put_arr(j, "exit_codes");
	for (size_t i = 0; i < e->times.nr; i++)
		json_i64(j, e->runs[i].exit_code);
	json_end(j);
	if (e->nr_parameters) {
		json_put_obj(j, "parameters");
		for (size_t i = 0; i < e->nr_parameters; i++)
			json_put_str(j, e->parameters[i].name, e->parameters[i].value);
		json_end(j);
	}
	put_own(j, e);
	json_end(j);
}

void bench_export_json(struct buf *to, const struct bench_export *e, size_t nr)
{
	struct json j = json_to(to);
	json_obj(&j);
	json_put_arr(&j, "results");
	for (size_t i = 0; i < nr; i++)
		put_result(&j, &e[i]);
	json_end(&j);
	json_end(&j);
	buf_add_ch(to, '\n');
}

static void add_cell(struct buf *to, double s)
{
	buf_add_ch(to, ',');
	if (isfinite(s))
		num_add_double(to, s, DIGITS);
}

void bench_export_csv(struct buf *to, const struct bench_export *e, size_t nr)
{
	buf_add_str(to, "command,mean,stddev,median,user,system,min,max");
	for (size_t k = 0; nr && k < e[0].nr_parameters; k++) {
		buf_add_str(to, ",parameter_");
		csvout_add_text(to, sv_from_str(e[0].parameters[k].name));
	}
	buf_add_ch(to, '\n');
	for (size_t i = 0; i < nr; i++) {
		const struct bench_export_times *t = &e[i].times;
		const double cells[] = {t->mean_s,     t->stddev_s, t->median_s, e[i].user_s,
					e[i].system_s, t->min_s,    t->max_s};
		csvout_add_text(to, sv_from_str(e[i].command));
		for (size_t k = 0; k < ARRAY_LEN(cells); k++)
			add_cell(to, cells[k]);
		for (size_t k = 0; k < e[i].nr_parameters; k++) {
			buf_add_ch(to, ',');
			csvout_add_text(to, sv_from_str(e[i].parameters[k].value));
		}
		buf_add_ch(to, '\n');
	}
}

/* The unit in which the shortest time has a number of at least 1. */
static double unit_of(const struct bench_export *e, size_t nr, const char **ret_name)
{
	double least = INFINITY;
	for (size_t i = 0; i < nr; i++) {
		least = MIN(least, e[i].times.mean_s);
		for (size_t k = 0; k < e[i].nr_phases; k++)
			if (e[i].phases[k].times.mean_s > 0)
				least = MIN(least, e[i].phases[k].times.mean_s);
	}
	*ret_name = least < 1e-3 ? "us" : least < 1 ? "ms" : "s";
	return least < 1e-3 ? 1e6 : least < 1 ? 1e3 : 1;
}

/* @without: what stands where there is no comparison. */
static void add_times(struct buf *to, const struct bench_export_times *t, double factor,
		      const struct bench_export_change *c, const char *without)
{
	buf_addf(to, " | %s", num_double(t->mean_s * factor, 1).s);
	if (isfinite(t->stddev_s))
		buf_addf(to, " \xc2\xb1 %s", num_double(t->stddev_s * factor, 1).s);
	buf_addf(to, " | %s | %s | %s | ", num_double(t->median_s * factor, 1).s,
		 num_double(t->min_s * factor, 1).s, num_double(t->max_s * factor, 1).s);
	if (!c)
		buf_add_str(to, without);
	else
		buf_addf(to, "%s, %s", num_double(c->ratio, 3).s, c->verdict);
	if (c && isfinite(c->low))
		buf_addf(to, " [%s, %s]", num_double(c->low, 3).s, num_double(c->high, 3).s);
	buf_add_str(to, " |\n");
}

void bench_export_markdown(struct buf *to, const struct bench_export *e, size_t nr)
{
	const char *unit;
	double factor = unit_of(e, nr, &unit);
	buf_addf(to,
		 "| Command | Mean [%s] | Median [%s] | Min [%s] | Max [%s] | Against the %s |\n"
		 "|:---|---:|---:|---:|---:|---:|\n",
		 unit, unit, unit, unit, nr && e[0].against ? "baseline" : "first");
	for (size_t i = 0; i < nr; i++) {
		const struct bench_export *x = &e[i];
		buf_add_str(to, "| ");
		markdown_add_code(to, sv_from_str(x->command));
		add_times(to, &x->times, factor, x->change ?: x->against,
			  i || e[0].against ? "" : "1");
		for (size_t k = 0; k < x->nr_phases; k++) {
			const struct bench_export_phase *p = &x->phases[k];
			if (!p->times.nr)
				continue;
			buf_add_str(to, "| ");
			markdown_add_code(to, sv_from_str(x->command));
			buf_add_str(to, ": ");
			markdown_add_code(to, sv_from_str(p->name));
			add_times(to, &p->times, factor, p->change, i ? "" : "1");
		}
	}
}
