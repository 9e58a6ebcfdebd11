/* Reads facts about binaries; see binaries.h. */
#include "base/base.h"
#include "plan/binaries.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/sv.h"
#include "host/proc.h"
#include "host/reader/hostfile.h"
#include "object/debugfile.h"
#include "object/ehframe.h"
#include "object/elf.h"

#define FUNCTIONS_MAX 2000 /* functions whose prolog is examined */
#define PROLOG_MAX    12

struct reader {
	struct binaries *to;
	int32_t pid;
	int root_fd;
};

/* Whether a function begins with push %rbp; mov %rsp,%rbp, possibly after endbr64. */
static bool has_frame_prolog(const uint8_t *p)
{
	static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
	static const uint8_t prolog[] = {0x55, 0x48, 0x89, 0xe5};
	if (!memcmp(p, endbr, sizeof(endbr)))
		p += sizeof(endbr);
	return !memcmp(p, prolog, sizeof(prolog));
}

/* "yes", "some" or "no", by a sample of the functions in .eh_frame. */
static const char *frame_pointers(struct elf *e)
{
	struct ehframe_iter it;
	struct ehframe_fde fde;
	if (elf_machine(e) != ELF_MACHINE_X86_64 || !ehframe_start_elf(&it, e, ".eh_frame"))
		return "-";
	uint64_t nr = 0;
	uint64_t nr_with = 0;
	while (nr < FUNCTIONS_MAX && ehframe_next(&it, &fde)) {
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

static const char *debug_text(const struct reader *r, struct elf *e, const char *path,
			      bool *ret_has_symbols)
{
	if (elf_section(e, ".debug_info") || elf_section(e, ".zdebug_info"))
		return "inside";
	struct debug_search search = {.open = hostfile_open_path, .root_fd = r->root_fd};
	struct elf *found CLEANUP(elf_free_p) = debugfile_find(e, path, &search, NULL);
	if (!found)
		return "none";
	*ret_has_symbols |= elf_section(found, ".symtab") != NULL;
	return elf_section(found, ".debug_info") ? "separate" : "none";
}

static void read_facts(const struct reader *r, struct binary_facts *b, struct elf *e)
{
	bool has_symtab = elf_section(e, ".symtab") != NULL;
	const struct elf_section *eh = elf_section(e, ".eh_frame");
	uint8_t id[ELF_BUILD_ID_MAX];
	b->debug = debug_text(r, e, b->path, &has_symtab);
	b->symbols = has_symtab                         ? "all"
		     : elf_section(e, ".gnu_debugdata") ? "functions"
		     : elf_section(e, ".dynsym")        ? "exported"
							: "none";
	b->has_unwind_tables = (eh && eh->nr_bytes > 8) || elf_section(e, ".debug_frame");
	b->frames = frame_pointers(e);
	b->has_build_id = elf_build_id(e, id) > 0;
}

static int add_mapping(void *ctx, const struct proc_map *m, struct err *err UNUSED)
{
	struct reader *r = ctx;
	struct byte_source source;
	if (!m->is_exec || m->path[0] != '/' || proc_is_recorder(m->path))
		return 0;
	vec_foreach(b, &r->to->list)
		if (!strcmp(b->path, m->path))
			return 0;
	struct binary_facts *b = vec_add(&r->to->list);
	b->path = xstrdup(m->path);
	b->is_unreadable = proc_open_mapped(&source, r->pid, m) != 0;
	if (b->is_unreadable)
		return 0;
	struct elf *e CLEANUP(elf_free_p) = NULL;
	if (!elf_open_source(&e, source, NULL))
		read_facts(r, b, e);
	return 0;
}

int binaries_open_command(struct byte_source *ret_s, const char *name, struct buf *path)
{
	const char *dirs = strchr(name, '/') ? "" : getenv("PATH");
	struct sv rest = sv_from_str(dirs ? dirs : "/bin:/usr/bin");
	do {
		struct sv dir = sv_split(&rest, ':');
		buf_clear(path);
		buf_addf(path, "%.*s%s%s", SV_ARGS(dir), dir.n ? "/" : "", name);
		if (hostfile_open_path(ret_s, -1, buf_str(path)))
			continue;
		if (ret_s->st.st_mode & 0111)
			return 0;
		source_close(ret_s);
	} while (rest.n);
	return -ENOENT;
}

/* Libraries may be mapped below the program. */
static void move_program_first(struct binaries *to, int32_t pid)
{
	CLEANUP(free_p) char *exe = proc_exe(pid);
	size_t at = 0;
	while (exe && at < to->list.n && strcmp(to->list.p[at].path, exe) != 0)
		at++;
	if (!exe || at == to->list.n)
		return;
	struct binary_facts program = to->list.p[at];
	memmove(to->list.p + 1, to->list.p, at * sizeof(program));
	to->list.p[0] = program;
}

int binaries_read(struct binaries *ret_b, int32_t pid, struct err *err)
{
	*ret_b = (struct binaries){0};
	int root CLEANUP(close_p) = hostfile_open_root(pid);
	struct reader r = {.to = ret_b, .pid = pid, .root_fd = root};
	int rc = proc_maps(pid, add_mapping, &r, err);
	move_program_first(ret_b, pid);
	return rc;
}

int binaries_read_file(struct binaries *ret_b, const char *path, struct err *err)
{
	struct byte_source source;
	*ret_b = (struct binaries){0};
	int rc = hostfile_open_path(&source, -1, path);
	if (rc)
		return err_set(err, rc, "cannot open '%s': %s", path, strerror(-rc));
	struct elf *e CLEANUP(elf_free_p) = NULL;
	if (elf_open_source(&e, source, NULL))
		return err_set(err, -EINVAL, "'%s' is no program: not an ELF file", path);
	struct reader r = {.to = ret_b, .root_fd = -1};
	struct binary_facts *b = vec_add(&ret_b->list);
	b->path = xstrdup(path);
	read_facts(&r, b, e);
	return 0;
}

void binaries_release(struct binaries *b)
{
	vec_foreach(one, &b->list)
		free(one->path);
	vec_release(&b->list);
}
