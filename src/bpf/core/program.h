/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program that can run. It is made from the resolved instructions of a verified program
 * (fixup.h). Only its `stats` change. A program may run on any thread, inside signal handlers, and
 * nested in itself. A run allocates nothing. It takes a lock only for bpf_spin_lock, for
 * BPF_F_LOCK, and for operations on maps that have a lock (pb_bpf_guard_take() in map_priv.h).
 *
 * After verification, some fields of instructions are free. pb_bpf_resolve() gives them a new
 * meaning:
 *   LD_IMM64   the imm fields of its two halves: the value itself (the address of a map or a
 *              variable); src: 0. If the value is a subprogram's address, src is BPF_PSEUDO_FUNC,
 *              and imm is still the distance from the next instruction to the subprogram
 *   CALL       imm: index in `calls`
 *   CALL_PC    off: bytes of the caller's stack frame
 * Some instructions become operations that only resolved programs have (PB_BPF_RESOLVED_OPS).
 * Rewritten code may use one more register, PB_BPF_REG_AX. Calls clobber this register.
 */
#ifndef PB_BPF_CORE_PROGRAM_H
#define PB_BPF_CORE_PROGRAM_H
#include "bpf/core/opcodes.h"
#include <stddef.h>

struct pb_bpf_run;

/*
 * Helpers and callbacks. The sixth argument is the run that calls the function. The JIT keeps the
 * run in a register, so that passing the run costs one move. Many helpers don't need the run, and
 * ignore this argument.
 */
typedef uint64_t pb_bpf_fn(uint64_t r1, uint64_t r2, uint64_t r3, uint64_t r4, uint64_t r5,
			   struct pb_bpf_run *run);

#define PB_BPF_MAX_FRAMES	8
#define PB_BPF_STACK		512	/* bytes of stack for all frames together */
#define PB_BPF_COUNTER		8	/* bytes of a frame for the counter of its may_gotos; these
					 * bytes don't count as stack */
#define PB_BPF_SAVED		40	/* bytes of a frame to save r1 ... r5 around fast calls
					 * (verifier/fastcall.c); these bytes don't count as
					 * stack */
#define PB_BPF_WHOLE_STACK	(PB_BPF_STACK + PB_BPF_MAX_FRAMES * (PB_BPF_COUNTER + PB_BPF_SAVED))
#define PB_BPF_FRAME_REGS	64	/* most bytes of a native frame for its return address and
					 * the registers that it saves */
#define PB_BPF_MAX_TAIL_CALLS	33	/* limit for one run, all frames together */
#define PB_BPF_MAX_SUBPROGS	256
#define PB_BPF_REG_AX		11

/*
 * Operations that only resolved programs have: X(name, width, sign). Such an instruction has the
 * fields of the instruction that it replaces.
 *   TAIL_CALL  replaces a CALL: r1 context, r2 a prog_array, r3 index
 *   NOSPEC     a barrier for speculation; has no fields
 *   PROBE_*    replaces an LDX or LDSX. If the memory can't be read, dst is 0. Needs a host whose
 *              signal handler calls pb_bpf_fault()
 */
#define PB_BPF_RESOLVED_OPS(X) \
	X(TAIL_CALL, 0, 0) \
	X(NOSPEC, 0, 0) \
	X(PROBE_B, 1, 0) \
	X(PROBE_H, 2, 0) \
	X(PROBE_W, 4, 0) \
	X(PROBE_DW, 8, 0) \
	X(PROBE_SB, 1, 1) \
	X(PROBE_SH, 2, 1) \
	X(PROBE_SW, 4, 1)

enum pb_bpf_resolved_op {
	PB_BPF_LAST_OP = PB_BPF_NR_OPS - 1,
#define PB_BPF_X_OP(name, width, sign) PB_BPF_OP_##name,
	PB_BPF_RESOLVED_OPS(PB_BPF_X_OP)
#undef PB_BPF_X_OP
	PB_BPF_NR_ALL_OPS
};
_Static_assert(PB_BPF_NR_ALL_OPS <= 256, "an operation is a byte");

