/* analyze/reason, syncframes: locks and parking classified by names of real functions. */
#include "base/base.h"
#include "tap.h"

#include <sys/syscall.h>

#include "analyze/wait/reason.h"
#include "analyze/wait/syncframes.h"
#include "analyze/wait/frames.h"
#include "made.h"

struct sight {
	const char *stack; /* root first, as real programs show them */
	enum wait_reason want;
};

/* @share: of a capture of 2^20 ns, the part that the wait lasts, as a power of two */
static enum wait_reason judge_part(const char *stack, unsigned evidence, unsigned share)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	stack_id s = made_stack(p, stack);
	p->start_ns = 1000;
	p->end_ns = p->start_ns + (1u << 20);
	profile_seal(p);
	struct reasons *rs = reasons_new(&a, p);
	struct tag tag = {.reason = WAIT_SYNC,
			  .evidence = (uint8_t)evidence,
			  .log2_ns = (uint8_t)(20 - share)};
	enum wait_reason r = reason_of(rs, s, &tag);
	CHECK(reason_of(rs, s, &tag) == r); /* kept answers are the same */
	return r;
}

static enum wait_reason judge(const char *stack, unsigned evidence)
{
	return judge_part(stack, evidence, 10);
}

static void check_all(const struct sight *sights, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		enum wait_reason r = judge(sights[i].stack, 0);
		if (r != sights[i].want)
			tap_fail(__FILE__, __LINE__, "%s: %s, expected %s", sights[i].stack,
				 wait_key(r), wait_key(sights[i].want));
	}
}

TEST(reason_c_and_cxx_locks_and_condition_variables)
{
	static const struct sight sights[] = {
		{"main;f;pthread_mutex_lock;__lll_lock_wait;futex_wait [k]", WAIT_LOCK},
		{"main;f;___pthread_mutex_lock;lll_mutex_lock_optimized;__GI___lll_lock_wait",
		 WAIT_LOCK},
		{"main;f;pthread_rwlock_wrlock@@GLIBC_2.34;__futex_abstimed_wait64", WAIT_LOCK},
		{"main;f;pthread_cond_wait@@GLIBC_2.3.2;__futex_abstimed_wait_common64", WAIT_PARK},
		{"main;f;pthread_cond_wait;__pthread_mutex_cond_lock;__lll_lock_wait", WAIT_LOCK},
		{"main;f;std::condition_variable::wait(std::unique_lock<std::mutex>&);"
		 "pthread_cond_wait",
		 WAIT_PARK},
		{"main;f;std::mutex::lock();__gthread_mutex_lock;fn_1a2b0", WAIT_LOCK},
		{"main;f;malloc;_int_malloc;__lll_lock_wait_private", WAIT_LOCK},
		{"main;f;_rjem_je_malloc_mutex_lock_slow;fn_2000", WAIT_LOCK},
		{"background_thread_entry;background_work_sleep_once;pthread_cond_timedwait",
		 WAIT_PARK},
		{"main;absl::lts_20230125::Mutex::Lock();absl::lts_20230125::Mutex::LockSlow();"
		 "absl::lts_20230125::Mutex::LockSlowLoop;AbslInternalPerThreadSemWait;syscall",
		 WAIT_LOCK},
		{"main;absl::Mutex::LockWhen;absl::Mutex::LockSlow;absl::Mutex::LockSlowLoop;"
		 "AbslInternalPerThreadSemWait",
		 WAIT_PARK},
		{"main;absl::CondVar::Wait;absl::CondVar::WaitCommon;absl::Mutex::Block",
		 WAIT_PARK},
	};
	check_all(sights, ARRAY_LEN(sights));
}

