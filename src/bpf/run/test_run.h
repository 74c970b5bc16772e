/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * BPF_PROG_TEST_RUN: a program is run with a packet or a context that somebody made
 * up, and what it did is looked at. Checks, fields, flags and errnos are the kernel's
 * (net/bpf/test_run.c), with these differences:
 *   - kprobe, tracepoint and perf_event programs, too, are run when they are given a
 *     context; without one it is -524 (ENOTSUPP) as there
 *   - a packet of xdp is always in one piece
 *   - cgroup_skb programs see the end of their packet
 * Packets lie between pages that can't be touched.
 *
 * Context: not in a run, not in a signal handler.
 */
#ifndef PB_BPF_RUN_TEST_RUN_H
#define PB_BPF_RUN_TEST_RUN_H
#include "bpf/core/host.h"
#include "bpf/core/packet.h"

struct pb_bpf_test_run {
	/* in */
	const struct pb_bpf_prog *prog;
	const struct pb_bpf_host *host;
	bool interpret;			/* even if there is native code */
	uint32_t attach_type, lane;
	uint32_t ctx_needed;		/* bytes of the context at least, besides the program's own
					 * need */
	const void *data_in, *ctx_in;
	uint32_t data_size_in, ctx_size_in;
	uint32_t repeat;		/* 0: once */
	uint32_t flags, cpu, batch_size;
	/*
	 * Rooms around a packet besides the kernel's, for programs that make it longer;
	 * `tight`: none at all, so that it begins (begin_tight) or ends at the untouchable page
	 */
	bool tight, begin_tight;
	/* what helpers know about a packet of the sk_buff kind: all after `csum`. May be NULL */
	const struct pb_bpf_skb *about;
	uint64_t cookie;
	/* out, if not NULL; sizes: their room, then what there would be */
	void *data_out, *ctx_out;
	uint32_t data_size_out, ctx_size_out;
	/* out */
	uint32_t retval, duration;	/* duration: nanoseconds of one run */
	uint32_t redirect_ifindex;
};

/* 0 or -errno; -ENOSPC: out is too small, and has as much as fits. */
int pb_bpf_test_run(struct pb_bpf_test_run *t);
#endif
