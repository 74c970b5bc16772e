/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * run_matrix builds this program in many ways. It compares the program's recorded calls with the
 * calls that callgrind counts. Only main and functions named v_* are compared. The output is the
 * same for all builds.
 */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEEP __attribute__((noinline))
#define opaque(x) ({ __typeof__(x) opaque_ = (x); __asm__ volatile("" : "+r"(opaque_)); opaque_; })

#if defined(__has_attribute)
#if __has_attribute(xray_never_instrument)
#define NEVER_XRAY __attribute__((xray_never_instrument))
#endif
#endif
#ifndef NEVER_XRAY
#define NEVER_XRAY
#endif
/* resolvers run before the dynamic linker has resolved the profiling hooks, so resolvers must not
 * call these hooks */
#define RESOLVER __attribute__((no_instrument_function, used)) NEVER_XRAY PATCHABLE_NONE
#define PATCHABLE_NONE __attribute__((patchable_function_entry(0, 0)))

static volatile long sink;
static long trace_of_order;

/* --- leaves of every shape, and a switch with calls --- */
static KEEP long v_empty(void) { __asm__ volatile(""); return 0; }
static KEEP void v_nothing(void) { __asm__ volatile(""); }
static KEEP long v_add(long a, long b) { return opaque(a) + b; }
static KEEP long v_branchy(long n)
{
	if (n < 0)
		return opaque(-n);
	if (n > 100)
		return opaque(n - 100);
	return n * 3;
}
static KEEP long v_loop_at_entry(long n)
{
	do {
		sink = n;
	} while (--n > 0);
	return n;
}
static KEEP long v_big_frame(long n)
{
	char buf[3000];

	memset(buf, (int)n, sizeof(buf));
	__asm__ volatile("" : : "r"(buf) : "memory");
	return buf[n % 3000];
}
static KEEP double v_double(double a, double b) { return a * b + 1; }
static KEEP long v_many(long a, long b, long c, long d, long e, long f, long g, long h)
{
	return opaque(a + b) * c + d - e + f * g + h;
}
static KEEP long v_switch(long n)
{
	switch (n % 8) {
	case 0: return v_add(n, 1);
	case 1: return opaque(n) ^ 7;
	case 2: v_nothing(); return 4;
	case 3: return v_branchy(n);
	case 4: return opaque(n) << 2;
	case 5: return v_empty() + 2;
	case 6: return opaque(n) - 9;
	default: return 1;
	}
}

/* --- recursion, alone and mutual --- */
static KEEP long v_fib(long n) { return n < 2 ? n : opaque(v_fib(n - 1)) + opaque(v_fib(n - 2)); }
static KEEP long v_odd(long n);
static KEEP long v_even(long n) { return n ? opaque(v_odd(n - 1)) ^ 1 : 2; }
static KEEP long v_odd(long n) { return n ? opaque(v_even(n - 1)) ^ 3 : 4; }
static KEEP long v_ackermann(long m, long n)
{
	if (!m)
		return n + 1;
	if (!n)
		return v_ackermann(m - 1, 1);
	return v_ackermann(m - 1, opaque(v_ackermann(m, n - 1)));
}

/* --- tail calls at -O2 --- */
static KEEP long v_tail_end(long n) { return opaque(n) + 11; }
static KEEP long v_tail_middle(long n) { sink = n; return v_tail_end(n + 1); }
static KEEP long v_tail_start(long n) { sink = n; return n & 1 ? v_tail_middle(n) : v_tail_end(n); }

/* --- function pointers, also as callbacks of libc --- */
typedef long fn(long);
static KEEP long v_by_pointer(fn *f, long n) { return opaque(f)(n) + 1; }
static KEEP int v_compare(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;

	return (x > y) - (x < y);
}
static KEEP long v_sort(long n)
{
	long v[32], i;

	for (i = 0; i < 32; i++)
		v[i] = (i * 17 + n) % 32;
	qsort(v, 32, sizeof(v[0]), v_compare);
	return v[5] * 100 + v[31];
}

/* --- cold parts --- */
static KEEP __attribute__((cold)) void v_complain(long n) { trace_of_order += n; sink = n * 2; }
static KEEP long v_with_cold_part(long n)
{
	long r = v_add(n, 5);

	if (__builtin_expect(n % 50 == 49, 0)) {
		v_complain(n);
		v_complain(r);
		r += v_branchy(n);
		trace_of_order ^= r;
	}
	return r;
}

/* --- inlined functions, and clones that constant propagation makes --- */
static inline long v_inlined(long n) { return opaque(n) * 5; }
static long v_small_static(long n) { return v_inlined(n) + 1; }
static KEEP long v_uses_inlined(long n) { return v_small_static(n) + v_inlined(n + 1); }
static __attribute__((noinline)) long v_cloned(long n, long by)
{
	long r = 0, i;

	for (i = 0; i < by; i++)
		r += v_add(n, i);
	return r;
}

/* --- setjmp, variable arguments --- */
static jmp_buf env;
static KEEP void v_jumper(long n) { longjmp(env, (int)n); }
static KEEP long v_set_jump(long n)
{
	int r = setjmp(env);

	if (!r)
		v_jumper(n + 1);
	return r;
}
static KEEP long v_variable(int n, ...)
{
	__builtin_va_list ap;
	long r = 0;

	__builtin_va_start(ap, n);
	while (n--)
		r += __builtin_va_arg(ap, long);
	__builtin_va_end(ap);
	return r;
}

/* --- IFUNC --- */
static KEEP long v_impl_one(long n) { return opaque(n) + 1; }
static KEEP long v_impl_two(long n) { return opaque(n) + 2; }
RESOLVER static fn *resolve_ifunc(void) { return sizeof(long) == 8 ? v_impl_two : v_impl_one; }
long chosen(long n) __attribute__((ifunc("resolve_ifunc")));
static KEEP long v_calls_ifunc(long n) { return chosen(n) + 1; }

/* --- constructors and destructors --- */
__attribute__((constructor)) static void v_construct(void) { trace_of_order = v_add(3, 4); }
__attribute__((destructor)) static void v_destruct(void) { sink = v_add(1, 1); }

/* --- no_instrument_function: run_matrix lists the build styles in which its effect shows --- */
__attribute__((no_instrument_function)) static KEEP long unhooked(long n) { return opaque(n) + 1; }

/* A global function in a section of its own, so that its address is far from other functions. */
long v_far(long n);
KEEP __attribute__((section(".text.far"))) long v_far(long n) { return opaque(v_add(n, 9)) + 1; }

static KEEP long v_round(long n)
{
	long r = 0;

	r += v_empty() + v_add(n, 2) + v_branchy(n - 3) + v_loop_at_entry(n % 7 + 1);
	v_nothing();
	r += v_big_frame(n) + (long)v_double(n, 0.5) + v_many(n, 2, 3, 4, 5, 6, 7, 8) + v_switch(n);
	r += v_even(n % 9) + v_tail_start(n) + v_by_pointer(v_branchy, n) +
	     v_by_pointer(v_tail_start, n);
	r += v_with_cold_part(n) + v_uses_inlined(n) + v_cloned(n, 3) + v_set_jump(n) +
	     v_variable(3, n, 2l, 3l);
	r += v_calls_ifunc(n) + unhooked(n) + v_far(n);
	if (n % 20 == 0)
		r += v_sort(n) + v_ackermann(2, 3);
	return r;
}

int main(void)
{
	long n, r = 0;

	for (n = 0; n < 200; n++)
		r = r * 31 + v_round(n);
	r += v_fib(15);
	printf("%ld %ld\n", r, trace_of_order);
	return 0;
}
