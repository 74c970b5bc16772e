/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Prints a line for each call. The line begins with the thread's name. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

SEC("uprobe/named:call") int on_call(void *ctx)
{
	bpf_printk("called");
	return 1;
}

char LICENSE[] SEC("license") = "GPL";
