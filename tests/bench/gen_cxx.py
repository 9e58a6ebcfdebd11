#!/usr/bin/env python3
"""Writes N translation units of template-heavy C++ and a main: gen_cxx.py FOLDER N"""
import sys

HEADERS = """algorithm deque functional future iostream map memory numeric random regex set sstream
string thread tuple unordered_map variant vector""".split()

UNIT = """
namespace unit@ {
namespace {
struct record@ {
	int a;
	std::string b;
	std::vector<double> c;
	bool operator<(const record@ &o) const { return std::tie(a, b) < std::tie(o.a, o.b); }
};
static int helper(const std::string &s)
{
	int n = 0;
	for (char c : s)
		n += c == 'a' ? @ : 1;
	return n;
}
template <class T> struct box {
	T v;
	T get() const { return v; }
	void set(T t) { v = std::move(t); }
};
}
int run(int argc, char **argv)
{
	std::map<std::string, record@> m;
	std::unordered_map<int, std::vector<record@>> um;
	std::set<record@> st;
	std::deque<std::string> dq;
	std::regex re("([a-z]+)-([0-9]{@})");
	std::smatch sm;
	for (int k = 0; k < argc * 10; k++) {
		std::string s(argv[k % argc]);
		s += std::to_string(k);
		if (std::regex_search(s, sm, re))
			s = sm[1];
		m[s].b = s;
		um[k].push_back(m[s]);
		st.insert(m[s]);
		dq.push_front(s);
		m[s].a += helper(s);
	}
	std::vector<record@> v(st.begin(), st.end());
	std::sort(v.begin(), v.end());
	std::stable_sort(v.begin(), v.end(),
	                 [](const record@ &a, const record@ &b) { return a.b.size() < b.b.size(); });
	std::variant<int, std::string, record@> var = v.empty() ? record@{} : v[0];
	box<std::string> bx;
	bx.set(dq.empty() ? "" : dq[0]);
	std::function<int(int)> f = [&](int x) { return x + (int)v.size() + helper(bx.get()); };
	auto fu = std::async(std::launch::deferred, [&] {
		return std::accumulate(v.begin(), v.end(), 0,
		                       [](int a, const record@ &r) { return a + r.a; });
	});
	std::mt19937_64 rng(@);
	std::shuffle(v.begin(), v.end(), rng);
	std::ostringstream os;
	for (auto &r : v)
		os << r.a << r.b << std::endl;
	return f(3) + fu.get() + (int)os.str().size() + (int)var.index();
}
}
"""

folder, n = sys.argv[1], int(sys.argv[2])
for i in range(1, n + 1):
    with open(f"{folder}/unit{i}.cc", "w") as out:
        out.writelines(f"#include <{h}>\n" for h in HEADERS)
        out.write(UNIT.replace("@", str(i)))
with open(f"{folder}/main.cc", "w") as out:
    out.writelines(f"namespace unit{i} {{ int run(int, char **); }}\n" for i in range(1, n + 1))
    calls = " + ".join(f"unit{i}::run(c, v)" for i in range(1, n + 1))
    out.write(f"int main(int c, char **v)\n{{\n\treturn {calls};\n}}\n")
