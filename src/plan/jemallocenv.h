/*
 * Finds the environment variables from which jemalloc reads its options. The name is fixed when
 * jemalloc is built (_RJEM_MALLOC_CONF, JE_MALLOC_CONF, MALLOC_CONF) and is a string in the binary.
 */
#ifndef ASSAY_PLAN_JEMALLOCENV_H
#define ASSAY_PLAN_JEMALLOCENV_H

#include "base/base.h"

#define JEMALLOCENV_MAX 8

/* The jemalloc that a command will use. */
struct jemallocenv {
	char *variables[JEMALLOCENV_MAX]; /* owned */
	size_t nr_variables;
	bool is_known;  /* a jemalloc was found in a binary */
	bool has_prof;  /* built with profiling */
	bool is_secure; /* setuid, setgid or file capabilities: jemalloc ignores its environment */
	char *where;    /* path of the binary with jemalloc; owned */
};

/*
 * Finds the variables for a command from its binary, libraries and LD_PRELOAD. @prefix ("_rjem_";
 * NULL = none) adds its variable. If there are none (the command is a script), adds the three names
 * above.
 */
void jemallocenv_find(struct jemallocenv *f, const char *command, const char *prefix);
void jemallocenv_release(struct jemallocenv *f);

enum jemallocenv_setting { JEMALLOCENV_UNKNOWN, JEMALLOCENV_OFF, JEMALLOCENV_ON };
/* Returns whether a process was started with prof:true; unknown if it overwrote its environment. */
enum jemallocenv_setting jemallocenv_prof_setting(int32_t pid, const char *variable);

#endif
