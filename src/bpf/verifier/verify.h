/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The verifier decides whether a program may run. It reports a refusal in the kernel's words. It
 * also records facts about each instruction. pb_bpf_resolve() (fixup.h) uses these facts to prepare
 * the program for running.
 *
 * Context: a call uses no other thread, no libc, and no global variable except pb_bpf_settings. The
 * kernel's limit on processed instructions bounds the time. MAX_POOL (pool.h) bounds the memory,
 * except for the facts.
 */
#ifndef PB_BPF_VERIFIER_VERIFY_H
#define PB_BPF_VERIFIER_VERIFY_H
#include "bpf/core/textbuf.h"
#include "bpf/helper/prog_type.h"
#include "bpf/map/map.h"

/* The kernel's limits: on the length of a program without CAP_BPF, and on the verifier's work. */
#define PB_BPF_MAX_INSNS_UNPRIV	4096
#define PB_BPF_COMPLEXITY	1000000	/* instructions processed, on all paths */

enum pb_bpf_func_arg_kind {
	PB_BPF_FUNC_SCALAR,
	PB_BPF_FUNC_CTX,
	PB_BPF_FUNC_MEM,		/* a pointer to memory, or NULL */
	PB_BPF_FUNC_MEM_SURE,		/* a pointer to memory, never NULL */
	PB_BPF_FUNC_DYNPTR,		/* an initialised dynptr, which the function must not
					 * change or release */
	PB_BPF_FUNC_OTHER,		/* a type that a global function can't take */
};

#define PB_BPF_FUNC_ARGS 5	/* a function gets its arguments in five registers */

/* A subprogram, from func_info in .BTF.ext. */
struct pb_bpf_func {
	uint32_t insn;			/* its first instruction */
	const char *name;
	bool global;			/* the function is verified on its own, for all arguments of
					 * the declared types */
	bool returns_void;
	uint32_t nr_args;		/* may be more than PB_BPF_FUNC_ARGS: calls of such a global
					 * function are refused */
	struct { uint8_t kind; uint32_t size; } args[PB_BPF_FUNC_ARGS];
};

struct pb_bpf_line {
	uint32_t insn;
	const char *text;		/* a source line, logged before the instruction */
};

struct pb_bpf_mem {
	/* Returns `size` bytes, all of them zero, or NULL if no memory is left. */
	void *(*alloc)(struct pb_bpf_mem *mem, size_t size);
	void (*free)(struct pb_bpf_mem *mem, void *p, size_t size);
};

struct env;

struct pb_bpf_verify {
	/* in */
	const struct pb_bpf_type *type;
	/* flags: the kernel's BPF_F_STRICT_ALIGNMENT, _ANY_ALIGNMENT, _TEST_STATE_FREQ and
	 * _TEST_REG_INVARIANTS; caps: enum pb_bpf_caps */
	uint32_t attach_type, flags, caps;
	bool gpl;			/* the program's licence is compatible with the GPL */
	const struct bpf_insn *insns;
	uint32_t nr;
	struct pb_bpf_map *const *maps;	/* if an LD_IMM64 loads a map, its imm is an index into this
					 * array */
	uint32_t nr_maps;
	const struct pb_bpf_func *funcs;/* in ascending order of insn */
	uint32_t nr_funcs;
	const struct pb_bpf_line *lines;
	uint32_t nr_lines;
	struct pb_bpf_text *log;	/* a full log drops its oldest lines */
	uint32_t log_level;		/* the kernel's log level (0, 1 or 2, plus 4 for
					 * statistics), or PB_BPF_LOG_REFUSAL */
#define PB_BPF_LOG_REFUSAL	8	/* writes no log at first. If the program is refused,
					 * verifies it again, with log level 1 */
	struct pb_bpf_mem *mem;
	/* A hook for tests that check what the verifier deduces. env.h describes env. The hook is
	 * called before each instruction of each path that isn't speculative. If the hook returns
	 * nonzero, verification ends with this value. NULL: no hook. */
	int (*visit)(struct pb_bpf_verify *v, const struct env *env);
	void *visitor;			/* data for visit() */
	bool whole;			/* a path is pruned only if a kept state covers the path's
					 * whole state, even values that are never read */
	/* output, if pb_bpf_verify() returns 0 */
	struct pb_bpf_facts *facts;	/* allocated from mem */
	/* output, always */
	struct {
		uint32_t insns, max_states_per_insn, total_states, peak_states, mark_read;
		uint32_t stack;
		uint64_t walked;	/* count of instructions that backward walks for precision
					 * have covered */
	} stats;
};

