/* Table of functions that wait for other threads; see syncframes.h. */
#include "base/base.h"
#include "analyze/wait/syncframes.h"

#include "analyze/select/funcglob.h"

/*
 * One row per library and kind. The first matching row decides, so special patterns come before
 * general ones. For the pattern syntax see funcglob.h.
 *
 * Sources of the names: the public sources of the libraries; what they do below these functions was
 * looked up there.
 */
static const struct {
	enum sync_kind kind;
	const char *patterns;
} table[] = {
	/* ---- glibc, musl --------------------------------------------------------------- */
	{SYNC_LOCK, "__lll_lock_wait*|__lll_timedlock_wait|__lll_clocklock_wait"},
	{SYNC_LOCK, "*pthread_mutex_cond_lock*"}, /* a condvar locks its mutex again */
	{SYNC_LOCK, "*pthread_mutex_lock*|*pthread_mutex_timedlock*|*pthread_mutex_clocklock*|"
		    "*pthread_rwlock_*lock*|__pthread_once_slow*"},
	{SYNC_LOCK, "__lock"}, /* musl */
	{SYNC_LOCK, "__lockfile"},
	{SYNC_PARK_PART, "*pthread_cond_*wait*"},
	/* The internal lock of a condition variable, or waiters that must leave first. */
	{SYNC_LOCK, "__condvar_*|*pthread_cond_signal|*pthread_cond_broadcast"},
	{SYNC_JOIN, "*pthread_barrier_wait|*pthread_join|*pthread_timedjoin*|*pthread_clockjoin*|"
		    "*pthread_tryjoin*"},
	{SYNC_PERMIT_PART, "sem_wait*|sem_timedwait*|sem_clockwait*|__new_sem_*wait*|"
			   "__sem_*wait*|semop|semtimedop|__semtimedop*"},
	{SYNC_PASS, "do_futex_wait*|__futex_*"},
	{SYNC_PASS, "__timedwait*"}, /* musl */
	{SYNC_PASS, "__wait|syscall"},
	{SYNC_PARK, "aio_suspend*"},
	{SYNC_LOCK, "mtx_lock|mtx_timedlock"},
	{SYNC_PARK_PART, "cnd_wait|cnd_timedwait"},
	{SYNC_JOIN, "thrd_join"},

	/* ---- libstdc++, libc++ --------------------------------------------------------- */
	{SYNC_PARK_PART,
	 "std::condition_variable*::wait*|std::condition_variable*::__wait*|"
	 "std::_V2::condition_variable*::wait*|std::__1::condition_variable*::*wait*|"
	 "std::__condvar::wait*"},
	{SYNC_JOIN, "std::*::_M_futex_wait*|std::__atomic_futex_unsigned*"}, /* std::future */
	{SYNC_PARK_PART, "std::*__platform_wait*"}, /* atomic::wait, latch, semaphore */
	{SYNC_PASS, "std::*::__waiter*"},
	{SYNC_PARK_PART, "std::*::__libcpp_atomic_wait*"},
	{SYNC_LOCK, "std::__1::__libcpp_mutex_lock*"},
	{SYNC_PERMIT, "std::*counting_semaphore::*acquire*|std::*_semaphore::_M_*acquire*|"
		      "std::__semaphore_impl::_M_*acquire*"},
	{SYNC_JOIN, "std::*latch::*wait*|std::*barrier*::*wait*"},
	{SYNC_LOCK, "std::*::mutex::lock|std::mutex::lock|std::*recursive_*mutex::lock|"
		    "std::*timed_mutex::*lock*|std::*shared_*mutex*::lock*|"
		    "std::*__shared_mutex_pthread::lock*|std::unique_lock*::lock"},
	{SYNC_JOIN, "std::thread::join|std::*::thread::join"},
	{SYNC_LOCK, "__cxa_guard_acquire"}, /* waits while another thread initialises a static */
	{SYNC_LOCK, "__gthread_mutex_lock"},
	{SYNC_PARK_PART, "__gthread_cond_*wait"},

	/* ---- Rust: std ----------------------------------------------------------------- */
	{SYNC_LOCK, "std::sys::*utex::Mutex::lock*|std::sys::*utex::RwLock::*|"
		    "std::sys::*locks::*Mutex*::lock*|std::sys::*locks::*RwLock*::*|"
		    "std::sys*::sync::once::futex::Once::*"},
	{SYNC_LOCK_BY_PARK, "std::sys*::sync::once::queue::*wait*"},
	{SYNC_LOCK, "std::sys_common::once::futex::Once::*"},
	{SYNC_LOCK_BY_PARK, "std::sys_common::once::queue::*wait*"},
	{SYNC_PARK_PART,
	 "std::sys*::Condvar::wait*|std::sync::*condvar::Condvar::wait*|"
	 "std::sync::*Condvar*::wait*|std::sys*::thread_park*::park*|"
	 "std::sys*::thread_park*::Parker::*|std::sys*::Parker::park*|std::thread::*park*"},
	{SYNC_PARK_PART, "std::sync::mp*::context::Context::wait*"},
	{SYNC_PARK, "std::sync::mp*::recv*"},
	{SYNC_BACKPRESSURE, "std::sync::mp*::send*"},
	{SYNC_JOIN, "std::sync::*barrier::Barrier::wait"},
	{SYNC_LOCK, "std::sync::*mutex::Mutex*::lock|std::sync::*rwlock::RwLock*::read|"
		    "std::sync::*rwlock::RwLock*::write|std::sync::*reentrant_lock::*::lock"},
	{SYNC_JOIN, "std::thread::*join*|std::sys::*::Thread::join"},
	{SYNC_JOIN_AROUND, "std::thread::scoped::scope|std::thread::scope"},
	{SYNC_PASS, "std::sys::*futex_wait"},

	/* ---- Rust: crates -------------------------------------------------------------- */
	{SYNC_PARK_PART, "parking_lot::condvar::*|parking_lot::Condvar::wait*"},
	{SYNC_LOCK_BY_PARK, "parking_lot::raw_mutex::*|parking_lot::raw_fair_mutex::*|"
			    "parking_lot::raw_rwlock::*|parking_lot::remutex::*"},
	{SYNC_LOCK, "parking_lot::once::Once::*"}, /* also runs the initialiser */
	{SYNC_PASS, "parking_lot::elision::*"},
	{SYNC_PASS, "parking_lot_core::*"}, /* parks for its caller */
	{SYNC_LOCK_BY_PARK, "lock_api::mutex::*Mutex*::lock|lock_api::rwlock::*RwLock*::read*|"
			    "lock_api::rwlock::*RwLock*::write|lock_api::rwlock::*RwLock*::upgrad*|"
			    "lock_api::remutex::*::lock|dashmap::lock::*_slow|usync::*lock*|"
			    "once_cell::imp*::wait|async_lock::mutex::*|"
			    "tokio::sync::mutex::Mutex*::blocking_lock*|"
			    "tokio::sync::rwlock::RwLock*::blocking_*"},
	{SYNC_BACKPRESSURE,
	 "tokio::sync::mpsc::*::blocking_send*|"
	 "tokio::sync::mpsc::*::blocking_reserve*|async_channel::*::send_blocking*|"
	 "thingbuf::mpsc::blocking::*send*"},
	{SYNC_PARK, "tokio::sync::*::blocking_recv*|async_channel::*::recv_blocking*"},
	{SYNC_PERMIT, "async_lock::semaphore::*acquire*"},
	{SYNC_JOIN, "async_lock::barrier::*wait*"},
	{SYNC_PARK_PART, "tokio::runtime::park::*|tokio::runtime::*::park*|tokio::park::*"},
	{SYNC_PARK, "tokio::runtime::blocking::pool::Inner::run"},
	{SYNC_PARK_PART, "tokio::loom::*::Condvar::wait*"},
	{SYNC_PARK_PART, "crossbeam_channel::context::*"},
	{SYNC_BACKPRESSURE, "crossbeam_channel::*::send*"},
	{SYNC_PARK, "crossbeam_channel::*"},
	{SYNC_PARK_PART, "crossbeam_utils::sync::parker::*"},
	{SYNC_JOIN, "crossbeam_utils::sync::wait_group::*::wait|"
		    "crossbeam_utils::thread::ScopedJoinHandle::join"},
	{SYNC_LOCK, "crossbeam_utils::sync::sharded_lock::*::write"},
	{SYNC_PARK_PART, "crossbeam::sync::parker::*"},
	/* Only threads that are not of the pool, which wait for a whole operation. */
	{SYNC_JOIN, "rayon_core::latch::LockLatch::*"},
	/* A job that waits for what was stolen from it runs other jobs meanwhile. */
	{SYNC_JOIN_AROUND, "rayon_core::join::*|rayon_core::scope::*|rayon_core::job::*execute*|"
			   "rayon_core::broadcast::*"},
	{SYNC_PASS, "rayon_core::registry::WorkerThread::wait_until*|"
		    "rayon_core::sleep::Sleep::no_work_found*"},
	{SYNC_PARK_PART, "rayon_core::sleep::*::sleep|rayon_core::latch::*::wait*"},
	{SYNC_BACKPRESSURE, "flume::*::send*|flume::*::wait_send*|flume::*::wait_deadline_send*|"
			    "kanal::*::send*|loole::*::send*"},
	{SYNC_PARK, "flume::*::recv*|flume::*::wait_recv*|flume::*::wait_deadline_recv*|"
		    "kanal::*::recv*|loole::*::recv*"},
	{SYNC_PARK_PART, "flume::signal::*|kanal::*"},
	{SYNC_PERMIT, "r2d2::Pool::get*|mysql::*pool::*::*get_conn*"},
	{SYNC_PARK_PART, "event_listener::*wait*|event_listener::*park*|parking::*::park*|"
			 "futures_executor::*park*|futures_executor::local_pool::run_executor|"
			 "futures_lite::future::block_on*|pollster::*|threadpool::*"},

	/* ---- allocators ---------------------------------------------------------------- */
	{SYNC_LOCK, "*je_malloc_mutex_lock_slow|*malloc_mutex_lock*"},
	{SYNC_LOCK, "SpinLock::SlowLock"}, /* gperftools */
	{SYNC_LOCK_BY_PARK, "*SpinLockDelay"},
	{SYNC_PARK, "*background_thread_sleep*"},
	{SYNC_PARK_PART, "*background_thread_entry"},
	{SYNC_PARK, "background_work_sleep_once"},

	/* ---- absl, folly, tbb, boost, Qt, GLib ----------------------------------------- */
	{SYNC_PARK, "absl::*CondVar::Wait*|absl::*Mutex::Await*|absl::*Mutex::LockWhen*|"
		    "absl::*Mutex::*LockWhen*"},
	{SYNC_PASS, "absl::*Mutex::LockSlow*"}, /* below Lock and LockWhen alike */
	{SYNC_PASS,
	 "absl::*Mutex::Block|absl::*PerThreadSem::*|absl::*Waiter*::*|absl::*Futex*::*"},
	{SYNC_LOCK,
	 "absl::*Mutex::*Lock|absl::*Mutex::lock*|absl::*SpinLock*::*|absl::*CallOnceImpl*"},
	{SYNC_PARK, "absl::*Notification::WaitFor*"},
	{SYNC_JOIN, "absl::*BlockingCounter::Wait|absl::*Barrier::Block"},
	{SYNC_PASS, "AbslInternalPerThreadSem*"},
	{SYNC_LOCK_BY_PARK, "AbslInternalSpinLockDelay*|folly::*SharedMutex*::lock*|"
			    "folly::*MicroLock*::lockSlow*|folly::*distributed_mutex::*lock*"},
	{SYNC_PARK_PART, "folly::*Baton*::*wait*"},
	{SYNC_PARK, "folly::*LifoSem*::*wait*|folly::*MemoryIdler::futexWait*|"
		    "folly::*EventCount*::*wait*"},
	{SYNC_BACKPRESSURE, "folly::MPMCQueue::*blockingWrite*|folly::*BoundedQueue::*enqueue*|"
			    "tbb::*concurrent_bounded_queue*::*push*|"
			    "boost::*sync_bounded_queue::*push*"},
	{SYNC_JOIN_AROUND, "tbb::*execute_and_wait*"},
	{SYNC_PASS, "tbb::*task_dispatcher::*|tbb::*external_waiter::*"},
	{SYNC_PARK_PART,
	 "tbb::*binary_semaphore::P|tbb::*concurrent_monitor*::*|tbb::*private_worker::run"},
	{SYNC_LOCK_BY_PARK, "tbb::*mutex::lock*"},
	{SYNC_PARK_PART, "boost::*condition_variable*::*wait*"},
	{SYNC_LOCK, "boost::*mutex::lock"},
	{SYNC_JOIN, "boost::thread::join*|boost::barrier::wait"},
	{SYNC_LOCK, "QBasicMutex::lock*|QMutex::lock*|QRecursiveMutex::*lock*"},
	{SYNC_LOCK_BY_PARK, "QReadWriteLock*::*ock*"},
	{SYNC_PARK_PART, "QWaitCondition::wait*"},
	{SYNC_PERMIT, "QSemaphore::*acquire*"},
	{SYNC_JOIN, "QThread::wait*|QThreadPool::waitForDone|QFutureInterfaceBase::waitFor*"},
	{SYNC_LOCK, "g_mutex_lock*|g_rw_lock_*lock*"},
	{SYNC_PARK_PART, "g_cond_wait*"},
	{SYNC_PARK, "g_async_queue_*pop*"},
	{SYNC_JOIN, "g_thread_join"},

	/* ---- OpenMP -------------------------------------------------------------------- */
	{SYNC_LOCK, "gomp_mutex_lock_slow"},
	{SYNC_JOIN, "gomp_team_barrier_wait*|gomp_sem_wait*|gomp_ordered_sync|GOMP_barrier|"
		    "GOMP_taskwait|GOMP_taskgroup_end"},
	{SYNC_PARK, "gomp_*barrier_wait*"}, /* workers between two parallel regions */
	{SYNC_LOCK, "__kmp_acquire_*lock*"},
	{SYNC_JOIN_AROUND,
	 "__kmp_join_barrier*|__kmp_barrier*|__kmpc_barrier|__kmpc_omp_task*wait*"},
	{SYNC_PARK_PART, "__kmp_suspend*|__kmp_*wait*"},

	/* ---- Go ------------------------------------------------------------------------ */
	{SYNC_PASS, "runtime.futexsleep|runtime.futex"},
	{SYNC_LOCK, "runtime.lock*"},
	{SYNC_PARK,
	 "runtime.notesleep|runtime.notetsleep*|runtime.mPark|runtime.stopm|runtime.sysmon"},

	/* ---- Java: names of perf maps, which begin with the type of the result ---------- */
	{SYNC_BACKPRESSURE, "*java.util.concurrent.*Queue.put*|*java.util.concurrent.*Deque.put*|"
			    "*java.util.concurrent.*Queue.transfer*|"
			    "*java.util.concurrent.*Queue.offer*"},
	{SYNC_PERMIT, "*java.util.concurrent.Semaphore.acquire*|*HikariPool.getConnection*"},
	{SYNC_JOIN,
	 "*java.lang.Thread.join*|*java.util.concurrent.CountDownLatch.await*|"
	 "*java.util.concurrent.CyclicBarrier.*wait*|*java.util.concurrent.FutureTask.get*|"
	 "*java.util.concurrent.CompletableFuture.*get*|"
	 "*java.util.concurrent.CompletableFuture.join*"},
	{SYNC_LOCK_BY_PARK, "*java.util.concurrent.locks.ReentrantLock*.lock*|"
			    "*java.util.concurrent.locks.ReentrantReadWriteLock*.lock*|"
			    "*java.util.concurrent.locks.StampedLock.*Lock*"},

	/* ---- HotSpot, CPython, V8 and libuv -------------------------------------------- */
	{SYNC_PARK_PART, "ObjectMonitor::wait*"},
	{SYNC_LOCK_BY_PARK, "ObjectMonitor::*nter*|ObjectSynchronizer::*enter*|Mutex::lock*"},
	/* Threads for work, and who gave it to them; safepoints, and threads that asked for one. */
	{SYNC_PARK, "GangWorker::loop*|WorkerTaskDispatcher::worker_*|WorkerThread::run*|"
		    "G1ConcurrentRefineThread::wait_for_*|G1*Thread::run_service*|"
		    "ConcurrentGCThread::run*|os::signal_wait*"},
	{SYNC_JOIN, "WorkGang::run_task*|WorkerTaskDispatcher::coordinator_*|"
		    "VMThread::wait_until_executed*|LinuxWaitBarrier::wait*"},
	{SYNC_PERMIT_PART, "PosixSemaphore::*wait*"},
	{SYNC_PARK_PART, "Monitor::wait*"},
	{SYNC_PARK_PART, "os::PlatformEvent::park*|PlatformEvent::park*|PlatformMonitor::wait*|"
			 "Parker::park*"},
	{SYNC_PARK_PART, "Unsafe_Park"},
	/* Functions of Python: as assay names them, and as "python -X perf" does. */
	{SYNC_BACKPRESSURE, "queue.py:* Queue.put|py::Queue.put:*"},
	{SYNC_PARK, "queue.py:* Queue.get|py::Queue.get:*|_queue_SimpleQueue_get*"},
	{SYNC_PERMIT, "threading.py:* Semaphore.acquire|py::Semaphore.acquire:*|"
		      "py::BoundedSemaphore.acquire:*"},
	{SYNC_JOIN, "threading.py:* Thread.join|threading.py:* Thread._wait_for_tstate_lock|"
		    "threading.py:* Barrier.wait|queue.py:* Queue.join|_base.py:* Future.result"},
	{SYNC_JOIN, "threading.py:* _shutdown|py::_shutdown:*threading.py"},
	{SYNC_JOIN, "py::Thread.join:*|py::Thread._wait_for_tstate_lock:*|py::Barrier.wait:*|"
		    "py::Queue.join:*|py::Future.result:*"},
	{SYNC_PARK_PART, "threading.py:* Condition.wait*|threading.py:* Event.wait"},
	{SYNC_PARK_PART, "py::Condition.wait*:*|py::Event.wait:*"},
	{SYNC_PARK, "_queue.*!fn_*"}, /* SimpleQueue.get, stripped */
	{SYNC_CODE, "py::*"},
	/* All objects of the module threading are built from one lock. */
	{SYNC_UNCLEAR, "lock_PyThread_acquire_lock*|PyThread_acquire_lock_timed*|acquire_timed"},
	{SYNC_PASS, "_PyMutex_LockTimed"},
	{SYNC_JOIN, "ThreadHandle_join"},
	{SYNC_LOCK_BY_PARK, "take_gil|PyMutex_Lock*|_PyMutex_Lock*|_PyRWMutex_*Lock*"},
	{SYNC_PASS, "_PyParkingLot_Park|_PySemaphore_*"},
	{SYNC_PARK, "PyEvent_Wait*"},
	{SYNC_LOCK, "v8::base::Mutex::Lock|v8::base::*SharedMutex::Lock*"},
	{SYNC_PARK_PART, "v8::base::ConditionVariable::Wait*|uv_cond_*wait"},
	{SYNC_PERMIT_PART, "v8::base::Semaphore::Wait*|uv_sem_wait"},
	{SYNC_LOCK, "uv_mutex_lock|uv_rwlock_*lock"},
	{SYNC_JOIN, "uv_thread_join|uv_barrier_wait"},
	{SYNC_LOCK_BY_PARK, "WTF::*Lock*::lockSlow*"},
	{SYNC_PASS, "WTF::*ParkingLot*"},

	/* ---- databases ----------------------------------------------------------------- */
	{SYNC_LOCK_BY_PARK, "LWLockAcquire*"}, /* postgres: semaphores */
	{SYNC_LOCK_BY_PARK, "LWLockWaitForVar|ProcSleep"},
	{SYNC_PARK_PART, "PGSemaphoreLock"},
	{SYNC_PASS, "PGSemaphoreUnlock|LWLockRelease*|LWLockWakeup|ProcLockWakeup|WaitLatch*|"
		    "WaitEventSetWait*"},
	{SYNC_LOCK_BY_PARK, "s_lock"},
	{SYNC_PASS, "perform_spin_delay"},
	{SYNC_LOCK_BY_PARK, "sync_array_wait_event*"}, /* InnoDB */
	{SYNC_LOCK_BY_PARK,
	 "lock_wait_suspend_thread|lock_wait|rw_lock_?_lock_*|PolicyMutex*::enter*"},
	{SYNC_PARK_PART, "os_event::wait*|os_event_wait*"},
	{SYNC_LOCK_BY_PARK, "srw_mutex_impl*::wait*|srw_lock_impl*::*lock*|ssux_lock_impl*::*|"
			    "MDL_wait::timed_wait"},
	{SYNC_LOCK, "rocksdb::*Mutex*::*Lock"},
	{SYNC_PARK_PART, "rocksdb::*CondVar::*Wait*"},
	{SYNC_LOCK, "leveldb::*Mutex::Lock"},
	{SYNC_PARK_PART, "leveldb::*CondVar::Wait*"},

	/* ---- by custom, where nothing nearer to the leaf was known ---------------------- */
	{SYNC_LOCK, "*_mutex_lock|*_mutex_lock_slow*|*::lock_contended"},
	{SYNC_LOCK_BY_PARK, "*::lock_slow|*::lockSlow*"},
	{SYNC_BACKPRESSURE,
	 "*::SyncSender::send*|*::Sender::blocking_send*|*::Sender::send_blocking*"},
	/* Queues that programs build of a mutex and condition variables: until one is not full. */
	{SYNC_BACKPRESSURE,
	 "*Queue*::push|*Queue*::push_*|*Queue*::put|*Queue*::enqueue|*Queue*::send|"
	 "*queue::push|*queue::push_*|*queue::put|*queue::enqueue|*queue::send|"
	 "*Channel*::push|*Channel*::put|*Channel*::send|*channel::push|*channel::send"},
	{SYNC_BACKPRESSURE,
	 "*queue_push|*queue_put|*queue_enqueue|*queue_send|*channel_send|*chan_send"},
	{SYNC_LOCK, "*_rwlock_*lock"},
	{SYNC_PARK_PART, "*_cond_wait|*_cond_timedwait|*::Condvar::wait*|*::CondVar::Wait*|"
			 "*::ConditionVariable::*ait*"},
};

enum sync_kind sync_kind_of(struct sv function)
{
	char plain[FUNCGLOB_NAME_MAX];
	char path[FUNCGLOB_NAME_MAX];
	function = funcglob_without_args(funcglob_plain(function, plain), path);
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (funcglob_is_like(table[i].patterns, function))
			return table[i].kind;
	return SYNC_UNKNOWN;
}
