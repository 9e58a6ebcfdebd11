/* build: rustc -C opt-level=3 -g */
// Two threads of collections, formatting, trait objects and recursion, for ARG seconds.
use std::collections::{BTreeMap, HashMap};
use std::thread;
trait Op { fn run(&self, x: u64) -> u64; }
struct A(u64); struct B(Vec<u64>);
impl Op for A { fn run(&self, x: u64) -> u64 { let mut h = HashMap::new(); for i in 0..200 { *h.entry(i * self.0 % 97).or_insert(0u64) += x ^ i; } h.values().sum() } }
impl Op for B { fn run(&self, x: u64) -> u64 { let mut m = BTreeMap::new(); for (i, v) in self.0.iter().enumerate() { m.insert(v.wrapping_mul(x) % 1009, i as u64); } let mut v: Vec<String> = m.iter().map(|(k, v)| format!("{:x}:{}", k, v)).collect(); v.sort_by(|a, b| b.cmp(a)); v.iter().map(|s| s.len() as u64).sum() } }
fn rec(d: u32, ops: &[Box<dyn Op + Sync + Send>], x: u64) -> u64 { if d == 0 { ops.iter().map(|o| o.run(x)).fold(0, |a, b| a.wrapping_add(b)) } else { rec(d - 1, ops, x.wrapping_mul(31)).wrapping_add(d as u64) } }
fn main() { let secs: u64 = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(3);
 let hs: Vec<_> = (0..2).map(|t| thread::Builder::new().name(format!("worker-{}", t)).spawn(move || { let ops: Vec<Box<dyn Op + Sync + Send>> = vec![Box::new(A(t + 3)), Box::new(B((0..300).collect()))]; let s = std::time::Instant::now(); let mut x = 1; while s.elapsed().as_secs() < secs { x = rec(12, &ops, x); } x }).unwrap()).collect();
 for h in hs { println!("{}", h.join().unwrap()); } }
