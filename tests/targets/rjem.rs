/* build: rustc -C opt-level=2 -g -l static=rjem */
// A Rust program over a static jemalloc with the prefix _rjem_, called as tikv-jemallocator does:
// malloc and calloc, mallocx for large alignments, rallocx, and sdallocx for everything freed.
// rjem OPS [forever]: two threads; each makes OPS blocks in keeps_blocks, of which every fourth
// lives to the end, and OPS short-lived ones in makes_scratch. Waits for a line on standard input
// before that and before the end; prints "ready", then what its allocator itself counted:
//	calls N frees N bytes N live N live_bytes N
use std::alloc::{GlobalAlloc, Layout};
use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

// What std::hint::black_box is from Rust 1.66 on: the value is used and may have changed.
#[inline(always)]
fn black_box<T>(mut x: T) -> T {
    unsafe { std::arch::asm!("/* {0} */", in(reg) &mut x, options(nostack, preserves_flags)) };
    x
}

extern "C" {
    fn _rjem_malloc(n: usize) -> *mut u8;
    fn _rjem_calloc(nr: usize, n: usize) -> *mut u8;
    fn _rjem_mallocx(n: usize, flags: i32) -> *mut u8;
    fn _rjem_rallocx(p: *mut u8, n: usize, flags: i32) -> *mut u8;
    fn _rjem_sdallocx(p: *mut u8, n: usize, flags: i32);
}

static CALLS: AtomicU64 = AtomicU64::new(0);
static FREES: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
static FREED: AtomicU64 = AtomicU64::new(0);

struct Counted;

fn flags(l: &Layout) -> i32 {
    if l.align() <= 16 && l.align() <= l.size() { 0 } else { l.align().trailing_zeros() as i32 }
}

fn allocated(n: usize) {
    CALLS.fetch_add(1, Relaxed);
    BYTES.fetch_add(n as u64, Relaxed);
}

fn freed(n: usize) {
    FREES.fetch_add(1, Relaxed);
    FREED.fetch_add(n as u64, Relaxed);
}

unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, l: Layout) -> *mut u8 {
        allocated(l.size());
        match flags(&l) { 0 => _rjem_malloc(l.size()), f => _rjem_mallocx(l.size(), f) }
    }
    unsafe fn alloc_zeroed(&self, l: Layout) -> *mut u8 {
        allocated(l.size());
        match flags(&l) { 0 => _rjem_calloc(1, l.size()), f => _rjem_mallocx(l.size(), f | 0x40) }
    }
    unsafe fn dealloc(&self, p: *mut u8, l: Layout) {
        freed(l.size());
        _rjem_sdallocx(p, l.size(), flags(&l));
    }
    unsafe fn realloc(&self, p: *mut u8, l: Layout, n: usize) -> *mut u8 {
        freed(l.size());
        allocated(n);
        _rjem_rallocx(p, n, flags(&l))
    }
}

#[global_allocator]
static ALLOCATOR: Counted = Counted;

#[inline(never)]
fn keeps_blocks(ops: usize, kept: &mut Vec<Box<[u8]>>) {
    for i in 0..ops {
        let b = vec![i as u8; 64 + i % 1000].into_boxed_slice();
        if i % 4 == 0 { kept.push(b); }
    }
}

#[inline(never)]
fn makes_scratch(ops: usize) -> u64 {
    (0..ops).map(|i| black_box(vec![1u8; 100 + i % 50]).len() as u64).sum()
}

fn line() {
    let mut s = String::new();
    let _ = std::io::stdin().lock().read_line(&mut s);
}

fn main() {
    let ops: usize = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(10000);
    let forever = std::env::args().nth(2).is_some();
    println!("ready");
    std::io::stdout().flush().unwrap();
    line();
    let before = [&CALLS, &FREES, &BYTES, &FREED].map(|c| c.load(Relaxed));
    let work = move || {
        let mut kept = Vec::new();
        loop {
            keeps_blocks(ops, &mut kept);
            makes_scratch(ops);
            if !forever { return kept; }
            kept.clear();
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    };
    let threads: Vec<_> = (0..2).map(|_| std::thread::spawn(work)).collect();
    let kept: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
    let d: Vec<u64> = [&CALLS, &FREES, &BYTES, &FREED].iter().zip(before).map(|(c, b)| c.load(Relaxed) - b).collect();
    println!("calls {} frees {} bytes {} live {} live_bytes {}", d[0], d[1], d[2], d[0] - d[1], d[2] - d[3]);
    std::io::stdout().flush().unwrap();
    line();
    drop(kept);
}
