/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds processes that share the program's memory without being its threads: a
 * vfork child, or one of clone(CLONE_VM). A stop doesn't reach them.
 * Context: the stop-the-world helper, which is such a process itself.
 */
#ifndef PB_ARCH_VM_USERS_H
#define PB_ARCH_VM_USERS_H
#include <stdbool.h>
#include <stdint.h>

/* Does any process besides `pid` share the caller's memory? */
bool pb_vm_users(uint32_t pid);
/* The same, after pb_vm_users() returned false and all threads of `pid` were
 * stopped: checks only processes that are younger than the caller. */
bool pb_vm_users_new(uint32_t pid);
#endif
