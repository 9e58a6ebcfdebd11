/* Which function allocates; see heapframes.h. */
#include "base/base.h"
#include "analyze/heapframes.h"

#include <string.h>

#include "analyze/funcglob.h"
#include "base/hash.h"

/*
 * The first pattern that matches decides, so what is special stands before what is general; their
 * form is that of funcglob.h. Sources of the names: the public sources of the libraries.
 */
static const struct {
	const char *pattern;
	enum heapframe_kind kind;
} table[] = {
	/* ---- C libraries and drop-in allocators ----------------------------------------- */
	{"malloc", HEAPFRAME_ALLOCATOR},
	{"calloc", HEAPFRAME_ALLOCATOR},
	{"realloc", HEAPFRAME_ALLOCATOR},
	{"reallocarray", HEAPFRAME_ALLOCATOR},
	{"reallocf", HEAPFRAME_ALLOCATOR},
	{"aligned_alloc", HEAPFRAME_ALLOCATOR},
	{"memalign", HEAPFRAME_ALLOCATOR},
	{"posix_memalign", HEAPFRAME_ALLOCATOR},
	{"valloc", HEAPFRAME_ALLOCATOR},
	{"pvalloc", HEAPFRAME_ALLOCATOR},
	{"cfree", HEAPFRAME_ALLOCATOR},
	{"free", HEAPFRAME_ALLOCATOR},
	{"__libc_malloc*", HEAPFRAME_ALLOCATOR},
	{"__libc_calloc", HEAPFRAME_ALLOCATOR},
	{"__libc_realloc", HEAPFRAME_ALLOCATOR},
	{"__libc_memalign", HEAPFRAME_ALLOCATOR},
	{"__libc_free", HEAPFRAME_ALLOCATOR},
	{"_int_malloc", HEAPFRAME_ALLOCATOR},
	{"_int_realloc", HEAPFRAME_ALLOCATOR},
	{"_int_memalign", HEAPFRAME_ALLOCATOR},
	{"_int_free*", HEAPFRAME_ALLOCATOR},
	{"_mid_memalign*", HEAPFRAME_ALLOCATOR},
	{"sysmalloc*", HEAPFRAME_ALLOCATOR},
	{"malloc_consolidate", HEAPFRAME_ALLOCATOR},
	{"tcache_init*", HEAPFRAME_ALLOCATOR},
	{"__GI___libc_*alloc*", HEAPFRAME_ALLOCATOR},
	{"__simple_malloc", HEAPFRAME_ALLOCATOR}, /* musl */
	{"__malloc_allocated*", HEAPFRAME_ALLOCATOR},
	{"__malloc_alloc_meta", HEAPFRAME_ALLOCATOR},
	{"alloc_slot", HEAPFRAME_ALLOCATOR},
	{"alloc_group", HEAPFRAME_ALLOCATOR},
	{"brk", HEAPFRAME_ALLOCATOR},
	{"sbrk", HEAPFRAME_ALLOCATOR},
	{"__sbrk", HEAPFRAME_ALLOCATOR},
	{"__morecore", HEAPFRAME_ALLOCATOR},
	{"__default_morecore", HEAPFRAME_ALLOCATOR},
	{"__glibc_morecore", HEAPFRAME_ALLOCATOR},
	{"mmap", HEAPFRAME_ALLOCATOR},
	{"mmap64", HEAPFRAME_ALLOCATOR},
	{"__mmap*", HEAPFRAME_ALLOCATOR},
	{"mremap", HEAPFRAME_ALLOCATOR},
	{"__mremap", HEAPFRAME_ALLOCATOR},
	{"munmap", HEAPFRAME_ALLOCATOR},
	{"__munmap", HEAPFRAME_ALLOCATOR},
	{"operator new*", HEAPFRAME_ALLOCATOR},
	{"operator delete*", HEAPFRAME_ALLOCATOR},
	{"_Znw*", HEAPFRAME_ALLOCATOR},
	{"_Zna*", HEAPFRAME_ALLOCATOR},
	/* jemalloc, under any prefix */
	{"je_*", HEAPFRAME_ALLOCATOR},
	{"_rjem_*", HEAPFRAME_ALLOCATOR},
	{"__rjem_*", HEAPFRAME_ALLOCATOR},
	{"_je_*", HEAPFRAME_ALLOCATOR},
	{"imalloc*", HEAPFRAME_ALLOCATOR},
	{"irallocx*", HEAPFRAME_ALLOCATOR},
	{"do_mallocx*", HEAPFRAME_ALLOCATOR},
	{"do_rallocx*", HEAPFRAME_ALLOCATOR},
	{"mallocx", HEAPFRAME_ALLOCATOR},
	{"rallocx", HEAPFRAME_ALLOCATOR},
	{"newImpl*", HEAPFRAME_ALLOCATOR},
	{"fallback_impl*", HEAPFRAME_ALLOCATOR},
	{"handleOOM*", HEAPFRAME_ALLOCATOR},
	{"malloc_default", HEAPFRAME_ALLOCATOR},
	{"prof_backtrace*", HEAPFRAME_ALLOCATOR},
	{"prof_alloc_prep*", HEAPFRAME_ALLOCATOR},
	{"prof_tctx_create", HEAPFRAME_ALLOCATOR},
	{"arena_*malloc*", HEAPFRAME_ALLOCATOR},
	{"large_malloc*", HEAPFRAME_ALLOCATOR},
	{"large_palloc*", HEAPFRAME_ALLOCATOR},
	{"large_ralloc*", HEAPFRAME_ALLOCATOR},
	/* tcmalloc */
	{"tc_*alloc*", HEAPFRAME_ALLOCATOR},
	{"tc_*memalign", HEAPFRAME_ALLOCATOR},
	{"tc_new*", HEAPFRAME_ALLOCATOR},
	{"tcmalloc::*", HEAPFRAME_ALLOCATOR},
	{"TCMallocInternal*", HEAPFRAME_ALLOCATOR},
	{"do_malloc*", HEAPFRAME_ALLOCATOR},
	{"do_memalign*", HEAPFRAME_ALLOCATOR},
	{"MallocHook::*", HEAPFRAME_ALLOCATOR},
	/* mimalloc, snmalloc, scudo, sanitizers */
	{"mi_*alloc*", HEAPFRAME_ALLOCATOR},
	{"mi_new*", HEAPFRAME_ALLOCATOR},
	{"mi_heap_*", HEAPFRAME_ALLOCATOR},
	{"_mi_*", HEAPFRAME_ALLOCATOR},
	{"snmalloc::*", HEAPFRAME_ALLOCATOR},
	{"sn_*alloc*", HEAPFRAME_ALLOCATOR},
	{"scudo::*", HEAPFRAME_ALLOCATOR},
	{"__interceptor_*", HEAPFRAME_ALLOCATOR},

	/* ---- Rust ------------------------------------------------------------------------ */
	{"__rust_*alloc*", HEAPFRAME_ALLOCATOR},
	{"__rustc::__rust_*alloc*", HEAPFRAME_ALLOCATOR},
	{"__rg_*alloc*", HEAPFRAME_ALLOCATOR},
	{"__rdl_*alloc*", HEAPFRAME_ALLOCATOR},
	{"*__rust_*alloc*", HEAPFRAME_ALLOCATOR},
	{"alloc::alloc::*", HEAPFRAME_ALLOCATOR},
	{"std::alloc::*", HEAPFRAME_ALLOCATOR},
	{"std::sys::alloc::*", HEAPFRAME_ALLOCATOR},
	{"std::sys::*::alloc::*", HEAPFRAME_ALLOCATOR},
	{"core::alloc::*", HEAPFRAME_ALLOCATOR},
	{"*::GlobalAlloc::*", HEAPFRAME_ALLOCATOR},
	{"alloc::raw_vec::*", HEAPFRAME_ALLOCATOR},
	{"tikv_jemallocator::*", HEAPFRAME_ALLOCATOR},
	{"jemallocator::*", HEAPFRAME_ALLOCATOR},
	{"tikv_jemalloc_sys::*", HEAPFRAME_ALLOCATOR},
	{"mimalloc::*", HEAPFRAME_ALLOCATOR},
	{"snmalloc_rs::*", HEAPFRAME_ALLOCATOR},
	{"allocator_api2::*", HEAPFRAME_ALLOCATOR},
	{"exchange_malloc", HEAPFRAME_ALLOCATOR},
	{"alloc::*", HEAPFRAME_GLUE},
	/* what calls a lambda, with its body inlined: the only name that the program's code has */
	{"std::thread::_State_impl<*", HEAPFRAME_OWN},
	{"std::_Function_handler<*", HEAPFRAME_OWN},
	{"std::__*::__function::__func<*", HEAPFRAME_OWN}, /* libc++ */
	{"std::*", HEAPFRAME_GLUE},                        /* Rust's and C++'s */
	{"core::*", HEAPFRAME_GLUE},
	{"hashbrown::*", HEAPFRAME_GLUE},
	{"indexmap::*", HEAPFRAME_GLUE},
	{"smallvec::*", HEAPFRAME_GLUE},
	{"arrayvec::*", HEAPFRAME_GLUE},
	{"tinyvec::*", HEAPFRAME_GLUE},
	{"bytes::*", HEAPFRAME_GLUE},
	{"bumpalo::*", HEAPFRAME_GLUE},
	{"dashmap::*", HEAPFRAME_GLUE},
	{"triomphe::*", HEAPFRAME_GLUE},
	{"slab::*", HEAPFRAME_GLUE},
	{"thin_vec::*", HEAPFRAME_GLUE},
	/* traits of the standard library on its own types: "<i32 as core::fmt::Display>::fmt" */
	{"i8::*", HEAPFRAME_GLUE},
	{"i16::*", HEAPFRAME_GLUE},
	{"i32::*", HEAPFRAME_GLUE},
	{"i64::*", HEAPFRAME_GLUE},
	{"i128::*", HEAPFRAME_GLUE},
	{"isize::*", HEAPFRAME_GLUE},
	{"u8::*", HEAPFRAME_GLUE},
	{"u16::*", HEAPFRAME_GLUE},
	{"u32::*", HEAPFRAME_GLUE},
	{"u64::*", HEAPFRAME_GLUE},
	{"u128::*", HEAPFRAME_GLUE},
	{"usize::*", HEAPFRAME_GLUE},
	{"f32::*", HEAPFRAME_GLUE},
	{"f64::*", HEAPFRAME_GLUE},
	{"bool::*", HEAPFRAME_GLUE},
	{"char::*", HEAPFRAME_GLUE},
	{"str::*", HEAPFRAME_GLUE},
	{"T::*", HEAPFRAME_GLUE},
	{"[T]::*", HEAPFRAME_GLUE},
	{"[u8]::*", HEAPFRAME_GLUE},
	{"mut alloc::*", HEAPFRAME_GLUE}, /* "<&mut alloc::string::String as ..." */
	{"mut core::*", HEAPFRAME_GLUE},
	{"mut std::*", HEAPFRAME_GLUE},
	{"mut W::*", HEAPFRAME_GLUE},
	{"dyn core::*", HEAPFRAME_GLUE},

	/* ---- C++ ------------------------------------------------------------------------- */
	{"__gnu_cxx::new_allocator*", HEAPFRAME_ALLOCATOR},
	{"__gnu_cxx::*allocator*", HEAPFRAME_ALLOCATOR},
	{"__gnu_cxx::*", HEAPFRAME_GLUE},
	{"__cxxabiv1::*", HEAPFRAME_GLUE},
	{"__cxa_allocate_exception*", HEAPFRAME_GLUE},
	{"execute_native_thread_routine*", HEAPFRAME_GLUE},
	{"void std::*", HEAPFRAME_GLUE}, /* templates are shown with what they return */
	{"bool std::*", HEAPFRAME_GLUE},
	{"absl::*Allocat*", HEAPFRAME_ALLOCATOR},
	{"absl::*container_internal::*", HEAPFRAME_GLUE},
	{"absl::*inlined_vector_internal::*", HEAPFRAME_GLUE},
	{"absl::*Cord*", HEAPFRAME_GLUE},
	{"folly::*fbstring*", HEAPFRAME_GLUE},
	{"folly::*fbvector*", HEAPFRAME_GLUE},
	{"folly::f14::*", HEAPFRAME_GLUE},
	{"folly::small_vector*", HEAPFRAME_GLUE},
	{"boost::container::*", HEAPFRAME_GLUE},
	{"boost::*make_shared*", HEAPFRAME_GLUE},
	{"boost::unordered::*", HEAPFRAME_GLUE},
	{"google::protobuf::*Arena*", HEAPFRAME_GLUE},
	{"google::protobuf::*RepeatedField*", HEAPFRAME_GLUE},
	{"llvm::*allocate_buffer", HEAPFRAME_ALLOCATOR},
	{"llvm::*BumpPtrAllocator*", HEAPFRAME_ALLOCATOR},
	{"llvm::SmallVector*", HEAPFRAME_GLUE},
	{"llvm::*DenseMap*", HEAPFRAME_GLUE},
	{"llvm::*StringMap*", HEAPFRAME_GLUE},
	{"QArrayData::*alloc*", HEAPFRAME_ALLOCATOR},
	{"QListData::*", HEAPFRAME_GLUE},
	{"QString::*", HEAPFRAME_GLUE},
	{"QByteArray::*", HEAPFRAME_GLUE},
	{"QVector*::*", HEAPFRAME_GLUE},
	{"QHashData::*", HEAPFRAME_GLUE},
	{"rocksdb::Arena::*", HEAPFRAME_GLUE},
	{"rocksdb::ConcurrentArena::*", HEAPFRAME_GLUE},
	{"rocksdb::AllocateBlock*", HEAPFRAME_ALLOCATOR},
	{"leveldb::Arena::*", HEAPFRAME_GLUE},
	{"WTF::*astMalloc*", HEAPFRAME_ALLOCATOR},
	{"WTF::Vector*", HEAPFRAME_GLUE},
	{"v8::*Malloced*", HEAPFRAME_ALLOCATOR},
	{"v8::*AllocWithRetry*", HEAPFRAME_ALLOCATOR},
	{"v8::internal::*Allocat*", HEAPFRAME_GLUE},
	{"v8::base::*alloc*", HEAPFRAME_ALLOCATOR},
	{"node::*Realloc*", HEAPFRAME_ALLOCATOR},
	{"node::*Malloc*", HEAPFRAME_ALLOCATOR},
	{"node::*Calloc*", HEAPFRAME_ALLOCATOR},

	/* ---- wrappers in C --------------------------------------------------------------- */
	{"zmalloc*", HEAPFRAME_ALLOCATOR}, /* redis */
	{"zcalloc*", HEAPFRAME_ALLOCATOR},
	{"zrealloc*", HEAPFRAME_ALLOCATOR},
	{"ztry*alloc*", HEAPFRAME_ALLOCATOR},
	{"zstrdup", HEAPFRAME_GLUE},
	{"sds*", HEAPFRAME_GLUE},
	{"_sds*", HEAPFRAME_GLUE},
	{"s_malloc", HEAPFRAME_ALLOCATOR},
	{"g_malloc*", HEAPFRAME_ALLOCATOR}, /* GLib */
	{"g_try_*alloc*", HEAPFRAME_ALLOCATOR},
	{"g_realloc*", HEAPFRAME_ALLOCATOR},
	{"g_slice_*", HEAPFRAME_ALLOCATOR},
	{"g_strdup*", HEAPFRAME_GLUE},
	{"g_strndup", HEAPFRAME_GLUE},
	{"g_memdup*", HEAPFRAME_GLUE},
	{"g_string_*", HEAPFRAME_GLUE},
	{"g_array_*", HEAPFRAME_GLUE},
	{"g_ptr_array_*", HEAPFRAME_GLUE},
	{"g_hash_table_*", HEAPFRAME_GLUE},
	{"g_list_*", HEAPFRAME_GLUE},
	{"g_slist_*", HEAPFRAME_GLUE},
	{"palloc*", HEAPFRAME_ALLOCATOR}, /* postgres */
	{"repalloc*", HEAPFRAME_ALLOCATOR},
	{"MemoryContext*", HEAPFRAME_ALLOCATOR},
	{"AllocSet*", HEAPFRAME_ALLOCATOR},
	{"SlabAlloc*", HEAPFRAME_ALLOCATOR},
	{"SlabContextCreate", HEAPFRAME_ALLOCATOR},
	{"GenerationAlloc*", HEAPFRAME_ALLOCATOR},
	{"GenerationContextCreate", HEAPFRAME_ALLOCATOR},
	{"pg_malloc*", HEAPFRAME_ALLOCATOR},
	{"pstrdup", HEAPFRAME_GLUE},
	{"pnstrdup", HEAPFRAME_GLUE},
	{"enlargeStringInfo", HEAPFRAME_GLUE},
	{"initStringInfo*", HEAPFRAME_GLUE},
	{"appendStringInfo*", HEAPFRAME_GLUE},
	{"list_make*", HEAPFRAME_GLUE},
	{"new_list", HEAPFRAME_GLUE},
	{"lappend*", HEAPFRAME_GLUE},
	{"ngx_alloc", HEAPFRAME_ALLOCATOR}, /* nginx */
	{"ngx_calloc", HEAPFRAME_ALLOCATOR},
	{"ngx_memalign", HEAPFRAME_ALLOCATOR},
	{"ngx_palloc*", HEAPFRAME_ALLOCATOR},
	{"ngx_pnalloc", HEAPFRAME_ALLOCATOR},
	{"ngx_pcalloc", HEAPFRAME_ALLOCATOR},
	{"ngx_pmemalign", HEAPFRAME_ALLOCATOR},
	{"ngx_create_pool", HEAPFRAME_ALLOCATOR},
	{"ngx_create_temp_buf", HEAPFRAME_GLUE},
	{"ngx_array_*", HEAPFRAME_GLUE},
	{"ngx_list_push", HEAPFRAME_GLUE},
	{"apr_palloc*", HEAPFRAME_ALLOCATOR},
	{"apr_pcalloc*", HEAPFRAME_ALLOCATOR},
	{"apr_allocator_*", HEAPFRAME_ALLOCATOR},
	{"allocator_alloc", HEAPFRAME_ALLOCATOR},
	{"sqlite3*alloc*", HEAPFRAME_ALLOCATOR},
	{"sqlite3Malloc*", HEAPFRAME_ALLOCATOR},
	{"sqlite3Mem*", HEAPFRAME_ALLOCATOR},
	{"sqlite3DbMalloc*", HEAPFRAME_ALLOCATOR},
	{"sqlite3DbRealloc*", HEAPFRAME_ALLOCATOR},
	{"sqlite3DbStr*Dup", HEAPFRAME_GLUE},
	{"mallocWithAlarm", HEAPFRAME_ALLOCATOR},
	{"dbMallocRawFinish", HEAPFRAME_ALLOCATOR},
	{"CRYPTO_*alloc*", HEAPFRAME_ALLOCATOR}, /* OpenSSL */
	{"CRYPTO_*dup*", HEAPFRAME_GLUE},
	{"OPENSSL_*alloc*", HEAPFRAME_ALLOCATOR},
	{"BUF_MEM_grow*", HEAPFRAME_GLUE},
	{"xmlMalloc*", HEAPFRAME_ALLOCATOR},
	{"uv__malloc", HEAPFRAME_ALLOCATOR},
	{"uv__calloc", HEAPFRAME_ALLOCATOR},
	{"uv__realloc*", HEAPFRAME_ALLOCATOR},
	{"PyMem_*alloc*", HEAPFRAME_ALLOCATOR}, /* CPython */
	{"_PyMem_*", HEAPFRAME_ALLOCATOR},
	{"PyObject_Malloc", HEAPFRAME_ALLOCATOR},
	{"PyObject_Calloc", HEAPFRAME_ALLOCATOR},
	{"PyObject_Realloc", HEAPFRAME_ALLOCATOR},
	{"_PyObject_*alloc*", HEAPFRAME_ALLOCATOR},
	{"_PyObject_GC_*", HEAPFRAME_ALLOCATOR},
	{"pymalloc_alloc", HEAPFRAME_ALLOCATOR},
	{"new_arena", HEAPFRAME_ALLOCATOR},
	{"arena_map_get", HEAPFRAME_ALLOCATOR},
	{"allocate_from_new_pool", HEAPFRAME_ALLOCATOR},
	{"PyType_GenericAlloc*", HEAPFRAME_GLUE},
	{"_PyType_Alloc*", HEAPFRAME_GLUE},
	{"objspace_*alloc*", HEAPFRAME_ALLOCATOR}, /* Ruby */
	{"ruby_x*alloc*", HEAPFRAME_ALLOCATOR},
	{"os::malloc", HEAPFRAME_ALLOCATOR}, /* HotSpot */
	{"AllocateHeap", HEAPFRAME_ALLOCATOR},
	{"Chunk::operator new*", HEAPFRAME_ALLOCATOR},
	{"Arena::grow", HEAPFRAME_ALLOCATOR},
	{"Arena::Arena", HEAPFRAME_ALLOCATOR},
	{"Arena::Arealloc", HEAPFRAME_ALLOCATOR},
	{"ChunkPool::*", HEAPFRAME_ALLOCATOR},
	{"xmalloc*", HEAPFRAME_ALLOCATOR},
	{"xcalloc", HEAPFRAME_ALLOCATOR},
	{"xzalloc", HEAPFRAME_ALLOCATOR},
	{"xrealloc", HEAPFRAME_ALLOCATOR},
	{"x*allocarray", HEAPFRAME_ALLOCATOR},
	{"xstrdup", HEAPFRAME_GLUE},
	{"xstrndup", HEAPFRAME_GLUE},
	{"xmemdup*", HEAPFRAME_GLUE},
	{"safe_*alloc", HEAPFRAME_ALLOCATOR},
	{"checked_*alloc", HEAPFRAME_ALLOCATOR},
	{"my_malloc", HEAPFRAME_ALLOCATOR}, /* MySQL, MariaDB */
	{"my_realloc", HEAPFRAME_ALLOCATOR},
	{"my_multi_malloc*", HEAPFRAME_ALLOCATOR},
	{"alloc_root", HEAPFRAME_ALLOCATOR},
	{"init_alloc_root", HEAPFRAME_ALLOCATOR},
	{"multi_alloc_root", HEAPFRAME_ALLOCATOR},
	{"my_strdup", HEAPFRAME_GLUE},
	{"my_strndup", HEAPFRAME_GLUE},
	{"my_memdup", HEAPFRAME_GLUE},
	{"*_dynamic_array*", HEAPFRAME_GLUE},
	{"isc_*mem_*", HEAPFRAME_ALLOCATOR}, /* BIND */
	{"isc_buffer_*", HEAPFRAME_GLUE},
	{"pool_get_from_os*", HEAPFRAME_ALLOCATOR}, /* HAProxy */
	{"pool_alloc_*", HEAPFRAME_ALLOCATOR},
	{"__pool_alloc", HEAPFRAME_ALLOCATOR},
	{"_*emalloc*", HEAPFRAME_ALLOCATOR}, /* PHP */
	{"_*ecalloc*", HEAPFRAME_ALLOCATOR},
	{"_*erealloc*", HEAPFRAME_ALLOCATOR},
	{"_*estr*dup", HEAPFRAME_GLUE},
	{"__zend_*alloc", HEAPFRAME_ALLOCATOR},
	{"zend_mm_*", HEAPFRAME_ALLOCATOR},
	{"_zend_mm_*", HEAPFRAME_ALLOCATOR},
	{"Perl_safesys*", HEAPFRAME_ALLOCATOR},
	{"Perl_savepv*", HEAPFRAME_GLUE},
	{"Perl_sv_grow*", HEAPFRAME_GLUE},
	{"do_xmalloc", HEAPFRAME_ALLOCATOR}, /* git */
	{"mem_pool_*alloc*", HEAPFRAME_ALLOCATOR},
	{"strbuf_*", HEAPFRAME_GLUE},
	{"ggc_*alloc*", HEAPFRAME_ALLOCATOR},    /* GCC */
	{"Acquire*Memory", HEAPFRAME_ALLOCATOR}, /* ImageMagick */
	{"Resize*Memory", HEAPFRAME_ALLOCATOR},
	{"ut_allocator*", HEAPFRAME_ALLOCATOR},
	{"mem_heap_*", HEAPFRAME_ALLOCATOR},
	{"av_malloc*", HEAPFRAME_ALLOCATOR}, /* FFmpeg */
	{"av_calloc", HEAPFRAME_ALLOCATOR},
	{"av_fast_*alloc*", HEAPFRAME_ALLOCATOR},
	{"av_buffer_*alloc*", HEAPFRAME_GLUE},
	{"av_*dup", HEAPFRAME_GLUE},
	{"av_realloc*", HEAPFRAME_ALLOCATOR},
	{"talloc_*", HEAPFRAME_ALLOCATOR},
	{"_talloc_*", HEAPFRAME_ALLOCATOR},
	{"event_mm_*", HEAPFRAME_ALLOCATOR},
	{"GC_*alloc*", HEAPFRAME_ALLOCATOR},

	/* ---- the C library, on behalf of callers ------------------------------------------ */
	{"strdup", HEAPFRAME_GLUE},
	{"__strdup", HEAPFRAME_GLUE},
	{"strndup", HEAPFRAME_GLUE},
	{"__strndup", HEAPFRAME_GLUE},
	{"wcsdup", HEAPFRAME_GLUE},
	{"asprintf", HEAPFRAME_GLUE},
	{"vasprintf", HEAPFRAME_GLUE},
	{"__vasprintf*", HEAPFRAME_GLUE},
	{"getline", HEAPFRAME_GLUE},
	{"getdelim", HEAPFRAME_GLUE},
	{"__getdelim", HEAPFRAME_GLUE},
};

