/*
 * Implements struct code_access (model/code.h): binaries of a profile by path and build-id, of live
 * processes also through /proc, and source files below folders that the user named.
 *
 *	struct codefiles c = {0};
 *	codefiles_init(&c);
 *	codefiles_add_source(&c, "/app=src", &err)   before rights are dropped
 *	... &c.access ...
 *
 * A recorded path leads to a file of a folder DIR if
 *	the folder was named as PREFIX=DIR and the path begins with PREFIX: the rest, below DIR
 *	it begins with DIR's own path: that file
 *	it has a folder with DIR's name: what follows that, below DIR
 *	it is relative: below DIR
 * So of two files with one name, "src/lib.rs" of two crates, the wrong one is not taken. DIR is the
 * root of what is opened: links do not lead out of it.
 */
#ifndef ASSAY_CMD_CODEFILES_H
#define ASSAY_CMD_CODEFILES_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/code.h"
#include "session/module_files.h"

struct source_folder {
	char *prefix; /* of recorded paths; NULL: not given */
	char *path;   /* absolute */
	int fd;
};

/* The lines of a file; text NULL: there is none. */
struct source_file {
	char *path; /* as recorded */
	struct buf text;
	VEC(size_t) lines; /* where each line begins */
	bool is_newer;     /* changed after the recording */
};

struct codefiles {
	struct code_access access;
	struct stored_files stored;
	const struct profile *p; /* during read */
	bool is_live; /* the capture has just ended: its processes are the recorded ones */
	VEC(struct source_folder) folders;
	VEC(struct source_file) files;
	struct map file_index; /* hash of the path: index + 1 */
	int64_t recorded_ns;   /* wall clock at the end of the recording; 0: not known */
};

/* Folders are asked for only if one is added. */
void codefiles_init(struct codefiles *c);
void codefiles_release(struct codefiles *c);
/* @folder: "DIR" or "PREFIX=DIR". -errno: it cannot be opened. */
int codefiles_add_source(struct codefiles *c, const char *folder, struct err *err);
/* Before the first line is asked for: to know which files changed since. */
void codefiles_of(struct codefiles *c, const struct profile *p);
/* Appends what is wrong with the files that were asked for, as a sentence; nothing: nothing. */
void codefiles_add_note(struct buf *to, const struct codefiles *c);

#endif
