/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program as it runs: verified, its references resolved. Made of a verified
 * program's resolved instructions, never changed afterwards; runs on any thread,
 * inside signal handlers and nested in itself. A run allocates nothing and takes no
 * lock.
 *
 * Resolving rewrites instructions in fields that have no meaning once they are
 * verified:
 *   LD_IMM64   imm, imm of the second: the value itself (a map's, a variable's
 *              address); src 0. A subprogram's address (src BPF_PSEUDO_FUNC) stays
 *              as it is: imm, instructions from the next one to it
 *   CALL       imm: index in `calls`
 *   CALL_PC    off: bytes of stack of the caller's frame (of its subprogram)
 * and puts operations of its own in their place (PB_BPF_RESOLVED_OPS). Rewritten
 * code may use an eleventh register, PB_BPF_REG_AX; nothing keeps it over a call.
 */
#ifndef PB_BPF_CORE_PROGRAM_H
#define PB_BPF_CORE_PROGRAM_H
#include "bpf/core/opcodes.h"
#include <stddef.h>

struct pb_bpf_run;

/*
 * Helpers and callbacks. The sixth argument is the run that they belong to; the JIT
 * has it in a register of its own, so that it costs a move. Helpers that need
 * nothing of it are defined without it.
 */
typedef uint64_t pb_bpf_fn(uint64_t r1, uint64_t r2, uint64_t r3, uint64_t r4, uint64_t r5,
			   struct pb_bpf_run *run);

#define PB_BPF_MAX_FRAMES	8
#define PB_BPF_STACK		512	/* of all frames together */
#define PB_BPF_COUNTER		8	/* bytes below a frame, of its may_gotos */
#define PB_BPF_SAVED		40	/* bytes of it that aren't counted: r1 ... r5 around
					 * calls */
#define PB_BPF_WHOLE_STACK	(PB_BPF_STACK + PB_BPF_MAX_FRAMES * (PB_BPF_COUNTER + PB_BPF_SAVED))
#define PB_BPF_MAX_TAIL_CALLS	33	/* of one run, whatever frames they were in */
#define PB_BPF_MAX_SUBPROGS	256
#define PB_BPF_REG_AX		11

/*
 * Operations of resolved programs only: X(name, width, sign). Their instructions'
 * fields are those of what they replace.
 *   TAIL_CALL  a CALL: r1 context, r2 a prog_array, r3 index
 *   NOSPEC     (any) no speculation goes past it
 *   PROBE_*    an LDX or LDSX: if the memory isn't there, dst is 0. Needs a host
 *              that asks pb_bpf_fault()
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

/* An instruction as the interpreter reads it. */
struct pb_bpf_code {
	uint8_t op, dst, src;		/* registers: byte offsets among them */
	int32_t off;
	int64_t imm;			/* of LD_IMM64 all of it, in the first of both */
};

struct pb_bpf_sub {
	uint32_t start;			/* its first instruction */
	uint16_t stack;			/* bytes of its frame */
	bool callback;			/* its address is taken */
};

/* While statistics are on (pb_bpf_settings). */
struct pb_bpf_prog_stats {
	uint64_t runs, ns;
};

struct pb_bpf_prog {
	uint32_t nr;			/* instructions */
	uint32_t stack;			/* bytes that its deepest chain of frames takes */
	const struct bpf_insn *insns;	/* resolved */
	const uint8_t *ops;		/* pb_bpf_op or pb_bpf_resolved_op of each; LD_IMM64's
					 * second: NONE */
	const struct pb_bpf_code *code;	/* both once more, for the interpreter */
	const struct pb_bpf_sub *subs;	/* ascending; the first begins at 0 */
	uint32_t nr_subs, nr_calls;
	pb_bpf_fn *const *calls;
	const struct pb_bpf_type *type;
	struct pb_bpf_map *const *maps;	/* that it uses */
	uint32_t nr_maps, id;
	uint32_t ctx_needed;		/* bytes of the context, from its start, that are
					 * accessed */
	char name[BPF_OBJ_NAME_LEN];
	/* runs it: `jited`, or the interpreter after the same arguments. Never NULL */
	uint64_t (*enter)(const void *ctx, struct pb_bpf_run *run);
	/* the JIT's, or NULL */
	uint64_t (*jited)(const void *ctx, struct pb_bpf_run *run);
	uint32_t jited_len;
	/* of native code: its frames as .eh_frame, ending in 0, as __register_frame takes it */
	const void *unwind;
	struct pb_bpf_prog_stats *stats;	/* writable */
};

