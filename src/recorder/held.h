/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Finds out why the threads of a process can't run, so that its agent can't do what it was asked
 * to. The answers come from /proc, so they may be out of date. Context: any thread. */
#ifndef PB_RECORDER_HELD_H
#define PB_RECORDER_HELD_H
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* True if the process's control group is frozen. The threads of a frozen process can't be
 * stopped. */
bool record_held_frozen(pid_t pid);
/* If the process is stopped, traced or frozen, writes that to text, for example "it is stopped".
 * Returns false if nothing holds the process. */
bool record_held(pid_t pid, char *text, size_t size);
#endif
