/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One row for each helper, in the order of the kernel's numbers (linux/bpf.h):
 *
 *   X(name, DO or NO, sets, flags, return type, A(arguments), more fields of the row)
 *
 * DO: src/bpf has a function for the helper. NO: src/bpf has no function for it. Either
 * pb_bpf_resolve() replaces the call (tail_call), or only the kernel can do the helper's work.
 * Programs that call such a kernel-only helper can be verified, but not run. If a row's sets are 0,
 * only programs of unsupported types may call the helper, and the table has only the helper's name.
 * Prototypes and sets are those of Linux 6.1. But if programs of all types may call a helper in
 * Linux 6.12, its sets are those of Linux 6.12. helper.c defines the words that the rows use.
 */
#ifndef PB_BPF_HELPER_HELPER_TABLE_H
#define PB_BPF_HELPER_HELPER_TABLE_H

#define PB_BPF_HELPERS(X) \
	X(map_lookup_elem, DO, BASE | TRACING, PKT, MAP_VALUE | OR_NULL, \
	  A(CONST_MAP_PTR, PTR_TO_MAP_KEY)) \
	X(map_update_elem, DO, BASE | TRACING, PKT, INTEGER, \
		A(CONST_MAP_PTR, PTR_TO_MAP_KEY, PTR_TO_MAP_VALUE, ANYTHING)) \
	X(map_delete_elem, DO, BASE | TRACING, PKT, INTEGER, A(CONST_MAP_PTR, PTR_TO_MAP_KEY)) \
	X(probe_read, DO, TRACING, GPL, INTEGER, \
	  A(PTR_TO_MEM | UNINIT | WRITE, CONST_SIZE_OR_ZERO, ANYTHING)) \
	X(ktime_get_ns, DO, BASE | TRACING, 0, INTEGER, A(NONE)) \
	X(trace_printk, DO, PERFMON | TRACING, GPL, INTEGER, A(PTR_TO_MEM | RDONLY, CONST_SIZE)) \
	X(get_prandom_u32, DO, BASE | TRACING, 0, INTEGER, A(NONE)) \
	X(get_smp_processor_id, DO, BASE | TRACING | XDP | SCHED_CLS, 0, INTEGER, A(NONE)) \
	X(skb_store_bytes, DO, SCHED_CLS, MOVES_PKT, INTEGER, \
		A(PTR_TO_CTX, ANYTHING, PTR_TO_MEM | RDONLY, CONST_SIZE, ANYTHING)) \
	X(l3_csum_replace, DO, SCHED_CLS, MOVES_PKT, INTEGER, \
		A(PTR_TO_CTX, ANYTHING, ANYTHING, ANYTHING, ANYTHING)) \
	X(l4_csum_replace, DO, SCHED_CLS, MOVES_PKT, INTEGER, \
		A(PTR_TO_CTX, ANYTHING, ANYTHING, ANYTHING, ANYTHING)) \
	X(tail_call, NO, BASE | TRACING, 0, VOID, A(PTR_TO_CTX, CONST_MAP_PTR, ANYTHING)) \
	X(clone_redirect, DO, SCHED_CLS, MOVES_PKT, INTEGER, A(PTR_TO_CTX, ANYTHING, ANYTHING)) \
	X(get_current_pid_tgid, DO, BASE | TRACING, 0, INTEGER, A(NONE)) \
	X(get_current_uid_gid, DO, TRACING, 0, INTEGER, A(NONE)) \
	X(get_current_comm, DO, TRACING, 0, INTEGER, A(PTR_TO_MEM | UNINIT | WRITE, CONST_SIZE)) \
	X(get_cgroup_classid, DO, SCHED_CLS, 0, INTEGER, A(PTR_TO_CTX)) \
	X(skb_vlan_push, DO, SCHED_CLS, MOVES_PKT, INTEGER, A(PTR_TO_CTX, ANYTHING, ANYTHING)) \
	X(skb_vlan_pop, DO, SCHED_CLS, MOVES_PKT, INTEGER, A(PTR_TO_CTX)) \
	X(skb_get_tunnel_key, DO, SCHED_CLS, 0, INTEGER, \
		A(PTR_TO_CTX, PTR_TO_MEM | UNINIT | WRITE, CONST_SIZE, ANYTHING)) \
	X(skb_set_tunnel_key, DO, SCHED_CLS, 0, INTEGER, \
	  A(PTR_TO_CTX, PTR_TO_MEM | RDONLY, CONST_SIZE, ANYTHING)) \
	X(perf_event_read, DO, TRACING, GPL, INTEGER, A(CONST_MAP_PTR, ANYTHING)) \
	X(redirect, DO, XDP | SCHED_CLS, 0, INTEGER, A(ANYTHING, ANYTHING)) \
	X(get_route_realm, DO, SCHED_CLS, 0, INTEGER, A(PTR_TO_CTX)) \
	X(perf_event_output, DO, TRACING | NET, GPL, INTEGER, \
		A(PTR_TO_CTX, CONST_MAP_PTR, ANYTHING, PTR_TO_MEM | RDONLY, CONST_SIZE_OR_ZERO)) \
	X(skb_load_bytes, DO, SOCKET_FILTER | SCHED_CLS, 0, INTEGER, \
		A(PTR_TO_CTX, ANYTHING, PTR_TO_MEM | UNINIT | WRITE, CONST_SIZE)) \
	X(get_stackid, DO, KPROBE | TRACEPOINT | RAW_TRACEPOINT, GPL, INTEGER, \
		A(PTR_TO_CTX, CONST_MAP_PTR, ANYTHING)) \
	X(csum_diff, DO, XDP | SCHED_CLS, PKT, INTEGER, \
		A(PTR_TO_MEM | OR_NULL | RDONLY, CONST_SIZE_OR_ZERO, \
		  PTR_TO_MEM | OR_NULL | RDONLY, \
		  CONST_SIZE_OR_ZERO, ANYTHING)) \
	X(skb_get_tunnel_opt, DO, SCHED_CLS, 0, INTEGER, \
	  A(PTR_TO_CTX, PTR_TO_MEM | UNINIT | WRITE, CONST_SIZE)) \
	X(skb_set_tunnel_opt, DO, SCHED_CLS, 0, INTEGER, \
	  A(PTR_TO_CTX, PTR_TO_MEM | RDONLY, CONST_SIZE)) \
	X(skb_change_proto, DO, SCHED_CLS, MOVES_PKT, INTEGER, A(PTR_TO_CTX, ANYTHING, ANYTHING)) \
	X(skb_change_type, DO, SCHED_CLS, 0, INTEGER, A(PTR_TO_CTX, ANYTHING)) \
	X(skb_under_cgroup, DO, SCHED_CLS, 0, INTEGER, A(PTR_TO_CTX, CONST_MAP_PTR, ANYTHING)) \
	X(get_hash_recalc, DO, SCHED_CLS, 0, INTEGER, A(PTR_TO_CTX)) \
	X(get_current_task, DO, PERFMON | TRACING, GPL, INTEGER, A(NONE)) \
	X(probe_write_user, DO, TRACING, GPL, INTEGER, \
	  A(ANYTHING, PTR_TO_MEM | RDONLY, CONST_SIZE)) \
	X(current_task_under_cgroup, DO, TRACING, 0, INTEGER, A(CONST_MAP_PTR, ANYTHING)) \
	X(skb_change_tail, DO, SCHED_CLS, MOVES_PKT, INTEGER, A(PTR_TO_CTX, ANYTHING, ANYTHING)) \
	X(skb_pull_data, DO, SCHED_CLS, MOVES_PKT, INTEGER, A(PTR_TO_CTX, ANYTHING)) \
	X(csum_update, DO, SCHED_CLS, 0, INTEGER, A(PTR_TO_CTX, ANYTHING)) \
	X(set_hash_invalid, DO, SCHED_CLS, 0, INTEGER, A(PTR_TO_CTX)) \
	X(get_numa_node_id, DO, BASE | TRACING, 0, INTEGER, A(NONE)) \
	X(skb_change_head, DO, SCHED_CLS, MOVES_PKT, INTEGER, A(PTR_TO_CTX, ANYTHING, ANYTHING)) \
	X(xdp_adjust_head, DO, XDP, MOVES_PKT, INTEGER, A(PTR_TO_CTX, ANYTHING)) \
	X(probe_read_str, DO, TRACING, GPL, INTEGER, \
	  A(PTR_TO_MEM | UNINIT | WRITE, CONST_SIZE_OR_ZERO, ANYTHING)) \
	X(get_socket_cookie, DO, SOCKET_FILTER | SCHED_CLS, 0, INTEGER, A(PTR_TO_CTX)) \
	X(get_socket_uid, DO, SOCKET_FILTER | SCHED_CLS, 0, INTEGER, A(PTR_TO_CTX)) \
	X(set_hash, DO, SCHED_CLS, 0, INTEGER, A(PTR_TO_CTX, ANYTHING)) \
	X(setsockopt, NO, 0, 0, INTEGER, A(NONE)) \
	X(skb_adjust_room, DO, SCHED_CLS, MOVES_PKT, INTEGER, \
	  A(PTR_TO_CTX, ANYTHING, ANYTHING, ANYTHING)) \
	X(redirect_map, DO, XDP, 0, INTEGER, A(CONST_MAP_PTR, ANYTHING, ANYTHING)) \
	X(sk_redirect_map, NO, 0, 0, INTEGER, A(NONE)) \
	X(sock_map_update, NO, 0, 0, INTEGER, A(NONE)) \
	X(xdp_adjust_meta, DO, XDP, MOVES_PKT, INTEGER, A(PTR_TO_CTX, ANYTHING)) \
	X(perf_event_read_value, DO, TRACING, GPL, INTEGER, \
		A(CONST_MAP_PTR, ANYTHING, PTR_TO_MEM | UNINIT | WRITE, CONST_SIZE)) \
	X(perf_prog_read_value, DO, PERF_EVENT, GPL, INTEGER, \
		A(PTR_TO_CTX, PTR_TO_MEM | UNINIT | WRITE, CONST_SIZE)) \
	X(getsockopt, NO, 0, 0, INTEGER, A(NONE)) \
	X(override_return, DO, KPROBE, GPL, INTEGER, A(PTR_TO_CTX, ANYTHING)) \
	X(sock_ops_cb_flags_set, NO, 0, 0, INTEGER, A(NONE)) \
	X(msg_redirect_map, NO, 0, 0, INTEGER, A(NONE)) \
	X(msg_apply_bytes, NO, 0, 0, INTEGER, A(NONE)) \
	X(msg_cork_bytes, NO, 0, 0, INTEGER, A(NONE)) \
	X(msg_pull_data, NO, 0, 0, INTEGER, A(NONE)) \
	X(bind, NO, 0, 0, INTEGER, A(NONE)) \
	X(xdp_adjust_tail, DO, XDP, MOVES_PKT, INTEGER, A(PTR_TO_CTX, ANYTHING)) \
	X(skb_get_xfrm_state, DO, SCHED_CLS, 0, INTEGER, \
		A(PTR_TO_CTX, ANYTHING, PTR_TO_MEM | UNINIT | WRITE, CONST_SIZE, ANYTHING)) \
	X(get_stack, DO, KPROBE | TRACEPOINT | PERF_EVENT, GPL, INTEGER, \
		A(PTR_TO_CTX, PTR_TO_MEM | UNINIT | WRITE, CONST_SIZE_OR_ZERO, ANYTHING)) \
	X(skb_load_bytes_relative, DO, SOCKET_FILTER | SCHED_CLS, 0, INTEGER, \
		A(PTR_TO_CTX, ANYTHING, PTR_TO_MEM | UNINIT | WRITE, CONST_SIZE, ANYTHING)) \
	X(fib_lookup, NO, XDP | SCHED_CLS, GPL, INTEGER, \
	  A(PTR_TO_CTX, PTR_TO_MEM | WRITE, CONST_SIZE, ANYTHING)) \
	X(sock_hash_update, NO, 0, 0, INTEGER, A(NONE)) \
	X(msg_redirect_hash, NO, 0, 0, INTEGER, A(NONE)) \
	X(sk_redirect_hash, NO, 0, 0, INTEGER, A(NONE)) \
	X(lwt_push_encap, NO, 0, 0, INTEGER, A(NONE)) \
	X(lwt_seg6_store_bytes, NO, 0, 0, INTEGER, A(NONE)) \
	X(lwt_seg6_adjust_srh, NO, 0, 0, INTEGER, A(NONE)) \
	X(lwt_seg6_action, NO, 0, 0, INTEGER, A(NONE)) \
	X(rc_repeat, NO, 0, 0, INTEGER, A(NONE)) \
	X(rc_keydown, NO, 0, 0, INTEGER, A(NONE)) \
	X(skb_cgroup_id, DO, SCHED_CLS | CGROUP_SKB, 0, INTEGER, A(PTR_TO_CTX)) \
	X(get_current_cgroup_id, DO, CAP_BPF | TRACING, 0, INTEGER, A(NONE)) \
	X(get_local_storage, NO, CGROUP_SKB, 0, MAP_VALUE, A(CONST_MAP_PTR, ANYTHING)) \
	X(sk_select_reuseport, NO, 0, 0, INTEGER, A(NONE)) \
	X(skb_ancestor_cgroup_id, DO, SCHED_CLS | CGROUP_SKB, 0, INTEGER, A(PTR_TO_CTX, ANYTHING)) \
	X(sk_lookup_tcp, DO, XDP | SCHED_CLS | CGROUP_SKB, PKT, SOCKET | OR_NULL, \
		A(PTR_TO_CTX, PTR_TO_MEM | RDONLY, CONST_SIZE, ANYTHING, ANYTHING)) \
	X(sk_lookup_udp, DO, XDP | SCHED_CLS | CGROUP_SKB, PKT, SOCKET | OR_NULL, \
		A(PTR_TO_CTX, PTR_TO_MEM | RDONLY, CONST_SIZE, ANYTHING, ANYTHING)) \
	X(sk_release, DO, XDP | SCHED_CLS | CGROUP_SKB, 0, INTEGER, \
	  A(PTR_TO_BTF_ID_SOCK_COMMON | RELEASE)) \
	X(map_push_elem, DO, BASE | TRACING, PKT, INTEGER, \
	  A(CONST_MAP_PTR, PTR_TO_MAP_VALUE, ANYTHING)) \
	X(map_pop_elem, DO, BASE | TRACING, 0, INTEGER, \
	  A(CONST_MAP_PTR, PTR_TO_MAP_VALUE | UNINIT | WRITE)) \
	X(map_peek_elem, DO, BASE | TRACING, 0, INTEGER, \
	  A(CONST_MAP_PTR, PTR_TO_MAP_VALUE | UNINIT | WRITE)) \
	X(msg_push_data, NO, 0, 0, INTEGER, A(NONE)) \
	X(msg_pop_data, NO, 0, 0, INTEGER, A(NONE)) \
	X(rc_pointer_rel, NO, 0, 0, INTEGER, A(NONE)) \
	X(spin_lock, DO, CAP_BPF, 0, VOID, A(PTR_TO_SPIN_LOCK)) \
	X(spin_unlock, DO, CAP_BPF, 0, VOID, A(PTR_TO_SPIN_LOCK)) \
	X(sk_fullsock, DO, SCHED_CLS | CGROUP_SKB, 0, SOCKET | OR_NULL, A(PTR_TO_SOCK_COMMON)) \
	X(tcp_sock, DO, SCHED_CLS | CGROUP_SKB, 0, TCP_SOCK | OR_NULL, A(PTR_TO_SOCK_COMMON)) \
	X(skb_ecn_set_ce, DO, SCHED_CLS | CGROUP_SKB, 0, INTEGER, A(PTR_TO_CTX)) \
	X(get_listener_sock, DO, SCHED_CLS | CGROUP_SKB, 0, SOCKET | OR_NULL, \
	  A(PTR_TO_SOCK_COMMON)) \
	X(skc_lookup_tcp, DO, XDP | SCHED_CLS | CGROUP_SKB, PKT, SOCK_COMMON | OR_NULL, \
		A(PTR_TO_CTX, PTR_TO_MEM | RDONLY, CONST_SIZE, ANYTHING, ANYTHING)) \
	X(tcp_check_syncookie, NO, XDP | SCHED_CLS, GPL | PKT, INTEGER, \
		A(PTR_TO_BTF_ID_SOCK_COMMON, PTR_TO_MEM | RDONLY, CONST_SIZE, PTR_TO_MEM | RDONLY, \
		  CONST_SIZE)) \
	X(sysctl_get_name, NO, 0, 0, INTEGER, A(NONE)) \
	X(sysctl_get_current_value, NO, 0, 0, INTEGER, A(NONE)) \
	X(sysctl_get_new_value, NO, 0, 0, INTEGER, A(NONE)) \
	X(sysctl_set_new_value, NO, 0, 0, INTEGER, A(NONE)) \
	X(strtol, DO, BASE, 0, INTEGER, \
		A(PTR_TO_MEM | RDONLY, CONST_SIZE, ANYTHING, \
		  PTR_TO_MEM | FIXED | UNINIT | WRITE | ALIGNED), .size[3] = 8) \
	X(strtoul, DO, BASE, 0, INTEGER, \
		A(PTR_TO_MEM | RDONLY, CONST_SIZE, ANYTHING, \
		  PTR_TO_MEM | FIXED | UNINIT | WRITE | ALIGNED), .size[3] = 8) \
	X(sk_storage_get, NO, SCHED_CLS | CGROUP_SKB, 0, MAP_VALUE | OR_NULL, \
		A(CONST_MAP_PTR, PTR_TO_BTF_ID_SOCK_COMMON, PTR_TO_MAP_VALUE | OR_NULL, ANYTHING)) \
	X(sk_storage_delete, NO, SCHED_CLS | CGROUP_SKB, 0, INTEGER, \
	  A(CONST_MAP_PTR, PTR_TO_BTF_ID_SOCK_COMMON)) \
	X(send_signal, DO, TRACING, 0, INTEGER, A(ANYTHING)) \
	X(tcp_gen_syncookie, NO, XDP | SCHED_CLS, GPL | PKT, INTEGER, \
		A(PTR_TO_BTF_ID_SOCK_COMMON, PTR_TO_MEM | RDONLY, CONST_SIZE, PTR_TO_MEM | RDONLY, \
		  CONST_SIZE)) \
	X(skb_output, NO, 0, 0, INTEGER, A(NONE)) \
	X(probe_read_user, DO, PERFMON | TRACING, GPL, INTEGER, \
		A(PTR_TO_MEM | UNINIT | WRITE, CONST_SIZE_OR_ZERO, ANYTHING)) \
	X(probe_read_kernel, DO, PERFMON | TRACING, GPL, INTEGER, \
		A(PTR_TO_MEM | UNINIT | WRITE, CONST_SIZE_OR_ZERO, ANYTHING)) \
	X(probe_read_user_str, DO, PERFMON | TRACING, GPL, INTEGER, \
		A(PTR_TO_MEM | UNINIT | WRITE, CONST_SIZE_OR_ZERO, ANYTHING)) \
	X(probe_read_kernel_str, DO, PERFMON | TRACING, GPL, INTEGER, \
		A(PTR_TO_MEM | UNINIT | WRITE, CONST_SIZE_OR_ZERO, ANYTHING)) \
	X(tcp_send_ack, NO, 0, 0, INTEGER, A(NONE)) \
	X(send_signal_thread, DO, TRACING, 0, INTEGER, A(ANYTHING)) \
	X(jiffies64, DO, CAP_BPF | TRACING, 0, INTEGER, A(NONE)) \
	X(read_branch_records, DO, PERF_EVENT, GPL, INTEGER, \
		A(PTR_TO_CTX, PTR_TO_MEM | OR_NULL | WRITE, CONST_SIZE_OR_ZERO, ANYTHING)) \
	X(get_ns_current_pid_tgid, DO, BASE | TRACING, 0, INTEGER, \
		A(ANYTHING, ANYTHING, PTR_TO_MEM | UNINIT | WRITE, CONST_SIZE)) \
	X(xdp_output, NO, 0, 0, INTEGER, A(NONE)) \
	X(get_netns_cookie, NO, 0, 0, INTEGER, A(NONE)) \
	X(get_current_ancestor_cgroup_id, DO, CAP_BPF | TRACING, 0, INTEGER, A(ANYTHING)) \
	X(sk_assign, NO, SCHED_CLS, 0, INTEGER, \
	  A(PTR_TO_CTX, PTR_TO_BTF_ID_SOCK_COMMON, ANYTHING)) \
	X(ktime_get_boot_ns, DO, BASE | TRACING, 0, INTEGER, A(NONE)) \
	X(seq_printf, NO, 0, 0, INTEGER, A(NONE)) \
	X(seq_write, NO, 0, 0, INTEGER, A(NONE)) \
	X(sk_cgroup_id, NO, CGROUP_SKB, 0, INTEGER, A(PTR_TO_BTF_ID_SOCK_COMMON)) \
	X(sk_ancestor_cgroup_id, NO, CGROUP_SKB, 0, INTEGER, \
	  A(PTR_TO_BTF_ID_SOCK_COMMON, ANYTHING)) \
	X(ringbuf_output, DO, BASE | TRACING, 0, INTEGER, \
		A(CONST_MAP_PTR, PTR_TO_MEM | RDONLY, CONST_SIZE_OR_ZERO, ANYTHING)) \
	X(ringbuf_reserve, DO, BASE | TRACING, 0, ALLOC_MEM | OR_NULL, \
		A(CONST_MAP_PTR, CONST_ALLOC_SIZE_OR_ZERO, ANYTHING)) \
	X(ringbuf_submit, DO, BASE | TRACING, 0, VOID, A(PTR_TO_ALLOC_MEM | RELEASE, ANYTHING)) \
	X(ringbuf_discard, DO, BASE | TRACING, 0, VOID, A(PTR_TO_ALLOC_MEM | RELEASE, ANYTHING)) \
	X(ringbuf_query, DO, BASE | TRACING, 0, INTEGER, A(CONST_MAP_PTR, ANYTHING)) \
	X(csum_level, DO, SCHED_CLS, 0, INTEGER, A(PTR_TO_CTX, ANYTHING)) \
	X(skc_to_tcp6_sock, NO, NET_PERFMON, 0, BTF_ID | OR_NULL, \
		A(PTR_TO_BTF_ID_SOCK_COMMON), .ret_btf = "tcp6_sock") \
	X(skc_to_tcp_sock, NO, NET_PERFMON, 0, BTF_ID | OR_NULL, \
		A(PTR_TO_BTF_ID_SOCK_COMMON), .ret_btf = "tcp_sock") \
	X(skc_to_tcp_timewait_sock, NO, NET_PERFMON, 0, BTF_ID | OR_NULL, \
		A(PTR_TO_BTF_ID_SOCK_COMMON), .ret_btf = "tcp_timewait_sock") \
	X(skc_to_tcp_request_sock, NO, NET_PERFMON, 0, BTF_ID | OR_NULL, \
		A(PTR_TO_BTF_ID_SOCK_COMMON), .ret_btf = "tcp_request_sock") \
	X(skc_to_udp6_sock, NO, NET_PERFMON, 0, BTF_ID | OR_NULL, \
		A(PTR_TO_BTF_ID_SOCK_COMMON), .ret_btf = "udp6_sock") \
	X(get_task_stack, NO, TRACING, 0, INTEGER, \
		A(PTR_TO_BTF_ID, PTR_TO_MEM | UNINIT | WRITE, CONST_SIZE_OR_ZERO, ANYTHING), \
		  .btf[0] = "task_struct") \
	X(load_hdr_opt, NO, 0, 0, INTEGER, A(NONE)) \
	X(store_hdr_opt, NO, 0, 0, INTEGER, A(NONE)) \
	X(reserve_hdr_opt, NO, 0, 0, INTEGER, A(NONE)) \
	X(inode_storage_get, NO, 0, 0, INTEGER, A(NONE)) \
	X(inode_storage_delete, NO, 0, 0, INTEGER, A(NONE)) \
	X(d_path, NO, 0, 0, INTEGER, A(NONE)) \
	X(copy_from_user, NO, TRACING, SLEEPS, INTEGER, \
		A(PTR_TO_MEM | UNINIT | WRITE, CONST_SIZE_OR_ZERO, ANYTHING)) \
	X(snprintf_btf, NO, PERFMON | TRACING, 0, INTEGER, \
		A(PTR_TO_MEM | WRITE, CONST_SIZE, PTR_TO_MEM | RDONLY, CONST_SIZE, ANYTHING)) \
	X(seq_printf_btf, NO, 0, 0, INTEGER, A(NONE)) \
	X(skb_cgroup_classid, DO, SCHED_CLS, 0, INTEGER, A(PTR_TO_CTX)) \
	X(redirect_neigh, DO, SCHED_CLS, 0, INTEGER, \
		A(ANYTHING, PTR_TO_MEM | OR_NULL | RDONLY, CONST_SIZE_OR_ZERO, ANYTHING)) \
	X(per_cpu_ptr, NO, CAP_BPF | TRACING, 0, MEM_OR_BTF_ID | OR_NULL | RDONLY, \
		A(PTR_TO_PERCPU_BTF_ID, ANYTHING)) \
	X(this_cpu_ptr, NO, CAP_BPF | TRACING, 0, MEM_OR_BTF_ID | RDONLY, A(PTR_TO_PERCPU_BTF_ID)) \
	X(redirect_peer, DO, SCHED_CLS, 0, INTEGER, A(ANYTHING, ANYTHING)) \
	X(task_storage_get, NO, TRACING, 0, MAP_VALUE | OR_NULL, \
		A(CONST_MAP_PTR, PTR_TO_BTF_ID, PTR_TO_MAP_VALUE | OR_NULL, ANYTHING), \
	  .btf[1] = "task_struct") \
	X(task_storage_delete, NO, TRACING, 0, INTEGER, A(CONST_MAP_PTR, PTR_TO_BTF_ID), \
	  .btf[1] = "task_struct") \
	X(get_current_task_btf, NO, PERFMON | TRACING, GPL, BTF_ID, A(NONE), \
	  .ret_btf = "task_struct") \
	X(bprm_opts_set, NO, 0, 0, INTEGER, A(NONE)) \
	X(ktime_get_coarse_ns, DO, NET, 0, INTEGER, A(NONE)) \
	X(ima_inode_hash, NO, 0, 0, INTEGER, A(NONE)) \
	X(sock_from_file, NO, 0, 0, INTEGER, A(NONE)) \
	X(check_mtu, NO, XDP | SCHED_CLS, GPL, INTEGER, \
		A(PTR_TO_CTX, ANYTHING, PTR_TO_MEM | FIXED | UNINIT | WRITE | ALIGNED, ANYTHING, \
		  ANYTHING), .size[2] = 4) \
	X(for_each_map_elem, DO, CAP_BPF | TRACING, 0, INTEGER, \
		A(CONST_MAP_PTR, PTR_TO_FUNC, PTR_TO_STACK | OR_NULL, ANYTHING)) \
	X(snprintf, DO, PERFMON | TRACING, GPL, INTEGER, \
		A(PTR_TO_MEM | OR_NULL | WRITE, CONST_SIZE_OR_ZERO, PTR_TO_CONST_STR, \
		  PTR_TO_MEM | OR_NULL | RDONLY, CONST_SIZE_OR_ZERO)) \
	X(sys_bpf, NO, 0, 0, INTEGER, A(NONE)) \
	X(btf_find_by_name_kind, NO, 0, 0, INTEGER, A(NONE)) \
	X(sys_close, NO, 0, 0, INTEGER, A(NONE)) \
	X(timer_init, NO, CAP_BPF, GPL, INTEGER, A(PTR_TO_TIMER, CONST_MAP_PTR, ANYTHING)) \
	X(timer_set_callback, NO, CAP_BPF, GPL, INTEGER, A(PTR_TO_TIMER, PTR_TO_FUNC)) \
	X(timer_start, NO, CAP_BPF, GPL, INTEGER, A(PTR_TO_TIMER, ANYTHING, ANYTHING)) \
	X(timer_cancel, NO, CAP_BPF, GPL, INTEGER, A(PTR_TO_TIMER)) \
	X(get_func_ip, DO, TRACING, GPL, INTEGER, A(PTR_TO_CTX)) \
	X(get_attach_cookie, DO, KPROBE | TRACEPOINT | PERF_EVENT, 0, INTEGER, A(PTR_TO_CTX)) \
	X(task_pt_regs, NO, PERFMON | TRACING, GPL, BTF_ID, \
		A(PTR_TO_BTF_ID), .btf[0] = "task_struct", .ret_btf = "pt_regs") \
	X(get_branch_snapshot, DO, TRACING, GPL, INTEGER, \
	  A(PTR_TO_MEM | UNINIT | WRITE, CONST_SIZE_OR_ZERO)) \
	X(trace_vprintk, DO, PERFMON | TRACING, GPL, INTEGER, \
		A(PTR_TO_MEM | RDONLY, CONST_SIZE, PTR_TO_MEM | OR_NULL | RDONLY, \
		  CONST_SIZE_OR_ZERO)) \
	X(skc_to_unix_sock, NO, NET_PERFMON, 0, BTF_ID | OR_NULL, \
		A(PTR_TO_BTF_ID_SOCK_COMMON), .ret_btf = "unix_sock") \
	X(kallsyms_lookup_name, NO, 0, 0, INTEGER, A(NONE)) \
	X(find_vma, NO, TRACING, 0, INTEGER, \
		A(PTR_TO_BTF_ID, ANYTHING, PTR_TO_FUNC, PTR_TO_STACK | OR_NULL, ANYTHING), \
		  .btf[0] = "task_struct") \
	X(loop, DO, CAP_BPF, 0, INTEGER, \
	  A(ANYTHING, PTR_TO_FUNC, PTR_TO_STACK | OR_NULL, ANYTHING)) \
	X(strncmp, DO, BASE, 0, INTEGER, \
	  A(PTR_TO_MEM | RDONLY, CONST_SIZE, PTR_TO_CONST_STR)) \
	X(get_func_arg, DO, FENTRY, 0, INTEGER, \
		A(PTR_TO_CTX, ANYTHING, PTR_TO_MEM | FIXED | UNINIT | WRITE | ALIGNED), \
	  .size[2] = 8) \
	X(get_func_ret, DO, FENTRY, 0, INTEGER, \
		A(PTR_TO_CTX, PTR_TO_MEM | FIXED | UNINIT | WRITE | ALIGNED), .size[1] = 8) \
	X(get_func_arg_cnt, DO, FENTRY, 0, INTEGER, A(PTR_TO_CTX)) \
	X(get_retval, NO, 0, 0, INTEGER, A(NONE)) \
	X(set_retval, NO, 0, 0, INTEGER, A(NONE)) \
	X(xdp_get_buff_len, DO, XDP, 0, INTEGER, A(PTR_TO_CTX)) \
	X(xdp_load_bytes, DO, XDP, 0, INTEGER, \
	  A(PTR_TO_CTX, ANYTHING, PTR_TO_MEM | UNINIT | WRITE, CONST_SIZE)) \
	X(xdp_store_bytes, DO, XDP, 0, INTEGER, \
	  A(PTR_TO_CTX, ANYTHING, PTR_TO_MEM | RDONLY, CONST_SIZE)) \
	X(copy_from_user_task, NO, TRACING, GPL | SLEEPS, INTEGER, \
		A(PTR_TO_MEM | UNINIT | WRITE, CONST_SIZE_OR_ZERO, ANYTHING, PTR_TO_BTF_ID, \
		  ANYTHING), \
		  .btf[3] = "task_struct") \
	X(skb_set_tstamp, DO, SCHED_CLS, 0, INTEGER, A(PTR_TO_CTX, ANYTHING, ANYTHING)) \
	X(ima_file_hash, NO, 0, 0, INTEGER, A(NONE)) \
	X(kptr_xchg, DO, CAP_BPF, 0, BTF_ID | OR_NULL, \
	  A(PTR_TO_KPTR, PTR_TO_BTF_ID | OR_NULL | RELEASE)) \
	X(map_lookup_percpu_elem, DO, BASE | TRACING, PKT, MAP_VALUE | OR_NULL, \
		A(CONST_MAP_PTR, PTR_TO_MAP_KEY, ANYTHING)) \
	X(skc_to_mptcp_sock, NO, NET_PERFMON, 0, BTF_ID | OR_NULL, A(PTR_TO_SOCK_COMMON), \
	  .ret_btf = "mptcp_sock") \
	X(dynptr_from_mem, DO, CAP_BPF, 0, INTEGER, \
		A(PTR_TO_MEM | UNINIT | WRITE, CONST_SIZE_OR_ZERO, ANYTHING, \
		  PTR_TO_DYNPTR | LOCAL | UNINIT | WRITE)) \
	X(ringbuf_reserve_dynptr, DO, CAP_BPF, 0, INTEGER, \
		A(CONST_MAP_PTR, ANYTHING, ANYTHING, PTR_TO_DYNPTR | RINGBUF | UNINIT | WRITE)) \
	X(ringbuf_submit_dynptr, DO, CAP_BPF, 0, VOID, \
	  A(PTR_TO_DYNPTR | RINGBUF | RELEASE, ANYTHING)) \
	X(ringbuf_discard_dynptr, DO, CAP_BPF, 0, VOID, \
	  A(PTR_TO_DYNPTR | RINGBUF | RELEASE, ANYTHING)) \
	X(dynptr_read, DO, CAP_BPF, 0, INTEGER, \
		A(PTR_TO_MEM | UNINIT | WRITE, CONST_SIZE_OR_ZERO, PTR_TO_DYNPTR, ANYTHING, \
		  ANYTHING)) \
	X(dynptr_write, DO, CAP_BPF, 0, INTEGER, \
		A(PTR_TO_DYNPTR, ANYTHING, PTR_TO_MEM | RDONLY, CONST_SIZE_OR_ZERO, ANYTHING)) \
	X(dynptr_data, DO, CAP_BPF, 0, MEM | OR_NULL, \
	  A(PTR_TO_DYNPTR, ANYTHING, CONST_ALLOC_SIZE_OR_ZERO)) \
	X(tcp_raw_gen_syncookie_ipv4, NO, XDP | SCHED_CLS, GPL | PKT, INTEGER, \
		A(PTR_TO_MEM | FIXED, PTR_TO_MEM, CONST_SIZE), .size[0] = 20) \
	X(tcp_raw_gen_syncookie_ipv6, NO, XDP | SCHED_CLS, GPL | PKT, INTEGER, \
		A(PTR_TO_MEM | FIXED, PTR_TO_MEM, CONST_SIZE), .size[0] = 40) \
	X(tcp_raw_check_syncookie_ipv4, NO, XDP | SCHED_CLS, GPL | PKT, INTEGER, \
		A(PTR_TO_MEM | FIXED, PTR_TO_MEM | FIXED), .size[0] = 20, .size[1] = 20) \
	X(tcp_raw_check_syncookie_ipv6, NO, XDP | SCHED_CLS, GPL | PKT, INTEGER, \
		A(PTR_TO_MEM | FIXED, PTR_TO_MEM | FIXED), .size[0] = 40, .size[1] = 20) \
	X(ktime_get_tai_ns, DO, BASE, 0, INTEGER, A(NONE)) \
	X(user_ringbuf_drain, NO, CAP_BPF, 0, INTEGER, \
		A(CONST_MAP_PTR, PTR_TO_FUNC, PTR_TO_STACK | OR_NULL, ANYTHING))

/* Prototypes that only some program types use. For a program type that has one of the row's sets,
 * the row replaces the helper's row in PB_BPF_HELPERS. */
#define PB_BPF_HELPER_VARIANTS(X) \
	X(get_stackid, DO, PERF_EVENT, 0, INTEGER, A(PTR_TO_CTX, CONST_MAP_PTR, ANYTHING)) \
	X(get_stack, DO, RAW_TRACEPOINT, GPL, INTEGER, \
		A(PTR_TO_CTX, PTR_TO_MEM | WRITE, CONST_SIZE_OR_ZERO, ANYTHING)) \
	X(get_func_ip, DO, KPROBE_MULTI, 0, INTEGER, A(PTR_TO_CTX))
#endif