TEST(reason_rust_std_parking_lot_crossbeam_tokio)
{
	static const struct sight sights[] = {
		{"app::run;std::sync::mutex::Mutex::lock;"
		 "std::sys::sync::mutex::futex::Mutex::lock_contended;std::sys::futex_wait;syscall",
		 WAIT_LOCK},
		{"app::run;<std::sys::sync::mutex::futex::Mutex>::lock_contended;syscall",
		 WAIT_LOCK},
		{"app::run;std::sys::unix::locks::futex_rwlock::RwLock::write_contended;syscall",
		 WAIT_LOCK},
		{"app::run;std::sync::condvar::Condvar::wait;"
		 "std::sys::sync::condvar::futex::Condvar::wait_optional_timeout;syscall",
		 WAIT_PARK},
		{"app::run;std::sync::poison::condvar::Condvar::wait;"
		 "std::sys::sync::mutex::futex::Mutex::lock_contended;syscall",
		 WAIT_LOCK},
		{"app::run;parking_lot::raw_mutex::RawMutex::lock_slow;"
		 "parking_lot_core::parking_lot::park::{{closure}};"
		 "<parking_lot_core::thread_parker::imp::ThreadParker as "
		 "parking_lot_core::thread_parker::ThreadParkerT>::park;syscall",
		 WAIT_LOCK},
		{"app::run;parking_lot::raw_rwlock::RawRwLock::lock_exclusive_slow;"
		 "parking_lot_core::word_lock::x;syscall",
		 WAIT_LOCK},
		{"app::run;parking_lot::condvar::Condvar::wait_until_internal;"
		 "parking_lot_core::parking_lot::park;syscall",
		 WAIT_PARK},
		{"app::run;parking_lot::condvar::Condvar::wait_until_internal;"
		 "parking_lot::raw_mutex::RawMutex::lock_slow;parking_lot_core::parking_lot::park",
		 WAIT_LOCK},
		{"app::run;crossbeam_channel::flavors::array::Channel::recv::{{closure}};"
		 "crossbeam_channel::context::Context::wait_until;std::thread::park;"
		 "std::sys::sync::thread_parking::futex::Parker::park;syscall",
		 WAIT_PARK},
		{"rayon_core::registry::WorkerThread::wait_until_cold;"
		 "rayon_core::sleep::Sleep::sleep;std::sync::condvar::Condvar::wait;syscall",
		 WAIT_PARK},
		{"std::thread::Builder::spawn;tokio::runtime::blocking::pool::Inner::run;"
		 "parking_lot::condvar::Condvar::wait_until_internal;syscall",
		 WAIT_PARK},
		{"tokio::runtime::scheduler::multi_thread::worker::Context::park_timeout;"
		 "tokio::runtime::scheduler::multi_thread::park::Parker::park;"
		 "std::sys::sync::condvar::futex::Condvar::wait;syscall",
		 WAIT_PARK},
		{"app::db;once_cell::imp::OnceCell::initialize;once_cell::imp::wait;"
		 "std::thread::park;syscall",
		 WAIT_LOCK},
		{"app::get;dashmap::lock::RawRwLock::lock_shared_slow;parking_lot_core::park;syscall",
		 WAIT_LOCK},
	};
	check_all(sights, ARRAY_LEN(sights));
}

#define RUST_PARK "std::thread::park;std::sys::sync::thread_parking::futex::Parker::park;syscall"
#define RUST_CONDVAR                                                                               \
	"std::sync::poison::condvar::Condvar::wait;std::sys::sync::condvar::futex::Condvar::wait;" \
	"syscall"
#define PYTHON_LOCK \
	"_PyEval_EvalFrameDefault;lock_PyThread_acquire_lock;PyThread_acquire_lock_timed;sem_wait"

