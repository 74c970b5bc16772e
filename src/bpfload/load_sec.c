/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Derives a program's type and attributes from its SEC("..."), as libbpf does. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpfload/load_priv.h"

/* Flags of section names. A flag without a comment sets the member of struct pb_bpf_object_prog
 * (load.h) that has a similar name. SLEEPS and FRAGS set bits of that structure's member
 * `flags`. */
enum {
	OURS = 1,		/* a type that Patchbay runs */
	TARGET = 2,		/* "/..." may follow the name */
	RETURNS = 4,
	USER = 8,
	MULTI = 16,
	SLEEPS = 32,
	FRAGS = 64,
	SPECIAL = 256,
	SESSION = 512,
	PREFIX = 128,		/* the row is for any section whose name begins with the row's
				 * name, as in libbpf before 1.0 */
};

struct sec {
	const char *name;
	uint16_t type, attach_type, flags;
};

/* Constants of kernels that may be newer than the headers. The numbers are fixed. */
enum {
	NETFILTER_TYPE = 32,
	NETFILTER = 45, TCX_INGRESS, TCX_EGRESS, UPROBE_MULTI, UNIX_CONNECT, UNIX_SENDMSG,
		UNIX_RECVMSG,
	UNIX_GETPEERNAME, UNIX_GETSOCKNAME, NETKIT_PRIMARY, NETKIT_PEER, KPROBE_SESSION,
		UPROBE_SESSION,
};

