/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A 32-bit target without libc, which answers each byte of its input with a byte. Compiled with
 * -m32 -nostdlib -static.
 */
static long call(long number, long a, const void *b, long c)
{
	long ret;

	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
	return ret;
}

void _start(void);

void _start(void)
{
	char c;

	call(4, 1, "ready\n", 6);
	while (call(3, 0, &c, 1) == 1)
		if (c == '\n')
			call(4, 1, "pulse 1\n", 8);
	call(1, 0, 0, 0);
}
