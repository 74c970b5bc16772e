/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests every way to pass arguments and results: more arguments than fit into registers, variable
 * arguments, structures by value in registers and memory, and hidden result pointers. The types
 * include long double (on the x87 stack), complex, and __int128. They also include vectors of up to
 * 512 bits, if the processor has them. Also tests a realigned stack, and callee-saved registers.
 * @flags -Wno-psabi
 * @markers 2000 main/all_of_them
 */
#include <complex.h>
#include <immintrin.h>
#include <stdarg.h>
#include "../hostile.h"

struct small { int a; float b; };
struct two { long a; double b; };
struct big { long v[9]; };
struct mem { long double x; int y; };
union both { double d; long l; };

static KEEP long twelve(long a, long b, long c, long d, long e, long f, long g, long h, long i,
			long j, long k, long l)
{
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k +
	       12 * l;
}
static KEEP double ten_doubles(double a, double b, double c, double d, double e, double f, double g,
			       double h, double i, double j)
{
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j;
}
static KEEP double mixed(int a, double b, char c, float d, short e, long double f, long g, double h,
			 unsigned char i, long j, long k)
{
	return a + b + c + d + e + (double)f + g + h + i + j + k;
}
static KEEP long sum_varargs(int n, ...)
{
	va_list ap;
	long s = 0;
	int i;

	va_start(ap, n);
	for (i = 0; i < n; i++)
		s += i % 3 == 2 ? (long)va_arg(ap, double) :
		     i % 3 == 1 ? va_arg(ap, long) : va_arg(ap, int);
	va_end(ap);
	return s;
}
static KEEP struct small ret_small(struct small s) { s.a++; s.b *= 2; return s; }
static KEEP struct two ret_two(struct two t, int x) { t.a += x; t.b -= x; return t; }
static KEEP struct big ret_big(struct big b, int x)
{
	for (int i = 0; i < 9; i++)
		b.v[i] += x * i;
	return b;
}
static KEEP struct mem ret_mem(struct mem m) { m.x /= 2; m.y = -m.y; return m; }
static KEEP long double ret_ld(long double a, long double b) { return a * b; }
static KEEP double complex ret_complex(double complex a, double complex b) { return a * b; }
/* returns the result in st0 and st1 */
static KEEP long double complex ret_ldc(long double complex a) { return a * a; }
static KEEP __int128 ret_int128(__int128 a, __int128 b) { return a * b + 1; }
static KEEP _Bool ret_bool(int x) { return x > 5; }
static KEEP __m128i ret_sse(__m128i a, __m128i b) { return _mm_add_epi32(a, b); }
static KEEP float many_sse(__m128 a, __m128 b, __m128 c, __m128 d, __m128 e, __m128 f, __m128 g,
			   __m128 h, __m128 on_stack)
{
	__m128 s = _mm_add_ps(_mm_add_ps(_mm_add_ps(a, b), _mm_add_ps(c, d)),
			      _mm_add_ps(_mm_add_ps(e, f), _mm_add_ps(g, _mm_add_ps(h, on_stack))));
	float v[4];

	_mm_storeu_ps(v, s);
	return v[0] + v[1] + v[2] + v[3];
}
#define AVX __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f,avx512bw")))
static KEEP AVX __m256i ret_avx(__m256i a, __m256i b) { return _mm256_add_epi64(a, b); }
static KEEP AVX512 __m512i ret_avx512(__m512i a, __m512i b) { return _mm512_add_epi64(a, b); }
static KEEP AVX512 __m512i mask_avx512(__m512i a, __mmask8 k, __m512i on_a, __m512i b, __m512i c,
				       __m512i d, __m512i e, __m512i f, __m512i g, __m512i stack)
{
	__m512i s = _mm512_add_epi64(_mm512_add_epi64(b, c),
		_mm512_add_epi64(_mm512_add_epi64(d, e), _mm512_add_epi64(f, g)));

	return _mm512_mask_add_epi64(a, k, stack, _mm512_add_epi64(on_a, s));
}

