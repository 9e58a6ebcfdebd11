/* format/: perf script text, folded stacks, JSON and the table of formats. */
#include "base/base.h"
#include "tap.h"

#include <jansson.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/file.h"
#include "format/format.h"
#include "format/perf/scriptline.h"
#include "made.h"

static struct profile *read_as(const char *format, const char *text,
			       const struct format_options *options)
{
	static const struct format_options none;
	struct profile *p = profile_new();
	CLEANUP(err_release) struct err err = {0};
	struct format_input in = {.head = sv_from_str(text)};
	if (format_find(format)->read(p, &in, options ? options : &none, &err))
		tap_fail(__FILE__, __LINE__, "reading %s: %s", format, err_msg(&err));
	profile_seal(p);
	return p;
}

static void expect_as(const char *format, const struct profile *p,
		      const struct format_options *options, const char *want)
{
	static const struct format_options none;
	struct format_output out = {0};
	CLEANUP(err_release) struct err err = {0};
	if (format_find(format)->write(&out, p, options ? options : &none, &err))
		tap_fail(__FILE__, __LINE__, "writing %s: %s", format, err_msg(&err));
	CHECK_STR(buf_str(&out.buf), want);
	buf_release(&out.buf);
}

static void expect_folded(const char *script, const struct format_options *options,
			  const char *want)
{
	CLEANUP(profile_free_p) struct profile *p = read_as("perfscript", script, options);
	expect_as("folded", p, options, want);
}

static const char *sniffed(const char *text)
{
	const struct format *f = format_sniff(sv_from_str(text));
	return f ? f->name : "none";
}

/* ---- lines -------------------------------------------------------------------------------- */

static void expect_event(const char *line, const char *comm, int pid, int tid, int cpu,
			 uint64_t time_ns, const char *event, const char *rest)
{
	struct script_event e;
	if (!script_parse_event(sv_from_str(line), 0, &e)) {
		tap_fail(__FILE__, __LINE__, "no event: '%s'", line);
		return;
	}
	if (!sv_eq_str(e.comm, comm) || e.pid != pid || e.tid != tid || e.cpu != cpu ||
	    e.time_ns != time_ns || !sv_eq_str(e.event, event) || !sv_eq_str(e.rest, rest))
		tap_fail(__FILE__, __LINE__,
			 "'%s': comm '%.*s' pid %d tid %d cpu %d time %" PRIu64
			 " event '%.*s' rest '%.*s'",
			 line, SV_ARGS(e.comm), e.pid, e.tid, e.cpu, e.time_ns, SV_ARGS(e.event),
			 SV_ARGS(e.rest));
}

TEST(event_lines_are_found_by_pid_cpu_and_time)
{
	expect_event("rec 14963  2184.274461:    2004008          cpu-clock: ", "rec", -1, 14963,
		     -1, 2184274461000, "cpu-clock", "");
	expect_event("t 99076 10314749.002559:     250000 cpu-clock: ", "t", -1, 99076, -1,
		     10314749002559000, "cpu-clock", "");
	expect_event("Web Content 12/345 [003] 1.000000001: 1 cycles:ppp: ", "Web Content", 12, 345,
		     3, 1000000001, "cycles:ppp", "");
	expect_event("pool 7/8:x (a) 5/-1 [001] 2.000000: cpu_core/cycles/P: ", "pool 7/8:x (a)", 5,
		     -1, 1, 2000000000, "cpu_core/cycles/P", "");
	expect_event("a 1 2 3 12 [000] 3.000000: 99 cycles: ", "a 1 2 3", -1, 12, 0, 3000000000,
		     "cycles", "");
	expect_event(
		"            perf  1234 [000] 4.000000:  1 cycles:  ffff81 x ([kernel.kallsyms])",
		"perf", -1, 1234, 0, 4000000000, "cycles", "ffff81 x ([kernel.kallsyms])");
	expect_event("a 9 [000] 5.000000: sched:sched_switch: prev_comm=b: c: 3 ==> 1.000000: x",
		     "a", -1, 9, 0, 5000000000, "sched:sched_switch",
		     "prev_comm=b: c: 3 ==> 1.000000: x");
	expect_event("rec 9 U 5.000000: 77 cpu/event=0x3c,umask=0/uk: ", "rec", -1, 9, -1,
		     5000000000, "cpu/event=0x3c,umask=0/uk", "");
	expect_event(":1234 1234 [000] 6.000000: 1 cycles: ", ":1234", -1, 1234, 0, 6000000000,
		     "cycles", "");
	expect_event("swapper 0 [000] 7.000000: cycles: ", "swapper", -1, 0, 0, 7000000000,
		     "cycles", "");
	expect_event("noper 12 cycles: ", "noper", -1, 12, -1, 0, "cycles", "");
	expect_event("nopid [002] 8.000000: cycles: ", "nopid", -1, -1, 2, 8000000000, "cycles",
		     "");
}