/* libbpf's table, in libbpf's order. uprobe.session is from libbpf 1.6. */
#define T(type) BPF_PROG_TYPE_##type
static const struct sec secs[] = {
	{ "socket", T(SOCKET_FILTER), 0, OURS | PREFIX },
	{ "kprobe", T(KPROBE), 0, OURS | TARGET },
	{ "uprobe", T(KPROBE), 0, OURS | TARGET | USER },
	{ "uprobe.s", T(KPROBE), 0, OURS | TARGET | USER | SLEEPS },
	{ "kretprobe", T(KPROBE), 0, OURS | TARGET | RETURNS },
	{ "uretprobe", T(KPROBE), 0, OURS | TARGET | USER | RETURNS },
	{ "uretprobe.s", T(KPROBE), 0, OURS | TARGET | USER | RETURNS | SLEEPS },
	{ "kprobe.multi", T(KPROBE), BPF_TRACE_KPROBE_MULTI, OURS | TARGET | MULTI },
	{ "kretprobe.multi", T(KPROBE), BPF_TRACE_KPROBE_MULTI, OURS | TARGET | MULTI | RETURNS },
	{ "kprobe.session", T(KPROBE), KPROBE_SESSION, OURS | TARGET | MULTI | SESSION },
	{ "uprobe.multi", T(KPROBE), UPROBE_MULTI, OURS | TARGET | USER | MULTI },
	{ "uretprobe.multi", T(KPROBE), UPROBE_MULTI, OURS | TARGET | USER | MULTI | RETURNS },
	{ "uprobe.session", T(KPROBE), UPROBE_SESSION, OURS | TARGET | USER | MULTI | SESSION },
	{ "uprobe.multi.s", T(KPROBE), UPROBE_MULTI, OURS | TARGET | USER | MULTI | SLEEPS },
	{ "uretprobe.multi.s", T(KPROBE), UPROBE_MULTI,
		OURS | TARGET | USER | MULTI | RETURNS | SLEEPS },
	{ "uprobe.session.s", T(KPROBE), UPROBE_SESSION,
		OURS | TARGET | USER | MULTI | SESSION | SLEEPS },
	{ "ksyscall", T(KPROBE), 0, OURS | TARGET | SPECIAL },
	{ "kretsyscall", T(KPROBE), 0, OURS | TARGET | RETURNS | SPECIAL },
	{ "usdt", T(KPROBE), 0, OURS | TARGET | USER | SPECIAL },
	{ "usdt.s", T(KPROBE), 0, OURS | TARGET | USER | SPECIAL | SLEEPS },
	{ "tc/ingress", T(SCHED_CLS), TCX_INGRESS, OURS },
	{ "tc/egress", T(SCHED_CLS), TCX_EGRESS, OURS },
	{ "tcx/ingress", T(SCHED_CLS), TCX_INGRESS, OURS },
	{ "tcx/egress", T(SCHED_CLS), TCX_EGRESS, OURS },
	{ "tc", T(SCHED_CLS), 0, OURS },
	{ "classifier", T(SCHED_CLS), 0, OURS | PREFIX },
	{ "action", T(SCHED_ACT), 0, OURS | PREFIX },
	{ "netkit/primary", T(SCHED_CLS), NETKIT_PRIMARY, OURS },
	{ "netkit/peer", T(SCHED_CLS), NETKIT_PEER, OURS },
	{ "tracepoint", T(TRACEPOINT), 0, OURS | TARGET },
	{ "tp", T(TRACEPOINT), 0, OURS | TARGET },
	{ "raw_tracepoint", T(RAW_TRACEPOINT), 0, OURS | TARGET },
	{ "raw_tp", T(RAW_TRACEPOINT), 0, OURS | TARGET },
	{ "raw_tracepoint.w", T(RAW_TRACEPOINT_WRITABLE), 0, TARGET },
	{ "raw_tp.w", T(RAW_TRACEPOINT_WRITABLE), 0, TARGET },
	{ "tp_btf", T(TRACING), BPF_TRACE_RAW_TP, TARGET },
	{ "fentry", T(TRACING), BPF_TRACE_FENTRY, TARGET },
	{ "fmod_ret", T(TRACING), BPF_MODIFY_RETURN, TARGET },
	{ "fexit", T(TRACING), BPF_TRACE_FEXIT, TARGET },
	{ "fentry.s", T(TRACING), BPF_TRACE_FENTRY, TARGET | SLEEPS },
	{ "fmod_ret.s", T(TRACING), BPF_MODIFY_RETURN, TARGET | SLEEPS },
	{ "fexit.s", T(TRACING), BPF_TRACE_FEXIT, TARGET | SLEEPS },
	{ "freplace", T(EXT), 0, TARGET },
	{ "lsm", T(LSM), BPF_LSM_MAC, TARGET },
	{ "lsm.s", T(LSM), BPF_LSM_MAC, TARGET | SLEEPS },
	{ "lsm_cgroup", T(LSM), BPF_LSM_CGROUP, TARGET },
	{ "iter", T(TRACING), BPF_TRACE_ITER, TARGET },
	{ "iter.s", T(TRACING), BPF_TRACE_ITER, TARGET | SLEEPS },
	{ "syscall", T(SYSCALL), 0, SLEEPS },
	{ "xdp.frags/devmap", T(XDP), BPF_XDP_DEVMAP, OURS | FRAGS },
	{ "xdp/devmap", T(XDP), BPF_XDP_DEVMAP, OURS },
	{ "xdp.frags/cpumap", T(XDP), BPF_XDP_CPUMAP, OURS | FRAGS },
	{ "xdp/cpumap", T(XDP), BPF_XDP_CPUMAP, OURS },
	{ "xdp.frags", T(XDP), BPF_XDP, OURS | FRAGS },
	{ "xdp", T(XDP), BPF_XDP, OURS | PREFIX },
	{ "perf_event", T(PERF_EVENT), 0, OURS | PREFIX },
	{ "lwt_in", T(LWT_IN), 0, PREFIX },
	{ "lwt_out", T(LWT_OUT), 0, PREFIX },
	{ "lwt_xmit", T(LWT_XMIT), 0, PREFIX },
	{ "lwt_seg6local", T(LWT_SEG6LOCAL), 0, PREFIX },
	{ "sk_reuseport/migrate", T(SK_REUSEPORT), BPF_SK_REUSEPORT_SELECT_OR_MIGRATE, 0 },
	{ "sk_reuseport", T(SK_REUSEPORT), BPF_SK_REUSEPORT_SELECT, PREFIX },
	{ "sockops", T(SOCK_OPS), BPF_CGROUP_SOCK_OPS, PREFIX },
	{ "sk_skb/stream_parser", T(SK_SKB), BPF_SK_SKB_STREAM_PARSER, 0 },
	{ "sk_skb/stream_verdict", T(SK_SKB), BPF_SK_SKB_STREAM_VERDICT, 0 },
	{ "sk_skb", T(SK_SKB), 0, PREFIX },
	{ "sk_msg", T(SK_MSG), BPF_SK_MSG_VERDICT, PREFIX },
	{ "lirc_mode2", T(LIRC_MODE2), BPF_LIRC_MODE2, PREFIX },
	{ "flow_dissector", T(FLOW_DISSECTOR), BPF_FLOW_DISSECTOR, PREFIX },
	{ "cgroup_skb/ingress", T(CGROUP_SKB), BPF_CGROUP_INET_INGRESS, OURS },
	{ "cgroup_skb/egress", T(CGROUP_SKB), BPF_CGROUP_INET_EGRESS, OURS },
	{ "cgroup/skb", T(CGROUP_SKB), 0, OURS | PREFIX },
	{ "cgroup/sock_create", T(CGROUP_SOCK), BPF_CGROUP_INET_SOCK_CREATE, 0 },
	{ "cgroup/sock_release", T(CGROUP_SOCK), BPF_CGROUP_INET_SOCK_RELEASE, 0 },
	{ "cgroup/sock", T(CGROUP_SOCK), BPF_CGROUP_INET_SOCK_CREATE, PREFIX },
	{ "cgroup/post_bind4", T(CGROUP_SOCK), BPF_CGROUP_INET4_POST_BIND, 0 },
	{ "cgroup/post_bind6", T(CGROUP_SOCK), BPF_CGROUP_INET6_POST_BIND, 0 },
	{ "cgroup/bind4", T(CGROUP_SOCK_ADDR), BPF_CGROUP_INET4_BIND, 0 },
	{ "cgroup/bind6", T(CGROUP_SOCK_ADDR), BPF_CGROUP_INET6_BIND, 0 },
	{ "cgroup/connect4", T(CGROUP_SOCK_ADDR), BPF_CGROUP_INET4_CONNECT, 0 },
	{ "cgroup/connect6", T(CGROUP_SOCK_ADDR), BPF_CGROUP_INET6_CONNECT, 0 },
	{ "cgroup/connect_unix", T(CGROUP_SOCK_ADDR), UNIX_CONNECT, 0 },
	{ "cgroup/sendmsg4", T(CGROUP_SOCK_ADDR), BPF_CGROUP_UDP4_SENDMSG, 0 },
	{ "cgroup/sendmsg6", T(CGROUP_SOCK_ADDR), BPF_CGROUP_UDP6_SENDMSG, 0 },
	{ "cgroup/sendmsg_unix", T(CGROUP_SOCK_ADDR), UNIX_SENDMSG, 0 },
	{ "cgroup/recvmsg4", T(CGROUP_SOCK_ADDR), BPF_CGROUP_UDP4_RECVMSG, 0 },
	{ "cgroup/recvmsg6", T(CGROUP_SOCK_ADDR), BPF_CGROUP_UDP6_RECVMSG, 0 },
	{ "cgroup/recvmsg_unix", T(CGROUP_SOCK_ADDR), UNIX_RECVMSG, 0 },
	{ "cgroup/getpeername4", T(CGROUP_SOCK_ADDR), BPF_CGROUP_INET4_GETPEERNAME, 0 },
	{ "cgroup/getpeername6", T(CGROUP_SOCK_ADDR), BPF_CGROUP_INET6_GETPEERNAME, 0 },
	{ "cgroup/getpeername_unix", T(CGROUP_SOCK_ADDR), UNIX_GETPEERNAME, 0 },
	{ "cgroup/getsockname4", T(CGROUP_SOCK_ADDR), BPF_CGROUP_INET4_GETSOCKNAME, 0 },
	{ "cgroup/getsockname6", T(CGROUP_SOCK_ADDR), BPF_CGROUP_INET6_GETSOCKNAME, 0 },
	{ "cgroup/getsockname_unix", T(CGROUP_SOCK_ADDR), UNIX_GETSOCKNAME, 0 },
	{ "cgroup/sysctl", T(CGROUP_SYSCTL), BPF_CGROUP_SYSCTL, 0 },
	{ "cgroup/getsockopt", T(CGROUP_SOCKOPT), BPF_CGROUP_GETSOCKOPT, 0 },
	{ "cgroup/setsockopt", T(CGROUP_SOCKOPT), BPF_CGROUP_SETSOCKOPT, 0 },
	{ "cgroup/dev", T(CGROUP_DEVICE), BPF_CGROUP_DEVICE, PREFIX },
	{ "struct_ops", T(STRUCT_OPS), 0, TARGET },
	{ "struct_ops.s", T(STRUCT_OPS), 0, TARGET | SLEEPS },
	{ "sk_lookup", T(SK_LOOKUP), BPF_SK_LOOKUP, 0 },
	{ "netfilter", NETFILTER_TYPE, NETFILTER, 0 },
};
#undef T
#define NR_SECS (sizeof(secs) / sizeof(secs[0]))

