/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls functions that have no room for a jmp rel32, in two threads, while a timer sends signals.
 * The functions s_* have trampoline slots in padding, and the functions d_* in code. The functions
 * r_* share a jump with the next function. The program checks the functions' results, and the
 * program counters that the timer's handler sees. Without an argument, the program ends when it can
 * read a byte from stdin. With an argument, it ends after that number of rounds.
 * test_module_short.py traces the program, and changes the program's text while it runs.
 */
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

long s_loop(long n), s_pushed(long n), s_call(long (*f)(void)), s_return(void), s_jump(long n);
long s_system(void), s_ends(void);
long d_loop(long n), d_tiny(void), d_beside(long n), d_calls(long n), d_fault(long *p);
long r_ret(long n), r_other(long a, long b), c_next(void), c_other(long n);

long sink;

__asm__(".macro F name\n .p2align 4, 0xcc\n .globl \\name\n .type \\name,@function\n"
	"\\name: .cfi_startproc\n.endm\n"
	".macro E name\n .cfi_endproc\n .size \\name, .-\\name\n.endm\n"
	".text\n"
	/* the loop begins after two bytes */
	"F s_loop\n xor %eax,%eax\n1: add %rdi,%rax\n dec %rdi\n jne 1b\n ret\nE s_loop\n"
	/* the loop begins after four bytes */
	"F s_pushed\n push %rbx\n .cfi_def_cfa_offset 16\n .cfi_offset %rbx,-16\n mov %rdi,%rbx\n"
	"1: dec %rdi\n jg 1b\n lea 1(%rbx),%rax\n pop %rbx\n .cfi_def_cfa_offset 8\n ret\n"
	"E s_pushed\n"
	/* the callee returns to the third byte of s_call */
	"F s_call\n call *%rdi\n inc %rax\n ret\nE s_call\n"
	"F s_system\n xor %eax,%eax\n mov $39,%al\n syscall\n ret\nE s_system\n"
	/* three bytes of padding follow s_return */
	"F s_return\n ret\nE s_return\n .byte 0xcc,0xcc,0xcc\n"
	/* s_jump has two bytes, and the next function follows it without padding */
	".globl s_jump\n.type s_jump,@function\ns_jump: .cfi_startproc\n jmp s_far\n .cfi_endproc\n"
	" .size s_jump, .-s_jump\n"
	".globl s_ends\n.type s_ends,@function\ns_ends: .cfi_startproc\n mov $7,%eax\n ret\n"
	" .cfi_endproc\n .size s_ends, .-s_ends\n"
	"F s_far\n lea 3(%rdi),%rax\n ret\nE s_far\n"
	/* padding for the slots of all s_* functions */
	" .fill 32,1,0xcc\n .p2align 4, 0xcc\n"
	/* "far" keeps padding out of reach: it is code without room for a code slot */
	".macro far\n .cfi_startproc\n jmp 1f\n .fill 300,1,0x90\n1: ret\n .cfi_endproc\n.endm\n"
	".macro D name\n .globl \\name\n .type \\name,@function\n\\name: .cfi_startproc\n.endm\n"
	"far\n"
	/* the code slot of d_loop is in its loop, and displaces an instruction with a rip-relative
	 * operand */
	"D d_loop\n mov %rdi,%rax\n1: mov %rax,%rcx\n mov %rax,sink(%rip)\n dec %rax\n"
	" cmp $1,%rcx\n jg 1b\n ret\nE d_loop\n"
	"far\n"
	/* the code slot of d_tiny is in the next function, after that function's window */
	"D d_tiny\n xor %eax,%eax\n ret\nE d_tiny\n"
	"D d_beside\n lea 1(%rdi),%rax\n imul $7,%rax,%rax\n add %rdi,%rax\n add $1000,%rax\n"
	" sub %rdi,%rax\n neg %rax\n ret\nE d_beside\n"
	"far\n"
	/* the code slot of d_calls is before a call in the loop */
	"D d_calls\n push %rbx\n .cfi_def_cfa_offset 16\n .cfi_offset %rbx,-16\n mov %rdi,%rbx\n"
	"1: mov %rbx,%rdi\n mov $1,%esi\n add %rsi,%rdi\n call d_beside\n dec %rbx\n jg 1b\n"
	" pop %rbx\n .cfi_def_cfa_offset 8\n ret\nE d_calls\n"
	"far\n"
	/* the store in the code slot of d_fault faults, and the handler steps over the store */
	"D d_fault\n xor %eax,%eax\n1: lea 1(%rax),%ecx\n mov %rcx,16(%rdi)\n mov %ecx,%eax\n"
	" cmp $2,%eax\n jb 1b\n ret\nE d_fault\n"
	"far\n"
	/* r_ret and r_other have one byte. The window of c_next, which follows r_ret, has exactly
	 * five bytes. The window of c_other, which follows r_other, has more than five */
	"D r_ret\n ret\nE r_ret\nD c_next\n mov $9,%eax\nE c_next\n.cfi_startproc\n"
	" ret\n.cfi_endproc\n"
	"D r_other\n ret\nE r_other\nD c_other\n push %rbx\n .cfi_def_cfa_offset 16\n"
	" .cfi_offset %rbx,-16\n mov %rdi,%rbx\n mov $3,%eax\n add %rbx,%rax\n pop %rbx\n"
	" .cfi_def_cfa_offset 8\n ret\nE c_other\n"
	"far\n .p2align 4, 0xcc\n");
