/* The end of a capture of memory; see heap_outputs.h. */
#include "base/base.h"
#include "cmd/heap_outputs.h"

#include "base/log.h"
#include "cmd/cmd.h"

int heap_outputs_finish(struct outputs *o, const struct capture_result *r,
			const struct heap_outputs_options *opts)
{
	(void)opts;
	outputs_say_disk(o, r);
	bool is_empty = !capture_nr_rows(r);
	if (is_empty)
		log_warn("nothing was recorded: the target has ended, or allocated nothing");
	outputs_say_cost(r);
	outputs_say_files(o, r, false);
	return r->disk.code ? EXIT_FAILED : is_empty ? EXIT_NOTHING : EXIT_OK;
}
