/* session/store: recordings are put where they belong, and only they are removed. */
#include "base/base.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "format/assay/assayfile.h"
#include "host/privileges.h"
#include "session/store.h"

#define WALL_NS 1700000000000000000

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static char scratch[64];

static void leave_scratch(void)
{
	(void)!chdir("/");
	nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void enter_scratch(void)
{
	snprintf(scratch, sizeof(scratch), "/tmp/assay-store-XXXXXX");
	if (!mkdtemp(scratch) || chdir(scratch))
		exit(1);
	atexit(leave_scratch);
	setenv("TZ", "UTC", 1);
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	CHECK(fd >= 0);
	CHECK(!file_write_all(fd, text, strlen(text), NULL));
	close(fd);
}

static bool is_there(const char *path)
{
	struct stat st;
	return !lstat(path, &st);
}

/* A whole capture: recording, picture, folded text. Its recording's path, owned. */
static char *capture(const char *target, const char *kind, int64_t wall_ns)
{
	struct store_place p;
	int fd = -1;
	CLEANUP(err_release) struct err err = {0};
	if (store_place_new(&p, &fd, NULL, target, kind, wall_ns, &err)) {
		tap_fail(__FILE__, __LINE__, "%s", err_msg(&err));
		exit(1);
	}
	CLEANUP(profile_free_p) struct profile *prof = profile_new();
	prof->wall_start_ns = wall_ns;
	prof->start_ns = 1;
	prof->end_ns = 1 + 5 * NS_PER_SEC;
	struct assayfile_writer *w = assayfile_writer_new(fd, kind);
	CHECK(!assayfile_finish(w, prof, NULL));
	assayfile_writer_free(w);
	static const char *const texts[][2] = {{".svg", "<?xml?><svg class=\"assay-flame\">"},
					       {".folded", "a;b 3\n"}};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct out o;
		CHECK(!store_out(&o, &p, texts[i][0], NULL));
		CHECK(!out_write(&o, texts[i][1], strlen(texts[i][1]), NULL));
		CHECK(!out_commit(&o, NULL));
		out_release(&o);
	}
	char *path = store_path(&p, STORE_SUFFIX);
	store_place_release(&p);
	return path;
}

TEST(captures_lie_below_profiling_by_target_kind_and_time)
{
	enter_scratch();
	CLEANUP(free_p) char *a = capture("redis-server", "cpu", WALL_NS);
	CLEANUP(free_p) char *b = capture("redis-server", "cpu", WALL_NS);
	CLEANUP(free_p) char *c = capture("../../etc/..x y", "cpu", WALL_NS);
	CHECK_STR(a, "profiling/redis-server/cpu-20231114-221320.assay");
	CHECK_STR(b, "profiling/redis-server/cpu-20231114-221320-2.assay");
	CHECK_STR(c, "profiling/_.x_y/cpu-20231114-221320.assay");
	struct stat st;
	CHECK(!stat(a, &st) && (st.st_mode & 07777) == 0600);
	CHECK(!stat("profiling/redis-server", &st) && (st.st_mode & 07777) == 0755);
	CHECK(!stat("profiling/redis-server/cpu-20231114-221320-2.svg", &st));
	CHECK_U64(st.st_mode & 07777, 0600);
}

TEST(links_in_the_way_are_refused)
{
	enter_scratch();
	struct store_place p;
	int fd = -1;
	CLEANUP(err_release) struct err err = {0};
	CHECK(!mkdir("elsewhere", 0755));
	CHECK(!symlink("elsewhere", "profiling"));
	CHECK(store_place_new(&p, &fd, NULL, "t", "cpu", WALL_NS, &err) < 0);
	CHECK(err.hint != NULL);
	CHECK(!unlink("profiling") && !mkdir("profiling", 0755));
	CHECK(!symlink("../elsewhere", "profiling/t"));
	CHECK(store_place_new(&p, &fd, NULL, "t", "cpu", WALL_NS, &err) < 0);
	CHECK(!symlink("/etc/passwd", "out.assay"));
	CHECK(store_place_at(&p, &fd, "out.assay", &err) < 0);
	CHECK(!is_there("elsewhere/t"));
}