static const struct sec *sec_named(const char *name, const char **target)
{
	for (size_t i = 0; i < NR_SECS; i++) {
		size_t n = strlen(secs[i].name);

		if (strncmp(name, secs[i].name, n))
			continue;
		if (name[n] && !((secs[i].flags & TARGET) && name[n] == '/'))
			continue;
		*target = name[n] && name[n + 1] ? name + n + 1 : NULL;
		return &secs[i];
	}
	return NULL;
}

/* Returns the row with the longest name that is a prefix of the section's name. Only rows with
 * PREFIX count. */
static const struct sec *sec_guessed(const char *name)
{
	const struct sec *best = NULL;

	for (size_t i = 0; i < NR_SECS; i++)
		if ((secs[i].flags & PREFIX) &&
		    !strncmp(name, secs[i].name, strlen(secs[i].name)) &&
		    (!best || strlen(best->name) < strlen(secs[i].name)))
			best = &secs[i];
	return best;
}

void load_section_name(struct load *l, struct pb_bpf_object_prog *prog, uint32_t default_type)
{
	const char *name = prog->section + (prog->section[0] == '?');
	const struct sec *s = sec_named(name, &prog->target);

	prog->autoload = name == prog->section;
	if (!s) {
		s = sec_guessed(name);
		prog->guessed = s;
	}
	if (!s || (prog->guessed && default_type)) {
		prog->guessed = false;
		prog->type = default_type;
		if (!default_type)
			load_error(l, &prog->why,
				   "section name \"%s\" doesn't determine a program type", name);
		return;
	}
	prog->type = s->type;
	prog->attach_type = s->attach_type;
	prog->returns = s->flags & RETURNS;
	prog->user = s->flags & USER;
	prog->multi = s->flags & MULTI;
	prog->special = s->flags & SPECIAL;
	prog->session = s->flags & SESSION;
	prog->flags = (s->flags & SLEEPS ? BPF_F_SLEEPABLE : 0) |
		      (s->flags & FRAGS ? BPF_F_XDP_HAS_FRAGS : 0);
	if (!(s->flags & OURS))
		load_error(l, &prog->why,
			   "section \"%s\": Patchbay can't run such programs, because only the "
			   "kernel calls them", s->name);
}

int pb_bpf_object_target(const struct pb_bpf_object_prog *prog, struct pb_bpf_target *t)
{
	const char *colon, *plus;
	char *end;

	*t = (struct pb_bpf_target){ .func = prog->target };
	if (prog->type != BPF_PROG_TYPE_KPROBE || prog->special)
		return -EINVAL;
	if (!prog->target)
		return -ENOENT;
	if (prog->user) {	/* the last colon ends the path: paths may have colons, functions
				 * have none */
		colon = strrchr(prog->target, ':');
		if (!colon || colon == prog->target)
			return -EINVAL;
		t->path = prog->target;
		t->path_len = (size_t)(colon - prog->target);
		t->func = colon + 1;
	}
	t->func_len = strlen(t->func);
	plus = prog->multi ? NULL : strchr(t->func, '+');
	if (plus) {
		t->func_len = (size_t)(plus - t->func);
		t->off = strtoull(plus + 1, &end, 0);
		if (plus[1] < '0' || plus[1] > '9' || *end)
			return -EINVAL;
	}
	return t->func_len ? 0 : -EINVAL;
}
