/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs in functions that have no room for a jmp rel32 (all s_*), in two threads
 * and under a timer, and checks what they return, until a byte is read (with
 * an argument: so many rounds). test_module_short.py traces it, and changes
 * the text meanwhile.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

long s_loop(long n), s_pushed(long n), s_call(long (*f)(void)), s_return(void), s_jump(long n);
long s_system(void), s_ends(void);

__asm__(".macro F name\n .p2align 4, 0xcc\n .globl \\name\n .type \\name,@function\n"
	"\\name: .cfi_startproc\n.endm\n"
	".macro E name\n .cfi_endproc\n .size \\name, .-\\name\n.endm\n"
	".text\n"
	/* the loop begins behind two bytes */
	"F s_loop\n xor %eax,%eax\n1: add %rdi,%rax\n dec %rdi\n jne 1b\n ret\nE s_loop\n"
	/* behind four */
	"F s_pushed\n push %rbx\n .cfi_def_cfa_offset 16\n .cfi_offset %rbx,-16\n mov %rdi,%rbx\n"
	"1: dec %rdi\n jg 1b\n lea 1(%rbx),%rax\n pop %rbx\n .cfi_def_cfa_offset 8\n ret\nE s_pushed\n"
	/* what it calls returns behind two */
	"F s_call\n call *%rdi\n inc %rax\n ret\nE s_call\n"
	"F s_system\n xor %eax,%eax\n mov $39,%al\n syscall\n ret\nE s_system\n"
	/* three bytes of padding behind it */
	"F s_return\n ret\nE s_return\n .byte 0xcc,0xcc,0xcc\n"
	/* two bytes, and the next function at once */
	".globl s_jump\n.type s_jump,@function\ns_jump: .cfi_startproc\n jmp s_far\n .cfi_endproc\n"
	" .size s_jump, .-s_jump\n"
	".globl s_ends\n.type s_ends,@function\ns_ends: .cfi_startproc\n mov $7,%eax\n ret\n"
	" .cfi_endproc\n .size s_ends, .-s_ends\n"
	"F s_far\n lea 3(%rdi),%rax\n ret\nE s_far\n"
	/* room for all of them */
	" .fill 32,1,0xcc\n .p2align 4, 0xcc\n");

static volatile int stop;
static volatile sig_atomic_t nr_signals;
static long max_rounds = INT32_MAX;

static void on_timer(int sig)
{
	nr_signals++;
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

	signal(SIGPROF, on_timer);
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
	puts("all results right");
	return 0;
}
