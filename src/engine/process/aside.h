/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads of ours that libc doesn't know, with all signals blocked. They never
 * run code of the program, and have a table of descriptors to themselves: what
 * the program closes, or opens under the same number, is another file.
 */
#ifndef PB_ENGINE_PROCESS_ASIDE_H
#define PB_ENGINE_PROCESS_ASIDE_H
#include <stdbool.h>

/* Runs fn(arg) in such a thread, with no descriptor open, and waits until it is
 * gone. False: there can be none (before Linux 5.9, or the system refuses), fn
 * wasn't called. Context: one at a time. */
bool pb_aside(void (*fn)(void *arg), void *arg);

/* A thread that stays, with the descriptor fd and no other; returns when it has
 * its table. Its TID, or -errno. Context: start. */
long pb_aside_stay(int (*fn)(void *arg), void *arg, int fd);
#endif
