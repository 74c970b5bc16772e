/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Counts the calls of a data directory by reading its records, as the views do. If chunks were
 * overwritten, the drain thread's counts (counts.h) may be too low. The reason: when a thread's
 * oldest kept chunk began, calls may have been open on several stacks, but the chunk lists the
 * calls of only one stack.
 *
 * Context: the observer. Takes about 20 ns per record.
 */
#ifndef PB_READER_KEPT_CALLS_H
#define PB_READER_KEPT_CALLS_H
#include <stdint.h>

/* Counts the calls in the directory. Returns 0, -ENOMEM, or -EIO if the directory
 * can't be read. */
int pb_kept_calls(const char *dir, uint64_t *calls);
#endif