TEST(reason_a_send_into_a_full_channel_is_back_pressure)
{
	static const struct sight sights[] = {
		{"app::run;std::sync::mpsc::SyncSender::send;std::sync::mpmc::Sender::send;"
		 "std::sync::mpmc::array::Channel::send;"
		 "std::sync::mpmc::array::Channel::send::{{closure}};"
		 "std::sync::mpmc::context::Context::wait_until;" RUST_PARK,
		 WAIT_BACKPRESSURE},
		{"app::run;std::sync::mpmc::zero::Channel::send::{closure#0};syscall",
		 WAIT_BACKPRESSURE},
		{"app::run;std::sync::mpmc::array::Channel::recv::{{closure}};"
		 "std::sync::mpmc::context::Context::wait_until;" RUST_PARK,
		 WAIT_PARK},
		/* The lock within the channel is a lock. */
		{"app::run;std::sync::mpmc::array::Channel::send;"
		 "std::sys::sync::mutex::futex::Mutex::lock_contended;syscall",
		 WAIT_LOCK},
		{"app::run;crossbeam_channel::flavors::array::Channel::send::{{closure}};"
		 "crossbeam_channel::context::Context::wait_until;" RUST_PARK,
		 WAIT_BACKPRESSURE},
		{"app::run;flume::Sender::send;flume::Shared::send_sync;flume::Hook::wait_send;"
		 "" RUST_PARK,
		 WAIT_BACKPRESSURE},
		{"app::run;flume::Shared::recv_sync;flume::Hook::wait_recv;" RUST_PARK, WAIT_PARK},
		{"app::run;tokio::sync::mpsc::bounded::Sender::blocking_send;"
		 "tokio::future::block_on::block_on;tokio::runtime::park::CachedParkThread::block_on;"
		 "tokio::runtime::park::Inner::park;" RUST_CONDVAR,
		 WAIT_BACKPRESSURE},
		{"app::run;kanal::Sender::send;kanal::signal::Signal::wait;" RUST_PARK,
		 WAIT_BACKPRESSURE},
		{"start_thread;py::Producer.run:/app.py;py_trampoline_evaluator;"
		 "py::Queue.put:/usr/lib/python3.12/queue.py;py_trampoline_evaluator;"
		 "_PyEval_EvalFrameDefault;py::Condition.wait:/usr/lib/python3.12/threading.py;"
		 "" PYTHON_LOCK,
		 WAIT_BACKPRESSURE},
		/* Queues of programs, of a mutex and condition variables. */
		{"app::produce;app::BoundedQueue::push;" RUST_CONDVAR, WAIT_BACKPRESSURE},
		{"produce;Queue::put;std::condition_variable::wait;"
		 "pthread_cond_wait@@GLIBC_2.3.2;__futex_abstimed_wait_common",
		 WAIT_BACKPRESSURE},
		{"produce;job_queue_push;pthread_cond_wait;futex_wait", WAIT_BACKPRESSURE},
		{"consume;job_queue_pop;pthread_cond_wait;futex_wait", WAIT_PARK},
		{"app::consume;app::BoundedQueue<T>::pop;" RUST_CONDVAR, WAIT_PARK},
		{"produce;job_queue_push;pthread_mutex_lock;__lll_lock_wait", WAIT_LOCK},
		{"app::BoundedQueue<T>::push::{{closure}};" RUST_CONDVAR, WAIT_PARK},
	};
	check_all(sights, ARRAY_LEN(sights));
}

TEST(reason_other_threads_are_waited_for_until_they_end_or_arrive)
{
	static const struct sight sights[] = {
		{"main;join_all;pthread_join;__pthread_clockjoin_ex", WAIT_JOIN},
		{"main;f;thrd_join;pthread_join;__pthread_clockjoin_ex", WAIT_JOIN},
		{"main;f;pthread_barrier_wait;futex_wait", WAIT_JOIN},
		{"main;f;std::thread::join();pthread_join", WAIT_JOIN},
		{"main;f;std::__atomic_futex_unsigned_base::_M_futex_wait_until;syscall",
		 WAIT_JOIN},
		{"main;GOMP_parallel;gomp_team_barrier_wait_end;do_wait", WAIT_JOIN},
		{"start_thread;gomp_thread_start;gomp_barrier_wait;gomp_barrier_wait_end",
		 WAIT_PARK},
		{"app::main;std::thread::JoinHandle::join;std::sys::pal::unix::thread::Thread::join;"
		 "pthread_join",
		 WAIT_JOIN},
		{"app::main;std::thread::join_handle::JoinHandle::join;"
		 "std::thread::lifecycle::JoinInner::join;__pthread_clockjoin_ex",
		 WAIT_JOIN},
		{"app::main;std::thread::scoped::scope;" RUST_PARK, WAIT_JOIN},
		/* What the body of a scope waits for is another matter. */
		{"app::main;std::thread::scoped::scope;app::main::{{closure}};" RUST_PARK,
		 WAIT_PARK},
		{"app::main;std::thread::scoped::scope;app::main::{{closure}};syscall", WAIT_SYNC},
		{"app::run;std::sync::barrier::Barrier::wait;" RUST_CONDVAR, WAIT_JOIN},
		{"app::run;crossbeam_utils::sync::wait_group::WaitGroup::wait;" RUST_CONDVAR,
		 WAIT_JOIN},
		{"app::run;rayon_core::registry::Registry::in_worker_cold;"
		 "rayon_core::latch::LockLatch::wait_and_reset;" RUST_CONDVAR,
		 WAIT_JOIN},
		{"rayon_core::registry::main_loop;rayon_core::registry::WorkerThread::wait_until;"
		 "rayon_core::registry::WorkerThread::wait_until_cold;"
		 "rayon_core::job::StackJob::execute;rayon_core::join::join_context::{{closure}};"
		 "rayon_core::registry::WorkerThread::wait_until_cold;"
		 "rayon_core::sleep::Sleep::no_work_found;rayon_core::sleep::Sleep::sleep;"
		 "" RUST_CONDVAR,
		 WAIT_JOIN},
		{"rayon_core::registry::main_loop;rayon_core::registry::WorkerThread::wait_until;"
		 "rayon_core::registry::WorkerThread::wait_until_cold;"
		 "rayon_core::sleep::Sleep::no_work_found;rayon_core::sleep::Sleep::sleep;"
		 "" RUST_CONDVAR,
		 WAIT_PARK},
	};
	check_all(sights, ARRAY_LEN(sights));
}

