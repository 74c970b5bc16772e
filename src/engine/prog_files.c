/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The kernel's settings of eBPF, for programs of this process. */
#include <errno.h>
#include "base/base.h"
#include "bpf/core/program.h"
#include "engine/files.h"
#include "engine/prog.h"

static void read_setting(struct pb_seq *s, uint32_t value)
{
	pb_seq_u64(s, value);
	pb_seq_puts(s, "\n");
}

static int write_setting(uint32_t *setting, const char *text, uint32_t most)
{
	if (text[0] < '0' || text[0] > '9' || text[1] || (uint32_t)(text[0] - '0') > most) {
		pb_file_error = most == 1 ? "is 0 or 1" : "is 0, 1 or 2";
		return -EINVAL;
	}
	*setting = (uint32_t)(text[0] - '0');
	return 0;
}

#define SETTING(name, most) \
static void read_##name(struct pb_seq *s) \
{ \
	read_setting(s, pb_bpf_settings.name); \
} \
static int write_##name(char *text, bool append, bool live) \
{ \
	return write_setting(&pb_bpf_settings.name, text, most); \
}

SETTING(jit_enable, 2)
SETTING(jit_harden, 2)
SETTING(stats, 1)

static void read_unprivileged_disabled(struct pb_seq *s)
{
	read_setting(s, pb_bpf_settings.unprivileged_disabled);
}

/* As Documentation/admin-guide/sysctl/kernel.rst has it: 1 can't be taken back. */
static int write_unprivileged_disabled(char *text, bool append, bool live)
{
	uint32_t value = 0;
	int err = write_setting(&value, text, 2);

	if (!err && pb_bpf_settings.unprivileged_disabled == 1 && value != 1) {
		pb_file_error = "1 stays until the program ends";
		err = -EPERM;
	}
	if (!err)
		pb_bpf_settings.unprivileged_disabled = value;
	return err;
}

void pb_prog_register_files(void)
{
	static const struct { enum pb_control_file id; struct pb_file file; } files[] = {
		{ PB_CF_BPF_JIT_ENABLE, { read_jit_enable, write_jit_enable } },
		{ PB_CF_BPF_JIT_HARDEN, { read_jit_harden, write_jit_harden } },
		{ PB_CF_BPF_STATS_ENABLED, { read_stats, write_stats } },
		{ PB_CF_UNPRIVILEGED_BPF_DISABLED, { read_unprivileged_disabled, write_unprivileged_disabled } },
	};

	for (size_t i = 0; i < pb_array_size(files); i++)
		pb_file_register(files[i].id, &files[i].file);
}
