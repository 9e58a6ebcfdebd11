/* build: rustc -O -g */
/* also holders_lot: cargo --cfg=lot parking_lot crossbeam-channel */
// holders_std SECONDS KIND DOING [NAME=VALUE...]: what holders.c is for pthreads, for Rust's standard
// library; holders_lot is the same source with the locks of parking_lot and the channel of crossbeam.
//
// KIND: mutex, rwlock (the holder writes), rwread (the holder reads), condvar, channel (a full one: its
//       receiver is the holder), park, join, scope (the thread that is joined is the holder); holders_lot
//       has no park, join and scope of its own
// DOING: burn, sleep, fsync, preempt; shape=, waiters=, hold=, others=, rest= as in holders.c
#![allow(unknown_lints, unexpected_cfgs)]
use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

#[cfg(not(lot))]
mod sync {
    pub use std::sync::mpsc::{sync_channel as channel, Receiver, SyncSender as Sender};
    pub use std::sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
    pub fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
        m.lock().unwrap()
    }
    pub fn write<T>(m: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
        m.write().unwrap()
    }
    pub fn read<T>(m: &RwLock<T>) -> RwLockReadGuard<'_, T> {
        m.read().unwrap()
    }
    pub fn wait<'a, T>(c: &Condvar, held: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        c.wait(held).unwrap()
    }
}

#[cfg(lot)]
mod sync {
    pub use crossbeam_channel::{bounded as channel, Receiver, Sender};
    pub use parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
    pub fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
        m.lock()
    }
    pub fn write<T>(m: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
        m.write()
    }
    pub fn read<T>(m: &RwLock<T>) -> RwLockReadGuard<'_, T> {
        m.read()
    }
    pub fn wait<'a, T>(c: &Condvar, mut held: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        c.wait(&mut held);
        held
    }
}

use sync::{lock, read, wait, write};

static OVER: AtomicBool = AtomicBool::new(false);

fn over() -> bool {
    OVER.load(Relaxed)
}

#[repr(C)]
struct Timespec {
    sec: i64,
    nsec: i64,
}

extern "C" {
    fn clock_gettime(id: i32, ts: *mut Timespec) -> i32;
    fn gettid() -> i32;
    fn sched_setaffinity(pid: i32, size: usize, mask: *const u64) -> i32;
}

#[inline(always)]
fn clock(id: i32) -> u64 {
    let mut t = Timespec { sec: 0, nsec: 0 };
    unsafe { clock_gettime(id, &mut t) };
    t.sec as u64 * 1_000_000_000 + t.nsec as u64
}

#[inline(always)]
fn wall() -> u64 {
    clock(1)
}

fn pin(cpu: u32) {
    let mask = [1u64 << cpu, 0];
    unsafe { sched_setaffinity(0, 16, mask.as_ptr()) };
}

// After a call: it is no tail call, so the caller stays on the stack.
#[inline(always)]
fn stay() {
    unsafe { std::arch::asm!("", options(nostack, preserves_flags)) };
}

// ---- the truth -------------------------------------------------------------------------------

#[derive(Clone, Copy)]
struct Span {
    from: u64,
    to: u64,
    lock: usize,
}

struct Actor {
    name: String,
    tid: i32,
    doing: &'static str,
    holds: Vec<Span>,
    waits: Vec<Span>,
    seed: u64,
}

static ACTORS: std::sync::Mutex<Vec<Actor>> = std::sync::Mutex::new(Vec::new());

impl Actor {
    fn new(name: &str, doing: &'static str) -> Actor {
        let tid = unsafe { gettid() };
        Actor {
            name: name.to_string(),
            tid,
            doing,
            holds: Vec::with_capacity(100_000),
            waits: Vec::with_capacity(100_000),
            seed: tid as u64 * 2654435761 + 1,
        }
    }

    // Between three quarters and five quarters.
    fn about(&mut self, v: u64) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        v - v / 4 + self.seed % (v / 2 + 1)
    }

    fn waited(&mut self, from: u64, lock: usize) -> u64 {
        let to = wall();
        self.waits.push(Span { from, to, lock });
        to
    }
}

