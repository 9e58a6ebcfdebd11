/* The predefined sets of events; see readysets.h. */
#include "base/base.h"
#include "capture/events/readysets.h"

/* Events that the kernel lacks are left out; that is common for the newer futex calls. */
#define FUTEX_CALLS                        \
	"syscalls:sys_enter_futex\n"       \
	"syscalls:sys_exit_futex\n"        \
	"syscalls:sys_enter_futex_wait\n"  \
	"syscalls:sys_exit_futex_wait\n"   \
	"syscalls:sys_enter_futex_wake\n"  \
	"syscalls:sys_exit_futex_wake\n"   \
	"syscalls:sys_enter_futex_waitv\n" \
	"syscalls:sys_exit_futex_waitv\n"

#define SYNC_CALLS                       \
	"syscalls:sys_enter_fsync\n"     \
	"syscalls:sys_exit_fsync\n"      \
	"syscalls:sys_enter_fdatasync\n" \
	"syscalls:sys_exit_fdatasync\n"

#define BLOCK_REQUESTS           \
	"block:block_rq_issue\n" \
	"block:block_rq_complete\n"

#define RECLAIM                                   \
	"vmscan:mm_vmscan_direct_reclaim_begin\n" \
	"vmscan:mm_vmscan_direct_reclaim_end\n"   \
	"vmscan:mm_vmscan_memcg_reclaim_begin\n"  \
	"vmscan:mm_vmscan_memcg_reclaim_end\n"    \
	"vmscan:mm_vmscan_kswapd_wake\n"

const struct ready_set ready_sets[] = {
	{"default",
	 "locks, disk syncs, block requests, context switches, faults from disk, reclaim",
	 FUTEX_CALLS SYNC_CALLS BLOCK_REQUESTS "sched:sched_switch\nmajor-faults\n" RECLAIM},
	{"context-switches", "context switches beside the calls that cause them",
	 "sched:sched_switch\ncpu-migrations\n" FUTEX_CALLS SYNC_CALLS},
	{"io-bandwidth", "calls and bytes of reads and writes, block requests, disk syncs",
	 "syscalls:sys_enter_read\nsyscalls:sys_exit_read\n"
	 "syscalls:sys_enter_write\nsyscalls:sys_exit_write\n"
	 "syscalls:sys_enter_pread64\nsyscalls:sys_exit_pread64\n"
	 "syscalls:sys_enter_pwrite64\nsyscalls:sys_exit_pwrite64\n"
	 "syscalls:sys_exit_readv\nsyscalls:sys_exit_writev\n"
	 "syscalls:sys_exit_preadv\nsyscalls:sys_exit_pwritev\n" BLOCK_REQUESTS SYNC_CALLS},
	{"page-faults", "page faults, reclaim, write-back",
	 "major-faults\nminor-faults\n" RECLAIM "vmscan:mm_vmscan_node_reclaim_begin\n"},
	{0},
};
