/*
 * What the files of the perf.data writer share; nobody else includes it.
 *
 *	perfdata_write.c  the file: header, attributes, features, and the walk along the time
 *	perfdata_place.c  locations -> addresses, stacks -> call chains
 */
#ifndef ASSAY_FORMAT_PERF_PERFDATA_WRITE_H
#define ASSAY_FORMAT_PERF_PERFDATA_WRITE_H

#include "base/base.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"
#include "format/perf/perfdata.h"
#include "model/profile.h"

/* A mapping, in the order of (module, pid, time), for the search. */
struct pw_map {
	module_id module;
	int32_t pid;
	uint64_t from_ns;
	uint32_t mapping;
};

struct pw_chain {
	int32_t pid;
	stack_id stack;
	uint32_t epoch;
	uint32_t nr;
	size_t first; /* in chain_text */
	uint64_t ip;
	bool is_kernel; /* the leaf */
};

struct pw_writer {
	const struct profile *p;
	struct perfdata_written stats;
	struct out *out; /* NULL: it cannot be patched, data keeps everything */
	struct buf data; /* records not yet written */
	uint64_t data_bytes;
	uint64_t now_ns;
	str_id now_comm; /* of the thread whose stack is being placed */
	unsigned nr_in_round;

	VEC(uint32_t) tables;
	VEC(struct pw_map) maps;
	VEC(uint32_t) first_map;   /* by module, into maps; one more than modules */
	VEC(uint64_t) module_base; /* where a module without a mapping is put; 0 = nowhere */
	VEC(uint64_t) module_len;
	struct map guessed; /* (pid, mapping or module) that was given a MMAP2 */
	struct map comms;   /* (pid, comm) that there are */
	struct map parents; /* pid -> the process that it is taken for a fork of */
	struct map epochs;  /* pid -> number of mappings written */
	struct map pids;    /* comm -> pid for tasks that have none */
	struct map names;   /* name of a frame without an address -> its index + 1 */
	struct map chain_index;
	VEC(struct pw_chain) chains;
	VEC(uint64_t) chain_text;
};

/* perfdata_place.c */
void pw_place_init(struct pw_writer *w);
void pw_place_release(struct pw_writer *w);
/* The chain of a stack in a process, now. Valid until the next call. */
const struct pw_chain *pw_chain_of(struct pw_writer *w, int32_t pid, str_id comm, stack_id stack);
/* Symbols for the frames without an address, to be written before the first sample. */
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
