/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The program single-steps its own calls. At one instruction, the SIGTRAP handler changes registers
 * in its context. If the program counter that the handler sees is that of a function's entry, of a
 * tail jump or of the code after the call, the program must see the changed registers from there
 * on. Each run makes the change at another instruction. With a tracer, many instructions have the
 * same program counter.
 *
 * @markers 1 main
 * @slow all bpf bpf-own
 */
#include "../hostile.h"
#include <signal.h>
#include <ucontext.h>

#define TRAP_FLAG	0x100
#define FLAGS		0x8d5
#define OUR_VALUE	0x1000			/* plus the register's number */
#define CHANGED		0x7654321076543210	/* plus the register's number */

enum { RAX, RCX, RDX, RSI, RDI, R8, R11, EFL, NR_REGS };
static const int in_context[NR_REGS] = {
	REG_RAX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_R8, REG_R11, REG_EFL
};
static const char *const names[NR_REGS] = {
	"rax", "rcx", "rdx", "rsi", "rdi", "r8", "r11", "eflags"
};

/* the registers at the entry of called(), after its return, and at the entry of tail_called() */
__attribute__((used)) unsigned long at_entry[NR_REGS], at_return[NR_REGS], at_tail[NR_REGS];

/* Calls called(), or jumps(), which jumps to tail_called(), with the trap flag set. */
void run(void);
extern char called[], after_called[], jumps[], the_jump[], tail_called[], after_jumps[];
__asm__(
	"	.macro note where\n"
	"	mov	%rax, \\where(%rip)\n"
	"	mov	%rcx, 8+\\where(%rip)\n"
	"	mov	%rdx, 16+\\where(%rip)\n"
	"	mov	%rsi, 24+\\where(%rip)\n"
	"	mov	%rdi, 32+\\where(%rip)\n"
	"	mov	%r8, 40+\\where(%rip)\n"
	"	mov	%r11, 48+\\where(%rip)\n"
	"	pushf\n"
	"	pop	56+\\where(%rip)\n"
	"	.endm\n"
	"	.macro give\n"
	"	xor	%eax, %eax\n"		/* sets the flags, too */
	"	mov	$0x1000, %eax\n"
	"	mov	$0x1001, %ecx\n"
	"	mov	$0x1002, %edx\n"
	"	mov	$0x1003, %esi\n"
	"	mov	$0x1004, %edi\n"
	"	mov	$0x1005, %r8d\n"
	"	mov	$0x1006, %r11d\n"
	"	.endm\n"
	"	.text\n"
	"	.p2align 4\n	.globl called\n	.type called, @function\n"
	"called:\n	note at_entry\n	ret\n	.size called, . - called\n"
	"	.p2align 4\n	.globl tail_called\n	.type tail_called, @function\n"
	"tail_called:\n	note at_tail\n	ret\n	.size tail_called, . - tail_called\n"
	"	.p2align 4\n	.globl jumps\n	.type jumps, @function\n"
	"jumps:\n	note at_entry\n	.globl the_jump\n"
	"the_jump:\n	jmp tail_called\n	.size jumps, . - jumps\n"
	"	.p2align 4\n	.globl run\n	.type run, @function\n"
	"run:\n"
	"	.cfi_startproc\n"
	"	sub	$8, %rsp\n	.cfi_adjust_cfa_offset 8\n"
	"	pushf\n	orl $0x100, (%rsp)\n	popf\n"
	"	cmpb	$0, by_jump(%rip)\n	jne 1f\n"
	"	give\n	call called\n	.globl after_called\n"
	"after_called:\n	note at_return\n	jmp 2f\n"
	"1:	give\n	call jumps\n	.globl after_jumps\n"
	"after_jumps:\n	note at_return\n"
	"2:	pushf\n	andl $~0x100, (%rsp)\n	popf\n"
	"	add	$8, %rsp\n	.cfi_adjust_cfa_offset -8\n"
	"	ret\n	.cfi_endproc\n	.size run, . - run\n");

__attribute__((used)) char by_jump;	/* run() calls jumps() */
static long step, step_at;		/* only instructions with such a program counter count */
static int flags;			/* change the flags; otherwise change the other registers */
static char *seen;			/* the program counter at which the register was changed */
static char *const places[] = {
	called, after_called, jumps, the_jump, tail_called, after_jumps
};
#define NR_PLACES (int)(sizeof(places) / sizeof(places[0]))
static const char *const place_names[] = {
	"called", "after_called", "jumps", "the_jump", "tail_called", "after_jumps"
};
static long changes[NR_PLACES];

static void on_trap(int sig, siginfo_t *info, void *context)
{
	greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;
	int i = 0;

	while (i < NR_PLACES && places[i] != (char *)g[REG_RIP])
		i++;
	if (i == NR_PLACES || step++ != step_at)
		return;
	seen = places[i];
	changes[i]++;
	g[REG_EFL] &= ~TRAP_FLAG;
	if (flags)
		g[REG_EFL] ^= FLAGS;
	for (i = 0; i < EFL && !flags; i++)
		g[in_context[i]] = CHANGED + i;
}

/* changed: the change was made before the registers were noted. */
static void check_regs(const unsigned long *regs, int changed, const char *place)
{
	const char *at = "nowhere";

	for (int i = 0; i < NR_PLACES; i++)
		at = seen == places[i] ? place_names[i] : at;
	for (int i = 0; i < NR_REGS; i++) {
		unsigned long value = i == EFL ? regs[i] & FLAGS : regs[i];
		unsigned long want = i == EFL ? 0x44 : OUR_VALUE + (unsigned long)i;

		if (changed && flags == (i == EFL))
			want = flags ? want ^ FLAGS : CHANGED + (unsigned long)i;
		if (value != want)
			die("step %ld, changed at %s: %s is %#lx, not %#lx, at %s", step_at, at,
			    names[i], value, want, place);
	}
}

/* Returns whether the step was reached. */
static int one_run(void)
{
	int entry, tail;

	step = 0;
	seen = NULL;
	run();
	entry = seen == called || seen == jumps;
	check_regs(at_entry, entry, "the entry");
	tail = entry || seen == the_jump || seen == tail_called;
	if (by_jump)
		check_regs(at_tail, tail, "the entry after the jump");
	check_regs(at_return, tail || seen == after_called || seen == after_jumps, "the return");
	return step > step_at;
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };

	check(!sigaction(SIGTRAP, &sa, NULL));
	for (by_jump = 0; by_jump < 2; by_jump++)
		for (flags = 0; flags < 2; flags++)
			for (step_at = 0; one_run(); step_at++)
				;
	for (int i = 0; i < NR_PLACES; i++) {
		check(changes[i] >= 2);
		fprintf(stderr, "figure %s %ld\n", place_names[i], changes[i]);
	}
	marker_begin(1);
	puts("every change is seen");
	return 0;
}
