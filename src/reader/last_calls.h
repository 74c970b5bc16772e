/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds the open calls of the thread that was active last, for the recorder's closing line after a
 * crash. This takes little time, because only the last chunk of each thread is read.
 *
 * Context: the observer.
 */
#ifndef PB_READER_LAST_CALLS_H
#define PB_READER_LAST_CALLS_H
#include <stddef.h>

/* Writes the names of the innermost calls to `text`: "copy < parse < main". Writes "" if no call is
 * open. Returns 0, -ENOMEM, or -EIO if the directory can't be read. */
int pb_last_calls(const char *dir, char *text, size_t len);
#endif
