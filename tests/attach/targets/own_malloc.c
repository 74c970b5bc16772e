/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A program whose allocator must not be entered again while a thread is in it, as most allocators.
 * The allocator ends the program if that happens. Compiled with -DALLOCATOR, this file is the
 * allocator, for a library. Compiled with -DPROGRAM, it is the program. With both, the executable
 * has its own allocator. The program allocates and frees until the file that its argument names
 * exists no longer. -fno-builtin: otherwise the compiler makes calloc() call itself.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define INITIAL __attribute__((tls_model("initial-exec")))

#ifdef ALLOCATOR
struct block {
	size_t size;
	struct block *next;
};

static __thread int inside INITIAL;
static __thread struct block *kept INITIAL;
static __thread char *rest INITIAL;
static __thread size_t nr_rest INITIAL;

static void enter(void)
{
	static const char text[] = "the allocator was entered again\n";

	if (inside++) {
		write(2, text, sizeof(text) - 1);
		_exit(3);
	}
	for (volatile int i = 0; i < 300; i++)
		;
}

static void *new_block(size_t size)
{
	size_t all = size + sizeof(struct block) + 64 & ~(size_t)15;
	struct block *b;

	if (all > nr_rest) {
		nr_rest = all + (1 << 20);
		rest = mmap(NULL, nr_rest, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
		if (rest == MAP_FAILED)
			_exit(4);
	}
	b = (struct block *)rest;
	rest += all;
	nr_rest -= all;
	b->size = size;
	return b + 1;
}

void *malloc(size_t size)
{
	void *p;

	enter();
	if (kept && kept->size >= size) {
		p = kept + 1;
		kept = kept->next;
	} else {
		p = new_block(size);
	}
	inside--;
	return p;
}

void free(void *p)
{
	struct block *b = (struct block *)p - 1;

	if (!p)
		return;
	enter();
	b->next = kept;
	kept = b;
	inside--;
}

void *calloc(size_t n, size_t size)
{
	void *p = malloc(n * size);

	return memset(p, 0, n * size);
}

void *realloc(void *p, size_t size)
{
	size_t old = p ? ((struct block *)p - 1)->size : 0;
	void *q = malloc(size);

	if (p)
		memcpy(q, p, old < size ? old : size);
	free(p);
	return q;
}

int posix_memalign(void **p, size_t align, size_t size)
{
	uintptr_t at = (uintptr_t)malloc(size + align + sizeof(struct block));
	struct block *b = (struct block *)(at + sizeof(*b) + align - 1 & ~(align - 1)) - 1;

	b->size = size;
	*p = b + 1;
	return 0;
}

void *memalign(size_t align, size_t size)
{
	void *p;

	posix_memalign(&p, align, size);
	return p;
}

void *aligned_alloc(size_t align, size_t size)
{
	return memalign(align, size);
}
#endif

#ifdef PROGRAM
int main(int argc, char **argv)
{
	volatile double x = 1;

	printf("ready\n");
	fflush(stdout);
	for (unsigned long n = 0; n % 1024 || !access(argv[1], F_OK); n++) {
		void *volatile p = malloc(100);

		free(p);
		for (int i = 0; i < 100; i++)
			x = x * 1.0000001 + 1.0 / i;
	}
	printf("end\n");
	return 0;
}
#endif
