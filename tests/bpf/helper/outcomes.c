/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Compares the outcomes of a series of calls (outcomes.h). A difference doesn't count if a change
 * in later kernels (as_newer()) or a flaw of the kernel (is_kernels_flaw()) explains it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "bpf/helper/helper.h"
#include "outcomes.h"

struct outcome ours, kernels;
unsigned nr_flaws;

static void hex(const char *what, const uint8_t *p, uint32_t n)
{
	print_message("%s (%u)", what, n);
	for (uint32_t i = 0; i < n; i++)
		print_message("%s%02x", i % 32 ? "" : "\n    ", p[i]);
	print_message("\n");
}

/* Returns the value that later kernels return in place of ret. Our helpers follow Linux 6.1. */
static uint64_t as_newer(uint32_t id, uint64_t ret)
{
	/* since Linux 6.13, the result of csum_diff has 16 bits */
	if (id == BPF_FUNC_csum_diff && ret < (1ull << 32)) {
		ret = (ret & 0xffff) + (ret >> 16);
		return (ret & 0xffff) + (ret >> 16);
	}
	return ret;
}

/*
 * Returns whether a flaw of the kernel causes the difference at call i. When the kernel grows the
 * headroom of a buffer, it adds the growth to the offset of the transport header, even if this
 * offset has the value "unset". Later the kernel treats the sum as a valid offset, and cuts packets
 * in the middle of their headers.
 */
static bool is_kernels_flaw(const struct calls *c, uint32_t i)
{
	return c->call[i].id == BPF_FUNC_skb_change_tail && (int64_t)ours.ret[i] == -EINVAL &&
	       !kernels.ret[i] && c->call[i].arg[1].v < 1000;
}

int compare_outcomes(const struct calls *c)
{
	bool ran;
	int differ = 0;

	calls_ours(c, &ours);
	calls_kernel(c, &kernels);
	if (kernels.err == -1) {
		print_message("%s", kernels.why);
		return 1;
	}
	/* after a run, -EBADMSG means that the packet's sum has become wrong */
	ran = !kernels.err || kernels.err == -EBADMSG;
	for (uint32_t i = 0; i < c->nr && ran; i++) {
		if (is_kernels_flaw(c, i)) {
			nr_flaws++;
			return differ;
		}
		if (as_newer(c->call[i].id, ours.ret[i]) != kernels.ret[i]) {
			const struct call *call = &c->call[i];

			print_message("call %u %s(%#lx, %#lx, %#lx, %#lx): %#lx, the kernel's "
				      "%#lx\n", i, pb_bpf_helper_of(call->id)->name,
				      (long)call->arg[1].v, (long)call->arg[2].v,
				      (long)call->arg[3].v, (long)call->arg[4].v,
				      (long)ours.ret[i], (long)kernels.ret[i]);
			differ = 1;
		}
	}
	if (ours.err != kernels.err) {
		print_message("seed: error %d, the kernel's %d\n", ours.err, kernels.err);
		differ = 1;
	}
	if (ran && memcmp(ours.mem, kernels.mem, CALLS_MEM)) {
		uint32_t i = 0;

		while (ours.mem[i] == kernels.mem[i])
			i++;
		print_message("memory at %u\n", i);
		hex("ours", ours.mem + i, i + 64 < CALLS_MEM ? 64 : CALLS_MEM - i);
		hex("the kernel's", kernels.mem + i, i + 64 < CALLS_MEM ? 64 : CALLS_MEM - i);
		differ = 1;
	}
	if (!kernels.err &&
	    (ours.data_len != kernels.data_len || memcmp(ours.data, kernels.data, ours.data_len))) {
		hex("packet", ours.data, ours.data_len < 200 ? ours.data_len : 200);
		hex("the kernel's", kernels.data, kernels.data_len < 200 ? kernels.data_len : 200);
		differ = 1;
	}
	if (!kernels.err && memcmp(ours.ctx, kernels.ctx, sizeof(ours.ctx))) {
		hex("context", ours.ctx, 192);
		hex("the kernel's", kernels.ctx, 192);
		differ = 1;
	}
	return differ;
}

void show_calls(const struct calls *c)
{
	hex("packet in", c->data, c->data_len < 100 ? c->data_len : 100);
	for (uint32_t i = 0; i < c->nr; i++)
		print_message("  %s(%#lx, %#lx, %#lx, %#lx, %#lx) = %#lx\n",
			      pb_bpf_helper_of(c->call[i].id)->name, (long)c->call[i].arg[0].v,
			      (long)c->call[i].arg[1].v, (long)c->call[i].arg[2].v,
			      (long)c->call[i].arg[3].v, (long)c->call[i].arg[4].v,
			      (long)ours.ret[i]);
}
