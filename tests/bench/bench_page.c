/*
 * Writes large recordings for the HTML page to stdout, always the same:
 *
 *	bench_page samples   1 M CPU samples of 64 threads in 60 s, 750,000 nodes of stacks
 *	bench_page waits     6 M waits of 500 threads in 60 s, all kept as single intervals
 */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/file.h"
#include "base/map.h"
#include "format/assay/assayfile.h"
#include "model/profile.h"

#define START_NS     1000000000000ull
#define SECONDS      60
#define NS           1000000000ull
#define FUNCTIONS    12000
#define NODES        750000
#define SAMPLES      1000000
#define CPU_THREADS  64
#define WAIT_THREADS 500
#define WAIT_PLACES  8 /* stacks on which a thread waits */

static uint64_t state = 88172645463325252;

static uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state >> 8;
}

static loc_id *locations;

/* Functions in 40 modules, one location each. */
static void add_functions(struct profile *p)
{
	static const char *const words[] = {"core", "task",  "poll",   "alloc", "trie",   "node",
					    "lock", "index", "encode", "page",  "cursor", "seek"};
	module_id modules[40];
	char name[96];
	for (unsigned m = 0; m < ARRAY_LEN(modules); m++) {
		snprintf(name, sizeof(name), "/usr/lib/lib%s%u.so", words[m % 12], m);
		modules[m] = profile_module(p, &(struct module){.kind = MODULE_ELF,
								.path = profile_cstr(p, name)});
	}
	locations = calloc(FUNCTIONS, sizeof(*locations));
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		module_id m = modules[i % 40 * (i / 40 % 40) / 40];
		locations[i] = profile_location(p, m, 4096 + 64ull * i, 0);
		snprintf(name, sizeof(name), "%s%u::%s::%s_%s", words[i % 40 % 12], i % 40,
			 words[i / 7 % 12], words[i / 3 % 12], words[i / 11 % 12]);
		if (i % 5)
			snprintf(name, sizeof(name), "%s_%s_%u", words[i / 7 % 12],
				 words[i / 3 % 12], i);
		const struct frame f = {
			.func = profile_function(
				p, &(struct function){.name = profile_cstr(p, name), .module = m})};
		profile_set_frames(p, locations[i], &f, 1, 0);
	}
}

static task_id add_thread(struct profile *p, const char *name, unsigned i)
{
	char text[96];
	snprintf(text, sizeof(text), "%s-%u", name, i);
	return profile_task(p, 1000, (int32_t)(1000 + i), profile_cstr(p, text), START_NS);
}

/* A call path: each function calls few others often and some rarely. */
static stack_id add_stack(struct profile *p)
{
	stack_id at = profile_stack(p, 0, locations[0]);
	uint64_t depth = 10 + next_random() % 40;
	uint64_t f = 0;
	for (uint64_t d = 0; d < depth && p->stacks.n < NODES; d++) {
		uint64_t r = next_random() % 100;
		uint64_t child = r < 75 ? 0 : r < 90 ? 1 : r % 9;
		f = (f * 31 + child * 7919 + d + 1) % FUNCTIONS;
		at = profile_stack(p, at, locations[f]);
	}
	return at;
}

static void add_samples(struct profile *p)
{
	static const char *const names[] = {"worker", "tokio-rt", "io", "main"};
	task_id tasks[CPU_THREADS];
	stack_id *stacks = calloc(SAMPLES, sizeof(*stacks));
	struct table shape = {.event = profile_cstr(p, "cpu-clock"),
			      .nr_columns = 2,
			      .weight_column = 1,
			      .freq_hz = 999,
			      .columns = {{.name = profile_cstr(p, "samples")},
					  {.name = profile_cstr(p, "time"), .unit = UNIT_NS}}};
	uint32_t table = profile_table(p, &shape);
	for (unsigned i = 0; i < CPU_THREADS; i++)
		tasks[i] = add_thread(p, names[i % 4], i);
	for (unsigned i = 0; i < SAMPLES; i++) {
		bool is_new = p->stacks.n < NODES;
		stacks[i] = is_new ? add_stack(p) : stacks[next_random() % i];
		const int64_t values[] = {1, 1001001};
		profile_sample(p, table, START_NS + SECONDS * NS * i / SAMPLES, stacks[i],
			       tasks[next_random() % CPU_THREADS], -1, values);
	}
	p->losses.nr[LOSS_SEEN] = p->losses.nr[LOSS_WRITTEN] = SAMPLES;
	free(stacks);
}

/* ---- waits -------------------------------------------------------------------------------- */

struct sums {
	uint64_t nr;
	uint64_t ns;
	uint64_t longest_ns;
};

struct waiter {
	struct profile *p;
	uint32_t off;
	uint32_t on;
	uint32_t single;
	task_id task;
	stack_id stacks[WAIT_PLACES];
	struct tag tags[WAIT_PLACES];
	struct sums sums[WAIT_PLACES][40];
	uint64_t cpu_ns;
};

