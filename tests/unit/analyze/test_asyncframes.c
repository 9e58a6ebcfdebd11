/* analyze/asyncframes: waits below the poll function of a future, by names of real functions. */
#include "base/base.h"
#include "tap.h"

#include "analyze/wait/asyncframes.h"
#include "analyze/wait/reason.h"
#include "made.h"

#define SLEEP "std::thread::sleep;clock_nanosleep"
#define POLL                                                                                  \
	"tokio::runtime::task::raw::poll;tokio::runtime::task::harness::Harness::poll_inner;" \
	"tokio::runtime::task::core::Core::poll"
#define POOL                                                                      \
	"std::thread::Builder::spawn;tokio::runtime::blocking::pool::Inner::run;" \
	"tokio::runtime::blocking::pool::Task::run;" POLL ";"                     \
	"tokio::runtime::blocking::task::BlockingTask::poll"
#define WORKER                                                        \
	POOL ";tokio::runtime::scheduler::multi_thread::worker::run;" \
	     "tokio::runtime::scheduler::multi_thread::worker::Context::run"

static enum wait_reason judge(const char *stack, enum wait_reason recorded)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	stack_id s = made_stack(p, stack);
	profile_seal(p);
	struct reasons *rs = reasons_new(&a, p);
	struct tag tag = {.reason = (uint8_t)recorded};
	enum wait_reason r = reason_of(rs, s, &tag);
	CHECK(reason_of(rs, s, &tag) == r); /* cached */
	return r;
}

TEST(asyncframes_a_sleep_in_a_task_blocks_its_executor)
{
	CHECK(judge(WORKER ";" POLL ";app::handle::{{closure}};" SLEEP, WAIT_SLEEP) ==
	      WAIT_EXECUTOR);
	CHECK(judge(WORKER ";" POLL ";app::handle::{{closure}};std::sync::mpsc::Receiver::recv;"
			   "std::sync::mpmc::list::Channel::recv;std::thread::park;syscall",
		    WAIT_SYNC) == WAIT_EXECUTOR);
	CHECK(judge("main;async_task::raw::RawTask::run;app::handle::{{closure}};poll",
		    WAIT_POLL) == WAIT_EXECUTOR);
	CHECK(judge("main;app::run;app::handle::{async_fn#0};" SLEEP, WAIT_SLEEP) == WAIT_EXECUTOR);
	/* What is no idle wait keeps its reason. */
	CHECK(judge(WORKER ";" POLL ";app::handle::{{closure}};fsync", WAIT_FSYNC) == WAIT_FSYNC);
}

TEST(asyncframes_what_may_block_does_not)
{
	CHECK(judge(WORKER ";tokio::runtime::scheduler::multi_thread::worker::Context::park;"
			   "std::sync::condvar::Condvar::wait;syscall",
		    WAIT_SYNC) == WAIT_PARK);
	CHECK(judge(WORKER ";tokio::runtime::io::driver::Driver::turn;mio::poll::Poll::poll;"
			   "epoll_wait",
		    WAIT_POLL) == WAIT_POLL);
	CHECK(judge(POOL ";app::handle::{{closure}}::{{closure}};" SLEEP, WAIT_SLEEP) ==
	      WAIT_SLEEP);
	CHECK(judge(WORKER ";" POLL
			   ";app::handle::{{closure}};tokio::task::blocking::block_in_place;"
			   "tokio::runtime::scheduler::multi_thread::worker::block_in_place;"
			   "app::handle::{{closure}}::{{closure}};" SLEEP,
		    WAIT_SLEEP) == WAIT_SLEEP);
	/* block_in_place moves the loop of the worker to another thread of the pool. */
	CHECK(judge(POOL ";tokio::runtime::scheduler::multi_thread::worker::block_in_place::"
			 "{{closure}};tokio::runtime::scheduler::multi_thread::worker::run;" POLL
			 ";app::other::{{closure}};" SLEEP,
		    WAIT_SLEEP) == WAIT_EXECUTOR);
	CHECK(judge("main;app::block_on;std::thread::park;syscall", WAIT_SYNC) == WAIT_PARK);
	CHECK(judge("", WAIT_SLEEP) == WAIT_SLEEP);
}

TEST(asyncframes_names)
{
	static const struct {
		const char *name;
		enum async_kind want;
	} names[] = {
		{"<app::Timer as core::future::future::Future>::poll", ASYNC_POLL},
		{"<core::pin::Pin<P> as core::future::future::Future>::poll", ASYNC_POLL},
		{"<app::Map<F, fn(u8) -> u8> as core::future::future::Future>::poll", ASYNC_POLL},
		{"<futures_util::stream::futures_unordered::FuturesUnordered<Fut> as "
		 "futures_core::stream::Stream>::poll_next",
		 ASYNC_POLL},
		{"<tokio::runtime::task::core::Core<T, S>>::poll", ASYNC_POLL},
		{"app::work::{async_block#1}", ASYNC_POLL},
		{"<tokio::runtime::blocking::task::BlockingTask<T> as "
		 "core::future::future::Future>::poll",
		 ASYNC_ALLOWED},
		{"tokio::task::blocking::block_in_place::<app::work::{closure#0}, ()>",
		 ASYNC_ALLOWED},
		{"<app::Timer as core::future::future::Future>::poll::{{closure}}", ASYNC_NONE},
		{"std::sys::backtrace::__rust_begin_short_backtrace::<<app::Timer as "
		 "core::future::future::Future>::poll::{closure#0}, ()>",
		 ASYNC_NONE},
		{"tokio::task::spawn::spawn::<app::work::{async_fn_env#0}>", ASYNC_NONE},
		{"core::ptr::drop_in_place<app::work::{async_block_env#0}>", ASYNC_NONE},
		{"<mio::poll::Poll>::poll", ASYNC_NONE},
		{"<app::Device as app::Poll>::poll", ASYNC_NONE},
		{"poll", ASYNC_NONE},
		{"<", ASYNC_NONE},
	};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (asyncframes_kind_of(sv_from_str(names[i].name)) != names[i].want)
			tap_fail(__FILE__, __LINE__, "%s", names[i].name);
}
