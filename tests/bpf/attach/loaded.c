/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A library of many functions. Its file name differs from its soname. */
int loaded(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 3 + 1;
}
#define F(n) int many##n(int x) { __asm__ volatile("" : "+r"(x)); return x * n + (x >> 3); }
#define T(n) F(n##0) F(n##1) F(n##2) F(n##3) F(n##4) F(n##5) F(n##6) F(n##7) F(n##8) F(n##9)
T(1) T(2) T(3) T(4) T(5) T(6) T(7) T(8) T(9) T(10)
T(11) T(12) T(13) T(14) T(15) T(16) T(17) T(18) T(19) T(20)
