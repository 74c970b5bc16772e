/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The tables that forked.inc makes, for C. */
#ifndef PB_ARCH_X86_64_FORKED_H
#define PB_ARCH_X86_64_FORKED_H

#define PB_FORKED_RAX	0
#define PB_FORKED_RDX	1

#ifndef __ASSEMBLER__
#include <stdint.h>

/* `start` and `to` are offsets from the member's own address. `length` is in bytes. */
struct pb_forked_to {
	int32_t start;
	uint32_t length;
	int32_t to;
};
struct pb_forked_words {
	int32_t start;
	uint32_t length;
	uint32_t reg;		/* PB_FORKED_* */
};

#define PB_HIDDEN __attribute__((visibility("hidden")))
extern const struct pb_forked_to __start_pb_forked_to[] PB_HIDDEN, __stop_pb_forked_to[] PB_HIDDEN;
extern const struct pb_forked_words __start_pb_forked_words[] PB_HIDDEN;
extern const struct pb_forked_words __stop_pb_forked_words[] PB_HIDDEN;
#undef PB_HIDDEN
#endif
#endif
