/*
 * Finds the separate debug information of a binary, offline: build-id directories, .gnu_debuglink,
 * .gnu_debugaltlink (dwz), .gnu_debugdata (mini). Each is looked for in the target's root, then on
 * the host, then in the folders of the user's --debug-dir:
 *
 *	/usr/lib/debug/.build-id/xx/yyyy.debug         DIR/.build-id/xx/yyyy.debug
 *	/dir/of/binary/LINK, /dir/of/binary/.debug/LINK
 *	/usr/lib/debug/dir/of/binary/LINK              DIR/dir/of/binary/LINK, DIR/LINK
 *
 * A file is taken only if its build-id is the binary's; where either has none, if its CRC32 is the
 * debuglink's. In the target's root, paths are resolved by openat2 with RESOLVE_IN_ROOT and no
 * magic links; everywhere only regular files are opened (a device or fifo is never even touched),
 * and link names with a slash are refused: all of these are what a hostile binary would like to
 * choose.
 *
 * What is not found, or does not fit, is not an error: NULL and 0. Images are the caller's.
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

/*
 * Files are owned by the caller, NULL: none was found. @search may be NULL: the host only.
 *
 * The debug file (with .debug_info or .symtab). @binary_path: as the target sees it. *ret_path
 * (ret_path may be NULL): where it was found, owned by the caller, for alt and .dwp look-ups.
 */
struct elf *debugfile_find(struct elf *binary, const char *binary_path,
			   const struct debug_search *search, char **ret_path);
/* The dwz supplementary file of @debug, whose path is @debug_path. */
struct elf *debugfile_find_alt(struct elf *debug, const char *debug_path,
			       const struct debug_search *search);
/*
 * A file that debug information names (.dwo, .dwp): @path, relative ones to @dir (may be NULL).
 * Nothing is checked but that it is an ELF image; the caller compares the DWO id.
 */
struct elf *debugfile_open(const char *dir, const char *path, const struct debug_search *search);
/* The image in .gnu_debugdata (xz). */
int debugfile_mini(struct elf **ret_mini, struct elf *binary, struct err *err);

#endif