#define RECORDER "memfd:assay-heap"

bool heapframes_is_recorder(const char *module)
{
	return !strncmp(module, RECORDER, strlen(RECORDER));
}

/* Files whose functions allocate for their callers, or are an allocator. */
static enum heapframe_kind kind_of_module(const char *name)
{
	static const struct {
		const char *prefix;
		enum heapframe_kind kind;
	} modules[] = {
		{"libjemalloc", HEAPFRAME_ALLOCATOR},
		{"libtcmalloc", HEAPFRAME_ALLOCATOR},
		{"libmimalloc", HEAPFRAME_ALLOCATOR},
		{"libsnmalloc", HEAPFRAME_ALLOCATOR},
		{"libhoard", HEAPFRAME_ALLOCATOR},
		{"vgpreload_", HEAPFRAME_ALLOCATOR},
		{"libheaptrack", HEAPFRAME_ALLOCATOR},
		{"[kernel", HEAPFRAME_ALLOCATOR},
		{RECORDER, HEAPFRAME_ALLOCATOR},
		{"libc.so", HEAPFRAME_GLUE},
		{"libc-", HEAPFRAME_GLUE},
		{"libc.musl", HEAPFRAME_GLUE},
		{"ld-linux", HEAPFRAME_GLUE},
		{"ld-musl", HEAPFRAME_GLUE},
		{"ld-2.", HEAPFRAME_GLUE},
		{"libpthread", HEAPFRAME_GLUE},
		{"libstdc++", HEAPFRAME_GLUE},
		{"libc++", HEAPFRAME_GLUE},
		{"libgcc_s", HEAPFRAME_GLUE},
	};
	for (size_t i = 0; i < ARRAY_LEN(modules); i++)
		if (!strncmp(name, modules[i].prefix, strlen(modules[i].prefix)))
			return modules[i].kind;
	return HEAPFRAME_OWN;
}

