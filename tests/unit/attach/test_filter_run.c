/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Compares attach/filter_run.c with the kernel. Random filters are installed in a child, which
 * makes one system call. If the call's arguments are known, the verdict of filter_run.c must be the
 * kernel's. If they are unknown, the verdict must not be better than the kernel's.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "attach/filter_run.h"

#define ROUNDS	300
#define BODY	16		/* instructions of a random filter, before its last ones */

static uint64_t state = 88172645463325252ull;

static uint32_t below(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 20) % n;
}

static uint32_t any_number(void)
{
	static const uint32_t some[] = { 0, 1, 2, 7, 31, 32, 0x10000, 0x7fffffff, 0x80000000,
					 0xffffffff };

	return some[below(sizeof(some) / sizeof(some[0]))];
}

static struct sock_filter any_return(void)
{
	static const uint32_t actions[] = { SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | EPERM,
					    SECCOMP_RET_ERRNO | ENOSYS, SECCOMP_RET_KILL_PROCESS };

	return (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, actions[below(4)]);
}

/* An instruction with `left` instructions after it. */
static struct sock_filter any_instruction(uint32_t left)
{
	static const uint16_t alu[] = { BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_AND, BPF_OR,
					BPF_XOR, BPF_LSH, BPF_RSH, BPF_NEG };
	static const uint16_t jumps[] = { BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET };
	uint16_t source = below(2) ? BPF_X : BPF_K;
	uint32_t op;

	switch (below(10)) {
	case 0: case 8: return (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
							     16 + 4 * below(12));
	case 1: return (struct sock_filter) BPF_STMT(BPF_LDX | BPF_IMM, any_number());
	case 2: return (struct sock_filter) BPF_STMT(BPF_MISC | (below(2) ? BPF_TAX : BPF_TXA), 0);
	case 3: return (struct sock_filter) BPF_STMT(below(2) ? BPF_ST : BPF_STX, below(2));
	case 4: return (struct sock_filter) BPF_STMT((below(2) ? BPF_LD : BPF_LDX) | BPF_MEM,
						     below(2));
	case 5: return below(4) ? (struct sock_filter) BPF_STMT(BPF_LD | BPF_IMM, any_number()) :
				  any_return();
	case 6:
		return (struct sock_filter) BPF_JUMP(BPF_JMP | jumps[below(4)] | source,
						     any_number(), (uint8_t)below(left),
						     (uint8_t)below(left));
	default:
		op = alu[below(10)];
		/* the kernel rejects other constants than these */
		if (op == BPF_LSH || op == BPF_RSH)
			return (struct sock_filter) BPF_STMT(BPF_ALU | op | source, below(32));
		if (op == BPF_DIV)
			return (struct sock_filter) BPF_STMT(BPF_ALU | op | BPF_K, 1 + below(9));
		return (struct sock_filter) BPF_STMT(BPF_ALU | op | (op == BPF_NEG ? 0 : source),
						     op == BPF_NEG ? 0 : any_number());
	}
}

/* Makes a filter that affects only getppid(), so that the child can end. */
static size_t make(struct sock_filter *f)
{
	size_t nr = 0;

	f[nr++] = (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0);
	f[nr++] = (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 1, 0);
	f[nr++] = (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	/* the kernel rejects a filter that reads a word of its memory before it is written */
	f[nr++] = (struct sock_filter) BPF_STMT(BPF_ST, 0);
	f[nr++] = (struct sock_filter) BPF_STMT(BPF_STX, 1);
	for (uint32_t i = 0; i < BODY; i++)
		f[nr++] = any_instruction(BODY - i);
	f[nr++] = (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, any_number(), 0, 1);
	f[nr++] = any_return();
	f[nr++] = any_return();
	return nr;
}

/* The child's exit status says what the kernel has done with the call; 100: the kernel rejects the
 * filter. */
static void call_under(struct sock_filter *f, size_t nr, const uint64_t *args)
{
	struct sock_fprog prog = { (unsigned short)nr, f };
	struct rlimit none = { 0, 0 };
	long ret;

	setrlimit(RLIMIT_CORE, &none);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		_exit(100);
	ret = syscall(SYS_getppid, args[0], args[1], args[2], args[3], args[4], args[5]);
	_exit(ret >= 0 ? ATTACH_ALLOWED : errno == ENOSYS ? ATTACH_ABSENT : ATTACH_FAILS);
}

static int kernel_does(struct sock_filter *f, size_t nr, const uint64_t *args)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		call_under(f, nr, args);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status)) {
		assert_int_equal(WTERMSIG(status), SIGSYS);
		return ATTACH_FATAL;
	}
	return WEXITSTATUS(status);
}

