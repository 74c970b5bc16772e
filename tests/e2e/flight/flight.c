/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program to record with `patchbay flight`. It reads one command from each line of its input, and
 * answers each with a line.
 *
 *   busy N      N new threads call step0() to step9() in turn without a pause
 *   wait        a new thread enters wait_outer() and wait_inner(), and stays there. The answer
 *               comes when the thread is there
 *   slow MS N   calls slow(), which takes MS milliseconds, N times
 *   left MS     calls left(), which takes MS milliseconds, and is left by a jump
 *   passed MS   calls passed(), which takes MS milliseconds, and ends in a jump to mark()
 *   mark        calls mark()
 *   told MS     calls told(), which writes the line "in told" and then takes MS milliseconds
 *   unseen      calls unseen(), whose exit can't be hooked
 *   crash       calls crash_outer(), which calls crash_inner(), which writes to address 0
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))
#define STEP(n) NOINLINE void step##n(void) { __asm__ volatile(""); }

STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7) STEP(8) STEP(9)

static int never[2], entered[2];
static jmp_buf out;

static void pause_ms(int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&ts, NULL);
}

NOINLINE void mark(void)
{
	__asm__ volatile("");
}

NOINLINE void slow(int ms)
{
	pause_ms(ms);
	step0();
	__asm__ volatile("");
}

NOINLINE void told(int ms)
{
	puts("in told");
	fflush(stdout);
	pause_ms(ms);
	__asm__ volatile("");
}

/* This function writes to its return slot, so the analysis can't know where it returns, and doesn't
 * hook its exit. */
void unseen(void);
__asm__(".text\n"
	".globl unseen\n"
	".type unseen, @function\n"
	"unseen:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	mov (%rsp), %rax\n"
	"	mov %rax, (%rsp)\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size unseen, .-unseen\n");

NOINLINE void left(int ms)
{
	pause_ms(ms);
	longjmp(out, 1);
}

NOINLINE __attribute__((optimize("O2"))) void passed(int ms)
{
	pause_ms(ms);
	mark();
}

NOINLINE void crash_inner(volatile int *p)
{
	*p = 1;
}

NOINLINE void crash_outer(void)
{
	crash_inner(NULL);
	__asm__ volatile("");
}

NOINLINE void wait_inner(void)
{
	char c = 0;

	if (write(entered[1], &c, 1) != 1 || read(never[0], &c, 1) < 0)
		abort();
	__asm__ volatile("");
}

NOINLINE void wait_outer(void)
{
	wait_inner();
	__asm__ volatile("");
}

NOINLINE void *wait_thread(void *arg)
{
	wait_outer();
	__asm__ volatile("");
	return arg;
}

NOINLINE void *busy_thread(void *arg)
{
	pthread_setname_np(pthread_self(), "busy");
	for (;;) {
		step0(); step1(); step2(); step3(); step4();
		step5(); step6(); step7(); step8(); step9();
	}
	return arg;
}

static void start(void *(*routine)(void *), int n)
{
	pthread_t t;

	while (n--)
		if (pthread_create(&t, NULL, routine, NULL))
			abort();
}

static void start_waiting(void)
{
	char c;

	start(wait_thread, 1);
	if (read(entered[0], &c, 1) != 1)
		abort();
}

static void obey(const char *line)
{
	int a = 0, b = 1;
	char word[16] = "";

	sscanf(line, "%15s %d %d", word, &a, &b);
	if (!strcmp(word, "busy"))
		start(busy_thread, a);
	else if (!strcmp(word, "wait"))
		start_waiting();
	else if (!strcmp(word, "mark"))
		mark();
	else if (!strcmp(word, "left") && !setjmp(out))
		left(a);
	else if (!strcmp(word, "passed"))
		passed(a);
	else if (!strcmp(word, "told"))
		told(a);
	else if (!strcmp(word, "unseen"))
		unseen();
	else if (!strcmp(word, "crash"))
		crash_outer();
	while (!strcmp(word, "slow") && b-- > 0)
		slow(a);
}

int main(void)
{
	char line[64];

	if (pipe(never) || pipe(entered))
		return 1;
	printf("pid %d\n", (int)getpid());
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		obey(line);
		printf("ok\n");
		fflush(stdout);
	}
	return 0;
}
