/* Events by name: parsing of names, files and formats; the summary of counts. */
#include "base/base.h"

#include <errno.h>

#include "analyze/io/eventsum.h"
#include "base/file/file.h"
#include "capture/events/set.h"
#include "capture/events/readysets.h"
#include "made.h"
#include "tap.h"

/* ---- formats ------------------------------------------------------------------------------ */

static struct trace_format format_of(const char *path)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct trace_format f = {0};
	CHECK(!file_read(&text, path, 1 << 20, NULL));
	CHECK(!trace_format_parse(&f, buf_sv(&text), NULL));
	return f;
}

TEST(format_of_a_tracepoint_says_where_its_fields_lie)
{
	struct trace_format f = format_of("tests/fixtures/events/block.block_rq_issue.format");
	CHECK_U64(f.id, 2104);
	CHECK_U64(f.nr_bytes, 64);
	CHECK_U64(f.nr_fields, 8);
	const struct trace_field *rwbs = trace_field(&f, "rwbs");
	CHECK(rwbs && rwbs->kind == TRACE_BYTES && rwbs->offset == 34 && rwbs->nr_bytes == 10);
	const struct trace_field *cmd = trace_field(&f, "cmd");
	CHECK(cmd && cmd->kind == TRACE_STRING && cmd->offset == 60);
	CHECK(!trace_field(&f, "common_pid"));
	trace_format_release(&f);
}

TEST(payload_of_an_event_is_written_by_its_format)
{
	struct trace_format f = format_of("tests/fixtures/events/syscalls.sys_enter_futex.format");
	CLEANUP(buf_release) struct buf b = {0};
	uint8_t raw[64] = {0};
	raw[16] = 0x40;
	raw[17] = 0x10;
	raw[24] = 0x81;
	raw[32] = 7;
	trace_format_print(&b, &f, raw, sizeof(raw));
	CHECK_STR(buf_str(&b), "uaddr: 0x1040, op: 129, val: 7, utime: 0x0, uaddr2: 0x0, val3: 0");
	trace_format_release(&f);
}

TEST(payload_that_was_cut_or_lies_is_printed_as_far_as_it_goes)
{
	struct trace_format f = format_of("tests/fixtures/events/sched.sched_process_exec.format");
	CLEANUP(buf_release) struct buf b = {0};
	uint8_t raw[28] = {0};
	raw[8] = 20; /* offset, then length of the name */
	raw[10] = 9;
	memcpy(&raw[20], "/bin/\nx", 7);
	trace_format_print(&b, &f, raw, sizeof(raw));
	CHECK_STR(buf_str(&b), "filename=/bin/?x pid=0 old_pid=0");
	buf_clear(&b);
	trace_format_print(&b, &f, raw, 16);
	CHECK_STR(buf_str(&b), "filename=(cut) pid=0");
	buf_clear(&b);
	raw[8] = raw[9] = raw[10] = raw[11] = 0xff;
	trace_format_print(&b, &f, raw, sizeof(raw));
	CHECK_STR(buf_str(&b), "filename=(cut) pid=0 old_pid=0");
	trace_format_release(&f);
}

TEST(format_without_an_id_is_refused)
{
	struct trace_format f;
	CHECK(trace_format_parse(&f,
				 SV("name: x\nformat:\n\tfield:int a;\toffset:0;\tsize:4;\t"
				    "signed:1;\n"),
				 NULL) == -EINVAL);
}

/* ---- names -------------------------------------------------------------------------------- */

static void add_known(struct tracefs_names *known)
{
	static const char *const names[] = {
		"block:block_rq_complete",
		"block:block_rq_issue",
		"sched:sched_switch",
		"sched:sched_wakeup",
		"syscalls:sys_enter_fdatasync",
		"syscalls:sys_enter_fsync",
		"syscalls:sys_enter_futex",
		"syscalls:sys_enter_futex_wait",
		"syscalls:sys_enter_pread64",
		"syscalls:sys_exit_futex",
		"vmscan:mm_vmscan_direct_reclaim_begin",
		"writeback:writeback_dirty_folio",
	};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		vec_push(&known->names, sv_from_str(names[i]));
}

