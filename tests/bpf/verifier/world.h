/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a generated program is given: maps, a packet, a context. Each value and the
 * packet lie flush against a page that can't be touched, before or behind it. All of
 * it is made anew from a number, so that runs can be compared.
 */
#ifndef PB_TEST_WORLD_H
#define PB_TEST_WORLD_H
#include "bpf/core/host.h"
#include "bpf/core/packet.h"
#include "bpf/verifier/verify.h"
#include "generate.h"

#define WORLD_MOST_AREAS 64

struct area {
	char *at;
	uint32_t size;
	bool writable;
};

extern struct pb_bpf_map *world_maps[GEN_MAPS];
extern const struct pb_bpf_host world_host;

void world_make(void);
/* Values begin, or end, at an untouchable page; resolved programs know the addresses. */
void world_place(uint64_t seed);
/* The same with other addresses: what then gives something else depends on them. */
void world_elsewhere(bool yes);
/* As input number `input` has it. */
void world_reset(const struct pb_bpf_type *type, uint64_t input);
void *world_ctx(void);
/* The packet as the context has it now; size 0: there is none. */
struct area world_packet(void);
/* The packet itself, of types that have one. */
const struct pb_bpf_pkt *world_pkt(void);
/* It lies somewhere else from now on; where it was can't be touched any more. */
void world_move_packet(void);
/* Values of maps: how many areas. */
int world_values(struct area *areas);
/* A number of all that a program can have changed. */
uint64_t world_sum(void);
/* In place of a helper whose result is another one in each run, or which needs more than there is here; else itself. */
pb_bpf_fn world_random, *world_stand_in(pb_bpf_fn *fn);
/* Memory is mostly filled with these (the list stays the caller's), their halves and near ones; none: with anything. */
void world_use_words(const uint64_t *list, unsigned nr);
/* Packets with room before them, as in the kernel's test runs, in place of untouchable pages. */
void world_as_kernel(bool yes);
/* What a ring buffer's record holds before somebody writes it. */
void world_set_noise(uint8_t byte);
bool world_is_there(int map, uint32_t n);
char *world_element(int map, uint32_t n);
#endif
