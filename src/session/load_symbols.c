/* Symbolizes a recording on opening; see load_symbols.h. */
#include "base/base.h"
#include "session/load_symbols.h"

#include <sys/utsname.h>

#include "base/clock.h"
#include "ingest/module_buildids.h"
#include "ingest/modules.h"
#include "ingest/symbolworker.h"
#include "session/module_files.h"

/* Boot times that differ by less are the same boot with a corrected clock. */
#define BOOT_TOLERANCE_NS ((int64_t)10 * 1000000000)

/* Clears the flags of unsymbolized locations: a binary that was missing may exist here. */
static bool has_unnamed(struct profile *p)
{
	bool has = false;
	for (size_t i = 1; i < p->locations.n; i++) {
		struct location *l = &p->locations.p[i];
		if (!l->nr_frames &&
		    (l->unsym == LOSS_UNSYM_NO_FILE || l->unsym == LOSS_UNSYM_CHANGED))
			l->flags = (l->flags & ~(uint32_t)LOCATION_SYMBOLIZED) | LOCATION_RETRY;
		has |= !(l->flags & LOCATION_SYMBOLIZED);
	}
	return has;
}

static bool is_fact(const struct profile *p, enum fact_id id, const char *value)
{
	const char *fact = profile_get_fact(p, id);
	return fact && !strcmp(fact, value);
}

/* Returns whether the recording is of this boot: kernel addresses and pids change with each boot. */
static bool is_this_boot(const struct profile *p)
{
	struct utsname here;
	if (!p->wall_start_ns || !p->start_ns || uname(&here) ||
	    !is_fact(p, FACT_HOST, here.nodename) || !is_fact(p, FACT_KERNEL, here.release))
		return false;
	int64_t boot_then = p->wall_start_ns - (int64_t)p->start_ns;
	int64_t boot_now = (int64_t)clock_real_ns() - (int64_t)clock_mono_ns();
	int64_t apart = boot_then > boot_now ? boot_then - boot_now : boot_now - boot_then;
	return apart <= BOOT_TOLERANCE_NS;
}

/* Removes retried locations without a result from the log: an unchanged file is not rewritten. */
static size_t drop_failed_retries(struct profile *p, size_t nr_before)
{
	size_t nr_kept = nr_before;
	size_t nr_named = 0;
	for (size_t i = nr_before; i < p->symbolized_log.n; i++) {
		loc_id loc = p->symbolized_log.p[i];
		struct location *l = &p->locations.p[loc];
		nr_named += l->nr_frames != 0;
		if (l->nr_frames || !(l->flags & LOCATION_RETRY))
			p->symbolized_log.p[nr_kept++] = loc;
		l->flags &= ~(uint32_t)LOCATION_RETRY;
	}
	p->symbolized_log.n = nr_kept;
	return nr_named;
}

size_t load_symbols(struct profile *p, const struct load_options *options)
{
	if (!has_unnamed(p))
		return 0;
	struct stored_files files;
	stored_files_init(&files, options->symfs, options->cache_dir);
	files.is_this_kernel = is_this_boot(p);
	if (!files.is_this_kernel) {
		files.access.read_vdso = NULL;
		files.access.open_perfmap = NULL;
	}
	CLEANUP(modules_release) struct modules modules = {.p = p, .files = &files.access};
	modules_restore(&modules);
	size_t nr_before = p->symbolized_log.n;
	struct symbolworker *worker = symbolworker_new(
		p, &modules, &files.access,
		&(struct symbolworker_options){.debug_dirs = options->debug_dirs,
					       .cache_dir = options->cache_dir,
					       .nr_debug_dirs = options->nr_debug_dirs,
					       .symbolizer_flags = options->symbolizer_flags,
					       .demangle_flags = options->demangle_flags});
	symbolworker_submit(worker);
	symbolworker_submit_jit(worker);
	symbolworker_collect(worker, SYMBOLWORKER_WAIT);
	symbolworker_free(worker);
	return drop_failed_retries(p, nr_before);
}

size_t load_dump_symbols(struct profile *p, const struct load_options *options, int64_t written_ns)
{
	struct stored_files files;
	stored_files_init(&files, options->symfs, options->cache_dir);
	files.written_ns = written_ns;
	modules_resolve_build_ids(p, &files.access);
	return load_symbols(p, options);
}
