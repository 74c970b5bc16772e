/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The program sets breakpoints and single-steps itself. It has int3 in its code and in code that
 * it writes at run time. It steps with the trap flag. Its SIGTRAP handler counts breakpoints and
 * steps.
 * @markers 1000 main/one_round
 */
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include "../hostile.h"

static volatile long traps, steps;
static volatile int stepping;
static const void *volatile trap_pc;

long own_breakpoint(long x);
__asm__(".text; .p2align 4; .globl own_breakpoint; .type own_breakpoint,@function\n"
	"own_breakpoint: .cfi_startproc\n lea 1(%rdi), %rax\n nop\n nop\n int3\n"
	".globl after_int3\nafter_int3: ret\n"
	" .cfi_endproc; .size own_breakpoint, . - own_breakpoint\n");
extern char after_int3[];

static void on_trap(int sig, siginfo_t *si, void *ucv)
{
	ucontext_t *uc = ucv;

	if (stepping) {
		steps++;
		if (!--stepping)
			uc->uc_mcontext.gregs[REG_EFL] &= ~0x100l;
		return;
	}
	traps++;
	trap_pc = (void *)uc->uc_mcontext.gregs[REG_RIP];
}

static KEEP void step_a_little(void)
{
	stepping = 10;
	__asm__ volatile("sub $128, %%rsp; pushfq; orq $0x100, (%%rsp); popfq\n"
			 "nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop;nop\n"
			 "add $128, %%rsp" ::: "memory", "cc");
	check_eq(stepping, 0);
}

static KEEP void one_round(int n, unsigned char *code)
{
	long (*fn)(long) = (long (*)(long))(void *)code;

	check_eq(own_breakpoint(n), n + 1);
	check(trap_pc == after_int3);
	step_a_little();
	/* lea 2(%rdi),%rax ; int3 or nop ; ret, as a JIT would write it */
	memcpy(code, (unsigned char[]){ 0x48, 0x8d, 0x47, 2, n & 1 ? 0xcc : 0x90, 0xc3 }, 6);
	check_eq(fn(n), n + 2);
	marker_begin(n);
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int n;

	check(code != MAP_FAILED);
	check(!sigaction(SIGTRAP, &sa, NULL));
	for (n = 0; n < 1000; n++)
		one_round(n, code);
	check(!raise(SIGTRAP));
	printf("%ld traps, %ld steps\n", traps, steps);
	return 0;
}
