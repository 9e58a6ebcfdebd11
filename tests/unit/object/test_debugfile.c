/* object/debugfile: separate debug files are found, and used only if they match. */
#include "base/base.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "host/reader/hostfile.h"
#include "object/debugfile.h"
#include "elf_path.h"

#define FIXTURES "tests/fixtures/debug/"

static struct elf *open_fixture(const char *name)
{
	char *path CLEANUP(free_p) = xasprintf(FIXTURES "%s", name);
	struct elf *e = NULL;
	CHECK(!elf_open_path(&e, path, NULL));
	return e;
}

/* A directory used as the target's root; tests are forked, so each has its own. */
static char *make_root(void)
{
	char dir[] = "/tmp/assay-test-debugfile-XXXXXX";
	CHECK(mkdtemp(dir) != NULL);
	return xstrdup(dir);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
	(void)st;
	(void)kind;
	(void)walk;
	return remove(path);
}

static void remove_root(char **root)
{
	CHECK(!nftw(*root, remove_one, 8, FTW_DEPTH | FTW_PHYS));
	free(*root);
}

static void put(const char *root, const char *path, const char *fixture)
{
	CLEANUP(buf_release) struct buf bytes = {0};
	char *from CLEANUP(free_p) = xasprintf(FIXTURES "%s", fixture);
	char *to CLEANUP(free_p) = xasprintf("%s%s", root, path);
	char *dir CLEANUP(free_p) = xstrndup(to, (size_t)(strrchr(to, '/') - to));
	CHECK(!file_read(&bytes, from, 1 << 20, NULL));
	CHECK(!dir_make(dir, 0700, NULL));
	CLEANUP(close_p) int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && !file_write_all(fd, bytes.p, bytes.n, NULL));
}

static const struct debug_search on_host = {.open = hostfile_open_path, .root_fd = -1};

/* Searches the debug file of @fixture, as /srv/bin/prog in a root that contains @at. */
static char *found_at(const char *fixture, const char *at, const char *as)
{
	CLEANUP(remove_root) char *root = make_root();
	put(root, at, as);
	CLEANUP(close_p) int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct debug_search search = {.open = hostfile_open_path, .root_fd = fd};
	CLEANUP(elf_free_p) struct elf *e = open_fixture(fixture);
	CLEANUP(elf_free_p) struct elf *debug = NULL;
	char *path = NULL;
	debug = debugfile_find(e, "/srv/bin/prog", &search, &path);
	CHECK((debug != NULL) == (path != NULL));
	CHECK(!debug || elf_section(debug, ".debug_info"));
	return path ? path : xstrdup("none");
}

#define CHECK_FOUND(fixture, at, as, expected)                           \
	do {                                                             \
		char *path_ CLEANUP(free_p) = found_at(fixture, at, as); \
		CHECK_STR(path_, expected);                              \
	} while (0)

TEST(debugfile_is_found_in_every_search_path_of_the_target_root)
{
	static const char *const places[] = {
		"/srv/bin/prog.debug",
		"/srv/bin/.debug/prog.debug",
		"/usr/lib/debug/srv/bin/prog.debug",
	};
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		CHECK_FOUND("prog", places[i], "prog.debug", places[i]);
	CHECK_FOUND("noid", "/srv/bin/.debug/noid.debug", "noid.debug",
		    "/srv/bin/.debug/noid.debug");
}

TEST(debugfile_is_found_by_build_id_in_a_debug_dir)
{
	CLEANUP(remove_root) char *root = make_root();
	CLEANUP(elf_free_p) struct elf *e = open_fixture("prog");
	uint8_t id[ELF_BUILD_ID_MAX];
	size_t nr_id = elf_build_id(e, id);
	CHECK_U64(nr_id, 20);
	CLEANUP(buf_release) struct buf at = {0};
	buf_addf(&at, "/.build-id/%02x/", id[0]);
	for (size_t i = 1; i < nr_id; i++)
		buf_addf(&at, "%02x", id[i]);
	buf_add_str(&at, ".debug");
	put(root, buf_str(&at), "prog.debug");
	const char *dirs[] = {"/absent", root};
	struct debug_search search = {
		.open = hostfile_open_path, .root_fd = -1, .dirs = dirs, .nr_dirs = 2};
	CLEANUP(elf_free_p) struct elf *debug = NULL;
	debug = debugfile_find(e, NULL, &search, NULL);
	CHECK(debug != NULL);
}

TEST(debugfile_of_another_build_is_rejected)
{
	CHECK_FOUND("prog", "/srv/bin/prog.debug", "mini", "none"); /* no symbols: no use */
	CHECK_FOUND("prog", "/srv/bin/prog.debug", "prog.c", "none");
	CHECK_FOUND("noid", "/srv/bin/noid.debug", "withalt.debug", "none"); /* CRC differs */
	CHECK_FOUND("noid", "/srv/bin/noid.debug", "prog.debug", "none");
}

