/* Finds the allocating function; see heapframes.h. */
#include "base/base.h"
#include "analyze/memory/heapframes.h"

#include "analyze/select/funcglob.h"
#include "analyze/stacks/pythonmodules.h"
#include "base/buf.h"
#include "base/hash.h"
#include "heap_wire.h"

/*
 * One row per library and kind. The first matching row decides, so special patterns come before
 * general ones. For the pattern syntax see funcglob.h. Sources of the names: the public sources of
 * the libraries.
 */
struct kind_row {
	enum heapframe_kind kind;
	const char *patterns;
};

static const struct kind_row functions[] = {
	/* ---- C libraries and drop-in allocators ----------------------------------------- */
	{HEAPFRAME_ALLOCATOR,
	 "malloc|calloc|realloc|reallocarray|reallocf|aligned_alloc|memalign|posix_memalign|"
	 "valloc|pvalloc|cfree|free|__libc_malloc*|__libc_calloc|__libc_realloc|__libc_memalign|"
	 "__libc_free|_int_malloc|_int_realloc|_int_memalign|_int_free*|_mid_memalign*|"
	 "sysmalloc*|malloc_consolidate|tcache_init*|__GI___libc_*alloc*"},
	/* musl */
	{HEAPFRAME_ALLOCATOR,
	 "__simple_malloc|__malloc_allocated*|__malloc_alloc_meta|alloc_slot|alloc_group"},
	/* memory from the kernel; C++ operators */
	{HEAPFRAME_ALLOCATOR,
	 "brk|sbrk|__sbrk|__morecore|__default_morecore|__glibc_morecore|mmap|mmap64|__mmap*|"
	 "mremap|__mremap|munmap|__munmap|operator new*|operator delete*|_Znw*|_Zna*"},
	/* jemalloc, under any prefix */
	{HEAPFRAME_ALLOCATOR,
	 "je_*|_rjem_*|__rjem_*|_je_*|imalloc*|irallocx*|do_mallocx*|do_rallocx*|mallocx|rallocx|"
	 "newImpl*|fallback_impl*|handleOOM*|malloc_default|prof_backtrace*|prof_alloc_prep*|"
	 "prof_tctx_create|arena_*malloc*|large_malloc*|large_palloc*|large_ralloc*"},
	/* tcmalloc */
	{HEAPFRAME_ALLOCATOR,
	 "tc_*alloc*|tc_*memalign|tc_new*|tcmalloc::*|TCMallocInternal*|do_malloc*|do_memalign*|"
	 "MallocHook::*"},
	/* mimalloc, snmalloc, scudo, sanitizers */
	{HEAPFRAME_ALLOCATOR,
	 "mi_*alloc*|mi_new*|mi_heap_*|_mi_*|snmalloc::*|sn_*alloc*|scudo::*|__interceptor_*"},

	/* ---- Rust ------------------------------------------------------------------------ */
	{HEAPFRAME_ALLOCATOR,
	 "__rust_*alloc*|__rustc::__rust_*alloc*|__rg_*alloc*|__rdl_*alloc*|*__rust_*alloc*|"
	 "alloc::alloc::*|std::alloc::*|std::sys::alloc::*|std::sys::*::alloc::*|core::alloc::*|"
	 "*::GlobalAlloc::*|alloc::raw_vec::*|tikv_jemallocator::*|jemallocator::*|"
	 "tikv_jemalloc_sys::*|mimalloc::*|snmalloc_rs::*|allocator_api2::*|exchange_malloc"},
	{HEAPFRAME_HELPER, "alloc::*"},
	/* the caller of a lambda whose body is inlined: the only name that the program code has */
	{HEAPFRAME_SHOWN,
	 "std::thread::_State_impl<*|std::_Function_handler<*|std::__*::__function::__func<*"},
	{HEAPFRAME_HELPER, /* std is Rust's and C++'s */
	 "std::*|core::*|hashbrown::*|indexmap::*|smallvec::*|arrayvec::*|tinyvec::*|bytes::*|"
	 "bumpalo::*|dashmap::*|triomphe::*|slab::*|thin_vec::*"},
	/* traits of the standard library on its own types: "<i32 as core::fmt::Display>::fmt" */
	{HEAPFRAME_HELPER,
	 "i8::*|i16::*|i32::*|i64::*|i128::*|isize::*|u8::*|u16::*|u32::*|u64::*|u128::*|"
	 "usize::*|f32::*|f64::*|bool::*|char::*|str::*|T::*|[T]::*|[u8]::*"},
	{HEAPFRAME_HELPER, /* "<&mut alloc::string::String as ..." */
	 "mut alloc::*|mut core::*|mut std::*|mut W::*|dyn core::*"},

	/* ---- C++ ------------------------------------------------------------------------- */
	{HEAPFRAME_ALLOCATOR, "__gnu_cxx::new_allocator*|__gnu_cxx::*allocator*"},
	{HEAPFRAME_HELPER,
	 "__gnu_cxx::*|__cxxabiv1::*|__cxa_allocate_exception*|execute_native_thread_routine*"},
	{HEAPFRAME_HELPER, /* templates are shown with their result type */
	 "void std::*|bool std::*"},
	{HEAPFRAME_ALLOCATOR, "absl::*Allocat*"},
	{HEAPFRAME_HELPER,
	 "absl::*container_internal::*|absl::*inlined_vector_internal::*|absl::*Cord*|"
	 "folly::*fbstring*|folly::*fbvector*|folly::f14::*|folly::small_vector*|"
	 "boost::container::*|boost::*make_shared*|boost::unordered::*|google::protobuf::*Arena*|"
	 "google::protobuf::*RepeatedField*"},
	{HEAPFRAME_ALLOCATOR, "llvm::*allocate_buffer|llvm::*BumpPtrAllocator*"},
	{HEAPFRAME_HELPER, "llvm::SmallVector*|llvm::*DenseMap*|llvm::*StringMap*"},
	{HEAPFRAME_ALLOCATOR, "QArrayData::*alloc*"},
	{HEAPFRAME_HELPER,
	 "QListData::*|QString::*|QByteArray::*|QVector*::*|QHashData::*|rocksdb::Arena::*|"
	 "rocksdb::ConcurrentArena::*"},
	{HEAPFRAME_ALLOCATOR, "rocksdb::AllocateBlock*"},
	{HEAPFRAME_HELPER, "leveldb::Arena::*"},
	{HEAPFRAME_ALLOCATOR, "WTF::*astMalloc*"},
	{HEAPFRAME_HELPER, "WTF::Vector*"},
	{HEAPFRAME_ALLOCATOR, "v8::*Malloced*|v8::*AllocWithRetry*"},
	{HEAPFRAME_HELPER, "v8::internal::*Allocat*"},
	{HEAPFRAME_ALLOCATOR, "v8::base::*alloc*|node::*Realloc*|node::*Malloc*|node::*Calloc*"},

	/* ---- wrappers in C --------------------------------------------------------------- */
	/* redis */
	{HEAPFRAME_ALLOCATOR, "zmalloc*|zcalloc*|zrealloc*|ztry*alloc*"},
	{HEAPFRAME_HELPER, "zstrdup|sds*|_sds*"},
	/* GLib */
	{HEAPFRAME_ALLOCATOR, "s_malloc|g_malloc*|g_try_*alloc*|g_realloc*|g_slice_*"},
	{HEAPFRAME_HELPER,
	 "g_strdup*|g_strndup|g_memdup*|g_string_*|g_array_*|g_ptr_array_*|g_hash_table_*|"
	 "g_list_*|g_slist_*"},
	/* postgres */
	{HEAPFRAME_ALLOCATOR,
	 "palloc*|repalloc*|MemoryContext*|AllocSet*|SlabAlloc*|SlabContextCreate|"
	 "GenerationAlloc*|GenerationContextCreate|pg_malloc*"},
	{HEAPFRAME_HELPER,
	 "pstrdup|pnstrdup|enlargeStringInfo|initStringInfo*|appendStringInfo*|list_make*|"
	 "new_list|lappend*"},
	/* nginx */
	{HEAPFRAME_ALLOCATOR,
	 "ngx_alloc|ngx_calloc|ngx_memalign|ngx_palloc*|ngx_pnalloc|ngx_pcalloc|ngx_pmemalign|"
	 "ngx_create_pool"},
	{HEAPFRAME_HELPER, "ngx_create_temp_buf|ngx_array_*|ngx_list_push"},
	/* Apache, SQLite */
	{HEAPFRAME_ALLOCATOR,
	 "apr_palloc*|apr_pcalloc*|apr_allocator_*|allocator_alloc|sqlite3*alloc*|sqlite3Malloc*|"
	 "sqlite3Mem*|sqlite3DbMalloc*|sqlite3DbRealloc*"},
	{HEAPFRAME_HELPER, "sqlite3DbStr*Dup"},
	{HEAPFRAME_ALLOCATOR, "mallocWithAlarm|dbMallocRawFinish"},
	/* OpenSSL */
	{HEAPFRAME_ALLOCATOR, "CRYPTO_*alloc*"},
	{HEAPFRAME_HELPER, "CRYPTO_*dup*"},
	{HEAPFRAME_ALLOCATOR, "OPENSSL_*alloc*"},
	{HEAPFRAME_HELPER, "BUF_MEM_grow*"},
	/* libxml2, libuv */
	{HEAPFRAME_ALLOCATOR, "xmlMalloc*|uv__malloc|uv__calloc|uv__realloc*"},
	/* CPython */
	{HEAPFRAME_ALLOCATOR,
	 "PyMem_*alloc*|_PyMem_*|PyObject_Malloc|PyObject_Calloc|PyObject_Realloc|"
	 "_PyObject_*alloc*|_PyObject_GC_*|pymalloc_alloc|new_arena|arena_map_get|"
	 "allocate_from_new_pool"},
	{HEAPFRAME_HELPER, "PyType_GenericAlloc*|_PyType_Alloc*"},
	/* Ruby */
	{HEAPFRAME_ALLOCATOR, "objspace_*alloc*|ruby_x*alloc*"},
	/* HotSpot */
	{HEAPFRAME_ALLOCATOR,
	 "os::malloc|AllocateHeap|Chunk::operator new*|Arena::grow|Arena::Arena|Arena::Arealloc|"
	 "ChunkPool::*"},
	/* of many programs */
	{HEAPFRAME_ALLOCATOR, "xmalloc*|xcalloc|xzalloc|xrealloc|x*allocarray"},
	{HEAPFRAME_HELPER, "xstrdup|xstrndup|xmemdup*"},
	{HEAPFRAME_ALLOCATOR, "safe_*alloc|checked_*alloc"},
	/* MySQL, MariaDB */
	{HEAPFRAME_ALLOCATOR,
	 "my_malloc|my_realloc|my_multi_malloc*|alloc_root|init_alloc_root|multi_alloc_root"},
	{HEAPFRAME_HELPER, "my_strdup|my_strndup|my_memdup|*_dynamic_array*"},
	/* BIND */
	{HEAPFRAME_ALLOCATOR, "isc_*mem_*"},
	{HEAPFRAME_HELPER, "isc_buffer_*"},
	/* HAProxy */
	{HEAPFRAME_ALLOCATOR, "pool_get_from_os*|pool_alloc_*|__pool_alloc"},
	/* PHP */
	{HEAPFRAME_ALLOCATOR, "_*emalloc*|_*ecalloc*|_*erealloc*"},
	{HEAPFRAME_HELPER, "_*estr*dup"},
	{HEAPFRAME_ALLOCATOR, "__zend_*alloc|zend_mm_*|_zend_mm_*"},
	/* Perl */
	{HEAPFRAME_ALLOCATOR, "Perl_safesys*"},
	{HEAPFRAME_HELPER, "Perl_savepv*|Perl_sv_grow*"},
	/* git */
	{HEAPFRAME_ALLOCATOR, "do_xmalloc|mem_pool_*alloc*"},
	{HEAPFRAME_HELPER, "strbuf_*"},
	/* GCC, ImageMagick, InnoDB */
	{HEAPFRAME_ALLOCATOR, "ggc_*alloc*|Acquire*Memory|Resize*Memory|ut_allocator*|mem_heap_*"},
	/* FFmpeg */
	{HEAPFRAME_ALLOCATOR, "av_malloc*|av_calloc|av_fast_*alloc*"},
	{HEAPFRAME_HELPER, "av_buffer_*alloc*|av_*dup"},
	/* and talloc, libevent, libgc */
	{HEAPFRAME_ALLOCATOR, "av_realloc*|talloc_*|_talloc_*|event_mm_*|GC_*alloc*"},

	/* ---- the C library, on behalf of callers ------------------------------------------ */
	{HEAPFRAME_HELPER,
	 "strdup|__strdup|strndup|__strndup|wcsdup|asprintf|vasprintf|__vasprintf*|getline|"
	 "getdelim|__getdelim"},
};

