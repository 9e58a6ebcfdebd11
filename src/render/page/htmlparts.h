/*
 * Parts of self-contained HTML pages that are markup: the head with its content security policy, which
 * allows no request, the report's sentences, tables and losses. Everything from a profile is escaped.
 *
 *	html_add_start(&b, report, title, "");    the page is in <main> now
 *	html_add_table(&b, table);                and so on
 *	"</main>", html_add_losses, "</body></html>"
 */
#ifndef ASSAY_RENDER_PAGE_HTMLPARTS_H
#define ASSAY_RENDER_PAGE_HTMLPARTS_H

#include "analyze/report.h"
#include "base/base.h"
#include "base/buf.h"
#include "base/sv.h"

/* @script_policy: "script-src 'sha256-...'; ", or empty: no scripts. */
void html_add_start(struct buf *to, const struct report *r, const char *title,
		    const char *script_policy);
void html_add_line(struct buf *to, const char *tag, const char *class, struct sv text);
void html_add_table(struct buf *to, const struct report_table *t);
void html_add_losses(struct buf *to, const struct report *r);

#endif
