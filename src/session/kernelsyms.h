/*
 * The kernel's function symbols, kept between runs: printing /proc/kallsyms takes the kernel
 * 70 ms, as long as reading 200,000 samples.
 *
 * One file, <cache_dir>/kallsyms: a line that names this boot and the modules loaded, then lines
 * as in /proc/kallsyms of functions of the kernel and of its modules. Symbols that come and go
 * without a module (BPF programs, trampolines) are left out, so an address that is not found is to
 * be looked up in the whole text. Only a file that is the user's own, and that nobody else may
 * write, is believed; it is readable by its owner alone, who could read the kernel's text.
 */
#ifndef ASSAY_SESSION_KERNELSYMS_H
#define ASSAY_SESSION_KERNELSYMS_H

#include "base/base.h"
#include "base/buf.h"

/* Appends what is kept of this boot; -ENOENT: nothing (@cache_dir may be NULL: no cache). */
int kernelsyms_load(struct buf *to, const char *cache_dir);
/* Appends /proc/kallsyms and keeps what is worth it, if it can; -errno. */
int kernelsyms_read(struct buf *to, const char *cache_dir);

#endif
