/* What the terminal can do: width, colour. Piped output depends on neither. */
#ifndef ASSAY_BASE_PROCESS_TERM_H
#define ASSAY_BASE_PROCESS_TERM_H

#include "base/base.h"

enum term_when { TERM_AUTO = 0, TERM_ALWAYS, TERM_NEVER };

/* Columns of the terminal behind fd; 80 when it is none (COLUMNS is not believed in pipes). */
int term_columns(int fd);
int term_rows(int fd);
/* AUTO: a terminal, NO_COLOR unset or empty, TERM set and not "dumb". */
bool term_has_color(int fd, enum term_when when);

#endif
