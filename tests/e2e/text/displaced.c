/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The first bytes of the functions contain a call or a loop, whose copy in a stub has several
 * instructions. The program single-steps a function until it reaches the call or the loop. After
 * `more` further steps, the signal handler prints "inside" and waits for a byte on stdin. Meanwhile
 * the test changes the text. Then the function must go on as if it hadn't been interrupted. After
 * each function, the program prints "returned" and waits for another byte.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#define TRAP_FLAG	0x100
#define MORE		6	/* the longest copy has five instructions */
#define die(...) do { printf(__VA_ARGS__); putchar('\n'); fflush(stdout); _exit(99); } while (0)

#define F(name)	".globl " name "\n.type " name ",@function\n" name ":\n.cfi_startproc\n"
/* "far" is code without room for a second jump, so the jump that replaces the next function's first
 * bytes must have five bytes */
#define E(name)	".cfi_endproc\n.size " name ", .-" name "\nfar\n"
#define PUSHED	" .cfi_adjust_cfa_offset 8\n"
#define POPPED	" .cfi_adjust_cfa_offset -8\n"

__asm__(".text\n"
	".macro far\n.cfi_startproc\n jmp 1f\n .rept 75\n xbegin 1f\n .endr\n"
	"1: ret\n.cfi_endproc\n.endm\nfar\n"
	F("doubled") " lea (%rdi,%rdi),%rax\n mov %rax,%rcx\n ret\n" E("doubled")
	F("direct") " sub $8,%rsp\n" PUSHED " call doubled\n add $1,%rax\n"
	" add $8,%rsp\n" POPPED " ret\n" E("direct")
	F("keeps") " push %rbx\n" PUSHED " mov %rdi,%rbx\n call doubled\n add %rbx,%rax\n"
	" pop %rbx\n" POPPED " ret\n" E("keeps")
	F("by_register") " push %rbx\n" PUSHED " mov %rsi,%rbx\n call *%rbx\n"
	" add $2,%rax\n pop %rbx\n" POPPED " ret\n" E("by_register")
	F("by_pointer") " sub $8,%rsp\n" PUSHED " call *pointer(%rip)\n"
	" add $3,%rax\n add $8,%rsp\n" POPPED " ret\n" E("by_pointer")
	F("looped") " mov %rdi,%rcx\n loop 1f\n mov $7,%eax\n ret\n"
	"1: lea (%rcx,%rcx),%rax\n ret\n" E("looped")
	".data\n.p2align 3\npointer: .quad doubled\n.text\n");

long doubled(long x);
typedef long function(long x, long (*f)(long));
function direct, keeps, by_register, by_pointer, looped;

static const struct {
	function *f;
	int at;		/* the offset of the call or the loop */
	long want;	/* f(5) */
} functions[] = {
	{ direct, 4, 11 }, { keeps, 4, 15 }, { by_register, 4, 12 }, { by_pointer, 4, 13 },
	{ looped, 3, 8 },
};
#define NR (int)(sizeof(functions) / sizeof(functions[0]))

static char *at;
static int reached, more;

static void say(const char *what)
{
	char byte;

	if (write(1, what, strlen(what)) < 0 || read(0, &byte, 1) != 1)
		_exit(98);
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;

	reached |= (char *)g[REG_RIP] == at;
	if (!reached || more--)
		return;
	g[REG_EFL] &= ~TRAP_FLAG;
	say("inside\n");
}

static long stepped(function *f)
{
	long v;

	__asm__ volatile("pushf; orl $0x100,(%%rsp); popf" : : : "memory", "cc");
	v = f(5, doubled);
	__asm__ volatile("pushf; andl $~0x100,(%%rsp); popf" : : : "memory", "cc");
	return v;
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	long v;

	sigaction(SIGTRAP, &sa, NULL);
	printf("%d waits\n", NR * MORE);
	fflush(stdout);
	for (int i = 0; i < NR * MORE; i++) {
		at = (char *)functions[i / MORE].f + functions[i / MORE].at;
		more = i % MORE;
		reached = 0;
		v = stepped(functions[i / MORE].f);
		if (!reached || v != functions[i / MORE].want)
			die("function %d, %d steps after its call or loop: %ld, not %ld", i / MORE,
			    i % MORE, v, functions[i / MORE].want);
		say("returned\n");
	}
	printf("right\n");
	return 0;
}
