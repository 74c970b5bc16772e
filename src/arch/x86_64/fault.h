/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A load that may fault. A table has each instruction that may, with the place
 * where to go on; the process' handler of SIGSEGV and SIGBUS looks there
 * first. When it may be used at all: engine/uaccess.h. doc/design/reads.md.
 */
#ifndef PB_ARCH_FAULT_H
#define PB_ARCH_FAULT_H
#include <stdint.h>

struct pb_fault_entry {
	int32_t at, to;		/* counted from the fields themselves */
};
extern const struct pb_fault_entry pb_fault_table[] __attribute__((visibility("hidden")));
extern const struct pb_fault_entry pb_fault_table_end[] __attribute__((visibility("hidden")));
#endif