enum heapframe_kind heapframe_kind_of(struct sv function)
{
	char plain[FUNCGLOB_NAME_MAX];
	/* a program's own allocator, whatever its type is called; plain names have no traits */
	if (funcglob_is_like("<* as core::alloc::*GlobalAlloc>::*", function))
		return HEAPFRAME_ALLOCATOR;
	function = funcglob_plain(function, plain);
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (funcglob_is_like(table[i].pattern, function))
			return table[i].kind;
	return HEAPFRAME_OWN;
}

#define UNKNOWN 0 /* else 1 + kind */

struct heapframes {
	const struct profile *p;
	struct arena *arena;
	uint8_t *by_func;
	uint8_t *by_module;
	struct heapframe **by_stack;
	uint64_t *names; /* by stack: hash of all names on it */
};

/* Names of a location's frames from frame @from outwards, below a caller. */
static uint64_t hash_names(const struct profile *p, uint64_t caller, loc_id loc, uint32_t from)
{
	const struct location *l = &p->locations.p[loc];
	uint64_t h = hash_mix(caller, 1);
	for (uint32_t i = from; i < l->nr_frames; i++)
		h = hash_mix(h, p->functions.p[p->frames.p[l->first_frame + i].func].name);
	return l->nr_frames ? h : hash_mix(h, (uint64_t)l->module << 32 | 1);
}

