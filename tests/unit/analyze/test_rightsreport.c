/* analyze/rightsreport: the screen of assay doctor, for hosts that differ in what they permit. */
#include "base/base.h"
#include "analyze/rightsreport.h"

#include <errno.h>

#include "base/vec.h"
#include "cmd/cmd_table.h"
#include "tap.h"
#include "render/text.h"

#define ALL_CAPS UINT64_MAX

struct rows {
	struct rights_row *p;
	size_t n;
	size_t cap;
};

static void list_rows(struct rows *rows)
{
	for (size_t i = 0; i < nr_cmds; i++)
		for (size_t k = 0; k < CMD_USES_MAX && cmd_table[i].needs[k].bits; k++) {
			struct rights_row *row = vec_add(rows);
			*row = (struct rights_row){cmd_table[i].name, &cmd_table[i].needs[k]};
		}
}

static struct features whole_host(void)
{
	return (struct features){.caps = ALL_CAPS,
				 .has_btf = true,
				 .has_kernel_names = true,
				 .is_init_pidns = true,
				 .has_tracefs = true,
				 .paranoid = 2,
				 .release = "6.6.1-test"};
}

/* An ordinary user on an ordinary machine. */
static struct features user_host(void)
{
	struct features f = whole_host();
	f.caps = 0;
	f.perf_kernel = f.perf_system = f.perf_others = -EACCES;
	f.bpf = f.other_maps = f.other_root = -EPERM;
	f.tracepoints = f.uprobes = f.limit = -EACCES;
	f.has_kernel_names = false;
	f.pmu = -ENOENT;
	f.ptrace_scope = 1;
	return f;
}

/* Renders the screen at 80 columns. Returns whether every command works at least in part. */
static bool screen(struct buf *to, const struct features *f)
{
	struct rows rows = {0};
	struct report *r CLEANUP(report_free_p) = report_new();
	r->title = "assay doctor";
	r->has_no_samples = true;
	list_rows(&rows);
	const struct rights_page p = {
		.report = r, .features = f, .rows = rows.p, .nr_rows = rows.n, .whose = 7};
	bool is_good = rights_report(&p);
	const struct text_style style = {.width = 80};
	text_render(to, r, &style);
	vec_release(&rows);
	return is_good;
}

static void check_size(const struct buf *b)
{
	size_t nr = 0;
	for (struct sv left = buf_sv(b); left.n; nr++)
		CHECK(sv_split(&left, '\n').n <= 80);
	CHECK(nr > 5 && nr <= 40);
}

/* Whether the text has the words, in whatever lines they are wrapped. */
static bool has_words(const struct buf *b, const char *words)
{
	CLEANUP(buf_release) struct buf flat = {0};
	for (size_t i = 0; i < b->n; i++) {
		char c = b->p[i] == '\n' ? ' ' : b->p[i];
		if (c != ' ' || (flat.n && flat.p[flat.n - 1] != ' '))
			buf_add_ch(&flat, c);
	}
	return strstr(buf_str(&flat), words) != NULL;
}

TEST(rightsreport_every_command_states_its_needs)
{
	for (size_t i = 0; i < nr_cmds; i++)
		CHECK(cmd_table[i].needs[0].bits != 0);
}

TEST(rightsreport_root_is_told_that_all_commands_work)
{
	CLEANUP(buf_release) struct buf b = {0};
	struct features f = whole_host();
	CHECK(screen(&b, &f));
	check_size(&b);
	for (size_t i = 0; i < nr_cmds; i++)
		CHECK(has_words(&b, cmd_table[i].name));
	CHECK(!has_words(&b, "does not work") && !has_words(&b, "remedies"));
}