TEST(reason_semaphores_and_pools_are_permits)
{
	static const struct sight sights[] = {
		{"main;f;sem_wait;__new_sem_wait_slow64.constprop.0", WAIT_PERMIT},
		{"main;f;sem_clockwait;do_futex_wait", WAIT_PERMIT},
		{"main;f;std::counting_semaphore::acquire();std::__detail::__platform_wait",
		 WAIT_PERMIT},
		{"app::run;r2d2::Pool::get;r2d2::Pool::get_timeout;"
		 "parking_lot::condvar::Condvar::wait_until_internal;parking_lot_core::park",
		 WAIT_PERMIT},
		{"PostmasterMain;LWLockAcquire;PGSemaphoreLock;sem_wait;do_futex_wait", WAIT_LOCK},
	};
	check_all(sights, ARRAY_LEN(sights));
}

/* Python's locks, conditions and joins are one function below; which one, only Python knows. */
TEST(reason_a_wait_for_the_whole_capture_is_idle_unless_its_purpose_is_known)
{
	static const unsigned whole = EVIDENCE_AT_START | EVIDENCE_OPEN;
	static const struct {
		const char *stack;
		enum wait_reason a_part;
		enum wait_reason all;
		enum wait_reason most; /* more than half of the capture, then ended by a thread */
	} cases[] = {
		{"start_thread;node::inspector::StartIoThreadMain;uv_sem_wait;sem_wait",
		 WAIT_PERMIT, WAIT_PARK, WAIT_PERMIT},
		{"main;worker;sem_wait@@GLIBC_2.34", WAIT_PERMIT, WAIT_PARK, WAIT_PERMIT},
		{"main;pthread_join", WAIT_JOIN, WAIT_PARK, WAIT_PARK},
		{"main;std::counting_semaphore::acquire();std::__detail::__platform_wait",
		 WAIT_PERMIT, WAIT_PERMIT, WAIT_PERMIT},
		{"main;pthread_mutex_lock;__lll_lock_wait", WAIT_LOCK, WAIT_LOCK, WAIT_LOCK},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CHECK(judge(cases[i].stack, 0) == cases[i].a_part);
		CHECK(judge(cases[i].stack, EVIDENCE_AT_START) == cases[i].a_part);
		CHECK(judge(cases[i].stack, EVIDENCE_OPEN) == cases[i].a_part);
		CHECK(judge(cases[i].stack, whole) == cases[i].all);
		/* A thread that is born in the capture, and waits until the process ends */
		CHECK(judge_part(cases[i].stack, EVIDENCE_OPEN, 1) == cases[i].all);
		CHECK(judge_part(cases[i].stack, EVIDENCE_OPEN, 2) == cases[i].a_part);
		CHECK(judge_part(cases[i].stack, 0, 1) == cases[i].most);
	}
}

TEST(reason_threads_of_hotspot)
{
	static const struct sight sights[] = {
		{"Thread::call_run();GangWorker::run();GangWorker::loop();PosixSemaphore::wait();"
		 "sem_wait",
		 WAIT_PARK},
		{"WorkerThread::run();WorkerTaskDispatcher::worker_run_task();PosixSemaphore::wait();"
		 "sem_wait",
		 WAIT_PARK},
		{"WorkGang::run_task(AbstractGangTask*, unsigned int, bool);PosixSemaphore::wait();"
		 "sem_wait",
		 WAIT_JOIN},
		{"VMThread::wait_until_executed(VM_Operation*);Monitor::wait(long);"
		 "os::PlatformMonitor::wait(long);pthread_cond_wait",
		 WAIT_JOIN},
		{"SafepointSynchronize::block(JavaThread*);LinuxWaitBarrier::wait(int);syscall",
		 WAIT_JOIN},
		{"CompileQueue::get();Monitor::wait(long);os::PlatformMonitor::wait(long);"
		 "pthread_cond_timedwait",
		 WAIT_PARK},
	};
	check_all(sights, ARRAY_LEN(sights));
}