TEST(debugfile_symlinks_do_not_escape_the_target_root)
{
	CLEANUP(remove_root) char *root = make_root();
	put(root, "/out/prog.debug", "prog.debug");
	CLEANUP(remove_root) char *jail = make_root();
	char *dir CLEANUP(free_p) = xasprintf("%s/srv/bin", jail);
	CHECK(!dir_make(dir, 0700, NULL));
	char *link CLEANUP(free_p) = xasprintf("%s/prog.debug", dir);
	char *to CLEANUP(free_p) = xasprintf("%s/out/prog.debug", root);
	CHECK(!symlink(to, link));
	CLEANUP(close_p) int fd = open(jail, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct debug_search search = {.open = hostfile_open_path, .root_fd = fd};
	CLEANUP(elf_free_p) struct elf *e = open_fixture("prog");
	CLEANUP(elf_free_p) struct elf *debug = NULL;
	debug = debugfile_find(e, "/srv/bin/prog", &search, NULL);
	CHECK(!debug);
	/* The same link is followed if the root is the host's. */
	char *host CLEANUP(free_p) = xasprintf("%s/srv/bin/prog", jail);
	debug = debugfile_find(e, host, &on_host, NULL);
	CHECK(debug != NULL);
}

/* What a target names in its debug information, and the place of its binary, are the target's. */
TEST(debugfile_paths_of_a_target_are_not_opened_on_the_host)
{
	CLEANUP(remove_root) char *root = make_root();
	CLEANUP(remove_root) char *host = make_root();
	put(host, "/prog.dwo", "prog");
	CLEANUP(close_p) int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct debug_search search = {.open = hostfile_open_path, .root_fd = fd};
	struct debug_search no_root = {.open = hostfile_open_path, .root_fd = -1};
	CHECK(!debugfile_open(host, "prog.dwo", &search));
	CLEANUP(elf_free_p) struct elf *e = debugfile_open(host, "prog.dwo", &no_root);
	CHECK(e != NULL);
	put(root, "/src/prog.dwo", "prog");
	CLEANUP(elf_free_p) struct elf *own = debugfile_open("/src", "../src/prog.dwo", &search);
	CHECK(own != NULL);
	/* below a directory of --debug-dir, and not above it */
	put(root, "/debug/src/prog.dwo", "prog");
	CLEANUP(free_p) char *dir = xasprintf("%s/debug", root);
	const char *dirs[] = {dir};
	struct debug_search given = {
		.open = hostfile_open_path, .root_fd = fd, .dirs = dirs, .nr_dirs = 1};
	CLEANUP(elf_free_p) struct elf *below = debugfile_open("/src", "prog.dwo", &given);
	CHECK(below != NULL);
	put(root, "/secret", "prog");
	CHECK(!debugfile_open("/src", "../../secret.dwo", &given));
	CLEANUP(free_p) char *up = xasprintf("/../..%s", host);
	CHECK(!debugfile_open(up, "prog.dwo", &given));
}

TEST(debugfile_lookup_does_not_block_on_a_fifo)
{
	CLEANUP(remove_root) char *root = make_root();
	char *fifo CLEANUP(free_p) = xasprintf("%s/prog.debug", root);
	char *prog CLEANUP(free_p) = xasprintf("%s/prog", root);
	CHECK(!mkfifo(fifo, 0600));
	CLEANUP(elf_free_p) struct elf *e = open_fixture("prog");
	CLEANUP(elf_free_p) struct elf *debug = NULL;
	debug = debugfile_find(e, prog, &on_host, NULL);
	CHECK(!debug);
}

TEST(debugfile_mini_is_decompressed)
{
	CLEANUP(elf_free_p) struct elf *e = open_fixture("mini");
	CLEANUP(elf_free_p) struct elf *mini = NULL;
	CHECK(!debugfile_mini(&mini, e, NULL));
	CHECK(mini && elf_section(mini, ".symtab"));
	CLEANUP(elf_free_p) struct elf *none = open_fixture("prog");
	CLEANUP(elf_free_p) struct elf *nothing = NULL;
	CHECK(!debugfile_mini(&nothing, none, NULL));
	CHECK(!nothing);
}

TEST(debugfile_alt_is_found_beside_the_debug_file_by_build_id)
{
	CLEANUP(remove_root) char *root = make_root();
	put(root, "/d/prog.debug", "prog.debug");
	CLEANUP(close_p) int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct debug_search search = {.open = hostfile_open_path, .root_fd = fd};
	CLEANUP(elf_free_p) struct elf *debug = open_fixture("withalt.debug");
	CLEANUP(elf_free_p) struct elf *alt = NULL;
	alt = debugfile_find_alt(debug, "/elsewhere/x.debug", &search);
	CHECK(!alt);
	alt = debugfile_find_alt(debug, "/d/x.debug", &search);
	CHECK(alt != NULL);
	CLEANUP(elf_free_p) struct elf *named = NULL;
	named = debugfile_open("/d", "../d/prog.debug", &search);
	CHECK(named != NULL);
}