bool heapframes_is_recorder(const char *module)
{
	return !strncmp(module, HEAP_WIRE_FILES, strlen(HEAP_WIRE_FILES));
}

/* Files whose functions allocate for their callers, or that are allocators. */
static const struct kind_row modules[] = {
	{HEAPFRAME_ALLOCATOR,
	 "libjemalloc*|libtcmalloc*|libmimalloc*|libsnmalloc*|libhoard*|vgpreload_*|libheaptrack*|"
	 "[kernel*|" HEAP_WIRE_FILES "*"},
	{HEAPFRAME_HELPER,
	 "libc.so*|libc-*|libc.musl*|ld-linux*|ld-musl*|ld-2.*|libpthread*|libstdc++*|libc++*|"
	 "libgcc_s*"},
};

static enum heapframe_kind kind_in(const struct kind_row *rows, size_t nr, struct sv name)
{
	for (size_t i = 0; i < nr; i++)
		if (funcglob_is_like(rows[i].patterns, name))
			return rows[i].kind;
	return HEAPFRAME_SHOWN;
}

enum heapframe_kind heapframe_kind_of(struct sv function)
{
	char plain[FUNCGLOB_NAME_MAX];
	/* an allocator of the program, whatever its type; plain names have no traits */
	if (funcglob_is_like("<* as core::alloc::*GlobalAlloc>::*", function))
		return HEAPFRAME_ALLOCATOR;
	return kind_in(functions, ARRAY_LEN(functions), funcglob_plain(function, plain));
}