TEST(reason_a_lock_of_python_is_not_guessed)
{
	CHECK(judge("start_thread;thread_run;" PYTHON_LOCK, 0) == WAIT_SYNC);
	CHECK(judge("start_thread;py::Queue.get:/usr/lib/python3.12/queue.py;" PYTHON_LOCK, 0) ==
	      WAIT_PARK);
	CHECK(judge("start_thread;_queue_SimpleQueue_get_impl;" PYTHON_LOCK, 0) == WAIT_PARK);
}

/* The same with the functions of stripped interpreters, and a function of Python before them. */
static enum wait_reason judge_python(const char *stack, const char *python)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	stack_id s = made_stack(p, stack);
	vec_foreach(f, &p->functions)
		if (!strcmp(profile_text(p, f->name), python))
			f->flags |= FUNC_PYTHON;
	profile_seal(p);
	return reason_of(reasons_new(&a, p), s, &(struct tag){.reason = WAIT_SYNC});
}

TEST(reason_a_lock_that_a_python_program_takes_itself_is_a_lock)
{
	static const char from_program[] =
		"thread_run;worker;update;_PyObject_MakeTpCall;python3!fn_10;"
		"PyThread_acquire_lock_timed;sem_wait;__new_sem_wait_slow64;do_futex_wait";
	CHECK(judge_python(from_program, "update") == WAIT_LOCK);
	CHECK(judge("thread_run;py::update:/srv/app.py;" PYTHON_LOCK, 0) == WAIT_LOCK);
	/* What the library does with locks is known by its functions, and one of its modules. */
	CHECK(judge_python("update;py::Condition.wait:/usr/lib/threading.py;PyObject_Vectorcall;"
			   "PyThread_acquire_lock_timed;sem_wait",
			   "update") == WAIT_PARK);
	CHECK(judge_python("take_job;PyObject_Vectorcall;"
			   "_queue.cpython-311-x86_64-linux-gnu.so!fn_2880;"
			   "PyThread_acquire_lock_timed;sem_wait",
			   "take_job") == WAIT_PARK);
	CHECK(judge_python("<module>;py::_shutdown:/usr/lib/threading.py;python3!fn_10;"
			   "PyThread_acquire_lock_timed;sem_wait",
			   "<module>") == WAIT_JOIN);
	CHECK(sync_kind_of(SV("threading.py:1500 _shutdown")) == SYNC_JOIN);
	/* Whatever else waits in a program of Python is not known by that. */
	CHECK(judge_python("update;_PyObject_MakeTpCall;lib.so!fn_10;syscall", "update") ==
	      WAIT_SYNC);
}

TEST(reason_functions_of_pythons_library_are_known_by_file_and_name)
{
	CHECK(sync_kind_of(SV("queue.py:122 Queue.put")) == SYNC_BACKPRESSURE);
	CHECK(sync_kind_of(SV("queue.py:154 Queue.get")) == SYNC_PARK);
	CHECK(sync_kind_of(SV("threading.py:1080 Thread.join")) == SYNC_JOIN);
	CHECK(sync_kind_of(SV("threading.py:453 Semaphore.acquire")) == SYNC_PERMIT);
	CHECK(sync_kind_of(SV("threading.py:288 Condition.wait_for")) == SYNC_PARK_PART);
	CHECK(sync_kind_of(SV("_base.py:428 Future.result")) == SYNC_JOIN);
	CHECK(sync_kind_of(SV("app.py:9 Queue.put")) == SYNC_UNKNOWN);
}

