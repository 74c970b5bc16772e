/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The input of a generated program: maps, a packet, a context. An inaccessible page is right before
 * or right after each map value and the packet. world_reset() makes all contents anew from the
 * input's number, so runs can be compared.
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
/* Places values so that they begin or end at an inaccessible page. Resolved programs contain
 * addresses, so world_place() must be called before programs are resolved. */
void world_place(uint64_t seed);
/* If `yes` is true, places everything at other addresses. A result that changes depends on
 * addresses. */
void world_elsewhere(bool yes);
/* Fills maps, packet and context with the contents of input number `input`. */
void world_reset(const struct pb_bpf_type *type, uint64_t input);
void *world_ctx(void);
/* Returns the current packet of the context. If there is no packet, the size is 0. */
struct area world_packet(void);
/* Returns the packet's descriptor, for program types that have a packet. */
const struct pb_bpf_pkt *world_pkt(void);
/* Moves the packet to another page, and makes the old page inaccessible. */
void world_move_packet(void);
/* Lists the values of maps and the reserved records. Returns the number of areas. */
int world_values(struct area *areas);
/* Returns a hash of all memory that a program can change. */
uint64_t world_sum(void);
/* world_stand_in() returns the test's replacement for a helper. If a helper has no replacement,
 * returns fn itself. world_random() replaces the helper for random numbers, so that runs can be
 * compared. Helpers of ring buffers are replaced to guard each record's memory. */
pb_bpf_fn world_random, *world_stand_in(pb_bpf_fn *fn);
/* Sets a list of numbers. Most memory is filled with these numbers and their 32-bit halves. If the
 * list is empty, memory is filled with random numbers. The caller must keep the list in memory. */
void world_use_words(const uint64_t *list, unsigned nr);
/* If `yes` is true, there is room before packets, as in the kernel's test runs. If false, an
 * inaccessible page is right before or right after the packet. */
void world_as_kernel(bool yes);
/* Sets the byte that fills new records of the ring buffer. */
void world_set_noise(uint8_t byte);
/* Returns whether element n of the map exists. */
bool world_is_there(int map, uint32_t n);
/* Returns the address of the value of element n, even if the element doesn't exist. */
char *world_element(int map, uint32_t n);
#endif