/* The rows of one second of a thread. */
static void flush(struct waiter *w, uint64_t second)
{
	uint64_t at_ns = START_NS + second * NS;
	for (unsigned i = 0; i < WAIT_PLACES; i++) {
		for (unsigned k = 0; k < 40; k++) {
			struct sums *s = &w->sums[i][k];
			if (!s->nr)
				continue;
			struct tag tag = w->tags[i];
			tag.log2_ns = (uint8_t)k;
			const int64_t v[] = {(int64_t)s->nr, (int64_t)s->ns,
					     (int64_t)s->longest_ns};
			profile_tagged_sample(w->p, w->off, at_ns, w->stacks[i], w->task, -1,
					      profile_tag(w->p, &tag), v);
			*s = (struct sums){0};
		}
	}
	const struct tag ran = {.reason = WAIT_ON_CPU, .log2_ns = LOG2_NONE, .syscall = -1};
	const int64_t v[] = {1, (int64_t)w->cpu_ns};
	profile_tagged_sample(w->p, w->on, at_ns, 0, w->task, -1, profile_tag(w->p, &ran), v);
	w->cpu_ns = 0;
}

static void run(struct waiter *w)
{
	uint64_t second = 0;
	for (uint64_t t = next_random() % NS; t < SECONDS * NS;) {
		uint64_t r = next_random();
		unsigned i = (unsigned)(r % 16 < 9 ? 0 : r % WAIT_PLACES);
		uint64_t scale = 20000ull << (r >> 8) % 9; /* 20 us to 5 ms */
		uint64_t ns = scale + next_random() % (3 * scale);
		uint64_t cpu_ns = 20000 + next_random() % 3200000;
		if (t / NS != second) {
			flush(w, second);
			second = t / NS;
		}
		struct tag tag = w->tags[i];
		tag.log2_ns = LOG2_NONE;
		const int64_t v[INTERVAL_COLUMNS] = {[INTERVAL_NR] = 1,
						     [INTERVAL_NS] = (int64_t)ns,
						     [INTERVAL_CPU_NS] = (int64_t)cpu_ns};
		profile_tagged_sample(w->p, w->single, START_NS + t, w->stacks[i], w->task, -1,
				      profile_tag(w->p, &tag), v);
		struct sums *s = &w->sums[i][63 - __builtin_clzll(ns)];
		s->nr++;
		s->ns += ns;
		s->longest_ns = MAX(s->longest_ns, ns);
		w->cpu_ns += cpu_ns;
		w->p->losses.nr[LOSS_SEEN]++;
		t += ns + cpu_ns;
	}
	flush(w, second);
}

static void add_waits(struct profile *p)
{
	static const uint8_t reasons[WAIT_PLACES] = {WAIT_NET,  WAIT_LOCK, WAIT_FSYNC,
						     WAIT_LOCK, WAIT_POLL, WAIT_FILE_READ,
						     WAIT_PARK, WAIT_PIPE};
	struct waiter w = {.p = p,
			   .off = tables_add(p, TABLE_OFF_CPU, 0),
			   .on = tables_add(p, TABLE_ON_CPU, 0),
			   .single = tables_add(p, TABLE_INTERVALS, 0)};
	char name[64];
	task_id last = 0;
	for (unsigned i = 0; i < WAIT_THREADS; i++) {
		static const char *const names[] = {"worker", "backend", "io", "reader", "pool"};
		snprintf(name, sizeof(name), "%s%c", names[i % 5], 'a' + (int)(i / 5 % 10));
		w.task = add_thread(p, name, i);
		for (unsigned k = 0; k < WAIT_PLACES; k++) {
			w.stacks[k] = add_stack(p);
			snprintf(name, sizeof(name),
				 reasons[k] == WAIT_LOCK ? "lock 0x7f%06x" : "/var/lib/service/%u",
				 k * 64 + i % 20);
			w.tags[k] = (struct tag){.reason = reasons[k],
						 .syscall = -1,
						 .object = profile_cstr(p, name),
						 .other = last};
		}
		run(&w);
		last = w.task;
	}
	p->losses.nr[LOSS_WRITTEN] = p->losses.nr[LOSS_SEEN];
}

int main(int argc, char **argv)
{
	bool has_waits = argc == 2 && !strcmp(argv[1], "waits");
	if (!has_waits && (argc != 2 || strcmp(argv[1], "samples") != 0)) {
		fprintf(stderr, "usage: %s samples | waits\n", argv[0]);
		return 2;
	}
	struct profile *p = profile_new();
	p->start_ns = START_NS;
	p->end_ns = START_NS + SECONDS * NS;
	p->wall_start_ns = 1700000000ll * (int64_t)NS;
	profile_fact(p, FACT_RECORDER, "assay");
	profile_fact(p, FACT_KIND, has_waits ? "offcpu" : "cpu");
	profile_fact(p, FACT_TARGET, "service");
	add_functions(p);
	if (has_waits)
		add_waits(p);
	else
		add_samples(p);
	fprintf(stderr, "%zu stack nodes\n", p->stacks.n);
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(buf_release) struct buf out = {0};
	if (assayfile_write(&out, p, has_waits ? "offcpu" : "cpu", &err) ||
	    file_write_all(STDOUT_FILENO, out.p, out.n, &err)) {
		fprintf(stderr, "%s\n", err_msg(&err));
		return 1;
	}
	profile_free(p);
	return 0;
}