TEST(lines_that_are_no_events_are_refused)
{
	static const char *const bad[] = {"",
					  "hello",
					  "[ perf record: Woken up 1 times to write data ]",
					  "Warning:",
					  "x 1 [000] 99999999999999999999.000000: 1 cycles:",
					  "x 1 [000] 1.5: y",
					  "\t    7f12 main (/bin/x)"};
	struct script_event e;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (script_parse_event(sv_from_str(bad[i]), SCRIPT_NEED_CPU_OR_TIME, &e))
			tap_fail(__FILE__, __LINE__, "'%s' was taken for an event", bad[i]);
}

static void expect_frame(const char *line, uint64_t ip, const char *symbol, const char *dso,
			 bool is_inlined)
{
	struct script_frame f;
	if (!script_parse_frame(sv_from_str(line), &f)) {
		tap_fail(__FILE__, __LINE__, "no frame: '%s'", line);
		return;
	}
	if (f.ip != ip || !sv_eq_str(f.symbol, symbol) || !sv_eq_str(f.dso, dso) ||
	    f.is_inlined != is_inlined)
		tap_fail(__FILE__, __LINE__, "'%s': ip %" PRIx64 " symbol '%.*s' dso '%.*s' %d",
			 line, f.ip, SV_ARGS(f.symbol), SV_ARGS(f.dso), f.is_inlined);
}

TEST(frames_keep_their_whole_names)
{
	expect_frame("\t    7f12 main+0x1f (/bin/x)", 0x7f12, "main", "/bin/x", false);
	expect_frame("\tffffffff821f8298 __schedule+0x618 ([kernel.kallsyms])", 0xffffffff821f8298,
		     "__schedule", "[kernel.kallsyms]", false);
	expect_frame("\t 1 foo::<fn(u8) -> u8>+0x10 (/bin/x)", 1, "foo::<fn(u8) -> u8>", "/bin/x",
		     false);
	expect_frame("\t 1 foo<(some_enum)0>::bar(int) const+0xa (/bin/x)", 1,
		     "foo<(some_enum)0>::bar(int) const", "/bin/x", false);
	expect_frame("\t 1 operator->() (/bin/x)", 1, "operator->()", "/bin/x", false);
	expect_frame("\t 1 call<A, ([u8; 4], B)>+0x4 (/bin/x)", 1, "call<A, ([u8; 4], B)>",
		     "/bin/x", false);
	expect_frame("\t 1 void (anonymous namespace)::f()+0x4 (/bin/x)", 1,
		     "void (anonymous namespace)::f()", "/bin/x", false);
	expect_frame("\t 1 jit+0x4 (/memfd:jit (deleted))", 1, "jit", "/memfd:jit (deleted)",
		     false);
	expect_frame("\t 1 f+0x4 (/opt/My App (x86)/lib.so)", 1, "f", "/opt/My App (x86)/lib.so",
		     false);
	expect_frame("\t 1 f+0x4 (/opt/a)b/lib.so)", 1, "f", "/opt/a)b/lib.so", false);
	expect_frame("\t 1 [unknown] ([unknown])", 1, "", "", false);
	expect_frame("\t 1 [unknown] (//anon)", 1, "", "//anon", false);
	expect_frame("\t 1 mid+0x8 (inlined)", 1, "mid", "", true);
	expect_frame("\t 1 f (/lib/libc.so.6+0x2724a)", 1, "f", "/lib/libc.so.6", false);
	expect_frame("\t 1 foo(int)", 1, "foo(int)", "", false);
	expect_frame("\t deadbeef", 0xdeadbeef, "", "", false);
	struct script_frame f;
	CHECK(!script_parse_frame(SV("\tnothex main (/bin/x)"), &f));
	CHECK(!script_parse_frame(SV("\t12345678901234567 main (/bin/x)"), &f));
	CHECK(!script_parse_frame(SV(""), &f));
}

/* ---- perf script -------------------------------------------------------------------------- */

TEST(samples_without_a_blank_line_at_the_end_count)
{
	expect_folded("a 1 [000] 1.000000: 7 cycles: \n"
		      "\t 2 leaf+0x1 (/bin/a)\n"
		      "\t 1 main+0x1 (/bin/a)\n"
		      "\n"
		      "a 1 [000] 2.000000: 9 cycles: \n"
		      "\t 2 leaf+0x1 (/bin/a)\n"
		      "\t 1 main+0x1 (/bin/a)",
		      NULL, "a;main;leaf 2\n");
}

TEST(carriage_returns_make_no_difference)
{
	expect_folded("a b 1 1.000000: 7 cycles: \r\n\t 2 leaf (/bin/a)\r\n\r\n", NULL,
		      "a_b;leaf 1\n");
}