TEST(a_named_output_replaces_only_our_recordings)
{
	enter_scratch();
	struct store_place p;
	int fd = -1;
	CLEANUP(err_release) struct err err = {0};
	put("notes.txt", "mine");
	CHECK(store_place_at(&p, &fd, "notes.txt", &err) == -EEXIST);
	CHECK_STR(err_msg(&err), "'notes.txt' exists and was not written by assay");
	for (int round = 0; round < 2; round++) {
		CHECK(!store_place_at(&p, &fd, "./run.assay", &err));
		CLEANUP(profile_free_p) struct profile *prof = profile_new();
		struct assayfile_writer *w = assayfile_writer_new(fd, "cpu");
		CHECK(!assayfile_finish(w, prof, NULL));
		assayfile_writer_free(w);
		CLEANUP(free_p) char *svg = store_path(&p, ".svg");
		CHECK_STR(svg, "./run.svg");
		store_place_release(&p);
	}
	/* A capture that fails gives the old recording back. */
	struct stat before, after;
	CHECK(!stat("run.assay", &before) && before.st_size);
	CHECK(!store_place_at(&p, &fd, "run.assay", &err));
	CHECK(!stat("run.assay", &after) && !after.st_size);
	close(fd);
	store_abandon(&p);
	store_place_release(&p);
	CHECK(!stat("run.assay", &after) && after.st_ino == before.st_ino);
	CHECK(!is_there("run.assay~"));
	CHECK(store_place_at(&p, &fd, "no/such/dir/x.assay", &err) == -ENOENT);
	CHECK(store_place_at(&p, &fd, "profiling/", &err) == -EINVAL);
}

static void clean_all(void)
{
	CLEANUP(store_list_release) struct store_list l = {0};
	uint64_t bytes;
	CHECK(!store_list_read(&l, NULL, NULL));
	vec_foreach(e, &l.entries)
		CHECK(!store_remove(NULL, e, &bytes, NULL));
}

#define MANIFEST "profiling/t/.assay-files"

TEST(a_fifo_in_place_of_the_manifest_makes_nobody_wait)
{
	enter_scratch();
	alarm(20);
	CHECK(!mkdir("profiling", 0755) && !mkdir("profiling/t", 0755));
	CHECK(!mkfifo(MANIFEST, 0666));
	CLEANUP(free_p) char *a = capture("t", "cpu", WALL_NS);
	CHECK(is_there("profiling/t/cpu-20231114-221320.folded"));
	/* with a reader, opening it for writing succeeds */
	CLEANUP(close_p) int reader = open(MANIFEST, O_RDONLY | O_NONBLOCK);
	char c;
	CLEANUP(free_p) char *b = capture("t", "cpu", WALL_NS);
	CHECK(read(reader, &c, 1) == 0);
	clean_all();
	CHECK(!is_there(a) && !is_there(b));
	CHECK(is_there("profiling/t/cpu-20231114-221320.folded")); /* carries no mark of ours */
}

TEST(a_linked_manifest_is_neither_written_nor_given_away)
{
	if (geteuid())
		tap_skip("needs root");
	enter_scratch();
	put("secret", "untouched");
	CHECK(!mkdir("profiling", 0755) && !mkdir("profiling/t", 0755));
	CHECK(!link("secret", MANIFEST));
	free(capture("t", "cpu", WALL_NS));
	struct stat st;
	CHECK(!stat("secret", &st) && st.st_size == 9 && st.st_uid == 0);
	/* one of another user, in a folder that is not that user's */
	CHECK(!unlink(MANIFEST));
	put(MANIFEST, "");
	CHECK(!chown(MANIFEST, 65534, 65534));
	free(capture("t", "cpu", WALL_NS));
	CHECK(!stat(MANIFEST, &st) && !st.st_size && st.st_uid == 65534);
	/* in the user's own folder it is used, but not given to anybody else */
	CHECK(!chown("profiling/t", 65534, 65534));
	free(capture("t", "cpu", WALL_NS));
	CHECK(!stat(MANIFEST, &st) && st.st_size && st.st_uid == 65534);
	CHECK(!unlink(MANIFEST) && !symlink("../../secret", MANIFEST));
	free(capture("t", "cpu", WALL_NS));
	CHECK(!stat("secret", &st) && st.st_size == 9 && st.st_uid == 0);
}

/* The scratch folder is root's: the user who ran sudo may not write in it without capabilities. */
static void become_user(const char *uid, const char *gid)
{
	if (geteuid())
		tap_skip("needs root");
	enter_scratch();
	CLEANUP(err_release) struct err err = {0};
	setenv("SUDO_UID", uid, 1);
	setenv("SUDO_GID", gid, 1);
	CHECK(!host_become_invoker(&err));
}

TEST(under_sudo_files_belong_to_the_invoking_user)
{
	become_user("4321", "4322");
	free(capture("t", "cpu", WALL_NS));
	static const char *const made[] = {"profiling", "profiling/t", "profiling/t/.assay-files",
					   "profiling/t/cpu-20231114-221320.assay",
					   "profiling/t/cpu-20231114-221320.svg"};
	for (size_t i = 0; i < ARRAY_LEN(made); i++) {
		struct stat st;
		CHECK(!stat(made[i], &st));
		CHECK_U64(st.st_uid, 4321);
		CHECK_U64(st.st_gid, 4322);
	}
}

