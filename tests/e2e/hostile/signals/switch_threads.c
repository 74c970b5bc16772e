/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program's own preemptive threads: signal handlers keep the registers of the interrupted thread,
 * and set those of another one. A worker single-steps a function. In each round, the handler parks
 * the worker at a later instruction, and goes back to the main thread. Later, a handler that has
 * interrupted the main thread sets the parked registers. The program counter among them may lie in
 * bytes that a patch has replaced.
 *
 * @markers 1 main
 */
#include "../hostile.h"
#include <signal.h>
#include <ucontext.h>

#define TRAP_FLAG	0x100

/* "far" is code without room for a second jump, so the jumps that replace the next function's first
 * bytes have five bytes: they reach into the third instruction. */
__asm__(".section text_stepped,\"ax\",@progbits\n"
	".macro F name\n .globl \\name\n .type \\name,@function\n\\name: .cfi_startproc\n.endm\n"
	".macro E name\n .cfi_endproc\n .size \\name, .-\\name\n.endm\n"
	".macro far\n.cfi_startproc\n jmp 1f\n .rept 75\n xbegin 1f\n .endr\n"
	"1: ret\n.cfi_endproc\n.endm\nfar\n"
	"F adds\n mov %edi,%eax\n add %edi,%eax\n add $1,%rax\n ret\nE adds\nfar\n"
	"F calls\n push %rbx\n .cfi_adjust_cfa_offset 8\n mov %rdi,%rbx\n call adds\n"
	" add %rbx,%rax\n pop %rbx\n .cfi_adjust_cfa_offset -8\n ret\nE calls\nfar\n"
	"F loops\n mov %edi,%ecx\n xor %eax,%eax\n loop 1f\n ret\n"
	"1: add $2,%rax\n dec %rcx\n jne 1b\n ret\nE loops\nfar\n"
	".text\n");
long adds(long x), calls(long x), loops(long x);
extern char __start_text_stepped[], __stop_text_stepped[];

static const struct {
	long (*f)(long);
	long want;	/* f(5) */
} functions[] = { { adds, 11 }, { calls, 16 }, { loops, 8 } };
#define NR (int)(sizeof(functions) / sizeof(functions[0]))

static gregset_t main_regs, worker_regs;
static char stack[1 << 16] __attribute__((aligned(16)));
static long (*volatile function)(long);
static volatile long result, steps, park_at;
static volatile int parked;

static void set(ucontext_t *uc, const gregset_t *regs)
{
	memcpy(uc->uc_mcontext.gregs, regs, sizeof(*regs));
}

static void keep(gregset_t *regs, const ucontext_t *uc)
{
	memcpy(regs, uc->uc_mcontext.gregs, sizeof(*regs));
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	char *pc = (char *)uc->uc_mcontext.gregs[REG_RIP];

	if (pc < __start_text_stepped || pc >= __stop_text_stepped || steps++ != park_at)
		return;
	keep(&worker_regs, uc);
	worker_regs[REG_EFL] &= ~TRAP_FLAG;
	parked = 1;
	set(uc, &main_regs);
}

static void on_switch(int sig, siginfo_t *info, void *context)
{
	keep(&main_regs, context);
	set(context, &worker_regs);
}

static void on_end(int sig, siginfo_t *info, void *context)
{
	set(context, &main_regs);
}

static void send(int sig)
{
	check(!kill(getpid(), sig));
}

static void worker(void)
{
	long v;

	__asm__ volatile("pushf; orl $0x100,(%%rsp); popf" : : : "memory", "cc");
	v = function(5);
	__asm__ volatile("pushf; andl $~0x100,(%%rsp); popf" : : : "memory", "cc");
	result = v;
	send(SIGUSR2);
	die("the worker goes on");
}

/* Returns whether the worker was parked. */
static int one_round(int i)
{
	parked = 0;
	result = -1;
	steps = 0;
	function = functions[i].f;
	memset(worker_regs, 0, sizeof(worker_regs));
	worker_regs[REG_RIP] = (greg_t)worker;
	worker_regs[REG_RSP] = (greg_t)(stack + sizeof(stack) - 8);
	worker_regs[REG_EFL] = 0x202;
	worker_regs[REG_CSGSFS] = main_regs[REG_CSGSFS];
	send(SIGUSR1);
	if (!parked)
		check_eq(result, functions[i].want);
	if (!parked)
		return 0;
	check_eq(result, -1);
	check_eq(functions[i].f(5), functions[i].want);
	send(SIGUSR1);
	if (result != functions[i].want)
		die("function %d, parked at step %ld: %ld, not %ld", i, park_at, result,
		    functions[i].want);
	return 1;
}

static void on_first(int sig, siginfo_t *info, void *context)
{
	keep(&main_regs, context);
}

static void handle(int sig, void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };

	check(!sigaction(sig, &sa, NULL));
}

int main(void)
{
	handle(SIGUSR1, on_first);	/* the segments, which the worker needs, too */
	send(SIGUSR1);
	handle(SIGTRAP, on_trap);
	handle(SIGUSR1, on_switch);
	handle(SIGUSR2, on_end);
	for (int i = 0; i < NR; i++) {
		for (park_at = 0; one_round(i); park_at++)
			;
		check(park_at >= 4);
	}
	marker_begin(1);
	puts("each worker goes on");
	return 0;
}
