/* Attaches BPF programs to system calls; see syscallprobe.h. */
#include "base/base.h"
#include "capture/bpf/syscallprobe.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "base/mem.h"
#include "host/tracefs.h"

/*
 * Opens a disabled perf event on this thread. The programs attached to it run on every hit of the
 * tracepoint, in all tasks, although the event itself counts nothing.
 */
static int open_event(uint32_t id)
{
	struct perf_event_attr attr = {.size = sizeof(attr),
				       .type = PERF_TYPE_TRACEPOINT,
				       .config = id,
				       .sample_period = 1,
				       .disabled = 1};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int refused(const char *name, int rc, struct err *err)
{
	CLEANUP(err_release) struct err why = {0};
	if (rc != -EACCES && rc != -EPERM)
		return err_set(err, rc, "cannot attach to system call '%s': %s", name,
			       strerror(-rc));
	tracefs_refused(&why);
	err_set(err, rc, "cannot attach to system call '%s': %s", name, err_msg(&why));
	return err_hint(err, "%s", why.hint);
}

int syscallprobe_attach(struct bpf_links *links, int tracefs_fd, const struct bpf_program *p,
			enum syscallprobe_at at, const char *name, uint64_t cookie, struct err *err)
{
	CLEANUP(free_p)
	char *full =
		xasprintf("syscalls:sys_%s_%s", at == SYSCALLPROBE_ENTER ? "enter" : "exit", name);
	uint32_t id;
	int rc = tracefs_id(&id, tracefs_fd, sv_from_str(full), NULL);
	if (rc)
		return refused(name, rc, err);
	CLEANUP(close_p) int fd = open_event(id);
	if (fd < 0)
		return refused(name, fd, err);
	LIBBPF_OPTS(bpf_perf_event_opts, opts, .bpf_cookie = cookie);
	struct bpf_link *link = bpf_program__attach_perf_event_opts(p, fd, &opts);
	if (!link)
		return refused(name, -errno, err);
	(void)take_fd(&fd); /* owned by the link */
	vec_push(&links->list, link);
	return 0;
}
