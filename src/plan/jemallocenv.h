/*
 * The environment variables that jemalloc reads its options from: their name was fixed when that
 * jemalloc was built (_RJEM_MALLOC_CONF, JE_MALLOC_CONF, MALLOC_CONF), and stands in the binary.
 */
#ifndef ASSAY_PLAN_JEMALLOCENV_H
#define ASSAY_PLAN_JEMALLOCENV_H

#include "base/base.h"

#define JEMALLOCENV_MAX 8

/* What is known about the jemalloc that the command will have. */
struct jemallocenv {
	char *variables[JEMALLOCENV_MAX]; /* owned */
	size_t nr_variables;
	bool is_known; /* by the binary itself */
	bool has_prof;
	bool is_secure; /* runs with more rights: its environment is not listened to */
	char *where;    /* owned: of the jemalloc */
};

/*
 * Of a command, by its binary, its libraries and LD_PRELOAD; @prefix ("_rjem_"; NULL = none) adds
 * the variable of that. All usual ones where none is found, for a script.
 */
void jemallocenv_find(struct jemallocenv *f, const char *command, const char *prefix);
void jemallocenv_release(struct jemallocenv *f);

enum jemallocenv_word { JEMALLOCENV_UNKNOWN, JEMALLOCENV_OFF, JEMALLOCENV_ON };
/* Whether a process was started with prof:true; unknown where it wrote over its environment. */
enum jemallocenv_word jemallocenv_word_of(int32_t pid, const char *variable);

#endif
