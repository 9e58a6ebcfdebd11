/* Command lines: any words, separated by NULs, against a table with every kind of option. */
#include "base/base.h"

#include "base/mem.h"
#include "base/opt/opt.h"
#include "base/vec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct all {
	bool flag;
	int count;
	int set;
	const char *text;
	const char *maybe;
	uint64_t number;
	double ratio;
	uint64_t duration_ns;
	uint64_t bytes;
	struct opt_list list;
	int choice;
};

static const struct opt_choice choices[] = {{"one", 1, NULL}, {"two", 2, "the second"}, {0}};

static const struct opt table[] = {
	OPT_FLAG('a', "flag", struct all, flag, "a flag"),
	OPT_COUNT('v', "verbose", struct all, count, "more"),
	OPT_SET('s', "set", struct all, set, 3, "three"),
	OPT_STR('o', "output", struct all, text, "FILE", "where"),
	OPT_STR_OPTIONAL('m', "maybe", struct all, maybe, "X", "none", "perhaps"),
	OPT_U64_IN('F', "freq", struct all, number, 1, 100000, "HZ", "rate"),
	OPT_DOUBLE('r', "ratio", struct all, ratio, "R", "ratio"),
	OPT_DURATION('d', "delay", struct all, duration_ns, "TIME", "wait"),
	OPT_SIZE('z', "size", struct all, bytes, "SIZE", "limit"),
	OPT_LIST('t', "thread", struct all, list, "NAME", "only"),
	OPT_ENUM('c', "choice", struct all, choice, choices, "C", "which"),
	OPT_END,
};
static const struct opt_group group = {"All", table};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	CLEANUP(free_p) char *text = xcalloc(n + 1, 1);
	char name[] = "x";
	VEC(char *) argv = {0};
	vec_push(&argv, name);
	if (n)
		memcpy(text, data, n);
	for (size_t i = 0; i < n; i += strlen(text + i) + 1)
		vec_push(&argv, text + i);
	int argc = (int)argv.n;
	vec_push(&argv, NULL);

	struct all o = {0};
	const struct opt_cmd cmd = {.name = "x", .usage = {"x"}, .groups = {{&group, &o}}};
	CLEANUP(opt_args_release) struct opt_args args = {0};
	CLEANUP(err_release) struct err err = {0};
	int rc = opt_parse(&args, &cmd, argc, argv.p, &err);
	ASSERT((rc == 0) == (err.msg == NULL));
	if (!rc) {
		ASSERT(!o.number || o.number <= 100000);
		ASSERT(args.operands.n + (size_t)args.nr_command < argv.n);
	}
	vec_release(&argv);
	return 0;
}
