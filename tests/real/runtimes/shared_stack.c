/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Coroutines that take turns on one stack. At a switch, the used part of the stack is copied to
 * other memory. Before the coroutine continues, its part is copied back. So the return slots
 * suddenly hold return addresses of other calls. The second part of the program calls an assembly
 * function that pops its arguments off the stack.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEEP __attribute__((noinline, noclone))
#define SIZE (64 << 10)

struct coroutine {
	char *sp, *kept;
	size_t size;
	int id, over;
	long result;
};

void change_stack(char **from, char *to);
__asm__(".text\n"
	".type change_stack, @function\n"
	"change_stack:\n"
	".cfi_startproc\n"
	"	push %rbp\n	.cfi_adjust_cfa_offset 8\n"
	"	push %rbx\n	.cfi_adjust_cfa_offset 8\n"
	"	push %r12\n	.cfi_adjust_cfa_offset 8\n"
	"	push %r13\n	.cfi_adjust_cfa_offset 8\n"
	"	push %r14\n	.cfi_adjust_cfa_offset 8\n"
	"	push %r15\n	.cfi_adjust_cfa_offset 8\n"
	"	mov %rsp, (%rdi)\n"
	"	mov %rsi, %rsp\n"
	"	pop %r15\n	.cfi_adjust_cfa_offset -8\n"
	"	pop %r14\n	.cfi_adjust_cfa_offset -8\n"
	"	pop %r13\n	.cfi_adjust_cfa_offset -8\n"
	"	pop %r12\n	.cfi_adjust_cfa_offset -8\n"
	"	pop %rbx\n	.cfi_adjust_cfa_offset -8\n"
	"	pop %rbp\n	.cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	".cfi_endproc\n"
	".size change_stack, . - change_stack\n");

static char stack[SIZE] __attribute__((aligned(64)));
static char *main_sp;
static struct coroutine *on_stack, *running;

static KEEP long leaf(long x)
{
	__asm__ volatile("" : "+r"(x));
	return 3 * x + 1;
}

static KEEP void pause_here(void) { change_stack(&running->sp, main_sp); }

static KEEP long step(int id, int depth)
{
	long sum = leaf(id + depth);

	if (depth)
		sum += step(id, depth - 1);
	pause_here();
	return sum + leaf(depth);
}

static void body(void)
{
	running->result = step(running->id, running->id % 11 + 1);
	running->over = 1;
	pause_here();
	abort();
}

static KEEP void go_on(struct coroutine *c)
{
	struct coroutine *old = on_stack;

	if (old && old != c && !old->over) {
		old->size = (size_t)(stack + SIZE - old->sp);
		old->kept = realloc(old->kept, old->size);
		memcpy(old->kept, old->sp, old->size);
	}
	if (!c->sp) {
		/* A new coroutine's stack has, in order of rising addresses, six registers, the
		 * address of body(), and a return address that nothing uses. */
		uint64_t *top = (uint64_t *)(stack + SIZE - 64);

		*--top = 0;
		*--top = (uint64_t)body;
		c->sp = memset(top - 6, 0, 48);
	} else if (old != c) {
		memcpy(c->sp, c->kept, c->size);
	}
	on_stack = running = c;
	change_stack(&main_sp, c->sp);
}

long add_and_pop(void);
__asm__(".text\n"
	".globl add_and_pop\n"
	".type add_and_pop, @function\n"
	"add_and_pop:\n"
	".cfi_startproc\n"
	"	mov 8(%rsp), %rax\n"
	"	add 16(%rsp), %rax\n"
	"	nop\n"
	"	ret $16\n"
	".cfi_endproc\n"
	".size add_and_pop, . - add_and_pop\n");

static KEEP long add(long a, long b)
{
	long sum;

	__asm__ volatile("sub $128, %%rsp; push %1; push %2; call add_and_pop; add $128, %%rsp"
			 : "=&a"(sum) : "r"(a), "r"(b) : "memory", "cc");
	return sum;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 50, left = n;
	struct coroutine *all = calloc((size_t)n, sizeof(*all));
	long sum = 0;

	for (int i = 0; i < n; i++)
		all[i].id = i;
	while (left)
		for (int i = 0; i < n; i++) {
			if (all[i].over)
				continue;
			go_on(&all[i]);
			left -= all[i].over;
			sum += all[i].over ? all[i].result : 0;
		}
	printf("coroutines %ld\n", sum);
	sum = 0;
	for (int i = 0; i < 100 * n; i++)
		sum += add(i, leaf(i));
	printf("popped %ld\n", sum);
	return 0;
}
