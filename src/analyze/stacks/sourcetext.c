/* The text of source lines in tables; see sourcetext.h. */
#include "base/base.h"
#include "analyze/stacks/sourcetext.h"

static const struct report_column source_column = {"source", "source", CELL_TEXT,
						   "text of that line (--source)", .is_code = true};

/* Columns that groupings by line have. */
static bool has_lines(const struct report_column *c)
{
	static const char *const keys[] = {"line", "caller", "callee"};
	for (size_t i = 0; c->kind == CELL_TEXT && i < ARRAY_LEN(keys); i++)
		if (!strcmp(c->key, keys[i]))
			return true;
	return false;
}

static const char *text_of(struct arena *a, const struct code_access *code, const char *name)
{
	const char *colon = strrchr(name, ':');
	uint64_t line;
	if (!colon || !sv_to_u64(sv_from_str(colon + 1), &line) || line > UINT32_MAX)
		return "";
	const char *file = arena_strndup(a, name, (size_t)(colon - name));
	return code->line(code->ctx, a, file, (uint32_t)line) ?: "";
}

void sourcetext_add(struct report *r, const struct code_access *code)
{
	vec_foreach(t, &r->tables) {
		size_t c = 0;
		while (c < t->nr_columns && !has_lines(&t->columns[c]))
			c++;
		if (c == t->nr_columns)
			continue;
		const char **texts = arena_calloc(&r->arena, t->nr_rows, sizeof(*texts));
		bool has_any = false;
		for (size_t i = 0; i < t->nr_rows; i++) {
			texts[i] = text_of(&r->arena, code, t->cells[i * t->nr_columns + c].text);
			has_any |= *texts[i] != '\0';
		}
		if (has_any)
			report_add_text_column(r, t, &source_column, texts);
	}
}