TEST(frames_of_old_perf_without_blanks_in_front_are_read)
{
	static const char script[] = "java 19983 cycles:\n"
				     "ffffffff8103d0ca write_msr ([kernel.kallsyms])\n"
				     "7f724309ebdf Lx;::main (/tmp/perf-19982.map)\n"
				     "7f7243000000 [unknown] ([unknown])\n"
				     "\n"
				     "dd 12 cycles:\n"
				     "401000 main (/bin/dd)\n";
	CHECK_STR(sniffed(script), "perfscript");
	expect_folded(script, NULL, "dd;main 1\njava;[unknown];Lx:::main;write_msr 1\n");
}

TEST(code_of_a_perf_map_without_a_name_is_marked_as_jit)
{
	static const char script[] = "java 12 1.000000: cycles:\n"
				     "\t 7f7243000000 [unknown] (/tmp/perf-12.map)\n"
				     "\t 7f7243000001 jit (/tmp/perf-12.map)\n"
				     "\t 7f7243000002 [unknown] (/tmp/perf-x.map)\n";
	struct format_options options = {.folded = {.flags = FOLDED_JIT}};
	expect_folded(script, &options, "java;[perf-x.map];jit_[j];[perf-12.map]_[j] 1\n");
}

TEST(period_is_a_column_of_its_own)
{
	static const char script[] = "a 1 1.000000: 7 cycles: \n\t 2 leaf (/bin/a)\n\n"
				     "a 1 2.000000: 9 cycles: \n\t 2 leaf (/bin/a)\n\n";
	CLEANUP(profile_free_p) struct profile *p = read_as("perfscript", script, NULL);
	CHECK_U64(p->tables.p[0].nr_columns, 2);
	p->tables.p[0].weight_column = 1;
	struct format_options options = {0};
	expect_as("folded", p, &options, "a;leaf 16\n");
	CHECK_U64(p->start_ns, 1000000000);
}

TEST(tracepoints_keep_their_samples_and_do_not_mix)
{
	static const char script[] =
		"w 1 [000] 1.000000: sched:sched_switch: prev_comm=w prev_pid=1 ==> next_comm=x\n"
		"\t 9 schedule+0x1 ([kernel.kallsyms])\n"
		"\t 1 main+0x1 (/bin/a)\n"
		"\n"
		"w 1 [000] 2.000000: syscalls:sys_enter_futex: uaddr: 0x7f, op: 0, val: 1\n"
		"\t 3 futex+0x1 (/lib/libc.so)\n"
		"\n"
		"w 1 [000] 3.000000: sched:sched_switch: prev_comm=w (x) ==> (y)\n"
		"\t 9 schedule+0x1 ([kernel.kallsyms])\n"
		"\t 1 main+0x1 (/bin/a)\n"
		"\n";
	CLEANUP(profile_free_p) struct profile *p = read_as("perfscript", script, NULL);
	CHECK_U64(p->tables.n, 2);
	CHECK_U64(p->losses.nr[LOSS_SEEN], 3);
	CHECK_U64(p->losses.nr[LOSS_WRITTEN], 3);
	expect_as("folded", p, NULL, "w;main;schedule 2\n");
	struct format_options options = {.event = "syscalls:sys_enter_futex"};
	expect_as("folded", p, &options, "w;futex 1\n");
	options.event = "nosuch";
	struct format_output out = {0};
	CHECK(folded_write(&out, p, &options, NULL) < 0);
}

TEST(samples_without_call_chains_have_their_frame_on_the_event_line)
{
	expect_folded(
		"            cafe  1234 [000] 4.000000:  1 cycles:  ffff81 x ([kernel.kallsyms])\n"
		"            cafe  1234 [000] 4.000001:  1 cycles:  55 main+0x1 (/bin/a)\n"
		"              cc  1234 [000] 4.000002:  1 cycles:  55 main+0x1 (/bin/a)\n",
		NULL, "cafe;main 1\ncafe;x 1\ncc;main 1\n");
}

TEST(inlined_functions_are_frames_of_one_location)
{
	static const char script[] = "a 1 1.000000: 7 cycles: \n"
				     "\t 20 in2+0x3 (inlined)\n"
				     "\t 20 in1 (inlined)\n"
				     "\t 20 outer+0x3 (/bin/a)\n"
				     "\t 10 alone (inlined)\n"
				     "\t 5 main+0x3 (/bin/a)\n\n";
	CLEANUP(profile_free_p) struct profile *p = read_as("perfscript", script, NULL);
	struct format_options options = {.folded = {.flags = FOLDED_INLINE}};
	expect_as("folded", p, &options, "a;main;alone;outer;in1_[i];in2_[i] 1\n");
	options.folded.flags = FOLDED_NO_INLINE;
	expect_as("folded", p, &options, "a;main;alone;outer 1\n");
	CHECK_U64(p->stacks.n, 4);
}