/* Call sites and builds apart, a stack is known by the names on it: a hash of those of each. */
static uint64_t *hash_stacks(struct arena *a, const struct profile *p)
{
	uint64_t *by_stack = arena_calloc(a, p->stacks.n + 1, sizeof(*by_stack));
	for (stack_id s = 1; s < p->stacks.n; s++)
		by_stack[s] = hash_names(p, by_stack[p->stacks.p[s].parent], p->stacks.p[s].loc, 0);
	return by_stack;
}

struct heapframes *heapframes_new(struct arena *a, const struct profile *p)
{
	struct heapframes *hf = arena_calloc(a, 1, sizeof(*hf));
	hf->p = p;
	hf->arena = a;
	hf->by_func = arena_calloc(a, p->functions.n + 1, 1);
	hf->by_module = arena_calloc(a, p->modules.n + 1, 1);
	hf->names = hash_stacks(a, p);
	hf->by_stack = arena_calloc(a, p->stacks.n + 1, sizeof(struct heapframe *));
	return hf;
}

static enum heapframe_kind module_kind(struct heapframes *hf, module_id id)
{
	if (hf->by_module[id] == UNKNOWN)
		hf->by_module[id] = (uint8_t)(1 + kind_of_module(profile_module_name(hf->p, id)));
	return (enum heapframe_kind)(hf->by_module[id] - 1);
}

