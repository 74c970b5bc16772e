/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program to attach to. Its main thread computes. Its other thread waits, and seems to wait in
 * the loader: its stack has return addresses into ld.so, and can't be unwound. The two threads
 * have different nice values. The agent's thread inherits the nice value of the borrowed thread,
 * so the value shows which thread was borrowed. Ends when its input ends.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define NICE 5

static void *in_loader;

/* The loader calls this function itself, before libc calls main(). */
static void note(int argc, char **argv, char **envp)
{
	in_loader = __builtin_return_address(0);
}
__attribute__((section(".preinit_array"), used))
static void (*const before)(int argc, char **argv, char **envp) = note;

/* A function without CFI. */
void *wait_without_cfi(void *arg);
__asm__(".text\n"
	"wait_without_cfi:\n"
	"	push %rbx\n"
	"	call wait_in_loader\n"
	"	pop %rbx\n"
	"	ret\n");

__attribute__((used)) void *wait_in_loader(void *arg)
{
	void *volatile words[32];

	setpriority(PRIO_PROCESS, 0, NICE);
	for (int i = 0; i < 32; i++)
		words[i] = in_loader;
	for (;;)
		poll(NULL, 0, -1);
	return words[0];
}

static double step(double x)
{
	for (int i = 0; i < 50000; i++)
		x = x * 1.0000001 + 1.0 / (x + i);
	return x;
}

int main(void)
{
	struct pollfd input = { 0, POLLIN, 0 };
	pthread_t t;
	double x = 1;

	if (pthread_create(&t, NULL, wait_without_cfi, NULL))
		return 1;
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	for (unsigned long n = 0; n % 1024 || poll(&input, 1, 0) <= 0; n++)
		x = step(x);
	return x <= 1;
}
