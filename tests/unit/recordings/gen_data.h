/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes synthetic data directories. A directory is valid, or broken in one chosen way. An error
 * ends the program, since only tests use these functions.
 *
 * Times are in ticks. gen_begin() sets the clock: two ticks are a nanosecond, and the recording
 * starts at tick GEN_START.
 */
#ifndef GEN_DATA_H
#define GEN_DATA_H
#include <stddef.h>
#include <stdint.h>
#include "abi/record.h"
#include "abi/datadir.h"
#include "abi/ring.h"

#define GEN_START 1000000ull

struct gen {
	char dir[4000];
	int chunks, meta;
	struct pb_chunk head;
	uint64_t words[(PB_CHUNK_SIZE - PB_CHUNK_HEADER) / 8];
	uint32_t nr;
	uint64_t last;
};

/* gen_begin() makes the directory. It writes a session with the given tracer and clock, and one
 * CLOCK record. gen_end() writes a second CLOCK record and an END record. */
void gen_begin(struct gen *g, const char *dir, const char *tracer, const char *clock);
void gen_end(struct gen *g, uint64_t time);
void gen_close(struct gen *g);			/* replaces gen_end() if the data must look as if
						 * the recorder had been killed */

/* Writes a record of the meta file. tail: a text that follows the body, or NULL. */
void gen_meta(struct gen *g, uint32_t type, const void *body, size_t len, const char *tail);
void gen_image(struct gen *g, uint32_t image, uint32_t pid, const char *path);
/* Writes modules/NUMBER with nr functions. The first function is at 0x1000, and each function has
 * 256 bytes. The module's load bias is `bias`. */
void gen_module(struct gen *g, uint32_t image, uint32_t module, uint32_t pid, uint32_t first_site,
		uint64_t bias, const char *const *names, uint32_t nr);
void gen_thread(struct gen *g, uint32_t serial, uint32_t pid, uint32_t tid, const char *comm,
		uint64_t lost, uint64_t no_return);

/* Writes the record of a thread that lost nothing. Its first hit was at `start`. */
void gen_born(struct gen *g, uint32_t serial, uint32_t pid, uint32_t tid, uint64_t start);

/* Begins a chunk. Its head may be changed until gen_chunk_write(). */
void gen_chunk(struct gen *g, uint32_t serial, uint32_t tid, uint64_t seq, uint64_t start);
void gen_chunk_write(struct gen *g);
/* Writes the chunk's first records to the file `open`, as the only copy of an open chunk. The chunk
 * is HELD, and g->head is the copy's header. */
void gen_chunk_copy(struct gen *g, uint32_t records);
void gen_word(struct gen *g, uint64_t word);
void gen_leaf(struct gen *g, uint32_t site, uint64_t start, uint64_t end);
void gen_entry(struct gen *g, uint32_t site, uint64_t time);
void gen_exit(struct gen *g, uint32_t site, uint64_t time);
void gen_ext(struct gen *g, enum pb_ext_type type, uint32_t site, uint64_t time);
void gen_ext1(struct gen *g, enum pb_ext_type type, uint32_t site, uint64_t time, uint64_t payload);
void gen_tail_leaf(struct gen *g, uint32_t site, uint64_t start, uint64_t end);
void gen_long(struct gen *g, uint32_t site, uint64_t start, uint64_t end);

/* Writes the scenario `name`, for golden files and benchmarks. n is the number of calls in the
 * scenarios for benchmarks. Returns -1 if there is no scenario `name`. */
int gen_scenario(const char *name, const char *dir, uint64_t n);
extern const char *const gen_scenarios[];
#endif