/* An allocator's name counts wherever it lies; of the C library everything is glue. */
static enum heapframe_kind frame_kind(struct heapframes *hf, func_id func, module_id module)
{
	if (hf->by_func[func] == UNKNOWN)
		hf->by_func[func] = (uint8_t)(1 + heapframe_kind_of(profile_sv(
							  hf->p, hf->p->functions.p[func].name)));
	enum heapframe_kind own = (enum heapframe_kind)(hf->by_func[func] - 1);
	return MAX(own, module_kind(hf, module));
}

/* Where all threads begin: worth showing only if nothing else is there. */
static bool is_start(struct sv name)
{
	static const char *const starts[] = {"_start",
					     "__libc_start_main",
					     "start_thread",
					     "__libc_start_call_main",
					     "clone",
					     "clone3",
					     "__clone3",
					     "_dl_start_user",
					     "thread_start",
					     "execute_native_thread_routine*",
					     "std::sys::backtrace::__rust_begin_short_backtrace",
					     "std::rt::lang_start*",
					     "__libc_start_main_impl"};
	for (size_t i = 0; i < ARRAY_LEN(starts); i++)
		if (funcglob_is_like(starts[i], name))
			return true;
	return false;
}

static bool is_nameless(const struct profile *p, const struct location *l)
{
	return !l->nr_frames ||
	       strstr(profile_text(p, p->functions.p[p->frames.p[l->first_frame].func].name),
		      "!fn_") != NULL;
}

