/* Compares recordings of repeated runs; see runs_view.h. */
#include "base/base.h"
#include "cmd/read/runs_view.h"

#include "analyze/stacks/runs.h"
#include "base/mem.h"
#include "session/load.h"

struct run_files {
	struct profile **profiles;
	struct run_input *runs;
	size_t nr;
};

static void files_release(struct run_files *f)
{
	for (size_t i = 0; i < f->nr; i++)
		profile_free(f->profiles[i]);
	free(f->profiles);
	free(f->runs);
}

int runs_view(struct report *r, const char *const *paths, size_t nr_paths,
	      const struct select_spec *spec, const struct view_limits *limits, struct err *err)
{
	CLEANUP(files_release)
	struct run_files f = {
		.profiles = xcalloc(nr_paths, sizeof(*f.profiles)),
		.runs = xcalloc(nr_paths, sizeof(*f.runs)),
		.nr = nr_paths,
	};
	for (size_t i = 0; i < nr_paths; i++) {
		TRY(load_profile(&f.profiles[i], paths[i], &(struct load_options){0}, err));
		f.runs[i].name = paths[i];
		if (select_run(&r->arena, f.profiles[i], spec, &f.runs[i].sel, err))
			return err_wrap(err, "'%s'", paths[i]);
	}
	runs_report(r, f.runs, nr_paths, limits);
	return 0;
}
