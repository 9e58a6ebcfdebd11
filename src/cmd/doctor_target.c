/* What can be seen of one process; see doctor_target.h. */
#include "base/base.h"
#include "cmd/doctor_target.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sv.h"
#include "cmd/doctor_heap.h"
#include "host/limits.h"
#include "host/mapped.h"
#include "host/proc.h"
#include "object/debugfile.h"
#include "object/ehframe.h"
#include "object/elf.h"

#define NR_LOOKED  2000 /* functions whose first instructions are looked at */
#define PROLOG_MAX 12

struct target_page {
	struct report *r;
	struct report_table *t;
	int32_t pid;
	int root_fd;
	VEC(char *) seen;
	bool lacks_debug; /* of the program itself, what may be rebuilt */
	bool lacks_unwind;
	bool is_stripped;
	bool is_first;
	uint64_t nr_closed; /* binaries that we may not read */
};

/* ---- a binary ------------------------------------------------------------------------------ */

/* push %rbp; mov %rsp,%rbp, perhaps after endbr64: the function keeps a frame pointer. */
static bool has_frame_prolog(const uint8_t *p)
{
	static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
	static const uint8_t prolog[] = {0x55, 0x48, 0x89, 0xe5};
	if (!memcmp(p, endbr, sizeof(endbr)))
		p += sizeof(endbr);
	return !memcmp(p, prolog, sizeof(prolog));
}

/* "yes", "no", or "some": of the functions that unwind tables name. */
static const char *frame_pointers(struct elf *e)
{
	const struct elf_section *s = elf_section(e, ".eh_frame");
	struct sv bytes;
	if (elf_machine(e) != ELF_MACHINE_X86_64 || !s || elf_section_bytes(e, s, &bytes, NULL))
		return "-";
	struct ehframe_iter it;
	struct ehframe_fde fde;
	ehframe_start(&it, bytes, s->vaddr, false);
	uint64_t nr = 0;
	uint64_t nr_with = 0;
	while (nr < NR_LOOKED && ehframe_next(&it, &fde)) {
		uint8_t code[PROLOG_MAX];
		uint64_t offset;
		if (fde.end - fde.start < 32 || !elf_offset_from_vaddr(e, fde.start, &offset) ||
		    elf_read(e, code, sizeof(code), offset, NULL))
			continue;
		nr++;
		nr_with += has_frame_prolog(code);
	}
	if (!nr)
		return "-";
	return nr_with * 10 > nr * 8 ? "yes" : nr_with * 10 > nr ? "some" : "no";
}

static const char *debug_text(struct target_page *p, struct elf *e, const char *path,
			      bool *ret_has_symbols)
{
	if (elf_section(e, ".debug_info") || elf_section(e, ".zdebug_info"))
		return "inside";
	struct elf *found = NULL;
	struct debug_search search = {.root_fd = p->root_fd};
	CLEANUP(err_release) struct err err = {0};
	(void)debugfile_find(&found, NULL, e, path, &search, &err);
	if (!found)
		return "none";
	*ret_has_symbols |= elf_section(found, ".symtab") != NULL;
	bool has_debug = elf_section(found, ".debug_info") != NULL;
	elf_free(found);
	return has_debug ? "separate" : "none";
}

static void add_binary(struct target_page *p, struct elf *e, const char *path)
{
	bool has_symtab = elf_section(e, ".symtab") != NULL;
	const char *debug = debug_text(p, e, path, &has_symtab);
	const char *symbols = has_symtab                         ? "all"
			      : elf_section(e, ".gnu_debugdata") ? "functions"
			      : elf_section(e, ".dynsym")        ? "exported"
								 : "none";
	const struct elf_section *eh = elf_section(e, ".eh_frame");
	bool has_unwind = (eh && eh->nr_bytes > 8) || elf_section(e, ".debug_frame");
	uint8_t id[ELF_BUILD_ID_MAX];
	if (p->is_first) {
		p->lacks_debug = !strcmp(debug, "none");
		p->is_stripped = !has_symtab;
		p->lacks_unwind = !has_unwind;
		p->is_first = false;
	}
	report_add_row(p->r, p->t,
		       (union cell[]){{.text = path},
				      {.text = symbols},
				      {.text = debug},
				      {.text = has_unwind ? "yes" : "no"},
				      {.text = frame_pointers(e)},
				      {.text = elf_build_id(e, id) ? "yes" : "no"}});
}

