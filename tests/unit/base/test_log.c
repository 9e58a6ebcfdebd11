/* base/log, base/progress: what reaches stderr, and that nothing foreign can act on a terminal. */
#include "base/base.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/process/progress.h"

static int saved_stderr;
static int capture_fd;

static void capture_begin(void)
{
	char path[] = "/tmp/assay-log-XXXXXX";
	capture_fd = mkstemp(path);
	unlink(path);
	saved_stderr = dup(STDERR_FILENO);
	dup2(capture_fd, STDERR_FILENO);
}

static void capture_end(struct buf *to)
{
	dup2(saved_stderr, STDERR_FILENO);
	CHECK(!lseek(capture_fd, 0, SEEK_SET));
	CHECK(!file_read_fd(to, capture_fd, 1 << 20, NULL));
	close(capture_fd);
	close(saved_stderr);
}

TEST(messages_have_the_command_and_no_control_characters)
{
	CLEANUP(buf_release) struct buf b = {0};
	CLEANUP(err_release) struct err err = {0};
	capture_begin();
	log_set_command("cpu");
	log_note("target '%s'", "a\x1b[2Jb\nassay cpu: forged");
	err_set(&err, -EACCES, "cannot open event 'cycles'");
	err_hint(&err, "one\ntwo");
	log_err(&err);
	log_set_command(NULL);
	log_warn("w");
	capture_end(&b);
	CHECK_STR(buf_str(&b), "assay cpu: target 'a\\x1b[2Jb\\x0aassay cpu: forged'\n"
			       "assay cpu: cannot open event 'cycles'\nhint: one\nhint: two\n"
			       "assay: warning: w\n");
}

TEST(levels_and_domains_select_messages)
{
	CLEANUP(buf_release) struct buf b = {0};
	CLEANUP(err_release) struct err err = {0};
	capture_begin();
	log_set_level(LOG_ERROR);
	log_note("no");
	log_hint("no");
	log_error("yes");
	log_hint("of the error");
	log_warn("no");
	log_hint("no");
	log_debug(LOG_PERF, 1, "no");
	CHECK(!log_set_debug("perf:2,bpf", &err));
	log_debug(LOG_PERF, 2, "two");
	log_debug(LOG_PERF, 3, "no");
	log_debug(LOG_BPF, 1, "one");
	capture_end(&b);
	CHECK_STR(buf_str(&b), "assay: yes\nhint: of the error\nperf: two\nbpf: one\n");
	CHECK(log_set_debug("pref", &err) == -EINVAL || err.code == -EINVAL);
	CHECK_STR(err.hint, "did you mean 'perf'?");
	CHECK(log_set_debug("perf:9", &err) < 0);
}

TEST(a_long_word_does_not_hide_the_message)
{
	CLEANUP(buf_release) struct buf b = {0};
	CLEANUP(buf_release) struct buf word = {0};
	buf_add_repeat(&word, 'x', 100000);
	capture_begin();
	log_error("cannot open '%s': No such file or directory", buf_str(&word));
	capture_end(&b);
	CHECK(b.n < 2000);
	CHECK(sv_has_prefix(buf_sv(&b), SV("assay: cannot open 'xx")));
	CHECK(sv_has_suffix(buf_sv(&b), SV("xx': No such file or directory\n")));
}

TEST(progress_is_erased_and_messages_pass_it)
{
	CLEANUP(buf_release) struct buf b = {0};
	capture_begin();
	progress_set_when(TERM_ALWAYS);
	struct progress pr;
	progress_init(&pr, "naming");
	progress_text(&pr, "%d of %d", 42, 100);
	log_note("hello");
	progress_release(&pr);
	log_note("end");
	capture_end(&b);
	CHECK_STR(buf_str(&b), "\r\x1b[Knaming: 42 of 100"
			       "\r\x1b[Kassay: hello\nnaming: 42 of 100"
			       "\r\x1b[Kassay: end\n");
}

TEST(progress_is_not_shown_without_a_terminal)
{
	CLEANUP(buf_release) struct buf b = {0};
	capture_begin();
	progress_set_when(TERM_AUTO);
	struct progress pr;
	progress_init(&pr, "naming");
	CHECK(!progress_due(&pr));
	progress_text(&pr, "%d", 1);
	progress_release(&pr);
	capture_end(&b);
	CHECK_U64(b.n, 0);
}

TEST(progress_draws_at_most_six_times_a_second)
{
	CLEANUP(buf_release) struct buf b = {0};
	capture_begin();
	progress_set_when(TERM_ALWAYS);
	struct progress pr;
	progress_init(&pr, "x");
	for (int i = 0; i < 100000; i++)
		if (progress_due(&pr))
			progress_text(&pr, "%d", 1);
	progress_release(&pr);
	capture_end(&b);
	size_t nr = 0;
	for (const char *s = buf_str(&b); (s = strstr(s, "x: 1")); s++)
		nr++;
	CHECK(nr >= 1 && nr <= 3);
}
