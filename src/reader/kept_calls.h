/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Counts the calls of a data directory as the views do, by reading it. If chunks were
 * overwritten, the counts that the drain thread took (counts.h) may be too low: when a thread's
 * oldest chunk begins, calls may be open on several stacks, but the chunk lists those of one.
 *
 * Context: the observer. Takes about 20 ns per record.
 */
#ifndef PB_READER_KEPT_CALLS_H
#define PB_READER_KEPT_CALLS_H
#include <stdint.h>

/* Counts the calls in the directory's main buffer. 0, -EIO if it can't be read, or -ENOMEM. */
int pb_kept_calls(const char *dir, uint64_t *calls);
#endif
