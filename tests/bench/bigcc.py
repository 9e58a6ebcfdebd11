#!/usr/bin/env python3
"""Generates a C++ program with much debug information: bigcc.py OUTDIR [UNITS].

Each unit instantiates containers, algorithms and lambdas over its own types, so that code and
.debug_info are large and stacks are deep and inlined; main calls all of them in turn for ARG seconds.
Build with g++ -O2 -g; -g1 would omit the lines of inlined calls. About 0.5 MB of .debug_info per unit.
"""
import os
import sys

UNIT = '''
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace unit%(n)d {

template <int K> struct Key {
	std::uint64_t v;
	bool operator<(const Key &o) const { return v * (2 * K + 1) < o.v * (2 * K + 1); }
	bool operator==(const Key &o) const { return v == o.v; }
};

struct Shape {
	virtual ~Shape() = default;
	virtual std::uint64_t area(std::uint64_t x) const = 0;
};

template <int K> struct Poly : Shape {
	std::map<Key<K>, std::string> names;
	std::vector<Key<K>> keys;
	std::uint64_t area(std::uint64_t x) const override
	{
		std::uint64_t s = 0;
		for (const auto &[k, name] : names)
			s += k.v ^ (name.size() * x);
		auto copy = keys;
		std::sort(copy.begin(), copy.end(), [x](const Key<K> &a, const Key<K> &b) {
			return (a.v ^ x) < (b.v ^ x);
		});
		std::set<Key<K>> seen(copy.begin(), copy.end());
		return std::accumulate(copy.begin(), copy.end(), s + seen.size(),
		                       [](std::uint64_t t, const Key<K> &k) { return t * 31 + k.v; });
	}
	void grow(std::uint64_t x)
	{
		for (int i = 0; i < 12; i++) {
			Key<K> k{x * 2654435761u %% (977 + K) + i};
			names[k] = std::to_string(k.v) + "/" + std::to_string(K);
			keys.push_back(k);
		}
		if (keys.size() > 120) {
			keys.clear();
			names.clear();
		}
	}
};

template <int K> std::uint64_t work(std::uint64_t x)
{
	static Poly<K> poly;
	static std::unordered_map<std::string, std::uint64_t> memo;
	poly.grow(x);
	std::function<std::uint64_t(std::uint64_t)> f = [&](std::uint64_t y) { return poly.area(y); };
	std::string key = std::to_string(x %% 257);
	memo[key] += f(x);
	std::unique_ptr<Shape> shape(new Poly<K>(poly));
	return memo[key] + shape->area(x + 1);
}

template <int... Ks> std::uint64_t all(std::uint64_t x, std::integer_sequence<int, Ks...>)
{
	return (work<Ks + 100 * %(n)d>(x) + ...);
}

std::uint64_t run(std::uint64_t x)
{
	return all(x, std::make_integer_sequence<int, 16>());
}

} // namespace
'''


def main():
    out = sys.argv[1]
    units = int(sys.argv[2]) if len(sys.argv) > 2 else 16
    os.makedirs(out, exist_ok=True)
    for n in range(units):
        with open('%s/unit%d.cc' % (out, n), 'w') as f:
            f.write(UNIT % {'n': n})
    with open(out + '/main.cc', 'w') as f:
        f.write('#include <cstdint>\n#include <cstdio>\n#include <cstdlib>\n#include <ctime>\n')
        for n in range(units):
            f.write('namespace unit%d { std::uint64_t run(std::uint64_t); }\n' % n)
        f.write('int main(int argc, char **argv)\n{\n\tdouble s = argc > 1 ? atof(argv[1]) : 3;\n'
                '\tstd::uint64_t x = 1;\n\tdo {\n')
        for n in range(units):
            f.write('\t\tx += unit%d::run(x);\n' % n)
        f.write('\t} while (clock() < s * CLOCKS_PER_SEC);\n\tprintf("%llu\\n", '
                '(unsigned long long)x);\n}\n')


main()
