/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prints lines of text: by printk with up to three arguments, by printk with more arguments, and by
 * snprintf to a buffer. */
#include "../tool.h"

char last_line[64];
s64 length;

SEC("uprobe/calls:say") int BPF_KPROBE(on_say, const char *text, u32 number)
{
	char start[24];

	bpf_probe_read_user_str(start, sizeof(start), text);
	bpf_printk("say %d %s", number, start);
	bpf_printk("%d %d %d %d %d %d %d %s", number, number + 1, number + 2, number + 3,
		   number * 10, number << 8, -(int)number, start);
	length = BPF_SNPRINTF(last_line, sizeof(last_line), "%u/%x/%s/%llu", number, number + 250,
			      start, 1ull << 40);
	bpf_printk("%s", last_line);
	return 0;
}
