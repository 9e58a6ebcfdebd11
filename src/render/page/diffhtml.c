/* The HTML page of a comparison; see diffhtml.h. */
#include "base/base.h"
#include "render/page/diffhtml.h"

#include "diff_hash.h"
#include "render/assets.h"
#include "render/page/htmlparts.h"

static bool has_marks(const struct report_table *t)
{
	for (size_t c = 0; c < t->nr_columns; c++)
		if (!strcmp(t->columns[c].key, "note"))
			return true;
	return false;
}

static void add_picture(struct buf *to, struct sv picture)
{
	const char *start = picture.n ? memmem(picture.p, picture.n, "<svg", 4) : NULL;
	if (!start)
		return;
	buf_add_str(to, "<div class=\"picture\">\n");
	buf_add_sv(to, sv_from_idx(picture, (size_t)(start - picture.p)));
	buf_add_str(to, "</div>\n");
}

void diffhtml_write(struct buf *to, const struct report *r, const char *title, struct sv picture)
{
	html_add_start(to, r, title, "script-src 'sha256-" DIFF_JS_HASH "'; ");
	/* The picture stands before the first table of rows that can be marked. */
	bool has_picture = false;
	vec_foreach(t, &r->tables) {
		if (!has_picture && strcmp(t->key, "total") != 0 && has_marks(t)) {
			add_picture(to, picture);
			has_picture = true;
		}
		html_add_table(to, t);
	}
	buf_add_str(to, "</main>\n");
	html_add_losses(to, r);
	buf_add_str(to, "<script>");
	buf_add_sv(to, asset_diff_js());
	buf_add_str(to, "</script>\n</body>\n</html>\n");
}