static KEEP AVX void with_avx(int n)
{
	long v[4];

	_mm256_storeu_si256((void *)v, ret_avx(_mm256_set_epi64x(4, 3, 2, n),
					       _mm256_set_epi64x(40, 30, 20, 10)));
	check(v[0] == n + 10 && v[1] == 22 && v[2] == 33 && v[3] == 44);
}

static KEEP AVX512 void with_avx512(int n)
{
	__m512i x = _mm512_set_epi64(8, 7, 6, 5, 4, 3, 2, n), one = _mm512_set1_epi64(1), r;
	long v[8];
	int i;

	r = ret_avx512(x, _mm512_set1_epi64(100));
	_mm512_storeu_si512(v, r);
	check_eq(v[0], n + 100);
	for (i = 1; i < 8; i++)
		check_eq(v[i], i + 101);
	r = mask_avx512(x, 0xaa, one, one, one, one, one, one, one, _mm512_set1_epi64(1000));
	_mm512_storeu_si512(v, r);
	for (i = 0; i < 8; i++)
		check_eq(v[i], i & 1 ? 1007 : i ? i + 1 : n);
}

static KEEP void all_of_them(int n)
{
	struct small s = ret_small((struct small){ n, 1.5f });
	struct two t = ret_two((struct two){ n, 2.5 }, 3);
	struct big b = { { 1, 2, 3, 4, 5, 6, 7, 8, n } };
	struct mem m = ret_mem((struct mem){ 3.25L, n });
	__m128 q = _mm_set1_ps(1);
	int i, v[4];

	check_eq(twelve(n, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12), 649 + n);
	check(ten_doubles(n, 2, 3, 4, 5, 6, 7, 8, 9, 10) == 384 + n);
	check(mixed(n, 1.5, 'a', 2.25f, -3, 4.5L, 1l << 33, 0.25, 200, -7, 1) ==
	      n + 1.5 + 97 + 2.25 - 3 + 4.5 + (1l << 33) + .25 + 200 - 7 + 1);
	check_eq(sum_varargs(12, 1, 2l, 3.0, 4, 5l, 6.0, 7, 8l, 9.0, 10, 11l, (double)n), 66 + n);
	check_eq(sum_varargs(2, n, 5l), n + 5);
	check(s.a == n + 1 && s.b == 3.0f);
	check(t.a == n + 3 && t.b == -0.5);
	b = ret_big(b, n);
	for (i = 0; i < 8; i++)
		check_eq(b.v[i], i + 1 + n * i);
	check(m.x == 1.625L && m.y == -n);
	check(ret_ld(1e4000L, 1e-3990L) > 9e9L && ret_ld(3, n) == 3.0L * n);
	check(ret_complex(1 + 2 * I, 3 + n * I) == (3 - 2 * n) + (n + 6) * I);
	check(ret_ldc(1.0L + 2.0L * I) == -3.0L + 4.0L * I);
	check(ret_int128((__int128)1 << 70, n) == ((__int128)n << 70) + 1);
	check(ret_bool(n) == (n > 5));
	_mm_storeu_si128((void *)v, ret_sse(_mm_set_epi32(4, 3, 2, n), _mm_set1_epi32(7)));
	check(v[0] == n + 7 && v[3] == 11);
	check(many_sse(q, q, q, q, q, q, q, q, _mm_set1_ps(n)) == 32 + 4 * n);
	if (__builtin_cpu_supports("avx2"))
		with_avx(n);
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw"))
		with_avx512(n);
	marker_begin(n);
}

int main(void)
{
	int n;

	fprintf(stderr, "avx2 %d avx512 %d\n", !!__builtin_cpu_supports("avx2"),
		!!__builtin_cpu_supports("avx512bw"));
	for (n = 0; n < 2000; n++)
		all_of_them(n);
	puts("arguments and results whole");
	return 0;
}