TEST(reason_the_run_queue_after_sched_yield_is_yielding)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	stack_id s = made_stack(p, "main;crossbeam_utils::backoff::Backoff::snooze;sched_yield");
	struct tag yielded = {.reason = WAIT_RUN_QUEUE, .detail = profile_cstr(p, "yielded")};
	struct tag preempted = {.reason = WAIT_RUN_QUEUE,
				.detail = profile_cstr(p, "preempted"),
				.syscall = SYS_sched_yield};
	struct tag single = {.reason = WAIT_RUN_QUEUE, .syscall = SYS_sched_yield};
	struct tag queued = {.reason = WAIT_RUN_QUEUE, .syscall = -1};
	profile_seal(p);
	struct reasons *rs = reasons_new(&a, p);
	CHECK(reason_of(rs, s, &yielded) == WAIT_YIELD);
	CHECK(reason_of(rs, s, &preempted) == WAIT_RUN_QUEUE);
	CHECK(reason_of(rs, s, &single) == WAIT_YIELD);
	CHECK(reason_of(rs, s, &queued) == WAIT_RUN_QUEUE);
}

TEST(reason_of_descriptors_and_files)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	stack_id s = made_stack(p, "main;read");
	struct {
		const char *object;
		enum wait_reason own, is;
		int16_t syscall;
	} all[] = {
		{"timerfd", WAIT_PIPE, WAIT_SLEEP, SYS_read},
		{"signalfd", WAIT_PIPE, WAIT_POLL, SYS_read},
		{"inotify", WAIT_PIPE, WAIT_POLL, SYS_read},
		{"/dev/pts/3", WAIT_PIPE, WAIT_POLL, SYS_read},
		{"/dev/pts/3", WAIT_PIPE, WAIT_BACKPRESSURE, SYS_write},
		{"pipe:[17]", WAIT_PIPE, WAIT_PIPE, SYS_read},
		{"eventfd", WAIT_PIPE, WAIT_PIPE, SYS_read},
		{"/tmp/lock.file", WAIT_FILE_OTHER, WAIT_LOCK, SYS_flock},
		{"/tmp/lock.file", WAIT_FILE_OTHER, WAIT_LOCK, SYS_fcntl},
		{"/tmp/lock.file", WAIT_FILE_OTHER, WAIT_FILE_OTHER, SYS_openat},
	};
	struct tag tags[ARRAY_LEN(all)];
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		tags[i] = (struct tag){.reason = (uint8_t)all[i].own,
				       .object = profile_cstr(p, all[i].object),
				       .syscall = all[i].syscall};
	profile_seal(p);
	struct reasons *rs = reasons_new(&a, p);
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		CHECK(reason_of(rs, s, &tags[i]) == all[i].is);
}

TEST(reason_runtimes_whose_locks_park)
{
	static const struct sight sights[] = {
		{"JavaThread::run;ObjectMonitor::enter(JavaThread*);ObjectMonitor::EnterI;"
		 "os::PlatformEvent::park();pthread_cond_wait",
		 WAIT_LOCK},
		{"JavaThread::run;ObjectMonitor::wait;os::PlatformEvent::park;pthread_cond_wait",
		 WAIT_PARK},
		{"thread_run;take_gil;pthread_cond_timedwait@@GLIBC_2.3.2;fn_90", WAIT_LOCK},
		{"PostmasterMain;heap_update;LWLockAcquire;PGSemaphoreLock;sem_wait;"
		 "__new_sem_wait_slow64",
		 WAIT_LOCK},
		{"runtime.mcall;runtime.findrunnable;runtime.stopm;runtime.notesleep;"
		 "runtime.futexsleep;runtime.futex",
		 WAIT_PARK},
		{"runtime.mcall;runtime.lock2;runtime.futexsleep;runtime.futex", WAIT_LOCK},
		{"node::Start;uv_thread_pool;worker;uv_cond_wait;pthread_cond_wait", WAIT_PARK},
	};
	check_all(sights, ARRAY_LEN(sights));
}

TEST(reason_unknown_frames_stay_unknown_and_evidence_decides_only_there)
{
	const char *unknown = "main;serve;app!fn_1a2b0;syscall";
	const char *pool = "start_thread;pool_main;pthread_cond_wait;__futex_abstimed_wait_common";
	CHECK(judge(unknown, 0) == WAIT_SYNC);
	CHECK(judge(unknown, EVIDENCE_LOCK_WORD) == WAIT_LOCK);
	CHECK(judge(pool, EVIDENCE_LOCK_WORD) == WAIT_PARK); /* words of condvars look alike */
	CHECK(judge("", 0) == WAIT_SYNC);
}

