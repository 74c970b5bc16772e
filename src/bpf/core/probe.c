/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Loads that may fault. They are in assembly, so that the address of each load is known. */
#include "bpf/core/probe.h"

/* Each function sets rax to 0 and then loads. If the load faults, rax stays 0, and the thread
 * continues after the load. */
__asm__(
"	.text\n"
"	.macro	pb_probe name, load\n"
"	.globl	pb_bpf_probe_\\name\n"
"	.hidden	pb_bpf_probe_\\name\n"
"	.type	pb_bpf_probe_\\name, @function\n"
"pb_bpf_probe_\\name:\n"
"	.cfi_startproc\n"
"	xorl	%eax, %eax\n"
"	.globl	pb_bpf_probe_\\name\\()_load\n"
"	.hidden	pb_bpf_probe_\\name\\()_load\n"
"pb_bpf_probe_\\name\\()_load:\n"
"	\\load\n"
"	.globl	pb_bpf_probe_\\name\\()_end\n"
"	.hidden	pb_bpf_probe_\\name\\()_end\n"
"pb_bpf_probe_\\name\\()_end:\n"
"	ret\n"
"	.cfi_endproc\n"
"	.size	pb_bpf_probe_\\name, . - pb_bpf_probe_\\name\n"
"	.endm\n"
"	pb_probe B, \"movzbl (%rdi), %eax\"\n"
"	pb_probe H, \"movzwl (%rdi), %eax\"\n"
"	pb_probe W, \"movl (%rdi), %eax\"\n"
"	pb_probe DW, \"movq (%rdi), %rax\"\n"
"	.purgem	pb_probe\n");

#define SIZES(X) X(B) X(H) X(W) X(DW)
#define PLACES(S) \
	extern const char pb_bpf_probe_##S##_load[] __attribute__((visibility("hidden"))); \
	extern const char pb_bpf_probe_##S##_end[] __attribute__((visibility("hidden")));
SIZES(PLACES)

uint64_t pb_bpf_probe_fault(uint64_t ip)
{
#define CASE(S) \
	if (ip == (uint64_t)pb_bpf_probe_##S##_load) \
		return (uint64_t)pb_bpf_probe_##S##_end;
	SIZES(CASE)
#undef CASE
	return 0;
}
