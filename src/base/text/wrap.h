/* Wraps sentences at words. */
#ifndef ASSAY_BASE_TEXT_WRAP_H
#define ASSAY_BASE_TEXT_WRAP_H

#include "base/base.h"
#include "base/buf.h"
#include "base/sv.h"

/*
 * Appends text from column @column on, in lines of at most @width columns (0: one line); further
 * lines are indented by @indent. A word that is longer than a line is broken. No newline at the end.
 */
void wrap_add(struct buf *to, struct sv text, size_t column, size_t indent, size_t width);

#endif
