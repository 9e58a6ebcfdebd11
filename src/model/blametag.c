/* Details of blame; see blametag.h. */
#include "base/base.h"
#include "model/blametag.h"

#include "model/wait.h"

#define CONVOY "convoy"

void blametag_add_text(struct buf *to, const struct blametag *tag)
{
	buf_addf(to, "%s/%u%s", wait_key(tag->doing), tag->nr_steps,
		 tag->is_convoy ? "/" CONVOY : "");
}

bool blametag_parse(struct sv text, struct blametag *ret_tag)
{
	struct sv key = sv_split(&text, '/');
	struct sv steps = sv_split(&text, '/');
	struct blametag tag = {.doing = wait_from_key(key), .is_convoy = sv_eq_str(text, CONVOY)};
	uint64_t nr_steps;
	if (tag.doing == WAIT_NONE || !sv_to_u64(steps, &nr_steps) || nr_steps > UINT8_MAX)
		return false;
	tag.nr_steps = (unsigned)nr_steps;
	*ret_tag = tag;
	return true;
}
