/* Build-ids for modules that have none; see module_buildids.h. */
#include "base/base.h"
#include "ingest/module_buildids.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "model/event.h"
#include "object/elf.h"

static void resolve_build_id(struct profile *p, struct module *m, const struct file_access *files)
{
	struct event_map map = {.path = profile_text(p, m->path),
				.is_exec = true,
				.dev_major = (uint32_t)(m->dev >> 32),
				.dev_minor = (uint32_t)m->dev,
				.inode = m->inode};
	struct byte_source source;
	struct elf *elf = NULL;
	if (files->open(files->ctx, &source, 0, &map))
		return;
	struct stat st = source.st;
	if (elf_open_source(&elf, source, NULL))
		return;
	uint8_t id[ELF_BUILD_ID_MAX];
	size_t n = elf_build_id(elf, id);
	elf_free(elf);
	m->nr_build_id = (uint8_t)MIN(n, (size_t)MODULE_BUILD_ID_MAX);
	memcpy(m->build_id, id, m->nr_build_id);
	if (n)
		return;
	m->dev = (uint64_t)major(st.st_dev) << 32 | minor(st.st_dev);
	m->inode = st.st_ino;
}

void modules_resolve_build_ids(struct profile *p, const struct file_access *files)
{
	for (size_t i = 1; i < p->modules.n; i++) {
		struct module *m = &p->modules.p[i];
		if (m->kind == MODULE_ELF && !m->nr_build_id && m->path)
			resolve_build_id(p, m, files);
	}
}
