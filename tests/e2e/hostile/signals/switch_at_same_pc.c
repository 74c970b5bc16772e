/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Like switch_threads.c, but each handler that interrupts patched code keeps the program counter,
 * and only sets another stack pointer. Two threads single-step a function until both are at the
 * same instruction. The second thread's handler waits there for ever. The main thread's handler
 * sets the second thread's registers, and so the main thread makes the rest of that call. Then a
 * handler that has interrupted other code sets the registers that the main thread had. The program
 * counter among them lies in bytes that a patch has replaced.
 *
 * @markers 1 main
 * @no_return 12
 */
#include "../hostile.h"
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>

#define TRAP_FLAG	0x100

/* "far" is code without room for a second jump, so the jump that replaces the first bytes of "adds"
 * has five bytes: it reaches into the third instruction. */
__asm__(".text\n.macro far\n.cfi_startproc\n jmp 1f\n .rept 75\n xbegin 1f\n .endr\n"
	"1: ret\n.cfi_endproc\n.endm\nfar\n"
	".globl adds\n.type adds,@function\nadds:\n .cfi_startproc\n"
	" mov %edi,%eax\n add %edi,%eax\n add $1,%rax\n ret\n"
	" .cfi_endproc\n .size adds, .-adds\nfar\n");
long adds(long x);

static const unsigned offsets[] = { 2, 4 };	/* of the second and the third instruction */
#define NR (int)(sizeof(offsets) / sizeof(offsets[0]))

static pthread_t main_thread;
static gregset_t main_regs, second_regs;
static volatile long result;
static volatile unsigned park_at;
static volatile int second_parked, main_switched;

static void keep(gregset_t *regs, const ucontext_t *uc)
{
	memcpy(regs, uc->uc_mcontext.gregs, sizeof(*regs));
	(*regs)[REG_EFL] &= ~TRAP_FLAG;
}

static void set(ucontext_t *uc, const gregset_t *regs)
{
	memcpy(uc->uc_mcontext.gregs, regs, sizeof(*regs));
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	if (uc->uc_mcontext.gregs[REG_RIP] != (greg_t)adds + park_at)
		return;
	if (!pthread_equal(pthread_self(), main_thread)) {
		keep(&second_regs, uc);
		__atomic_store_n(&second_parked, 1, __ATOMIC_RELEASE);
		for (;;)
			pause();
	}
	while (!__atomic_load_n(&second_parked, __ATOMIC_ACQUIRE))
		usleep(1000);
	keep(&main_regs, uc);
	main_switched = 1;
	set(uc, &second_regs);
}

static void on_end(int sig, siginfo_t *info, void *context)
{
	set(context, &main_regs);
}

static KEEP long step(long x)
{
	long v;

	__asm__ volatile("pushf; orl $0x100,(%%rsp); popf" : : : "memory", "cc");
	v = adds(x);
	__asm__ volatile("pushf; andl $~0x100,(%%rsp); popf" : : : "memory", "cc");
	return v;
}

static void *second(void *arg)
{
	result = step(5);
	/* the main thread is here */
	check(!syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR2));
	die("the second thread's code goes on");
}

static void handle(int sig, void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };

	check(!sigaction(sig, &sa, NULL));
}

int main(void)
{
	main_thread = pthread_self();
	handle(SIGTRAP, on_trap);
	handle(SIGUSR2, on_end);
	for (int i = 0; i < NR; i++) {
		pthread_t t;

		park_at = offsets[i];
		second_parked = main_switched = 0;
		result = -1;
		check(!pthread_create(&t, NULL, second, NULL));
		check_eq(step(7), 15);
		check_eq(main_switched, 1);
		check_eq(result, 11);
	}
	marker_begin(1);
	puts("both calls are made");
	return 0;
}
