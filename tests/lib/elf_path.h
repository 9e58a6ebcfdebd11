/* Opens ELF images by path, for tests: nobody replaces these files. */
#ifndef ASSAY_TESTS_LIB_ELF_PATH_H
#define ASSAY_TESTS_LIB_ELF_PATH_H

#include <fcntl.h>
#include <unistd.h>

#include "base/base.h"
#include "base/err.h"
#include "base/mem.h"
#include "object/elf.h"

static inline int elf_open_path(struct elf **ret_e, const char *path, struct err *err)
{
	CLEANUP(close_p) int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? err_sys(err, "cannot open '%s'", path) : elf_open_fd(ret_e, fd, err);
}

#endif
