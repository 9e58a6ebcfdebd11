/*
 * The table of file formats: those that `assay report FILE` recognises and `assay convert --to
 * NAME` writes. To add one: a file here, a row in format.c, docs/formats/NAME.md, fixtures.
 *
 * A reader fills a new profile, which the caller seals. It counts what it cannot parse in the
 * profile's losses and continues; it fails only if the input is not of its format at all. A writer
 * takes a sealed profile and produces the same bytes for the same profile.
 */
#ifndef ASSAY_FORMAT_FORMAT_H
#define ASSAY_FORMAT_FORMAT_H

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/file/file.h"
#include "base/file/instream.h"
#include "format/folded.h"
#include "format/heap/heapsteps.h"
#include "format/heap/jemallocheap.h"
#include "format/perf/perfdata.h"
#include "format/perf/perfscript.h"
#include "model/profile.h"

/* Input of a reader: the bytes in head, followed by those of rest unless it is NULL. */
struct format_input {
	struct sv head;
	struct instream *rest;
};

/* Output of a writer: appended to buf, which is written to file from time to time. */
struct format_output {
	struct buf buf;
	struct out *file; /* NULL: everything stays in buf */
};
/* Writers call this between records: writes buf to the file if it is large. */
int format_spill(struct format_output *to, struct err *err);
/* Writes the rest of buf to the file; called once, by the owner of the output. */
int format_flush(struct format_output *to, struct err *err);

/* Writing pprof: inlined functions become locations, for readers that keep one line of each. */
struct pprof_options {
	bool has_inline_locations;
};

/* Writing for Firefox: waits are samples, weighed by their time, like the CPU time; not markers. */
struct firefox_options {
	bool are_waits_samples;
};

/* Options common to all formats, then those of each format; zero is the default. */
struct format_options {
	/*
	 * Read or write only this event (its name, with or without modifiers). NULL: all events;
	 * or, for a format that contains one event, the first that has samples. Samples of other
	 * events are LOSS_FILTERED when reading.
	 */
	const char *event;
	/*
	 * Writing tables with tags: returns a leaf frame to add to a row's stack (the wait reason),
	 * or NULL.
	 */
	const char *(*synth_leaf_of)(void *ctx, const struct table *t, size_t row);
	void *synth_leaf_ctx;
	struct folded_options folded;
	struct perfscript_options perfscript;
	struct perfdata_options perfdata;
	struct jemallocheap_options jemallocheap;
	struct heapwrite_options heapwrite;
	struct pprof_options pprof;
	struct firefox_options firefox;
};

enum format_flags {
	FORMAT_NEEDS_INGEST = 1 << 0, /* contains events: read by ingest/, not by `read` */
	FORMAT_NEEDS_NAMES = 1 << 1,  /* contains addresses: `read` does not symbolize */
	FORMAT_ONE_EVENT = 1 << 2,    /* written: a file holds samples of one event */
	FORMAT_GZIP = 1 << 3,         /* written: packed by gzip, whatever the suffix */
	FORMAT_CAN_PACK = 1 << 4,     /* written: packed if the suffix is .gz or .zst */
	FORMAT_OF_EVENTS = 1 << 5,    /* written: single events at their exact times */
};

/* Returns how certain it is that an input with this head has the format, 0 (not) to 100. */
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

/* The functions in the table, each defined in the file of its format. */
format_sniff_fn assayfile_sniff, folded_sniff, gperfheap_sniff, heaptrack_sniff, jemallocheap_sniff,
	massif_sniff, pagefile_sniff, perfdata_sniff, perfscript_sniff, pprof_sniff;
format_read_fn assayfile_format_read, folded_read, gperfheap_read, heaptrack_read,
	jemallocheap_read, massif_read, pagefile_read, perfscript_read, pprof_read;
format_write_fn assayfile_format_write, dot_write, firefox_write, folded_write, heaptrack_write,
	massif_write, perfdata_write, perfscript_write, pprof_write, profilejson_write,
	speedscope_write;

#define FORMAT_SNIFF_BYTES ((size_t)64 << 10) /* size of the head that sniffers need */

/* Returns entry i of the table, NULL past its end. */
const struct format *format_at(size_t i);
const struct format *format_find(const char *name); /* or NULL */
/* Returns the most certain format of an input, or NULL. */
const struct format *format_sniff(struct sv head);
/*
 * Returns what an input is that has a format which assay does not read but knows by name ("a GHC
 * profile"), and a hint; NULL: not known.
 */
const char *format_foreign(struct sv head, const char **ret_hint);
/* Returns the format that is written to a path, by its suffix, or NULL. */
const struct format *format_of_path(const char *path);

/*
 * Finds the table for a writer of one event: that of @event (with or without modifiers: "cycles"
 * finds "cycles:u"), or if @event is NULL the first that has samples. *ret_t is NULL if the profile
 * has no tables. -ENOENT if there is no such event; the hint lists the events.
 */
int format_pick_table(const struct profile *p, const char *event, const struct table **ret_t,
		      struct err *err);
/* Whether an event's name is @want, or @want with modifiers. */
bool format_is_event(struct sv name, const char *want);

/*
 * Fails with -EFBIG if a reader holds more than 96 MiB and more than 96 times the stored size of its
 * input. Readers call this often enough that a hostile input cannot use up the memory, before they
 * allocate by a number in the input. Honest inputs need far less: text up to 3 times its size,
 * recordings and compressed text up to 30 times.
 * @nr_bytes: what the reader holds besides the profile. @p may be NULL.
 */
int format_check_room(uint64_t nr_stored, const struct profile *p, uint64_t nr_bytes,
		      struct err *err);
/* The stored size of the input as far as it was read. */
uint64_t format_input_stored(const struct format_input *in);
/* Appends the whole input to a buffer, with format_check_room. */
int format_input_read_all(const struct format_input *in, struct buf *to, struct err *err);
/* Returns the whole input as text: borrowed if it is in memory, else read into @all. */
int format_input_text(const struct format_input *in, struct buf *all, struct sv *ret_text,
		      struct err *err);
/*
 * Reads an input in pieces of about step bytes and calls take() with the complete lines of each;
 * only the last line may lack its newline, which is_open says. Lines longer than line_max are truncated. Stops if
 * take() does not return 0, and returns its result; or with format_check_room of @p and the bytes
 * that held() returns (NULL: 0), which the reader itself has in memory.
 */
struct format_lines {
	const struct profile *p;
	size_t step;
	size_t line_max;
	int (*take)(void *ctx, struct sv lines);
	uint64_t (*held)(const void *ctx);
	void *ctx;
	bool is_open; /* set: the last line has no newline */
};
int format_input_lines(const struct format_input *in, struct format_lines *to, struct err *err);
/*
 * Marks a profile as incomplete and stores the evidence, unless there is a problem already: "the
 * file is truncated: its last line has no newline". Readers call it for each end that is missing.
 */
void format_truncated(struct profile *p, const char *evidence);
#define FORMAT_OPEN_LINE "its last line has no newline"
/* Counts a line that cannot be parsed; *first_nr is set to the first such line's number. */
void format_bad_line(struct profile *p, uint64_t line_nr, uint64_t *first_nr);

#endif
