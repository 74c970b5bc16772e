/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Throws exceptions through functions with return probes. Some of these functions have frames of
 * various sizes, some make tail calls, and one recurses. Usage: throwing ROUNDS. Prints how many
 * exceptions were caught, and the sum of the results.
 */
#include <cstdio>
#include <cstdlib>

#define KEEP extern "C" __attribute__((noinline, noclone))
#define LONG asm volatile("nop; nop; nop; nop; nop; nop")

KEEP int thrower(int x)
{
	LONG;
	if (x % 2)
		throw x;
	return x;
}

template <int N> __attribute__((noinline)) int framed(int x)
{
	volatile char room[N] = { (char)x };

	LONG;
	int r = thrower(x);

	return r + room[0] - (char)x;
}

KEEP int tail2(int x)
{
	LONG;
	return thrower(x);
}

KEEP int tail1(int x)
{
	LONG;
	return tail2(x);
}

KEEP int recurse(int n, int x)
{
	LONG;
	if (!n)
		return tail1(x);
	int r = recurse(n - 1, x);

	LONG;
	return r + 1;
}

static int (*const calls[])(int) = {
	thrower, tail2, tail1, framed<1>, framed<8>, framed<16>, framed<24>, framed<32>, framed<40>,
	framed<48>, framed<64>, framed<72>, framed<128>,
};

int main(int argc, char **argv)
{
	long caught = 0, sum = 0;
	int rounds = argc > 1 ? atoi(argv[1]) : 1000;

	for (int i = 0; i < rounds; i++) {
		for (auto call : calls) {
			try {
				sum += call(i);
			} catch (int e) {
				caught += e == i;
			}
		}
		try {
			sum += recurse(i % 7, i);
		} catch (int e) {
			caught += e == i;
		}
	}
	printf("%ld %ld\n", caught, sum);
	return 0;
}