TEST(source_lines_belong_to_the_frame_above)
{
	static const char script[] = "a 1 1.000000: 7 cycles: \n"
				     "\t 20 leaf+0x3 (/bin/a)\n"
				     "  leaf.c:12\n"
				     "\t 5 main+0x3 (/bin/a)\n"
				     "  main.c:7\n\n";
	CLEANUP(profile_free_p) struct profile *p = read_as("perfscript", script, NULL);
	expect_as("folded", p, NULL, "a;main;leaf 1\n");
	const struct location *l = &p->locations.p[p->stacks.p[p->tables.p[0].stack[0]].loc];
	const struct frame *f = &p->frames.p[l->first_frame];
	CHECK_STR(profile_text(p, f->file), "leaf.c");
	CHECK_U64(f->line, 12);
	CHECK_U64(p->losses.nr[LOSS_UNPARSED], 0);
}

TEST(source_lines_can_say_that_the_frame_is_inlined)
{
	static const char script[] = "a 1 1.000000: 7 cycles: \n"
				     "\t 20 in+0x3\n"
				     "  in.c:12 (inlined)\n"
				     "\t 20 out+0x3 (/bin/a)\n"
				     "  ??:0\n"
				     "\t 5 main+0x3 (/bin/a)\n"
				     "  main.c:7\n\n";
	CLEANUP(profile_free_p) struct profile *p = read_as("perfscript", script, NULL);
	struct format_options options = {.folded = {.flags = FOLDED_INLINE}};
	expect_as("folded", p, &options, "a;main;out;in_[i] 1\n");
	CHECK_U64(p->stacks.n, 3);
	CHECK_U64(p->losses.nr[LOSS_UNPARSED], 0);
}

TEST(unsymbolized_frames_show_module_and_address)
{
	static const char script[] = "a 1 1.000000: 7 cycles: \n"
				     "\t 20 [unknown] (/bin/a (deleted))\n"
				     "\tffffffff81000001 [unknown] ([kernel.kallsyms])\n"
				     "\t 30 [unknown] ([unknown])\n\n";
	CLEANUP(profile_free_p) struct profile *p = read_as("perfscript", script, NULL);
	struct format_options options = {.folded = {.flags = FOLDED_KERNEL}};
	expect_as("folded", p, &options, "a;[unknown];[kernel.kallsyms]_[k];[a (deleted)] 1\n");
	options.folded.flags = FOLDED_ADDRS;
	expect_as("folded", p, &options,
		  "a;[unknown <30>];[kernel.kallsyms <ffffffff81000001>];[a (deleted) <20>] 1\n");
	CHECK_U64(losses_unsymbolized(&p->losses), 1);
}

TEST(kernel_and_jit_frames_are_reported_by_their_module)
{
	static const char script[] = "a 1 1.000000: 7 cycles: \n"
				     "\t 9 k1 ([kernel.kallsyms])\n"
				     "\t 8 k2 ([nf_tables])\n"
				     "\t 7 k3 (/lib/modules/x.ko.xz)\n"
				     "\t 6 time ([vdso])\n"
				     "\t 5 jit (/tmp/perf-12.map)\n"
				     "\t 4 jit2 (/x/jitted-12-3.so)\n"
				     "\t 3 main (/bin/a)\n\n";
	struct format_options options = {.folded = {.flags = FOLDED_KERNEL | FOLDED_JIT}};
	expect_folded(script, &options, "a;main;jit2_[j];jit_[j];time;k3_[k];k2_[k];k1_[k] 1\n");
}

TEST(junk_lines_are_counted_and_end_nothing)
{
	static const char script[] = "[ perf record: Woken up 1 times ]\n"
				     "# comment\n"
				     "a 1 1.000000: 7 cycles: \n"
				     "\t 2 leaf (/bin/a)\n"
				     "Warning: something\n"
				     "\t 1 main (/bin/a)\n"
				     "\n"
				     "a 1 1.500000: PERF_RECORD_COMM: a:1/1\n"
				     "a 1 1.600000: PERF_RECORD_LOST lost 5\n";
	CLEANUP(profile_free_p) struct profile *p = read_as("perfscript", script, NULL);
	expect_as("folded", p, NULL, "a;main;leaf 1\n");
	CHECK_U64(p->losses.nr[LOSS_UNPARSED], 2);
	CHECK_U64(p->losses.nr[LOSS_LOST], 5);
	CHECK_U64(p->losses.nr[LOSS_SEEN], 8);
}

