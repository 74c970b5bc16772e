/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* For spin.c and storm.c: functions of many shapes. one_round() calls them and checks all
 * results. */
#ifndef TORTURE_SHAPES_H
#define TORTURE_SHAPES_H
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone))
#define opaque(x) ({ __typeof__(x) opaque_ = (x); __asm__ volatile("" : "+r"(opaque_)); opaque_; })
#define die(...) do { fprintf(stderr, __VA_ARGS__); fputc('\n', stderr); _exit(99); } while (0)
/* An INLINE function becomes a part of its callers, so no tracer sees calls of it. */
#define INLINE static inline __attribute__((always_inline))

INLINE void expect_equal(const char *what, const char *text, long got, long want)
{
	if (got != want)
		die("%s: %s is %ld, not %ld", what, text, got, want);
}
#define expect(what, got, want) expect_equal((what), #got, (long)(got), (long)(want))

static long table[8] = { 3, 1, 4, 1, 5, 9, 2, 6 };

/* --- functions whose first instructions need care when they are moved --- */
#define ASM_FN(name, body) \
	long name(long x); \
	__asm__(".text; .p2align 4; .globl " #name "; .type " #name ",@function\n" \
		#name ": .cfi_startproc\n" body "\n .cfi_endproc; .size " #name ", . - " #name "\n")
ASM_FN(f_rip_load, "mov spin_word(%rip), %rax; add %rdi, %rax; ret");
ASM_FN(f_rip_lea, "lea spin_word(%rip), %rax; mov (%rax), %rax; sub %rdi, %rax; ret");
ASM_FN(f_rip_cmp, "cmpl $77, spin_word(%rip); sete %al; movzbl %al, %eax; add %rdi, %rax; ret");
ASM_FN(f_rip_store_imm, "movl $5, spin_scratch(%rip); lea 1(%rdi), %rax; ret");
ASM_FN(f_jcc_first, "test %rdi, %rdi; js 1f; lea 7(%rdi), %rax; ret; nop; nop; "
	"1: mov %rdi, %rax; neg %rax; ret");
ASM_FN(f_jcc_near, "test $1, %dil; .byte 0x0f, 0x85; .long 2f - . - 4; mov %rdi, %rax; ret; "
	".p2align 5; 2: lea 1(%rdi), %rax; ret");
ASM_FN(f_jmp_first, "jmp 3f; nop; nop; nop; .p2align 5; 3: lea 9(%rdi), %rax; ret");
ASM_FN(f_jmp_near, ".byte 0xe9; .long 4f - . - 4; .p2align 6; 4: lea 10(%rdi), %rax; ret");
ASM_FN(f_endbr, "endbr64; lea 11(%rdi), %rax; nop; nop; ret");
ASM_FN(f_push, "push %rbx; .cfi_adjust_cfa_offset 8; mov %rdi, %rbx; lea 1(%rbx,%rbx), %rax; "
	"pop %rbx; .cfi_adjust_cfa_offset -8; ret");
ASM_FN(f_sub_rsp, "sub $24, %rsp; .cfi_adjust_cfa_offset 24; mov %rdi, 8(%rsp); "
	"mov 8(%rsp), %rax; add $24, %rsp; .cfi_adjust_cfa_offset -24; ret");
ASM_FN(f_movabs, "movabs $0x123456789abc, %rax; add %rdi, %rax; ret");
ASM_FN(f_one_by_one, "nop; nop; nop; nop; nop; lea 13(%rdi), %rax; ret");
ASM_FN(f_long_nop, "nopw 0(%rax,%rax,1); lea 14(%rdi), %rax; ret");
ASM_FN(f_flags, "xor %eax, %eax; cmp $100, %rdi; adc $0, %rax; ret");
ASM_FN(f_rep, "mov %rdi, %rax; rep ret; nop; nop");
ASM_FN(f_loop_inside, "mov $3, %ecx; xor %eax, %eax; 5: add %rdi, %rax; dec %ecx; jnz 5b; ret");
ASM_FN(f_jrcxz, "mov %rdi, %rcx; jrcxz 6f; lea 1(%rdi), %rax; ret; 6: mov $100, %eax; ret");
ASM_FN(f_setcc, "test %rdi, %rdi; setg %al; movzbl %al, %eax; ret");
ASM_FN(f_sse, "cvtsi2sd %rdi, %xmm0; addsd %xmm0, %xmm0; cvttsd2si %xmm0, %rax; ret");
ASM_FN(f_tail_jump, "inc %rdi; jmp f_endbr");
ASM_FN(f_self_jump, "add $-1, %rdi; jle 7f; jmp f_self_jump; 7: mov $42, %eax; ret");
ASM_FN(f_call_early, "call f_endbr; add $1, %rax; ret");
long spin_word = 77, spin_scratch;

/* --- functions as compilers make them --- */
static KEEP long f_leaf(long x) { return opaque(x) * 3; }
static KEEP void f_void(void) { __asm__ volatile(""); }
static KEEP long f_two(long x) { return opaque(f_leaf(x)) + opaque(f_leaf(x + 1)); }
static KEEP long f_three(long x) { return opaque(f_two(x)) - opaque(f_leaf(x)); }
static KEEP long f_fib(long n) { return n < 2 ? n : opaque(f_fib(n - 1)) + opaque(f_fib(n - 2)); }
static KEEP long f_odd(long n);
static KEEP long f_even(long n) { return n ? opaque(f_odd(n - 1)) : 1; }
static KEEP long f_odd(long n) { return n ? opaque(f_even(n - 1)) : 0; }
static KEEP long f_tail3(long x) { return opaque(x) + 30; }
static KEEP long f_tail2(long x) { return f_tail3(x + 1); }
static KEEP long f_tail1(long x) { return x & 1 ? f_tail2(x) : f_tail3(x); }
static KEEP long f_sum_to(long n, long sum) { return n ? f_sum_to(n - 1, sum + n) : sum; }
static KEEP long f_deep(long n) { return n ? opaque(f_deep(n - 1)) + 1 : 0; }
static KEEP double f_double(double a, double b) { return a * b; }
static KEEP float f_float(float a, int b) { return a + b; }
static KEEP long double f_long_double(long double a) { return a / 4; }
static KEEP long f_many(long a, long b, long c, long d, long e, long f, long g, long h, long i)
{
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i;
}
struct big { long v[6]; };
static KEEP struct big f_struct(struct big b) { b.v[0] += b.v[5]; return b; }
struct pair { long a; double b; };
static KEEP struct pair f_pair(long a, double b) { return (struct pair){ a + 1, b / 2 }; }
static KEEP long f_varargs(int n, ...)
{
	va_list ap;
	long s = 0;

	va_start(ap, n);
	while (n--)
		s += va_arg(ap, long);
	va_end(ap);
	return s;
}
static KEEP long f_alloca(long n)
{
	char *p = __builtin_alloca(n + 1);

	memset(p, (int)n, n + 1);
	return opaque(p)[n];
}
static KEEP long f_switch(long n)
{
	switch (n & 7) {
	case 0: return opaque(n) + 1;
	case 1: return opaque(n) * 2;
	case 2: return f_leaf(n);
	case 3: return opaque(n) - 5;
	case 4: return opaque(n) ^ 9;
	case 5: return opaque(n) | 64;
	case 6: return f_tail1(n);
	default: return -n;
	}
}
static long switch_want(long n)
{
	switch (n & 7) {
	case 0: return n + 1;
	case 1: return n * 2;
	case 2: return n * 3;
	case 3: return n - 5;
	case 4: return n ^ 9;
	case 5: return n | 64;
	case 6: return n + 30;
	default: return -n;
	}
}
static KEEP long f_table(long n) { return table[n & 7]; }
static KEEP long f_loop(long n)
{
	long s = 0;

	while (n > 0)
		s += f_table(n--);
	return s;
}
static KEEP long f_pointer(long (*f)(long), long x) { return opaque(f)(x) + 1; }
static KEEP int f_compare(const void *a, const void *b)
{
	return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}
static KEEP long f_sort(long n)
{
	int v[16], i;

	for (i = 0; i < 16; i++)
		v[i] = (i * 7 + (int)n) & 15;
	qsort(v, 16, sizeof(int), f_compare);
	for (i = 0; i < 16; i++)
		if (v[i] != i)
			return -1;
	return v[15];
}
static __thread jmp_buf env;
static KEEP void f_jumper(int v) { longjmp(env, v); }
static KEEP long f_setjmp(long x)
{
	volatile int r = setjmp(env);

	if (!r)
		f_jumper((int)x + 1);
	return r;
}
static KEEP unsigned f_bits(unsigned x) { return __builtin_popcount(opaque(x)); }
static KEEP long f_div(long a, long b) { return opaque(a) / b; }
static __thread long own;
static KEEP long f_tls(long x) { own += x; return own; }
static KEEP long f_libc(long n)
{
	char buf[32];

	snprintf(buf, sizeof(buf), "%ld", n);
	return strtol(buf, NULL, 10);
}
static KEEP __int128 f_int128(__int128 a) { return a << 3; }

INLINE void call_asm_functions(long n)
{
	expect("asm", f_rip_load(n), n + 77);
	expect("asm", f_rip_lea(n), 77 - n);
	expect("asm", f_rip_cmp(n), n + 1);
	expect("asm", f_rip_store_imm(n), n + 1);
	expect("asm", f_jcc_first(n), n + 7);
	expect("asm", f_jcc_first(-n - 1), n + 1);
	expect("asm", f_jcc_near(n), n + (n & 1));
	expect("asm", f_jmp_first(n), n + 9);
	expect("asm", f_jmp_near(n), n + 10);
	expect("asm", f_endbr(n), n + 11);
	expect("asm", f_push(n), 2 * n + 1);
	expect("asm", f_sub_rsp(n), n);
	expect("asm", f_movabs(n), 0x123456789abc + n);
	expect("asm", f_one_by_one(n), n + 13);
	expect("asm", f_long_nop(n), n + 14);
	expect("asm", f_flags(n), n < 100);
	expect("asm", f_rep(n), n);
	expect("asm", f_loop_inside(n), 3 * n);
	expect("asm", f_jrcxz(n), n ? n + 1 : 100);
	expect("asm", f_setcc(n), n > 0);
	expect("asm", f_sse(n), 2 * n);
	expect("asm", f_tail_jump(n), n + 12);
	expect("asm", f_self_jump(n % 16), 42);
	expect("asm", f_call_early(n), n + 12);
}

INLINE void call_c_functions(long n)
{
	struct big b = { { n, 2, 3, 4, 5, 6 } };
	struct pair p = f_pair(n, 8);
	long i, s = 0;

	f_void();
	expect("c", f_three(n), 3 * n + 3);
	expect("c", f_fib(8), 21);
	expect("c", f_even(n % 12), n % 2 == 0);
	expect("c", f_tail1(n), n & 1 ? n + 31 : n + 30);
	expect("c", f_sum_to(20, 0), 210);
	expect("c", f_deep(50), 50);
	expect("c", f_double(n, 0.5) * 2, n);
	expect("c", f_float(n, 3), n + 3);
	expect("c", f_long_double(4.0L * n), n);
	expect("c", f_many(n, 2, 3, 4, 5, 6, 7, 8, 9), n + 284);
	b = f_struct(b);
	expect("c", b.v[0] + b.v[4], n + 11);
	expect("c", p.a + (long)p.b, n + 5);
	expect("c", f_varargs(4, n, 2l, 3l, 4l), n + 9);
	expect("c", f_alloca(n & 127), n & 127);
	expect("c", f_switch(n), switch_want(n));
	for (i = 1; i <= 10; i++)
		s += table[i & 7];
	expect("c", f_loop(10), s);
	expect("c", f_pointer(f_leaf, n), 3 * n + 1);
	expect("c", f_sort(n), 15);
	expect("c", f_setjmp(n & 1023), (n & 1023) + 1);
	expect("c", f_bits((unsigned)n), __builtin_popcount((unsigned)n));
	expect("c", f_div(n * 12, 12), n);
	s = own;
	expect("c", f_tls(2), s + 2);
	expect("c", f_libc(n), n);
	expect("c", f_int128(n) >> 2, 2 * n);
}

static KEEP void one_round(long n)
{
	call_asm_functions(n);
	call_c_functions(n);
}
#endif
