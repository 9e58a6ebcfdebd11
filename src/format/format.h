/*
 * The table of formats: what `assay report FILE` recognises and `assay convert --to NAME` writes.
 * To add one: a file here, a row in format.c, docs/formats/NAME.md, fixtures.
 *
 * A reader fills a new profile and leaves sealing to the caller. What it cannot parse it counts
 * in the profile's losses and goes on; it fails only when the input is not of its format at all.
 * Writers take a sealed profile and give the same bytes for the same profile.
 */
#ifndef ASSAY_FORMAT_FORMAT_H
#define ASSAY_FORMAT_FORMAT_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/file/file.h"
#include "format/folded.h"
#include "format/heap/heapsteps.h"
#include "format/heap/jemallocheap.h"
#include "format/perf/perfdata.h"
#include "format/perf/perfscript.h"
#include "model/profile.h"

/* What a reader reads: bytes that are there, then, if fd is not -1, the rest of a stream. */
struct format_input {
	struct sv head;
	int fd;
};

/* What a writer writes: into buf, from where it goes on to file now and then. */
struct format_output {
	struct buf buf;
	struct out *file; /* NULL: all of it stays in buf */
};
/* Called by writers between records: hands buf on once it is large. */
int format_spill(struct format_output *to, struct err *err);
/* Hands on what is left; called once by whoever owns the output. */
int format_flush(struct format_output *to, struct err *err);

/* What all formats share, and one member a format that has options of its own; zero: default. */
struct format_options {
	/*
	 * Read or write this event alone (as named, or without modifiers). NULL: all of them, or
	 * the first that has samples where a format holds one. When reading, samples of others are
	 * LOSS_FILTERED.
	 */
	const char *event;
	struct folded_options folded;
	struct perfscript_options perfscript;
	struct perfdata_options perfdata;
	struct jemallocheap_options jemallocheap;
	struct heapwrite_options heapwrite;
};

enum format_flags {
	FORMAT_NEEDS_INGEST = 1 << 0, /* holds events: ingest/ reads it, not `read` */
	FORMAT_NEEDS_NAMES = 1 << 1,  /* holds addresses: `read` leaves locations unnamed */
};

/* How sure the head is of this format, 0 (is not) to 100. */
typedef int format_sniff_fn(struct sv head);
typedef int format_read_fn(struct profile *p, const struct format_input *in,
			   const struct format_options *options, struct err *err);
typedef int format_write_fn(struct format_output *to, const struct profile *p,
			    const struct format_options *options, struct err *err);

struct format {
	const char *name;     /* as in --to NAME */
	const char *title;    /* for help texts */
	const char *suffixes; /* of file names, separated by blanks: ".folded .collapsed" */
	unsigned flags;
	format_sniff_fn *sniff; /* NULL: never read */
	format_read_fn *read;
	format_write_fn *write; /* NULL: never written */
};

/* The functions of the rows, each in the file of its format, which says what is special. */
format_sniff_fn assayfile_sniff, folded_sniff, gperfheap_sniff, heaptrack_sniff, jemallocheap_sniff,
	massif_sniff, perfdata_sniff, perfscript_sniff;
format_read_fn assayfile_format_read, folded_read, gperfheap_read, heaptrack_read,
	jemallocheap_read, massif_read, perfscript_read;
format_write_fn assayfile_format_write, folded_write, heaptrack_write, massif_write, perfdata_write,
	perfscript_write, profilejson_write, speedscope_write;

#define FORMAT_SNIFF_BYTES ((size_t)64 << 10) /* enough of a head for every sniffer */

/* The i-th of the table, or NULL past its end. */
const struct format *format_at(size_t i);
const struct format *format_find(const char *name); /* or NULL */
/* The surest one, or NULL. */
const struct format *format_sniff(struct sv head);
/* By the suffix of an output's path, writers only; or NULL. */
const struct format *format_of_path(const char *path);

/*
 * The table that a writer of one event writes: that of @event (as named, or without modifiers:
 * "cycles" finds "cycles:u"), by default the first that has samples. NULL in *ret_t when the
 * profile has none at all; -ENOENT, with the events there are, when @event is not among them.
 */
int format_pick_table(const struct profile *p, const char *event, const struct table **ret_t,
		      struct err *err);
/* Whether an event's name is @want, or that with modifiers behind. */
bool format_is_event(struct sv name, const char *want);

/* Reads the whole of an input (of at most limit bytes) behind to->n. */
int format_input_read_all(const struct format_input *in, struct buf *to, size_t limit,
			  struct err *err);
/* The same as text: what is in memory is borrowed, a file is read into @all. */
int format_input_text(const struct format_input *in, struct buf *all, struct sv *ret_text,
		      struct err *err);
/*
 * Hands an input on in pieces of whole lines, of about step bytes; only the last line may lack its
 * newline. Of a line longer than line_max some of the rest is dropped. Ends at what is not 0.
 */
int format_input_lines(const struct format_input *in, size_t step, size_t line_max,
		       int (*take)(void *ctx, struct sv lines), void *ctx, struct err *err);
/* Counts a line that makes no sense; *first_nr (0 = none) becomes the number of the first one. */
void format_bad_line(struct profile *p, uint64_t line_nr, uint64_t *first_nr);

#endif