/* An initialiser that waits is no waiting for the one who initialises. */
TEST(reason_a_lock_does_not_reach_into_what_it_runs)
{
	const char *far = "main;std::sys::sync::once::futex::Once::call;app::init;app::a;app::b;"
			  "app::c;app::d;app::e;app::f;app::g;app::h;app::i;app::wait;syscall";
	CHECK(judge(far, 0) == WAIT_SYNC);
	CHECK(judge("main;std::sys::sync::once::futex::Once::call;app::init;pthread_cond_wait",
		    0) == WAIT_PARK);
	CHECK(judge("main;std::sys::sync::once::futex::Once::call;syscall", 0) == WAIT_LOCK);
}

/* Stacks of made.h cannot hold these: '<' is theirs. */
TEST(reason_names_with_types_in_them)
{
	static const struct {
		const char *name;
		enum sync_kind want;
	} names[] = {
		{"std::sync::mutex::Mutex<T>::lock", SYNC_LOCK},
		{"std::sync::poison::mutex::Mutex<alloc::vec::Vec<u8>>::lock", SYNC_LOCK},
		{"lock_api::mutex::Mutex<R,T>::lock", SYNC_LOCK_BY_PARK},
		{"<parking_lot::raw_mutex::RawMutex as lock_api::mutex::RawMutex>::lock",
		 SYNC_LOCK_BY_PARK},
		{"crossbeam_channel::flavors::zero::Channel<T>::recv::{{closure}}", SYNC_PARK},
		{"std::unique_lock<std::mutex>::lock()", SYNC_LOCK},
		{"std::__detail::__platform_wait<int>(int const*, int)", SYNC_PARK_PART},
		{"tbb::detail::r1::concurrent_monitor_base<unsigned long>::wait<x>(x)",
		 SYNC_PARK_PART},
		{"srw_mutex_impl<true>::wait_and_lock()", SYNC_LOCK_BY_PARK},
		{"dashmap::lock::RawRwLock::lock_exclusive_slow", SYNC_LOCK_BY_PARK},
		{"__pthread_mutex_lock_full.part.0", SYNC_LOCK},
		{"pthread_mutex_lock@plt", SYNC_LOCK},
		{"<std::sys::sync::condvar::futex::Condvar>::wait_optional_timeout",
		 SYNC_PARK_PART},
		{"<std::sys::sync::mutex::futex::Mutex>::lock_contended", SYNC_LOCK},
		{"<std::sync::mutex::Mutex<alloc::vec::Vec<u8>>>::lock", SYNC_LOCK},
		{"<std::sync::mpmc::array::Channel<u64>>::send::{closure#0}", SYNC_BACKPRESSURE},
		{"<std::sync::mpmc::array::Channel<app::send::Job>>::recv", SYNC_PARK},
		{"<std::sync::mpmc::Sender<fn(u8) -> u8>>::send", SYNC_BACKPRESSURE},
		{"flume::Hook<T,flume::signal::SyncSignal>::wait_send", SYNC_BACKPRESSURE},
		{"std::thread::scoped::scope::<app::main::{closure#2}, ()>", SYNC_JOIN_AROUND},
		{"void java.util.concurrent.ArrayBlockingQueue.put(java.lang.Object)",
		 SYNC_BACKPRESSURE},
		{"void app.Putter.take(java.util.concurrent.BlockingQueue)", SYNC_UNKNOWN},
		{"std::__1::counting_semaphore<2l>::acquire()", SYNC_PERMIT},
		{"tokio::task::spawn::<std::sync::mpsc::SyncSender<u8>::send>", SYNC_UNKNOWN},
	};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (sync_kind_of(sv_from_str(names[i].name)) != names[i].want)
			tap_fail(__FILE__, __LINE__, "%s", names[i].name);
}

TEST(reason_names_of_programs_are_no_patterns)
{
	static const char *const names[] = {
		"park_cars",         "blocked_writer", "clock_wait",     "unlock_door",
		"app::parking::lot", "mutexes",        "my_cond_waiter", "recv",
		"deadlock_check",    "relock",         "std_mutex",      "take_gills",
	};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (sync_kind_of(sv_from_str(names[i])) != SYNC_UNKNOWN)
			tap_fail(__FILE__, __LINE__, "'%s' says something", names[i]);
}

