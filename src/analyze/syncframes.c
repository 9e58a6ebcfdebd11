/* Functions that wait on futexes, and what for; see syncframes.h. */
#include "base/base.h"
#include "analyze/syncframes.h"

/*
 * The first pattern that matches decides, so what is special stands before what is general. '*' is
 * any text. A pattern is anchored at the name's start ("<" and "&" before it are skipped) and at
 * its end, where a parameter list, template arguments, "@version" and ".part.0" may follow.
 *
 * Sources of the names: the public sources of the libraries; what they do below these functions was
 * looked up there.
 */
static const struct {
	const char *pattern;
	enum sync_kind kind;
} table[] = {
	/* ---- glibc, musl --------------------------------------------------------------- */
	{"__lll_lock_wait*", SYNC_LOCK},
	{"__lll_timedlock_wait", SYNC_LOCK},
	{"__lll_clocklock_wait", SYNC_LOCK},
	{"*pthread_mutex_cond_lock*", SYNC_LOCK}, /* a condvar takes its mutex again */
	{"*pthread_mutex_lock*", SYNC_LOCK},
	{"*pthread_mutex_timedlock*", SYNC_LOCK},
	{"*pthread_mutex_clocklock*", SYNC_LOCK},
	{"*pthread_rwlock_*lock*", SYNC_LOCK},
	{"__pthread_once_slow*", SYNC_LOCK},
	{"__lock", SYNC_LOCK}, /* musl */
	{"__lockfile", SYNC_LOCK},
	{"*pthread_cond_*wait*", SYNC_PARK_PART},
	/* A condition variable's own lock, or waiters that have to leave first. */
	{"__condvar_*", SYNC_LOCK},
	{"*pthread_cond_signal", SYNC_LOCK},
	{"*pthread_cond_broadcast", SYNC_LOCK},
	{"*pthread_barrier_wait", SYNC_PARK},
	{"*pthread_join", SYNC_PARK},
	{"*pthread_timedjoin*", SYNC_PARK},
	{"*pthread_clockjoin*", SYNC_PARK},
	{"*pthread_tryjoin*", SYNC_PARK},
	{"sem_wait*", SYNC_PARK_PART},
	{"sem_timedwait*", SYNC_PARK_PART},
	{"sem_clockwait*", SYNC_PARK_PART},
	{"__new_sem_*wait*", SYNC_PARK_PART},
	{"__sem_*wait*", SYNC_PARK_PART},
	{"do_futex_wait*", SYNC_PASS},
	{"__futex_*", SYNC_PASS},
	{"__timedwait*", SYNC_PASS}, /* musl */
	{"__wait", SYNC_PASS},
	{"syscall", SYNC_PASS},
	{"aio_suspend*", SYNC_PARK},
	{"mtx_lock", SYNC_LOCK},
	{"mtx_timedlock", SYNC_LOCK},
	{"cnd_wait", SYNC_PARK_PART},
	{"cnd_timedwait", SYNC_PARK_PART},
	{"thrd_join", SYNC_PARK},

	/* ---- libstdc++, libc++ --------------------------------------------------------- */
	{"std::condition_variable*::wait*", SYNC_PARK_PART},
	{"std::condition_variable*::__wait*", SYNC_PARK_PART},
	{"std::_V2::condition_variable*::wait*", SYNC_PARK_PART},
	{"std::__1::condition_variable*::*wait*", SYNC_PARK_PART},
	{"std::__condvar::wait*", SYNC_PARK_PART},
	{"std::*::_M_futex_wait*", SYNC_PARK}, /* std::future */
	{"std::__atomic_futex_unsigned*", SYNC_PARK},
	{"std::*__platform_wait*", SYNC_PARK_PART}, /* atomic::wait, latch, semaphore */
	{"std::*::__waiter*", SYNC_PASS},
	{"std::*::__libcpp_atomic_wait*", SYNC_PARK_PART},
	{"std::__1::__libcpp_mutex_lock*", SYNC_LOCK},
	{"std::*counting_semaphore*::*acquire*", SYNC_PARK},
	{"std::*latch*::*wait*", SYNC_PARK},
	{"std::*barrier*::*wait*", SYNC_PARK},
	{"std::*::mutex::lock", SYNC_LOCK},
	{"std::mutex::lock", SYNC_LOCK},
	{"std::*recursive_*mutex::lock", SYNC_LOCK},
	{"std::*timed_mutex::*lock*", SYNC_LOCK},
	{"std::*shared_*mutex*::lock*", SYNC_LOCK},
	{"std::*__shared_mutex_pthread::lock*", SYNC_LOCK},
	{"std::unique_lock*::lock", SYNC_LOCK},
	{"std::thread::join", SYNC_PARK},
	{"std::*::thread::join", SYNC_PARK},
	{"__cxa_guard_acquire", SYNC_LOCK}, /* somebody initialises a static */
	{"__gthread_mutex_lock", SYNC_LOCK},
	{"__gthread_cond_*wait", SYNC_PARK_PART},

	/* ---- Rust: std ----------------------------------------------------------------- */
	{"std::sys::*utex::Mutex::lock*", SYNC_LOCK},
	{"std::sys::*utex::RwLock::*", SYNC_LOCK},
	{"std::sys::*locks::*Mutex*::lock*", SYNC_LOCK},
	{"std::sys::*locks::*RwLock*::*", SYNC_LOCK},
	{"std::sys*::sync::once::futex::Once::*", SYNC_LOCK},
	{"std::sys*::sync::once::queue::*wait*", SYNC_LOCK_BY_PARK},
	{"std::sys_common::once::futex::Once::*", SYNC_LOCK},
	{"std::sys_common::once::queue::*wait*", SYNC_LOCK_BY_PARK},
	{"std::sys*::Condvar::wait*", SYNC_PARK_PART},
	{"std::sync::*condvar::Condvar::wait*", SYNC_PARK_PART},
	{"std::sync::*Condvar*::wait*", SYNC_PARK_PART},
	{"std::sys*::thread_park*::park*", SYNC_PARK_PART},
	{"std::sys*::thread_park*::Parker::*", SYNC_PARK_PART},
	{"std::sys*::Parker::park*", SYNC_PARK_PART},
	{"std::thread::*park*", SYNC_PARK_PART},
	{"std::sync::mp*::recv*", SYNC_PARK},
	{"std::sync::mp*::send*", SYNC_PARK},
	{"std::sync::mp*::context::Context::wait_until", SYNC_PARK},
	{"std::sync::*barrier::Barrier::wait", SYNC_PARK},
	{"std::sync::*mutex::Mutex*::lock", SYNC_LOCK},
	{"std::sync::*rwlock::RwLock*::read", SYNC_LOCK},
	{"std::sync::*rwlock::RwLock*::write", SYNC_LOCK},
	{"std::sync::*reentrant_lock::*::lock", SYNC_LOCK},
	{"std::thread::*join*", SYNC_PARK},
	{"std::thread::scoped::scope", SYNC_PARK_PART},
	{"std::sys::*futex_wait", SYNC_PASS},

	/* ---- Rust: crates -------------------------------------------------------------- */
	{"parking_lot::condvar::*", SYNC_PARK_PART},
	{"parking_lot::Condvar::wait*", SYNC_PARK_PART},
	{"parking_lot::raw_mutex::*", SYNC_LOCK_BY_PARK},
	{"parking_lot::raw_fair_mutex::*", SYNC_LOCK_BY_PARK},
	{"parking_lot::raw_rwlock::*", SYNC_LOCK_BY_PARK},
	{"parking_lot::remutex::*", SYNC_LOCK_BY_PARK},
	{"parking_lot::once::Once::*", SYNC_LOCK}, /* runs the initialiser, too */
	{"parking_lot::elision::*", SYNC_PASS},
	{"parking_lot_core::*", SYNC_PASS}, /* parks for whoever called it */
	{"lock_api::mutex::*Mutex*::lock", SYNC_LOCK_BY_PARK},
	{"lock_api::rwlock::*RwLock*::read*", SYNC_LOCK_BY_PARK},
	{"lock_api::rwlock::*RwLock*::write", SYNC_LOCK_BY_PARK},
	{"lock_api::rwlock::*RwLock*::upgrad*", SYNC_LOCK_BY_PARK},
	{"lock_api::remutex::*::lock", SYNC_LOCK_BY_PARK},
	{"dashmap::lock::*_slow", SYNC_LOCK_BY_PARK},
	{"usync::*lock*", SYNC_LOCK_BY_PARK},
	{"once_cell::imp*::wait", SYNC_LOCK_BY_PARK},
	{"async_lock::mutex::*", SYNC_LOCK_BY_PARK},
	{"tokio::sync::mutex::Mutex*::blocking_lock*", SYNC_LOCK_BY_PARK},
	{"tokio::sync::rwlock::RwLock*::blocking_*", SYNC_LOCK_BY_PARK},
	{"tokio::sync::mpsc::*::blocking_*", SYNC_PARK},
	{"tokio::sync::oneshot::*::blocking_recv", SYNC_PARK},
	{"tokio::runtime::park::*", SYNC_PARK_PART},
	{"tokio::runtime::*::park*", SYNC_PARK_PART},
	{"tokio::park::*", SYNC_PARK_PART},
	{"tokio::runtime::blocking::pool::Inner::run", SYNC_PARK},
	{"tokio::loom::*::Condvar::wait*", SYNC_PARK_PART},
	{"crossbeam_channel::*", SYNC_PARK},
	{"crossbeam_utils::sync::parker::*", SYNC_PARK_PART},
	{"crossbeam_utils::sync::wait_group::*::wait", SYNC_PARK},
	{"crossbeam_utils::sync::sharded_lock::*::write", SYNC_LOCK},
	{"crossbeam::sync::parker::*", SYNC_PARK_PART},
	{"rayon_core::sleep::*::sleep", SYNC_PARK},
	{"rayon_core::latch::*::wait*", SYNC_PARK},
	{"rayon_core::latch::LockLatch::*", SYNC_PARK},
	{"flume::*::recv*", SYNC_PARK},
	{"flume::*::send*", SYNC_PARK},
	{"flume::signal::*", SYNC_PARK},
	{"kanal::*", SYNC_PARK},
	{"event_listener::*wait*", SYNC_PARK_PART},
	{"event_listener::*park*", SYNC_PARK_PART},
	{"parking::*::park*", SYNC_PARK_PART},
	{"futures_executor::*park*", SYNC_PARK_PART},
	{"futures_executor::local_pool::run_executor", SYNC_PARK_PART},
	{"futures_lite::future::block_on*", SYNC_PARK_PART},
	{"pollster::*", SYNC_PARK_PART},
	{"threadpool::*", SYNC_PARK_PART},

	/* ---- allocators ---------------------------------------------------------------- */
	{"*je_malloc_mutex_lock_slow", SYNC_LOCK},
	{"*malloc_mutex_lock*", SYNC_LOCK},
	{"SpinLock::SlowLock", SYNC_LOCK}, /* gperftools */
	{"*SpinLockDelay", SYNC_LOCK_BY_PARK},
	{"*background_thread_sleep*", SYNC_PARK},
	{"*background_thread_entry", SYNC_PARK_PART},
	{"background_work_sleep_once", SYNC_PARK},

	/* ---- absl, folly, tbb, boost, Qt, GLib ----------------------------------------- */
	{"absl::*CondVar::Wait*", SYNC_PARK},
	{"absl::*Mutex::Await*", SYNC_PARK},
	{"absl::*Mutex::LockWhen*", SYNC_PARK},
	{"absl::*Mutex::*LockWhen*", SYNC_PARK},
	{"absl::*Mutex::LockSlow*", SYNC_PASS}, /* below Lock and LockWhen alike */
	{"absl::*Mutex::Block", SYNC_PASS},
	{"absl::*PerThreadSem::*", SYNC_PASS},
	{"absl::*Waiter*::*", SYNC_PASS},
	{"absl::*Futex*::*", SYNC_PASS},
	{"absl::*Mutex::*Lock", SYNC_LOCK},
	{"absl::*Mutex::lock*", SYNC_LOCK},
	{"absl::*SpinLock*::*", SYNC_LOCK},
	{"absl::*CallOnceImpl*", SYNC_LOCK},
	{"absl::*Notification::WaitFor*", SYNC_PARK},
	{"absl::*BlockingCounter::Wait", SYNC_PARK},
	{"AbslInternalPerThreadSem*", SYNC_PASS},
	{"AbslInternalSpinLockDelay*", SYNC_LOCK_BY_PARK},
	{"folly::*SharedMutex*::lock*", SYNC_LOCK_BY_PARK},
	{"folly::*MicroLock*::lockSlow*", SYNC_LOCK_BY_PARK},
	{"folly::*distributed_mutex::*lock*", SYNC_LOCK_BY_PARK},
	{"folly::*Baton*::*wait*", SYNC_PARK_PART},
	{"folly::*LifoSem*::*wait*", SYNC_PARK},
	{"folly::*MemoryIdler::futexWait*", SYNC_PARK},
	{"folly::*EventCount*::*wait*", SYNC_PARK},
	{"tbb::*binary_semaphore::P", SYNC_PARK_PART},
	{"tbb::*concurrent_monitor*::*", SYNC_PARK_PART},
	{"tbb::*private_worker::run", SYNC_PARK_PART},
	{"tbb::*mutex::lock*", SYNC_LOCK_BY_PARK},
	{"boost::*condition_variable*::*wait*", SYNC_PARK_PART},
	{"boost::*mutex::lock", SYNC_LOCK},
	{"boost::thread::join*", SYNC_PARK},
	{"QBasicMutex::lock*", SYNC_LOCK},
	{"QMutex::lock*", SYNC_LOCK},
	{"QRecursiveMutex::*lock*", SYNC_LOCK},
	{"QReadWriteLock*::*ock*", SYNC_LOCK_BY_PARK},
	{"QWaitCondition::wait*", SYNC_PARK_PART},
	{"QSemaphore::*acquire*", SYNC_PARK},
	{"QThread::wait*", SYNC_PARK},
	{"g_mutex_lock*", SYNC_LOCK},
	{"g_rw_lock_*lock*", SYNC_LOCK},
	{"g_cond_wait*", SYNC_PARK_PART},
	{"g_async_queue_*pop*", SYNC_PARK},
	{"g_thread_join", SYNC_PARK},

	/* ---- OpenMP -------------------------------------------------------------------- */
	{"gomp_mutex_lock_slow", SYNC_LOCK},
	{"gomp_*barrier_wait*", SYNC_PARK},
	{"gomp_sem_wait*", SYNC_PARK},
	{"gomp_ordered_sync", SYNC_PARK},
	{"__kmp_acquire_*lock*", SYNC_LOCK},
	{"__kmp_suspend*", SYNC_PARK},
	{"__kmp_*wait*", SYNC_PARK},

	/* ---- Go ------------------------------------------------------------------------ */
	{"runtime.futexsleep", SYNC_PASS},
	{"runtime.futex", SYNC_PASS},
	{"runtime.lock*", SYNC_LOCK},
	{"runtime.notesleep", SYNC_PARK},
	{"runtime.notetsleep*", SYNC_PARK},
	{"runtime.mPark", SYNC_PARK},
	{"runtime.stopm", SYNC_PARK},
	{"runtime.sysmon", SYNC_PARK},

	/* ---- HotSpot, CPython, V8 and libuv -------------------------------------------- */
	{"ObjectMonitor::wait*", SYNC_PARK},
	{"ObjectMonitor::*nter*", SYNC_LOCK_BY_PARK},
	{"ObjectSynchronizer::*enter*", SYNC_LOCK_BY_PARK},
	{"Mutex::lock*", SYNC_LOCK_BY_PARK},
	{"Monitor::wait*", SYNC_PARK},
	{"os::PlatformEvent::park*", SYNC_PARK_PART},
	{"PlatformEvent::park*", SYNC_PARK_PART},
	{"PlatformMonitor::wait*", SYNC_PARK_PART},
	{"Parker::park*", SYNC_PARK_PART},
	{"Unsafe_Park", SYNC_PARK},
	{"take_gil", SYNC_LOCK_BY_PARK},
	{"PyMutex_Lock*", SYNC_LOCK_BY_PARK},
	{"_PyMutex_Lock*", SYNC_LOCK_BY_PARK},
	{"_PyRWMutex_*Lock*", SYNC_LOCK_BY_PARK},
	{"_PyParkingLot_Park", SYNC_PASS},
	{"_PySemaphore_*", SYNC_PASS},
	{"PyEvent_Wait*", SYNC_PARK},
	{"v8::base::Mutex::Lock", SYNC_LOCK},
	{"v8::base::*SharedMutex::Lock*", SYNC_LOCK},
	{"v8::base::ConditionVariable::Wait*", SYNC_PARK_PART},
	{"v8::base::Semaphore::Wait*", SYNC_PARK_PART},
	{"uv_cond_*wait", SYNC_PARK_PART},
	{"uv_sem_wait", SYNC_PARK_PART},
	{"uv_barrier_wait", SYNC_PARK},
	{"uv_mutex_lock", SYNC_LOCK},
	{"uv_rwlock_*lock", SYNC_LOCK},
	{"uv_thread_join", SYNC_PARK},
	{"WTF::*Lock*::lockSlow*", SYNC_LOCK_BY_PARK},
	{"WTF::*ParkingLot*", SYNC_PASS},

	/* ---- databases ----------------------------------------------------------------- */
	{"LWLockAcquire*", SYNC_LOCK_BY_PARK}, /* postgres: semaphores */
	{"LWLockWaitForVar", SYNC_LOCK_BY_PARK},
	{"ProcSleep", SYNC_LOCK_BY_PARK},
	{"PGSemaphoreLock", SYNC_PARK_PART},
	{"PGSemaphoreUnlock", SYNC_PASS},
	{"LWLockRelease*", SYNC_PASS},
	{"LWLockWakeup", SYNC_PASS},
	{"ProcLockWakeup", SYNC_PASS},
	{"WaitLatch*", SYNC_PASS},
	{"WaitEventSetWait*", SYNC_PASS},
	{"s_lock", SYNC_LOCK_BY_PARK},
	{"perform_spin_delay", SYNC_PASS},
	{"sync_array_wait_event*", SYNC_LOCK_BY_PARK}, /* InnoDB */
	{"lock_wait_suspend_thread", SYNC_LOCK_BY_PARK},
	{"lock_wait", SYNC_LOCK_BY_PARK},
	{"rw_lock_?_lock_*", SYNC_LOCK_BY_PARK},
	{"PolicyMutex*::enter*", SYNC_LOCK_BY_PARK},
	{"os_event::wait*", SYNC_PARK_PART},
	{"os_event_wait*", SYNC_PARK_PART},
	{"srw_mutex_impl*::wait*", SYNC_LOCK_BY_PARK},
	{"srw_lock_impl*::*lock*", SYNC_LOCK_BY_PARK},
	{"ssux_lock_impl*::*", SYNC_LOCK_BY_PARK},
	{"MDL_wait::timed_wait", SYNC_LOCK_BY_PARK},
	{"rocksdb::*Mutex*::*Lock", SYNC_LOCK},
	{"rocksdb::*CondVar::*Wait*", SYNC_PARK_PART},
	{"leveldb::*Mutex::Lock", SYNC_LOCK},
	{"leveldb::*CondVar::Wait*", SYNC_PARK_PART},

	/* ---- by custom, where nothing nearer to the leaf was known ---------------------- */
	{"*_mutex_lock", SYNC_LOCK},
	{"*_mutex_lock_slow*", SYNC_LOCK},
	{"*::lock_contended", SYNC_LOCK},
	{"*::lock_slow", SYNC_LOCK_BY_PARK},
	{"*::lockSlow*", SYNC_LOCK_BY_PARK},
	{"*_rwlock_*lock", SYNC_LOCK},
	{"*_cond_wait", SYNC_PARK_PART},
	{"*_cond_timedwait", SYNC_PARK_PART},
	{"*::Condvar::wait*", SYNC_PARK_PART},
	{"*::CondVar::Wait*", SYNC_PARK_PART},
	{"*::ConditionVariable::*ait*", SYNC_PARK_PART},
};

