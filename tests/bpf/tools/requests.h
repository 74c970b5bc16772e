/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A ticket as the tools declare it. In the program (requests.c) the structure has these fields
 * at other offsets, and more fields; its BTF has the offsets.
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