/* What the words mean where the events above are: the code, names and notes in a text. */
static int match(const char *text, struct buf *to, struct err *err)
{
	CLEANUP(event_set_release) struct event_set set = {0};
	CLEANUP(tracefs_names_release) struct tracefs_names known = {0};
	add_known(&known);
	int rc = event_set_add_text(&set, sv_from_str(text), "x.conf", err);
	rc = rc ? rc : event_set_match(&set, &known, err);
	vec_foreach(e, &set.events)
		buf_addf(to, "%s%s", to->n ? " " : "", e->name);
	vec_foreach(note, &set.notes)
		buf_addf(to, "; %s", *note);
	return rc;
}

#define CHECK_MATCH(text, expected)                                             \
	do {                                                                    \
		CLEANUP(buf_release) struct buf words_ = {0};                   \
		CLEANUP(err_release) struct err problem_ = {0};                 \
		if (match((text), &words_, &problem_))                          \
			tap_fail(__FILE__, __LINE__, "%s", err_msg(&problem_)); \
		CHECK_STR(buf_str(&words_), (expected));                        \
	} while (0)

TEST(files_of_events_have_comments_blank_lines_and_foreign_line_ends)
{
	CHECK_MATCH("# locks\r\n\r\n  sched:sched_switch  # of threads\r\nmajor-faults\r\n"
		    "#minor-faults\n\tcs,faults\n",
		    "sched:sched_switch major-faults context-switches page-faults");
}

TEST(event_named_twice_is_counted_once)
{
	CHECK_MATCH("faults\npage-faults\nblock:*\nblock:block_rq_issue\n",
		    "page-faults block:block_rq_complete block:block_rq_issue");
}

TEST(event_that_this_kernel_lacks_is_left_out_with_a_note)
{
	CHECK_MATCH("sched:sched_switch\nsyscalls:sys_enter_futex_waitv\n",
		    "sched:sched_switch; x.conf:2: this kernel has no event "
		    "'syscalls:sys_enter_futex_waitv', left out");
	CHECK_MATCH(
		"sched:sched_switch\nkvm_guest:some_event",
		"sched:sched_switch; x.conf:2: this kernel has no event 'kvm_guest:some_event', "
		"left out");
}

TEST(event_that_has_moved_is_taken_under_its_new_name)
{
	CHECK_MATCH("writeback:writeback_dirty_page",
		    "writeback:writeback_dirty_folio; x.conf:1: 'writeback:writeback_dirty_page' "
		    "is 'writeback:writeback_dirty_folio' on this kernel");
}

static void check_refused(const char *word, const char *hint)
{
	CLEANUP(buf_release) struct buf b = {0};
	CLEANUP(err_release) struct err err = {0};
	CHECK(match(word, &b, &err) == -EINVAL);
	CHECK_STR(err.hint ? err.hint : "", hint);
}

TEST(modifiers_of_perf_are_refused_and_names_are_not)
{
	check_refused("page-faults:u", "count 'page-faults', whoever caused it: rows have their "
				       "stacks, kernel code included");
	check_refused("sched:sched_switch:kH",
		      "count 'sched:sched_switch', whoever caused it: rows have their stacks, "
		      "kernel code included");
	check_refused("sched:sched_swtich", "did you mean sched:sched_switch?");
}

TEST(misspelt_event_is_refused_with_near_names)
{
	check_refused("sched:sched_swtich", "did you mean sched:sched_switch?");
	check_refused("shed:sched_switch", "did you mean sched:sched_switch?");
	check_refused("majorfaults", "did you mean major-faults?");
	check_refused("sys_enter_fsync", "did you mean syscalls:sys_enter_fsync?");
	check_refused("block_rq_isue", "did you mean block:block_rq_issue?");
	check_refused("cycles", "it is sampled, not counted by name: assay cpu -e cycles");
	check_refused("nonsense", "assay list events '*nonsense*' searches what there is");
}

