/* Parsers of names from users and targets: function names, name tables, suggestions. */
#include "base/base.h"

#include "analyze/stacks/groups.h"
#include "analyze/select/match.h"
#include "analyze/stacks/named.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct sv text = sv_from((const char *)data, n);
	struct sv crate = crate_from_name(text);
	ASSERT(!crate.n || (crate.p >= text.p && crate.p + crate.n <= text.p + n));

	CLEANUP(arena_release) struct arena a = {0};
	CLEANUP(err_release) struct err err = {0};
	struct named_rule *rules;
	size_t nr;
	if (!named_parse(&a, text, &rules, &nr, &err))
		for (size_t i = 0; i < nr; i++)
			ASSERT(rules[i].name[0] && rules[i].pattern[0] && rules[i].note);

	CLEANUP(free_p) char *name = xstrndup((const char *)data, n);
	struct near near = {.wanted = name};
	near_add(&near, name);
	near_add(&near, "core::fmt::Display::fmt");
	near_add(&near, "x");
	(void)near_hint(&near, &err);
	return 0;
}
