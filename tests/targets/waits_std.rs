/* build: rustc -O -g */
// waits_std SECONDS: waits in Rust's standard library, in functions whose names start with wait_ (blocked)
// or idle_ (nothing to do), each measured by its thread. Prints one line of JSON per thread, as
// waits_truth.h describes.
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;
use std::time::Duration;

// What std::hint::black_box is from Rust 1.66 on: the value is used and may have changed.
#[inline(always)]
fn black_box<T>(mut x: T) -> T {
    unsafe { std::arch::asm!("/* {0} */", in(reg) &mut x, options(nostack, preserves_flags)) };
    x
}

static OVER: AtomicBool = AtomicBool::new(false);

include!("waits_truth.inc");

impl Truth {
    fn burn(&mut self, us: u64) {
        let end = cpu() + self.jitter(us) * 1000;
        let mut x = self.seed;
        while cpu() < end {
            for _ in 0..300 {
                x = black_box(x.wrapping_mul(3) + 1);
            }
        }
    }
}

#[inline(never)]
fn wait_sleep(t: &mut Truth, us: u64) {
    let us = t.jitter(us);
    let from = (wall(), cpu());
    thread::sleep(Duration::from_micros(us));
    t.spent("sleep", from);
}

#[inline(never)]
fn wait_mutex<'a>(t: &mut Truth, m: &'a Mutex<u64>) -> MutexGuard<'a, u64> {
    let from = (wall(), cpu());
    let held = m.lock().unwrap();
    t.spent("lock", from);
    held
}

#[inline(never)]
fn release_mutex(held: MutexGuard<u64>) {
    drop(held);
    black_box(());
}

#[inline(never)]
fn wait_write<'a>(t: &mut Truth, m: &'a RwLock<u64>) -> RwLockWriteGuard<'a, u64> {
    let from = (wall(), cpu());
    let held = m.write().unwrap();
    t.spent("rwlock", from);
    held
}

#[inline(never)]
fn wait_shared<'a>(t: &mut Truth, m: &'a RwLock<u64>) -> RwLockReadGuard<'a, u64> {
    let from = (wall(), cpu());
    let held = m.read().unwrap();
    t.spent("rwlock", from);
    held
}

fn hold_mutex(t: &mut Truth, m: &Mutex<u64>) {
    let mut held = wait_mutex(t, m);
    *held += 1;
    t.burn(40);
    wait_sleep(t, 150);
    release_mutex(held);
}

fn hold_rwlock(t: &mut Truth, m: &RwLock<u64>, is_writer: bool) {
    if is_writer {
        let mut held = wait_write(t, m);
        *held += 1;
        wait_sleep(t, 200);
    } else {
        let held = wait_shared(t, m);
        black_box(*held);
        wait_sleep(t, 200);
    }
}

#[inline(never)]
fn idle_condvar(t: &mut Truth, q: &(Mutex<u64>, Condvar)) {
    let mut nr = q.0.lock().unwrap();
    let from = (wall(), cpu());
    while *nr == 0 {
        nr = q.1.wait(nr).unwrap();
    }
    t.spent("condvar", from);
    *nr -= 1;
    drop(nr);
    black_box(());
}

#[inline(never)]
fn idle_park(t: &mut Truth) {
    let from = (wall(), cpu());
    thread::park();
    t.spent("park", from);
}

#[inline(never)]
fn idle_channel(t: &mut Truth, from_peer: &Receiver<u64>) -> bool {
    let from = (wall(), cpu());
    let got = from_peer.recv();
    t.spent("channel", from);
    got.is_ok()
}

#[inline(never)]
fn idle_pool(t: &mut Truth, jobs: &(Mutex<u64>, Condvar)) -> bool {
    let mut nr = jobs.0.lock().unwrap();
    let from = (wall(), cpu());
    while *nr == 0 && !OVER.load(Ordering::Relaxed) {
        nr = jobs.1.wait(nr).unwrap();
    }
    t.spent("condvar", from);
    if *nr > 0 {
        *nr -= 1;
    }
    !OVER.load(Ordering::Relaxed)
}

fn over() -> bool {
    OVER.load(Ordering::Relaxed)
}

fn give(q: &(Mutex<u64>, Condvar)) {
    *q.0.lock().unwrap() += 1;
    q.1.notify_one();
}

fn main() {
    let seconds: f64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(2.0);
    let mut all = Vec::new();
    let lock = Arc::new(Mutex::new(0u64));
    let rwlock = Arc::new(RwLock::new(0u64));
    for i in 0..4 {
        let m = lock.clone();
        all.push(spawn(&format!("lock-{}", i), move |t| {
            while !over() {
                hold_mutex(t, &m);
                t.burn(20);
            }
        }));
        let m = rwlock.clone();
        all.push(spawn(&format!("rwlock-{}", i), move |t| {
            while !over() {
                hold_rwlock(t, &m, i == 0);
                t.burn(20);
            }
        }));
    }
    let queue = Arc::new((Mutex::new(0u64), Condvar::new()));
    let q = queue.clone();
    all.push(spawn("consumer", move |t| {
        while !over() {
            idle_condvar(t, &q);
            t.burn(20);
        }
    }));
    all.push(spawn("producer", move |t| {
        while !over() {
            wait_sleep(t, 300);
            give(&queue);
        }
        give(&queue);
    }));
    let parked = spawn("parked", |t| {
        while !over() {
            idle_park(t);
            t.burn(20);
        }
    });
    let whom = parked.thread().clone();
    all.push(parked);
    all.push(spawn("unparker", move |t| {
        while !over() {
            wait_sleep(t, 400);
            whom.unpark();
        }
        whom.unpark();
    }));
    let (tx, rx) = channel::<u64>();
    all.push(spawn("receiver", move |t| {
        while idle_channel(t, &rx) {
            t.burn(20);
        }
    }));
    all.push(spawn("sender", move |t| {
        while !over() {
            wait_sleep(t, 400);
            let _ = tx.send(1);
        }
    }));
    let mut t = Truth::new("main");
    let jobs = (Mutex::new(0u64), Condvar::new());
    thread::scope(|s| {
        for i in 0..3 {
            let jobs = &jobs;
            s.spawn(move || {
                let mut t = Truth::new(&format!("scoped-{}", i));
                while idle_pool(&mut t, jobs) {
                    t.burn(20);
                }
                t.end();
            });
        }
        let end = wall() + (seconds * 1e9) as u64;
        while wall() < end {
            wait_sleep(&mut t, 20_000);
            give(&jobs);
        }
        OVER.store(true, Ordering::Relaxed);
        jobs.1.notify_all();
        give(&jobs);
    });
    for h in all {
        let _ = h.join();
    }
    t.end();
}
