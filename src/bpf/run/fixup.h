/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Resolves a verified program: replaces each instruction with instructions that can run. References
 * to maps become addresses. Accesses to the context become accesses to Patchbay's structure.
 * Instructions that no path reaches are dropped. Masks against speculation are added. From the
 * result, pb_bpf_prog_make() (image.h) makes a program that can run.
 *
 * Context: the same as for pb_bpf_verify().
 */
#ifndef PB_BPF_RUN_FIXUP_H
#define PB_BPF_RUN_FIXUP_H
#include "bpf/run/image.h"
#include "bpf/verifier/verify.h"

struct pb_bpf_resolved {
	struct pb_bpf_prog_spec spec;	/* the caller must set id and name */
	uint32_t *origin;		/* for each resolved instruction, the verified instruction
					 * from which it comes */
	struct pb_bpf_mem *mem;
	struct {
		void *p;
		size_t size;
	} blocks[7];
};

/*
 * v: the program after pb_bpf_verify(), with v->facts. Returns 0 or -ENOMEM. -EINVAL: the program
 * calls a helper that works only in the kernel. -ERANGE: a jump became too long. For -EINVAL and
 * -ERANGE, the log names the helper or the instruction.
 */
int pb_bpf_resolve(const struct pb_bpf_verify *v, struct pb_bpf_resolved *out);
void pb_bpf_resolved_free(struct pb_bpf_resolved *r);

/*
 * Returns the name of a helper that needs a function of the host, if this host doesn't have the
 * function. NULL: the host has the functions that the program's helpers need. calls: the functions
 * of the helpers that the resolved program calls. Context: any.
 */
const char *pb_bpf_host_lacks(const struct pb_bpf_host *host, pb_bpf_fn *const *calls, uint32_t nr);
#endif
