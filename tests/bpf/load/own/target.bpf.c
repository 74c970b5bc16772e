/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The target types of CO-RE: the loader relocates core.bpf.c for these types. The numbers in the
 * comments are offsets in bytes. */
struct moved {
	long before[2];
	int list[8];			/* 16 */
	union {
		int b;			/* 48 */
		int a;
	};
	struct {
		long pad;
		struct { int x, deep; } in;	/* 64; `deep` is at 68 */
	};
	unsigned grown;			/* 72 */
	unsigned filler : 30, bits : 2;	/* 76 */
	unsigned more : 6;		/* 80, bit 0 */
	int sign : 9;
};
struct two { int y, x; };
struct two___b { int x; };
struct third { int first; };
struct third___b { int second; };
struct third___c { int pad, second; };
struct same_shape { char first; int x; struct moved *p; };
struct other_shape { int x; };
enum colour { NONE, RED, BLUE = 77, GREEN = 4000 };
typedef int (*handler)(int, struct moved *);

struct moved moved;
struct two two;
struct two___b two_b;
struct third third;
struct third___b third_b;
struct third___c third_c;
struct same_shape same;
struct other_shape other;
enum colour colour;
handler fn;
