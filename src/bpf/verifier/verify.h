/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The verifier: says of a program whether it may run, in the kernel's words, and
 * what was found out about each instruction. Whoever runs a program has resolved it
 * with these facts (fixup.h).
 *
 * Context: one thread a call; no libc, no globals but pb_bpf_settings. Memory and time are bounded:
 * by the kernel's limits on instructions looked at and on branches that wait.
 */
#ifndef PB_BPF_VERIFIER_VERIFY_H
#define PB_BPF_VERIFIER_VERIFY_H
#include "bpf/core/textbuf.h"
#include "bpf/helper/prog_type.h"
#include "bpf/map/map.h"

/* Flags besides the kernel's BPF_F_STRICT_ALIGNMENT, ANY_ALIGNMENT, TEST_STATE_FREQ. */
#define PB_BPF_MAX_INSNS_UNPRIV	4096
#define PB_BPF_COMPLEXITY	1000000	/* instructions looked at */

enum pb_bpf_func_arg_kind {
	PB_BPF_FUNC_SCALAR,
	PB_BPF_FUNC_CTX,
	PB_BPF_FUNC_MEM,		/* or NULL */
	PB_BPF_FUNC_MEM_SURE,		/* never NULL */
	PB_BPF_FUNC_OTHER,		/* nothing that a global function can be given */
};

/* A subprogram as .BTF.ext has it. */
struct pb_bpf_func {
	uint32_t insn;			/* where it begins */
	const char *name;
	bool global;			/* verified alone, by the types of its arguments */
	bool returns_void;
	uint32_t nr_args;
	struct { uint8_t kind; uint32_t size; } args[5];
};

struct pb_bpf_line {
	uint32_t insn;
	const char *text;		/* of the source, shown before the instruction */
};

struct pb_bpf_mem {
	/* size bytes for the caller of alloc, zeros; NULL: none left */
	void *(*alloc)(struct pb_bpf_mem *mem, size_t size);
	void (*free)(struct pb_bpf_mem *mem, void *p, size_t size);
};

struct env;

struct pb_bpf_verify {
	/* in */
	const struct pb_bpf_type *type;
	uint32_t attach_type, flags, caps;
	bool gpl;			/* the licence is compatible with it */
	const struct bpf_insn *insns;
	uint32_t nr;
	struct pb_bpf_map *const *maps;	/* LD_IMM64 with a map's fd or index: a number in here */
	uint32_t nr_maps;
	const struct pb_bpf_func *funcs;/* ascending; may be none */
	uint32_t nr_funcs;
	const struct pb_bpf_line *lines;
	uint32_t nr_lines;
	struct pb_bpf_text *log;	/* if it is full its oldest lines go; that changes no
					 * verdict */
	uint32_t log_level;		/* as the kernel's: 0, 1, 2, 4 for the statistics; or: */
#define PB_BPF_LOG_REFUSAL	8	/* 1 if it is refused: it is verified once more then */
	struct pb_bpf_mem *mem;
	/* For tests of what is deduced: env.h says what env has. Called before each instruction of
	 * each path that isn't speculation; not 0: verifying ends with that. NULL: not called. */
	int (*visit)(struct pb_bpf_verify *v, const struct env *env);
	void *visitor;			/* visit's own */
	bool whole;			/* a path ends at a state only if that contains all of it,
					 * read or not */
	/* out, with 0 */
	struct pb_bpf_facts *facts;	/* from mem */
	/* out, always */
	struct {
		uint32_t insns, max_states_per_insn, total_states, peak_states, mark_read;
		uint32_t stack;
		uint64_t walked;	/* instructions that walks back for precision went over */
	} stats;
};

/* 0, or -errno, the kernel's; the log's last line says why. */
int pb_bpf_verify(struct pb_bpf_verify *v);
/* NULL: nothing. */
void pb_bpf_facts_free(struct pb_bpf_mem *mem, struct pb_bpf_facts *facts);

/* What memory an instruction accesses, or what its constant is. */
enum pb_bpf_access {
	PB_BPF_ACCESS_NONE,		/* not looked at yet, or no access */
	PB_BPF_ACCESS_PLAIN,		/* as it stands */
	PB_BPF_ACCESS_CTX,		/* a field of the context: to be rewritten */
	PB_BPF_ACCESS_SOCK,		/* of struct bpf_sock and related structures, as it
					 * stands */
	PB_BPF_ACCESS_PROBE,		/* may fault, and reads 0 then */
};

/* How a number that moves a pointer is masked against a processor's guesses; 0: not. */
enum pb_bpf_mask {
	PB_BPF_MASK_SRC = 1,		/* it is in src, the pointer in dst */
	PB_BPF_MASK_DST = 2,		/* the other way round */
	PB_BPF_MASK_NEGATIVE = 4,	/* it is negative */
	PB_BPF_MASK_SCALARS = 8,	/* no pointer is moved: no mask */
	PB_BPF_MASK_IMMEDIATE = 16,	/* it is known: `limit`, as a constant */
};

struct pb_bpf_fact {
	bool seen;			/* some path comes here */
	bool fence;			/* no speculation past it (nospec) */
	uint8_t access;			/* enum pb_bpf_access */
	uint8_t mask;			/* enum pb_bpf_mask */
	bool poisoned;			/* a helper's map differs between paths: look it up at run
					 * time */
	bool loop_fits;			/* a bpf_loop that is always given the same callback, flags
					 * 0 */
	bool key_seen, key_known;	/* of a tail call: its index, on all paths the same */
	uint32_t map;			/* 1 + number in maps: LD_IMM64's, or the helper call's only
					 * one */
	union {
		uint32_t limit;		/* of the mask */
		uint32_t key;		/* of a tail call whose index is known */
		uint32_t off;		/* in the map's values: LD_IMM64 with a map's value */
		int32_t loop_func;	/* the callback's first instruction */
	};
};

struct pb_bpf_subprog {
	uint32_t start, stack;		/* first instruction; bytes of its frame, a multiple of 8 */
	bool has_tail_call, is_callback;
	bool counts;			/* may_gotos: the lowest 8 bytes of its frame are their
					 * counter */
};

struct pb_bpf_facts {
	size_t size;			/* of the block that this begins */
	struct pb_bpf_fact *insns;	/* nr */
	uint32_t nr_subprogs;
	struct pb_bpf_subprog *subprogs;
	uint32_t stack;			/* of the deepest chain, with all counters that it may
					 * have */
	uint32_t ctx_needed;		/* bytes of the context, from its start, that are
					 * accessed */
};
#endif
