/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Describes native code for unwinders and for gdb. Unwinders read the layout of each function's
 * frame from an .eh_frame. gdb reads an object file in memory. Context: not on a hit.
 */
#ifndef PB_BPF_JIT_UNWIND_H
#define PB_BPF_JIT_UNWIND_H
#include "bpf/jit/jit.h"

/* Returns an upper limit for the bytes of an .eh_frame. functions: the number of its functions, at
 * least 1. */
static inline uint32_t pb_bpf_unwind_size(uint32_t functions)
{
	return 24 + functions * 48 + 4;
}

/* Writes the .eh_frame for code at address `code`. The .eh_frame must stay at `out`, because it
 * refers to the code by relative addresses. Returns the length of the .eh_frame. nr: number of
 * elements of `frames`. */
uint32_t pb_bpf_unwind_write(uint8_t *out, uint64_t code, const struct pb_bpf_jit_frame *frames,
			     uint32_t nr);

/*
 * gdb's interface for native code that is made at run time. gdb sets a breakpoint in a function of
 * Patchbay. When Patchbay calls this function, gdb reads an object file with symbols and frames.
 * entry: PB_BPF_DEBUG_SIZE bytes of memory for this file. The caller must place this memory before
 * the .eh_frame, in the same mapping, and must keep both until pb_bpf_debugger_remove(). Only one
 * thread at a time may call these functions.
 */
#define PB_BPF_DEBUG_SIZE	1024
void pb_bpf_debugger_add(void *entry, const char *name, uint64_t code, uint64_t len,
			 const uint8_t *unwind, uint32_t unwind_len);
void pb_bpf_debugger_remove(void *entry);
#endif
