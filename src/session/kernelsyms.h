/*
 * Caches the kernel's function symbols between runs: printing /proc/kallsyms takes the kernel 70
 * ms, as long as reading 200,000 samples.
 *
 * The cache is one file, <cache_dir>/kallsyms: a line that identifies this boot and the loaded
 * modules, then lines as in /proc/kallsyms of functions of the kernel and its modules, in the order of
 * their addresses, so that they can be searched without being parsed. Symbols that come and go
 * without a module (BPF programs, trampolines) are not cached: an address that is not found in the
 * cache has to be looked up in /proc/kallsyms. The file is used only if nobody
 * else may have written it (base/file/cachefile.h). Only its owner may read it, because other users may not be
 * permitted to read kernel addresses.
 */
#ifndef ASSAY_SESSION_KERNELSYMS_H
#define ASSAY_SESSION_KERNELSYMS_H

#include "base/base.h"
#include "base/buf.h"
#include "model/event.h"

/* What a recording knows of its kernel besides the release; KASLR moves it at each boot. */
struct kernel_identity {
	char symbol[16];  /* "_text" */
	uint64_t address; /* of that symbol; 0: not known */
	uint8_t build_id[EVENT_BUILD_ID_MAX];
	uint8_t nr_build_id; /* 0: not known */
};

#define KERNELSYMS_PATH "/proc/kallsyms" /* may be held (host/heldfiles.h) */

/* Appends the cached symbols of this boot; -ENOENT: none (@cache_dir may be NULL: no cache). */
int kernelsyms_load(struct buf *to, const char *cache_dir);
/* Appends the text of /proc/kallsyms and updates the cache, if there is one. 0 or -errno. */
int kernelsyms_read(struct buf *to, const char *cache_dir);
/* Whether a text of kallsyms has the symbol of the recording at another address. */
bool kernelsyms_is_elsewhere(struct sv text, const struct kernel_identity *of);
/* Whether ELF notes (/sys/kernel/notes) have another build-id than the recording. */
bool kernelsyms_is_other_build(struct sv notes, const struct kernel_identity *of);
/* The notes of this machine's kernel; empty if they cannot be read. */
void kernelsyms_notes(struct buf *to);

#endif