type Flat = HashMap<usize, Vec<(Span, usize)>>;

// Who held each lock, in order of time; of several readers the one that releases last.
fn flatten(actors: &[Actor]) -> Flat {
    let mut all = Flat::new();
    for (i, a) in actors.iter().enumerate() {
        for h in &a.holds {
            all.entry(h.lock).or_default().push((*h, i));
        }
    }
    for holds in all.values_mut() {
        holds.sort_by_key(|h| h.0.from);
        let mut flat: Vec<(Span, usize)> = Vec::new();
        for h in holds.iter() {
            if let Some(last) = flat.last_mut() {
                if last.0.to >= h.0.to {
                    continue;
                }
                last.0.to = last.0.to.min(h.0.from);
            }
            flat.push(*h);
        }
        *holds = flat;
    }
    all
}

struct Shares<'a> {
    actors: &'a [Actor],
    flat: Flat,
    ns: BTreeMap<(usize, Option<usize>), u64>,
}

impl Shares<'_> {
    fn add(&mut self, waiter: usize, culprit: Option<usize>, ns: u64) {
        *self.ns.entry((waiter, culprit)).or_insert(0) += ns;
    }

    // The holder's own waits are passed on.
    fn of_holder(&mut self, waiter: usize, holder: usize, mut from: u64, to: u64) {
        let waits = &self.actors[holder].waits;
        let first = waits.partition_point(|w| w.to <= from);
        for w in waits[first..].iter().take_while(|w| w.from < to) {
            let (start, stop) = (w.from.max(from), w.to.min(to));
            self.add(waiter, Some(holder), start - from);
            self.of_lock(waiter, w.lock, start, stop);
            from = stop;
        }
        self.add(waiter, Some(holder), to - from);
    }

    fn of_lock(&mut self, waiter: usize, lock: usize, mut from: u64, to: u64) {
        let holds: Vec<(Span, usize)> = match self.flat.get(&lock) {
            Some(all) => {
                let first = all.partition_point(|h| h.0.to <= from);
                all[first..].iter().take_while(|h| h.0.from < to).copied().collect()
            }
            None => Vec::new(),
        };
        for (h, holder) in holds {
            let (start, stop) = (h.from.max(from), h.to.min(to));
            self.add(waiter, None, start - from);
            self.of_holder(waiter, holder, start, stop);
            from = stop;
        }
        self.add(waiter, None, to - from);
    }
}

fn print_truth() {
    let actors = std::mem::take(&mut *ACTORS.lock().unwrap());
    let mut shares = Shares { actors: &actors, flat: flatten(&actors), ns: BTreeMap::new() };
    let mut lines = Vec::new();
    for (i, a) in actors.iter().enumerate().filter(|(_, a)| !a.waits.is_empty()) {
        for w in &a.waits {
            shares.of_lock(i, w.lock, w.from, w.to);
        }
        lines.push(format!(
            "{{\"waiter\":\"{}\",\"tid\":{},\"ns\":{},\"n\":{}}}",
            a.name,
            a.tid,
            a.waits.iter().map(|w| w.to - w.from).sum::<u64>(),
            a.waits.len()
        ));
    }
    println!("{{\"waits\":[{}]}}", lines.join(","));
    // Workers that are joined share a name.
    let mut named: BTreeMap<(&str, &str, &str), u64> = BTreeMap::new();
    for (&(waiter, culprit), &ns) in shares.ns.iter().filter(|e| *e.1 > 0) {
        let (name, doing) = culprit.map_or(("", ""), |c| (&actors[c].name[..], actors[c].doing));
        *named.entry((&actors[waiter].name[..], name, doing)).or_insert(0) += ns;
    }
    let lines: Vec<String> = named
        .iter()
        .map(|(k, ns)| {
            format!("{{\"waiter\":\"{}\",\"culprit\":\"{}\",\"doing\":\"{}\",\"ns\":{}}}", k.0, k.1, k.2, ns)
        })
        .collect();
    println!("{{\"blame\":[{}]}}", lines.join(","));
}