#define NAMELESS_MAX 2

/*
 * Methods of an allocator are static functions, which stripped code has no names for, below
 * wrappers that are exported and have one (postgres: palloc, sqlite: sqlite3Malloc).
 */
static bool is_below_wrapper(struct heapframes *hf, stack_id s)
{
	const struct profile *p = hf->p;
	module_id module = p->locations.p[p->stacks.p[s].loc].module;
	for (unsigned i = 0; s && i <= NAMELESS_MAX; i++, s = p->stacks.p[s].parent) {
		const struct location *l = &p->locations.p[p->stacks.p[s].loc];
		if (l->module != module)
			return false;
		if (is_nameless(p, l))
			continue;
		return frame_kind(hf, p->frames.p[l->first_frame].func, l->module) ==
		       HEAPFRAME_ALLOCATOR;
	}
	return false;
}

/* From the leaf to the root; the outermost glue is kept for stacks of nothing else. */
static struct heapframe find(struct heapframes *hf, stack_id stack)
{
	const struct profile *p = hf->p;
	struct heapframe f = {0};
	struct heapframe glue = {0};
	for (stack_id s = stack; s; s = p->stacks.p[s].parent) {
		const struct location *l = &p->locations.p[p->stacks.p[s].loc];
		if (is_nameless(p, l) && is_below_wrapper(hf, s))
			continue;
		if (!l->nr_frames && module_kind(hf, l->module) == HEAPFRAME_OWN) {
			f.node = s;
			f.module = l->module;
			return f;
		}
		for (uint32_t i = 0; i < l->nr_frames; i++) {
			func_id func = p->frames.p[l->first_frame + i].func;
			str_id name = p->functions.p[func].name;
			enum heapframe_kind kind = frame_kind(hf, func, l->module);
			struct heapframe here = {.node = s,
						 .function = name,
						 .via = f.via,
						 .module = l->module,
						 .frame_idx = i};
			if (kind == HEAPFRAME_OWN)
				return here;
			if (kind == HEAPFRAME_GLUE && !is_start(profile_sv(p, name))) {
				glue = here;
				f.via = name;
			}
		}
	}
	if (glue.node)
		return glue;
	/* Allocators alone: a stack that was cut short, or none at all. */
	f.node = stack;
	return f;
}

