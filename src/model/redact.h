/*
 * What a profile says about people and places, and how it is removed before a profile is shared.
 *
 * profile_redact removes or replaces:
 *	facts     the host, the command, and all that are not known to be harmless
 *	paths     of binaries and source files: their base names stay; also inside names of functions
 *	          (JIT code) and of events
 *	objects   of waits and of I/O: files, sockets with their peers, pipes, arguments of events; each
 *	          becomes its kind and a number, "file 3". Addresses of locks stay
 *	marks     their texts: "mark 1"
 * Names of functions, modules, threads and of the target's program stay, as do numbers of processes,
 * times and build-ids. The fact "redacted" says that it was done.
 */
#ifndef ASSAY_MODEL_REDACT_H
#define ASSAY_MODEL_REDACT_H

#include "model/profile.h"

/* Replaces the sealed profile by a copy in which no removed text is left. */
void profile_redact(struct profile **p);
/* Cuts the command that was profiled after the program: its arguments may hold secrets. */
void profile_drop_arguments(struct profile *p);

#endif
