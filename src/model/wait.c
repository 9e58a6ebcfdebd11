/* Names of wait reasons; see wait.h. */
#include "base/base.h"
#include "model/wait.h"

static const struct {
	const char *key;
	const char *text;
	const char *frame;
	bool is_idle;
} reasons[WAIT_NR] = {
	[WAIT_NONE] = {"none", "no wait", NULL, false},
	[WAIT_ON_CPU] = {"on_cpu", "on CPU", NULL, false},
	[WAIT_RUN_QUEUE] = {"run_queue", "run queue", "[run queue]", false},
	[WAIT_SYNC] = {"sync", "futex (lock or park)", "[futex]", false},
	[WAIT_LOCK] = {"lock", "lock", "[lock]", false},
	[WAIT_PARK] = {"park", "park, condvar, channel", "[park]", true},
	[WAIT_FSYNC] = {"fsync", "fsync", "[fsync]", false},
	[WAIT_FILE_READ] = {"file_read", "file read", "[file read]", false},
	[WAIT_FILE_WRITE] = {"file_write", "file write", "[file write]", false},
	[WAIT_FAULT] = {"fault", "major fault", "[major fault]", false},
	[WAIT_MMAP_LOCK] = {"mmap_lock", "mmap lock", "[mmap lock]", false},
	[WAIT_RECLAIM] = {"reclaim", "memory reclaim", "[memory reclaim]", false},
	[WAIT_POLL] = {"poll", "poll, epoll", "[poll]", true},
	[WAIT_SLEEP] = {"sleep", "sleep", "[sleep]", true},
	[WAIT_NET] = {"net", "network", "[network]", false},
	[WAIT_PIPE] = {"pipe", "pipe, terminal", "[pipe]", false},
	[WAIT_CHILD] = {"child", "child process", "[child process]", true},
	[WAIT_FILE_OTHER] = {"file_other", "file system", "[file system]", false},
	[WAIT_KERNEL] = {"kernel", "inside the kernel", "[inside the kernel]", false},
	[WAIT_STOPPED] = {"stopped", "stopped", "[stopped]", true},
	[WAIT_OTHER] = {"other", "other system call", "[other call]", false},
	[WAIT_UNKNOWN] = {"unknown", "unknown", "[unknown wait]", false},
	[WAIT_STOLEN] = {"stolen", "interrupts and stolen time", "[stolen]", false},
	[WAIT_BACKPRESSURE] = {"backpressure", "send into a full channel", "[back-pressure]",
			       false},
	[WAIT_JOIN] = {"join", "join, barrier, future", "[join]", false},
	[WAIT_PERMIT] = {"permit", "semaphore, pool", "[permit]", false},
	[WAIT_YIELD] = {"yield", "yielded the CPU", "[yielded]", false},
	[WAIT_EXECUTOR] = {"executor", "blocked executor: sleep, poll or park in an async task",
			   "[blocked executor]", false},
};

const char *wait_key(enum wait_reason r)
{
	return reasons[r < WAIT_NR ? r : WAIT_UNKNOWN].key;
}

const char *wait_text(enum wait_reason r)
{
	return reasons[r < WAIT_NR ? r : WAIT_UNKNOWN].text;
}

const char *wait_frame(enum wait_reason r)
{
	return reasons[r < WAIT_NR ? r : WAIT_UNKNOWN].frame;
}

bool wait_is_idle(enum wait_reason r)
{
	return r < WAIT_NR && reasons[r].is_idle;
}

bool wait_is_of_futex(enum wait_reason r)
{
	return r == WAIT_SYNC || r == WAIT_LOCK || r == WAIT_PARK || r == WAIT_BACKPRESSURE ||
	       r == WAIT_JOIN || r == WAIT_PERMIT;
}

enum wait_reason wait_from_key(struct sv key)
{
	for (enum wait_reason r = WAIT_ON_CPU; r < WAIT_NR; r++)
		if (sv_eq_str(key, reasons[r].key))
			return r;
	return WAIT_NONE;
}

enum wait_reason wait_from_frame(struct sv name)
{
	bool has_brackets = name.n > 2 && name.p[0] == '[' && name.p[name.n - 1] == ']';
	struct sv bare = has_brackets ? sv_from(name.p + 1, name.n - 2) : name;
	for (enum wait_reason r = 0; r < WAIT_NR; r++) {
		struct sv frame = sv_from_str(wait_frame(r) ? wait_frame(r) : "");
		if (frame.n > 2 && sv_eq(sv_from(frame.p + 1, frame.n - 2), bare))
			return r;
	}
	return WAIT_NONE;
}