TEST(reason_a_lock_may_poll_or_nap)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	stack_id row = made_stack(p, "main;heap_update;LockAcquireExtended;WaitOnLock;ProcSleep;"
				     "WaitLatch;WaitEventSetWait;epoll_wait;ep_poll [k]");
	stack_id spin =
		made_stack(p, "main;GetSnapshot;s_lock;perform_spin_delay;pg_usleep;select");
	stack_id idle = made_stack(p, "main;PostgresMain;WaitLatch;WaitEventSetWait;epoll_wait");
	stack_id init =
		made_stack(p, "main;std::sys::sync::once::futex::Once::call;app::init;poll");
	profile_seal(p);
	struct reasons *rs = reasons_new(&a, p);
	struct tag poll = {.reason = WAIT_POLL};
	struct tag ringwait = {.reason = WAIT_SLEEP};
	CHECK(reason_of(rs, row, &poll) == WAIT_LOCK);
	CHECK(reason_of(rs, spin, &ringwait) == WAIT_LOCK);
	CHECK(reason_of(rs, idle, &poll) == WAIT_POLL);
	CHECK(reason_of(rs, init, &poll) == WAIT_POLL);
}

TEST(reason_other_reasons_pass_through)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	stack_id s = made_stack(p, "main;pthread_mutex_lock");
	profile_seal(p);
	struct reasons *rs = reasons_new(&a, p);
	CHECK(reason_of(rs, s, &(struct tag){.reason = WAIT_FAULT}) == WAIT_FAULT);
	CHECK(reason_of(rs, s, &(struct tag){.reason = 200}) ==
	      WAIT_UNKNOWN); /* of a later format */
}

TEST(reason_the_programs_own_function_is_found_below_libraries)
{
	static const struct {
		const char *stack;
		const char *own;
		const char *via;
	} cases[] = {
		{"main app;save app;fsync libc.so.6;ext4_sync_file [k]", "save", "fsync"},
		{"app::main app;app::get app;std::sync::mutex::Mutex::lock app;"
		 "std::sys::sync::mutex::futex::Mutex::lock_contended app;syscall libc.so.6",
		 "app::get", "std::sync::mutex::Mutex::lock"},
		{"main app;touch app;asm_exc_page_fault [k]", "touch", ""},
		{"start_thread libc.so.6;epoll_wait libc.so.6", "epoll_wait", ""},
		{"start_thread libc.so.6;std::sys::thread_start app;"
		 "std::sync::mpmc::list::Channel::recv app;std::thread::park app;"
		 "syscall libc.so.6",
		 "std::sync::mpmc::list::Channel::recv", "std::thread::park"},
		{"start_thread libc.so.6;std::sys::thread_start app;std::thread::sleep app;"
		 "clock_nanosleep libc.so.6",
		 "std::thread::sleep", "clock_nanosleep"},
		{"main app;commit app;app!fn_1230 app;app!fn_4560 app;fdatasync libc.so.6",
		 "commit", "fdatasync"},
		{"main app;get app;app!fn_1230 app;asm_exc_page_fault [k]", "get", "app!fn_1230"},
		{"main app;app!fn_1230 app;app!fn_4560 app;poll libc.so.6", "app!fn_4560", "poll"},
		{"ret_from_fork [k];kworker [k]", "[kernel]", ""},
		{"", "[no stack]", ""},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(arena_release) struct arena a = {0};
		CLEANUP(profile_free_p) struct profile *p = profile_new();
		stack_id s = made_stack(p, cases[i].stack);
		profile_seal(p);
		struct waitframe f = waitframe_of(waitframes_new(&a, p), s);
		CHECK_STR(waitframe_name(p, &f), cases[i].own);
		CHECK_STR(profile_text(p, f.via), cases[i].via);
	}
}

/* The name of a function of Python has the line of its definition. */
TEST(waitframes_add_the_line_that_runs_to_functions_of_python)
{
	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(profile_free_p) struct profile *p = profile_new();
	stack_id python =
		made_stack(p, "thread_run;app.py:3_update;python3!fn_10;sem_wait libc.so.6");
	stack_id native = made_stack(p, "main;commit;sem_wait libc.so.6");
	vec_foreach(f, &p->functions)
		if (!strcmp(profile_text(p, f->name), "app.py:3_update"))
			f->flags |= FUNC_PYTHON;
	vec_foreach(f, &p->frames)
		f->line = 5;
	profile_seal(p);
	struct waitframes *wf = waitframes_new(&a, p);
	struct waitframe f = waitframe_of(wf, python);
	CHECK_STR(waitframe_name(p, &f), "app.py:3_update (line 5)");
	f = waitframe_of(wf, native);
	CHECK_STR(waitframe_name(p, &f), "commit");
}
