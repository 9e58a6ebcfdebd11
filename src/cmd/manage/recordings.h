/* Checks the names by which commands select recordings: of kinds and of targets. */
#ifndef ASSAY_CMD_MANAGE_RECORDINGS_H
#define ASSAY_CMD_MANAGE_RECORDINGS_H

#include "base/base.h"
#include "base/err.h"
#include "session/store.h"

/*
 * Checks a kind: the name of a command that records, or the kind of a listed recording. NULL: any.
 * -EINVAL with the nearest kind.
 */
int recordings_check_kind(const struct store_list *l, const char *kind, struct err *err);
/*
 * Checks that a recording of the target is listed. NULL: any. -ENOENT with the nearest name; @topic:
 * another word that may have been meant ("events" of assay list), or NULL.
 */
int recordings_check_target(const struct store_list *l, const char *target, const char *topic,
			    struct err *err);

#endif
