/* The HTML page; see pagehtml.h. */
#include "base/base.h"
#include "render/page/pagehtml.h"

#include "base/file/zio.h"
#include "base/text/escape.h"
#include "base/text/json.h"
#include "page_hash.h"
#include "render/assets.h"
#include "base/text/base64.h"
#include "render/page/pagepack.h"

static void add_head(struct buf *to, const struct page *page)
{
	buf_add_str(to,
		    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		    "script-src 'sha256-" PAGE_JS_HASH
		    "'; worker-src blob:; style-src 'unsafe-inline'; "
		    "img-src data:; form-action 'none'; base-uri 'none'\">\n"
		    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		    "<meta name=\"color-scheme\" content=\"light dark\">\n"
		    "<meta name=\"referrer\" content=\"no-referrer\">\n"
		    "<meta name=\"generator\" content=\"assay\">\n<title>");
	escape_xml(to, sv_from_str(page->title));
	buf_add_str(to, "</title>\n<style>");
	buf_add_sv(to, asset_page_css());
	buf_add_str(to, "</style>\n</head>\n");
}

static void add_static(struct buf *to, const struct page *page, const struct pagehtml_parts *parts)
{
	buf_add_str(to, "<body>\n<div id=\"app\" hidden></div>\n<main id=\"static\">\n<h1>");
	escape_xml(to, sv_from_str(page->title));
	buf_add_str(to,
		    "</h1>\n<p id=\"problem\">This page needs a browser with JavaScript for its "
		    "views. Its text:</p>\n<pre>");
	escape_xml_lines(to, parts->text);
	buf_add_str(to, "</pre>\n");
	if (parts->picture.n) {
		struct sv svg = parts->picture;
		const char *start = memmem(svg.p, svg.n, "<svg", 4);
		if (start)
			buf_add_sv(to, sv_from_idx(svg, (size_t)(start - svg.p)));
	}
	buf_add_str(to, "</main>\n");
}

static void add_zipped(struct buf *to, struct sv bytes)
{
	CLEANUP(buf_release) struct buf z = {0};
	bool is_zipped = !zio_compress_embedded(&z, bytes.p, bytes.n, NULL);
	base64_add(to, is_zipped ? buf_sv(&z) : bytes);
}

static void add_rows(struct buf *to, const struct page *page, const char *input)
{
	CLEANUP(buf_release) struct buf packed = {0};
	pagepack_write(&packed, page);
	buf_add_str(to, "<script type=\"application/x-assay-page\" id=\"data\" data-input=\"");
	escape_xml(to, sv_from_str(input ? input : ""));
	buf_add_str(to, "\">");
	add_zipped(to, buf_sv(&packed));
	buf_add_str(to, "</script>\n");
}

/* Those that are worth a look; files are numbered in the order of their first line. */
static size_t skip_small(const struct page *page, size_t i)
{
	while (i < page->nr_lines && page->lines[i].total < page->lines_weight / LINES_MIN_SHARE)
		i++;
	return i;
}

static void add_functions(struct json *j, const struct page *page, struct intern *files)
{
	const struct page_line *last = NULL;
	json_put_arr(j, "functions");
	for (size_t i = skip_small(page, 0); i < page->nr_lines; i = skip_small(page, i + 1)) {
		const struct page_line *l = &page->lines[i];
		bool is_same = last && !strcmp(last->function, l->function) &&
			       !strcmp(last->module, l->module);
		if (!is_same) {
			if (last) {
				json_end(j);
				json_end(j);
			}
			json_arr(j);
			json_str(j, l->function);
			json_str(j, l->module);
			json_arr(j);
		}
		last = l;
		json_arr(j);
		json_u64(j, intern_add_str(files, l->file) - 1);
		json_u64(j, l->line);
		json_u64(j, l->self);
		json_u64(j, l->total);
		if (*l->text)
			json_str(j, l->text);
		json_end(j);
	}
	if (last) {
		json_end(j);
		json_end(j);
	}
	json_end(j);
}

/* Source lines of functions, read when one is selected. */
static void add_lines(struct buf *to, const struct page *page)
{
	CLEANUP(intern_release) struct intern files = {0};
	CLEANUP(buf_release) struct buf text = {0};
	struct json j = json_to(&text);
	if (skip_small(page, 0) >= page->nr_lines)
		return;
	json_obj(&j);
	json_put_str(&j, "title", page->streams.n ? page->streams.p[0].title : "");
	json_put_u64(&j, "all", page->lines_weight);
	add_functions(&j, page, &files);
	json_put_arr(&j, "files");
	for (size_t i = 1; i < intern_count(&files); i++)
		json_str(&j, intern_str(&files, (uint32_t)i));
	json_end(&j);
	json_end(&j);
	buf_add_str(to, "<script type=\"application/x-assay-lines\" id=\"lines\">");
	add_zipped(to, buf_sv(&text));
	buf_add_str(to, "</script>\n");
}

static void add_insn(struct json *j, const struct page_insn *i, uint64_t *last)
{
	if (i->nr_before)
		json_u64(j, i->nr_before);
	json_arr(j);
	json_u64(j, i->vaddr - *last);
	json_str(j, i->text);
	*last = i->vaddr;
	if (i->place) {
		json_u64(j, i->place);
		json_str(j, i->line);
		if (*i->source)
			json_str(j, i->source);
	}
	json_end(j);
}

/* Assembly, read when a function is selected. */
static void add_code(struct buf *to, const struct page *page)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct json j = json_to(&text);
	if (!page->code.n)
		return;
	json_obj(&j);
	json_put_str(&j, "title", page->streams.n ? page->streams.p[0].title : "");
	json_put_arr(&j, "functions");
	for (size_t i = 0; i < page->code.n; i++) {
		const struct page_function *f = &page->code.functions[i];
		uint64_t last = 0;
		json_arr(&j);
		json_str(&j, f->name);
		json_str(&j, f->module);
		json_str(&j, f->missing ? f->missing : "");
		json_arr(&j);
		for (size_t k = 0; k < f->nr_insns; k++)
			add_insn(&j, &f->insns[k], &last);
		if (f->nr_after)
			json_u64(&j, f->nr_after);
		json_end(&j);
		json_end(&j);
	}
	json_end(&j);
	json_end(&j);
	buf_add_str(to, "<script type=\"application/x-assay-code\" id=\"code\">");
	add_zipped(to, buf_sv(&text));
	buf_add_str(to, "</script>\n");
}

void pagehtml_add_data(struct buf *to, const struct page *page, const char *input)
{
	add_rows(to, page, input);
	add_lines(to, page);
	add_code(to, page);
}

void pagehtml_add_recording(struct buf *to, struct sv recording, struct sv rows)
{
	buf_add_str(to, "<script type=\"application/x-assay-recording\">");
	base64_add(to, recording);
	buf_add_str(to, "</script>\n<script type=\"application/x-assay-rows\">");
	add_zipped(to, rows);
	buf_add_str(to, "</script>\n");
}

void pagehtml_write(struct buf *to, const struct page *page, const struct pagehtml_parts *parts)
{
	add_head(to, page);
	add_static(to, page, parts);
	buf_add_str(to, "<script>");
	buf_add_sv(to, asset_page_js());
	buf_add_str(to, "</script>\n");
	buf_add_sv(to, parts->data);
	buf_add_sv(to, parts->recording);
	buf_add_str(to, "</body>\n</html>\n");
}
