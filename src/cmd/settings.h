/*
 * Settings: values of options that hold for every command which has the option, from the
 * environment and from files. A row of settings_table names an option of a group; its help, type and
 * limits are those of the option.
 *
 * A value comes from the first of: the option, the variable ASSAY_KEY, the user's file
 * ($ASSAY_CONFIG, else $XDG_CONFIG_HOME/assay/config), /etc/assay/config. Files have lines
 * "key = value" or, as .env files, "ASSAY_KEY=value"; other variables in capitals are skipped there.
 *
 * A file is read only if this user or root owns it and nobody else may write it; root reads only
 * root's. A refused file and an unknown key are notes, a wrong value is a usage error.
 */
#ifndef ASSAY_CMD_SETTINGS_H
#define ASSAY_CMD_SETTINGS_H

#include "base/arena.h"
#include "base/base.h"
#include "base/opt/opt.h"
#include "base/vec.h"

#define SETTING_GROUPS_MAX 2

struct setting {
	const char *key; /* in files; ASSAY_KEY in the environment */
	const struct opt_group *groups[SETTING_GROUPS_MAX]; /* the same option in each */
	const char *option;                                 /* its long name */
	const char *standard; /* the value without a setting, as shown */
};

extern const struct setting settings_table[];
extern const size_t nr_settings;

/* The value of a row. */
struct setting_value {
	const char *text; /* NULL: not set */
	const char *origin;
};

enum settings_file_state { SETTINGS_FILE_ABSENT, SETTINGS_FILE_READ, SETTINGS_FILE_REFUSED };

struct settings_file {
	const char *path;
	enum settings_file_state state;
	const char *reason; /* if refused */
};

struct settings_note {
	const char *text;
	const char *hint; /* or NULL */
};

struct settings {
	struct arena arena;
	struct setting_value *values; /* nr_settings */
	VEC(struct opt_preset) presets;
	VEC(struct settings_file)
	files; /* in the order in which they are read: the last one wins */
	VEC(struct settings_note) notes;
};

/* Reads files and environment. */
void settings_read(struct settings *s);
void settings_release(struct settings *s);
/* The name of a row's variable: "ASSAY_MAX_SIZE"; in the arena. */
const char *setting_variable(struct arena *a, const struct setting *row);
/* Returns the option of a row, for its help. */
const struct opt *setting_option(const struct setting *row);

#endif
