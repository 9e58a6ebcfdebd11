/* Names of threads that differ in numbers alone; see threadnames.h. */
#include "base/base.h"
#include "model/threadnames.h"

#define NUMBERS_MAX 31 /* of a name; the rest is one number */

void threadnames_release(struct threadnames *t)
{
	intern_release(&t->shapes);
	intern_release(&t->texts);
	vec_release(&t->all);
	buf_release(&t->scratch);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Returns the next number of a name, or NULL; *ret_n is its length. */
static const char *next_number(const char *s, size_t *ret_n)
{
	while (*s && !is_digit(*s))
		s++;
	for (*ret_n = 0; is_digit(s[*ret_n]);)
		++*ret_n;
	return *ret_n ? s : NULL;
}

/* Sets @to to the name with '#' for the numbers in @mask. */
static void mask_numbers(struct buf *to, const char *name, uint32_t mask)
{
	size_t n;
	buf_clear(to);
	const char *number;
	for (unsigned i = 0; (number = next_number(name, &n));
	     i = MIN(i + 1, (unsigned)NUMBERS_MAX)) {
		buf_add(to, name, (size_t)(number - name));
		if (mask >> i & 1)
			buf_add_ch(to, '#');
		else
			buf_add(to, number, n);
		name = number + n;
	}
	buf_add_str(to, name);
}

/* Returns the numbers in which two names of one shape differ. */
static uint32_t differing(const char *a, const char *b)
{
	size_t na;
	size_t nb;
	uint32_t mask = 0;
	for (unsigned i = 0; (a = next_number(a, &na)) && (b = next_number(b, &nb));
	     i = MIN(i + 1, (unsigned)NUMBERS_MAX)) {
		mask |= (uint32_t)(na != nb || memcmp(a, b, na) != 0) << i;
		a += na;
		b += nb;
	}
	return mask;
}

static struct threadnames_shape *shape_of(struct threadnames *t, const char *name)
{
	mask_numbers(&t->scratch, name, UINT32_MAX);
	uint32_t id = intern_add(&t->shapes, buf_str(&t->scratch), t->scratch.n);
	while (t->all.n <= id)
		(void)vec_add(&t->all);
	return &t->all.p[id];
}

void threadnames_add(struct threadnames *t, const char *name)
{
	struct threadnames_shape *shape = shape_of(t, name);
	if (!shape->name)
		shape->name = intern_add_str(&t->texts, name);
	shape->varies |= differing(intern_str(&t->texts, shape->name), name);
}

void threadnames_get(struct threadnames *t, const char *name, struct buf *to)
{
	mask_numbers(to, name, shape_of(t, name)->varies);
}
