/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The control files with the kernel's settings of eBPF. They apply to the eBPF programs of this
 * process. */
#include <errno.h>
#include "base/base.h"
#include "bpf/core/program.h"
#include "engine/files.h"
#include "engine/prog/prog.h"

/* As in the kernel (Documentation/admin-guide/sysctl/kernel.rst), the value 1 can't be changed
 * back. */
static int unprivileged_changed(uint32_t before, bool live)
{
	if (before != 1 || pb_bpf_settings.unprivileged_disabled == 1)
		return 0;
	pb_file_error = "the value 1 can't be changed until the program ends";
	return -EPERM;
}

void pb_prog_register_files(void)
{
	static const struct { enum pb_control_file id; struct pb_file file; } files[] = {
		{ PB_CF_BPF_JIT_ENABLE, { .word = &pb_bpf_settings.jit_enable } },
		{ PB_CF_BPF_JIT_HARDEN, { .word = &pb_bpf_settings.jit_harden } },
		{ PB_CF_BPF_STATS_ENABLED, { .word = &pb_bpf_settings.stats } },
		{ PB_CF_UNPRIVILEGED_BPF_DISABLED,
		  { .word = &pb_bpf_settings.unprivileged_disabled,
		    .changed = unprivileged_changed } },
	};

	for (size_t i = 0; i < pb_array_size(files); i++)
		pb_file_register(files[i].id, &files[i].file);
}
