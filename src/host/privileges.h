/*
 * Who assay is, and which capabilities it has. Each process gives up its rights in this order, and
 * never gets one back:
 *
 *	host_become_invoker     under sudo: the user who ran it, with all capabilities
 *	host_use_folder         ... or the owner of the folder of results
 *	host_drop               the capabilities that later phases do not use
 *
 * SECURITY.md says which process holds which right when. The user is changed before there are
 * threads; capabilities belong to a thread, so each thread that is started before the last host_drop
 * calls host_drop(0) itself.
 */
#ifndef ASSAY_HOST_PRIVILEGES_H
#define ASSAY_HOST_PRIVILEGES_H

#include "base/base.h"
#include "base/err.h"
#include "model/rights.h"

#define HOST_CAP_BIT(cap) ((uint64_t)1 << (cap))

/*
 * For remote/: ptrace, writing to /proc/PID/mem, which belongs to the target's user, and the priority
 * boost of the stopped thread.
 */
#define HOST_CAPS_TRACE \
	(HOST_CAP_BIT(CAP_SYS_PTRACE) | HOST_CAP_BIT(CAP_DAC_OVERRIDE) | HOST_CAP_BIT(CAP_SYS_NICE))

/* Returns whether the effective capabilities include @cap or one that implies it (rights_permit). */
bool host_has_cap(unsigned cap);
uint64_t host_effective_caps(void); /* bit n = capability n */

/*
 * Under sudo: becomes the user who ran it (SUDO_UID, SUDO_GID, that user's groups and HOME) and
 * keeps the capabilities. Otherwise, or without the right to change users, does nothing: root
 * without sudo stays uid 0.
 */
int host_become_invoker(struct err *err);
/*
 * Becomes the owner of the folder @dirfd if the present user may not use it without capabilities
 * (@mode: W_OK | X_OK to create files, X_OK to open some): they will be gone by then.
 * *ret_is_other: it did; may be NULL.
 */
int host_use_folder(int dirfd, int mode, bool *ret_is_other, struct err *err);
/*
 * In a forked child: becomes the user that a launched command runs as (under sudo the one who ran
 * it). 0 or -errno.
 */
int host_become_command_user(void);

/* Calls @fn while the calling thread has no effective capabilities. Returns what it returned. */
int host_without_caps(int (*fn)(void *ctx), void *ctx);
/*
 * Drops all capabilities of the calling thread but @keep (HOST_CAP_BIT...) and sets no_new_privs, so
 * that no exec gets them back. The bounding set is emptied if that is permitted. A process that had capabilities is not dumpable from then on: the user's other
 * processes cannot attach to it.
 */
void host_drop(uint64_t keep);
/*
 * What reading the files of other users' processes needs: /proc/PID/map_files, maps, mem and root,
 * and what lies below the latter.
 */
uint64_t host_caps_of_files(void);
/* host_drop(0), for the start of a thread. */
void host_drop_all(void);

#endif