// ---- what is done while a lock is held --------------------------------------------------------

#[inline(never)]
fn holding_burn(ns: u64) {
    let end = wall() + ns;
    while wall() < end {}
}

#[inline(never)]
fn holding_preempt(ns: u64) {
    let end = clock(3) + ns;
    while clock(3) < end {}
}

#[inline(never)]
fn holding_sleep(ns: u64) {
    thread::sleep(Duration::from_nanos(ns));
    stay();
}

#[inline(never)]
fn holding_fsync(ns: u64, file: &File) {
    let end = wall() + ns;
    while wall() < end {
        let _ = (&mut &*file).write(&[0u8; 512]);
        let _ = file.sync_all();
    }
}

struct Args {
    kind: String,
    doing: &'static str,
    shape: String,
    waiters: usize,
    hold_ns: u64,
    others_ns: u64,
    rest_us: Option<u64>,
    file: File,
}

impl Args {
    fn hold(&self, a: &mut Actor) {
        let ns = a.about(self.hold_ns);
        match self.doing {
            "sleep" => holding_sleep(ns),
            "fsync" => holding_fsync(ns, &self.file),
            "preempt" => holding_preempt(ns),
            _ => holding_burn(ns),
        }
    }

    // @us if the arguments do not say.
    #[inline(never)]
    fn rest(&self, a: &mut Actor, us: u64) {
        let us = self.rest_us.unwrap_or(us);
        if us > 0 {
            thread::sleep(Duration::from_nanos(a.about(us * 1000)));
        }
    }

    fn pin(&self, is_holder: bool) {
        if self.doing == "preempt" {
            pin(if is_holder { 0 } else { 1 });
        }
    }
}

// ---- locks -----------------------------------------------------------------------------------

#[derive(Default)]
struct Locks {
    mutex: [sync::Mutex<u64>; 2],
    rwlock: sync::RwLock<u64>,
    round: sync::Mutex<u64>,
    next: sync::Condvar,
}