const struct heapframe *heapframes_of(struct heapframes *hf, stack_id stack)
{
	if (!hf->by_stack[stack]) {
		struct heapframe f = find(hf, stack);
		const struct stack_node *node = &hf->p->stacks.p[f.node];
		f.site = f.node ? hash_names(hf->p, hf->names[node->parent], node->loc, f.frame_idx)
				: 0;
		hf->by_stack[stack] = arena_dup(hf->arena, &f, sizeof(f));
	}
	return hf->by_stack[stack];
}

const uint16_t *heapframes_leaves(struct heapframes *hf)
{
	const struct profile *p = hf->p;
	uint16_t *leaves = arena_calloc(hf->arena, p->locations.n + 1, sizeof(*leaves));
	for (loc_id loc = 1; loc < p->locations.n; loc++) {
		const struct location *l = &p->locations.p[loc];
		for (uint16_t i = 0; i < l->nr_frames; i++) {
			func_id func = p->frames.p[l->first_frame + i].func;
			if (frame_kind(hf, func, l->module) != HEAPFRAME_OWN)
				continue;
			leaves[loc] = i;
			break;
		}
	}
	return leaves;
}

const char *heapframe_name(const struct profile *p, const struct heapframe *f)
{
	if (f->function)
		return profile_text(p, f->function);
	if (!f->node)
		return "[no stack]";
	const struct location *l = &p->locations.p[p->stacks.p[f->node].loc];
	return l->nr_frames ? profile_frame_name(p, &p->frames.p[l->first_frame]) : "[unknown]";
}

