/* build: rustc --edition 2021 -O -g */
// planted_std CASE ill|well SECONDS, as planted.h describes, with Rust's standard library: a full channel and
// an executor that is blocked.
use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

include!("../waits_truth.inc");

fn work(us: u64) {
    let until = cpu() + us * 1000;
    while cpu() < until {}
}

/// channel: two producers send more than one consumer takes; well: the consumer waits for producers.
#[inline(never)]
fn send_row(to: &std::sync::mpsc::SyncSender<u64>) -> bool {
    to.send(1).is_ok()
}

fn channel(ill: bool, end: Instant) -> f64 {
    let (to, from) = sync_channel(4);
    let producers: Vec<_> = (0..2)
        .map(|i| {
            let to = to.clone();
            thread::Builder::new().name(format!("producer-{}", i)).spawn(move || {
                let (start, mut t) = (wall(), Truth::new("producer"));
                while Instant::now() < end {
                    if !ill {
                        thread::sleep(Duration::from_millis(30));
                    }
                    work(100);
                    let from = Truth::now();
                    if !send_row(&to) {
                        break;
                    }
                    t.spent("channel", from);
                }
                t.classes.iter().map(|c| c.1).sum::<u64>() as f64 / (wall() - start) as f64
            })
        })
        .collect();
    drop(to);
    for _ in from {
        if ill {
            thread::sleep(Duration::from_millis(10));
        }
        work(200);
    }
    producers.into_iter().map(|p| p.unwrap().join().unwrap()).sum::<f64>() / 2.0
}

struct Task {
    what: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
    to: std::sync::mpsc::SyncSender<Arc<Task>>,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let again = self.clone();
        let _ = self.to.try_send(again);
    }
}

/// Ready when a timer of its own has fired; well written: the executor does other work meanwhile.
struct Timer {
    at: Instant,
    started: bool,
}

impl Future for Timer {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, c: &mut Context<'_>) -> Poll<()> {
        if Instant::now() >= self.at {
            return Poll::Ready(());
        }
        if !self.started {
            self.started = true;
            let (at, waker) = (self.at, c.waker().clone());
            thread::Builder::new().name("timer".into()).spawn(move || {
                thread::sleep(at.saturating_duration_since(Instant::now()));
                waker.wake();
            }).unwrap();
        }
        Poll::Pending
    }
}

#[inline(never)]
fn blocking_query() {
    thread::sleep(Duration::from_millis(15));
}

async fn handle_connection(ill: bool, end: Instant) {
    while Instant::now() < end {
        if ill {
            blocking_query();
        } else {
            Timer { at: Instant::now() + Duration::from_millis(15), started: false }.await;
        }
        work(200);
        Timer { at: Instant::now() + Duration::from_millis(2), started: false }.await;
    }
}

/// executor: its tasks sleep within poll; well: they wait for a timer.
fn executor(ill: bool, end: Instant) -> f64 {
    let (to, queue) = sync_channel::<Arc<Task>>(1000);
    for _ in 0..4 {
        let what: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(handle_connection(ill, end));
        let task = Arc::new(Task { what: Mutex::new(Some(what)), to: to.clone() });
        to.send(task).unwrap();
    }
    drop(to);
    let (start, mut blocked) = (wall(), 0);
    for task in queue {
        let mut what = task.what.lock().unwrap();
        let waker = Waker::from(task.clone());
        if let Some(mut f) = what.take() {
            let from = Truth::now();
            let is_over = f.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
            blocked += (wall() - from.0) - (cpu() - from.1).min(wall() - from.0);
            if !is_over {
                *what = Some(f);
            }
        }
    }
    blocked as f64 / (wall() - start) as f64
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let ill = args[2] == "ill";
    let end = Instant::now() + Duration::from_secs_f64(args[3].parse().unwrap());
    let (share, what) = match args[1].as_str() {
        "channel" => (channel(ill, end), "producers wait for a place in the channel"),
        _ => (executor(ill, end), "the executor's thread sleeps within poll"),
    };
    println!(
        "{{\"planted\":\"{}\",\"form\":\"{}\",\"what\":\"{}\",\"share\":{:.3}}}",
        args[1], args[2], what, share
    );
}