#[allow(dead_code)]
enum Held<'a> {
    Mutex(sync::MutexGuard<'a, u64>),
    Write(sync::RwLockWriteGuard<'a, u64>),
    Read(sync::RwLockReadGuard<'a, u64>),
}

#[inline(never)]
fn wait_held<'a>(a: &mut Actor, l: &'a Locks, idx: usize, how: char) -> (Held<'a>, u64) {
    let from = wall();
    let held = match how {
        'm' => Held::Mutex(lock(&l.mutex[idx])),
        'w' => Held::Write(write(&l.rwlock)),
        _ => Held::Read(read(&l.rwlock)),
    };
    (held, a.waited(from, idx))
}

#[inline(never)]
fn release_held(held: Held) {
    drop(held);
    stay();
}

fn give_back(a: &mut Actor, held: Held, idx: usize, from: u64) {
    let to = wall();
    release_held(held);
    a.holds.push(Span { from, to, lock: idx });
}

// ---- threads ---------------------------------------------------------------------------------

fn holder(g: &Args, l: &Locks, a: &mut Actor) {
    g.pin(true);
    let how = match &g.kind[..] {
        "rwlock" => 'w',
        "rwread" => 'r',
        _ => 'm',
    };
    while !over() {
        let (held, from) = wait_held(a, l, 0, how);
        g.hold(a);
        give_back(a, held, 0, from);
        g.rest(a, 300);
    }
}

fn waiter(g: &Args, l: &Locks, a: &mut Actor, idx: usize) {
    g.pin(false);
    let how = match &g.kind[..] {
        "rwlock" if idx % 2 == 1 => 'r',
        "rwlock" | "rwread" => 'w',
        _ => 'm',
    };
    let lock = (g.shape == "chain2") as usize;
    while !over() {
        let (held, from) = wait_held(a, l, lock, how);
        if g.others_ns > 0 {
            let end = from + a.about(g.others_ns);
            while wall() < end {}
        }
        give_back(a, held, lock, from);
        g.rest(a, 200);
    }
}

fn middle(g: &Args, l: &Locks, a: &mut Actor) {
    while !over() {
        let (outer, outer_from) = wait_held(a, l, 1, 'm');
        let (inner, inner_from) = wait_held(a, l, 0, 'm');
        give_back(a, inner, 0, inner_from);
        give_back(a, outer, 1, outer_from);
        g.rest(a, 200);
    }
}

fn convoy(g: &Args, l: &Locks, a: &mut Actor) {
    while !over() {
        let (held, from) = wait_held(a, l, 0, if g.kind == "rwlock" { 'w' } else { 'm' });
        g.hold(a);
        give_back(a, held, 0, from);
        g.rest(a, 50);
    }
}

fn notifier(g: &Args, l: &Locks, a: &mut Actor) {
    g.pin(true);
    while !over() {
        let from = wall();
        g.hold(a);
        a.holds.push(Span { from, to: wall(), lock: 0 });
        release_round(l);
    }
    release_round(l);
}

#[inline(never)]
fn release_round(l: &Locks) {
    *lock(&l.round) += 1;
    l.next.notify_all();
    stay();
}

#[inline(never)]
fn wait_round(g: &Args, l: &Locks, a: &mut Actor) {
    g.pin(false);
    while !over() {
        let from = wall();
        let mut held = lock(&l.round);
        let round = *held;
        while *held == round && !over() {
            held = wait(&l.next, held);
        }
        drop(held);
        a.waited(from, 0);
    }
}

#[inline(never)]
fn release_item(from: &sync::Receiver<u64>) {
    let _ = from.recv();
    stay();
}

fn receiver(g: &Args, from: sync::Receiver<u64>, a: &mut Actor) {
    g.pin(true);
    while !over() {
        let start = wall();
        g.hold(a);
        a.holds.push(Span { from: start, to: wall(), lock: 0 });
        release_item(&from);
    }
}

#[inline(never)]
fn wait_send(g: &Args, to: sync::Sender<u64>, a: &mut Actor) {
    g.pin(false);
    loop {
        let from = wall();
        let is_sent = to.send(1).is_ok();
        a.waited(from, 0);
        if !is_sent {
            break;
        }
    }
}

static PARKED: AtomicU64 = AtomicU64::new(0);

#[inline(never)]
fn release_parked(threads: &[thread::Thread]) {
    PARKED.fetch_add(1, Relaxed);
    for t in threads {
        t.unpark();
    }
    stay();
}

fn unparker(g: &Args, threads: &[thread::Thread], a: &mut Actor) {
    g.pin(true);
    while !over() {
        let from = wall();
        g.hold(a);
        a.holds.push(Span { from, to: wall(), lock: 0 });
        release_parked(threads);
    }
    release_parked(threads);
}

#[inline(never)]
fn wait_park(g: &Args, a: &mut Actor) {
    g.pin(false);
    while !over() {
        let from = wall();
        let round = PARKED.load(Relaxed);
        while PARKED.load(Relaxed) == round && !over() {
            thread::park();
        }
        a.waited(from, 0);
    }
}

fn worker(g: &Args, lock: usize) {
    let mut a = Actor::new("worker", g.doing);
    g.pin(true);
    let from = wall();
    g.hold(&mut a);
    a.holds.push(Span { from, to: wall(), lock });
    ACTORS.lock().unwrap().push(a);
}

#[inline(never)]
fn wait_worker(g: &Arc<Args>, a: &mut Actor, idx: usize) {
    while !over() {
        let name = thread::Builder::new().name("worker".to_string());
        if g.kind == "scope" {
            thread::scope(|s| {
                name.spawn_scoped(s, || worker(g, idx)).unwrap();
                let from = wall();
                a.waits.push(Span { from, to: from, lock: idx });
            });
            a.waits.last_mut().unwrap().to = wall();
            continue;
        }
        let its = g.clone();
        let one = name.spawn(move || worker(&its, idx)).unwrap();
        let from = wall();
        let _ = one.join();
        a.waited(from, idx);
    }
}

type Handle = thread::JoinHandle<()>;

fn spawn<F>(name: &str, doing: &'static str, f: F) -> Handle
where
    F: FnOnce(&mut Actor) + Send + 'static,
{
    let name = name.to_string();
    let run = move || {
        let mut a = Actor::new(thread::current().name().unwrap(), doing);
        f(&mut a);
        ACTORS.lock().unwrap().push(a);
    };
    thread::Builder::new().name(name).spawn(run).unwrap()
}

fn letters(prefix: &str, i: usize) -> String {
    format!("{}-{}{}", prefix, (b'a' + (i / 26) as u8) as char, (b'a' + (i % 26) as u8) as char)
}

// Starts the threads of the kind; waiters first where the others must know them.
fn start(g: &Arc<Args>) -> Vec<Handle> {
    let l = Arc::new(Locks::default());
    let mut all = Vec::new();
    let (tx, rx) = sync::channel::<u64>(1);
    let is_convoy = g.shape == "convoy";
    for i in 0..g.waiters {
        let (its, l, tx) = (g.clone(), l.clone(), tx.clone());
        let (prefix, doing) = if is_convoy { ("convoy", g.doing) } else { ("waiter", "other") };
        all.push(spawn(&letters(prefix, i), doing, move |a| match &its.kind[..] {
            "condvar" => wait_round(&its, &l, a),
            "channel" => wait_send(&its, tx, a),
            "park" => wait_park(&its, a),
            "join" | "scope" => wait_worker(&its, a, i),
            _ if is_convoy => convoy(&its, &l, a),
            _ => waiter(&its, &l, a, i),
        }));
    }
    let threads: Vec<thread::Thread> = all.iter().map(|h| h.thread().clone()).collect();
    let mut rx = Some(rx);
    let nr_holders = match &g.kind[..] {
        "join" | "scope" => 0,
        _ if is_convoy => 0,
        _ if g.shape == "alternate" => 2,
        _ => 1,
    };
    for i in 0..nr_holders {
        let (its, l, threads, rx) = (g.clone(), l.clone(), threads.clone(), rx.take());
        let name = if i == 0 { "holder" } else { "holder-b" };
        all.push(spawn(name, g.doing, move |a| match &its.kind[..] {
            "condvar" => notifier(&its, &l, a),
            "channel" => receiver(&its, rx.unwrap(), a),
            "park" => unparker(&its, &threads, a),
            _ => holder(&its, &l, a),
        }));
    }
    if g.shape == "chain2" {
        let (its, l) = (g.clone(), l.clone());
        all.push(spawn("middle", "other", move |a| middle(&its, &l, a)));
    }
    if g.doing == "preempt" {
        let run = || {
            pin(0);
            while !over() {
                holding_preempt(1_000_000);
            }
        };
        all.push(thread::Builder::new().name("rival".to_string()).spawn(run).unwrap());
    }
    all
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let value = |name: &str| {
        let found = args.iter().find_map(|a| a.strip_prefix(name).and_then(|v| v.strip_prefix('=')));
        found.map(|v| v.to_string())
    };
    let number = |name: &str| value(name).map(|v| v.parse::<u64>().unwrap());
    let doing = match &args[3][..] {
        "burn" => "burn",
        "sleep" => "sleep",
        "fsync" => "fsync",
        "preempt" => "preempt",
        _ => panic!("no such activity"),
    };
    let shape = value("shape").unwrap_or_else(|| "planted".to_string());
    let default_us = match doing {
        _ if shape == "convoy" => 100,
        "preempt" => 8000,
        _ => 2000,
    };
    let file = OpenOptions::new().write(true).create(true).open("holders.data").unwrap();
    let g = Arc::new(Args {
        kind: args[2].clone(),
        doing,
        shape,
        waiters: number("waiters").unwrap_or(1) as usize,
        hold_ns: number("hold").unwrap_or(default_us) * 1000,
        others_ns: number("others").unwrap_or(0),
        rest_us: number("rest"),
        file,
    });
    let all = start(&g);
    thread::sleep(Duration::from_secs_f64(args[1].parse().unwrap()));
    OVER.store(true, Relaxed);
    for h in all {
        let _ = h.join();
    }
    print_truth();
}
