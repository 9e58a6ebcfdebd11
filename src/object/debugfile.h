/*
 * Finds the separate debug information of a binary: .gnu_debugdata (mini), .gnu_debuglink (with
 * CRC), build-id directories (<root>/usr/lib/debug/.build-id/xx/yyyy.debug), .gnu_debugaltlink
 * (dwz), .dwo files and .dwp packages. Looked for in the target's root first (descriptor
 * @root_fd, or -1), then on the host, then in the folders of the user's --debug-dir. A file is
 * taken only if its build-id (or CRC for a debuglink) matches.
 */
#ifndef ASSAY_OBJECT_DEBUGFILE_H
#define ASSAY_OBJECT_DEBUGFILE_H

#include "base/base.h"
#include "base/err.h"
#include "object/elf.h"

struct debug_search {
	int root_fd;             /* the target's root directory, or -1 */
	const char *const *dirs; /* extra folders, may be NULL */
	size_t nr_dirs;
};

/* The debug file (with .debug_info or .symtab), or NULL with 0 when there is none. */
int debugfile_find(struct elf **ret_debug, struct elf *binary, const char *binary_path,
                   const struct debug_search *search, struct err *err);
/* The dwz supplementary file of @debug, or NULL with 0. */
int debugfile_find_alt(struct elf **ret_alt, struct elf *debug, const char *debug_path,
                       const struct debug_search *search, struct err *err);
/* The image in .gnu_debugdata (xz), or NULL with 0. */
int debugfile_mini(struct elf **ret_mini, struct elf *binary, struct err *err);

#endif
