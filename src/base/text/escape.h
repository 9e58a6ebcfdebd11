/*
 * Escaping of untrusted text (names from targets and files), one function per output format. Each
 * appends to a buf and takes any bytes. Control bytes become the text \xNN in XML and on a terminal,
 * \u00NN (or \n, \t) in JSON. Invalid UTF-8 becomes U+FFFD in XML and JSON, \xNN on a terminal.
 */
#ifndef ASSAY_BASE_TEXT_ESCAPE_H
#define ASSAY_BASE_TEXT_ESCAPE_H

#include "base/base.h"
#include "base/buf.h"

void escape_xml(struct buf *to, struct sv s);       /* text and attribute values alike */
void escape_xml_lines(struct buf *to, struct sv s); /* ends of lines stay, as within <pre> */
void escape_json(struct buf *to, struct sv s);      /* without the quotes */
void escape_term(struct buf *to, struct sv s);      /* safe to print on a terminal */
/* One shell word, quoted if necessary. Control characters stay: use escape_term to print it. */
void escape_shell(struct buf *to, struct sv s);
/* A file name from an untrusted string: [A-Za-z0-9._-], never empty, no leading dot. */
void escape_filename(struct buf *to, struct sv s);
/* Length of the valid UTF-8 sequence at s, or 0. */
size_t utf8_len(struct sv s);
/* Number of terminal columns, one per code point. */
size_t utf8_columns(struct sv s);

#endif
