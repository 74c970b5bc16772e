/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Threads of the agent, which libc doesn't know of. All signals are blocked in them,
 * and they never run code of the program. They have their own descriptor table, which
 * doesn't change when the program closes or opens descriptors.
 */
#ifndef PB_ENGINE_PROCESS_ASIDE_H
#define PB_ENGINE_PROCESS_ASIDE_H

/* Runs fn(arg) in a thread of the agent that has no open descriptor. Waits until fn has returned,
 * and then at most two seconds until the thread is gone. Returns 0 or -errno. -EINTR: a signal
 * handler has forked meanwhile, and this is the child, in which fn's work may be unfinished. After
 * any other error, fn wasn't called, because the thread or its descriptor table couldn't be made
 * (before Linux 5.9, or the system refuses). Context: one at a time. */
int pb_aside(void (*fn)(void *arg), void *arg);

/* Starts a thread of the agent that runs fn(arg). Doesn't wait for its end. fd is the thread's only
 * descriptor. Returns the thread's TID once the thread has its own descriptor table, or -errno.
 * Context: start. */
long pb_aside_stay(int (*fn)(void *arg), void *arg, int fd);
#endif