TEST(where_only_another_user_may_write_files_belong_to_that_user)
{
	become_user("4321", "4322");
	CLEANUP(err_release) struct err err = {0};
	struct store_place p;
	struct stat st;
	int fd;
	CHECK(!store_place_at(&p, &fd, "x.assay", &err));
	CHECK(p.has_other_owner && geteuid() == 0);
	CHECK(!fstat(fd, &st) && st.st_uid == 0);
	close(fd);
	store_place_release(&p);
	CHECK(!host_become_command_user()); /* a launched command is still the user's */
	CHECK_U64(geteuid(), 4321);
	CHECK_U64(getegid(), 4322);
}

TEST(a_sudo_uid_that_is_no_number_is_ignored)
{
	become_user("nonsense", "4322");
	CHECK_U64(geteuid(), 0);
}

TEST(the_list_shows_each_recording_with_its_files_oldest_first)
{
	enter_scratch();
	CLEANUP(store_list_release) struct store_list none = {0};
	CHECK(!store_list_read(&none, NULL, NULL));
	CHECK_U64(none.entries.n, 0);
	char *no_path = NULL;
	CLEANUP(err_release) struct err err = {0};
	CHECK(store_newest_path(&no_path, NULL, NULL, &err) == -ENOENT);
	CHECK(err.hint != NULL);

	CLEANUP(free_p) char *b = capture("beta", "cpu", WALL_NS + 1000000000);
	CLEANUP(free_p) char *a = capture("alpha", "heap", WALL_NS + 5000000000);
	CLEANUP(free_p) char *c = capture("beta", "cpu", WALL_NS);
	put("profiling/alpha/readme.assay", "not a recording");
	put("profiling/alpha/heap-20231114-221325.txt", "mine");
	CHECK(!mkfifo("profiling/alpha/pipe.assay", 0600));
	CLEANUP(store_list_release) struct store_list l = {0};
	CHECK(!store_list_read(&l, NULL, NULL));
	CHECK_U64(l.entries.n, 3);
	CHECK_STR(l.entries.p[0].path, c);
	CHECK_STR(l.entries.p[1].path, b);
	CHECK_STR(l.entries.p[2].path, a);
	CHECK_STR(l.entries.p[2].info.kind, "heap");
	CHECK_STR(l.entries.p[2].target, "alpha");
	CHECK_U64(l.entries.p[2].info.duration_ns, 5 * NS_PER_SEC);
	CHECK_U64(l.entries.p[2].files.n, 3);
	CHECK(store_newest(&l, NULL) == &l.entries.p[2]);
	CHECK(store_newest(&l, "cpu") == &l.entries.p[1]);
	CHECK(store_newest(&l, "io") == NULL);
}

TEST(cleaning_removes_what_is_ours_and_nothing_else)
{
	enter_scratch();
	CLEANUP(free_p) char *a = capture("t", "cpu", WALL_NS);
	CLEANUP(free_p) char *b = capture("t", "cpu", WALL_NS + 1000000000);
	const char *stem = "profiling/t/cpu-20231114-221320";
	static const char *const foreign[] = {".txt", ".svg.bak", "-notes.svg", ".perf.data"};
	for (size_t i = 0; i < ARRAY_LEN(foreign); i++) {
		CLEANUP(free_p) char *path = xasprintf("%s%s", stem, foreign[i]);
		put(path, "<svg> mine");
	}
	/* The folded text was replaced by one of the user's own. */
	CHECK(!rename("profiling/t/cpu-20231114-221321.folded", "old"));
	put("profiling/t/cpu-20231114-221321.folded", "user;made 1\n");
	CLEANUP(store_list_release) struct store_list l = {0};
	CHECK(!store_list_read(&l, NULL, NULL));
	CHECK_U64(l.entries.n, 2);
	for (size_t i = 0; i < 2; i++) {
		uint64_t freed = 0;
		CHECK(!store_remove(NULL, &l.entries.p[i], &freed, NULL));
		CHECK_U64(freed, l.entries.p[i].bytes);
	}
	CHECK(!is_there(a) && !is_there(b));
	CHECK(!is_there("profiling/t/cpu-20231114-221320.svg"));
	CHECK(!is_there("profiling/t/cpu-20231114-221320.folded"));
	CHECK(!is_there("profiling/t/cpu-20231114-221321.svg"));
	CHECK(is_there("profiling/t/cpu-20231114-221321.folded"));
	for (size_t i = 0; i < ARRAY_LEN(foreign); i++) {
		CLEANUP(free_p) char *path = xasprintf("%s%s", stem, foreign[i]);
		CHECK(is_there(path));
	}
}

