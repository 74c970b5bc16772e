/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Executes a program under a seccomp filter.
 *
 *	filtered DEFAULT NUMBER=ACTION... -- PROG ARGS
 *
 * The filter returns ACTION for the system call NUMBER, and DEFAULT for all calls that aren't
 * listed. NUMBER@N&MASK=ACTION applies only if argument N of the call has a bit of MASK.
 */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)

static struct sock_filter filter[BPF_MAXINSNS];
static unsigned short nr;

static void add(struct sock_filter insn)
{
	filter[nr++] = insn;
}

static void add_rule(const char *text)
{
	const char *at = strchr(text, '@'), *mask = strchr(text, '&');
	unsigned action = strtoul(strchr(text, '=') + 1, NULL, 0);

	add((struct sock_filter) LOAD(nr));
	add((struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, atoi(text), 0, at ? 3 : 1));
	if (at) {
		add((struct sock_filter) LOAD(args[atoi(at + 1)]));
		add((struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K,
						  strtoul(mask + 1, NULL, 0), 0, 1));
	}
	add((struct sock_filter) RETURN(action));
}

int main(int argc, char **argv)
{
	struct sock_fprog prog = { 0, filter };
	int i;

	add((struct sock_filter) LOAD(arch));
	add((struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0));
	add((struct sock_filter) RETURN(SECCOMP_RET_KILL_PROCESS));
	for (i = 2; i < argc && strcmp(argv[i], "--"); i++)
		add_rule(argv[i]);
	add((struct sock_filter) RETURN(strtoul(argv[1], NULL, 0)));
	prog.len = nr;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		return 2;
	execv(argv[i + 1], argv + i + 1);
	return 3;
}
