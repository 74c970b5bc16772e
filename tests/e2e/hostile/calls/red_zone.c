/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loops that begin at a function's first instruction, and keep all their data in the red zone, the
 * 128 bytes below rsp. A stub at such an entry would overwrite the data in each iteration.
 * @markers 200 main/one_round
 * @calls sums >=200
 */
#include "../hostile.h"

#define WORDS(insn) ".set at,-128; .rept 16; " insn "; .set at,at+8; .endr\n"
/* Each function adds x to 16 words n times, and returns their sum. The third argument must be 0. */
#define LOOP(name, first) \
	".p2align 4; .globl " name "; .type " name ",@function\n" name ": .cfi_startproc\n" first \
	"1: test %edx,%edx; jne 2f\n" WORDS("movq $0,at(%rsp)") " inc %edx\n" \
	"2: " WORDS("add %rsi,at(%rsp)") " dec %rdi; jne 1b\n" \
	" xor %eax,%eax\n" WORDS("add at(%rsp),%rax") " ret\n" \
	" .cfi_endproc; .size " name ",.-" name "\n"
__asm__(".text\n" LOOP("sums", "lea (%rdi),%rdi\n lea (%rsi),%rsi\n") LOOP("sums_head", "")
	LOOP("sums_endbr", "endbr64\n"));
long sums(long n, long x, long zero), sums_head(long n, long x, long zero),
	sums_endbr(long n, long x, long zero);

static KEEP void one_round(int n)
{
	check_eq(sums(n + 1, n, 0), 16l * n * (n + 1));
	check_eq(sums_head(n + 1, n, 0), 16l * n * (n + 1));
	check_eq(sums_endbr(n + 1, n, 0), 16l * n * (n + 1));
	marker_begin(n);
}

int main(void)
{
	for (int n = 0; n < 200; n++)
		one_round(n);
	return 0;
}