struct pb_bpf_map;
struct pb_bpf_type;

/* An instruction in the interpreter's form. */
struct pb_bpf_code {
	uint8_t op, dst, src;		/* dst, src: byte offsets into the array of registers */
	int32_t off;
	int64_t imm;			/* for LD_IMM64, the first element has all 64 bits */
};

struct pb_bpf_sub {
	uint32_t start;			/* index of the subprogram's first instruction */
	uint16_t stack;			/* bytes of the subprogram's frame */
	bool callback;			/* the program takes the subprogram's address */
};

/* A program's runs and their time. Counted only while pb_bpf_settings.stats is set. */
struct pb_bpf_prog_stats {
	uint64_t runs, ns;
};

struct pb_bpf_prog {
	uint32_t nr;			/* instructions */
	uint32_t stack;			/* bytes of stack for the deepest chain of frames */
	const struct bpf_insn *insns;	/* resolved */
	const uint8_t *ops;		/* pb_bpf_op or pb_bpf_resolved_op of each instruction; NONE
					 * for the second half of an LD_IMM64 */
	const struct pb_bpf_code *code;	/* insns and ops in the interpreter's form */
	const struct pb_bpf_sub *subs;	/* subprograms in ascending order; the first begins at 0 */
	uint32_t nr_subs, nr_calls;
	pb_bpf_fn *const *calls;
	const struct pb_bpf_type *type;
	struct pb_bpf_map *const *maps;	/* the maps that the program uses */
	uint32_t nr_maps, id;
	uint32_t ctx_needed;		/* the program accesses only the first ctx_needed bytes of
					 * the context */
	uint32_t room;			/* bytes of the thread's stack that a run may need, with
					 * helpers and callbacks, but without tail calls */
	char name[BPF_OBJ_NAME_LEN];
	bool perfmon;			/* the loader has CAP_PERFMON: the program may read stack
					 * that it has never written */
	/* runs the program: `jited`, or the interpreter with the same arguments. Never NULL */
	uint64_t (*enter)(const void *ctx, struct pb_bpf_run *run);
	/* native code, or NULL */
	uint64_t (*jited)(const void *ctx, struct pb_bpf_run *run);
	uint32_t jited_len;
	/* the native code's .eh_frame, terminated by 0, in the form for __register_frame() */
	const void *unwind;
	struct pb_bpf_prog_stats *stats;	/* the only part of a program that changes */
};

/* The environment of a run (host.h). The process that runs the program supplies the environment. */
struct pb_bpf_host;

/* One run of a program. It lies on the stack of the thread that starts the run. */
struct pb_bpf_run {
	const struct pb_bpf_prog *prog;	/* the program that runs now; a tail call changes this
					 * member */
	void *ctx;
	const struct pb_bpf_host *host;
	uint64_t cookie;		/* the attachment's cookie */
	uint64_t stack_end;		/* a tail call fails if its target doesn't fit on the
					 * thread's stack above this address; 0: no limit */
	uint32_t cpu_slot;		/* the per-CPU slot that the run owns */
	uint32_t thread;		/* the thread's id, for spin locks in values */
	uint32_t tail_calls;		/* number of tail calls so far */
	bool lock_missed;		/* the run couldn't take a lock and continues without it */
};

/* Settings of the process. If the kernel has the same setting, the member's comment begins with the
 * name of the kernel's file in /proc/sys, and the member's values mean the same as in this file. */
