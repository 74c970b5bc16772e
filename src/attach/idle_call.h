/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Idle system calls: a thread waits in them for events, time, a file's lock or other processes, and
 * the kernel restarts them. A thread that makes such a call outside of the loader holds none of the
 * locks that pthread_create() takes: those of malloc, of libc's list of thread stacks, and of the
 * loader's TLS data. Context: the injector's thread.
 */
#ifndef PB_ATTACH_IDLE_CALL_H
#define PB_ATTACH_IDLE_CALL_H
#include <stdbool.h>
#include <stdint.h>
#include "attach/subject.h"

bool attach_call_is_idle(long number, const uint64_t args[6]);
/* Whether a syscall instruction precedes the address. */
bool attach_call_precedes(const struct attach_subject *s, uint64_t pc);
/* Returns the number of the system call that precedes the address, if the code loads this number
 * just before the call: mov $NUMBER, %eax; syscall. Otherwise returns -1. */
long attach_call_number(const struct attach_subject *s, uint64_t pc);
#endif
