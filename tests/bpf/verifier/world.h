/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a generated program gets: maps, a packet, a context. Each map value and the packet
 * adjoin an inaccessible page, which lies before or after them. For each run everything is
 * made anew from a number, so that runs can be compared.
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
/* Lets values begin or end at an inaccessible page. Call it first: resolved programs contain addresses. */
void world_place(uint64_t seed);
/* Puts everything at other addresses. A result that then changes depends on addresses. */
void world_elsewhere(bool yes);
/* Fills everything with input number `input`. */
void world_reset(const struct pb_bpf_type *type, uint64_t input);
void *world_ctx(void);
/* The packet as the context has it now; size 0: there is no packet. */
struct area world_packet(void);
/* The packet itself, for program types that have one. */
const struct pb_bpf_pkt *world_pkt(void);
/* Moves the packet elsewhere, and makes its old page inaccessible. */
void world_move_packet(void);
/* Lists the values of maps and the reserved records. Returns how many. */
int world_values(struct area *areas);
/* A hash of all that a program can have changed. */
uint64_t world_sum(void);
/* world_stand_in() returns the test's replacement for a helper, or fn itself if there is none. The random number helper
 * is replaced by world_random(), so that runs can be compared; helpers of ring buffers, to guard each record's memory. */
pb_bpf_fn world_random, *world_stand_in(pb_bpf_fn *fn);
/* Sets the numbers with which memory is mostly filled, whole or as 32-bit halves. The caller keeps the list. If it is
 * empty, memory is filled with random numbers. */
void world_use_words(const uint64_t *list, unsigned nr);
/* yes: packets have room before them, as in the kernel's test runs, instead of an inaccessible page. */
void world_as_kernel(bool yes);
/* The byte that fills a new record of the ring buffer. */
void world_set_noise(uint8_t byte);
bool world_is_there(int map, uint32_t n);
char *world_element(int map, uint32_t n);
#endif