TEST(a_dump_of_its_own_is_listed_and_removed)
{
	enter_scratch();
	free(capture("t", "cpu", WALL_NS));
	struct store_place place;
	int fd;
	CHECK(!store_place_foreign(&place, &fd, NULL, "t", "heap", ".heap", WALL_NS, NULL));
	CHECK_U64(write(fd, "heap_v2/1\n", 10), 10);
	close(fd);
	store_place_release(&place);
	put("profiling/t/mine.heap", "heap_v2/1\n");
	CLEANUP(store_list_release) struct store_list l = {0};
	CHECK(!store_list_read(&l, NULL, NULL));
	CHECK_U64(l.entries.n, 2);
	const struct store_entry *dump = store_newest(&l, "dump");
	CHECK(dump);
	CHECK_STR(dump->stem, "heap-20231114-221320");
	CHECK_U64(dump->bytes, 10);
	CHECK_STR(store_newest(&l, NULL)->info.kind, "cpu");
	uint64_t freed = 0;
	CHECK(!store_remove(NULL, dump, &freed, NULL));
	CHECK_U64(freed, 10);
	CHECK(!is_there("profiling/t/heap-20231114-221320.heap"));
	CHECK(is_there("profiling/t/mine.heap"));
	CHECK(is_there("profiling/t/cpu-20231114-221320.assay"));
}

TEST(an_emptied_target_loses_its_directory)
{
	enter_scratch();
	free(capture("t", "cpu", WALL_NS));
	CLEANUP(store_list_release) struct store_list l = {0};
	CHECK(!store_list_read(&l, NULL, NULL));
	uint64_t freed = 0;
	CHECK(!store_remove(NULL, &l.entries.p[0], &freed, NULL));
	CHECK(!is_there("profiling/t"));
	CHECK(is_there("profiling"));
}

TEST(a_file_swapped_after_listing_is_not_removed)
{
	enter_scratch();
	CLEANUP(free_p) char *a = capture("t", "cpu", WALL_NS);
	CLEANUP(store_list_release) struct store_list l = {0};
	CHECK(!store_list_read(&l, NULL, NULL));
	CHECK(!unlink(a));
	put("precious", "data");
	CHECK(!link("precious", a));
	uint64_t freed = 0;
	CHECK(!store_remove(NULL, &l.entries.p[0], &freed, NULL));
	CHECK(is_there(a));
}

TEST(conditions_of_clean_are_joined)
{
	enter_scratch();
	for (int i = 0; i < 4; i++)
		free(capture("t", i == 3 ? "heap" : "cpu", WALL_NS + i * 1000000000ll));
	free(capture("u", "cpu", WALL_NS));
	CLEANUP(store_list_release) struct store_list l = {0};
	CHECK(!store_list_read(&l, NULL, NULL));
	/* By time, then path: t cpu 0, u cpu 0, t cpu 1, t cpu 2, t heap 3. */
	vec_foreach(e, &l.entries)
		e->bytes = 10;
	static const struct {
		struct store_filter f;
		const char *want;
	} cases[] = {
		{{0}, "11111"},
		{{.kind = "cpu"}, "11110"},
		{{.kind = "cpu", .target = "t"}, "10110"},
		{{.older_than_ns = WALL_NS + 1000000000}, "11000"},
		{{.keep = 1}, "10100"},
		{{.keep = 2, .older_than_ns = WALL_NS + 1}, "10000"},
		{{.max_bytes = 30}, "11000"},
		{{.max_bytes = 29}, "11100"},
		{{.max_bytes = 1, .keep = 1}, "10100"},
		{{.max_bytes = UINT64_MAX}, "00000"},
		{{.max_bytes = 10, .kind = "cpu"}, "11100"},
	};
	for (size_t c = 0; c < ARRAY_LEN(cases); c++) {
		bool marks[5];
		char got[6] = {0};
		store_match(&l, &cases[c].f, marks);
		for (size_t i = 0; i < 5; i++)
			got[i] = marks[i] ? '1' : '0';
		CHECK_STR(got, cases[c].want);
	}
}

TEST(a_recording_in_the_making_is_busy)
{
	enter_scratch();
	struct store_place p;
	int fd = -1;
	CHECK(!store_place_new(&p, &fd, NULL, "t", "cpu", WALL_NS, NULL));
	CLEANUP(profile_free_p) struct profile *prof = profile_new();
	struct assayfile_writer *w = assayfile_writer_new(fd, "cpu");
	CHECK(!assayfile_flush(w, prof, NULL));
	CLEANUP(store_list_release) struct store_list l = {0};
	CHECK(!store_list_read(&l, NULL, NULL));
	CHECK_U64(l.entries.n, 1);
	CHECK(l.entries.p[0].info.is_incomplete);
	CHECK(store_is_busy(&l.entries.p[0], clock_real_ns()));
	CHECK(!store_is_busy(&l.entries.p[0], clock_real_ns() + 61 * (int64_t)NS_PER_SEC));
	assayfile_writer_free(w);
	store_place_release(&p);
}