/* Returns 0, or the kernel's -errno. After a refusal, the log's last line before the statistics
 * usually gives the reason. For a few errors the kernel logs no reason, and neither does this
 * function. If v->caps or v->nr is the reason, the log is empty. */
int pb_bpf_verify(struct pb_bpf_verify *v);
/* facts may be NULL. */
void pb_bpf_facts_free(struct pb_bpf_mem *mem, struct pb_bpf_facts *facts);

/* The way in which an instruction's memory access must be rewritten. */
enum pb_bpf_access {
	PB_BPF_ACCESS_NONE,		/* not an access, or never reached */
	PB_BPF_ACCESS_PLAIN,		/* not rewritten */
	PB_BPF_ACCESS_CTX,		/* a field of the context: rewritten to access the real
					 * field */
	PB_BPF_ACCESS_SOCK,		/* a field of struct bpf_sock or a related structure: not
					 * rewritten */
	PB_BPF_ACCESS_PROBE,		/* a load that can fault; if it faults, it returns 0 */
};

/* The way in which a number is masked before it is added to a pointer or subtracted from it. The
 * mask keeps the pointer within bounds on a mispredicted path too. 0: not masked. */
enum pb_bpf_mask {
	PB_BPF_MASK_SRC = 1,		/* the number is in src, the pointer in dst */
	PB_BPF_MASK_DST = 2,		/* the number is in dst, the pointer in src */
	PB_BPF_MASK_NEGATIVE = 4,	/* the number is negative */
	PB_BPF_MASK_SCALARS = 8,	/* both operands are numbers: not masked */
	PB_BPF_MASK_IMMEDIATE = 16,	/* the number is known: `limit` takes its place */
};

struct pb_bpf_fact {
	bool seen;			/* some path that isn't speculative reaches the
					 * instruction */
	bool fence;			/* needs a speculation barrier (nospec) */
	uint8_t access;			/* enum pb_bpf_access */
	uint8_t mask;			/* enum pb_bpf_mask */
	bool poisoned;			/* a helper gets different maps on different paths: the map
					 * must be found at run time */
	bool loop_fits;			/* a call of bpf_loop that has flags 0 and the same callback
					 * on all paths */
	bool key_seen, key_known;	/* for a tail call. key_seen: a path reaches the call;
					 * key_known: its index is the same constant on all paths */
	uint32_t map;			/* 1 + index into maps: the map that an LD_IMM64 loads, or
					 * the map that a helper gets on all paths */
	union {
		uint32_t limit;		/* the mask's limit */
		uint32_t key;		/* for a tail call: its index, if key_known */
		uint32_t off;		/* for an LD_IMM64 of a map's value: the offset in the
					 * value */
		int32_t loop_func;	/* for a bpf_loop: the callback's first instruction */
	};
};

struct pb_bpf_subprog {
	uint32_t start, stack;		/* start: first instruction; stack: size of the frame in
					 * bytes, a multiple of 8 */
	bool has_tail_call, is_callback;
	bool counts;			/* has a may_goto: the lowest 8 bytes of the frame have the
					 * number of iterations that are left */
};

struct pb_bpf_facts {
	size_t size;			/* size of this structure and of the arrays after it */
	struct pb_bpf_fact *insns;	/* one for each of the program's instructions */
	uint32_t nr_subprogs;
	struct pb_bpf_subprog *subprogs;
	uint32_t stack;			/* bytes that the deepest call chain needs. If any function
					 * has a counter or save slots of fast calls, `stack`
					 * includes room for both in PB_BPF_MAX_FRAMES frames */
	/* For a program with callbacks. deepest: an upper bound of the bytes of all native frames
	 * that may be on the stack at once. nested: an upper bound of the number of callbacks that
	 * may run at once, each inside of the one before. 0: the program has no callbacks */
	uint32_t deepest, nested;
	uint32_t ctx_needed;		/* the program accesses only the first ctx_needed bytes of
					 * the context */
};
#endif
