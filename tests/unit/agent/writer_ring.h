/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * For tests of the writer: a ring with one writer, and checks of the ring. Call make_ring() once,
 * and begin() before each round. Then write records with put() and read them with drain() and
 * check_all(). Both drain() and check_all() take an array of 256 elements, which is zero at the
 * start of a round. Element N counts the chunks with sequence number N. Signal handlers may call
 * put() and fill_chunk(), too.
 */
#ifndef PB_TEST_WRITER_RING_H
#define PB_TEST_WRITER_RING_H
#include <stdbool.h>
#include <stdint.h>

#include "ring/writer.h"

#define CHUNKS		24
#define CHUNKS_AT	(8 * PB_CHUNK_SIZE)
#define SIZE		(CHUNKS_AT + CHUNKS * PB_CHUNK_SIZE)
#define MAX_RECORDS	200000

/* Kinds of records. ESCAPE: a short record whose time doesn't fit into it. */
enum kind { SHORT, ENTRY, LONG, ESCAPE };

extern uint8_t *ring;
extern struct pb_writer w;
extern uint32_t next_record;		/* the number of the next record */
extern uint8_t done[MAX_RECORDS];	/* whether the record was written completely */
extern long at;				/* tests single-step the writer: the number of the
					 * instruction at which the test's signal handler
					 * runs; for messages */
extern bool may_close;			/* a FULL chunk may have been closed before it was full */

/* Maps the ring. Children share it. */
void make_ring(void);

/* Makes a new ring. zeroing: the ring's chunks were used once, so the writer must zero them. */
void begin(bool zeroing);

struct pb_chunk *chunk(int i);

/* Writes a record, which is identified by its site. put() takes the next number. */
void put_as(uint32_t n, enum kind kind);
void put(enum kind kind);

/* Writes records until the chunk has room for one short record at most. */
void fill_chunk(void);

/* Checks the records of all full chunks, and frees these chunks. */
void drain(uint8_t *numbers);

/* Drains and checks all records. Returns how many chunks aren't FREE. These chunks become free only
 * when the thread ends. */
int check_all(uint8_t *numbers);
#endif
