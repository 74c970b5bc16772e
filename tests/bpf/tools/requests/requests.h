/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The tools' declaration of a ticket. In the program (requests.c), the structure has more fields
 * and other offsets. CO-RE takes the offsets from the program's BTF.
 */
#include <bpf/bpf_core_read.h>

struct ticket {
	struct {
		unsigned short op;
		unsigned char urgent;
	} what;
	unsigned bytes;
	struct ticket *next;
} __attribute__((preserve_access_index));
