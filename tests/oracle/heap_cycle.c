/*
 * heap_cycle PID N [PORT]: attaches to a process and leaves it N times and tells how long one of
 * its threads stood. With PORT a client of redis pings all the while: what it had to wait is what
 * a user of the process would have noticed.
 */
#include "base/base.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/vec.h"
#include "capture/heapinject.h"
#include "cmd/heaptargets.h"
#include "host/limits.h"

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

static void tell(const char *what, uint64_t *ns, size_t n)
{
	if (!n)
		return;
	qsort(ns, n, sizeof(*ns), by_size);
	printf("%s: n %zu median %.3f p99 %.3f max %.3f ms\n", what, n, (double)ns[n / 2] / 1e6,
	       (double)ns[n * 99 / 100] / 1e6, (double)ns[n - 1] / 1e6);
}

static int cycle(int32_t pid, const struct heap_plan *plan, uint64_t *ret_ns, uint64_t *ret_nr,
		 struct err *err)
{
	CLEANUP(heapinject_free_p) struct heapinject *h = NULL;
	struct heapinject_spec spec = {.pid = pid, .plan = plan, .interval_bytes = 1 << 19};
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
	if (argc < 3)
		return 2;
	int32_t pid = (int32_t)strtol(argv[1], NULL, 10);
	size_t n = strtoul(argv[2], NULL, 10);
	enum heap_tier tier =
		argc > 4 ? (enum heap_tier)strtol(argv[4], NULL, 10) : HEAP_TIER_PATCH;
	struct heaptargets *t = heaptargets_new();
	struct heap_planner planner = heaptargets_planner(t);
	int rc = planner.plan(planner.ctx, pid, tier, &plan, &err);
	struct pings p = {.port = argc > 3 ? (uint16_t)strtoul(argv[3], NULL, 10) : 0};
	pthread_t thread;
	uint64_t *stops = xcalloc(n + 1, sizeof(*stops));
	uint64_t nr = 0;
	size_t done = 0;
	if (p.port)
		pthread_create(&thread, NULL, ping, &p);
	for (; !rc && done < n; done++)
		rc = cycle(pid, &plan, &stops[done], &nr, &err);
	p.is_over = true;
	if (p.port)
		pthread_join(thread, NULL);
	tell("longest stop of a thread in an attach and detach", stops, done);
	tell("pings", p.ns.p, p.ns.n);
	printf("cycles %zu allocations %" PRIu64 "\n", done, nr);
	if (rc)
		printf("failed: %s\n", err_msg(&err));
	free(stops);
	vec_release(&p.ns);
	heaptargets_free(t);
	return rc ? 1 : 0;
}
