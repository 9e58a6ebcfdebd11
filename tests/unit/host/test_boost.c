/* Real-time priority while a thread is stopped: host/boost.h. */
#include "base/base.h"
#include "tap.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host/boost.h"

TEST(boost_restores_policy_and_slack_also_when_nested)
{
	struct host_boost a;
	struct host_boost b;
	int slack = prctl(PR_GET_TIMERSLACK);
	CHECK(sched_getscheduler(0) == SCHED_OTHER);
	host_boost_begin(&a);
	bool is_raised = sched_getscheduler(0) == SCHED_FIFO;
	CHECK(is_raised == a.is_raised);
	CHECK(prctl(PR_GET_TIMERSLACK) <= 1); /* 0 under SCHED_FIFO */
	host_boost_begin(&b);
	CHECK(!b.is_raised && !b.has_slack);
	host_boost_end(&a);
	host_boost_end(&b);
	host_boost_end(&b);
	CHECK(sched_getscheduler(0) == SCHED_OTHER);
	CHECK(prctl(PR_GET_TIMERSLACK) == slack);
}

TEST(boost_leaves_other_policies_alone)
{
	struct host_boost b;
	/* A thread with another policy than SCHED_OTHER keeps it. */
	CHECK(!sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0}));
	host_boost_begin(&b);
	CHECK(!b.is_raised && sched_getscheduler(0) == SCHED_BATCH);
	host_boost_end(&b);
	CHECK(sched_getscheduler(0) == SCHED_BATCH);
}

/* Field 18 of /proc/PID/stat: -2 is SCHED_FIFO, 1; 20 and thereabouts is SCHED_OTHER. */
static int priority_of(pid_t pid)
{
	char path[64];
	char text[512] = "";
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	FILE *f = fopen(path, "r");
	const char *at = f && fgets(text, sizeof(text), f) ? strrchr(text, ')') : NULL;
	for (int i = 2; at && i < 18; i++)
		at = strchr(at + 1, ' ');
	if (f)
		(void)fclose(f);
	return at ? (int)strtol(at, NULL, 10) : 0;
}

static bool gets_priority(pid_t pid, bool is_boosted)
{
	for (int i = 0; i < 5000; i++) {
		if ((priority_of(pid) == -2) == is_boosted)
			return true;
		(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
	return false;
}

/* Retries while another test boosts a thread: one at a time per machine. */
static void boost_when_free(struct host_boost *b, pid_t pid)
{
	for (int i = 0; i < 500; i++) {
		host_boost_thread(b, pid);
		if (b->has_waiter)
			return;
		(void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
}

TEST(boost_of_another_process_ends_with_the_booster)
{
	struct host_boost b;
	host_boost_begin(&b);
	if (!b.is_raised)
		tap_skip("needs CAP_SYS_NICE");
	pid_t pid = fork();
	if (!pid) {
		(void)sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0});
		(void)pause();
		_exit(0);
	}
	CHECK(gets_priority(pid, false));
	boost_when_free(&b, pid);
	CHECK(gets_priority(pid, true));
	host_boost_end(&b);
	CHECK(gets_priority(pid, false));
	/* The kernel ends the boost when the booster is killed. */
	struct host_boost own; /* so that this test polls in time */
	host_boost_begin(&own);
	pid_t booster = fork();
	if (!booster) {
		(void)sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){0});
		host_boost_begin(&b);
		boost_when_free(&b, pid);
		(void)pause();
	}
	CHECK(gets_priority(pid, true));
	(void)kill(booster, SIGKILL);
	(void)waitpid(booster, NULL, 0);
	CHECK(gets_priority(pid, false));
	host_boost_end(&own);
	/* The boosted process may exit during the boost. */
	host_boost_begin(&b);
	boost_when_free(&b, pid);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	host_boost_end(&b);
	CHECK(sched_getscheduler(0) == SCHED_OTHER);
}

TEST(boost_of_threads_that_spin_ends_by_itself)
{
	struct host_boost b;
	pid_t pids[4]; /* more than there are CPUs, each with its own booster */
	pid_t boosters[ARRAY_LEN(pids)];
	host_boost_begin(&b);
	if (!b.is_raised)
		tap_skip("needs CAP_SYS_NICE");
	host_boost_end(&b);
	for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
		pids[i] = fork();
		while (!pids[i])
			;
		boosters[i] = fork();
		if (!boosters[i]) {
			host_boost_begin(&b);
			host_boost_thread(&b, pids[i]);
			(void)pause();
		}
	}
	(void)nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
	host_boost_begin(&b);
	for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
		CHECK(gets_priority(pids[i], false));
		(void)kill(boosters[i], SIGKILL);
		(void)kill(pids[i], SIGKILL);
		(void)waitpid(boosters[i], NULL, 0);
		(void)waitpid(pids[i], NULL, 0);
	}
	host_boost_end(&b);
}
