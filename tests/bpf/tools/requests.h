/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A ticket as tools know it. The program's own (requests.c) has the same fields in
 * other places and others beside them; its BTF says where.
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
