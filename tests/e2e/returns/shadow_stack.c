/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * shadow_stack FEATURES PROGRAM...: pretends that programs have a shadow stack. In the program,
 * and in all programs that it starts, arch_prctl(ARCH_SHSTK_STATUS) stores FEATURES and succeeds.
 * A seccomp filter passes the call on to this process, which answers it. FEATURES is 1 for a
 * shadow stack. The exit status is the program's; 77: the kernel can't do this.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHSTK_STATUS	0x5005

static int install_filter(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SHSTK_STATUS, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(filter) / sizeof(filter[0]), filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
			    &prog);
}

/* If the calling process has ended meanwhile, nothing happens. */
static void answer(int listener, uint64_t features)
{
	struct seccomp_notif call = { 0 };
	struct seccomp_notif_resp resp = { 0 };
	char path[64];
	int mem;

	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call))
		return;
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)call.pid);
	mem = open(path, O_WRONLY | O_CLOEXEC);
	if (pwrite(mem, &features, sizeof(features), (off_t)call.data.args[1]) != sizeof(features))
		resp.error = -EFAULT;
	close(mem);
	resp.id = call.id;
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &resp);
}

int main(int argc, char **argv)
{
	int listener = argc > 2 ? install_filter() : -1, status;
	struct pollfd wait[2] = { { .fd = listener, .events = POLLIN }, { .events = POLLIN } };
	pid_t pid;

	if (listener < 0)
		return 77;
	pid = fork();
	if (!pid) {
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	wait[1].fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pid < 0 || wait[1].fd < 0)
		return 77;
	while (!wait[1].revents) {
		if (poll(wait, 2, -1) < 0)
			return 77;
		if (wait[0].revents & POLLIN)
			answer(listener, strtoull(argv[1], NULL, 0));
	}
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 1;
	return WEXITSTATUS(status);
}
