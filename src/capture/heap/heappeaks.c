/* Peaks of programs that a process replaced by exec; see heappeaks.h. */
#include "base/base.h"
#include "capture/heap/heappeaks.h"

void heappeaks_release(struct heappeaks *k)
{
	vec_foreach(peak, &k->list)
		heapqueue_batch_release(&peak->rows);
	vec_release(&k->list);
}

void heappeaks_add(struct heappeaks *k, int32_t pid, double live_bytes,
		   struct heapqueue_batch *rows)
{
	struct heappeak *to = NULL;
	vec_foreach(peak, &k->list)
		to = peak->pid == pid ? peak : to;
	if (!to) {
		to = vec_add(&k->list);
		*to = (struct heappeak){.pid = pid, .live_bytes = -1};
	}
	if (live_bytes <= to->live_bytes)
		return;
	struct heapqueue_batch less = to->rows;
	to->rows = *rows;
	to->live_bytes = live_bytes;
	*rows = (struct heapqueue_batch){0};
	heapqueue_batch_release(&less);
}

void heappeaks_put(struct heappeaks *k, int32_t pid, struct heapqueue *to)
{
	size_t kept = 0;
	for (size_t i = 0; i < k->list.n; i++) {
		struct heappeak *peak = &k->list.p[i];
		if (pid && peak->pid != pid) {
			k->list.p[kept++] = *peak;
			continue;
		}
		heapqueue_put(to, &peak->rows);
		heapqueue_batch_release(&peak->rows);
	}
	k->list.n = kept;
}
