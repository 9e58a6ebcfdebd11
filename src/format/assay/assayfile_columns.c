/* The columns of the sections; see assayfile_sections.h and docs/formats/assay.md. */
#include "base/base.h"
#include "format/assay/assayfile_sections.h"

#define FIELD(type, name)                                                                       \
	.offset = offsetof(struct type, name), .nr_bytes = sizeof(((struct type *)NULL)->name), \
	.is_signed = (__typeof__(((struct type *)NULL)->name))-1 < 1
#define DELTA .is_delta = true

static const struct assayfile_field mapping_fields[] = {
	{FIELD(mapping, module), .ref = SECTION_MODULES},
	{FIELD(mapping, pid), DELTA},
	{FIELD(mapping, start), DELTA},
	{FIELD(mapping, len)},
	{FIELD(mapping, pgoff)},
	{FIELD(mapping, from_ns), DELTA},
	{FIELD(mapping, to_ns), .bias = 1}, /* "until the end" becomes 0 */
};

static const struct assayfile_field function_fields[] = {
	{FIELD(function, name), DELTA, .ref = SECTION_STRINGS},
	{FIELD(function, linkage), DELTA, .ref = SECTION_STRINGS},
	{FIELD(function, module), .ref = SECTION_MODULES},
	{FIELD(function, flags)},
	{FIELD(function, start), DELTA},
};

static const struct assayfile_field location_fields[] = {
	{FIELD(location, module), .ref = SECTION_MODULES},
	{FIELD(location, flags),
	 .dropped = LOCATION_SYMBOLIZED}, /* symbol names have their own section */
	{FIELD(location, offset), DELTA},
};

static const struct assayfile_field task_fields[] = {
	{FIELD(task, pid), DELTA},
	{FIELD(task, tid), DELTA},
	{FIELD(task, comm), .ref = SECTION_STRINGS},
	{FIELD(task, start_ns), DELTA},
	{FIELD(task, end_ns)},
};

static const struct assayfile_field tag_fields[] = {
	{FIELD(tag, reason), .max = WAIT_NR - 1, .instead = WAIT_OTHER},
	{FIELD(tag, evidence)},
	{FIELD(tag, log2_ns), .max = 63, .instead = LOG2_NONE},
	{FIELD(tag, syscall), .bias = 1, .max = INT16_MAX}, /* "none" becomes 0 */
	{FIELD(tag, object), DELTA, .ref = SECTION_STRINGS},
	{FIELD(tag, detail), DELTA, .ref = SECTION_STRINGS},
	{FIELD(tag, other), DELTA, .ref = SECTION_TASKS},
	{FIELD(tag, other_stack), DELTA, .ref = SECTION_STACKS},
	{FIELD(tag, size_class), .is_optional = true}, /* not in version 1.1 */
	{FIELD(tag, direct), DELTA, .ref = SECTION_TASKS, .is_optional = true}, /* since 1.4 */
	{FIELD(tag, direct_stack), DELTA, .ref = SECTION_STACKS, .is_optional = true},
};

static const struct assayfile_field mark_fields[] = {
	{FIELD(mark, time_ns), DELTA},
	{FIELD(mark, text), .ref = SECTION_STRINGS},
};

#define VEC_OF(name)                           \
	.vec = offsetof(struct profile, name), \
	.each_bytes = sizeof(*((struct profile *)NULL)->name.p)
#define COLUMNS(list) .fields = list, .nr = ARRAY_LEN(list)

const struct assayfile_columns assayfile_columns[ASSAYFILE_SECTIONS] = {
	[SECTION_STRINGS] = {VEC_OF(strings.strings), .least = 1},
	[SECTION_MODULES] = {VEC_OF(modules), .least = 7},
	[SECTION_MAPPINGS] = {VEC_OF(mappings), COLUMNS(mapping_fields), .least = 7},
	[SECTION_FUNCTIONS] = {VEC_OF(functions), COLUMNS(function_fields), .least = 5},
	[SECTION_LOCATIONS] = {VEC_OF(locations), COLUMNS(location_fields), .least = 3},
	[SECTION_NAMES] = {VEC_OF(symbolized_log), .least = 3},
	[SECTION_STACKS] = {VEC_OF(stacks), .least = 2},
	[SECTION_TASKS] = {VEC_OF(tasks), COLUMNS(task_fields), .least = 5},
	[SECTION_TAGS] = {VEC_OF(tags), COLUMNS(tag_fields), .least = 8},
	[SECTION_MARKS] = {VEC_OF(marks), COLUMNS(mark_fields), .least = 2},
};

const size_t assayfile_held_first[ASSAYFILE_SECTIONS] = {
	[SECTION_STRINGS] = 1,   [SECTION_MODULES] = 1, [SECTION_FUNCTIONS] = 1,
	[SECTION_LOCATIONS] = 1, [SECTION_STACKS] = 1,  [SECTION_TASKS] = 1,
	[SECTION_TAGS] = 1,
};

_Static_assert(sizeof(struct assayfile_vec) == sizeof(((struct profile *)NULL)->modules),
	       "struct assayfile_vec has the layout of a VEC");

struct assayfile_vec assayfile_vec(const struct profile *p, enum assayfile_section type)
{
	struct assayfile_vec v;
	memcpy(&v, (const uint8_t *)p + assayfile_columns[type].vec, sizeof(v));
	return v;
}