#define UNKNOWN 0 /* 0: not classified yet, else 1 + kind */

struct heapframes {
	const struct profile *p;
	struct arena *arena;
	bool has_python;
	uint8_t *by_func;
	uint8_t *by_module;
	struct heapframe **by_stack;
	uint64_t *names; /* by stack: hash of all names on it */
};

/* Hashes the names of frames of a location from frame @from outwards, after those of its caller. */
static uint64_t hash_names(const struct profile *p, uint64_t caller, loc_id loc, uint32_t from)
{
	const struct location *l = &p->locations.p[loc];
	uint64_t h = hash_mix(caller, 1);
	for (uint32_t i = from; i < l->nr_frames; i++)
		h = hash_mix(h, p->functions.p[p->frames.p[l->first_frame + i].func].name);
	return l->nr_frames ? h : hash_mix(h, (uint64_t)l->module << 32 | 1);
}

/* Identifies each stack by a hash of the names on it, independent of call sites and builds. */
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
	hf->has_python = python_is_seen(p);
	hf->arena = a;
	hf->by_func = arena_calloc(a, p->functions.n + 1, 1);
	hf->by_module = arena_calloc(a, p->modules.n + 1, 1);
	hf->names = hash_stacks(a, p);
	hf->by_stack = arena_calloc(a, p->stacks.n + 1, sizeof(struct heapframe *));
	return hf;
}

