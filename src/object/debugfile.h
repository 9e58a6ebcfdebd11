/*
 * Finds the separate debug information of a binary, without network access: build-id directories,
 * .gnu_debuglink, .gnu_debugaltlink (dwz), .gnu_debugdata (mini debug information). Each is
 * searched in the target's root, then in the host's /usr/lib/debug, then in the directories given by
 * --debug-dir:
 *
 *	/usr/lib/debug/.build-id/xx/yyyy.debug         DIR/.build-id/xx/yyyy.debug
 *	/dir/of/binary/LINK, /dir/of/binary/.debug/LINK
 *	/usr/lib/debug/dir/of/binary/LINK              DIR/dir/of/binary/LINK, DIR/LINK
 *
 * A file is used only if its build-id equals the binary's or, if either has no build-id, if its
 * CRC32 is the one in the debuglink. A hostile binary controls the link name and, in a container,
 * the files. So whoever opens them (debug_search.open) resolves paths in the target's root without
 * leaving it and opens regular files only, and link names with a slash are refused. A path that the
 * binary names (of a .dwo or dwz file, DW_AT_comp_dir) and the binary's own directory belong to the
 * target: they are searched in the target's root and below the given directories, and on the host
 * only if no root of the target is known (recordings).
 *
 * A file that is not found or does not match is not an error: the result is NULL, or 0.
 */
#ifndef ASSAY_OBJECT_DEBUGFILE_H
#define ASSAY_OBJECT_DEBUGFILE_H

#include "base/base.h"
#include "base/err.h"
#include "base/file/bytesource.h"
#include "object/elf.h"

struct debug_search {
	/*
	 * Opens a regular file by path in a root directory (-1: the host's), without magic links
	 * there; 0 or -errno (hostfile_open_path in host/reader/hostfile.h).
	 */
	int (*open)(struct byte_source *ret_s, int root_fd, const char *path);
	int root_fd;             /* the target's root directory, or -1 */
	const char *const *dirs; /* extra directories, may be NULL */
	size_t nr_dirs;
};

/*
 * These functions return an image owned by the caller, or NULL if none was found. @search may be
 * NULL: nowhere.
 *
 * Finds the debug file (with .debug_info or .symtab). @binary_path: as the target sees it.
 * *ret_path (ret_path may be NULL) is its path, owned by the caller; the searches for dwz and .dwp
 * files need it.
 */
struct elf *debugfile_find(struct elf *binary, const char *binary_path,
			   const struct debug_search *search, char **ret_path);
/* Finds the dwz supplementary file of @debug, whose path is @debug_path. */
struct elf *debugfile_find_alt(struct elf *debug, const char *debug_path,
			       const struct debug_search *search);
/*
 * Opens a file named in debug information (.dwo, .dwp); a relative @path is resolved against @dir
 * (may be NULL). Checks only that it is an ELF image; the caller compares the DWO id.
 */
struct elf *debugfile_open(const char *dir, const char *path, const struct debug_search *search);
/* Opens the xz-compressed image in .gnu_debugdata; *ret_mini is NULL if there is none. */
int debugfile_mini(struct elf **ret_mini, struct elf *binary, struct err *err);

#endif
