/* Converts option arguments to values; see value.h. */
#include "base/base.h"
#include "base/opt/value.h"

#include <errno.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text/num.h"
#include "base/text/suggest.h"

bool opt_takes_arg(const struct opt *o)
{
	return o->kind >= OPT_KIND_STR && !(o->flags & OPT_NO_ARG);
}

int opt_to_duration(uint64_t *ret_ns, const char *text, struct err *err)
{
	if (clock_parse_duration(sv_from_str(text), ret_ns))
		return 0;
	err_set(err, -EINVAL, "'%s' is not a duration", text);
	(void)err_hint(err,
		       "a number of seconds, or one with ns, us, ms, s, m, h or d: 10, 1.5s, 7d");
	return -EINVAL;
}

int opt_to_size(uint64_t *ret_bytes, const char *text, struct err *err)
{
	if (num_parse_bytes(sv_from_str(text), ret_bytes))
		return 0;
	err_set(err, -EINVAL, "'%s' is not a size", text);
	(void)err_hint(err, "a number of bytes, or one with k, M, G or T: 4096, 64k, 1.5G");
	return -EINVAL;
}

static int to_u64(uint64_t *ret_v, const char *text, struct err *err)
{
	struct sv s = sv_from_str(text);
	bool is_hex = sv_has_prefix(s, SV("0x")) || sv_has_prefix(s, SV("0X"));
	if (is_hex ? sv_to_hex(s, ret_v) : sv_to_u64(s, ret_v))
		return 0;
	return err_set(err, -EINVAL, "'%s' is not a whole number", text);
}

/* The values that the command accepts are listed and suggested. */
static int set_enum(const struct opt_cmd *cmd, const struct opt *o, int *to, const char *arg,
		    struct err *err)
{
	struct suggest s = suggest_for(sv_from_str(arg));
	CLEANUP(buf_release) struct buf names = {0};
	for (const struct opt_choice *c = o->choices; c->name; c++) {
		if (!strcmp(c->name, arg)) {
			*to = c->value;
			return 0;
		}
		if (opt_why_excluded(cmd, o, c->name))
			continue;
		suggest_offer(&s, sv_from_str(c->name));
		buf_addf(&names, "%s%s", names.n ? ", " : "", c->name);
	}
	err_set(err, -EINVAL, "'%s' is not one of %s", arg, buf_str(&names));
	struct sv value = sv_from_str(arg);
	CLEANUP(free_p) char *name = xasprintf("--%s", o->long_name);
	if (opt_hint_other(err, cmd, sv_from_str(name), sv_split(&value, ',')))
		return -EINVAL;
	if (s.best.n)
		err_hint(err, "did you mean '%.*s'?", SV_ARGS(s.best));
	return -EINVAL;
}

static int check_unit(const struct opt *o, const char *arg, uint64_t ns, struct err *err)
{
	if (!(o->flags & OPT_NEEDS_UNIT) || !ns || arg[strcspn(arg, "dhmnsu")])
		return 0;
	(void)err_set(err, -EINVAL, "'%s' has no unit", arg);
	return err_hint(err, "add the unit: %sms, %ss, %sm, %sh or %sd", arg, arg, arg, arg, arg);
}

static int set_number(const struct opt *o, uint64_t *to, const char *arg, struct err *err)
{
	uint64_t v = 0;
	int rc = o->kind == OPT_KIND_DURATION ? opt_to_duration(&v, arg, err)
		 : o->kind == OPT_KIND_SIZE   ? opt_to_size(&v, arg, err)
					      : to_u64(&v, arg, err);
	if (rc && o->flags & OPT_NEEDS_UNIT)
		(void)err_hint(err, "a number with ns, us, ms, s, m, h or d: 500ms, 1.5s, 7d");
	TRY(rc);
	if (o->kind == OPT_KIND_DURATION)
		TRY(check_unit(o, arg, v, err));
	if (v < o->min)
		return err_set(err, -EINVAL, "%" PRIu64 " is below %" PRIu64, v, o->min);
	if (o->max && v > o->max)
		return err_set(err, -EINVAL, "%" PRIu64 " is over %" PRIu64, v, o->max);
	*to = v;
	return 0;
}