static int add_mapping(void *ctx, const struct proc_map *m, struct err *err)
{
	struct target_page *p = ctx;
	(void)err;
	if (!m->is_exec || m->path[0] != '/')
		return 0;
	vec_foreach(s, &p->seen)
		if (!strcmp(*s, m->path))
			return 0;
	vec_push(&p->seen, xstrdup(m->path));
	struct mapped_file file;
	if (host_open_mapped(&file, p->pid, m->start, m->end, m->path, m->dev_major, m->dev_minor,
			     m->inode)) {
		p->nr_closed++;
		p->is_first = false;
		return 0;
	}
	struct elf *e = NULL;
	CLEANUP(err_release) struct err bad = {0};
	if (!elf_open_fd(&e, file.fd, &bad))
		add_binary(p, e, m->path);
	elf_free(e);
	(void)close(file.fd);
	return 0;
}

/* ---- the process --------------------------------------------------------------------------- */

static int try_attach(int32_t pid)
{
	struct perf_event_attr attr = {.size = sizeof(attr),
				       .type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_CPU_CLOCK,
				       .sample_period = 1000000,
				       .disabled = 1,
				       .exclude_kernel = 1,
				       .exclude_hv = 1};
	int fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	(void)close(fd);
	return 0;
}

static void add_advice(struct target_page *p)
{
	struct report *r = p->r;
	if (p->nr_closed)
		report_note(r,
			    "%" PRIu64 " binaries of process %d may not be read: give assay "
			    "CAP_SYS_PTRACE (in a container --cap-add SYS_PTRACE)",
			    p->nr_closed, p->pid);
	if (p->lacks_debug) {
		report_note(r, "no debug information: functions without inlined ones, files and "
			       "lines. cargo: [profile.release] debug = \"line-tables-only\"; "
			       "cmake: -DCMAKE_BUILD_TYPE=RelWithDebInfo; make: CFLAGS='-O2 -g'; a "
			       "package of the distribution: its -dbgsym or -debuginfo package");
	}
	if (p->is_stripped)
		report_note(r, "stripped: functions that are not exported have no names. cargo: "
			       "strip = false; cmake: make install without /strip; make: no "
			       "'strip', no '-s' in LDFLAGS");
	if (p->lacks_unwind)
		report_note(r, "no unwind tables: stacks by frame pointers only. cargo: "
			       "RUSTFLAGS='-C force-unwind-tables=yes -C "
			       "force-frame-pointers=yes'; cmake and make: "
			       "CFLAGS='-fasynchronous-unwind-tables -fno-omit-frame-pointer'");
}

static const struct report_column columns[] = {
	{"binary", "binary", CELL_TEXT, NULL},
	{"symbols", "symbols", CELL_TEXT, "all, functions, exported, none"},
	{"debug_info", "debug info", CELL_TEXT, "inside, separate, none"},
	{"unwind_tables", "unwind tables", CELL_TEXT, NULL},
	{"frame_pointers", "frame pointers", CELL_TEXT, "yes, some, no; assay does not need them"},
	{"build_id", "build-id", CELL_TEXT, NULL},
};

int doctor_add_target(struct report *r, int32_t pid, bool *ret_is_open, struct err *err)
{
	struct target_page p = {
		.r = r, .pid = pid, .root_fd = host_open_root(pid), .is_first = true};
	CLEANUP(buf_release) struct buf title = {0};
	buf_addf(&title, "process %d: ", pid);
	if (proc_comm(&title, pid, pid, err))
		return -ESRCH;
	int rc = try_attach(pid);
	*ret_is_open = !rc;
	buf_addf(&title, ", %s", rc ? "may not be profiled: " : "may be profiled");
	if (rc) {
		buf_add_str(&title, strerror(-rc));
		CLEANUP(buf_release) struct buf remedy = {0};
		host_perf_remedy(&remedy, rc, pid);
		report_note(r, "%s", buf_str(&remedy));
	}
	p.t = report_add_table(r, "target", arena_strndup(&r->arena, title.p, title.n), columns,
			       ARRAY_LEN(columns));
	CLEANUP(err_release) struct err hidden = {0};
	if (proc_maps(pid, add_mapping, &p, &hidden))
		report_note(r, "what process %d has mapped is hidden: give assay CAP_SYS_PTRACE",
			    pid);
	add_advice(&p);
	doctor_add_allocator(r, pid);
	vec_foreach(s, &p.seen)
		free_p(s);
	vec_release(&p.seen);
	if (p.root_fd >= 0)
		(void)close(p.root_fd);
	return 0;
}