TEST(rightsreport_a_user_sees_what_is_missing_on_one_screen)
{
	CLEANUP(buf_release) struct buf b = {0};
	struct features f = user_host();
	CHECK(!screen(&b, &f));
	check_size(&b);
	CHECK(has_words(&b, "does not work"));
	CHECK(has_words(&b, "sudo, or: sudo setcap 'cap_bpf,cap_perfmon,cap_syslog+ep "
			    "cap_dac_read_search,cap_sys_ptrace,cap_sys_admin+ep' assay"));
	/* CPU samples are the part that assay all does not do without */
	CHECK(has_words(&b, "other users', system all, cpu, top, stat"));
	CHECK(has_words(&b, "own all without io, faults"));
}

TEST(rightsreport_a_container_gets_flags_not_sudo)
{
	CLEANUP(buf_release) struct buf b = {0};
	struct features f = user_host();
	f.seccomp = 2;
	f.is_init_pidns = false;
	f.bpf = -ENOTSUP;
	CHECK(!screen(&b, &f));
	check_size(&b);
	CHECK(has_words(&b, "start the container with --cap-add BPF --cap-add PERFMON"));
	CHECK(has_words(&b, "--pid=host"));
	CHECK(!has_words(&b, "setcap"));
	CHECK(!has_words(&b, "stat stacks"));
}

TEST(rightsreport_a_kernel_without_something_is_told_what)
{
	CLEANUP(buf_release) struct buf b = {0};
	struct features f = whole_host();
	f.has_btf = false;
	f.bpf = f.uprobes = -ENOTSUP;
	f.pmu = -ENOENT;
	CHECK(!screen(&b, &f));
	check_size(&b);
	CHECK(has_words(&b, "kernel 6.6.1-test lacks BTF: CONFIG_DEBUG_INFO_BTF"));
	CHECK(has_words(&b, "uprobes: CONFIG_UPROBE_EVENTS"));
	CHECK(!has_words(&b, "setcap") && !has_words(&b, "seccomp"));
}

TEST(rightsreport_an_old_kernel_is_told_what_of_bpf_it_lacks)
{
	CLEANUP(buf_release) struct buf b = {0};
	struct features f = whole_host();
	f.bpf = -ENOTSUP;
	f.bpf_lacks = "bpf_loop: since Linux 5.17";
	CHECK(!screen(&b, &f));
	CHECK(has_words(&b, "kernel 6.6.1-test lacks bpf_loop: since Linux 5.17"));
}

TEST(rightsreport_lockdown_is_named_where_privileges_suffice)
{
	CLEANUP(buf_release) struct buf b = {0};
	struct features f = whole_host();
	f.is_locked_down = true;
	f.bpf = f.uprobes = -EPERM;
	CHECK(!screen(&b, &f));
	CHECK(has_words(&b, "lockdown mode is 'confidentiality'"));
}

TEST(rightsreport_parts_that_are_refused_are_named)
{
	static const struct rights_needs one = {.bits = RIGHTS_PERF};
	static const struct rights_needs two = {.bits = RIGHTS_BPF};
	static const struct rights_needs both = {.bits = RIGHTS_PARTS, .parts = "one two"};
	const struct rights_row rows[] = {{"both", &both}, {"one", &one}, {"two", &two}};
	struct features f = whole_host();
	struct rights_result res;
	rights_judge(&res, rows, ARRAY_LEN(rows), &rows[0], RIGHTS_OWN, &f);
	CHECK(res.verdict == RIGHTS_WORKS && !res.why.n);
	rights_result_release(&res);
	f.bpf = -EPERM;
	rights_judge(&res, rows, ARRAY_LEN(rows), &rows[0], RIGHTS_OWN, &f);
	CHECK(res.verdict == RIGHTS_DEGRADES);
	CHECK_STR(buf_str(&res.why), "without two");
	rights_result_release(&res);
	f.perf_own = -EPERM;
	rights_judge(&res, rows, ARRAY_LEN(rows), &rows[0], RIGHTS_OWN, &f);
	CHECK(res.verdict == RIGHTS_REFUSED);
	rights_result_release(&res);
}
