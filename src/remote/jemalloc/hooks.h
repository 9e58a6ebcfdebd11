/*
 * Installs functions of the code injected into the target (remote/patch/inject.h) as jemalloc's
 * experimental hooks (method HOOKS) or as the backtrace function of its profiler (method PROF).
 */
#ifndef ASSAY_REMOTE_JEMALLOC_HOOKS_H
#define ASSAY_REMOTE_JEMALLOC_HOOKS_H

#include "base/base.h"
#include "base/err.h"

struct heapinject;
struct remote;

/* experimental.hooks.install and .remove; remove without installed hooks does nothing. */
int heaphooks_install(struct heapinject *h, struct remote *r, struct err *err);
int heaphooks_remove(struct heapinject *h, struct remote *r, struct err *err);
/* experimental.hooks.prof_backtrace: sets the injected function, or restores the old one. */
int heaphooks_backtrace(struct heapinject *h, struct remote *r, bool is_ours, struct err *err);

#endif