TEST(one_event_can_be_asked_for)
{
	static const char script[] = "a 1 1.000000: 7 cycles:u: \n\t 2 x (/bin/a)\n\n"
				     "a 1 1.000000: 7 faults: \n\t 2 y (/bin/a)\n\n";
	struct format_options options = {.event = "cycles"};
	CLEANUP(profile_free_p) struct profile *p = read_as("perfscript", script, &options);
	CHECK_U64(p->tables.n, 1);
	CHECK_U64(p->losses.nr[LOSS_FILTERED], 1);
	CHECK_U64(p->losses.nr[LOSS_SEEN], 2);
}

TEST(threads_and_processes_can_be_at_the_root)
{
	static const char script[] = "a b 1/2 1.000000: 7 cycles: \n\t 2 x (/bin/a)\n\n"
				     "a b 3 1.000000: 7 cycles: \n\t 2 x (/bin/a)\n\n";
	struct format_options options = {.folded = {.flags = FOLDED_PID}};
	expect_folded(script, &options, "a_b-1;x 1\na_b-?;x 1\n");
	options.folded.flags = FOLDED_TID;
	expect_folded(script, &options, "a_b-1/2;x 1\na_b-?/3;x 1\n");
	options.folded.flags = FOLDED_NO_COMM;
	expect_folded(script, &options, "x 2\n");
}

static struct profile *read_from_file(struct sv text, size_t nr_head)
{
	struct profile *p = profile_new();
	int fd = memfd_create("rest", 0);
	CHECK(write(fd, text.p + nr_head, text.n - nr_head) == (ssize_t)(text.n - nr_head));
	CHECK(lseek(fd, 0, SEEK_SET) == 0);
	CLEANUP(instream_free_p) struct instream *rest = NULL;
	CHECK(!instream_open(&rest, fd, NULL));
	struct format_input in = {sv_from(text.p, nr_head), rest};
	CHECK(!perfscript_read(p, &in, &(struct format_options){0}, NULL));
	profile_seal(p);
	return p;
}

TEST(a_text_longer_than_any_line_may_be_is_read_whole)
{
	CLEANUP(buf_release) struct buf text = {0};
	for (int i = 0; i < 40000; i++)
		buf_addf(&text, "a 1 %d.000000: 7 cycles: \n\t 2 leaf+0x1 (/bin/a)\n\n", i);
	CHECK(text.n > (1 << 20) * 3 / 2);
	CLEANUP(profile_free_p) struct profile *p = read_from_file(buf_sv(&text), 1000);
	expect_as("folded", p, NULL, "a;leaf 40000\n");
	CHECK(!p->losses.nr[LOSS_UNPARSED]);
}

TEST(pieces_of_any_size_give_the_same_profile)
{
	static const char script[] = "a 1 1.000000: 7 cycles: \r\n\t 2 leaf+0x1 (/bin/a)\r\n"
				     "\t 1 main (/bin/a)\r\n\r\na 1 [000] 2.0000000: 9 cycles: \n"
				     "\t 2 leaf+0x1 (/bin/a)\n\t 1 main (/bin/a)";
	for (size_t step = 0; step < sizeof(script); step++) {
		CLEANUP(profile_free_p)
		struct profile *p = read_from_file(sv_from(script, sizeof(script) - 1), step);
		expect_as("folded", p, NULL, "a;main;leaf 2\n");
	}
}

TEST(written_perf_script_reads_back_as_the_same_stacks)
{
	static const char script[] = "a b 1/2 [003] 1.000000: 7 cycles:u: \n"
				     "\t 20 in<(x)0> (inlined)\n"
				     "\t 20 f -> (a; b) (/bin/a (deleted))\n"
				     "\t 20 gone (tail-call)\n"
				     "\t 30 [unknown] (/bin/a)\n"
				     "\tffffffff81000001 [unknown] ([unknown])\n\n"
				     "c 4 2.000000: 9 sched:sched_switch: x=1\n"
				     "\tff k ([kernel.kallsyms])\n\n"
				     "c 4 3.000000: 9 sched:sched_switch: x=1\n\n";
	CLEANUP(profile_free_p) struct profile *p = read_as("perfscript", script, NULL);
	static const struct format_options none;
	struct format_output once = {0};
	struct format_output twice = {0};
	CHECK(!perfscript_write(&once, p, &none, NULL));
	CLEANUP(profile_free_p) struct profile *q = read_as("perfscript", buf_str(&once.buf), NULL);
	CHECK(!perfscript_write(&twice, q, &none, NULL));
	CHECK_STR(buf_str(&twice.buf), buf_str(&once.buf));
	CHECK(!memcmp(&p->losses, &q->losses, sizeof(p->losses)));
	CHECK_U64(q->tables.n, 2);
	static const struct format_options marked = {.folded = {.flags = FOLDED_INLINE}};
	expect_as("folded", q, &marked, "a_b;[unknown];[a];gone_[t];f -> (a: b);in<(x)0>_[i] 1\n");
	buf_release(&once.buf);
	buf_release(&twice.buf);
}

