/* The rows of cmd.c, for help. */
#ifndef ASSAY_CMD_CMD_TABLE_H
#define ASSAY_CMD_CMD_TABLE_H

#include "base/base.h"
#include "cmd/cmd.h"

extern const struct cmd cmd_table[];
extern const size_t nr_cmds;

/* NULL when there is none. */
const struct cmd *cmd_find(const char *name);
/* Tells the unknown command with the nearest name; EXIT_USAGE. */
int cmd_unknown(const char *name);

#endif
