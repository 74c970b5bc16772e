/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The hit path as data, for who looks at program counters. Offsets from
 * pb_hot_start; in [start, end) r11 is the site and rsp the slot; from `saved`
 * on, the registers that the code uses lie in its red-zone frame (layout.h);
 * before, only rax may (behind its first instruction). Ends with zeros.
 */
#ifndef PB_ARCH_HOT_H
#define PB_ARCH_HOT_H
#include <stdint.h>

struct pb_hot_range {
	uint32_t start, saved, end;
};
extern const struct pb_hot_range pb_hot_ranges[] __attribute__((visibility("hidden")));
extern char pb_hot_start[] __attribute__((visibility("hidden")));
extern char pb_hot_end[] __attribute__((visibility("hidden")));
#endif
