/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Uses CO-RE for the types of a program: fields, chains of pointers, sizes, and fields that don't
 * exist. */
#include "../tool.h"
#include "requests.h"

struct ticket___old {
	unsigned long sector;
} __attribute__((preserve_access_index));

struct ticket___named {
	unsigned long id;
	char name[12];
} __attribute__((preserve_access_index));

u64 requests, ids, chained, sectors, bytes_of_previous, size, named;
char last_name[16];

SEC("uprobe/requests:submit") int BPF_KPROBE(on_submit, struct ticket *r)
{
	struct ticket___named *n = (void *)r;
	struct ticket___old *o = (void *)r;

	__sync_fetch_and_add(&requests, 1);
	__sync_fetch_and_add(&ids, BPF_CORE_READ_USER(n, id));
	if (BPF_CORE_READ_USER(r, next)) {
		__sync_fetch_and_add(&chained, 1);
		__sync_fetch_and_add(&bytes_of_previous, BPF_CORE_READ_USER(r, next, bytes));
	}
	if (bpf_core_field_exists(o->sector))
		__sync_fetch_and_add(&sectors, BPF_CORE_READ_USER(o, sector));
	if (bpf_core_field_exists(n->name) && bpf_core_field_size(n->name) <= sizeof(last_name)) {
		bpf_probe_read_user_str(last_name, sizeof(last_name), n->name);
		__sync_fetch_and_add(&named, 1);
	}
	size = bpf_core_type_size(struct ticket);
	return 0;
}