/* The environment of a program, supplied by the process that runs it. */
struct pb_bpf_host;

/* One run; on the stack of the thread that starts it. */
struct pb_bpf_run {
	const struct pb_bpf_prog *prog;	/* the one under way: a tail call changes it */
	void *ctx;
	const struct pb_bpf_host *host;
	uint64_t cookie;		/* of the attachment */
	uint32_t lane;			/* the per-CPU slot that it owns */
	uint32_t thread;		/* the thread's id, the owner of spin locks in values */
	uint32_t tail_calls;		/* so far */
	bool lock_missed;		/* it goes on without a lock that its own thread holds */
};

/* Settings of the process, as the kernel's files of these names have them. */
struct pb_bpf_settings {
	uint32_t jit_enable;		/* bpf_jit_enable: 0, 1, 2: the code is shown, too */
	uint32_t jit_harden;		/* bpf_jit_harden: 1: without privilege, 2: all */
	uint32_t jit_baseline;		/* only instructions that every x86-64 has */
	uint32_t debugger;		/* gdb learns of programs that are made from now on */
	uint32_t stats;			/* bpf_stats_enabled */
	uint32_t unprivileged_disabled;	/* unprivileged_bpf_disabled: 0, 1: for good, 2 */
	uint64_t (*now)(void);		/* nanoseconds, for stats; any context */
	/* of jit_enable 2; as the kernel's line in its log has it. May be NULL */
	void (*show)(const struct pb_bpf_prog *prog, uint32_t passes);
};
extern struct pb_bpf_settings pb_bpf_settings;

/* The same with counts and time. */
uint64_t pb_bpf_enter_counted(struct pb_bpf_run *run);

/* Runs run->prog with run->ctx; run->tail_calls is 0. Context: any. */
static inline uint64_t pb_bpf_enter(struct pb_bpf_run *run)
{
	if (__builtin_expect(pb_bpf_settings.stats != 0, 0))
		return pb_bpf_enter_counted(run);
	return run->prog->enter(run->ctx, run);
}

/* The same on the interpreter in any case. Context: any. */
uint64_t pb_bpf_interpret(struct pb_bpf_run *run);
/* Writes the interpreter's form of a program: nr elements. Context: any. */
void pb_bpf_encode(const struct bpf_insn *insns, const uint8_t *ops, uint32_t nr,
		   struct pb_bpf_code *code);
/* `enter` of a program without native code. */
uint64_t pb_bpf_enter_interpreted(const void *ctx, struct pb_bpf_run *run);

/* call_x86_64.S: calls native code with its run in r12. Context: inside a helper of `run`. */
uint64_t pb_bpf_call_native(uint64_t r1, uint64_t r2, uint64_t r3, uint64_t r4, uint64_t r5,
			    struct pb_bpf_run *run, pb_bpf_fn *fn);

/*
 * Calls a subprogram whose address (LD_IMM64 with BPF_PSEUDO_FUNC) a helper was
 * given. The helper needn't know which engine runs the program. Context: inside a
 * helper of `run`.
 */
uint64_t pb_bpf_call_back(struct pb_bpf_run *run, uint64_t func, uint64_t r1, uint64_t r2,
			  uint64_t r3, uint64_t r4, uint64_t r5);

/*
 * What LD_ABS and LD_IND become: r1 context, r2 offset (signed 32 bits; the kernel's
 * negative ones are places in other headers), r3 width 1, 2, 4. The value in this
 * machine's byte order, or with bit 63 set: there is nothing, the program ends with
 * 0. Defined where the contexts are.
 */
pb_bpf_fn pb_bpf_ld_abs;

/* For the engines: a tail call to map[index]: run->prog has become the one that
 * r0 = return value(run->ctx, run) enters, or NULL: the program goes on, as there is none of
 * its type (the kernel refuses others when they are put into the array). */
uint64_t (*pb_bpf_tail_call(struct pb_bpf_map *map, uint32_t index, struct pb_bpf_run *run))
	(const void *ctx, struct pb_bpf_run *run);

/*
 * Where to go on after a fault (SIGSEGV, SIGBUS) at ip, or 0: it is none of a load
 * that may fault. Context: any, signal handlers above all.
 */
uint64_t pb_bpf_fault(uint64_t ip);
#endif