/* Frames below a thread's start say nothing, and in libraries without symbols not even a name. */
static const char *caller_name(const struct profile *p, const struct location *l, uint32_t i)
{
	if (!l->nr_frames)
		return "[unknown]";
	const struct frame *f = &p->frames.p[l->first_frame + i];
	return is_start(profile_sv(p, p->functions.p[f->func].name)) ? NULL
								     : profile_frame_name(p, f);
}

/* "f x12": a function that called itself is one frame. */
static void add_times(struct buf *to, size_t nr_times)
{
	if (nr_times > 1)
		buf_addf(to, " x%zu", nr_times);
}

void heapframe_add_callers(struct buf *to, const struct profile *p, const struct heapframe *f,
			   size_t max)
{
	const char *last = NULL;
	size_t nr_times = 0;
	size_t n = 0;
	uint32_t i = f->frame_idx;
	for (stack_id s = f->node; s; s = p->stacks.p[s].parent, i = 0) {
		const struct location *l = &p->locations.p[p->stacks.p[s].loc];
		for (; i < MAX(l->nr_frames, 1u); i++) {
			const char *name = caller_name(p, l, i);
			if (name && last && !strcmp(name, last)) {
				nr_times++;
				continue;
			}
			add_times(to, nr_times);
			if ((!name && n) || n == max) {
				buf_add_str(to, name ? " < .." : "");
				return;
			}
			buf_addf(to, "%s%s", n++ ? " < " : "", name ? name : "[start]");
			last = name;
			nr_times = 1;
		}
	}
	add_times(to, nr_times);
	if (!n)
		buf_add_str(to, "[no stack]");
}
