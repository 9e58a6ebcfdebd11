#include "base/base.h"
#include "unwind/tablecache.h"

#include <errno.h>

int table_cache_load(struct unwind_table **ret_t, struct elf *elf, const char *cache_dir)
{
	(void)ret_t;
	(void)elf;
	(void)cache_dir;
	return -ENOENT;
}

void table_cache_store(const struct unwind_table *t, struct elf *elf, const char *cache_dir)
{
	(void)t;
	(void)elf;
	(void)cache_dir;
}

void table_cache_unmap(struct unwind_table *t)
{
	t->mapping = NULL;
}
