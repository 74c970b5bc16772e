/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For exits_step: a short program with all kinds of exits that compilers emit. */
#include <alloca.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline, noclone))

typedef long (*op)(long);
static jmp_buf again;
static volatile long sink;

NOINLINE static long leaf(long n)
{
	return n * 3 + 1;
}

NOINLINE static long tail(long n)
{
	sink = n;
	return leaf(n + 2);
}

NOINLINE static long either(long n)
{
	if (n & 1)
		return tail(n);
	sink = n;
	return n;
}

NOINLINE static long through(op f, long n)
{
	sink += n;
	return f(n);
}

NOINLINE static long dense(long n)
{
	switch (n) {
	case 0: return sink;
	case 1: return leaf(1) + 1;
	case 2: sink = 4; return 9;
	case 3: return tail(3);
	case 4: sink = 1; break;
	case 5: return strtol("12", NULL, 10) + sink;
	case 6: return n + sink;
	case 7: abort();
	}
	return either(n);
}

NOINLINE static long interpret(const unsigned char *code)
{
	static const void *const labels[] = { &&add, &&mul, &&call, &&done };
	long acc = 0;

	goto *labels[*code++];
add:
	acc += 5;
	goto *labels[*code++];
mul:
	acc *= 3;
	goto *labels[*code++];
call:
	acc = dense(acc % 7);
	goto *labels[*code++];
done:
	return acc;
}

__attribute__((cold)) NOINLINE static long rare(long n)
{
	printf("rare %ld\n", n);
	return -n;
}

NOINLINE static long has_cold(long n)
{
	char text[32];

	if (__builtin_expect(n > 100, 0)) {
		snprintf(text, sizeof(text), "%ld", n);
		sink += (long)strlen(text);
		if (n > 110)
			return rare(n);
	}
	sink += n;
	return leaf(n) + sink;
}

NOINLINE static long sum(unsigned n, ...)
{
	va_list ap;
	long total = 0;

	va_start(ap, n);
	while (n--)
		total += va_arg(ap, long);
	va_end(ap);
	return total;
}

NOINLINE static long on_stack(unsigned n)
{
	char *p = alloca(n);

	memset(p, 7, n);
	return sum(9, 1L, 2L, 3L, 4L, 5L, 6L, 7L, (long)p[0], (long)p[n - 1]);
}

NOINLINE static long fib(long n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

NOINLINE static void jumps(long n)
{
	if (n > 0)
		jumps(n - 1);
	else if (!n)
		longjmp(again, 1);
	sink++;
}

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

int main(void)
{
	static const unsigned char code[] = { 0, 1, 2, 0, 0, 2, 1, 2, 0, 2, 3 };
	static const op ops[] = { leaf, tail, either, dense };
	int v[64];
	char *text, *copy;

	for (long i = 0; i < 7; i++)
		sink += dense(i) + through(ops[i % 4], i) + either(i) + has_cold(i * 20);
	sink += interpret(code) + on_stack(100) + on_stack(3000) + fib(10);
	if (!setjmp(again))
		jumps(5);
	for (unsigned i = 0; i < 64; i++)
		v[i] = (int)(i * 7919 % 101);
	qsort(v, 64, sizeof(v[0]), compare);
	text = strdup("a line, and another");
	copy = malloc(5000);
	memset(copy, 'x', 4999);
	copy[4999] = 0;
	memcpy(copy + 17, text, strlen(text));
	printf("%s %zu %d %f %ld\n", strstr(copy, "line") ? "found" : "lost", strlen(copy), v[63],
	       1.5, sink);
	free(copy);
	free(text);
	return 0;
}
