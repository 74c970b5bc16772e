/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Sections that libbpf 1.5 knows, and uprobe.session of libbpf 1.6: X(name, section, program type,
 * attach type). The types are numbers because the installed headers may lack the names of the
 * types.
 */
#define EACH_SECTION(X) \
	X(kprobe, "kprobe/f", 2, 0) \
	X(uprobe_s, "uprobe.s//lib/l.so:f", 2, 0) \
	X(uretprobe_s, "uretprobe.s//lib/l.so:f", 2, 0) \
	X(kprobe_multi, "kprobe.multi/f*", 2, 42) \
	X(kretprobe_multi, "kretprobe.multi/f*", 2, 42) \
	X(kprobe_session, "kprobe.session/f*", 2, 56) \
	X(uprobe_multi, "uprobe.multi//lib/l.so:f*", 2, 48) \
	X(uretprobe_multi, "uretprobe.multi//lib/l.so:f*", 2, 48) \
	X(uprobe_multi_s, "uprobe.multi.s//lib/l.so:f*", 2, 48) \
	X(uretprobe_multi_s, "uretprobe.multi.s//lib/l.so:f*", 2, 48) \
	X(uprobe_session, "uprobe.session//lib/l.so:f*", 2, 57) \
	X(uprobe_session_s, "uprobe.session.s//lib/l.so:f*", 2, 57) \
	X(ksyscall, "ksyscall/read", 2, 0) \
	X(kretsyscall, "kretsyscall/read", 2, 0) \
	X(usdt, "usdt//lib/l.so:a:b", 2, 0) \
	X(usdt_s, "usdt.s//lib/l.so:a:b", 2, 0) \
	X(tc_ingress, "tc/ingress", 3, 46) \
	X(tc_egress, "tc/egress", 3, 47) \
	X(tcx_ingress, "tcx/ingress", 3, 46) \
	X(tcx_egress, "tcx/egress", 3, 47) \
	X(tc, "tc", 3, 0) \
	X(netkit_primary, "netkit/primary", 3, 54) \
	X(netkit_peer, "netkit/peer", 3, 55) \
	X(xdp_frags, "xdp.frags", 6, 37) \
	X(xdp_frags_devmap, "xdp.frags/devmap", 6, 33) \
	X(xdp_frags_cpumap, "xdp.frags/cpumap", 6, 35) \
	X(syscall, "syscall", 31, 0) \
	X(unix_connect, "cgroup/connect_unix", 18, 49) \
	X(unix_sendmsg, "cgroup/sendmsg_unix", 18, 50) \
	X(unix_recvmsg, "cgroup/recvmsg_unix", 18, 51) \
	X(unix_getpeername, "cgroup/getpeername_unix", 18, 52) \
	X(unix_getsockname, "cgroup/getsockname_unix", 18, 53) \
	X(struct_ops_s, "struct_ops.s/f", 27, 0) \
	X(netfilter, "netfilter", 32, 45) \
	X(iter_s, "iter.s/task", 26, 28) \
	X(fexit_s, "fexit.s/f", 26, 25)
