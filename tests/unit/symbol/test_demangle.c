/* symbol/demangle: demangling of Rust and C++ names. */
#include "base/base.h"
#include "tap.h"

#include "base/buf.h"
#include "symbol/demangle.h"

#define CHECK_NAME(linkage, flags, expected)                    \
	do {                                                    \
		CLEANUP(buf_release) struct buf shown_ = {0};   \
		demangle(&shown_, sv_from_str(linkage), flags); \
		CHECK_STR(buf_str(&shown_), expected);          \
	} while (0)

TEST(demangle_rust_legacy_removes_hash_and_decodes_escapes)
{
	CHECK_NAME("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", 0,
		   "core::fmt::Formatter::pad");
	CHECK_NAME("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", DEMANGLE_HASHES,
		   "core::fmt::Formatter::pad::h0123456789abcdef");
	CHECK_NAME("_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$"
		   "3bar17h930b740aa94f1d3aE",
		   0, "<Test + 'static as foo::Bar<Test>>::bar");
	CHECK_NAME("_ZN12test$BP$test4foob17h05af221e174051e9E", 0, "test*test::foob");
	CHECK_NAME("_ZN9wu_manber28_$u7b$$u7b$closure$u7d$$u7d$17h930b740aa94f1d3aE", 0,
		   "wu_manber::{{closure}}");
	/* a hash that libiberty rejects as too regular is still a hash */
	CHECK_NAME("_ZN3foo3bar17h0000000000000000E", 0, "foo::bar");
}

TEST(demangle_rust_v0_removes_disambiguators)
{
	CHECK_NAME("_RNvC6_123foo3bar", 0, "123foo::bar");
	CHECK_NAME("_RNvMsr_NtCs3ssYzQotkvD_3std4pathNtB5_7PathBuf3newCs15kBYyAo9fc_7mycrate", 0,
		   "<std::path::PathBuf>::new");
	CHECK_NAME("_RNCNCNgCs6DXkGYLi8lr_2cc5spawn00B5_", 0,
		   "cc::spawn::{closure#0}::{closure#0}");
	CHECK_NAME("_RNvNtCs1234_7mycrate3foo3bar", DEMANGLE_HASHES, "mycrate[3c1c0]::foo::bar");
	CHECK_NAME("_RNvNtCs1234_7mycrate3foo3bar", 0, "mycrate::foo::bar");
}

TEST(demangle_keeps_suffixes_of_distinct_code)
{
	CHECK_NAME("_RNvNtCs1234_7mycrate3foo3bar.llvm.9876543210", 0, "mycrate::foo::bar");
	CHECK_NAME("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE.llvm.12345", 0,
		   "core::fmt::Formatter::pad");
	CHECK_NAME("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE.cold", 0,
		   "core::fmt::Formatter::pad.cold");
	CHECK_NAME("_Z3fooi.constprop.0.cold", 0, "foo(int) [clone .constprop.0] [clone .cold]");
	CHECK_NAME("zmalloc.llvm.123456", 0, "zmalloc");
	CHECK_NAME("zmalloc.llvm.123456", DEMANGLE_HASHES, "zmalloc.llvm.123456");
	CHECK_NAME("zmalloc.lto_priv.0.cold", 0, "zmalloc.cold");
	CHECK_NAME("zmalloc.constprop.0.lto_priv.3", 0, "zmalloc.constprop.0");
	CHECK_NAME("zmalloc.__uniq.123.llvm.456.cold", 0, "zmalloc.cold");
	CHECK_NAME("_Z1fv.__uniq.12", 0, "f()");
	CHECK_NAME("runtime.memclrNoHeapPointers.abi0", 0, "runtime.memclrNoHeapPointers");
	CHECK_NAME("main.(*T).Get.abiinternal", 0, "main.(*T).Get");
	CHECK_NAME("main.(*T).Get.abi0", DEMANGLE_HASHES, "main.(*T).Get.abi0");
	CHECK_NAME("pkg.abi0x", 0, "pkg.abi0x");
	CHECK_NAME(".llvm.3", 0, ".llvm.3");
	CHECK_NAME("zmalloc.isra.0.part.1", 0, "zmalloc.isra.0.part.1");
	CHECK_NAME("_ZdlPv@plt", 0, "operator delete(void*)@plt");
	CHECK_NAME("memcpy@plt", 0, "memcpy@plt");
}

TEST(demangle_cxx_keeps_parameters_and_removes_return_types)
{
	CHECK_NAME("_ZN3foo3barEi", 0, "foo::bar(int)");
	CHECK_NAME("_Z3fooIiEvT_", 0, "foo<int>(int)");
	CHECK_NAME("_ZNSo3putEc", 0, "std::ostream::put(char)");
	/* the return type of the function is removed, not those of its parameters */
	CHECK_NAME("_ZN6HolderIPFivEE5valueE", 0, "Holder<int (*)()>::value");
	CHECK_NAME("_Z4callPFivE", 0, "call(int (*)())");
}

