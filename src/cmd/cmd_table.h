/* The rows of the command table, for dispatch and for `assay help`. */
#ifndef ASSAY_CMD_CMD_TABLE_H
#define ASSAY_CMD_CMD_TABLE_H

#include "base/base.h"
#include "cmd/cmd.h"

extern const struct cmd cmd_table[];
extern const size_t nr_cmds;
/* The options of every command. */
extern const struct opt_group common_group;
/* Titles of the groups of commands, by enum cmd_group. */
extern const char *const cmd_group_titles[];

/* "assay" alone: prints in ten lines what to type. Returns EXIT_USAGE. */
int cmd_start(void);
/* Returns the command of this name, or NULL. */
const struct cmd *cmd_find(const char *name);
/*
 * Prints the error that argv[1] is no command, with what may have been meant (otherwords.h, or the
 * nearest name). Returns EXIT_USAGE.
 */
int cmd_unknown(int argc, char **argv);

#endif
