/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Helpers: for each of the kernel's numbers its prototype, the programs that may call it, and the
 * function that does it. Source of numbers and names: linux/bpf.h; of prototypes:
 * the kernel's, whose names these are (ARG_, RET_).
 */
#ifndef PB_BPF_HELPER_HELPER_H
#define PB_BPF_HELPER_HELPER_H
#include "bpf/core/program.h"
#include "bpf/helper/prog_type.h"

/* What an argument has to be. */
enum pb_bpf_arg {
	PB_BPF_ARG_DONTCARE,		/* none */
	PB_BPF_ARG_CONST_MAP_PTR,	/* the map of the key and value arguments after it */
	PB_BPF_ARG_PTR_TO_MAP_KEY,	/* on the stack, in a packet, a map or memory */
	PB_BPF_ARG_PTR_TO_MAP_VALUE,
	PB_BPF_ARG_PTR_TO_MEM,		/* its length is the next argument, or `size` bytes */
	PB_BPF_ARG_CONST_SIZE,		/* of the memory before it, > 0 */
	PB_BPF_ARG_CONST_SIZE_OR_ZERO,
	PB_BPF_ARG_PTR_TO_CTX,
	PB_BPF_ARG_ANYTHING,		/* anything that is initialised */
	PB_BPF_ARG_PTR_TO_SPIN_LOCK,
	PB_BPF_ARG_PTR_TO_SOCK_COMMON,
	PB_BPF_ARG_PTR_TO_INT,
	PB_BPF_ARG_PTR_TO_LONG,
	PB_BPF_ARG_PTR_TO_SOCKET,
	PB_BPF_ARG_PTR_TO_BTF_ID,	/* `btf` names the structure */
	PB_BPF_ARG_PTR_TO_ALLOC_MEM,	/* a record of a ring buffer */
	PB_BPF_ARG_CONST_ALLOC_SIZE_OR_ZERO,	/* of the memory that is returned */
	PB_BPF_ARG_PTR_TO_BTF_ID_SOCK_COMMON,
	PB_BPF_ARG_PTR_TO_PERCPU_BTF_ID,
	PB_BPF_ARG_PTR_TO_FUNC,		/* a callback */
	PB_BPF_ARG_PTR_TO_STACK,
	PB_BPF_ARG_PTR_TO_CONST_STR,	/* text in a map that can't change any more */
	PB_BPF_ARG_PTR_TO_TIMER,
	PB_BPF_ARG_PTR_TO_KPTR,
	PB_BPF_ARG_PTR_TO_DYNPTR,
	PB_BPF_NR_ARGS,

	PB_BPF_ARG_BASE = 0xff,
	/* with | */
	PB_BPF_MAYBE_NULL = 0x100,	/* _OR_NULL */
	PB_BPF_UNINIT = 0x200,		/* it is written, needn't be initialised */
	PB_BPF_RDONLY = 0x400,		/* may be memory that can't be written */
	PB_BPF_RELEASE = 0x800,		/* the reference ends here */
	PB_BPF_FIXED_SIZE = 0x1000,	/* `size` bytes */
	PB_BPF_ALLOC = 0x2000,		/* of a reservation */
	PB_BPF_DYNPTR_LOCAL = 0x4000,
	PB_BPF_DYNPTR_RINGBUF = 0x8000,
	PB_BPF_MEM_WRITE = 0x10000,	/* it is written (also where UNINIT isn't said) */
	PB_BPF_MEM_ALIGNED = 0x20000,	/* aligned to `size` */
};

enum pb_bpf_ret {
	PB_BPF_RET_INTEGER,
	PB_BPF_RET_VOID,
	PB_BPF_RET_MAP_VALUE,		/* of the map in the arguments */
	PB_BPF_RET_SOCKET,
	PB_BPF_RET_TCP_SOCK,
	PB_BPF_RET_SOCK_COMMON,
	PB_BPF_RET_MEM,			/* of the size in the arguments, or `ret_size` */
	PB_BPF_RET_ALLOC_MEM,		/* the same, of a reservation */
	PB_BPF_RET_BTF_ID,
	PB_BPF_RET_MEM_OR_BTF_ID,
	PB_BPF_RET_BASE = 0xff,		/* with | PB_BPF_MAYBE_NULL, PB_BPF_RDONLY */
};

enum pb_bpf_helper_flags {
	PB_BPF_HELPER_GPL = 1,		/* gpl_only */
	PB_BPF_HELPER_PKT = 2,		/* may be given packet memory (pkt_access) */
	PB_BPF_HELPER_MOVES_PKT = 4,	/* packet pointers are void afterwards */
	PB_BPF_HELPER_SLEEPS = 8,	/* might_sleep: not for any of our types */
};

struct pb_bpf_helper {
	const char *name;		/* with bpf_; NULL: no such number */
	pb_bpf_fn *fn;			/* NULL: the resolver knows what it does, or it can't be
					 * here */
	uint32_t sets;			/* enum pb_bpf_helper_set; 0: of types that aren't here */
	uint32_t ret, flags;
	uint32_t arg[5];
	uint16_t size[5];		/* with PB_BPF_FIXED_SIZE */
	const char *btf[5];		/* a structure's name, for PTR_TO_BTF_ID; NULL: the map's
					 * kptr's */
	const char *ret_btf;
};

/*
 * What a program of that type, attached so, may call with these privileges (enum
 * pb_bpf_caps), as the kernel's get_func_proto: NULL, it may not. Numbers have one
 * prototype but for a few that differ by type. Context: any, as below.
 */
const struct pb_bpf_helper *pb_bpf_helper_for(const struct pb_bpf_type *type, uint32_t attach_type,
					      uint32_t caps, uint32_t id);

/* By number alone, without a check of permission. Never NULL: unknown numbers have no name. */
const struct pb_bpf_helper *pb_bpf_helper_of(uint32_t id);
#endif
