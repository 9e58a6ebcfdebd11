/*
 * heap_cycle PID N [PORT [METHOD]]: attaches to a process and detaches N times, and reports for how
 * long one of its threads was stopped. With PORT (not 0) a redis client sends PING all the time:
 * its latency is what a user of the process would notice. METHOD 0 alternates: sampled, full trace,
 * small sampling interval, and jemalloc hooks if the process has them. At the end it compares the
 * process's text and descriptors with those before the first attach, and its mappings with those
 * after the first cycles, since these leave memory that later ones reuse.
 */
#include "base/base.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/vec.h"
#include "remote/patch/inject.h"
#include "capture/heap/planner.h"
#include "host/proc.h"

struct pings {
	uint16_t port;
	volatile bool is_over;
	VEC(uint64_t) ns;
};

static void *ping(void *arg)
{
	struct pings *p = arg;
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(p->port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int on = 1;
	CLEANUP(close_p) int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)))
		return NULL;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	while (!p->is_over) {
		char got[16];
		uint64_t begin_ns = clock_mono_ns();
		if (write(fd, "PING\r\n", 6) != 6 || read(fd, got, sizeof(got)) <= 0)
			break;
		vec_push(&p->ns, clock_mono_ns() - begin_ns);
		(void)nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
	}
	return NULL;
}

static int by_size(const void *a, const void *b)
{
	const uint64_t *x = a;
	const uint64_t *y = b;
	return *x < *y ? -1 : *x > *y;
}

static void emit(const char *what, uint64_t *ns, size_t n)
{
	if (!n)
		return;
	qsort(ns, n, sizeof(*ns), by_size);
	printf("%s: n %zu median %.3f p99 %.3f max %.3f ms\n", what, n, (double)ns[n / 2] / 1e6,
	       (double)ns[n * 99 / 100] / 1e6, (double)ns[n - 1] / 1e6);
}

#define NR_TURNS 4u

struct picture {
	int32_t pid;
	int mem_fd;
	uint64_t text_hash; /* of all executable file mappings */
	size_t nr_maps;
	uint64_t nr_bytes;
	size_t nr_fds;
};

static int add_map(void *ctx, const struct proc_map *m, struct err *err)
{
	struct picture *p = ctx;
	(void)err;
	p->nr_maps++;
	p->nr_bytes += m->end - m->start;
	if (!m->is_exec || m->path[0] != '/' || !strncmp(m->path, "/memfd:", 7))
		return 0;
	/* Page by page: patching splits mappings, and they remain split. */
	for (uint64_t at = m->start; at < m->end; at += 4096) {
		char page[4096];
		if (pread(p->mem_fd, page, sizeof(page), (off_t)at) == sizeof(page))
			p->text_hash ^= hash_mix(at, hash_bytes(page, sizeof(page)));
	}
	return 0;
}

static int take_picture(int32_t pid, struct picture *ret_p, struct err *err)
{
	char path[64];
	(void)snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	CLEANUP(close_p) int fd = open(path, O_RDONLY | O_CLOEXEC);
	*ret_p = (struct picture){.pid = pid, .mem_fd = fd};
	(void)snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	DIR *dir = opendir(path);
	for (const struct dirent *d; dir && (d = readdir(dir));)
		ret_p->nr_fds += d->d_name[0] != '.';
	if (dir)
		(void)closedir(dir);
	return proc_maps(pid, add_map, ret_p, err);
}

static void emit_pictures(const struct picture *first, const struct picture *warm,
			  const struct picture *last)
{
	printf("text %s\n", first->text_hash == last->text_hash ? "same" : "CHANGED");
	printf("descriptors %zu then %zu\n", first->nr_fds, last->nr_fds);
	printf("mappings %zu, %zu then %zu; address space %" PRIu64 ", %" PRIu64 " then %" PRIu64
	       " MiB\n",
	       first->nr_maps, warm->nr_maps, last->nr_maps, first->nr_bytes >> 20,
	       warm->nr_bytes >> 20, last->nr_bytes >> 20);
}

static int cycle(int32_t pid, const struct heap_plan *plan, unsigned turn, uint64_t *ret_ns,
		 uint64_t *ret_nr, struct err *err)
{
	CLEANUP(heapinject_free_p) struct heapinject *h = NULL;
	struct heapinject_spec spec = {.pid = pid,
				       .plan = plan,
				       .is_full_trace = turn == 1,
				       .interval_bytes = turn == 2 ? 4096 : 1 << 19};
	uint32_t nr_slots;
	int rc = heapinject_attach(&h, &spec, err);
	if (!rc)
		rc = heapinject_start(h, err);
	if (rc)
		return rc;
	(void)nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
	rc = heapinject_detach(h, err);
	*ret_ns = heapinject_info(h).stopped_ns;
	struct heap_slot *slots = heapinject_slots(h, &nr_slots);
	for (uint32_t i = 0; i < nr_slots; i++)
		*ret_nr += slots[i].nr_allocs;
	return rc;
}

int main(int argc, char **argv)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(heap_plan_release) struct heap_plan plan = {0};
	CLEANUP(heap_plan_release) struct heap_plan hooks = {0};
	struct picture pictures[3] = {0};
	if (argc < 3)
		return 2;
	int32_t pid = (int32_t)strtol(argv[1], NULL, 10);
	size_t n = strtoul(argv[2], NULL, 10);
	enum heap_method method =
		argc > 4 ? (enum heap_method)strtol(argv[4], NULL, 10) : HEAP_METHOD_PATCH;
	bool takes_turns = method == HEAP_METHOD_NONE;
	struct heaptargets *t = heapplanner_new();
	int rc = heapplanner_plan(t, pid, takes_turns ? HEAP_METHOD_PATCH : method, &plan, &err);
	bool has_hooks = takes_turns &&
			 !heapplanner_plan(t, pid, HEAP_METHOD_HOOKS, &hooks, NULL) &&
			 hooks.method == HEAP_METHOD_HOOKS;
	struct pings p = {.port = argc > 3 ? (uint16_t)strtoul(argv[3], NULL, 10) : 0};
	pthread_t thread;
	uint64_t *stops = xcalloc(n + 1, sizeof(*stops));
	uint64_t nr = 0;
	size_t done = 0;
	rc = rc ? rc : take_picture(pid, &pictures[0], &err);
	if (p.port)
		pthread_create(&thread, NULL, ping, &p);
	for (; !rc && done < n; done++) {
		unsigned turn = takes_turns ? (unsigned)(done % NR_TURNS) : 0;
		bool is_hooks = turn == 3 && has_hooks;
		rc = cycle(pid, is_hooks ? &hooks : &plan, turn, &stops[done], &nr, &err);
		if (!rc && done + 1 == 2 * NR_TURNS)
			rc = take_picture(pid, &pictures[1], &err);
	}
	p.is_over = true;
	if (p.port)
		pthread_join(thread, NULL);
	rc = rc ? rc : take_picture(pid, &pictures[2], &err);
	emit("longest stop of a thread in an attach and detach", stops, done);
	emit("pings", p.ns.p, p.ns.n);
	emit_pictures(&pictures[0], &pictures[1], &pictures[2]);
	printf("hooks %s\ncycles %zu allocations %" PRIu64 "\n", has_hooks ? "too" : "no", done,
	       nr);
	if (rc)
		printf("failed: %s\n", err_msg(&err));
	free(stops);
	vec_release(&p.ns);
	heaptargets_free(t);
	return rc ? 1 : 0;
}
