/* Baselines of benchmarks; see benchbaseline.h. */
#include "base/base.h"
#include "cmd/bench/benchbaseline.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "analyze/bench/benchstat.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/text/jsonread.h"
#include "host/limits.h"
#include "object/elf.h"

#define FILE_BYTES_MAX (256u << 20)

void bench_baseline_release(struct bench_baseline *b)
{
	vec_foreach(r, &b->rows) {
		vec_release(&r->times);
		vec_release(&r->each);
		vec_release(&r->wall_ns);
		vec_release(&r->user_ns);
		vec_release(&r->system_ns);
		vec_release(&r->queue_ns);
		vec_release(&r->stolen_ns);
		vec_release(&r->instructions);
	}
	vec_release(&b->rows);
	arena_release(&b->arena);
}

/* Numbers of an array; null is left out. */
#define read_numbers(j, to, factor)                                      \
	do {                                                             \
		double number_;                                          \
		if (jsonread_arr(j))                                     \
			while (jsonread_more(j))                         \
				if (jsonread_number(j, &number_))        \
					vec_push(to, number_ *(factor)); \
	} while (0)

static const char *read_text(struct jsonread *j, struct arena *a)
{
	CLEANUP(buf_release) struct buf text = {0};
	return jsonread_str(j, &text) ? arena_strndup(a, buf_str(&text), text.n) : "";
}

static void read_machine(struct jsonread *j, struct bench_machine *m, struct arena *a)
{
	CLEANUP(buf_release) struct buf key = {0};
	if (!jsonread_obj(j))
		return;
	while (jsonread_key(j, &key)) {
		const char **to = !strcmp(buf_str(&key), "host")       ? &m->host
				  : !strcmp(buf_str(&key), "kernel")   ? &m->kernel
				  : !strcmp(buf_str(&key), "cpu")      ? &m->cpu
				  : !strcmp(buf_str(&key), "governor") ? &m->governor
				  : !strcmp(buf_str(&key), "date")     ? &m->when
				  : !strcmp(buf_str(&key), "build_id") ? &m->build_id
								       : NULL;
		if (to)
			*to = read_text(j, a);
		else
			jsonread_skip(j);
	}
}

static void read_runs(struct jsonread *j, struct bench_baseline_row *r)
{
	CLEANUP(buf_release) struct buf key = {0};
	if (!jsonread_obj(j))
		return;
	while (jsonread_key(j, &key)) {
		if (!strcmp(buf_str(&key), "wall_ns"))
			read_numbers(j, &r->wall_ns, 1);
		else if (!strcmp(buf_str(&key), "user_ns"))
			read_numbers(j, &r->user_ns, 1);
		else if (!strcmp(buf_str(&key), "system_ns"))
			read_numbers(j, &r->system_ns, 1);
		else if (!strcmp(buf_str(&key), "run_queue_ns"))
			read_numbers(j, &r->queue_ns, 1);
		else if (!strcmp(buf_str(&key), "stolen_ns"))
			read_numbers(j, &r->stolen_ns, 1);
		else
			jsonread_skip(j);
	}
}

static void read_counters(struct jsonread *j, struct bench_baseline_row *r)
{
	CLEANUP(buf_release) struct buf key = {0};
	if (!jsonread_obj(j))
		return;
	while (jsonread_key(j, &key)) {
		CLEANUP(buf_release) struct buf inner = {0};
		bool is_wanted = !strcmp(buf_str(&key), "instructions");
		if (!jsonread_obj(j))
			continue;
		while (jsonread_key(j, &inner)) {
			if (is_wanted && !strcmp(buf_str(&inner), "values"))
				read_numbers(j, &r->instructions, 1);
			else
				jsonread_skip(j);
		}
	}
}

static void read_own(struct jsonread *j, struct bench_baseline_row *r, struct arena *a)
{
	CLEANUP(buf_release) struct buf key = {0};
	if (!jsonread_obj(j))
		return;
	while (jsonread_key(j, &key)) {
		if (!strcmp(buf_str(&key), "each"))
			read_numbers(j, &r->each, r->each_is_time ? 1e9 : 1);
		else if (!strcmp(buf_str(&key), "each_unit")) /* before "each" */
			r->each_is_time = !strcmp(read_text(j, a), "s");
		else if (!strcmp(buf_str(&key), "machine"))
			read_machine(j, &r->session.machine, a);
		else if (!strcmp(buf_str(&key), "runs"))
			read_runs(j, r);
		else if (!strcmp(buf_str(&key), "counters"))
			read_counters(j, r);
		else
			jsonread_skip(j);
	}
}

static void read_result(struct jsonread *j, struct bench_baseline *b)
{
	CLEANUP(buf_release) struct buf key = {0};
	if (!jsonread_obj(j))
		return;
	struct bench_baseline_row *r = vec_add(&b->rows);
	r->command = "";
	r->session.machine = BENCH_MACHINE_UNKNOWN;
	while (jsonread_key(j, &key)) {
		if (!strcmp(buf_str(&key), "command"))
			r->command = read_text(j, &b->arena);
		else if (!strcmp(buf_str(&key), "times"))
			read_numbers(j, &r->times, 1e9);
		else if (!strcmp(buf_str(&key), "assay"))
			read_own(j, r, &b->arena);
		else
			jsonread_skip(j);
	}
}

