/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The program single-steps calls with all kinds of exits. After each step it prints a line with
 * the program counter and the registers, unless nothing has changed. (In a stub the handler sees
 * the function's program counter, which may stay the same for several instructions.)
 * It is linked at a fixed address, so that runs can be compared.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define MAX 20000
#define FLAGS 0x8d5

static struct line {
	unsigned long rip, rsp, rax, rbx, rcx, rdx, rsi, rdi, r8, r11, flags;
} lines[MAX];
static int nr;
static unsigned long first_rsp;

long stepped(long x), never(long x);

__asm__(
	".text\n.p2align 4\n"
	".macro F name\n .globl \\name\n .type \\name,@function\n\\name: .cfi_startproc\n.endm\n"
	".macro E name\n .cfi_endproc\n .size \\name, .-\\name\n .p2align 4\n.endm\n"
	".macro push_rbx\n push %rbx\n .cfi_adjust_cfa_offset 8\n .cfi_offset %rbx,-16\n.endm\n"
	".macro pop_rbx\n pop %rbx\n .cfi_adjust_cfa_offset -8\n .cfi_restore %rbx\n.endm\n"
	/* code that is longer than an entry's window, that is, than the bytes that a patch may
	 * overwrite */
	".macro pad\n .rept 6\n lea 1(%rsi),%rsi\n .endr\n.endm\n"
	"F leaf\n lea 3(%rdi),%rax\n add $7,%r11\n cmp $5,%rax\n ret\nE leaf\n"
	"F small\n mov %rdi,%rax\n ret\nE small\n"
	"F prefixed\n pad\n lea 1(%rdi),%rax\n dec %rax\n rep ret\nE prefixed\n"
	"F pops\n mov 8(%rsp),%rax\n add %rdi,%rax\n ret $8\nE pops\n"
	"F saves\n push_rbx\n mov %rdi,%rbx\n call leaf\n add %rbx,%rax\n pop_rbx\n ret\nE saves\n"
	/* calls and loops in entry windows. Their copies in stubs have several instructions. */
	"F calls\n push %rdi\n .cfi_adjust_cfa_offset 8\n call leaf\n pop %rdi\n"
	" .cfi_adjust_cfa_offset -8\n ret\nE calls\n"
	"F calls_reg\n push_rbx\n mov $leaf,%ebx\n call *%rbx\n pop_rbx\n ret\nE calls_reg\n"
	"F calls_mem\n push_rbx\n call *pointer(%rip)\n mov %rax,%rdi\n call small\n pop_rbx\n"
	" ret\nE calls_mem\n"
	"F loops\n lea 1(%rdi),%ecx\n loop 1f\n mov $3,%eax\n ret\n"
	"1: mov %rcx,%rax\n add $1,%rax\n ret\nE loops\n"
	"F loop_tail\n lea 1(%rdi),%ecx\n loop short_tail\n mov $3,%eax\n ret\nE loop_tail\n"
	"F short_tail\n mov %rcx,%rax\n add $2,%rax\n ret\nE short_tail\n"
	"F tail\n pad\n lea 1(%rdi),%rdi\n inc %r11\n jmp leaf\nE tail\n"
	"F tail_reg\n mov $leaf,%eax\n inc %r11\n lea 2(%rdx),%rdx\n jmp *%rax\nE tail_reg\n"
	"F tail_r11\n pad\n mov $leaf,%r11d\n xor %eax,%eax\n lea 2(%rdx),%rdx\n jmp *%r11\n"
	"E tail_r11\n"
	"F tail_mem\n lea 2(%rdi),%rdi\n jmp *pointer(%rip)\nE tail_mem\n"
	"F tail_saves\n push_rbx\n mov %rdi,%rbx\n call leaf\n lea 5(%rbx),%rdi\n pop_rbx\n"
	" jmp leaf\nE tail_saves\n"
	"F cond\n pad\n inc %r11\n test $1,%dil\n jne leaf\n lea 9(%rdi),%rax\n inc %rax\n ret\n"
	"E cond\n"
	"F conds\n cmp $3,%rdi\n je leaf\n jb small\n mov $17,%eax\n ret\nE conds\n"
	/* The ret of `shared` is replaced by a short jump to a trampoline slot, which has the
	 * long jump. "far" is code without room for a slot, and keeps the room in other functions
	 * out of reach. So the jump in place of the ret shares bytes with a second jump */
	".macro far\n.cfi_startproc\n jmp 1f\n .rept 75\n xbegin 1f\n .endr\n"
	"1: ret\n.cfi_endproc\n.endm\nfar\n"
	"F shared\n mov %rdi,%rax\n test $1,%dil\n je 1f\n call leaf\n1: ret\n"
	"2: mov $1,%eax\n add $2,%edi\n jmp 1b\n jne 2b\nE shared\nfar\n"
	"F never\n mov %rdi,%rax\n imul $3,%rax\n ret\nE never\n"
	"F stepped\n push_rbx\n mov %rdi,%rbx\n"
	".irp f, leaf, small, prefixed, saves, calls, calls_reg, calls_mem, loops, loop_tail, "
	"tail, tail_reg, tail_r11, tail_mem, tail_saves, cond, conds, shared\n"
	" mov %rbx,%rdi\n mov $0x1234,%r11d\n call \\f\n add %rax,%rbx\n and $7,%rbx\n.endr\n"
	" push %rbx\n .cfi_adjust_cfa_offset 8\n mov %rbx,%rdi\n"
	" call pops\n .cfi_adjust_cfa_offset -8\n"
	" mov %rbx,%rax\n pop_rbx\n ret\nE stepped\n"
	".data\npointer: .quad leaf\n.text\n");

extern char __executable_start, etext;
long leaf(long x), small(long x), prefixed(long x), pops(long x), saves(long x), tail(long x),
	tail_reg(long x), tail_r11(long x), tail_mem(long x), tail_saves(long x), cond(long x),
	conds(long x), shared(long x), calls(long x), calls_reg(long x), calls_mem(long x),
	loops(long x), loop_tail(long x), short_tail(long x);

/* Returns whether rip is a function's entry. After an entry, a handler may see two of the agent's
 * instructions. on_trap() skips them, because they don't belong to an exit. */
static int is_entry(unsigned long rip)
{
	long (*const functions[])(long) = {
		stepped, leaf, small, prefixed, pops, saves, tail, tail_reg, tail_r11, tail_mem,
		tail_saves, cond, conds, shared, calls, calls_reg, calls_mem, loops, loop_tail,
		short_tail };

	for (unsigned i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (rip == (unsigned long)functions[i])
			return 1;
	return 0;
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
	unsigned long rip = (unsigned long)g[REG_RIP];

	if (!first_rsp)
		first_rsp = (unsigned long)g[REG_RSP];
	if (nr == MAX)
		return;
	if (nr && is_entry(lines[nr - 1].rip) &&
	    (rip < (unsigned long)&__executable_start || rip >= (unsigned long)&etext))
		return;
	lines[nr] = (struct line){
		rip, (unsigned long)g[REG_RSP] - first_rsp, (unsigned long)g[REG_RAX],
		(unsigned long)g[REG_RBX], (unsigned long)g[REG_RCX], (unsigned long)g[REG_RDX],
		(unsigned long)g[REG_RSI], (unsigned long)g[REG_RDI], (unsigned long)g[REG_R8],
		(unsigned long)g[REG_R11], (unsigned long)g[REG_EFL] & FLAGS };
	if (!nr || memcmp(&lines[nr], &lines[nr - 1], sizeof(lines[nr])))
		nr++;
}

static long with_steps(long x)
{
	register long rax __asm__("rax");
	register long rdi __asm__("rdi") = x;

	/* sets most registers to known values */
	__asm__ volatile(" sub $128,%%rsp\n xor %%ebx,%%ebx\n xor %%ecx,%%ecx\n"
			 " xor %%edx,%%edx\n xor %%esi,%%esi\n xor %%r8d,%%r8d\n"
			 " xor %%r11d,%%r11d\n pushf\n orl $0x100,(%%rsp)\n popf\n"
			 " call stepped\n"
			 " pushf\n andl $~0x100,(%%rsp)\n popf\n add $128,%%rsp\n"
			 : "=r"(rax), "+r"(rdi)
			 : : "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
	return rax;
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	long sum = 0;

	if (argc > 5)
		return (int)never(argc);
	sigaction(SIGTRAP, &sa, NULL);
	/* makes calls without steps first, because a thread's first call takes another path than
	 * later calls */
	for (long i = 0; i < 8; i++)
		sum += stepped(i);
	for (long i = 0; i < 8; i++)
		sum += with_steps(i);
	for (int i = 0; i < nr; i++)
		printf("%lx rsp %ld rax %lx rbx %lx rcx %lx rdx %lx rsi %lx rdi %lx r8 %lx r11 %lx"
		       " flags %lx\n", lines[i].rip, (long)lines[i].rsp, lines[i].rax, lines[i].rbx,
		       lines[i].rcx, lines[i].rdx, lines[i].rsi, lines[i].rdi, lines[i].r8,
		       lines[i].r11, lines[i].flags);
	printf("%d lines, %ld\n", nr, sum);
	return 0;
}