TEST(recorded_text_gives_the_stacks_of_an_independent_reader)
{
	static const struct {
		const char *script;
		const char *event;
		const char *folded;
	} cases[] = {
		{"fp", "cpu-clock", "fp-cpu-clock"},
		{"fp", "sched:sched_switch", "fp-sched_switch"},
		{"dwarf", "cpu-clock", "dwarf-cpu-clock"},
		{"nochain", "cpu-clock", "nochain-cpu-clock"},
		{"srcline", "cpu-clock", "srcline-cpu-clock"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(buf_release) struct buf path = {0};
		CLEANUP(buf_release) struct buf script = {0};
		CLEANUP(buf_release) struct buf want = {0};
		buf_addf(&path, "tests/fixtures/text/%s.perfscript", cases[i].script);
		CHECK(!file_read(&script, buf_str(&path), 1 << 20, NULL));
		buf_clear(&path);
		buf_addf(&path, "tests/fixtures/text/%s.folded", cases[i].folded);
		CHECK(!file_read(&want, buf_str(&path), 1 << 20, NULL));
		CLEANUP(profile_free_p)
		struct profile *p = read_as("perfscript", buf_str(&script), NULL);
		struct format_options options = {.event = cases[i].event};
		expect_as("folded", p, &options, buf_str(&want));
		CHECK_U64(p->losses.nr[LOSS_UNPARSED], 0);
	}
}

/* ---- folded ------------------------------------------------------------------------------- */

TEST(folded_reads_and_writes_the_same_lines)
{
	static const char text[] = "# a comment\n"
				   "\n"
				   "comm;main;f(int, char) const 5\n"
				   "comm;main 3\r\n"
				   "comm;main;-;x;--;y 2\n"
				   "comm;main;operator delete 4\n"
				   "comm;main;operator 6\n"
				   "comm;main;f(int, char) const 1\n"
				   "one 18446744073709551615\n"
				   "bad line\n"
				   "7\n"
				   "solo 7";
	CLEANUP(profile_free_p) struct profile *p = read_as("folded", text, NULL);
	expect_as("folded", p, NULL,
		  "comm;main 3\n"
		  "comm;main;-;x;--;y 2\n"
		  "comm;main;f(int, char) const 6\n"
		  "comm;main;operator 6\n"
		  "comm;main;operator delete 4\n"
		  "solo 7\n");
	CHECK_U64(p->losses.nr[LOSS_UNPARSED], 3);
	CHECK_U64(p->losses.nr[LOSS_WRITTEN], 28);
	CHECK_U64(p->losses.nr[LOSS_SEEN], 31);
	CHECK_STR(profile_get_fact(p, FACT_FOLDED_BAD_LINE), "9");
}

TEST(folded_suffixes_become_flags_and_are_written_again)
{
	static const char text[] = "a;main;in1_[i];in2_[i];gone_[t];sys_[k];w_[w];j_[j] 2\n";
	CLEANUP(profile_free_p) struct profile *p = read_as("folded", text, NULL);
	CHECK_U64(p->stacks.n, 1 + 6);
	struct format_options options = {
		.folded = {.flags = FOLDED_KERNEL | FOLDED_INLINE | FOLDED_JIT}};
	expect_as("folded", p, &options, text);
	expect_as("folded", p, NULL, "a;main;in1;in2;gone;sys;w_[w];j 2\n");
}

/* Stack number i: 1 to 3 of three names, of which one is inlined and one begins like another. */
static void add_made_line(struct buf *to, unsigned i)
{
	static const char *const names[] = {"a", "ab", "b_[i]"};
	for (; i; i = (i - 1) / 3)
		buf_addf(to, "%s%c", names[(i - 1) % 3], i > 3 ? ';' : ' ');
	buf_add_str(to, "1\n");
}

static int by_byte(const void *a, const void *b)
{
	return *(const char *)a - *(const char *)b;
}

/* The lines as they are written, and how many frames each location has. */
static char *folded_again(const char *text)
{
	static const struct format_options marked = {.folded = {.flags = FOLDED_INLINE}};
	CLEANUP(profile_free_p) struct profile *p = read_as("folded", text, &marked);
	struct format_output out = {0};
	CHECK(!format_find("folded")->write(&out, p, &marked, NULL));
	vec_foreach(l, &p->locations)
		buf_add_ch(&out.buf, (char)('0' + l->nr_frames));
	/* sorted: locations are numbered as the lines come */
	qsort(out.buf.p + out.buf.n - p->locations.n, p->locations.n, 1, by_byte);
	char *again = xstrdup(buf_str(&out.buf));
	buf_release(&out.buf);
	return again;
}

/* Neighbouring lines share the look-ups of their first frames; lines far apart do not. */
TEST(folded_stacks_are_the_same_in_any_order_of_lines)
{
	enum { NR_STACKS = 3 + 9 + 27 };
	for (unsigned i = 1; i <= NR_STACKS * NR_STACKS; i++) {
		CLEANUP(buf_release) struct buf near = {0};
		CLEANUP(buf_release) struct buf apart = {0};
		add_made_line(&near, 1 + i / NR_STACKS % NR_STACKS);
		buf_add_sv(&apart, buf_sv(&near));
		buf_add_str(&apart, "other 1\n");
		add_made_line(&near, 1 + i % NR_STACKS);
		add_made_line(&apart, 1 + i % NR_STACKS);
		buf_add_str(&near, "other 1\n");
		CLEANUP(free_p) char *a = folded_again(buf_str(&near));
		CLEANUP(free_p) char *b = folded_again(buf_str(&apart));
		CHECK_STR(a, b);
	}
}

TEST(one_name_in_kernel_and_program_stays_two_functions)
{
	static const char text[] = "a;read 1\na;read_[j] 2\na;read_[k] 4\nb;read_[k];read 8\n";
	CLEANUP(profile_free_p) struct profile *p = read_as("folded", text, NULL);
	struct format_options options = {.folded = {.flags = FOLDED_KERNEL | FOLDED_JIT}};
	expect_as("folded", p, &options, text);
}

TEST(folded_order_is_that_of_the_stacks_bytes)
{
	static const char text[] = "a 1\na b 1\na;b 1\na!;c 1\na:c 1\na;b;c 1\nab 1\na;b;a 1\n";
	CLEANUP(profile_free_p) struct profile *p = read_as("folded", text, NULL);
	expect_as("folded", p, NULL, "a 1\na b 1\na!;c 1\na:c 1\na;b 1\na;b;a 1\na;b;c 1\nab 1\n");
}

/* Reads a text and checks the number of threads, and the lines that are written with ids. */
static void expect_threads(const char *text, size_t nr_threads, const char *with_ids)
{
	struct format_options options = {.folded = {.flags = FOLDED_FIND_THREADS}};
	CLEANUP(profile_free_p) struct profile *p = read_as("folded", text, &options);
	CHECK_U64(p->tasks.n, 1 + nr_threads);
	options.folded.flags = FOLDED_TID;
	expect_as("folded", p, &options, with_ids);
}

TEST(first_frames_are_threads_only_where_the_file_shows_it)
{
	static const char ids[] = "x-12/?;main 3\nx-y-12/34;main 1\nz-?/5;main 4\n";
	expect_threads(ids, 3, ids);
	expect_threads("worker-1;start_thread;run 3\nmain;_start 1\nidle 2\n", 3,
		       "idle-?/? 2\nmain-?/?;_start 1\nworker-1-?/?;start_thread;run 3\n");
	/* in all of these the first frame is kept, as it may be a function */
	static const char *const functions[] = {"main 2\nmain;parse 3\n", "_start;main 3\n",
						"clone;start_thread;run 3\n",
						"[unknown];_start 3\n",
						"bash;main 2\nx-12/34;main 1\n"};
	for (size_t i = 0; i < ARRAY_LEN(functions); i++)
		expect_threads(functions[i], 0, functions[i]);
}

static size_t rows_after_sniff(const char *text, size_t n)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	struct format_input in = {.head = sv_from(text, n)};
	const struct format *f = format_sniff(in.head);
	static const struct format_options none;
	if (!f || strcmp(f->name, "folded") != 0 || f->read(p, &in, &none, NULL))
		return 0;
	return p->tables.p[0].n;
}

