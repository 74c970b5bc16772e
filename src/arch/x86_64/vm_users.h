/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Processes that share the memory without being threads of the process: a vfork
 * child, or one of clone(CLONE_VM). A stop doesn't reach them.
 * Context: the stop-the-world helper, which is one itself.
 */
#ifndef PB_ARCH_VM_USERS_H
#define PB_ARCH_VM_USERS_H
#include <stdbool.h>
#include <stdint.h>

/* Whether there is one besides the caller and the process `pid`. */
bool pb_vm_users(uint32_t pid);
/* Likewise, when pb_vm_users() said no and `pid`'s threads have been stopped since:
 * looks only at processes that are younger than the caller. */
bool pb_vm_users_new(uint32_t pid);
#endif
