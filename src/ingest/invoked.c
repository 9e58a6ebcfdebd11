/* The name by which a program was started; see invoked.h. */
#include "base/base.h"
#include "ingest/invoked.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/file/file.h"
#include "base/hash.h"
#include "base/mem.h"

#define COMM_CHARS_MAX ((size_t)15) /* the kernel cuts a thread's name to this length */

void invoked_release(struct invoked *n)
{
	vec_foreach(it, &n->list) {
		free(it->mapped);
		free(it->comm);
		free(it->path);
	}
	vec_release(&n->list);
	map_release(&n->by_hash);
}

/* Whether it may be a program under another name; libraries are loaded under their own. */
static bool is_candidate(const char *comm, const char *mapped)
{
	const char *base = path_base(mapped);
	return mapped[0] == '/' && comm[0] && !strstr(base, ".so") &&
	       strncmp(base, comm, COMM_CHARS_MAX);
}

const char *invoked_path(struct invoked *n, const struct file_access *files, int32_t pid,
			 const char *comm, const char *mapped)
{
	if (!files->invoked || !is_candidate(comm, mapped))
		return mapped;
	uint64_t hash =
		hash_mix(hash_bytes(comm, strlen(comm)), hash_bytes(mapped, strlen(mapped)));
	uint32_t *slot = map_put(&n->by_hash, hash, NULL);
	for (uint32_t i = *slot; i; i = n->list.p[i - 1].next) {
		const struct invoked_name *it = &n->list.p[i - 1];
		if (!strcmp(it->comm, comm) && !strcmp(it->mapped, mapped))
			return it->path ? it->path : mapped;
	}
	CLEANUP(buf_release) struct buf path = {0};
	struct invoked_name name = {xstrdup(mapped), xstrdup(comm), NULL, *slot};
	if (!files->invoked(files->ctx, pid, comm, mapped, &path) && path.n)
		name.path = buf_detach(&path);
	vec_push(&n->list, name);
	*slot = (uint32_t)n->list.n;
	return name.path ? name.path : mapped;
}
