/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What debuggers and unwinders read about native code: its frames as .eh_frame, and,
 * for gdb, an object file in memory. Context: not on a hit.
 */
#ifndef PB_BPF_JIT_UNWIND_H
#define PB_BPF_JIT_UNWIND_H
#include "bpf/jit/jit.h"

/* Bytes of .eh_frame for so many functions, at most. */
static inline uint32_t pb_bpf_unwind_size(uint32_t functions)
{
	return 24 + functions * 48 + 4;
}

/* Writes it for code at `code`; out is where it will be read. Returns its length. */
uint32_t pb_bpf_unwind_write(uint8_t *out, uint64_t code, const struct pb_bpf_jit_frame *frames,
			     uint32_t nr);

/*
 * gdb's interface for native code that was made at run time: it stops in a function of
 * ours and reads an object file of symbols and frames. `entry` is that one's room:
 * PB_BPF_DEBUG_SIZE bytes, before the .eh_frame and in one mapping with it, which
 * stay until it is taken away. One thread at a time.
 */
#define PB_BPF_DEBUG_SIZE	1024
void pb_bpf_debugger_add(void *entry, const char *name, uint64_t code, uint64_t len,
			 const uint8_t *unwind, uint32_t unwind_len);
void pb_bpf_debugger_remove(void *entry);
#endif