TEST(files_that_name_nothing_or_are_no_text_are_refused)
{
	CLEANUP(buf_release) struct buf b = {0};
	check_refused("# nothing\n", "");
	check_refused("\x7f"
		      "ELF\x01\n",
		      "");
	CLEANUP(err_release) struct err err = {0};
	CHECK(match("xfs:none_here", &b, &err) == -ENOENT);
}

TEST(users_files_work_as_they_are)
{
	static const char *const files[] = {
		"tests/fixtures/events/offcpu-events.conf",
		"tests/fixtures/events/offcpu-events-contextswitches.conf",
		"tests/fixtures/events/offcpu-events-iobandwidth.conf",
		"tests/fixtures/events/offcpu-events-pagefaults.conf",
	};
	static const size_t nr_words[] = {6, 7, 12, 5};
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		CLEANUP(event_set_release) struct event_set set = {0};
		CHECK(!event_set_add_file(&set, files[i], NULL));
		CHECK_U64(set.words.n, nr_words[i]);
	}
}

TEST(ready_sets_hold_names_and_a_wrong_one_lists_them)
{
	CLEANUP(err_release) struct err err = {0};
	CLEANUP(event_set_release) struct event_set none = {0};
	for (size_t i = 0; ready_sets[i].name; i++) {
		CLEANUP(event_set_release) struct event_set set = {0};
		CHECK(!event_set_add_predefined(&set, ready_sets[i].name, NULL));
		CHECK(set.words.n > 3);
	}
	CHECK(event_set_add_predefined(&none, "defualt", &err) == -ENOENT);
	CHECK_STR(err.hint, "ready sets: default, context-switches, io-bandwidth, page-faults");
}

TEST(outcomes_have_names)
{
	CLEANUP(buf_release) struct buf b = {0};
	struct named_event e = {.count = {.outcome = OUTCOME_RETURN}};
	event_outcome_text(&b, &e, 0);
	buf_add_ch(&b, ' ');
	event_outcome_text(&b, &e, -EAGAIN);
	buf_add_ch(&b, ' ');
	event_outcome_text(&b, &e, -512);
	buf_add_ch(&b, ' ');
	event_outcome_text(&b, &e, -4000);
	e.count.outcome = OUTCOME_COMMAND;
	buf_add_ch(&b, ' ');
	event_outcome_text(&b, &e, 9);
	buf_add_ch(&b, ' ');
	event_outcome_text(&b, &e, 99);
	e.count.outcome = OUTCOME_LETTER;
	buf_add_ch(&b, ' ');
	event_outcome_text(&b, &e, 'F');
	CHECK_STR(buf_str(&b), "ok EAGAIN interrupted error 4000 WAIT_BITSET command 99 flush");
}

/* ---- the summary -------------------------------------------------------------------------- */

static uint32_t event_table(struct profile *p, const char *event, bool has_bytes)
{
	struct table t = {.event = profile_cstr(p, event),
			  .time_kind = TABLE_TIME_SLICE,
			  .nr_columns = has_bytes ? 2 : 1,
			  .columns = {{.name = profile_cstr(p, "events")},
				      {.name = profile_cstr(p, "bytes"), .unit = UNIT_BYTES}},
			  .has_tags = true};
	return profile_table(p, &t);
}

static void add_row(struct profile *p, uint32_t table, const char *stack, const char *outcome,
		    int64_t nr, int64_t bytes)
{
	struct tag tag = {.log2_ns = LOG2_NONE,
			  .syscall = -1,
			  .detail = outcome ? profile_cstr(p, outcome) : 0};
	task_id task = profile_task(p, 1, 1, profile_cstr(p, "x"), 1);
	int64_t values[] = {nr, bytes};
	profile_tagged_sample(p, table, p->start_ns, stack ? made_stack(p, stack) : 0, task, -1,
			      profile_tag(p, &tag), values);
}

