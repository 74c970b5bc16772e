/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The table of helpers. It has a row for each helper of the kernel: the prototype, the programs
 * that may call the helper, and the helper's function. Numbers and names come from linux/bpf.h.
 * Prototypes come from the kernel, and use the kernel's names (ARG_, RET_).
 */
#ifndef PB_BPF_HELPER_HELPER_H
#define PB_BPF_HELPER_HELPER_H
#include "bpf/core/program.h"
#include "bpf/helper/prog_type.h"

/* The kinds of arguments. */
enum pb_bpf_arg {
	PB_BPF_ARG_DONTCARE,		/* no argument */
	PB_BPF_ARG_CONST_MAP_PTR,	/* a map; the key and value arguments after it belong to
					 * this map */
	PB_BPF_ARG_PTR_TO_MAP_KEY,	/* a key in any memory */
	PB_BPF_ARG_PTR_TO_MAP_VALUE,
	PB_BPF_ARG_PTR_TO_MEM,		/* memory; its length is the next argument, or `size` if
					 * FIXED_SIZE is set */
	PB_BPF_ARG_CONST_SIZE,		/* size of the memory to which the previous argument points,
					 * > 0 */
	PB_BPF_ARG_CONST_SIZE_OR_ZERO,
	PB_BPF_ARG_PTR_TO_CTX,
	PB_BPF_ARG_ANYTHING,		/* any initialised value */
	PB_BPF_ARG_PTR_TO_SPIN_LOCK,
	PB_BPF_ARG_PTR_TO_SOCK_COMMON,
	PB_BPF_ARG_PTR_TO_SOCKET,
	PB_BPF_ARG_PTR_TO_BTF_ID,	/* `btf` names the structure */
	PB_BPF_ARG_PTR_TO_ALLOC_MEM,	/* a record of a ring buffer */
	PB_BPF_ARG_CONST_ALLOC_SIZE_OR_ZERO,	/* size of the memory that is returned */
	PB_BPF_ARG_PTR_TO_BTF_ID_SOCK_COMMON,
	PB_BPF_ARG_PTR_TO_PERCPU_BTF_ID,
	PB_BPF_ARG_PTR_TO_FUNC,		/* a callback */
	PB_BPF_ARG_PTR_TO_STACK,
	PB_BPF_ARG_PTR_TO_CONST_STR,	/* a string in a constant map */
	PB_BPF_ARG_PTR_TO_TIMER,
	PB_BPF_ARG_PTR_TO_KPTR,
	PB_BPF_ARG_PTR_TO_DYNPTR,
	PB_BPF_NR_ARGS,

	PB_BPF_ARG_BASE = 0xff,
	/* flags that may be or-ed into an argument: */
	PB_BPF_MAYBE_NULL = 0x100,	/* _OR_NULL */
	PB_BPF_UNINIT = 0x200,		/* the helper writes the memory, which need not be
					 * initialised */
	PB_BPF_RDONLY = 0x400,		/* the memory may be read-only */
	PB_BPF_RELEASE = 0x800,		/* the helper releases the reference */
	PB_BPF_FIXED_SIZE = 0x1000,	/* the memory has `size` bytes */
	PB_BPF_DYNPTR_LOCAL = 0x2000,
	PB_BPF_DYNPTR_RINGBUF = 0x4000,
	PB_BPF_MEM_WRITE = 0x8000,	/* the helper writes the memory, whether or not UNINIT is
					 * set */
	PB_BPF_MEM_ALIGNED = 0x10000,	/* with FIXED_SIZE: the memory is aligned to `size` */
};

enum pb_bpf_ret {
	PB_BPF_RET_INTEGER,
	PB_BPF_RET_VOID,
	PB_BPF_RET_MAP_VALUE,		/* a value of the map that was passed */
	PB_BPF_RET_SOCKET,
	PB_BPF_RET_TCP_SOCK,
	PB_BPF_RET_SOCK_COMMON,
	PB_BPF_RET_MEM,			/* memory of the size that was passed */
	PB_BPF_RET_ALLOC_MEM,		/* like RET_MEM, but reserved in a ring buffer */
	PB_BPF_RET_BTF_ID,
	PB_BPF_RET_MEM_OR_BTF_ID,
	PB_BPF_RET_BASE = 0xff,		/* a mask; PB_BPF_MAYBE_NULL and PB_BPF_RDONLY may be or-ed
					 * into a return type */
};

enum pb_bpf_helper_flags {
	PB_BPF_HELPER_GPL = 1,		/* gpl_only */
	PB_BPF_HELPER_PKT = 2,		/* programs may pass packet memory to the helper
					 * (pkt_access) */
	PB_BPF_HELPER_MOVES_PKT = 4,	/* the call invalidates packet pointers */
	PB_BPF_HELPER_SLEEPS = 8,	/* the helper may sleep (might_sleep). The verifier doesn't
					 * use this flag: helpers that have it have no function,
					 * so programs that call them can't run anyway */
};

struct pb_bpf_helper {
	const char *name;		/* name with the prefix bpf_; NULL: there is no helper with
					 * this number */
	pb_bpf_fn *fn;			/* NULL: pb_bpf_resolve() replaces calls of the helper, or
					 * only the kernel can do the helper's work */
	uint32_t sets;			/* bits of enum pb_bpf_helper_set; 0: only unsupported
					 * program types may call the helper */
	uint32_t ret, flags;
	uint32_t arg[5];
	uint16_t size[5];		/* for arguments with PB_BPF_FIXED_SIZE: bytes of the
					 * memory */
	const char *btf[5];		/* for PTR_TO_BTF_ID: the structure's name; NULL: the
					 * structure of the map's kptr */
	const char *ret_btf;
};

/*
 * Like the kernel's get_func_proto: returns the helper with this number if a program of this type
 * and attach type may call the helper. caps: the program's privileges (enum pb_bpf_caps). NULL: the
 * program may not call the helper. The prototypes of a few helpers depend on the program type.
 * Context: any.
 */
const struct pb_bpf_helper *pb_bpf_helper_for(const struct pb_bpf_type *type, uint32_t attach_type,
					      uint32_t caps, uint32_t id);

/* Returns the helper with this number. Doesn't check permission. Never returns NULL; for an unknown
 * number, the result's name is NULL. Context: any. */
const struct pb_bpf_helper *pb_bpf_helper_of(uint32_t id);
#endif