static int set_value(const struct opt_cmd *cmd, const struct opt *o, void *to, const char *arg,
		     struct err *err)
{
	void *at = (char *)to + o->at;
	if (arg && !*arg && !(o->flags & OPT_EMPTY_OK))
		return opt_refuse_empty(err, "its argument");
	switch (o->kind) {
	case OPT_KIND_END:
		break;
	case OPT_KIND_FLAG:
		*(bool *)at = true;
		break;
	case OPT_KIND_COUNT:
		++*(int *)at;
		break;
	case OPT_KIND_SET:
		*(int *)at = o->value;
		break;
	case OPT_KIND_BITS:
		*(unsigned *)at |= (unsigned)o->value;
		break;
	case OPT_KIND_STR:
		*(const char **)at = arg ? arg : o->absent;
		break;
	case OPT_KIND_U64:
	case OPT_KIND_DURATION:
	case OPT_KIND_SIZE:
		return set_number(o, at, arg, err);
	case OPT_KIND_DOUBLE:
		if (!sv_to_double(sv_from_str(arg), at))
			return err_set(err, -EINVAL, "'%s' is not a number", arg);
		break;
	case OPT_KIND_LIST:
		vec_push((struct opt_list *)at, arg);
		break;
	case OPT_KIND_ENUM:
		return set_enum(cmd, o, at, arg, err);
	case OPT_KIND_CALL:
		return o->call(to, arg, err);
	}
	return 0;
}

int opt_refuse_empty(struct err *err, const char *what)
{
	(void)err_set(err, -EINVAL, "%s is empty", what);
	(void)err_hint(err, "is a variable of the shell not set?");
	return -EINVAL;
}

int opt_set_value(const struct opt_cmd *cmd, const struct opt *o, void *to, const char *arg,
		  struct err *err)
{
	int rc = set_value(cmd, o, to, arg, err);
	if (!rc)
		return 0;
	if (o->long_name)
		return err_wrap(err, "option '--%s'", o->long_name);
	return err_wrap(err, "option '-%c'", o->short_name);
}

static int to_bool(bool *ret_v, const char *text, struct err *err)
{
	static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (!strcmp(text, words[i])) {
			*ret_v = i % 2;
			return 0;
		}
	return err_set(err, -EINVAL, "'%s' is neither yes nor no", text);
}

int opt_set_preset(const struct opt_cmd *cmd, const struct opt *o, void *to,
		   const struct opt_preset *p, struct err *err)
{
	int rc = o->kind == OPT_KIND_FLAG ? to_bool((bool *)((char *)to + o->at), p->value, err)
					  : set_value(cmd, o, to, p->value, err);
	return rc ? err_wrap(err, "%s", p->origin) : 0;
}

const struct opt *opt_of_group(const struct opt_group *g, const char *long_name)
{
	const struct opt *o = g->opts;
	while (o->kind && (!o->long_name || strcmp(o->long_name, long_name) != 0))
		o++;
	ASSERT(o->kind);
	return o;
}

int opt_check_preset(const struct opt_preset *p, struct err *err)
{
	static const struct opt_cmd none = {0};
	struct opt o = *opt_of_group(p->group, p->long_name);
	union {
		bool is_true;
		int n;
		unsigned bits;
		const char *text;
		uint64_t u;
		double d;
		struct opt_list list;
	} value = {.list = {0}};
	ASSERT(o.kind != OPT_KIND_CALL);
	o.at = 0;
	int rc = opt_set_preset(&none, &o, &value, p, err);
	if (o.kind == OPT_KIND_LIST)
		vec_release(&value.list);
	return rc;
}
