/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The program has restartable sequences (rseq), and interrupts them: it single-steps, which
 * interrupts a sequence at its first instruction, and it makes the last instruction fault. Both
 * times the kernel aborts the sequence, so it doesn't complete. If a tracer has moved the
 * instruction, or the one before the sequence, the kernel doesn't know that the thread is in the
 * sequence, and the sequence completes. If a tracer has overwritten the signature before the abort
 * handler, the kernel kills the program.
 * @markers 10 main/one_round
 * @slow none bpf bpf-returns
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/rseq.h>
#include "../hostile.h"

/* Each function counts *v up in a sequence, and returns 0, or 1 if the sequence was aborted. `cs`
 * is the sequence's descriptor. The signature is the end of a nop that is never executed. */
#define FUNCTION(name, code) \
	__asm__(".text; .p2align 4; .type " #name ",@function\n" #name ": .cfi_startproc\n" \
		code "\n .byte 0x0f, 0x1f, 0x05; .long 0x53053053\n" \
		"3: mov $1, %eax; ret; .cfi_endproc; .size " #name ", . - " #name "\n" \
		".pushsection __rseq_cs, \"aw\"; .balign 32\n" \
		"cs_" #name ": .long 0, 0; .quad 1b, 2b - 1b, 3b; .popsection\n"); \
	extern struct rseq_cs cs_##name; \
	int name(struct rseq *rs, volatile long *v, struct rseq_cs *cs);
#define SEQUENCE "1: mov (%rsi), %rcx; inc %rcx; mov %rcx, (%rsi); 2:\n"

/* A sequence near the entry. */
FUNCTION(near_entry, "mov %rdx, 8(%rdi)\n" SEQUENCE "xor %eax, %eax; nopl 0(%rax); ret")
/* A sequence before the return. */
FUNCTION(before_return, "xor %eax, %eax; nopl 0(%rax); mov %rdx, 8(%rdi)\n" SEQUENCE "ret")
/* A branch leads to the return, so a jump in its place must go over the bytes after it. */
FUNCTION(jumped_over, "xor %eax, %eax; nopl 0(%rax); test %rsi, %rsi; jz 4f\n"
	 "mov %rdx, 8(%rdi)\n" SEQUENCE "4: ret")

typedef int function(struct rseq *rs, volatile long *v, struct rseq_cs *cs);

/* Calls fn with the trap flag set. */
int stepped(struct rseq *rs, volatile long *v, struct rseq_cs *cs, function *fn);
__asm__(".text; .p2align 4; .type stepped,@function\nstepped: .cfi_startproc\n"
	"sub $8, %rsp; .cfi_adjust_cfa_offset 8\n"
	"pushfq; orq $0x100, (%rsp); popfq\n"
	"call *%rcx\n"
	"pushfq; andq $~0x100, (%rsp); popfq\n"
	"add $8, %rsp; .cfi_adjust_cfa_offset -8; ret\n"
	".cfi_endproc; .size stepped, . - stepped\n");

static const struct {
	function *fn;
	struct rseq_cs *cs;
} functions[] = {
	{ near_entry, &cs_near_entry }, { before_return, &cs_before_return },
	{ jumped_over, &cs_jumped_over },
};

static volatile long *v;
static volatile long steps, faults;

static void on_trap(int sig)
{
	steps++;
}

/* If the sequence isn't aborted, the second fault lets it complete. */
static void on_fault(int sig)
{
	if (faults++)
		mprotect((void *)v, 4096, PROT_READ | PROT_WRITE);
}

static KEEP int faulting(struct rseq *rs, int i)
{
	int r;

	check(!mprotect((void *)v, 4096, PROT_READ));
	faults = 0;
	r = functions[i].fn(rs, &v[i], functions[i].cs);
	check(!mprotect((void *)v, 4096, PROT_READ | PROT_WRITE));
	return r;
}

static KEEP void one_round(int n, struct rseq *rs)
{
	for (int i = 0; i < 3; i++) {
		long before = v[i];

		if (__rseq_size) {
			check_eq(stepped(rs, &v[i], functions[i].cs, functions[i].fn), 1);
			check_eq(faulting(rs, i), 1);
		}
		check_eq(v[i], before);
		/* other interruptions may abort the sequence, too */
		while (functions[i].fn(rs, &v[i], functions[i].cs))
			;
		check_eq(v[i], before + 1);
	}
	marker_begin(n);
}

int main(void)
{
	struct rseq *rs = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
	static struct rseq none;

	v = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(v != MAP_FAILED);
	check(signal(SIGTRAP, on_trap) != SIG_ERR && signal(SIGSEGV, on_fault) != SIG_ERR);
	for (int n = 0; n < 10; n++)
		one_round(n, __rseq_size ? rs : &none);
	printf("%ld %ld %ld\n", v[0], v[1], v[2]);
	return 0;
}