static enum heapframe_kind module_kind(struct heapframes *hf, module_id id)
{
	if (hf->by_module[id] == UNKNOWN) {
		const char *name = profile_module_name(hf->p, id);
		enum heapframe_kind kind =
			hf->has_python && python_is_module(name)
				? HEAPFRAME_HELPER
				: kind_in(modules, ARRAY_LEN(modules), sv_from_str(name));
		hf->by_module[id] = (uint8_t)(1 + kind);
	}
	return (enum heapframe_kind)(hf->by_module[id] - 1);
}

/*
 * Names of allocators count in any file; all other functions of the C library are HEAPFRAME_HELPER.
 */
static enum heapframe_kind frame_kind(struct heapframes *hf, func_id func, module_id module)
{
	if (hf->by_func[func] == UNKNOWN)
		hf->by_func[func] = (uint8_t)(1 + heapframe_kind_of(profile_sv(
							  hf->p, hf->p->functions.p[func].name)));
	enum heapframe_kind own = (enum heapframe_kind)(hf->by_func[func] - 1);
	return MAX(own, module_kind(hf, module));
}

static bool is_nameless(const struct profile *p, const struct location *l)
{
	return !l->nr_frames ||
	       strstr(profile_text(p, p->functions.p[p->frames.p[l->first_frame].func].name),
		      "!fn_") != NULL;
}

