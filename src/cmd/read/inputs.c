/* Finds and loads the profiles that a command reads; see inputs.h. */
#include "base/base.h"
#include "cmd/read/inputs.h"

#include "cmd/optgroups.h"
#include "session/store.h"

int inputs_find(struct inputs *ret_in, const struct opt_args *args, struct err *err)
{
	*ret_in = (struct inputs){.paths = (const char *const *)args->operands.p,
				  .nr = args->operands.n};
	if (ret_in->nr)
		return 0;
	TRY(store_newest_path(&ret_in->newest, NULL, NULL, err));
	ret_in->paths = (const char *const *)&ret_in->newest;
	ret_in->nr = 1;
	return 0;
}

void inputs_release(struct inputs *in)
{
	free(in->newest);
}

int inputs_load(struct profile **ret_p, const char *const *paths, size_t nr,
		const struct load_options *options, struct err *err)
{
	CLEANUP(free_p) char *cache_dir = cmd_cache_dir();
	struct load_options own = *options;
	own.cache_dir = cache_dir;
	return load_profiles(ret_p, paths, nr, &own, err);
}
