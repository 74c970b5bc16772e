/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads of the agent, which libc doesn't know of. All signals are blocked in them,
 * and they never run code of the program. They have their own descriptor table, which
 * doesn't change when the program closes or opens descriptors.
 */
#ifndef PB_ENGINE_PROCESS_ASIDE_H
#define PB_ENGINE_PROCESS_ASIDE_H
#include <stdbool.h>

/* Runs fn(arg) in a thread of the agent, with no descriptor open, and waits until the thread
 * is gone. False: there can be no such thread (before Linux 5.9, or the system
 * refuses), and fn wasn't called. Context: one at a time. */
bool pb_aside(void (*fn)(void *arg), void *arg);

/* Starts a thread of the agent that runs fn(arg). Doesn't wait for its end. fd is the thread's only
 * descriptor. Returns the thread's TID once the thread has its own descriptor table, or -errno.
 * Context: start. */
long pb_aside_stay(int (*fn)(void *arg), void *arg, int fd);
#endif
