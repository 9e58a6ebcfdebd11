/* The table of settings and where their values come from; see settings.h. */
#include "base/base.h"
#include "cmd/settings.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/mem.h"
#include "base/sv.h"
#include "base/text/suggest.h"
#include "cmd/capture/capture_command.h"
#include "cmd/cmd_table.h"
#include "cmd/optgroups.h"
#include "render/renderers.h"

#define SYSTEM_FILE    "/etc/assay/config"
#define FILE_BYTES_MAX ((size_t)64 << 10)
#define PREFIX         "ASSAY_"

extern char **environ;

/* In the order in which they are shown. */
const struct setting settings_table[] = {
	{"out", {&common_group}, "dir", "./profiling"},
	{"rate", {&capture_freq_group}, "freq", "by length"},
	{"limit", {&capture_group}, "limit", "by table"},
	{"no-bpf", {&capture_group}, "no-bpf", "no"},
	{"no-pictures", {&capture_group}, "no-pictures", "no"},
	{"svg", {&capture_group}, "svg", "no"},
	{"no-inlines", {&capture_group, &convert_names_group}, "no-inlines", "no"},
	{"jit-map", {&capture_group}, "jit-map", "no"},
	{"debug-dir", {&capture_group, &convert_names_group}, "debug-dir", "none"},
	{"source", {&source_group}, "source", "none"},
	{"redact", {&share_group}, "redact", "no"},
	{"with-args", {&share_group}, "with-args", "no"},
	{"width", {&renderer_group}, "width", "the terminal's, or 120"},
	{"details", {&renderer_group}, "details", "no"},
	{"color", {&common_group}, "color", "auto"},
	{"progress", {&common_group}, "progress", "auto"},
	{"quiet", {&common_group}, "quiet", "no"},
	{"keep", {&clean_group}, "keep", "all"},
	{"max-size", {&clean_group}, "max-size", "any"},
};
const size_t nr_settings = ARRAY_LEN(settings_table);

const struct opt *setting_option(const struct setting *row)
{
	return opt_of_group(row->groups[0], row->option);
}

const char *setting_variable(struct arena *a, const struct setting *row)
{
	char *name = arena_fmt(a, PREFIX "%s", row->key);
	for (char *c = name; *c; c++)
		*c = (char)(*c == '-' ? '_' : toupper((unsigned char)*c));
	return name;
}

static void add_note(struct settings *s, const char *hint, const char *text)
{
	vec_push(&s->notes, (struct settings_note){.text = text, .hint = hint});
}

/* ---- keys ----------------------------------------------------------------------------------- */

/* "ASSAY_MAX_SIZE" and "max-size" are one key. */
static const char *key_of(struct arena *a, struct sv name)
{
	if (!sv_has_prefix(name, SV(PREFIX)))
		return arena_strndup(a, name.p, name.n);
	struct sv rest = sv_from_idx(name, strlen(PREFIX));
	char *key = arena_strndup(a, rest.p, rest.n);
	for (char *c = key; *c; c++)
		*c = (char)(*c == '_' ? '-' : tolower((unsigned char)*c));
	return key;
}

/* The variables of other programs in an .env file. */
static bool is_foreign(struct sv name)
{
	bool has_letter = false;
	for (size_t i = 0; i < name.n; i++) {
		if (islower((unsigned char)name.p[i]))
			return false;
		has_letter |= isupper((unsigned char)name.p[i]);
	}
	return has_letter && !sv_has_prefix(name, SV(PREFIX));
}

static void set(struct settings *s, struct sv name, struct sv value, const char *origin)
{
	const char *key = key_of(&s->arena, name);
	struct suggest near = suggest_for(sv_from_str(key));
	for (size_t i = 0; i < nr_settings; i++) {
		if (!strcmp(settings_table[i].key, key)) {
			s->values[i] = (struct setting_value){
				arena_strndup(&s->arena, value.p, value.n), origin};
			return;
		}
		suggest_offer(&near, sv_from_str(settings_table[i].key));
	}
	add_note(s,
		 near.best.n ? arena_fmt(&s->arena, "did you mean '%.*s'?", SV_ARGS(near.best))
			     : "list the settings with: assay config",
		 arena_fmt(&s->arena, "%s: there is no setting '%s', ignoring", origin, key));
}

/* ---- files ---------------------------------------------------------------------------------- */

static struct sv unquoted(struct sv value)
{
	bool is_quoted = value.n > 1 && (value.p[0] == '"' || value.p[0] == '\'') &&
			 value.p[value.n - 1] == value.p[0];
	return is_quoted ? sv_from(value.p + 1, value.n - 2) : value;
}

