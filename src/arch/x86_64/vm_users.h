/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Finds processes that share the program's memory without being its threads: a vfork child, or a
 * child of clone(CLONE_VM). A stop doesn't reach them.
 * Context: the stop-the-world helper, which also shares the memory.
 */
#ifndef PB_ARCH_VM_USERS_H
#define PB_ARCH_VM_USERS_H
#include <stdbool.h>
#include <stdint.h>

struct pb_proc_dirs;

/* Returns whether any process besides the caller and `pid` shares the caller's memory. dirs: opened
 * by the process `pid`. */
bool pb_vm_users(const struct pb_proc_dirs *dirs, uint32_t pid);
/* Like pb_vm_users(), but checks only PIDs that were assigned after the caller's. If these PIDs are
 * too many, or not known, checks all processes. Threads of `pid` don't count. Must be called after
 * pb_vm_users() has returned false and all threads of `pid` were stopped. */
bool pb_vm_users_new(const struct pb_proc_dirs *dirs, uint32_t pid);
#endif
