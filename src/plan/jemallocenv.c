/* Finds jemalloc's environment variables; see jemallocenv.h. */
#include "base/base.h"
#include "plan/jemallocenv.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/sv.h"
#include "host/reader/hostfile.h"
#include "plan/binaries.h"
#include "plan/heaptargets.h"

#define ENVIRON_BYTES_MAX ((size_t)4 << 20)

/* ---- of a command ---------------------------------------------------------------------------- */

void jemallocenv_release(struct jemallocenv *f)
{
	for (size_t i = 0; i < f->nr_variables; i++)
		free(f->variables[i]);
	free(f->where);
}

static void add_variable(struct jemallocenv *f, const char *name)
{
	for (size_t i = 0; i < f->nr_variables; i++)
		if (!strcmp(f->variables[i], name))
			return;
	if (f->nr_variables < JEMALLOCENV_MAX)
		f->variables[f->nr_variables++] = xstrdup(name);
}

/* The variable for a prefix: _RJEM_MALLOC_CONF for "_rjem_". */
static char *variable_of(const char *prefix)
{
	CLEANUP(buf_release) struct buf name = {0};
	for (const char *p = prefix; *p; p++)
		buf_add_ch(&name, *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p);
	buf_add_str(&name, "MALLOC_CONF");
	return buf_detach(&name);
}

/* Owns @source. */
static bool add_jemalloc_of(struct jemallocenv *f, struct heaptargets *t, struct byte_source source,
			    const char *path)
{
	const struct allocfind *a;
	CLEANUP(err_release) struct err hidden = {0}; /* not an ELF file: a script */
	if (heaptargets_file(t, source, path, &a, &hidden) || !a->jemalloc.version_text)
		return false;
	if (!f->is_known)
		f->where = xstrdup(path);
	f->is_known = true;
	f->has_prof |= a->jemalloc.has_prof;
	if (a->jemalloc.variable)
		add_variable(f, a->jemalloc.variable);
	else
		add_variable(f, "MALLOC_CONF");
	return true;
}

/* A library by name, in the usual library directories. */
static void add_library(struct jemallocenv *f, struct heaptargets *t, struct sv name)
{
	static const char *const dirs[] = {"/usr/local/lib",
					   "/usr/lib/x86_64-linux-gnu",
					   "/lib/x86_64-linux-gnu",
					   "/usr/lib/aarch64-linux-gnu",
					   "/lib/aarch64-linux-gnu",
					   "/usr/lib64",
					   "/lib64",
					   "/usr/lib",
					   "/lib"};
	if (!memmem(name.p, name.n, "jemalloc", 8))
		return;
	bool is_path = memchr(name.p, '/', name.n) != NULL;
	for (size_t i = 0; i < (is_path ? 1 : ARRAY_LEN(dirs)); i++) {
		char *path CLEANUP(free_p) = is_path ? xstrndup(name.p, name.n)
						     : xasprintf("%s/%.*s", dirs[i], SV_ARGS(name));
		struct byte_source source;
		if (!hostfile_open_path(&source, -1, path) && add_jemalloc_of(f, t, source, path))
			return;
	}
}

/* DT_NEEDED of the command only, not of its libraries. */
static void add_needed(struct jemallocenv *f, struct heaptargets *t, const char *path)
{
	struct elf *e CLEANUP(elf_free_p) = NULL;
	CLEANUP(err_release) struct err hidden = {0};
	struct sv dynamic;
	struct sv names;
	struct byte_source source;
	if (hostfile_open_path(&source, -1, path) || elf_open_source(&e, source, &hidden) ||
	    elf_named_bytes(e, ".dynamic", &dynamic, &hidden) ||
	    elf_named_bytes(e, ".dynstr", &names, &hidden))
		return;
	for (size_t at = 0; at + sizeof(Elf64_Dyn) <= dynamic.n; at += sizeof(Elf64_Dyn)) {
		Elf64_Dyn d;
		memcpy(&d, dynamic.p + at, sizeof(d));
		if (d.d_tag == DT_NULL)
			break;
		if (d.d_tag == DT_NEEDED && d.d_un.d_val < names.n) {
			const char *p = names.p + d.d_un.d_val;
			add_library(f, t, sv_from(p, strnlen(p, names.n - d.d_un.d_val)));
		}
	}
}

static void add_preloaded(struct jemallocenv *f, struct heaptargets *t)
{
	const char *text = getenv("LD_PRELOAD");
	struct sv left = sv_from_str(text ? text : "");
	while (left.n) {
		struct sv part = sv_split(&left, ' ');
		while (part.n)
			add_library(f, t, sv_split(&part, ':'));
	}
}

static void read_facts(struct jemallocenv *f, struct byte_source source, const char *path)
{
	struct heaptargets *t CLEANUP(heaptargets_free_p) = heaptargets_new(0);
	f->is_secure = source.st.st_mode & (S_ISUID | S_ISGID) ||
		       getxattr(path, "security.capability", NULL, 0) > 0;
	add_preloaded(f, t);
	add_jemalloc_of(f, t, source, path);
	add_needed(f, t, path);
}

void jemallocenv_find(struct jemallocenv *f, const char *command, const char *prefix)
{
	*f = (struct jemallocenv){0};
	static const char *const usual[] = {"MALLOC_CONF", "_RJEM_MALLOC_CONF", "JE_MALLOC_CONF"};
	CLEANUP(buf_release) struct buf path = {0};
	struct byte_source source;
	if (!binaries_open_command(&source, command, &path))
		read_facts(f, source, buf_str(&path));
	if (prefix) {
		char *name CLEANUP(free_p) = variable_of(prefix);
		add_variable(f, name);
	}
	if (f->nr_variables)
		return;
	for (size_t i = 0; i < ARRAY_LEN(usual); i++)
		add_variable(f, usual[i]);
}

/* ---- of a process ---------------------------------------------------------------------------- */

/* The last setting counts. */
static enum jemallocenv_setting setting_in(struct sv value)
{
	enum jemallocenv_setting is = JEMALLOCENV_OFF;
	while (value.n) {
		struct sv word = sv_split(&value, ',');
		if (sv_has_prefix(word, SV("prof:")))
			is = sv_eq(word, SV("prof:true")) ? JEMALLOCENV_ON : JEMALLOCENV_OFF;
	}
	return is;
}

enum jemallocenv_setting jemallocenv_prof_setting(int32_t pid, const char *variable)
{
	char *path CLEANUP(free_p) = xasprintf("/proc/%d/environ", pid);
	CLEANUP(buf_release) struct buf text = {0};
	if (hostfile_read_text(&text, path, ENVIRON_BYTES_MAX, NULL))
		return JEMALLOCENV_UNKNOWN;
	struct sv left = buf_sv(&text);
	bool has_any = false;
	while (left.n) {
		struct sv value = sv_split(&left, 0);
		struct sv name = sv_split(&value, '=');
		has_any |= value.n > 0;
		if (sv_eq_str(name, variable))
			return setting_in(value);
	}
	return has_any ? JEMALLOCENV_OFF : JEMALLOCENV_UNKNOWN;
}
