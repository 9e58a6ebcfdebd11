/* host/cachedir: a folder of another user is neither used nor changed. */
#include "base/base.h"
#include "tap.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "host/cachedir.h"

static char home[64];

static void set_up(void)
{
	(void)snprintf(home, sizeof(home), "/tmp/assay-cachedir-XXXXXX");
	CHECK(mkdtemp(home) && !chdir(home));
	CHECK(!setenv("HOME", home, 1) && !unsetenv("XDG_CACHE_HOME"));
}

static void tear_down(void)
{
	(void)rmdir(".cache/assay");
	(void)unlink(".cache");
	(void)rmdir(".cache");
	(void)rmdir("other");
	(void)rmdir("xdg/assay");
	(void)rmdir("xdg");
	CHECK(!rmdir(home));
}

static bool is_given(void)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(free_p) char *dir = host_cache_dir(&err);
	CHECK(!dir == (err.code != 0));
	return dir != NULL;
}

TEST(cachedir_is_made_below_the_own_home_or_the_xdg_folder)
{
	struct stat st;
	set_up();
	CHECK(is_given() && !stat(".cache/assay", &st) && (st.st_mode & 07777) == 0700);
	CLEANUP(free_p) char *xdg = xasprintf("%s/xdg", home);
	CHECK(!setenv("XDG_CACHE_HOME", xdg, 1));
	CHECK(is_given() && !stat("xdg/assay", &st) && (st.st_mode & 07777) == 0700);
	CHECK(!unsetenv("XDG_CACHE_HOME") && !unsetenv("HOME") && !is_given());
	tear_down();
}

TEST(cachedir_that_others_may_write_is_not_used)
{
	struct stat st;
	set_up();
	CHECK(!chmod(home, 01777) && !is_given());
	CHECK(lstat(".cache", &st));
	CHECK(!chmod(home, 0755) && is_given());
	CHECK(!chmod(".cache/assay", 0770) && !is_given());
	CHECK(!rmdir(".cache/assay") && !mkdir("other", 0700));
	CHECK(!symlink("../other", ".cache/assay") && !is_given());
	(void)unlink(".cache/assay");
	tear_down();
}

TEST(cachedir_of_another_user_is_left_alone)
{
	struct stat st;
	if (geteuid())
		tap_skip("needs root");
	set_up();
	CHECK(!chown(home, 65534, 65534) && !is_given());
	CHECK(lstat(".cache", &st)); /* nothing was created in it */
	CHECK(!chown(home, 0, 0));
	CHECK(!mkdir("other", 0700) && !chown("other", 65534, 65534) &&
	      !symlink("other", ".cache"));
	CHECK(!is_given());
	CHECK(lstat("other/assay", &st));
	tear_down();
}
