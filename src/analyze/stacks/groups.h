/*
 * Maps every frame of a profile to a group: function, module, crate, file or line. Computed once
 * per frame, not per sample. Groups are merged by name: two functions are one group if their names
 * and the short names of their modules are equal.
 *
 * Lives in the caller's arena, borrows the profile's strings.
 */
#ifndef ASSAY_ANALYZE_STACKS_GROUPS_H
#define ASSAY_ANALYZE_STACKS_GROUPS_H

#include "analyze/select/select.h"
#include "base/arena.h"
#include "base/base.h"
#include "base/sv.h"
#include "model/profile.h"

enum group_by { BY_FUNCTION, BY_MODULE, BY_CRATE, BY_FILE, BY_LINE, BY_NR };

struct group {
	const char *name;
	const char *module; /* short name; "" if the group has several modules */
	uint32_t flags;     /* enum tree_flags that all of its frames share */
};

struct groups {
	struct group *rows;
	size_t n;           /* row 0 is not used */
	uint32_t *by_frame; /* row of each frame; p->frames.n entries */
	uint32_t *by_loc;   /* row of each unsymbolized location; p->locations.n entries */
};

struct groups groups_by(struct arena *a, const struct profile *p, enum group_by by);
/* As groups_by, with names as they are aligned between builds (diff/plainname.h). */
struct groups groups_by_plain_name(struct arena *a, const struct profile *p, enum group_by by);

/*
 * Returns the crate, C++ namespace or Go package of a demangled name: its first path segment, also
 * inside "<impl Trait for krate::X>" and "<krate::X as Trait>". Empty for plain C names.
 */
struct sv crate_from_name(struct sv name);

#endif
