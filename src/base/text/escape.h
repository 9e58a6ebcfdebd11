/*
 * Escaping into a buf, one function a sink: nothing that a target named may end a string, a tag
 * or a terminal line. Input is any bytes; invalid UTF-8 becomes U+FFFD, control bytes become
 * visible \xNN (XML cannot hold them at all).
 */
#ifndef ASSAY_BASE_TEXT_ESCAPE_H
#define ASSAY_BASE_TEXT_ESCAPE_H

#include "base/base.h"
#include "base/buf.h"

void escape_xml(struct buf *to, struct sv s);  /* text and attribute values alike */
void escape_json(struct buf *to, struct sv s); /* without the quotes */
void escape_term(struct buf *to, struct sv s); /* safe to print on a terminal */
/* One word for a shell, quoted if it must be. Control characters stay: print it escaped. */
void escape_shell(struct buf *to, struct sv s);
/* A directory or file name from a foreign string: [A-Za-z0-9._-], never empty, no leading dot. */
void escape_filename(struct buf *to, struct sv s);
/* Length of the valid UTF-8 sequence at s, or 0. */
size_t utf8_len(struct sv s);

#endif
