#include "base/base.h"
#include "unwind_process.h"

#include <stdio.h>
#include <sys/auxv.h>

#include "base/buf.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "remote/patch/image.h"
#include "object/elf.h"
#include "elf_path.h"

struct map_line {
	uint64_t start, end, pgoff;
	bool is_executable;
	struct sv path;
};

static bool parse_line(struct sv line, struct map_line *m)
{
	struct sv range = sv_split(&line, ' ');
	struct sv start = sv_split(&range, '-');
	struct sv perms = sv_split(&line, ' ');
	struct sv pgoff = sv_split(&line, ' ');
	(void)sv_split(&line, ' ');
	(void)sv_split(&line, ' ');
	m->is_executable = perms.n > 2 && perms.p[2] == 'x';
	m->path = sv_trim(line);
	return sv_to_hex(start, &m->start) && sv_to_hex(range, &m->end) &&
	       sv_to_hex(pgoff, &m->pgoff);
}

static struct elf *open_module(const struct unwind_process *w, const struct map_line *m,
			       const char *path)
{
	struct elf *elf = NULL;

	if (!strcmp(path, "[vdso]")) {
		/* All processes have the same one; ours is at hand. */
		const void *p = (const void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
		(void)m;
		if (p && elf_open_bytes(&elf, p, 8192, NULL))
			(void)elf_open_bytes(&elf, p, 4096, NULL);
		return elf;
	}
	(void)w;
	/* tests/lib/local_recorder.c maps it from memory. */
	size_t nr_image = 0;
	const uint8_t *image = heap_image_bytes(&nr_image);
	if (!strncmp(path, "/memfd:assay-heap", 17) && nr_image) {
		(void)elf_open_bytes(&elf, image, nr_image, NULL);
		return elf;
	}
	if (elf_open_path(&elf, path, NULL))
		return NULL;
	return elf;
}

static struct unwind_process_module *find_module(struct unwind_process *w, const struct map_line *m)
{
	CLEANUP(free_p) char *path = xstrndup(m->path.p ? m->path.p : "", m->path.n);

	for (size_t i = 0; i < w->nr_modules; i++)
		if (!strcmp(w->modules[i].path, path))
			return &w->modules[i];
	if (w->nr_modules == UNWIND_PROCESS_MODULES_MAX)
		return NULL;
	struct unwind_process_module *mod = &w->modules[w->nr_modules++];
	mod->path = TAKE(path);
	mod->module.id = (module_id)w->nr_modules;
	mod->module.is_jit = !mod->path[0] || mod->path[0] == '/' ? !mod->path[0] : false;
	struct unwind_table *t = NULL;
	struct elf *elf = open_module(w, m, mod->path);
	if (elf && !unwind_table_build(&t, elf, w->cache_dir, NULL))
		mod->module.table = t;
	mod->module.is_missing = !elf && !mod->module.is_jit;
	elf_free(elf);
	return mod;
}

static uint64_t find_bias(const struct unwind_process *w, const struct map_line *m,
			  const char *path)
{
	uint64_t vaddr = 0;
	struct elf *elf = open_module(w, m, path);

	if (elf)
		(void)elf_vaddr_from_offset(elf, m->pgoff, &vaddr);
	elf_free(elf);
	return m->start - vaddr;
}

bool unwind_process_refresh(struct unwind_process *w)
{
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(free_p)
	char *path = w->pid ? xasprintf("/proc/%d/maps", w->pid) : xstrdup("/proc/self/maps");

	if (file_read(&text, path, 1 << 24, NULL))
		return false;
	struct sv rest = buf_sv(&text);
	while (rest.n) {
		struct sv line = sv_split(&rest, '\n');
		struct map_line m;
		if (!parse_line(line, &m))
			continue;
		if (sv_eq(m.path, SV("[stack]")))
			w->stack_end = m.end;
		if (!m.is_executable)
			continue;
		struct unwind_process_module *mod = find_module(w, &m);
		if (!mod)
			return false;
		struct space_map map = {
			.start = m.start, .end = m.end, .pgoff = m.pgoff, .module = &mod->module};
		if (mod->module.table)
			map.bias = find_bias(w, &m, mod->path);
		space_add(&w->spaces, w->space, &map);
	}
	return true;
}

bool unwind_process_init_pid(struct unwind_process *w, int pid)
{
	w->pid = pid;
	w->space = spaces_get(&w->spaces, pid);
	w->walker = walker_new();
	return unwind_process_refresh(w);
}

bool unwind_process_init(struct unwind_process *w)
{
	return unwind_process_init_pid(w, 0);
}

void unwind_process_release(struct unwind_process *w)
{
	spaces_release(&w->spaces);
	walker_free(w->walker);
	for (size_t i = 0; i < w->nr_modules; i++) {
		free(w->modules[i].path);
		struct unwind_table *t =
			(struct unwind_table *)(uintptr_t)w->modules[i].module.table;
		unwind_table_free(t);
	}
	memset(w, 0, sizeof(*w));
}

size_t unwind_process_stack_bytes(const struct unwind_process *w, uint64_t sp, size_t max)
{
	if (sp >= w->stack_end)
		return 0;
	return MIN(w->stack_end - sp, max);
}
