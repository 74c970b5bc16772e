/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loads that may fault. A table has each such instruction, with the address where
 * to go on after a fault. The agent's handler of SIGSEGV and SIGBUS looks there
 * first. engine/uaccess.h says when such a load may be used; see also
 * doc/design/reads.md.
 */
#ifndef PB_ARCH_FAULT_H
#define PB_ARCH_FAULT_H
#include <stdint.h>

struct pb_fault_entry {
	int32_t at, to;		/* each relative to its own address */
};
extern const struct pb_fault_entry pb_fault_table[] __attribute__((visibility("hidden")));
extern const struct pb_fault_entry pb_fault_table_end[] __attribute__((visibility("hidden")));
#endif