/* As llvm-cxxfilt 19 shows them, with libiberty's {parm#1} for fp, without return types. */
TEST(demangle_cxx_knows_names_that_libiberty_does_not)
{
	CHECK_NAME("_ZGRN1a1bE_", 0, "reference temporary for a::b");
	CHECK_NAME("_ZGR1x0_", 0, "reference temporary for x");
	CHECK_NAME("_ZGR1x1_", 0, "reference temporary for x");
	CHECK_NAME("_ZGRZ1fvE1x_0_", 0, "reference temporary for f()::x");
	CHECK_NAME("_Z1fIiEDTfL0p_ET_", 0, "f<int>(int)");
	CHECK_NAME("_Z1fIiEvT_DTcl1gfL0p_EE", 0, "f<int>(int, decltype (g({parm#1})))");
	CHECK_NAME("_Z1fIiEvT_DTcl1gfL0p0_EE", 0, "f<int>(int, decltype (g({parm#2})))");
	/* part of an identifier */
	CHECK_NAME("_Z1fIiEvT_DTcl5gfL0pfL0p_EE", 0, "f<int>(int, decltype (gfL0p({parm#1})))");
	CHECK_NAME("_Z6fL0pfp4nope!", 0, "_Z6fL0pfp4nope!");
	CHECK_NAME("_ZGR_", 0, "_ZGR_");
	CHECK_NAME("_ZGR", 0, "_ZGR");
	CHECK_NAME("_ZfL0p", 0, "_ZfL0p");
	CHECK_NAME(
		"_ZN4llvm9hasNItemsINS_12PredIteratorIKNS_10BasicBlockENS_5Value18user_iterator_"
		"implIKNS_4UserEEEEEPFbRKPS3_EEEbOT_SG_jOT0_PNSt9enable_ifIXntsr3std10is_base_"
		"ofISt26random_access_iterator_tagNSt15iterator_traitsINSt16remove_referenceIDtfL0p"
		"_EE4typeEE17iterator_categoryEEE5valueEvE4typeE",
		0,
		"llvm::hasNItems<llvm::PredIterator<llvm::BasicBlock const, "
		"llvm::Value::user_iterator_impl<llvm::User const> >, bool "
		"(*)(llvm::BasicBlock const* "
		"const&)>(llvm::PredIterator<llvm::BasicBlock const, "
		"llvm::Value::user_iterator_impl<llvm::User const> >&&, "
		"llvm::PredIterator<llvm::BasicBlock const, "
		"llvm::Value::user_iterator_impl<llvm::User const> >&&, unsigned int, bool "
		"(*&&)(llvm::BasicBlock const* const&), "
		"std::enable_if<!std::is_base_of<std::random_access_iterator_tag, "
		"std::iterator_traits<std::remove_reference<decltype "
		"({parm#1})>::type>::iterator_category>::value, void>::type*)");
}

TEST(demangle_leaves_unmangled_names_unchanged)
{
	CHECK_NAME("main", 0, "main");
	CHECK_NAME("", 0, "");
	CHECK_NAME("_Z", 0, "_Z");
	CHECK_NAME("_R", 0, "_R");
	CHECK_NAME("_ZN", 0, "_ZN");
	CHECK_NAME("_ZN3fooE_not_a_name$", 0, "_ZN3fooE_not_a_name$");
	CHECK_NAME("LazyCompile:~a; b /x.js:1", 0, "LazyCompile:~a; b /x.js:1");
	CHECK_NAME("_Z3fooi", DEMANGLE_RAW, "_Z3fooi");
	CLEANUP(buf_release) struct buf b = {0};
	demangle(&b, sv_from("_Z3f\0oi", 7), 0);
	CHECK_U64(b.n, 7);
}

/* Each level doubles the output: without a limit this asks for 2^60 bytes. */
TEST(demangle_limits_exponential_output)
{
	CLEANUP(buf_release) struct buf name = {0};
	buf_add_str(&name, "_Z1fI1a");
	buf_add_str(&name, "1bIS_S_E");
	for (int i = 0; i < 34; i++) {
		static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
		buf_addf(&name, "1cIS%c_S%c_E", digits[i], digits[i]);
	}
	buf_add_str(&name, "Evv");
	CLEANUP(buf_release) struct buf out = {0};
	demangle(&out, buf_sv(&name), 0);
	CHECK(out.n <= (64 << 10) + name.n);
	/* deep recursion */
	buf_clear(&name);
	buf_add_str(&name, "_Z1f");
	buf_add_repeat(&name, 'P', 4000);
	buf_add_str(&name, "i");
	buf_clear(&out);
	demangle(&out, buf_sv(&name), 0);
	CHECK(out.n > 0);
	buf_clear(&name);
	buf_add_str(&name, "_RNvC1a");
	buf_add_repeat(&name, 'B', 10000);
	buf_clear(&out);
	demangle(&out, buf_sv(&name), 0);
	CHECK(out.n > 0);
}
