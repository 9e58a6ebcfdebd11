/* build: rustc --edition 2021 -O -g */
/* also reasons_std_nodebug: rustc --edition 2021 -O */
// reasons_std SECONDS: threads of Rust's standard library that wait for somebody (back-pressure, join,
// barrier), for work, or not at all (yield), and an executor that runs async functions which block.
// Each measures its own waits; prints one line of JSON per thread, as waits_truth.h describes.
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, sync_channel, Receiver, SyncSender};
use std::sync::{Arc, Barrier, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

static OVER: AtomicBool = AtomicBool::new(false);

include!("../waits_truth.inc");

fn over() -> bool {
    OVER.load(Ordering::Relaxed)
}

#[inline(never)]
fn rest(t: &mut Truth, ms: u64) {
    let from = Truth::now();
    thread::sleep(Duration::from_millis(ms));
    t.spent("sleep", from);
}

#[inline(never)]
fn wait_send(t: &mut Truth, to: &SyncSender<u64>) -> bool {
    let from = Truth::now();
    let sent = to.send(1).is_ok();
    t.spent("backpressure", from);
    sent
}

#[inline(never)]
fn wait_join(t: &mut Truth) {
    let child = thread::spawn(|| thread::sleep(Duration::from_millis(40)));
    let from = Truth::now();
    child.join().unwrap();
    t.spent("join", from);
}

#[inline(never)]
fn wait_scope(t: &mut Truth) {
    let mut from = (0, 0);
    thread::scope(|s| {
        s.spawn(|| thread::sleep(Duration::from_millis(40)));
        s.spawn(|| thread::sleep(Duration::from_millis(60)));
        from = Truth::now();
    });
    t.spent("join", from);
}

#[inline(never)]
fn wait_barrier(t: &mut Truth, b: &Barrier) {
    let from = Truth::now();
    b.wait();
    t.spent("join", from);
}

#[inline(never)]
fn idle_recv(t: &mut Truth, from_peer: &Receiver<u64>) -> bool {
    let from = Truth::now();
    let got = from_peer.recv();
    t.spent("park", from);
    got.is_ok()
}

#[inline(never)]
fn idle_park(t: &mut Truth) {
    let from = Truth::now();
    thread::park();
    t.spent("park", from);
}

#[inline(never)]
fn wait_by_yield() {
    while !over() {
        thread::yield_now();
    }
}

// ---- an executor: one task, polled again when it is woken ----

struct Unparker(thread::Thread);

impl Wake for Unparker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[inline(never)]
fn idle_executor(mut tasks: Vec<Pin<Box<dyn Future<Output = ()>>>>) {
    let waker = Waker::from(Arc::new(Unparker(thread::current())));
    let mut cx = Context::from_waker(&waker);
    while !tasks.is_empty() {
        tasks.retain_mut(|task| task.as_mut().poll(&mut cx).is_pending());
        if !tasks.is_empty() {
            thread::park(); // the executor's own: idle
        }
    }
}

// Ready once a helper thread has slept.
struct Timer {
    due: Arc<AtomicBool>,
    is_started: bool,
    ms: u64,
}

impl Future for Timer {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.due.load(Ordering::Acquire) {
            return Poll::Ready(());
        }
        if !self.is_started {
            self.is_started = true;
            let (due, waker, ms) = (self.due.clone(), cx.waker().clone(), self.ms);
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(ms));
                due.store(true, Ordering::Release);
                waker.wake();
            });
        }
        Poll::Pending
    }
}

struct Logged<F>(F);

// A future around another one, as middleware is.
impl<F: Future<Output = ()>> Future for Logged<F> {
    type Output = ();
    #[inline(never)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        unsafe { self.map_unchecked_mut(|l| &mut l.0) }.poll(cx)
    }
}

#[inline(never)]
fn wait_in_task(truth: &Mutex<Truth>) {
    let from = Truth::now();
    thread::sleep(Duration::from_millis(30));
    truth.lock().unwrap().spent("executor", from);
}

async fn handle_requests(truth: Arc<Mutex<Truth>>) {
    while !over() {
        wait_in_task(&truth);
        Timer { due: Default::default(), is_started: false, ms: 30 }.await;
    }
}

fn main() {
    let seconds: f64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(1.0);
    let mut all = Vec::new();
    for (name, size) in [("send", 1), ("handover", 0)] {
        let (tx, rx) = sync_channel(size);
        all.push(spawn(name, move |t| while !over() && wait_send(t, &tx) {}));
        all.push(spawn("slow", move |t| {
            while idle_recv(t, &rx) {
                rest(t, 20);
            }
        }));
    }
    all.push(spawn("joiner", |t| {
        while !over() {
            wait_join(t);
        }
    }));
    all.push(spawn("scope", |t| {
        while !over() {
            wait_scope(t);
        }
    }));
    let barrier = Arc::new(Barrier::new(2));
    let late = barrier.clone();
    let rounds = (seconds * 20.0) as u64;
    all.push(spawn("barrier", move |t| (0..rounds).for_each(|_| wait_barrier(t, &barrier))));
    all.push(spawn("late", move |t| {
        for _ in 0..rounds {
            rest(t, 40);
            wait_barrier(t, &late);
        }
    }));
    let (tx, rx) = channel::<u64>();
    all.push(spawn("receiver", move |t| while idle_recv(t, &rx) {}));
    all.push(spawn("sender", move |t| {
        while !over() {
            rest(t, 30);
            let _ = tx.send(1);
        }
    }));
    let parked = spawn("parked", |t| {
        while !over() {
            idle_park(t);
        }
    });
    let whom = parked.thread().clone();
    all.push(parked);
    all.push(spawn("executor", |t| {
        let truth = Arc::new(Mutex::new(Truth::new("executor")));
        idle_executor(vec![Box::pin(Logged(handle_requests(truth.clone())))]);
        t.classes.append(&mut truth.lock().unwrap().classes);
    }));
    for _ in 0..std::env::args().nth(2).and_then(|s| s.parse().ok()).unwrap_or(0) {
        all.push(spawn("yielder", |_| wait_by_yield()));
    }
    thread::sleep(Duration::from_secs_f64(seconds));
    OVER.store(true, Ordering::Relaxed);
    whom.unpark();
    for h in all {
        let _ = h.join();
    }
}