static const struct report_table *find_table(const struct report *r, const char *key)
{
	vec_foreach(t, &r->tables)
		if (!strcmp(t->key, key))
			return t;
	return NULL;
}

/* A count of the summary by its words; UINT64_MAX = no such row. */
static uint64_t counted(const struct report *r, const char *what, uint64_t *ret_bytes)
{
	const struct report_table *t = find_table(r, "summary");
	for (size_t i = 0; t && i < t->nr_rows; i++) {
		const union cell *row = &t->cells[i * t->nr_columns];
		if (strcmp(row[0].text, what) != 0)
			continue;
		*ret_bytes = row[3].u;
		return row[1].u;
	}
	return UINT64_MAX;
}

static struct profile *made_events(void)
{
	struct profile *p = profile_new();
	p->start_ns = 1000;
	p->end_ns = 2000001000;
	uint32_t futex = event_table(p, "syscalls:sys_enter_futex", false);
	uint32_t enter = event_table(p, "syscalls:sys_enter_read", true);
	uint32_t leave = event_table(p, "syscalls:sys_exit_read", true);
	uint32_t faults = event_table(p, "major-faults", false);
	add_row(p, futex, "main;lock;futex libc.so.6;sys_futex [k]", "WAIT", 5, 0);
	add_row(p, futex, "main;unlock;futex libc.so.6", "WAKE", 70, 0);
	add_row(p, futex, "main;lock;futex libc.so.6", "LOCK_PI", 2, 0);
	add_row(p, futex, NULL, "WAKE", 30, 0);
	add_row(p, enter, "main;load;read libc.so.6", NULL, 10, 40960);
	add_row(p, leave, "main;load;read libc.so.6", "ok", 8, 1000);
	add_row(p, leave, "main;load;read libc.so.6", "EINTR", 2, 0);
	(void)faults;
	profile_seal(p);
	return p;
}

TEST(summary_counts_by_what_events_mean)
{
	CLEANUP(profile_free_p) struct profile *p = made_events();
	CLEANUP(report_free_p) struct report *r = report_new();
	struct view_limits limits = {.max_rows = 5};
	uint64_t bytes = 0;
	CHECK(!eventsum_report(r, p, &(struct select_spec){0}, NULL, &limits, 0, NULL));
	CHECK_U64(counted(r, "futex waits", &bytes), 7);
	CHECK_U64(counted(r, "futex wakes", &bytes), 100);
	CHECK_U64(counted(r, "read calls", &bytes), 10);
	CHECK_U64(bytes, 1000); /* returned, not requested */
	CHECK_U64(counted(r, "page faults, major", &bytes), 0);
	CHECK_U64(counted(r, "page faults, minor", &bytes), UINT64_MAX); /* not looked at */
	CHECK_U64(counted(r, "fsync calls", &bytes), UINT64_MAX);
}

TEST(functions_of_events_are_the_programs_own)
{
	CLEANUP(profile_free_p) struct profile *p = made_events();
	CLEANUP(report_free_p) struct report *r = report_new();
	CLEANUP(buf_release) struct buf b = {0};
	struct view_limits limits = {.max_rows = 2};
	struct select_spec spec = {.event = "syscalls:sys_enter_futex"};
	CHECK(!eventsum_report(r, p, &spec, NULL, &limits, EVENTSUM_STACKS, NULL));
	const struct report_table *t = find_table(r, "event_functions");
	for (size_t i = 0; t && i < t->nr_rows; i++) {
		const union cell *row = &t->cells[i * t->nr_columns];
		buf_addf(&b, "%" PRIu64 " %s<%s; ", row[1].u, row[3].text, row[4].text);
	}
	CHECK_STR(buf_str(&b), "70 unlock<futex; 30 [no stack recorded]<; 7 <other><; ");
	const struct report_table *stacks = find_table(r, "event_stacks");
	CHECK(stacks && stacks->nr_rows == 3);
	if (stacks && stacks->nr_rows)
		CHECK_STR(stacks->cells[3].text, "futex < unlock < main");
}
