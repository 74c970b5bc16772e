/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * From a verified program to one that can be made (image.h): references become
 * addresses, accesses to the context go where its fields are, instructions that
 * nobody reaches are left out, masks against speculation are written in.
 *
 * Context: as the verifier's.
 */
#ifndef PB_BPF_RUN_FIXUP_H
#define PB_BPF_RUN_FIXUP_H
#include "bpf/run/image.h"
#include "bpf/verifier/verify.h"

struct pb_bpf_resolved {
	struct pb_bpf_prog_spec spec;	/* id, name and `privileged` are the caller's to set */
	uint32_t *origin;		/* of each instruction: the verified one that it comes
					 * from */
	struct pb_bpf_mem *mem;
	struct {
		void *p;
		size_t size;
	} blocks[7];
};

/*
 * v as it was verified, with v->facts. 0; -ENOMEM; -EINVAL: it calls a helper that
 * has no meaning in a process, -ERANGE: a jump became too far; the log says which.
 */
int pb_bpf_resolve(const struct pb_bpf_verify *v, struct pb_bpf_resolved *out);
void pb_bpf_resolved_free(struct pb_bpf_resolved *r);
#endif