/* What may follow a name: parameters, template arguments, a version, ".part.0", " [clone". */
static bool is_end(struct sv rest)
{
	return !rest.n || strchr("(<@. [", rest.p[0]);
}

/* Backtracks to the last '*' only, which is enough for globs: linear in name times stars. */
static bool is_like(const char *pattern, struct sv name)
{
	const char *star = NULL;
	size_t i = 0;
	size_t star_at = 0;
	for (;;) {
		if (!*pattern && is_end(sv_from_idx(name, i)))
			return true;
		if (*pattern == '*') {
			star = ++pattern;
			star_at = i;
			if (!*pattern)
				return true;
			continue;
		}
		if (i < name.n && *pattern && (*pattern == '?' || *pattern == name.p[i])) {
			pattern++;
			i++;
			continue;
		}
		if (!star || star_at >= name.n)
			return false;
		pattern = star;
		i = ++star_at;
	}
}

/*
 * Rust's v0 mangling writes a method as <Type>::method or <Type as Trait>::method, the legacy one
 * as Type::method: the table has the latter. Longer names lose their ends, which no pattern needs.
 */
static struct sv plain_path(struct sv name, char *to, size_t nr_to)
{
	if (!name.n || name.p[0] != '<')
		return name;
	size_t n = 0;
	unsigned depth = 0;
	bool is_trait = false;
	for (size_t i = 0; i < name.n && n < nr_to; i++) {
		char c = name.p[i];
		bool is_arrow = c == '>' && i && name.p[i - 1] == '-';
		if (c == '<' && depth++ == 0 && !n)
			continue;
		if (c == '>' && !is_arrow && depth && --depth == 0) {
			is_trait = false;
			continue;
		}
		if (depth == 1 && sv_has_prefix(sv_from_idx(name, i), SV(" as ")))
			is_trait = true;
		if (!is_trait)
			to[n++] = c;
	}
	return (struct sv){to, n};
}

enum sync_kind sync_kind_of(struct sv function)
{
	char plain[512];
	function = plain_path(function, plain, sizeof(plain));
	while (function.n && (function.p[0] == '<' || function.p[0] == '&'))
		function = sv_from_idx(function, 1);
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (is_like(table[i].pattern, function))
			return table[i].kind;
	return SYNC_UNKNOWN;
}
