/* Properties of the terminal: width, height, colour. Piped output depends on none of them. */
#ifndef ASSAY_BASE_PROCESS_TERM_H
#define ASSAY_BASE_PROCESS_TERM_H

#include "base/base.h"

enum term_when { TERM_AUTO = 0, TERM_ALWAYS, TERM_NEVER };

/* Columns of the terminal @fd; 80 if it is not a terminal (COLUMNS is ignored then). */
int term_columns(int fd);
/* Rows of the terminal @fd; 24 if it is not a terminal. */
int term_rows(int fd);
/* Whether to use colour. TERM_AUTO: on a terminal, unless NO_COLOR is set or TERM is "dumb". */
bool term_has_color(int fd, enum term_when when);

#endif