static void read_line(struct settings *s, const char *path, unsigned line_nr, struct sv line)
{
	line = sv_trim(line);
	if (!line.n || line.p[0] == '#')
		return;
	if (sv_has_prefix(line, SV("export ")))
		line = sv_trim(sv_from_idx(line, strlen("export ")));
	const char *origin = arena_fmt(&s->arena, "%s:%u", path, line_nr);
	bool has_value = sv_index(line, '=') > 0;
	struct sv name = sv_trim(sv_split(&line, '='));
	if (!has_value)
		add_note(s, NULL,
			 arena_fmt(&s->arena, "%s: expected 'key = value', ignoring", origin));
	else if (!is_foreign(name))
		set(s, name, unquoted(sv_trim(line)), origin);
}

/* Whoever can write the file decides what assay does; for root only root may. */
static const char *why_refused(struct arena *a, const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return "it is not a regular file";
	if (st->st_uid && !geteuid())
		return arena_fmt(a, "it belongs to user %u, and assay runs as root", st->st_uid);
	if (st->st_uid && st->st_uid != geteuid())
		return arena_fmt(a, "it belongs to user %u", st->st_uid);
	return st->st_mode & 022 ? "other users may write it" : NULL;
}

/* A home of another user (su, setpriv) is not there for this one, unless it was named. */
static bool is_absent(int error, bool is_named)
{
	return error == ENOENT || error == ENOTDIR || (error == EACCES && !is_named);
}

static void read_file(struct settings *s, struct settings_file *f, bool is_named)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(close_p) int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	if (fd < 0 && is_absent(errno, is_named))
		return;
	f->state = SETTINGS_FILE_REFUSED;
	if (fd < 0 || fstat(fd, &st)) {
		f->reason = strerror(errno);
		return;
	}
	f->reason = why_refused(&s->arena, &st);
	if (f->reason)
		return;
	if (file_read_fd(&text, fd, FILE_BYTES_MAX, &err)) {
		f->reason = arena_strdup(&s->arena, err_msg(&err));
		return;
	}
	f->state = SETTINGS_FILE_READ;
	unsigned line_nr = 0;
	for (struct sv left = buf_sv(&text); left.n;)
		read_line(s, f->path, ++line_nr, sv_split(&left, '\n'));
}

static const char *user_file(struct arena *a)
{
	const char *named = getenv(PREFIX "CONFIG");
	const char *xdg = getenv("XDG_CONFIG_HOME");
	const char *home = getenv("HOME");
	if (named && *named)
		return named;
	if (xdg && xdg[0] == '/')
		return arena_fmt(a, "%s/assay/config", xdg);
	return home && home[0] == '/' ? arena_fmt(a, "%s/.config/assay/config", home) : NULL;
}

static void add_file(struct settings *s, const char *path, bool is_named)
{
	struct settings_file f = {.path = path};
	read_file(s, &f, is_named);
	vec_push(&s->files, f);
	if (f.state == SETTINGS_FILE_REFUSED)
		add_note(s,
			 arena_fmt(&s->arena, "it must be %s, and writable only by its owner",
				   geteuid() ? "yours or root's" : "root's"),
			 arena_fmt(&s->arena, "settings of '%s' are not used: %s", path, f.reason));
	else if (f.state == SETTINGS_FILE_ABSENT && is_named)
		add_note(s, NULL,
			 arena_fmt(&s->arena, PREFIX "CONFIG: there is no file '%s'", path));
}

/* ---- all of them ---------------------------------------------------------------------------- */

static void read_environment(struct settings *s)
{
	for (char **e = environ; *e; e++) {
		struct sv value = sv_from_str(*e);
		struct sv name = sv_split(&value, '=');
		if (!sv_has_prefix(name, SV(PREFIX)) || sv_eq(name, SV(PREFIX "CONFIG")))
			continue;
		set(s, name, value, arena_strndup(&s->arena, name.p, name.n));
	}
}

/* A list has a preset for each of its parts, which colons separate. */
static void add_presets(struct settings *s, size_t row)
{
	const struct setting *t = &settings_table[row];
	struct sv left = sv_from_str(s->values[row].text);
	bool is_list = setting_option(t)->kind == OPT_KIND_LIST;
	do {
		struct sv part = is_list ? sv_split(&left, ':') : left;
		const char *text = arena_strndup(&s->arena, part.p, part.n);
		for (size_t g = 0; g < SETTING_GROUPS_MAX && t->groups[g]; g++)
			vec_push(&s->presets, (struct opt_preset){t->groups[g], t->option, text,
								  s->values[row].origin});
	} while (is_list && left.n);
}

void settings_read(struct settings *s)
{
	*s = (struct settings){0};
	s->values = arena_calloc(&s->arena, nr_settings, sizeof(*s->values));
	const char *own = user_file(&s->arena);
	add_file(s, SYSTEM_FILE, false);
	if (own)
		add_file(s, own, getenv(PREFIX "CONFIG") != NULL);
	read_environment(s);
	for (size_t i = 0; i < nr_settings; i++)
		if (s->values[i].text && *s->values[i].text)
			add_presets(s, i);
}

void settings_release(struct settings *s)
{
	vec_release(&s->presets);
	vec_release(&s->files);
	vec_release(&s->notes);
	arena_release(&s->arena);
	*s = (struct settings){0};
}
