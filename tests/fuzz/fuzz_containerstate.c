/* State files and replies of container engines: any text gives names of limited length, and ends. */
#include "base/base.h"

#include "host/container/containerstate.h"
#include "host/container/enginesocket.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(const char *text)
{
	if (text && strlen(text) > 256)
		BUG("a text of %zu bytes", strlen(text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct sv text = sv_from((const char *)data, n);
	struct containers l = {0};
	struct container *c = vec_add(&l.list);
	memset(c->id, 'a', CONTAINER_ID_LEN);
	c->engine = "";
	containerstate_docker(c, text);
	containerstate_oci(c, text);
	containerstate_storage(&l, text);
	struct http_reply reply;
	if (!http_parse(&reply, text, NULL)) {
		if (reply.body.n > n)
			BUG("a body of %zu bytes of %zu", reply.body.n, n);
		containerstate_list(&l, buf_sv(&reply.body), "docker");
		buf_release(&reply.body);
	}
	struct sv id;
	size_t end = 0;
	const char *engine;
	while (container_id_in(text, end, &id, &end, &engine))
		if (end > n || id.n != CONTAINER_ID_LEN)
			BUG("an id at %zu of %zu", end, n);
	c = l.list.p;
	check(c->name);
	check(c->image);
	check(c->service);
	containers_release(&l);
	return 0;
}
