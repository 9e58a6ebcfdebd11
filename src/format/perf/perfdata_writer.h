/*
 * State and steps of the perf.data writer. Used by its files only:
 *
 *	perfdata_write.c  the file: header, attributes, features, and records in order of time
 *	perfdata_place.c  addresses for locations, call chains for stacks
 */
#ifndef ASSAY_FORMAT_PERF_PERFDATA_WRITER_H
#define ASSAY_FORMAT_PERF_PERFDATA_WRITER_H

#include "base/base.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"
#include "format/perf/perfdata.h"
#include "model/profile.h"

/* A mapping, sorted by (module, pid, time) for lookup. */
struct pw_map {
	module_id module;
	int32_t pid;
	uint64_t from_ns;
	uint32_t mapping;
};

/* The call chain of a stack in a process, cached. */
struct pw_chain {
	int32_t pid;
	stack_id stack;
	uint32_t epoch; /* number of mappings of the process when it was made */
	uint32_t nr;
	size_t first;   /* index in chain_text */
	uint64_t ip;    /* address of the leaf */
	bool is_kernel; /* the leaf is kernel code */
};

struct pw_writer {
	const struct profile *p;
	struct perfdata_written stats;
	struct out *out; /* NULL: not seekable, everything is kept in data */
	struct buf data; /* records not yet written */
	uint64_t data_bytes;
	uint64_t now_ns;
	str_id now_comm; /* name of the thread of the current sample */
	unsigned nr_in_round;

	VEC(uint32_t) tables;
	VEC(struct pw_map) maps;
	VEC(uint32_t) first_map;   /* by module: its first index in maps; nr of modules + 1 */
	VEC(uint64_t) module_base; /* by module: range assigned to it, 0 = none */
	VEC(uint64_t) module_len;
	struct map
		guessed;  /* (pid, mapping or module) with an MMAP2 record that was not recorded */
	struct map comms; /* (pid, comm) of the profile's tasks */
	struct map parents; /* pid -> process that it is assumed to be a fork of */
	struct map epochs;  /* pid -> number of mappings written */
	struct map pids;    /* comm -> pid assigned to tasks without one */
	struct map names;   /* name of a frame without an address -> its index + 1 */
	struct map chain_index;
	VEC(struct pw_chain) chains;
	VEC(uint64_t) chain_text;
};

/* perfdata_place.c */
void pw_place_init(struct pw_writer *w);
void pw_place_release(struct pw_writer *w);
/* Returns the call chain of a stack in a process at now_ns. Valid until the next call. */
const struct pw_chain *pw_chain_of(struct pw_writer *w, int32_t pid, str_id comm, stack_id stack);
/* Writes symbols for the frames without an address; call before the first sample. */
void pw_write_names(struct pw_writer *w);

/* perfdata_write.c */
struct pw_region {
	int32_t pid;
	uint64_t start;
	uint64_t len;
	uint64_t pgoff;
};
void pw_add_mmap(struct pw_writer *w, const struct pw_region *at, const struct module *m);
void pw_add_ksymbol(struct pw_writer *w, uint64_t start, uint32_t len, struct sv name);

#endif
