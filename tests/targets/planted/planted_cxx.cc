/* build: g++ -O2 -g -std=c++20 -pthread */
/* planted_cxx CASE ill|well SECONDS: waits of the C++ library; the last line is as in planted.h. */
#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <queue>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>
using namespace std::chrono;
static bool ill;
static double secs;
static std::atomic<bool> over;
static std::atomic<long long> part, whole;
static long long ns()
{
	return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}
static void burn(int us)
{
	long long t = ns() + us * 1000LL;
	while (ns() < t)
		;
}
static void pause_us(int us)
{
	std::this_thread::sleep_for(microseconds(us));
}

template <class T> class bounded_queue
{
	std::mutex m;
	std::condition_variable not_full, not_empty;
	std::deque<T> items;
	size_t cap;

      public:
	explicit bounded_queue(size_t cap) : cap(cap)
	{
	}
	__attribute__((noinline)) void push(T t)
	{
		std::unique_lock<std::mutex> l(m);
		long long a = ns();
		not_full.wait(l, [this] { return items.size() < cap || over; });
		if (ill)
			part += ns() - a;
		items.push_back(std::move(t));
		not_empty.notify_one();
	}
	__attribute__((noinline)) bool pop(T &t)
	{
		std::unique_lock<std::mutex> l(m);
		long long a = ns();
		not_empty.wait(l, [this] { return !items.empty() || over; });
		if (!ill)
			part += ns() - a;
		if (items.empty())
			return false;
		t = std::move(items.front());
		items.pop_front();
		not_full.notify_one();
		return true;
	}
	void wake()
	{
		std::lock_guard<std::mutex> l(m);
		not_full.notify_all();
		not_empty.notify_all();
	}
};
/* slowsink: two decoders put frames in a queue of eight; the writer takes 4 ms for each. well: decoders are slow */
static void slowsink()
{
	bounded_queue<std::string> q(8);
	std::vector<std::thread> t;
	for (int i = 0; i < 2; i++)
		t.emplace_back([&] {
			long long s = ns();
			while (!over) {
				burn(200);
				if (!ill)
					pause_us(20000);
				q.push(std::string(100, 'x'));
			}
			if (ill)
				whole += ns() - s;
		});
	t.emplace_back([&] {
		long long s = ns();
		std::string x;
		while (!over) {
			q.pop(x);
			if (ill)
				pause_us(4000);
			else
				burn(100);
		}
		if (!ill)
			whole += ns() - s;
	});
	pause_us(secs * 1e6);
	over = true;
	q.wake();
	for (auto &x : t)
		x.join();
}
/* starved: eight workers of a pool, one submitter that has a job of 1 ms each 10 ms. (well: enough jobs) */
static void starved()
{
	bounded_queue<std::function<void()>> q(64);
	std::vector<std::thread> t;
	bool was = ill;
	ill = false; /* part: time in pop */
	for (int i = 0; i < (was ? 8 : 2); i++)
		t.emplace_back([&] {
			long long s = ns();
			std::function<void()> f;
			while (!over) {
				if (q.pop(f))
					f();
			}
			whole += ns() - s;
		});
	while (!over) {
		if (was) {
			pause_us(10000);
			q.push([] { burn(1000); });
		} else
			q.push([] { burn(1000); });
		static long long s0 = ns();
		if (ns() - s0 > secs * 1e9)
			over = true;
	}
	q.wake();
	for (auto &x : t)
		x.join();
	ill = was;
}
/* rw: a writer waits as readers hold a shared_mutex long; well: readers hold it shortly */
static std::shared_mutex rw;
static std::map<int, int> table;
__attribute__((noinline)) static void scan_table()
{
	std::shared_lock<std::shared_mutex> l(rw);
	if (ill)
		pause_us(20000);
	else
		burn(5);
}
__attribute__((noinline)) static void update_table(int i)
{
	long long a = ns();
	std::unique_lock<std::shared_mutex> l(rw);
	part += ns() - a;
	table[i % 100] = i;
}
static void rwlock()
{
	std::vector<std::thread> t;
	t.emplace_back([&] {
		int i = 0;
		long long s = ns();
		while (!over) {
			update_table(i++);
			burn(100);
			pause_us(1000);
		}
		whole += ns() - s;
	});
	for (int i = 0; i < 1; i++)
		t.emplace_back([&] {
			while (!over) {
				scan_table();
				pause_us(ill ? 500 : 20000);
			}
		});
	pause_us(secs * 1e6);
	over = true;
	for (auto &x : t)
		x.join();
}
/* barrier: four threads of which one has 20 times the work; well: equal work (sleeping) */
static void imbalance()
{
	std::barrier<> b(4);
	std::vector<std::thread> t;
	std::atomic<int> rounds{(int)(secs * 1000 / 22)};
	for (int i = 0; i < 4; i++)
		t.emplace_back([&, i] {
			long long s = ns();
			for (int r = 0; r < rounds; r++) {
				if (i == 0)
					pause_us(20000);
				else if (ill)
					burn(1000);
				else
					pause_us(20000);
				long long a = ns();
				b.arrive_and_wait();
				if (i)
					part += ns() - a;
			}
			if (i)
				whole += ns() - s;
		});
	for (auto &x : t)
		x.join();
}
/* future: main waits for a result of std::async; well: of async work that is done when it asks */
__attribute__((noinline)) static int slow_answer()
{
	pause_us(10000);
	burn(1000);
	return 1;
}
static void future()
{
	long long s = ns();
	while (ns() - s < secs * 1e9) {
		auto f = std::async(std::launch::async, slow_answer);
		if (!ill)
			burn(20000);
		long long a = ns();
		f.get();
		part += ns() - a;
	}
	whole = ns() - s;
}
int main(int argc, char **argv)
{
	std::map<std::string, std::function<void()>> cases{{"slowsink", slowsink},
							   {"starved", starved},
							   {"rwlock", rwlock},
							   {"imbalance", imbalance},
							   {"future", future}};
	if (argc < 4 || !cases.count(argv[1]))
		return 2;
	ill = !strcmp(argv[2], "ill");
	secs = atof(argv[3]);
	cases[argv[1]]();
	printf("{\"planted\":\"%s\",\"form\":\"%s\",\"share\":%.3f}\n", argv[1], argv[2],
	       whole ? (double)part / whole : 0.);
}
