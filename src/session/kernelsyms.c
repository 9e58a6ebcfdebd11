/* Kernel symbols and their cache; see kernelsyms.h. */
#include "base/base.h"
#include "session/kernelsyms.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file/cachefile.h"
#include "base/file/file.h"
#include "base/file/rd.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/sort.h"
#include "base/sv.h"
#include "base/vec.h"
#include "host/heldfiles.h"

#define KALLSYMS_LIMIT ((size_t)256 << 20)
#define KEY_LIMIT      ((size_t)16 << 20)
#define FORMAT_NAME    "assay-kallsyms-2"
#define FILE_NAME      "kallsyms"

/* Makes the first line of the cache: identifies boot and modules. False if they cannot be read. */
static bool add_key(struct buf *to)
{
	CLEANUP(buf_release) struct buf boot = {0};
	CLEANUP(buf_release) struct buf modules = {0};
	if (file_read(&boot, "/proc/sys/kernel/random/boot_id", KEY_LIMIT, NULL) || !boot.n)
		return false;
	(void)file_read(&modules, "/proc/modules", KEY_LIMIT,
			NULL); /* a kernel without modules has no such file */
	struct sv id = sv_trim(buf_sv(&boot));
	buf_addf(to, FORMAT_NAME " %.*s %016" PRIx64 "\n", SV_ARGS(id),
		 hash_bytes(modules.p, modules.n));
	return true;
}

int kernelsyms_load(struct buf *to, const char *cache_dir)
{
	uint64_t n;
	if (!cache_dir)
		return -ENOENT;
	CLEANUP(close_p) int fd = cache_file_open(cache_dir, FILE_NAME, KALLSYMS_LIMIT, &n);
	if (fd < 0)
		return -ENOENT;
	CLEANUP(buf_release) struct buf key = {0};
	CLEANUP(buf_release) struct buf first = {0};
	if (!add_key(&key) || file_pread(fd, buf_reserve(&first, key.n), key.n, 0, NULL) ||
	    memcmp(first.p, key.p, key.n) || lseek(fd, (off_t)key.n, SEEK_SET) < 0)
		return -ENOENT;
	(void)buf_reserve(to, (size_t)n); /* at once: it is 5 MB */
	return file_read_fd(to, fd, KALLSYMS_LIMIT, NULL) || !to->n ? -ENOENT : 0;
}

/* Returns whether a kallsyms line is a function that exists as long as its module. */
static bool is_kept(struct sv line)
{
	static const char no_address[] = "0000000000000000 ";
	if (line.n < 20 || line.p[16] != ' ' || !strchr("tTwW", line.p[17]) ||
	    !memcmp(line.p, no_address, sizeof(no_address) - 1))
		return false;
	const char *tab = memchr(line.p, '\t', line.n);
	struct sv module = tab ? sv_from(tab, (size_t)(line.p + line.n - tab)) : SV("");
	return !sv_has_prefix(module, SV("\t[bpf")) && !sv_has_prefix(module, SV("\t[__builtin__"));
}

struct line {
	uint64_t addr;
	const char *p;
	size_t n; /* with its newline */
};

static void keep(struct sv text, const char *cache_dir)
{
	CLEANUP(buf_release) struct buf b = {0};
	VEC(struct line) lines = {0};
	const char *end = text.p + text.n;
	for (const char *p = text.p; p < end;) {
		const char *eol = memchr(p, '\n', (size_t)(end - p));
		if (!eol)
			break;
		if (is_kept(sv_from(p, (size_t)(eol - p))))
			vec_push(&lines, (struct line){.addr = strtoull(p, NULL, 16),
						       .p = p,
						       .n = (size_t)(eol + 1 - p)});
		p = eol + 1;
	}
	if (lines.n) /* else the addresses are hidden from this user */
		sort_records(lines.p, lines.n, sizeof(*lines.p), UINT64_MAX);
	bool has_lines = lines.n && add_key(&b);
	vec_foreach(l, &lines)
		buf_add(&b, l->p, l->n);
	vec_release(&lines);
	if (!has_lines)
		return;
	cache_file_write(cache_dir, FILE_NAME, &b, 0); /* else it is read again next time */
}

int kernelsyms_read(struct buf *to, const char *cache_dir)
{
	size_t from = to->n;
	CLEANUP(close_p) int fd = host_open_held(KERNELSYMS_PATH);
	int rc = fd < 0 ? file_read(to, KERNELSYMS_PATH, KALLSYMS_LIMIT, NULL)
			: file_read_fd(to, fd, KALLSYMS_LIMIT, NULL);
	if (!rc && cache_dir)
		keep(sv_from(to->p + from, to->n - from), cache_dir);
	return rc;
}

/* ---- the kernel of a recording --------------------------------------------------------------- */

bool kernelsyms_is_elsewhere(struct sv text, const struct kernel_identity *of)
{
	CLEANUP(buf_release) struct buf end = {0};
	if (!of->symbol[0] || !of->address)
		return false;
	buf_addf(&end, " %s\n", of->symbol);
	const char *at = memmem(text.p, text.n, end.p, end.n);
	const char *line = at ? memrchr(text.p, '\n', (size_t)(at - text.p)) : NULL;
	uint64_t address = at ? strtoull(line ? line + 1 : text.p, NULL, 16) : 0;
	return address && address != of->address; /* 0: hidden from this user */
}

bool kernelsyms_is_other_build(struct sv notes, const struct kernel_identity *of)
{
	struct rd rd = rd_from(notes.p, notes.n);
	while (of->nr_build_id && rd_left(&rd)) {
		uint32_t nr_name = rd_u32(&rd);
		uint32_t nr_bytes = rd_u32(&rd);
		uint32_t type = rd_u32(&rd);
		const uint8_t *name = rd_bytes(&rd, ((size_t)nr_name + 3) & ~(size_t)3);
		const uint8_t *bytes = rd_bytes(&rd, ((size_t)nr_bytes + 3) & ~(size_t)3);
		if (rd.is_bad)
			return false;
		if (type == NT_GNU_BUILD_ID && nr_name == 4 && !memcmp(name, "GNU", 4))
			return nr_bytes != of->nr_build_id || memcmp(bytes, of->build_id, nr_bytes);
	}
	return false;
}

void kernelsyms_notes(struct buf *to)
{
	(void)file_read(to, "/sys/kernel/notes", KEY_LIMIT, NULL);
}
