/*
 * The ELF reader: any input gives sections, symbols and PLT entries within bounds, or an error.
 * Reads every byte of every section and looks up every symbol by its start address.
 */
#include "base/base.h"

#include "base/hash.h"
#include "object/debugfile.h"
#include "object/elf.h"
#include "symbol/callscan.h"
#include "symbol/dwarf/dwarf.h"
#include "symbol/plt.h"
#include "object/sdtnotes.h"
#include "symbol/symtab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static volatile uint64_t sink;

static void touch_sections(struct elf *e)
{
	size_t nr;
	const struct elf_section *s = elf_sections(e, &nr);
	for (size_t i = 0; i < nr; i++) {
		struct sv bytes;
		sink += hash_bytes(s[i].name.p, s[i].name.n);
		if (!elf_section_bytes(e, &s[i], &bytes, NULL))
			sink += hash_bytes(bytes.p, bytes.n);
	}
	uint8_t id[ELF_BUILD_ID_MAX];
	sink += elf_build_id(e, id);
}

static void touch_addresses(const struct elf *e)
{
	size_t nr;
	const struct elf_segment *s = elf_segments(e, &nr);
	for (size_t i = 0; i < nr && i < 64; i++) {
		uint64_t offset;
		uint64_t vaddr;
		if (!elf_offset_from_vaddr(e, s[i].vaddr, &offset))
			continue;
		/* the reverse lookup may find another segment with the same offset */
		if (elf_vaddr_from_offset(e, offset, &vaddr))
			sink += vaddr;
	}
}

static void touch_symbols(const struct symtab *t, const struct elf *e)
{
	size_t nr;
	const struct elf_segment *s = elf_segments(e, &nr);
	for (size_t i = 0; i < nr && i < 64; i++) {
		struct symtab_hit hit;
		uint64_t at = s[i].vaddr;
		for (int k = 0; k < 64; k++, at += 1 + s[i].nr_mem_bytes / 64) {
			if (!symtab_find(t, at, &hit))
				continue;
			ASSERT(hit.start <= at && at < hit.end);
			sink += hash_bytes(hit.name.p, hit.name.n);
			ASSERT(!hit.name.n || symtab_has_alias(t, hit.start, hit.name));
		}
	}
}

static int touch_note(void *ctx, const struct sdt_note *note, struct err *err)
{
	(void)ctx;
	(void)err;
	sink += hash_bytes(note->provider.p, note->provider.n) ^
		hash_bytes(note->name.p, note->name.n) ^ note->offset ^ note->semaphore_offset;
	return 0;
}

static void take_frames(void *ctx, size_t query, const struct dwarf_frame *frames, size_t nr)
{
	(void)ctx;
	for (size_t i = 0; i < nr; i++)
		sink += query + hash_bytes(frames[i].linkage.p, frames[i].linkage.n) +
			hash_bytes(frames[i].file.p, frames[i].file.n);
}

/* Looks up a few addresses, then all units. */
static void touch_dwarf(struct elf *e)
{
	struct dwarf *d = NULL;
	uint64_t vaddrs[16];
	if (dwarf_new(&d, e, "none", NULL, 1, NULL) || !d)
		return;
	for (size_t i = 0; i < ARRAY_LEN(vaddrs); i++)
		vaddrs[i] = elf_entry(e) + i * 3;
	for (size_t nr = 1; nr <= ARRAY_LEN(vaddrs); nr *= 16)
		(void)dwarf_query(d, vaddrs, nr, 0, take_frames, NULL, NULL);
	dwarf_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	CLEANUP(elf_free_p) struct elf *e = NULL;
	CLEANUP(elf_free_p) struct elf *mini = NULL;
	if (elf_open_bytes(&e, data, n, NULL))
		return 0;
	touch_sections(e);
	touch_addresses(e);
	touch_dwarf(e);
	(void)debugfile_mini(&mini, e, NULL);
	(void)sdt_notes(e, touch_note, NULL, NULL);
	struct symtab *t = symtab_new();
	(void)symtab_add_elf(t, e, SYMTAB_STATIC, 1, NULL, NULL);
	(void)symtab_add_elf(t, e, SYMTAB_DYNAMIC, 2, NULL, NULL);
	symtab_seal(t);
	touch_symbols(t, e);
	struct symtab *plt = symtab_new();
	(void)plt_add(plt, e, t, 3, NULL);
	(void)callscan_add(plt, e, 4, NULL);
	symtab_seal(plt);
	touch_symbols(plt, e);
	symtab_free(t);
	symtab_free(plt);
	return 0;
}