TEST(a_long_first_line_or_a_bad_one_does_not_reject_the_others)
{
	CLEANUP(buf_release) struct buf b = {0};
	for (size_t i = 0; i < 20000; i++)
		buf_addf(&b, "frame%zu;", i);
	buf_add_str(&b, "leaf 1\na;b 2\n");
	CHECK_U64(rows_after_sniff(b.p, b.n), 2);
	static const char one_bad[] = "no count here\na;b 1\n";
	static const char nul[] = "a;b 1\na\0b 1\na;c 2\n";
	CHECK_U64(rows_after_sniff(one_bad, sizeof(one_bad) - 1), 1);
	CHECK(rows_after_sniff(nul, sizeof(nul) - 1) >= 2);
	CHECK_STR(sniffed("a b 1 2.0 3.0\nc d 4 5.0 6.0\n"), "none");
}

TEST(folded_differences_give_two_tables)
{
	CLEANUP(profile_free_p) struct profile *p = read_as("folded", "a;b 1 2\na;c 0 5\n", NULL);
	CHECK_U64(p->tables.n, 2);
	struct format_options options = {.event = "before"};
	expect_as("folded", p, &options, "a;b 1\n");
	options.event = "after";
	expect_as("folded", p, &options, "a;b 2\na;c 5\n");
	CLEANUP(profile_free_p) struct profile *q = read_as("folded", "a;b 1 2\na;c 5\n", NULL);
	CHECK_U64(q->tables.n, 1);
	expect_as("folded", q, NULL, "a;b 1 2\na;c 5\n");
}

