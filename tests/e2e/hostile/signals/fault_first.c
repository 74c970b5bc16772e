/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * One of the first instructions of a function faults. The handler must see the program's own
 * program counter. Then the handler leaves by a jump, or changes the context. Either it gives a
 * register another value, so that the instruction is retried with this value, or it skips the
 * instruction. The change must take effect.
 * @markers 4800 main/one_fault
 * @calls fault_load 600
 */
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include "../hostile.h"

#define FN(name, body) \
	long name(void *p, long a, long b); \
	__asm__(".text; .p2align 4; .globl " #name "; .type " #name ",@function\n" \
		#name ": .cfi_startproc\n" \
		body "\n .cfi_endproc; .size " #name ", . - " #name "\n")

/* each function has an instruction that faults, a few more bytes, and ret; the function's comment
 * has the offset of the instruction that faults */
FN(fault_load,	"mov (%rdi), %rax; add %rsi, %rax; ret");		/* at 0, 3 bytes */
FN(fault_store,	"mov %rsi, (%rdi); mov %rdx, %rax; ret");		/* at 0 */
FN(fault_2nd,	"mov %rsi, %rax; add (%rdi), %rax; nop; nop; ret");	/* at 3 */
/* at 4; no CFI for the push, because nothing unwinds it */
FN(fault_3rd,	"push %rbp; mov %rsp, %rbp; cmpl $1, (%rdi); pop %rbp; mov $9, %eax; ret");
FN(fault_long,	"movl $0x12345678, 0x100(%rdi); mov %rsi, %rax; ret");	/* at 0, 10 bytes */
FN(fault_div,	"mov %rsi, %rax; cqto; idiv %rdx; nop; ret");		/* SIGFPE at 5 */
FN(fault_ud2,	"ud2; nop; nop; nop; mov %rsi, %rax; ret");		/* SIGILL at 0 */
FN(fault_endbr,	"endbr64; mov (%rdi), %eax; nop; nop; nop; ret");	/* at 4 */

static const struct {
	const char *name;
	long (*fn)(void *, long, long);
	int offset, length, signal;
} faults[] = {
	{ "load", fault_load, 0, 3, SIGSEGV }, { "store", fault_store, 0, 3, SIGSEGV },
	{ "2nd", fault_2nd, 3, 3, SIGSEGV }, { "3rd", fault_3rd, 4, 3, SIGSEGV },
	{ "long", fault_long, 0, 10, SIGSEGV }, { "div", fault_div, 5, 3, SIGFPE },
	{ "ud2", fault_ud2, 0, 2, SIGILL }, { "endbr", fault_endbr, 4, 2, SIGSEGV },
};

static sigjmp_buf env;
static volatile int what;	/* what the handler does: 0 skip the instruction, 1 retry with a
				 * good pointer (after SIGFPE and SIGILL: like 0), 2 leave by a
				 * jump */
static const void *volatile seen_pc;
static void *volatile seen_addr, *volatile seen_rdi, *volatile seen_si;
static volatile int seen_signal, length;
static long good[64];

static void on_fault(int sig, siginfo_t *si, void *ucv)
{
	ucontext_t *uc = ucv;

	seen_pc = (void *)uc->uc_mcontext.gregs[REG_RIP];
	seen_rdi = (void *)uc->uc_mcontext.gregs[REG_RDI];
	seen_si = (void *)uc->uc_mcontext.gregs[REG_RSI];
	seen_addr = si->si_addr;
	seen_signal = sig;
	if (what == 2)
		siglongjmp(env, 1);
	if (what == 1 && sig == SIGSEGV)
		uc->uc_mcontext.gregs[REG_RDI] = (long)good;
	else
		uc->uc_mcontext.gregs[REG_RIP] += length;
}

static KEEP void one_fault(int k, int how, int n)
{
	void *bad = (void *)(16 + 8l * n);

	what = how;
	seen_pc = NULL;
	length = faults[k].length;
	if (!sigsetjmp(env, 1))
		faults[k].fn(bad, n, 0);
	marker_begin(n);
	if ((char *)seen_pc != (char *)faults[k].fn + faults[k].offset)
		die("%s: PC is %p, not %p + %d", faults[k].name, seen_pc, faults[k].fn,
		    faults[k].offset);
	check_eq(seen_signal, faults[k].signal);
	check(seen_rdi == bad && seen_si == (void *)(long)n);
	if (faults[k].signal == SIGSEGV)
		check((char *)seen_addr == (char *)bad + (faults[k].fn == fault_long ? 0x100 : 0));
	else
		check((char *)seen_addr == (char *)seen_pc);
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
	int k, how, n;

	check(!sigaction(SIGSEGV, &sa, NULL) && !sigaction(SIGFPE, &sa, NULL) &&
	      !sigaction(SIGILL, &sa, NULL));
	for (n = 0; n < 200; n++)
		for (k = 0; k < 8; k++)
			for (how = 0; how < 3; how++)
				one_fault(k, how, n);
	for (k = 0; k < 8; k++)
		printf("%s: PC at entry + %d\n", faults[k].name, faults[k].offset);
	return 0;
}
