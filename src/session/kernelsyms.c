/* Kernel symbols and their cache; see kernelsyms.h. */
#include "base/base.h"
#include "session/kernelsyms.h"

#include <errno.h>
#include <unistd.h>

#include "base/file/cachefile.h"
#include "base/file/file.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/sv.h"
#include "host/heldfiles.h"

#define KALLSYMS_LIMIT ((size_t)256 << 20)
#define KEY_LIMIT      ((size_t)16 << 20)
#define FORMAT_NAME    "assay-kallsyms-1"
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
	CLEANUP(buf_release) struct buf copy = {0};
	if (!add_key(&key) || file_read_fd(&copy, fd, KALLSYMS_LIMIT, NULL) || copy.n <= key.n ||
	    memcmp(copy.p, key.p, key.n))
		return -ENOENT;
	buf_add(to, copy.p + key.n, copy.n - key.n);
	return 0;
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

static void keep(struct sv text, const char *cache_dir)
{
	CLEANUP(buf_release) struct buf b = {0};
	if (!add_key(&b))
		return;
	size_t nr_key = b.n;
	const char *end = text.p + text.n;
	for (const char *p = text.p; p < end;) {
		const char *eol = memchr(p, '\n', (size_t)(end - p));
		if (!eol)
			break;
		if (is_kept(sv_from(p, (size_t)(eol - p))))
			buf_add(&b, p, (size_t)(eol + 1 - p));
		p = eol + 1;
	}
	if (b.n == nr_key) /* no symbols: addresses are hidden from this user */
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
