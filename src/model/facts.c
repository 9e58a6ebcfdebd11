/* Facts from numbers; see facts.h. */
#include "base/base.h"
#include "model/facts.h"

#include <stdarg.h>

#include "base/buf.h"
#include "base/num.h"

void profile_factf(struct profile *p, const char *key, const char *fmt, ...)
{
	CLEANUP(buf_release) struct buf b = {0};
	va_list args;
	va_start(args, fmt);
	buf_vaddf(&b, fmt, args);
	va_end(args);
	profile_fact(p, key, buf_str(&b));
}

void profile_fact_nr(struct profile *p, const char *key, uint64_t nr)
{
	if (nr)
		profile_factf(p, key, "%" PRIu64, nr);
}

void profile_fact_ns(struct profile *p, const char *key, uint64_t ns)
{
	CLEANUP(buf_release) struct buf b = {0};
	num_add_ns(&b, ns);
	profile_fact(p, key, buf_str(&b));
}
