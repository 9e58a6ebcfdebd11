/* Finds and loads the profiles that a command reads; see inputs.h. */
#include "base/base.h"
#include "cmd/read/inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/select/select.h"
#include "base/file/file.h"
#include "base/file/zio.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/optgroups.h"
#include "format/format.h"
#include "host/heldfiles.h"
#include "host/privileges.h"
#include "host/reader/hostfile.h"
#include "host/syscallfilter.h"
#include "model/tables.h"
#include "session/kernelsyms.h"
#include "session/store.h"

bool inputs_is_profile(const char *path)
{
	static char head[FORMAT_SNIFF_BYTES + 1];
	CLEANUP(close_p) int fd = file_open_named(path, NULL);
	ssize_t n = fd < 0 ? fd : file_pread_some(fd, head, FORMAT_SNIFF_BYTES, 0, NULL);
	return n > 0 &&
	       (zio_sniff(head, (size_t)n) != ZKIND_NONE || format_sniff(sv_from(head, (size_t)n)));
}

int inputs_find(struct inputs *ret_in, const struct opt_args *args, struct err *err)
{
	*ret_in = (struct inputs){.paths = (const char *const *)args->operands.p,
				  .nr = args->operands.n};
	if (ret_in->nr)
		return 0;
	TRY(store_newest_path(&ret_in->newest, cmd_recordings_dir(), NULL, err));
	ret_in->paths = (const char *const *)&ret_in->newest;
	ret_in->nr = 1;
	return 0;
}

/* Makes sure that the folder of the path can be used without capabilities. */
static int use_folder_of(const char *path, int mode, struct err *err)
{
	size_t nr_dir = (size_t)(path_base(path) - path);
	CLEANUP(free_p) char *dir = nr_dir ? xstrndup(path, nr_dir) : xstrdup(".");
	CLEANUP(close_p) int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? 0 : host_use_folder(fd, mode, NULL, err); /* none: said when it is used */
}

int inputs_confine(const char *const *paths, size_t nr, const char *output, struct err *err)
{
	struct stat st;
	bool is_file = output && strcmp(output, "-") && (stat(output, &st) || S_ISREG(st.st_mode));
	TRY(host_become_invoker(err));
	host_hold_file(KERNELSYMS_PATH);
	for (size_t i = 0; i < nr; i++)
		host_hold_file(paths[i]);
	TRY(use_folder_of("", X_OK, err)); /* paths are relative to it */
	TRY(is_file ? use_folder_of(output, W_OK | X_OK, err) : 0);
	host_drop_all();
	hostfile_start(0, NULL);
	host_limit_calls(HOST_CALLS_READING);
	mem_keep();
	return 0;
}

void inputs_release(struct inputs *in)
{
	free(in->newest);
}

/* Names what can be read instead of the first file that does not exist. */
static int hint_missing(const char *const *paths, size_t nr, struct err *err)
{
	size_t i = 0;
	while (i < nr && !access(paths[i], F_OK))
		i++;
	CLEANUP(store_list_release) struct store_list l = {0};
	const struct store_entry *newest = NULL;
	if (i < nr && !store_list_read(&l, cmd_recordings_dir(), NULL))
		vec_foreach(e, &l.entries)
			if (!strcmp(e->target, paths[i]))
				newest = e;
	if (newest)
		return err_hint(err, "the newest recording of %s is %s", newest->target,
				newest->path);
	return err_hint(err, "list the recordings with: assay ls");
}

int inputs_load(struct profile **ret_p, const char *const *paths, size_t nr,
		const struct load_options *options, struct err *err)
{
	CLEANUP(free_p) char *cache_dir = cmd_cache_dir();
	struct load_options own = *options;
	own.cache_dir = cache_dir;
	int rc = load_profiles(ret_p, paths, nr, &own, err);
	bool is_missing = rc == -ENOENT || rc == -ENAMETOOLONG;
	return is_missing && err && !err->hint ? hint_missing(paths, nr, err) : rc;
}

void inputs_note_event(const struct profile *p, const char *event)
{
	uint32_t written;
	CLEANUP(buf_release) struct buf others = {0};
	if (!p->tables.n || select_table(p, event, &written, NULL))
		return;
	const struct table *t = &p->tables.p[written];
	vec_foreach(other, &p->tables) {
		bool is_event = other->id == TABLE_SAMPLES || other->id == TABLE_OFF_CPU;
		if (is_event && other != t && other->n)
			buf_addf(&others, "%s%s", others.n ? ", " : "",
				 profile_text(p, other->event));
	}
	const char *name = profile_text(p, t->event);
	if (others.n && !event && !tables_are_difference(p))
		log_note("this is event %s; the input also has %s (--event)", name,
			 buf_str(&others));
	const char *column = profile_text(p, t->columns[t->weight_column].name);
	bool is_period = !strcmp(column, "time") || !strcmp(column, "period"); /* not of pprof */
	if (t->id == TABLE_SAMPLES && t->weight_column && is_period)
		log_note(
			"the numbers are %s, the sums of the samples' periods; numbers of samples: "
			"--weight samples",
			t->columns[t->weight_column].unit == UNIT_NS ? "nanoseconds" : name);
}

void inputs_note_incomplete(const struct profile *p)
{
	const char *problem = profile_get_fact(p, FACT_PROBLEM);
	if (p->is_incomplete)
		log_note("the input is incomplete: %s",
			 problem ? problem
				 : "the capture was killed, or the file is truncated or damaged");
}

int inputs_need_events(const struct profile *p, const char *what, struct err *err)
{
	const char *recording = profile_get_fact(p, FACT_PAGE_OF);
	if (!recording)
		return 0;
	err_set(err, -ENODATA,
		"%s needs single events at their exact times: the input is an HTML page, which has "
		"sums and milliseconds",
		what);
	return err_hint(err, "name its recording: %s",
			recording[0] ? recording : "a file with the suffix .assay");
}

void inputs_add_output(struct buf *to, const char *input, const char *extension)
{
	static const char *const compressed[] = {".gz", ".xz", ".zst"};
	struct sv s = sv_from_str(input);
	for (size_t i = 0; i < ARRAY_LEN(compressed); i++)
		if (sv_has_suffix(s, sv_from_str(compressed[i])))
			s.n -= strlen(compressed[i]);
	ssize_t dot = sv_rindex(s, '.');
	if (dot > (ssize_t)(path_base(input) - input))
		s.n = (size_t)dot;
	buf_add_sv(to, s);
	buf_add_str(to, extension);
}
