/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The program executes instructions that always trap. Its handlers decode the instruction at the
 * interrupted PC and step over it, as emulators, sanitizers and runtimes do. The instructions are
 * the first or the second of a function, or just before its return. There a patch could displace
 * them.
 * The PC of int1 is the one after it, but some hypervisors report the one of int1 itself, always or
 * now and then. So the handler accepts both, and the output says for each function which one was
 * reported for more than half of the traps: bare and traced, it must be the same one.
 * @markers 20 main/one_round
 * @slow none bpf bpf-returns
 */
#include <signal.h>
#include <ucontext.h>
#include "../hostile.h"

#define ROUNDS 20
#define EITHER 2		/* for `past` */

/* Each instruction is in three functions of 8 bytes and more: see FUNCTIONS. */
#define TRAPS(X) \
	X(ud2,   SIGILL,  0, "0x0f,0x0b") \
	X(ud1,   SIGILL,  0, "0x67,0x0f,0xb9,0x40,0x07") \
	X(int3,  SIGTRAP, 1, "0xcc") \
	X(int1,  SIGTRAP, EITHER, "0xf1") \
	X(int29, SIGSEGV, 0, "0xcd,0x29") \
	X(hlt,   SIGSEGV, 0, "0xf4") \
	X(in,    SIGSEGV, 0, "0xe4,0x60") \
	X(cli,   SIGSEGV, 0, "0xfa") \
	X(rdmsr, SIGSEGV, 0, "0x0f,0x32")

#define FUNCTION(name, before, trap, after) \
	".p2align 4; .globl " name "; .type " name ",@function\n" name ": .cfi_startproc\n" \
	before "\n .byte " trap "\n" after "\n .cfi_endproc; .size " name ", . - " name "\n"
#define FUNCTIONS(name, sig, past, bytes) \
	__asm__(".text\n" \
		FUNCTION("first_" #name, "", bytes, "lea 1(%rdi), %rax; nopl 0(%rax); ret") \
		FUNCTION("second_" #name, "lea 1(%rdi), %rax", bytes, "nopl 0(%rax); ret") \
		FUNCTION("last_" #name, "lea 1(%rdi), %rax; test %rdi, %rdi; jz 1f\n" \
			 "call nothing\n1:", bytes, "ret")); \
	long first_##name(long), second_##name(long), last_##name(long);

/* Changes no register. */
__asm__(".text; .globl nothing; .type nothing,@function; nothing: .cfi_startproc\n nopl 0(%rax)\n"
	" ret; .cfi_endproc; .size nothing, . - nothing\n");
TRAPS(FUNCTIONS)

static const struct trap {
	const char *name;
	int sig, past;		/* past: the PC is the one after the instruction, or EITHER */
	unsigned char len, bytes[5];
	long (*fn[3])(long);
} traps[] = {
#define TRAP(name, sig, past, bytes) { #name, sig, past, sizeof((char[]){ BYTES_##name }), \
	{ BYTES_##name }, { first_##name, second_##name, last_##name } },
#define BYTES_ud2	0x0f, 0x0b
#define BYTES_ud1	0x67, 0x0f, 0xb9, 0x40, 0x07
#define BYTES_int3	0xcc
#define BYTES_int1	0xf1
#define BYTES_int29	0xcd, 0x29
#define BYTES_hlt	0xf4
#define BYTES_in	0xe4, 0x60
#define BYTES_cli	0xfa
#define BYTES_rdmsr	0x0f, 0x32
	TRAPS(TRAP)
};
#define NR_TRAPS (sizeof(traps) / sizeof(*traps))

static volatile long seen[NR_TRAPS];
static volatile long on_it[NR_TRAPS][3];	/* traps whose PC was the instruction's own */
static const struct trap *volatile expected;
static volatile int position;			/* the function: the index in `fn` */

static void on_trap(int sig, siginfo_t *si, void *ucv)
{
	ucontext_t *uc = ucv;
	greg_t *pc = &uc->uc_mcontext.gregs[REG_RIP];
	const unsigned char *at = (const unsigned char *)*pc;
	const struct trap *t = expected;

	if (!t || sig != t->sig)
		die("signal %d, not expected", sig);
	if (t->past == EITHER && !memcmp(at, t->bytes, t->len))
		on_it[t - traps][position]++;
	else if (t->past)
		at -= t->len;
	if (memcmp(at, t->bytes, t->len))
		die("%s: the instruction is %02x %02x %02x", t->name, at[0], at[1], at[2]);
	*pc = (greg_t)(at + t->len);
	seen[t - traps]++;
}

static KEEP void one_round(int n)
{
	for (unsigned i = 0; i < NR_TRAPS; i++) {
		expected = &traps[i];
		for (position = 0; position < 3; position++)
			check_eq(traps[i].fn[position](n), n + 1);
	}
	expected = NULL;
	marker_begin(n);
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };

	check(!sigaction(SIGILL, &sa, NULL) && !sigaction(SIGTRAP, &sa, NULL) &&
	      !sigaction(SIGSEGV, &sa, NULL));
	for (int n = 0; n < ROUNDS; n++)
		one_round(n);
	for (unsigned i = 0; i < NR_TRAPS; i++) {
		printf("%s: %ld", traps[i].name, seen[i]);
		for (int k = 0; k < 3 && traps[i].past == EITHER; k++)
			printf(" %s", on_it[i][k] > ROUNDS / 2 ? "on" : "past");
		printf("\n");
	}
	return 0;
}
