/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Uses CAP_SYS_PTRACE, and finds out why a thread could not be traced. */
#include <linux/capability.h>
#include <stdbool.h>
#include "base/ptrace_right.h"
#include "base/sys.h"
#include "base/task.h"

static bool lacks;	/* the right is missing: the last thread that couldn't be traced wasn't
			 * traced by another process */

void pb_ptrace_right_take(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = { 0 };
	const uint32_t bit = CAP_TO_MASK(CAP_SYS_PTRACE);

	if (!lacks || pb_sys(SYS_capget, &head, caps) || !(caps[0].permitted & bit) ||
	    caps[0].effective & bit)
		return;
	caps[0].effective |= bit;
	pb_sys(SYS_capset, &head, caps);
}

bool pb_ptrace_right_held(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = { 0 };

	return !lacks && !pb_sys(SYS_capget, &head, caps) &&
	       caps[0].effective & CAP_TO_MASK(CAP_SYS_PTRACE);
}

const char *pb_ptrace_right_lack(int task_dir, uint32_t tid)
{
	struct pb_task_status s;

	lacks = pb_task_read_status_at(&s, task_dir, tid) &&
		!pb_task_status_number(&s, "TracerPid:");
	return lacks ? "the process has no right to stop its own threads (do its user IDs differ?)"
		     : "a thread is traced by another process";
}