#define NAMELESS_MAX 2

/*
 * Static functions below a known allocator function belong to the allocator: stripped code has no
 * names for them (postgres: palloc, sqlite: sqlite3Malloc).
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

/* Walks from leaf to root; keeps the outermost glue frame for stacks without anything else. */
static struct heapframe find(struct heapframes *hf, stack_id stack)
{
	const struct profile *p = hf->p;
	struct heapframe f = {0};
	struct heapframe glue = {0};
	for (stack_id s = stack; s; s = p->stacks.p[s].parent) {
		const struct location *l = &p->locations.p[p->stacks.p[s].loc];
		if (is_nameless(p, l) && is_below_wrapper(hf, s))
			continue;
		if (!l->nr_frames && module_kind(hf, l->module) == HEAPFRAME_SHOWN) {
			f.node = s;
			f.module = l->module;
			return f;
		}
		for (uint32_t i = 0; i < l->nr_frames; i++) {
			const struct frame *at = &p->frames.p[l->first_frame + i];
			module_id module = profile_frame_module(p, l, at);
			str_id name = p->functions.p[at->func].name;
			enum heapframe_kind kind = frame_kind(hf, at->func, module);
			struct heapframe here = {.node = s,
						 .function = name,
						 .via = f.via,
						 .module = module,
						 .frame_idx = i};
			if (kind == HEAPFRAME_SHOWN)
				return here;
			if (kind == HEAPFRAME_HELPER && !funcglob_is_start(profile_sv(p, name))) {
				glue = here;
				f.via = name;
			}
		}
	}
	if (glue.node)
		return glue;
	/* Only allocator frames: a truncated stack, or none. */
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
			const struct frame *f = &p->frames.p[l->first_frame + i];
			if (frame_kind(hf, f->func, profile_frame_module(p, l, f)) !=
			    HEAPFRAME_SHOWN)
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

/* Frames outside of the thread start function are not shown. */
static const char *caller_name(const struct profile *p, const struct location *l, uint32_t i)
{
	if (!l->nr_frames)
		return "[unknown]";
	const struct frame *f = &p->frames.p[l->first_frame + i];
	return funcglob_is_start(profile_sv(p, p->functions.p[f->func].name))
		       ? NULL
		       : profile_frame_name(p, f);
}

static const char *mark_of(const struct profile *p, const struct location *l, uint32_t i)
{
	return l->nr_frames ? profile_frame_mark(&p->frames.p[l->first_frame + i]) : "";
}

/* Appends "f x12" for a function that called itself. */
static void add_times(struct buf *to, size_t nr_times)
{
	if (nr_times > 1)
		buf_addf(to, " x%zu", nr_times);
}

/* The function and its callers, leaf first. */
static void add_callers(struct buf *to, const struct profile *p, const struct heapframe *f,
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
			buf_addf(to, "%s%s%s", n++ ? " < " : "", name ? name : "[start]",
				 name ? mark_of(p, l, i) : "");
			last = name;
			nr_times = 1;
		}
	}
	add_times(to, nr_times);
	if (!n)
		buf_add_str(to, "[no stack]");
}

const char *heapframe_callers(struct arena *a, const struct profile *p, const struct heapframe *f,
			      size_t max)
{
	CLEANUP(buf_release) struct buf all = {0};
	add_callers(&all, p, f, max);
	const char *rest = strstr(buf_str(&all), " < ");
	return rest ? arena_strdup(a, rest + strlen(" < ")) : "-";
}
