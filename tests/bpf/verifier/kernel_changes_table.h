/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lists tests of Linux 6.1's table of verifier tests for which a later kernel has another verdict
 * or message than the table. Patchbay must agree with the later kernel, which is Linux 6.12, or
 * Linux 6.18 where a comment says so. One test is here for another reason: only Patchbay's message
 * differs from the table.
 */
#ifndef PB_TEST_KERNEL_CHANGES_TABLE_H
#define PB_TEST_KERNEL_CHANGES_TABLE_H
#include <stdbool.h>

#define ZERO_SIZED "R2 invalid zero-sized read: u64=[0,0]"

static const struct change {
	const char *descr, *message, *unpriv;	/* unpriv: the message without privileges, if it
						 * differs from `message` */
	bool accepted, privileged;	/* accepted: the later kernel accepts the program;
					 * privileged: it does so only if the loader has
					 * privileges */
} changes[] = {
	/* 6.12 deduces signed bounds from unsigned bounds, and unsigned bounds from signed
	 * bounds */
	{ "bounds checks mixing signed and unsigned, variant 10", .accepted = true,
	  .privileged = true },
	/* 6.18 computes the result of a negation, so in these three tests it knows the value of a
	 * number; in the first two tests, the mask of the pointer arithmetic is therefore the same
	 * on both paths */
	{ "map access: known scalar += value_ptr unknown vs unknown (lt)", .accepted = true },
	{ "map access: known scalar += value_ptr unknown vs unknown (gt)", .accepted = true },
	{ "check deducing bounds from const, 10", "R0 tried to subtract pointer from scalar",
	  .unpriv = "R1 has pointer with unsupported alu operation" },
	/* 6.12 knows that the address of a map isn't NULL */
	{ "unpriv: cmp map pointer with zero", .accepted = true },
	/* 6.12 treats every backward jump as a loop; it detects recursion by the depth of the call
	 * stack */
	{ "bounded loop, start in the middle", .accepted = true, .privileged = true },
	{ "bounded recursion", "the call stack of 8 frames is too deep" },
	{ "calls: jump back loop", "the call stack of 9 frames is too deep" },
	{ "calls: recursive call. test1", "the call stack of 9 frames is too deep" },
	{ "calls: recursive call. test2", "the call stack of 9 frames is too deep" },
	/* in 6.12, a subprogram may return while it holds the lock */
	{ "spin_lock: test10 lock in subprog without unlock", .accepted = true,
	  .privileged = true },
	/* 6.12 checks a store of a constant like a store of a register */
	{ "context stores via ST", "invalid bpf_context access off=8 size=8" },
	/* 6.12 has another message for the release of a pointer with an offset */
	{ "ringbuf: invalid reservation offset 1",
	  "R1 must have zero offset when passed to release func" },
	/* 6.12 also knows the low bytes of a spilled number (these two tests read two bytes) */
	{ "Spill a u32 const scalar.  Refill as u16.  Offset to skb->data", .accepted = true },
	{ "Spill u32 const scalars.  Refill as u64.  Offset to skb->data", .accepted = true },
	/* in 6.12, a spilled number has an id */
	{ "direct packet access: test23 (x += pkt_ptr, 4)", "R5(id=3,off=0,r=0)" },
	/* if a branch bounded a register and its copies, 6.12's backtracking marks the copies, too;
	 * its log names the registers */
	{ "precise: test 1",
	  "26: (85) call bpf_probe_read_kernel#113\t"
	  "mark_precise: frame0: last_idx 26 first_idx 20\tregs=r2 stack= before 25\t"
	  "regs=r2 stack= before 22\tregs=r2 stack= before 20\t"
	  "parent state regs=r2,r9 stack=:\tlast_idx 19 first_idx 10\t"
	  "regs=r2,r9 stack= before 19\tregs=r9 stack= before 18\t"
	  "regs=r8,r9 stack= before 17\tregs=r0,r9 stack= before 14\t"
	  "regs=r9 stack= before 10\tparent state regs= stack=:" },
	{ "precise: test 2",
	  "26: (85) call bpf_probe_read_kernel#113\t"
	  "mark_precise: frame0: last_idx 26 first_idx 22\tregs=r2 stack= before 25\t"
	  "regs=r2 stack= before 22\tparent state regs=r2 stack=:\t"
	  "last_idx 20 first_idx 20\tregs=r2 stack= before 20\t"
	  "parent state regs=r2,r9 stack=:\tlast_idx 19 first_idx 17\t"
	  "regs=r2,r9 stack= before 19\tregs=r9 stack= before 18\t"
	  "regs=r8,r9 stack= before 17\tparent state regs= stack=:" },
	/* 6.12's backtracking knows the slot that an instruction accessed */
	{ "precise: ST insn causing spi > allocated_stack",
	  "mark_precise: frame0: last_idx 5 first_idx 5\tparent state regs=r4 stack=:\t"
	  "last_idx 4 first_idx 2\tregs=r4 stack= before 4\tregs=r4 stack= before 3\t"
	  "last_idx 5 first_idx 5\tparent state regs=r0 stack=:\tlast_idx 4 first_idx 2\t"
	  "regs=r0 stack= before 4" },
	{ "precise: STX insn causing spi > allocated_stack",
	  "mark_precise: frame0: last_idx 6 first_idx 6\tparent state regs=r4 stack=:\t"
	  "last_idx 5 first_idx 3\tregs=r4 stack= before 5\tlast_idx 6 first_idx 6\t"
	  "parent state regs=r0 stack=:\tlast_idx 5 first_idx 3\tregs=r0 stack= before 5" },
	/* Patchbay doesn't know the kernel's structures, so a member of a structure is a number */
	{ "map_kptr: unref: inherit PTR_UNTRUSTED on struct walk",
	  "R1 type=scalar expected=percpu_ptr_" },
	/* 6.12's message is about the size of 0, not about the map's value */
	{ "helper access to map: empty range", ZERO_SIZED },
	{ "helper access to adjusted map (via const imm): empty range", ZERO_SIZED },
	{ "helper access to adjusted map (via const reg): empty range", ZERO_SIZED },
	{ "helper access to adjusted map (via variable): empty range", ZERO_SIZED },
};
#endif
