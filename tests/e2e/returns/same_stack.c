/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A call tree whose functions examine the stack when they begin and before they return. They read
 * all return addresses and frame pointers up to main's frame, as offsets from the program and the
 * stack. Prints a checksum of the offsets, which must be the same in a traced and a bare run.
 *
 *   same_stack CALLS [CALL]     in call number CALL, replaces the return address for a while
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <link.h>

#define NOINLINE __attribute__((noinline, noclone))
#define NOTRACE __attribute__((no_instrument_function))

static uint64_t image, image_end, top, sum, looks, words;
static long calls, most, other = -1;

/* Replaces an address in the program or on the stack by an offset. Other large numbers are
 * addresses in libraries, which differ from run to run, so they count as 0. */
NOTRACE static uint64_t normal(uint64_t v, uint64_t sp)
{
	if (v - image < image_end - image)
		return v - image;
	if (v - sp < top - sp || v == top)
		return top - v;
	return v >> 40 ? 0 : v;
}

/* The compiler may leave any values in unused words of a frame. So only return addresses and frame
 * pointers are summed up. They are found by the chain of frame pointers. */
NOTRACE NOINLINE static void look(const uint64_t *frame)
{
	uint64_t sp = (uint64_t)frame;

	looks++;
	for (const uint64_t *f = frame; (uint64_t)f < top; f = (const uint64_t *)f[0]) {
		sum = (sum ^ normal(f[1], sp)) * 0x9fb21c651e98df25ull;
		sum = (sum ^ normal(f[0], sp)) * 0xd6e8feb86659fd93ull;
		words += 2;
		if (f[0] <= (uint64_t)f)
			break;
	}
	sum ^= sum >> 31;
}

#define LOOK() look(__builtin_frame_address(0))

NOINLINE long v_leaf(long n)
{
	uint64_t *frame = __builtin_frame_address(0), ret = frame[1];

	if (calls == other)
		((volatile uint64_t *)frame)[1] = (uint64_t)look;
	LOOK();
	((volatile uint64_t *)frame)[1] = ret;
	calls++;
	LOOK();
	return n * 3 + 1;
}

/* at -O2, the call of v_leaf() is a sibling call */
NOINLINE long v_tail(long n)
{
	LOOK();
	calls++;
	return v_leaf(n + 1);
}

NOINLINE long v_tree(long depth, long n)
{
	volatile long guard[4] = { depth, n, depth ^ n, 1 };
	long r = 0;

	LOOK();
	calls++;
	if (depth > 0 && calls < most) {
		r += v_tree(depth - 1, n * 2);
		r += n & 1 ? v_tail(n) : v_leaf(n);
		r += v_tree(depth - 2, n * 2 + 1);
	}
	LOOK();
	return r + guard[3];
}

NOINLINE long v_many(long a, long b, long c, long d, long e, long f, long g, long h)
{
	LOOK();
	calls++;
	if (a > 0)
		b += v_many(a - 1, c, d, e, f, g, h, b) + v_tree(3, a);
	LOOK();
	return b + h;
}

NOTRACE static int find_image(struct dl_phdr_info *info, size_t size, void *arg)
{
	image = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && info->dlpi_addr + p->p_vaddr + p->p_memsz > image_end)
			image_end = info->dlpi_addr + p->p_vaddr + p->p_memsz;
	}
	return 1;
}

int main(int argc, char **argv)
{
	uint64_t r = 0;

	most = argc > 1 ? atol(argv[1]) : 100000;
	other = argc > 2 ? atol(argv[2]) : -1;
	top = (uint64_t)__builtin_frame_address(0);
	dl_iterate_phdr(find_image, NULL);
	while (calls < most) {
		r += (uint64_t)v_tree(12, (long)r & 7);
		r += (uint64_t)v_many(20, 1, 2, 3, 4, 5, 6, (long)r);
	}
	printf("%ld calls, %lu looks, %lu words, sum %016lx, result %016lx\n", calls, looks, words,
	       sum, r);
	return 0;
}
