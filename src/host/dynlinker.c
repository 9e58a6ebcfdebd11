/* The dynamic linker's state; see dynlinker.h. */
#include "base/base.h"
#include "host/dynlinker.h"

#include <elf.h>
#include <errno.h>
#include <link.h>

#include "base/buf.h"
#include "host/procmem.h"
#include "host/reader/hostfile.h"

#define AUXV_MAX    4096u
#define PHDRS_MAX   64u
#define DYNAMIC_MAX 1024u

uint64_t dynlinker_tag(int mem_fd, uint64_t dynamic, int64_t tag, bool *ret_has_tag)
{
	Elf64_Dyn d;
	if (ret_has_tag)
		*ret_has_tag = false;
	for (unsigned i = 0; dynamic && i < DYNAMIC_MAX; i++) {
		if (host_read_mem(mem_fd, dynamic + i * sizeof(d), &d, sizeof(d)) ||
		    d.d_tag == DT_NULL)
			break;
		if (d.d_tag != tag)
			continue;
		if (ret_has_tag)
			*ret_has_tag = true;
		return d.d_un.d_val;
	}
	return 0;
}

uint64_t dynlinker_dynamic(int mem_fd, uint64_t phdr, uint64_t nr_phdr, uint64_t base,
			   uint64_t *ret_bias)
{
	Elf64_Phdr p;
	uint64_t dynamic = 0;
	uint64_t bias = base;
	for (uint64_t i = 0; i < MIN(nr_phdr, PHDRS_MAX); i++) {
		if (host_read_mem(mem_fd, phdr + i * sizeof(p), &p, sizeof(p)))
			return 0;
		if (p.p_type == PT_PHDR)
			bias = phdr - p.p_vaddr;
		else if (p.p_type == PT_DYNAMIC)
			dynamic = p.p_vaddr;
	}
	*ret_bias = bias;
	return dynamic ? dynamic + bias : 0;
}

int dynlinker_find(struct dynlinker *ret_d, int32_t pid, int mem_fd)
{
	char path[64];
	CLEANUP(buf_release) struct buf text = {0};
	*ret_d = (struct dynlinker){0};
	(void)snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
	TRY(hostfile_read_text(&text, path, AUXV_MAX, NULL));
	uint64_t phdr = 0;
	uint64_t nr_phdr = 0;
	uint64_t bias;
	uint64_t any = 0;
	for (size_t at = 0; at + sizeof(Elf64_auxv_t) <= text.n; at += sizeof(Elf64_auxv_t)) {
		Elf64_auxv_t a;
		memcpy(&a, text.p + at, sizeof(a));
		any |= a.a_type;
		if (a.a_type == AT_BASE)
			ret_d->base = a.a_un.a_val;
		else if (a.a_type == AT_ENTRY)
			ret_d->entry = a.a_un.a_val;
		else if (a.a_type == AT_PHDR)
			phdr = a.a_un.a_val;
		else if (a.a_type == AT_PHNUM)
			nr_phdr = a.a_un.a_val;
	}
	ret_d->dynamic = dynlinker_dynamic(mem_fd, phdr, nr_phdr, 0, &bias);
	/* While the kernel maps the program, auxv holds only its terminator (zeros). */
	return ret_d->entry ? 0 : any ? -ENOEXEC : -EAGAIN;
}

enum dynlinker_state dynlinker_state(const struct dynlinker *d, int mem_fd, uint64_t *ret_map)
{
	struct r_debug debug;
	bool has_tag = false;
	if (ret_map)
		*ret_map = 0;
	uint64_t at = dynlinker_tag(mem_fd, d->dynamic, DT_DEBUG, &has_tag);
	if (!d->base || !has_tag)
		return DYNLINKER_UNKNOWN;
	if (!at || host_read_mem(mem_fd, at, &debug, sizeof(debug)) || !debug.r_version ||
	    !debug.r_map)
		return DYNLINKER_LOADING;
	if (ret_map)
		*ret_map = (uint64_t)(uintptr_t)debug.r_map;
	return debug.r_state == RT_CONSISTENT ? DYNLINKER_CONSISTENT : DYNLINKER_LOADING;
}