/* The address is read at run time. If d_fault + FAULT_AT were a constant in the code, the analysis
 * would take it for a jump target. */
static long (*volatile faults)(long *) = d_fault;
#define FAULT_AT	5	/* offset of the store from the start of d_fault */
#define FAULT_LEN	4

static volatile int stop;
static volatile sig_atomic_t nr_signals, nr_foreign;
static long max_rounds = INT32_MAX;
static struct { uint64_t from, to; } code[64];
static unsigned nr_code;

static int add_code(struct dl_phdr_info *info, size_t size, void *arg)
{
	for (int i = 0; i < info->dlpi_phnum && nr_code < 64; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		code[nr_code].from = info->dlpi_addr + p->p_vaddr;
		code[nr_code++].to = info->dlpi_addr + p->p_vaddr + p->p_memsz;
	}
	return 0;
}

/* The handler must see only program counters in the text of files. */
static void on_timer(int sig, siginfo_t *info, void *context)
{
	uint64_t pc = (uint64_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	unsigned i = 0;

	while (i < nr_code && (pc < code[i].from || pc >= code[i].to))
		i++;
	nr_foreign += i == nr_code;
	nr_signals++;
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	greg_t *pc = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	if (*pc != (greg_t)faults + FAULT_AT || info->si_addr != (void *)16)
		_exit(99);
	*pc += FAULT_LEN;
}

static void must(const char *what, long got, long want)
{
	if (got == want)
		return;
	fprintf(stderr, "%s: %ld, not %ld\n", what, got, want);
	abort();
}

static void *spin(void *rounds)
{
	long pid = getpid();

	for (long i = 0; i < max_rounds && !stop; i++) {
		must("s_loop", s_loop(10), 55);
		must("s_pushed", s_pushed(5), 6);
		must("s_call", s_call(s_ends), 8);
		must("s_system", s_system(), pid);
		must("s_jump", s_jump(4), 7);
		must("d_loop", d_loop(40), 0);
		must("d_tiny", d_tiny(), 0);
		must("d_beside", d_beside(5), -1042);
		must("d_calls", d_calls(3), -1021);
		must("d_fault", d_fault(NULL), 2);
		r_ret(1);
		must("c_next", c_next(), 9);
		r_other(2, 3);
		must("c_other", c_other(4), 7);
		s_return();
		++*(long *)rounds;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct itimerval timer = { { 0, 300 }, { 0, 300 } };
	pthread_t t[2];
	long rounds[2] = { 0 };
	char byte;

	struct sigaction sa = { .sa_sigaction = on_timer, .sa_flags = SA_SIGINFO | SA_RESTART };

	dl_iterate_phdr(add_code, NULL);
	sigaction(SIGPROF, &sa, NULL);
	sa.sa_sigaction = on_fault;
	sigaction(SIGSEGV, &sa, NULL);
	setitimer(ITIMER_PROF, &timer, NULL);
	if (argc > 1)
		max_rounds = atol(argv[1]);
	for (int i = 0; i < 2; i++)
		if (pthread_create(&t[i], NULL, spin, &rounds[i]))
			return 1;
	if (argc == 1 && read(0, &byte, 1) < 0)
		return 1;
	stop = argc == 1;
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	if (argc == 1 && (!rounds[0] || !rounds[1]))
		return 1;
	must("program counters outside of the program", nr_foreign, 0);
	puts("all results right");
	return 0;
}
