/* Converts hints to command lines; see hints.h. */
#include "base/base.h"
#include "cmd/hints.h"

#include "base/text/escape.h"
#include "base/sv.h"

/* Names of commands and options, by enum of analyze/report.h. */
static const char *const commands[] = {
	[HINT_FLAME] = "flame",
	[HINT_REPORT] = "report",
	[HINT_HEAP] = "heap",
	[HINT_DIAGNOSE] = "diagnose",
};
static const char *const options[] = {
	[HINT_END] = NULL,
	[HINT_EVENT] = "--event",
	[HINT_WEIGHT] = "--weight",
	[HINT_TREE] = "--tree",
	[HINT_CALLERS] = "--callers",
	[HINT_BLAME] = "--blame",
	[HINT_BY] = "--by",
	[HINT_PID] = "-p",
	[HINT_SAMPLE] = "--sample",
};

static bool add_word(struct buf *to, const char *word)
{
	for (const char *c = word; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return false;
	buf_add_ch(to, ' ');
	escape_shell(to, sv_from_str(word));
	return true;
}

bool hint_add_words(struct buf *to, const struct report_hint *h)
{
	buf_addf(to, "assay %s", commands[h->command]);
	if (h->input && !add_word(to, h->input))
		return false;
	for (size_t i = 0; i < HINT_OPTIONS_MAX && h->options[i].key; i++) {
		buf_addf(to, " %s", options[h->options[i].key]);
		if (h->options[i].value && !add_word(to, h->options[i].value))
			return false;
	}
	return true;
}