static double sum_of(const double *v, size_t n)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += v[i];
	return sum;
}

static void finish_row(struct bench_baseline_row *r)
{
	struct bench_sums sum = {
		.wall = sum_of(r->wall_ns.p, r->wall_ns.n),
		.cpu = sum_of(r->user_ns.p, r->user_ns.n) + sum_of(r->system_ns.p, r->system_ns.n),
		.stolen = sum_of(r->stolen_ns.p, r->stolen_ns.n),
		.queue = r->queue_ns.n < r->wall_ns.n ? NAN : sum_of(r->queue_ns.p, r->queue_ns.n),
	};
	r->session.busy = bench_busy(&sum);
	r->session.busy_is_bound = isnan(sum.queue);
	r->session.values = r->each.n ? r->each.p : r->times.p;
	r->session.nr = r->each.n ? r->each.n : r->times.n;
	bench_sort(r->instructions.p, r->instructions.n);
	r->session.instructions =
		r->instructions.n ? bench_quantile_sorted(r->instructions.p, r->instructions.n, 0.5)
				  : NAN;
}

int bench_baseline_parse(struct bench_baseline *ret, struct sv text, const char *path,
			 struct err *err)
{
	CLEANUP(buf_release) struct buf key = {0};
	struct jsonread j = jsonread_from(text);
	if (jsonread_obj(&j))
		while (jsonread_key(&j, &key)) {
			if (strcmp(buf_str(&key), "results") != 0)
				jsonread_skip(&j);
			else if (jsonread_arr(&j))
				while (jsonread_more(&j))
					read_result(&j, ret);
		}
	if (jsonread_is_bad(&j) || !ret->rows.n)
		return err_set(err, -EINVAL, "'%s' is no result of a benchmark%s", path,
			       jsonread_is_bad(&j) ? ": malformed JSON" : "");
	vec_foreach(r, &ret->rows)
		finish_row(r);
	return 0;
}

int bench_baseline_read(struct bench_baseline *ret, const char *path, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	TRY(file_read(&text, path, FILE_BYTES_MAX, err));
	return bench_baseline_parse(ret, buf_sv(&text), path, err);
}

const struct bench_baseline_row *bench_baseline_find(const struct bench_baseline *b,
						     const char *command, size_t nr_commands)
{
	vec_foreach(r, &b->rows)
		if (!strcmp(r->command, command) && r->session.nr)
			return r;
	return nr_commands == 1 && b->rows.n == 1 && b->rows.p[0].session.nr ? &b->rows.p[0] : NULL;
}

/* ---- this machine --------------------------------------------------------------------------------- */

static const char *build_id_of(struct arena *a, const char *program)
{
	CLEANUP(buf_release) struct buf path = {0};
	CLEANUP(elf_free_p) struct elf *e = NULL;
	CLEANUP(close_p) int fd = -1;
	uint8_t id[ELF_BUILD_ID_MAX];
	const char *folders = getenv("PATH");
	struct sv left = sv_from_str(folders ? folders : "");
	buf_add_str(&path, program);
	while (!strchr(program, '/') && left.n && access(buf_str(&path), X_OK)) {
		struct sv folder = sv_split(&left, ':');
		buf_clear(&path);
		buf_add_sv(&path, folder);
		buf_addf(&path, "/%s", program);
	}
	fd = open(buf_str(&path), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || elf_open_fd(&e, take_fd(&fd), NULL))
		return "";
	CLEANUP(buf_release) struct buf text = {0};
	size_t n = elf_build_id(e, id);
	for (size_t i = 0; i < n; i++)
		buf_addf(&text, "%02x", id[i]);
	return arena_strndup(a, buf_str(&text), text.n);
}

void bench_machine_describe(struct bench_machine *ret, struct arena *a, const char *program)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct utsname u;
	*ret = BENCH_MACHINE_UNKNOWN;
	if (!uname(&u)) {
		ret->host = arena_strndup(a, u.nodename, strlen(u.nodename));
		ret->kernel = arena_strndup(a, u.release, strlen(u.release));
	}
	host_describe_cpu(&text);
	ret->cpu = arena_strndup(a, buf_str(&text), text.n);
	ret->nr_cpus = host_nr_cpus();
	buf_clear(&text);
	if (!file_read(&text, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", 64, NULL))
		ret->governor = arena_strndup(a, text.p, sv_trim(buf_sv(&text)).n);
	buf_clear(&text);
	clock_add_iso_utc(&text, clock_real_ns());
	ret->when = arena_strndup(a, buf_str(&text), text.n);
	if (program)
		ret->build_id = build_id_of(a, program);
}
