/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs programs, and catches their faults: a signal handler jumps out of the run (guarded.h). */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <ucontext.h>
#include "bpf/core/probe.h"
#include "guarded.h"

static sigjmp_buf back;
static volatile sig_atomic_t running;

static void on_fault(int sig, siginfo_t *info, void *arg)
{
	ucontext_t *u = arg;
	/* If the fault is in a load that may fault, `go` is the address at which the program
	 * continues. If it is in any other instruction, `go` is 0. */
	uint64_t go = pb_bpf_fault((uint64_t)u->uc_mcontext.gregs[REG_RIP]);

	if (go)
		u->uc_mcontext.gregs[REG_RIP] = (greg_t)go;
	else if (running)
		siglongjmp(back, 1);
	else
		signal(sig, SIG_DFL);
}

void guarded_begin(void)
{
	static char stack[65536];
	const stack_t alt = { .ss_sp = stack, .ss_size = sizeof stack };
	struct sigaction a = { .sa_sigaction = on_fault,
			       .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK };

	sigaltstack(&alt, NULL);
	sigaction(SIGSEGV, &a, NULL);
	sigaction(SIGBUS, &a, NULL);
}

int guarded_run(struct pb_bpf_run *run, bool jit, uint64_t *r0)
{
	if (sigsetjmp(back, 1)) {
		running = 0;
		return -EFAULT;
	}
	running = 1;
	*r0 = jit ? pb_bpf_enter(run) : pb_bpf_interpret(run);
	running = 0;
	return 0;
}
