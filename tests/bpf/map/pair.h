/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A pair of maps: a map of this kernel, and our map with the same attributes. A test applies an
 * operation to both maps and compares the results. Each difference is printed and counted.
 */
#ifndef TESTS_BPF_PAIR_H
#define TESTS_BPF_PAIR_H
#include "bpf/map/map_file.h"
#include "bpf/map/map_sys.h"
#include "kernel.h"

#define NR_INNER 3

struct pair {
	struct pb_bpf_map_spec spec;
	struct pb_bpf_map ours;
	int fd;
	uint64_t value_size;	/* size of a value for user space (per-CPU maps: of all slots) */
	const char *op;
	uint64_t seed;
	/* for maps of maps: our handle is an index into inner[], the kernel's handle is a
	 * descriptor in inner_fd[] */
	struct pb_bpf_map inner[NR_INNER];
	int inner_fd[NR_INNER];
	uint32_t inner_id[NR_INNER];
	struct pb_bpf_objects objects;
};

/* the numbers of differences and of comparisons */
extern uint64_t pair_failures, pair_checks;

/* Makes both maps, and the inner maps. Compares the two results. The caller must have set p->spec
 * and p->seed. Returns whether both maps exist. */
bool pair_make(struct pair *p);
/* `made` is pair_make()'s result. */
void pair_unmake(struct pair *p, bool made);

/* Compare a result of the kernel's map with our result. p->op names the operation. */
void pair_same(struct pair *p, long kernel, long ours);
void pair_same_bytes(struct pair *p, const void *kernel, const void *ours, size_t n);

bool pair_is(const struct pair *p, uint32_t type);
bool pair_is_hash(const struct pair *p);
bool pair_of_maps(const struct pair *p);
/* For a map of maps, replaces the id in a value by the index of the inner map. An inner map has
 * different ids in the kernel and in Patchbay. */
void pair_ids_to_numbers(const struct pair *p, void *value);

/* Returns the result of a system call, or -errno. */
static inline long kernel_ret(long ret)
{
	return ret < 0 ? -errno : ret;
}

/* Applies the command cmd of bpf(2) to an element of the kernel's map fd. Returns the result, or
 * -errno. */
long pair_kernel_elem(int cmd, int fd, const void *key, void *value, uint64_t flags);
#endif