TEST(folded_fractions_are_rounded_and_counted_in_a_fact)
{
	CLEANUP(profile_free_p) struct profile *p = read_as("folded", "a;b 14.53\na;c 2.\n", NULL);
	expect_as("folded", p, NULL, "a;b 15\na;c 2\n");
	CHECK_STR(profile_get_fact(p, FACT_FOLDED_ROUNDED), "1");
}

TEST(nothing_but_bad_lines_is_an_error_with_its_line)
{
	static const struct format_options none;
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	CLEANUP(err_release) struct err err = {0};
	struct format_input in = {.head = SV("\nhello\nthere\n")};
	CHECK(folded_read(p, &in, &none, &err) < 0);
	CHECK_STR(err_msg(&err), "line 2: expected 'frame;frame count'");
	CHECK(perfscript_read(p, &in, &none, &err) < 0);
	CHECK_STR(err_msg(&err), "line 2: expected 'comm pid [cpu] time: event:', found 'hello'");
}

TEST(names_cannot_break_a_folded_line)
{
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	struct table shape = {.event = profile_cstr(p, "e"), .nr_columns = 1};
	uint32_t t = profile_table(p, &shape);
	stack_id s = profile_stack(p, 0, made_named(p, SV("[u8; 8]\n\x01x"), SV(""), 0));
	s = profile_stack(p, s, made_named(p, SV("\n"), SV(""), 0));
	task_id task = profile_task(p, 1, 1, profile_cstr(p, "c;d e"), 0);
	profile_sample(p, t, 0, s, task, -1, &(int64_t){3});
	profile_sample(p, t, 0, 0, task, -1, &(int64_t){4});
	profile_sample(p, t, 0, 0, 0, -1, &(int64_t){5});
	profile_seal(p);
	expect_as("folded", p, NULL, "[unknown] 5\nc:d_e 4\nc:d_e;[u8: 8]x;[empty] 3\n");
}

TEST(deep_stacks_are_written_whole)
{
	CLEANUP(buf_release) struct buf text = {0};
	for (int i = 0; i < 5000; i++)
		buf_addf(&text, "%sf%d", i ? ";" : "", i % 7);
	buf_add_str(&text, " 2\n");
	CLEANUP(profile_free_p) struct profile *p = read_as("folded", buf_str(&text), NULL);
	expect_as("folded", p, NULL, buf_str(&text));
}

/* ---- JSON and the table ------------------------------------------------------------------- */

TEST(json_holds_the_sums)
{
	static const char script[] = "a\"\xff 1 1.000000: 7 cycles: \n\t 2 x (/bin/a)\n\n"
				     "a\"\xff 1 2.000000: 8 cycles: \n\t 2 x (/bin/a)\n\n";
	CLEANUP(profile_free_p) struct profile *p = read_as("perfscript", script, NULL);
	static const struct format_options none;
	struct format_output out = {0};
	CHECK(!profilejson_write(&out, p, &none, NULL));
	json_error_t error;
	json_t *root = json_loadb(out.buf.p, out.buf.n, 0, &error);
	if (!root) {
		tap_fail(__FILE__, __LINE__, "bad JSON: %s", error.text);
		return;
	}
	CHECK_STR(json_string_value(json_object_get(root, "schema")), "assay-profile");
	json_t *table = json_array_get(json_object_get(root, "tables"), 0);
	json_t *sums = json_object_get(table, "sums");
	CHECK_U64(json_array_size(sums), 1);
	json_t *sum = json_array_get(sums, 0);
	CHECK_U64(json_integer_value(json_array_get(sum, 2)), 2);
	CHECK_U64(json_integer_value(json_array_get(sum, 3)), 15);
	json_decref(root);
	buf_release(&out.buf);
}

TEST(formats_are_recognised_by_their_content)
{
	CHECK_STR(sniffed("# x\na;b 1\na;c 2\n"), "folded");
	CHECK_STR(
		sniffed("# ========\n# hostname : vm\n\na 1 [000] 1.000000: 7 cycles: \n\t 2 x (y)\n"),
		"perfscript");
	CHECK_STR(sniffed("  cafe 1 [000] 1.000000: 7 cycles:  ff x (y)\n\n"), "perfscript");
	CHECK_STR(sniffed("hello\n"), "none");
	CHECK_STR(sniffed(""), "none");
	CHECK_STR(format_of_path("x/y.folded")->name, "folded");
	CHECK(!format_of_path("x/y.pdf"));
	for (size_t i = 0; format_at(i); i++)
		CHECK(format_find(format_at(i)->name) == format_at(i));
}
