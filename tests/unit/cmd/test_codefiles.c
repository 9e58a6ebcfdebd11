/* cmd/codefiles: which source file a recorded path leads to. */
#include "base/base.h"
#include "cmd/codefiles.h"
#include "tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/mem.h"

struct tree {
	char dir[64];
	struct codefiles c;
	struct arena a;
};

static void add_file(const struct tree *t, const char *path, const char *text)
{
	CLEANUP(free_p) char *full = xasprintf("%s/%s", t->dir, path);
	for (char *s = full + strlen(t->dir) + 1; (s = strchr(s, '/')); *s++ = '/') {
		*s = '\0';
		(void)mkdir(full, 0700);
	}
	CLEANUP(buf_release) struct buf b = {0};
	buf_add_str(&b, text);
	CHECK(!out_file(full, 0600, &b, NULL));
}

static void begin(struct tree *t, const char *folder)
{
	*t = (struct tree){.dir = "/tmp/codefiles-XXXXXX"};
	CHECK(mkdtemp(t->dir) != NULL);
	add_file(t, "proj/src/lib.rs", "one\n\t two  \r\nthree");
	add_file(t, "secret", "outside\n");
	CLEANUP(free_p) char *link = xasprintf("%s/proj/src/link.rs", t->dir);
	CHECK(!symlink("../../secret", link));
	CLEANUP(free_p)
	char *eq = strchr(folder, '=')
			   ? xasprintf("%.*s", (int)(strchr(folder, '=') - folder + 1), folder)
			   : xstrdup("");
	CLEANUP(free_p) char *full = xasprintf("%s%s/%s", eq, t->dir, folder + strlen(eq));
	codefiles_init(&t->c);
	CHECK(!codefiles_add_source(&t->c, full, NULL));
}

static void end(struct tree *t)
{
	CLEANUP(free_p) char *command = xasprintf("rm -rf '%s'", t->dir);
	codefiles_release(&t->c);
	arena_release(&t->a);
	CHECK(!system(command));
}

static const char *line(struct tree *t, const char *path, uint32_t nr)
{
	return t->c.access.line(t->c.access.ctx, &t->a, path, nr);
}

TEST(codefiles_takes_what_follows_the_name_of_the_folder)
{
	struct tree t;
	begin(&t, "proj");
	CHECK_STR(line(&t, "/build/proj/src/lib.rs", 1), "one");
	CHECK_STR(line(&t, "/build/proj/src/lib.rs", 2), "two"); /* without blanks */
	CHECK_STR(line(&t, "/build/./x/../proj/src/lib.rs", 3), "three");
	CHECK(!line(&t, "/build/proj/src/lib.rs", 4));
	CHECK(!line(&t, "/build/proj/src/lib.rs", 0));
	CHECK_STR(line(&t, "src/lib.rs", 1), "one");
	CHECK(!line(&t, "/registry/serde/src/lib.rs", 1)); /* of another crate */
	end(&t);
}

TEST(codefiles_takes_its_own_path_and_prefixes)
{
	struct tree t;
	begin(&t, "proj");
	CLEANUP(free_p) char *own = xasprintf("%s/proj/src/lib.rs", t.dir);
	CHECK_STR(line(&t, own, 1), "one");
	end(&t);
	begin(&t, "/app=proj/src");
	CHECK_STR(line(&t, "/app/lib.rs", 1), "one");
	CHECK(!line(&t, "/application/lib.rs", 1));
	CHECK(!line(&t, "/build/src/lib.rs", 1)); /* only what the prefix says */
	end(&t);
}

TEST(codefiles_opens_nothing_outside_of_the_folder)
{
	struct tree t;
	begin(&t, "proj");
	CHECK(!line(&t, "/build/proj/../../secret", 1));
	CHECK(!line(&t, "../secret", 1));
	const char *text = line(&t, "/build/proj/src/link.rs", 1);
	CHECK(!text || !strstr(text, "outside"));
	end(&t);
}

TEST(codefiles_says_what_was_not_found)
{
	struct tree t;
	CLEANUP(buf_release) struct buf note = {0};
	begin(&t, "proj");
	codefiles_add_note(&note, &t.c);
	CHECK_U64(note.n, 0);
	CHECK(!line(&t, "/app/x.c", 1));
	codefiles_add_note(&note, &t.c);
	CHECK(strstr(buf_str(&note), "'/app/x.c'") != NULL);
	buf_clear(&note);
	t.c.recorded_ns = 1;
	CHECK_STR(line(&t, "src/lib.rs", 1), "one");
	codefiles_add_note(&note, &t.c);
	CHECK(strstr(buf_str(&note), "changed after the recording") != NULL);
	end(&t);
	struct codefiles c = {0};
	codefiles_init(&c);
	CHECK(codefiles_add_source(&c, "/no/such/folder", NULL) == -ENOENT);
	CHECK(!c.access.line);
	codefiles_release(&c);
}
