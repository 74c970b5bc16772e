/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes the records of one thread. The format is abi/ring.h and abi/entries.h. ring_map.h has the
 * writer's state. change.h has the functions for changes of chunks and for signal handlers.
 *
 * Context of all functions: hit path, that is, any thread, also inside signal
 * handlers. The functions make no system call, take no lock and don't use libc. A
 * writer belongs to one thread. Only signal handlers of that thread run concurrently,
 * so xadd and cmpxchg without a lock prefix are atomic enough. A handler may interrupt
 * any of these functions at any instruction, and run any of them to its end.
 */
#ifndef PB_RING_WRITER_H
#define PB_RING_WRITER_H
#include "ring/change.h"

/* Initialises the writer of a new thread, and gives it a serial. The writer takes a
 * chunk at its first record. */
void pb_writer_init(struct pb_writer *w, uint32_t pid, uint32_t tid, uint32_t image);
/* Initialises the writer of a thread without a serial. Such a writer never has room for a
 * record. */
void pb_writer_void(struct pb_writer *w);
/* Closes the writer of a thread that is dead, or that is about to exec. The writer's chunks become
 * FULL. If the exec fails and the thread writes again, it takes a new chunk. */
void pb_writer_close(struct pb_writer *w);

/* Writes one record: `word` with the time added to it, then the payload. time_bits: the width of
 * the time field, which is the uppermost 22, 28 or 42 bits of the word. If the time doesn't fit, a
 * PB_EXT_TIME record is written first. False: there was no room. In that case nothing is written,
 * and a call is counted as lost. */
bool pb_writer_put(struct pb_writer *w, uint64_t word, uint64_t time, unsigned time_bits,
		   const uint64_t *payload, unsigned nr_payload);
/* Like pb_writer_put(), but for the ENTRY of a call. If there is no room, nothing is counted. When
 * the call makes another call, or ends, the engine tries to write the ENTRY again. */
bool pb_writer_put_entry(struct pb_writer *w, uint64_t word, uint64_t time);
/* Like pb_writer_put(), but for the end of a call whose ENTRY is written. ending: this call, a
 * struct pb_open_call. If the record is the first of a chunk, the chunk's list of open calls
 * includes the call. If there is no room, a record is counted as missed. */
bool pb_writer_put_end(struct pb_writer *w, uint64_t word, uint64_t time, unsigned time_bits,
		       const uint64_t *payload, unsigned nr_payload, const void *ending);
/* Writes a PB_EXT_LONG. If there is no room, a call is counted as lost. */
bool pb_writer_put_long(struct pb_writer *w, uint32_t site, uint64_t start, uint64_t end);
/* Writes a record that has no time. If there is no room, a record is counted as missed. */
bool pb_writer_put_untimed(struct pb_writer *w, uint64_t word, const uint64_t *payload,
			   unsigned nr_payload);
/* Notes in the chunk which call began last. */
void pb_writer_leaf(struct pb_writer *w, uint32_t site, uint64_t start);
/* Counts a call that is recorded without its return. */
void pb_writer_no_return(struct pb_writer *w);
/* Counts a record that isn't written although its call isn't lost. */
void pb_writer_missed(struct pb_writer *w);
/* Counts a call that isn't recorded: there is no room for its record, or for the records of its
 * outer calls. */
void pb_writer_lost(struct pb_writer *w);
/* Counts an open call whose ENTRY has no room. Each such call is counted once. o: the owner before
 * the call's state was read or changed. If a handler has forked since, the child counts nothing,
 * because the parent does. */
void pb_writer_late(struct pb_writer *w, struct pb_owner o);
/* Ends the effect of pb_writer_late(): the call's ENTRY is written after all, or pb_writer_lost()
 * has counted the call. */
void pb_writer_regained(struct pb_writer *w, struct pb_owner o);
/* Like pb_writer_lost(), but for a thread that has no writer. */
void pb_ring_call_lost(void);
#endif
