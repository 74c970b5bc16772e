/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * run_attach attaches eBPF programs to this program. Usage: target THREADS CALLS [wait]. With
 * `wait`, it begins when its input ends. run_attach knows how often this program calls each
 * function, and what this program prints.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone))

static int calls;

KEEP int add(int a, int b)
{
	__asm__ volatile("" : "+r"(a));
	return a + b;
}

KEEP long nine(long a, long b, long c, long d, long e, long f, long g, long h, long i)
{
	__asm__ volatile("" : "+r"(a));
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i;
}

KEEP double half(double x)
{
	__asm__ volatile("" : "+x"(x));
	return x * 0.5 + 1;
}

/* an eBPF program replaces the result by 5 */
KEEP int status(void)
{
	int result = 4;

	__asm__ volatile("" : "+r"(result));
	return result;
}

/* Returns a + 1 by a ret that pops. An eBPF program replaces the result by 40. */
int popped(int a);
__asm__(".globl popped\n\t.type popped, @function\npopped:\n\t.cfi_startproc\n\t"
	"lea 1(%rdi), %eax\n\tmov %eax, %edx\n\tmov %edx, %eax\n\tret $0\n\t"
	".cfi_endproc\n\t.size popped, . - popped");

/* if a is 3, an eBPF program returns a value in place of this function */
KEEP int forbidden(int a)
{
	__asm__ volatile("" : "+r"(a));
	if (a == 3)
		abort();
	return a * 2;
}

KEEP int second(int a)
{
	__asm__ volatile("" : "+r"(a));
	return add(a, 1) * 2;
}

/* the function ends with a tail call */
KEEP int first(int a)
{
	__asm__ volatile("" : "+r"(a));
	return second(a + 1);
}

KEEP int deep(int n)
{
	int below = n ? deep(n - 1) : -1;

	__asm__ volatile("" : "+r"(below));
	return below + 1;
}

static volatile sig_atomic_t handled;

KEEP void on_signal(int sig)
{
	handled += add(sig, 0) == sig;
}

static void *work(void *arg)
{
	long sum = 0;

	for (int i = 0; i < calls; i++)
		sum += add(i, 1);
	return (void *)sum;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 1, child_status;
	pthread_t t[16];
	long sum = 0;
	void *one;

	calls = argc > 2 ? atoi(argv[2]) : 10;
	while (argc > 3 && getchar() != EOF)
		;
	for (int i = 0; i < threads && i < 16; i++)
		if (pthread_create(&t[i], NULL, work, NULL))
			return 2;
	for (int i = 0; i < threads && i < 16; i++) {
		pthread_join(t[i], &one);
		sum += (long)one;
	}
	printf("sum %ld\n", sum);
	printf("nine %ld\n", nine(1, 2, 3, 4, 5, 6, 7, 8, 9));
	printf("half %.3f\n", half(half(3.0)));
	printf("forbidden %d %d\n", forbidden(1), forbidden(3));
	printf("first %d\n", first(20));
	printf("deep %d\n", deep(500));
	signal(SIGUSR1, on_signal);
	for (int i = 0; i < 50; i++)
		raise(SIGUSR1);
	printf("handled %d\n", (int)handled);
	fflush(stdout);
	pid_t child = fork();
	if (!child)
		_exit(add(3, 4));
	waitpid(child, &child_status, 0);
	printf("child %d\n", WEXITSTATUS(child_status));
	printf("popped %d\n", popped(1));
	return status();
}
