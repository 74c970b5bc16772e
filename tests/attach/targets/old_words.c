/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Waits or computes in a function whose frame holds words that look like calls: return addresses in
 * the loader and in malloc(), as earlier calls may have left them. The argument is "futex", "poll"
 * or "computes". SIGUSR1 ends the program.
 */
#include <link.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#define CALL	0xe8		/* the opcode of a direct call */
#define CALL_SIZE 5

static volatile sig_atomic_t signals;

static void count(int sig)
{
	signals++;
}

/* Returns the address after the first instruction in this range that looks like a call. */
static uint64_t call_in(const uint8_t *code, size_t size)
{
	for (size_t i = 0; i + CALL_SIZE < size; i++)
		if (code[i] == CALL)
			return (uint64_t)(code + i + CALL_SIZE);
	exit(2);
}

static uint64_t call_of_loader(void)
{
	const uint8_t *base = (const uint8_t *)getauxval(AT_BASE);
	const Elf64_Ehdr *eh = (const Elf64_Ehdr *)base;
	const Elf64_Phdr *ph = (const Elf64_Phdr *)(base + eh->e_phoff);

	while (ph->p_type != PT_LOAD || !(ph->p_flags & PF_X))
		ph++;
	return call_in(base + ph->p_vaddr, ph->p_memsz);
}

static int is_done(const char *kind)
{
	static sem_t sem;

	if (!strcmp(kind, "futex"))
		sem_wait(&sem);
	else if (!strcmp(kind, "poll"))
		poll(NULL, 0, -1);
	return signals;
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = count };
	volatile uint64_t words[32];

	for (int i = 0; i < 32; i += 2) {
		words[i] = call_of_loader();
		words[i + 1] = call_in((const uint8_t *)malloc, 256);
	}
	sigaction(SIGUSR1, &sa, NULL);
	printf("ready\n");
	fflush(stdout);
	while (!is_done(argv[1]))
		;
	printf("%s\n", words[0] ? "signal" : "no words");
	return 0;
}
