/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The contents of a program's struct bpf_dynptr. */
#ifndef PB_BPF_HELPER_DYNPTR_H
#define PB_BPF_HELPER_DYNPTR_H
#include <stdint.h>

#define PB_BPF_DYNPTR_MAX	0xffffff	/* bytes */

struct pb_bpf_dynptr {
	uint8_t *data;			/* NULL: invalid */
	uint32_t size, pad;
};
_Static_assert(sizeof(struct pb_bpf_dynptr) == 16, "struct bpf_dynptr");
#endif
