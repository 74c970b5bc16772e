// SPDX-License-Identifier: LGPL-2.1-or-later
/* Tests the table of helpers. For each type of program, our table and the kernel must allow the
 * same helpers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "bpf/core/packet.h"
#include "bpf/helper/dynptr.h"
#include "bpf/helper/helper.h"
#include "bpf/helper/helper_fns.h"
#include "bpf/verifier/verify.h"
#include "kernel.h"

/* Returns whether the kernel lets programs of the type call the helper. The test's program passes
 * no arguments. If the kernel refuses only the missing arguments, the function returns true. */
static bool kernel_allows(uint32_t type, uint32_t attach_type, uint32_t id)
{
	static char log[65536];
	const struct bpf_insn insns[] = {
		{ .code = BPF_JMP | BPF_CALL, .imm = (int)id },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd = kernel_load(type, attach_type, insns, 3, log, sizeof(log));

	if (fd >= 0)
		close(fd);
	return fd >= 0 || (!strstr(log, "unknown func") && !strstr(log, "cannot use helper"));
}

/* Returns whether some kernels let programs of the type call the helper, and other kernels don't.
 * Kernels after 6.1 (seen in 6.18) allow some helpers for more types. Some kernels lack some of the
 * helpers. */
static bool is_newer(const struct pb_bpf_type *t, uint32_t id)
{
	static const struct { uint32_t id, sets; } newer[] = {
		{ BPF_FUNC_get_current_pid_tgid, PB_BPF_SET_NET },
		{ BPF_FUNC_get_current_uid_gid, PB_BPF_SET_NET },
		{ BPF_FUNC_get_current_comm, PB_BPF_SET_NET },
		{ BPF_FUNC_perf_event_read, PB_BPF_SET_NET },
		{ BPF_FUNC_current_task_under_cgroup, PB_BPF_SET_NET },
		{ BPF_FUNC_perf_event_read_value, PB_BPF_SET_NET },
		{ BPF_FUNC_get_current_cgroup_id, PB_BPF_SET_NET },
		{ BPF_FUNC_send_signal, PB_BPF_SET_NET },
		{ BPF_FUNC_send_signal_thread, PB_BPF_SET_NET },
		{ BPF_FUNC_get_ns_current_pid_tgid, PB_BPF_SET_NET },
		{ BPF_FUNC_get_netns_cookie, PB_BPF_SET_NET },
		{ BPF_FUNC_get_current_ancestor_cgroup_id, PB_BPF_SET_NET },
		{ BPF_FUNC_get_task_stack, PB_BPF_SET_NET },
		{ BPF_FUNC_copy_from_user, PB_BPF_SET_NET },
		{ BPF_FUNC_task_storage_get, PB_BPF_SET_NET },
		{ BPF_FUNC_task_storage_delete, PB_BPF_SET_NET },
		{ BPF_FUNC_get_branch_snapshot, PB_BPF_SET_NET },
		{ BPF_FUNC_find_vma, PB_BPF_SET_NET },
		{ BPF_FUNC_copy_from_user_task, PB_BPF_SET_NET },
		{ BPF_FUNC_get_cgroup_classid, ~0u },
		{ BPF_FUNC_get_attach_cookie, PB_BPF_SET_RAW_TRACEPOINT },
		/* a kernel that was built without these helpers, or that is locked down, refuses
		 * them */
		{ BPF_FUNC_override_return, PB_BPF_SET_KPROBE },
		{ BPF_FUNC_probe_write_user, PB_BPF_SET_TRACING },
	};

	for (size_t i = 0; i < sizeof(newer) / sizeof(newer[0]); i++)
		if (newer[i].id == id && newer[i].sets & t->helpers)
			return true;
	return false;
}

static unsigned compare(const struct pb_bpf_type *t, uint32_t attach_type)
{
	unsigned differ = 0;

	for (uint32_t id = 1; id < __BPF_FUNC_MAX_ID; id++) {
		bool ours = pb_bpf_helper_for(t, attach_type, PB_BPF_CAP_ALL, id);

		if (ours == kernel_allows(t->type, attach_type, id) || is_newer(t, id))
			continue;
		print_message("%s %s: %s\n", t->name, pb_bpf_helper_of(id)->name,
			      ours ? "only ours" : "only the kernel");
		differ++;
	}
	return differ;
}

static void types_call_what_the_kernel_lets_them(void **state)
{
	const struct pb_bpf_type *t;
	unsigned differ = 0;

	if (!kernel_is_there())
		skip();
	for (uint32_t i = 0; (t = pb_bpf_type_at(i)); i++)
		differ += compare(t, 0);
	differ += compare(pb_bpf_type_of(BPF_PROG_TYPE_KPROBE), BPF_TRACE_KPROBE_MULTI);
	assert_int_equal(differ, 0);
}

static void privileges(void **state)
{
	const struct pb_bpf_type *socket = pb_bpf_type_of(BPF_PROG_TYPE_SOCKET_FILTER);

	assert_non_null(pb_bpf_helper_for(socket, 0, 0, BPF_FUNC_map_lookup_elem));
	assert_null(pb_bpf_helper_for(socket, 0, 0, BPF_FUNC_loop));
	assert_non_null(pb_bpf_helper_for(socket, 0, PB_BPF_CAP_BPF, BPF_FUNC_loop));
	assert_null(pb_bpf_helper_for(socket, 0, PB_BPF_CAP_BPF, BPF_FUNC_trace_printk));
	/* as in the kernel, trace_printk needs CAP_BPF and CAP_PERFMON */
	assert_null(pb_bpf_helper_for(socket, 0, PB_BPF_CAP_PERFMON, BPF_FUNC_trace_printk));
	assert_non_null(pb_bpf_helper_for(socket, 0, PB_BPF_CAP_ALL, BPF_FUNC_trace_printk));
	assert_non_null(pb_bpf_helper_for(socket, 0, PB_BPF_CAP_PERFMON, BPF_FUNC_skc_to_tcp_sock));
}

static void prototypes_differ_by_type(void **state)
{
	const struct pb_bpf_type *kprobe = pb_bpf_type_of(BPF_PROG_TYPE_KPROBE);
	const struct pb_bpf_type *pe = pb_bpf_type_of(BPF_PROG_TYPE_PERF_EVENT);
	const struct pb_bpf_type *raw = pb_bpf_type_of(BPF_PROG_TYPE_RAW_TRACEPOINT);

	assert_true(pb_bpf_helper_for(kprobe, 0, 7, BPF_FUNC_get_func_ip)->flags &
		    PB_BPF_HELPER_GPL);
	assert_false(pb_bpf_helper_for(kprobe, BPF_TRACE_KPROBE_MULTI, 7,
				       BPF_FUNC_get_func_ip)->flags & PB_BPF_HELPER_GPL);
	assert_false(pb_bpf_helper_for(pe, 0, 7, BPF_FUNC_get_stackid)->flags & PB_BPF_HELPER_GPL);
	assert_true(pb_bpf_helper_for(pe, 0, 7, BPF_FUNC_get_stack)->arg[1] & PB_BPF_UNINIT);
	assert_false(pb_bpf_helper_for(raw, 0, 7, BPF_FUNC_get_stack)->arg[1] & PB_BPF_UNINIT);
}

/* In Linux 6.12, programs of all types may call these helpers. */
static void helpers_of_all_types(void **state)
{
	const struct pb_bpf_type *t;

	for (uint32_t i = 0; (t = pb_bpf_type_at(i)); i++) {
		assert_non_null(pb_bpf_helper_for(t, 0, 0, BPF_FUNC_get_current_pid_tgid));
		assert_non_null(pb_bpf_helper_for(t, 0, 0, BPF_FUNC_get_ns_current_pid_tgid));
		assert_non_null(pb_bpf_helper_for(t, 0, PB_BPF_CAP_BPF,
						  BPF_FUNC_get_current_cgroup_id));
		assert_non_null(pb_bpf_helper_for(t, 0, PB_BPF_CAP_BPF,
						  BPF_FUNC_get_current_ancestor_cgroup_id));
	}
	t = pb_bpf_type_of(BPF_PROG_TYPE_SOCKET_FILTER);
	assert_null(pb_bpf_helper_for(t, 0, 0, BPF_FUNC_get_current_cgroup_id));
	assert_null(pb_bpf_helper_for(t, 0, PB_BPF_CAP_ALL, BPF_FUNC_get_current_uid_gid));
	assert_true(pb_bpf_helper_of(BPF_FUNC_strncmp)->arg[0] & PB_BPF_RDONLY);
}

/* Checks the prototype of every helper as the kernel does in check_func_proto(). */
static void prototypes_are_sound(void **state)
{
	for (uint32_t id = 1; id < __BPF_FUNC_MAX_ID; id++) {
		const struct pb_bpf_helper *h = pb_bpf_helper_of(id);
		int raw = 0;

		assert_non_null(h->name);
		for (int i = 0; i < 5; i++) {
			uint32_t base = h->arg[i] & PB_BPF_ARG_BASE,
				next = i < 4 ? h->arg[i + 1] & PB_BPF_ARG_BASE : 0;
			bool sized = next == PB_BPF_ARG_CONST_SIZE ||
				next == PB_BPF_ARG_CONST_SIZE_OR_ZERO;

			raw += base == PB_BPF_ARG_PTR_TO_MEM && h->arg[i] & PB_BPF_UNINIT;
			if (base == PB_BPF_ARG_PTR_TO_MEM)
				assert_true(sized != !!(h->arg[i] & PB_BPF_FIXED_SIZE));
			else
				assert_false(sized);
			assert_int_equal(!!h->size[i], !!(h->arg[i] & PB_BPF_FIXED_SIZE));
			if (h->btf[i])
				assert_int_equal(base, PB_BPF_ARG_PTR_TO_BTF_ID);
		}
		assert_in_range(raw, 0, 1);
		if (h->flags & PB_BPF_HELPER_MOVES_PKT)
			assert_int_equal(h->arg[0], PB_BPF_ARG_PTR_TO_CTX);
	}
	assert_null(pb_bpf_helper_of(__BPF_FUNC_MAX_ID)->name);
	assert_null(pb_bpf_helper_of(~0u)->name);
	assert_string_equal(pb_bpf_helper_of(BPF_FUNC_user_ringbuf_drain)->name,
			    "bpf_user_ringbuf_drain");
}

/* If a read fails, a program that may not read unwritten memory gets zeros. */
static void failed_reads_show_nothing(void **state)
{
	struct pb_bpf_prog prog = { 0 };
	struct pb_bpf_run run = { .prog = &prog };
	struct pb_bpf_dynptr none = { 0 };
	uint8_t packet[16] = { 0 };
	struct pb_bpf_xdp xdp = { .pkt = { .data = packet, .data_end = packet + 16 } };
	uint64_t buf = ~0ull;

	assert_int_equal((int64_t)pb_bpf_do_dynptr_read((uint64_t)&buf, 8, (uint64_t)&none, 0, 0,
							&run), -EINVAL);
	assert_int_equal(buf, 0);
	buf = ~0ull;
	assert_int_equal((int64_t)pb_bpf_do_xdp_load_bytes((uint64_t)&xdp, 12, (uint64_t)&buf, 8, 0,
							   &run), -EINVAL);
	assert_int_equal(buf, 0);
	prog.perfmon = true;
	buf = ~0ull;
	assert_int_equal((int64_t)pb_bpf_do_xdp_load_bytes((uint64_t)&xdp, 12, (uint64_t)&buf, 8, 0,
							   &run), -EINVAL);
	assert_int_equal(buf, ~0ull);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prototypes_are_sound),
		cmocka_unit_test(prototypes_differ_by_type),
		cmocka_unit_test(privileges),
		cmocka_unit_test(helpers_of_all_types),
		cmocka_unit_test(failed_reads_show_nothing),
		cmocka_unit_test(types_call_what_the_kernel_lets_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
