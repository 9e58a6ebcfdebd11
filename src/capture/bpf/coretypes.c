/* Copies the types that the BPF object uses out of the kernel's BTF; see coretypes.h. */
#include "base/base.h"
#include "capture/bpf/coretypes.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"

#define FLAVOR "___" /* separates the type's name from the flavor suffix */
/* Limit of nested structures; those of the kernel are far less deep. */
#define DEPTH_MAX 64

struct copier {
	const struct btf *from;
	struct btf *to;
	uint32_t *ids; /* by type id in `from`: its id in `to`, 0 = not copied */
	struct map names;
};

static void copier_release(struct copier *c)
{
	btf__free(c->to);
	free(c->ids);
	map_release(&c->names);
}

static bool is_composite(const struct btf_type *t)
{
	return btf_is_struct(t) || btf_is_union(t);
}

static void collect_names(struct copier *c, const struct btf *object)
{
	for (uint32_t id = 1; id < btf__type_cnt(object); id++) {
		const struct btf_type *t = btf__type_by_id(object, id);
		const char *name = btf__name_by_offset(object, t->name_off);
		if (!is_composite(t) || !name || !*name)
			continue;
		const char *end = strstr(name, FLAVOR);
		size_t n = end ? (size_t)(end - name) : strlen(name);
		bool is_new;
		*map_put(&c->names, hash_bytes(name, n), &is_new) = 1;
	}
}

static int copy(struct copier *c, uint32_t id, unsigned depth);

/* Copies the types of members first: fields can be added to the last type only. */
static int copy_composite(struct copier *c, const struct btf_type *t, const char *name,
			  unsigned depth)
{
	const struct btf_member *members = btf_members(t);
	for (uint32_t i = 0; i < btf_vlen(t); i++) {
		int rc = copy(c, members[i].type, depth + 1);
		if (rc < 0)
			return rc;
	}
	int id = btf_is_struct(t) ? btf__add_struct(c->to, name, t->size)
				  : btf__add_union(c->to, name, t->size);
	for (uint32_t i = 0; id > 0 && i < btf_vlen(t); i++) {
		int rc = btf__add_field(c->to, btf__name_by_offset(c->from, members[i].name_off),
					(int)c->ids[members[i].type], btf_member_bit_offset(t, i),
					btf_member_bitfield_size(t, i));
		if (rc)
			return rc;
	}
	return id;
}

static int copy_array(struct copier *c, const struct btf_type *t, unsigned depth)
{
	const struct btf_array *a = btf_array(t);
	int idx = copy(c, a->index_type, depth + 1);
	int elem = copy(c, a->type, depth + 1);
	return idx < 0 || elem < 0 ? -1 : btf__add_array(c->to, idx, elem, a->nelems);
}

/* Target types of pointers and names of enumerators do not matter for field offsets. */
static int copy_kind(struct copier *c, const struct btf_type *t, unsigned depth)
{
	const char *name = btf__name_by_offset(c->from, t->name_off);
	int of;
	switch (btf_kind(t)) {
	case BTF_KIND_INT:
		return btf__add_int(c->to, name, t->size, btf_int_encoding(t));
	case BTF_KIND_FLOAT:
		return btf__add_float(c->to, name, t->size);
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		return btf__add_enum(c->to, name, t->size);
	case BTF_KIND_PTR:
		return btf__add_ptr(c->to, 0);
	case BTF_KIND_ARRAY:
		return copy_array(c, t, depth);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return copy_composite(c, t, name, depth);
	case BTF_KIND_TYPEDEF:
		of = copy(c, t->type, depth + 1);
		return of < 0 ? of : btf__add_typedef(c->to, name, of);
	case BTF_KIND_CONST:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
		return copy(c, t->type, depth + 1);
	default:
		return 0;
	}
}

/* Copies a type. Returns its id in the copy; 0: void; < 0: it cannot be copied. */
static int copy(struct copier *c, uint32_t id, unsigned depth)
{
	if (!id || c->ids[id])
		return (int)c->ids[id];
	const struct btf_type *t = btf__type_by_id(c->from, id);
	if (!t || depth > DEPTH_MAX)
		return -1;
	int copied = copy_kind(c, t, depth);
	if (copied > 0)
		c->ids[id] = (uint32_t)copied;
	return copied;
}

static bool copy_named(struct copier *c)
{
	uint32_t nr = btf__type_cnt(c->from);
	for (uint32_t id = 1; id < nr; id++) {
		const struct btf_type *t = btf__type_by_id(c->from, id);
		if (!is_composite(t) || !t->name_off)
			continue;
		const char *name = btf__name_by_offset(c->from, t->name_off);
		if (map_get(&c->names, hash_bytes(name, strlen(name))) && copy(c, id, 0) < 0)
			return false;
	}
	return true;
}

static int to_file(const struct btf *btf)
{
	uint32_t nr_bytes;
	const void *raw = btf__raw_data(btf, &nr_bytes);
	int fd = raw ? memfd_create("btf", MFD_CLOEXEC) : -1;
	if (fd >= 0 && write(fd, raw, nr_bytes) != (ssize_t)nr_bytes) {
		close(fd);
		return -1;
	}
	return fd;
}

int coretypes_open(const void *elf, size_t nr_bytes, const struct btf *kernel)
{
	struct bpf_object *o = bpf_object__open_mem(elf, nr_bytes, NULL);
	CLEANUP(copier_release) struct copier c = {.from = kernel};
	if (!o)
		return -1;
	if (bpf_object__btf(o))
		collect_names(&c, bpf_object__btf(o));
	bpf_object__close(o);
	c.to = btf__new_empty();
	if (!c.from || !c.to)
		return -1;
	c.ids = xcalloc(btf__type_cnt(c.from), sizeof(*c.ids));
	return copy_named(&c) ? to_file(c.to) : -1;
}