static void agrees_with_the_kernel(void **unused)
{
	unsigned seen[ATTACH_FATAL + 1] = { 0 }, unsure = 0;
	struct sock_filter f[BODY + 8];

	for (int i = 0; i < ROUNDS; i++) {
		struct attach_call call = { "getppid", SYS_getppid, 0x3f, { 0 } };
		size_t nr = make(f);

		for (int k = 0; k < 6; k++)
			call.args[k] = (uint64_t)any_number() << 32 | any_number();
		int does = kernel_does(f, nr, call.args);

		if (does == 100)
			continue;
		assert_int_equal(attach_filter_run(f, nr, &call), does);
		seen[does]++;
		for (call.known = 0; call.known < 0x3f; call.known = (uint8_t)(call.known * 2 + 1))
			assert_true((int)attach_filter_run(f, nr, &call) >= does);
		call.known = 0;
		unsure += (int)attach_filter_run(f, nr, &call) > does;
	}
	for (int v = 0; v <= ATTACH_FATAL; v++)
		assert_true(seen[v] > 10);
	print_message("%u allowed, %u absent, %u fail, %u fatal; %u of them unsure\n", seen[0],
		      seen[1], seen[2], seen[3], unsure);
	assert_true(unsure > 10);
}

/* Each jump doubles the number of paths. If the number of steps weren't limited, this test would
 * hang. */
static void bounds_the_time(void **unused)
{
	static struct sock_filter f[BPF_MAXINSNS];
	struct attach_call call = { "read", SYS_read, 0, { 0 } };

	for (size_t i = 0; i < BPF_MAXINSNS; i++)
		f[i] = i % 2 ? (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 0) :
			       (struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 16);
	f[BPF_MAXINSNS - 1] = (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	assert_int_equal(attach_filter_run(f, BPF_MAXINSNS, &call), ATTACH_FATAL);
	f[100] = f[BPF_MAXINSNS - 1];
	assert_int_equal(attach_filter_run(f, 101, &call), ATTACH_FATAL);
	assert_int_equal(attach_filter_run(f + 86, 15, &call), ATTACH_ALLOWED);
}

static void rejects_nonsense(void **unused)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_filter bad[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 0), BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 2),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 64), BPF_STMT(BPF_ST, BPF_MEMWORDS),
		BPF_STMT(BPF_LD | BPF_MEM, 0xffffffff), BPF_STMT(BPF_JMP | BPF_JA, 0xffffffff),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 255, 255), BPF_STMT(BPF_JMP | 0xf0, 0),
		BPF_STMT(BPF_ALU | BPF_DIV | BPF_X, 0), BPF_STMT(0xffff, 0),
	};
	struct attach_call call = { "read", SYS_read, 0, { 0 } };

	assert_int_equal(attach_filter_run(&allow, 1, &call), ATTACH_ALLOWED);
	assert_int_equal(attach_filter_run(&allow, 0, &call), ATTACH_FATAL);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct sock_filter f[] = { bad[i], allow };

		assert_int_equal(attach_filter_run(f, 2, &call), ATTACH_FATAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_the_kernel),
		cmocka_unit_test(bounds_the_time),
		cmocka_unit_test(rejects_nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
