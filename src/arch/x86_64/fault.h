/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loads that may fault. A table lists each of these load instructions, with the address at which to
 * go on after a fault. The agent's handler of SIGSEGV and SIGBUS looks into this table first.
 * engine/uaccess.h says when these loads may be used; see also doc/design/reads.md.
 */
#ifndef PB_ARCH_FAULT_H
#define PB_ARCH_FAULT_H
#include <stdint.h>

struct pb_fault_entry {
	int32_t at, to;		/* each is an offset from the member's own address */
};
extern const struct pb_fault_entry pb_fault_table[] __attribute__((visibility("hidden")));
extern const struct pb_fault_entry pb_fault_table_end[] __attribute__((visibility("hidden")));
#endif