struct pb_bpf_settings {
	uint32_t jit_enable;		/* bpf_jit_enable: 0: off; 1: on; 2: on, and code is passed
					 * to `show` */
	uint32_t jit_harden;		/* bpf_jit_harden: 0: off; 1: for unprivileged programs; 2:
					 * for all programs */
	uint32_t jit_baseline;		/* use only instructions that every x86-64 processor
					 * has */
	uint32_t debugger;		/* gdb is notified of each new program */
	uint32_t stats;			/* bpf_stats_enabled */
	uint32_t unprivileged_disabled;	/* unprivileged_bpf_disabled: 0: no; 1: yes, for good; 2:
					 * yes */
	uint64_t (*now)(void);		/* returns nanoseconds, for stats; context: any. NULL: only
					 * the number of runs is counted */
	/* called if jit_enable is 2, to output the text that the kernel would log. May be NULL */
	void (*show)(const struct pb_bpf_prog *prog, uint32_t passes);
};
extern struct pb_bpf_settings pb_bpf_settings;

/* Like pb_bpf_enter(), but also counts the run and its time. */
uint64_t pb_bpf_enter_counted(struct pb_bpf_run *run);

/* Runs run->prog with run->ctx. The caller has set run->tail_calls to 0. Context: any. */
static inline uint64_t pb_bpf_enter(struct pb_bpf_run *run)
{
	if (__builtin_expect(pb_bpf_settings.stats != 0, 0))
		return pb_bpf_enter_counted(run);
	return run->prog->enter(run->ctx, run);
}

/* Like pb_bpf_enter(), but always uses the interpreter. Context: any. */
uint64_t pb_bpf_interpret(struct pb_bpf_run *run);
/* Writes the interpreter's form of a program to code[], which has nr elements. Context: any. */
void pb_bpf_encode(const struct bpf_insn *insns, const uint8_t *ops, uint32_t nr,
		   struct pb_bpf_code *code);
/* The `enter` function of a program without native code. */
uint64_t pb_bpf_enter_interpreted(const void *ctx, struct pb_bpf_run *run);

/* Calls native code with the run in r12. Defined in call_x86_64.S. Context: inside a helper of
 * `run`. */
uint64_t pb_bpf_call_native(uint64_t r1, uint64_t r2, uint64_t r3, uint64_t r4, uint64_t r5,
			    struct pb_bpf_run *run, pb_bpf_fn *fn);

/*
 * Calls the subprogram at func. func is a value that the program got from an LD_IMM64 with
 * BPF_PSEUDO_FUNC and passed to a helper. Works with the interpreter and with native code. Context:
 * inside a helper of `run`.
 */
uint64_t pb_bpf_call_back(struct pb_bpf_run *run, uint64_t func, uint64_t r1, uint64_t r2,
			  uint64_t r3, uint64_t r4, uint64_t r5);

/*
 * pb_bpf_resolve() turns LD_ABS and LD_IND into calls of this function. r1: context; r2: offset,
 * signed 32 bits. As in the kernel, negative offsets are relative to headers. r3: width, 1, 2 or 4.
 * Returns the value in host byte order. If bit 63 is set, the offset is outside of the packet, and
 * the program ends with 0. Defined in ld_abs.c.
 */
pb_bpf_fn pb_bpf_ld_abs;

/* For interpreter and JIT: a tail call to map[index]. Sets run->prog, and returns the function to
 * call with (run->ctx, run). The function's result becomes r0. Returns NULL if there is no program
 * of the same type at index, if the run made too many tail calls, or if the target needs more stack
 * than is left (run->stack_end). After NULL the program continues with its next instruction. (The
 * kernel checks a program's type earlier: when the program is put into the array.) */
uint64_t (*pb_bpf_tail_call(struct pb_bpf_map *map, uint32_t index, struct pb_bpf_run *run))
	(const void *ctx, struct pb_bpf_run *run);

/*
 * Returns the address at which to continue after a fault (SIGSEGV, SIGBUS) at ip. 0: no PROBE load
 * has caused the fault. Context: any, in particular signal handlers.
 */
uint64_t pb_bpf_fault(uint64_t ip);
#endif
