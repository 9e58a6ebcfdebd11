/* /sys/dev/block/MAJOR:MINOR links to the device's folder in /sys, whose name is the device's. */
#include "base/base.h"

#include "capture/io/blockdev.h"

#include <unistd.h>

#include "base/mem.h"

void blockdev_name(struct buf *to, uint32_t dev)
{
	CLEANUP(free_p) char *link = xasprintf("/sys/dev/block/%u:%u", dev >> 20, dev & 0xfffff);
	char place[512];
	ssize_t n = readlink(link, place, sizeof(place) - 1);
	if (n > 0) {
		place[n] = 0;
		const char *slash = strrchr(place, '/');
		buf_add_str(to, slash ? slash + 1 : place);
		return;
	}
	buf_addf(to, "device %u:%u", dev >> 20, dev & 0xfffff);
}
