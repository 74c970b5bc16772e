/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The hooks at a function's entry and return must not change any register. A caller in assembly
 * fills all general registers and the flags, calls a hooked function that changes no register, and
 * compares the registers' values. Other callers do the same with xmm, ymm, zmm and mask registers,
 * mxcsr and the x87 stack. Also tests results in the flags, callers built with -fipa-ra, nested
 * functions with their static chain in r10, and %al of variadic calls. All checks also run as the
 * first calls of a new thread, because these calls take slow paths.
 * @flags -fipa-ra
 * @markers 400 all_checks
 * @calls asm_leaf >=2400
 */
#include <immintrin.h>
#include <pthread.h>
#include "../hostile.h"

/* The values of rax rcx rdx rsi rdi r8 r9 r10 r11 rbx rbp r12 r13 r14 r15 and the flags, in this
 * order. call_with_all() loads all of these registers from *want (rdi), calls asm_leaf(), and
 * stores all of them to *got (rsi). */
struct image { unsigned long reg[16]; };
void call_with_all(const struct image *want, struct image *got);
void asm_leaf(void);
void asm_nonleaf(void);
void call_nonleaf_with_all(const struct image *want, struct image *got);

#define LOAD_ALL \
	"push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; push %rsi\n" \
	"pushq 120(%rdi); popfq\n" \
	"mov 0(%rdi),%rax; mov 8(%rdi),%rcx; mov 16(%rdi),%rdx; mov 24(%rdi),%rsi\n" \
	"mov 40(%rdi),%r8; mov 48(%rdi),%r9; mov 56(%rdi),%r10; mov 64(%rdi),%r11\n" \
	"mov 72(%rdi),%rbx; mov 80(%rdi),%rbp; mov 88(%rdi),%r12; mov 96(%rdi),%r13\n" \
	"mov 104(%rdi),%r14; mov 112(%rdi),%r15; mov 32(%rdi),%rdi\n"
#define STORE_ALL \
	"xchg %rdi, (%rsp)\n" \
	"mov %rax,0(%rdi); mov %rcx,8(%rdi); mov %rdx,16(%rdi); mov %rsi,24(%rdi)\n" \
	"mov %r8,40(%rdi); mov %r9,48(%rdi); mov %r10,56(%rdi); mov %r11,64(%rdi)\n" \
	"mov %rbx,72(%rdi); mov %rbp,80(%rdi); mov %r12,88(%rdi); mov %r13,96(%rdi)\n" \
	"mov %r14,104(%rdi); mov %r15,112(%rdi)\n" \
	"pop %rax; mov %rax,32(%rdi)\n" \
	"pushfq; popq 120(%rdi)\n" \
	"pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"

__asm__(".text; .p2align 4; .type asm_leaf,@function\n"
	"asm_leaf: .cfi_startproc\n nopw 0(%rax,%rax,1)\n ret\n"
	" .cfi_endproc; .size asm_leaf, . - asm_leaf\n"
	".globl asm_leaf; .p2align 4; .globl asm_nonleaf; .type asm_nonleaf,@function\n"
	"asm_nonleaf: .cfi_startproc\n nopw 0(%rax,%rax,1)\n call asm_leaf\n call asm_leaf\n ret\n"
	".cfi_endproc; .size asm_nonleaf, . - asm_nonleaf\n"
	".globl call_with_all; .type call_with_all,@function\n"
	"call_with_all:\n" LOAD_ALL "call asm_leaf\n" STORE_ALL "ret\n"
	" .size call_with_all, . - call_with_all\n"
	".globl call_nonleaf_with_all; .type call_nonleaf_with_all,@function\n"
	"call_nonleaf_with_all:\n" LOAD_ALL "call asm_nonleaf\n" STORE_ALL "ret\n"
	".size call_nonleaf_with_all, . - call_nonleaf_with_all\n"
	/* carry_if_positive(long x) returns whether x > 0, in the carry flag only */
	".globl carry_if_positive; .type carry_if_positive,@function\n"
	"carry_if_positive: .cfi_startproc\n test %rdi, %rdi\n jg 1f\n nop; nop; clc\n ret\n"
	"1: stc\n ret\n"
	".cfi_endproc; .size carry_if_positive, . - carry_if_positive\n"
	/* long al_seen(...) returns al, in which the caller of a variadic function passes the
	 * number of vector registers that hold arguments */
	".globl al_seen; .type al_seen,@function\n"
	"al_seen: .cfi_startproc\n movzbl %al, %eax\n nop; nop; nop\n ret\n"
	" .cfi_endproc; .size al_seen, . - al_seen\n");
long al_seen(int, ...);

static const char *const names[16] = { "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11",
	"rbx", "rbp", "r12", "r13", "r14", "r15", "flags" };

static KEEP void general(uint64_t *seed)
{
	struct image want, got;
	int i, round;

	for (round = 0; round < 4; round++) {
		for (i = 0; i < 15; i++)
			want.reg[i] = (unsigned long)next_random(seed) << 33 ^ next_random(seed);
		want.reg[15] = (next_random(seed) & 0x8d5) | 0x202;	/* OF SF ZF AF PF CF */
		(round & 1 ? call_nonleaf_with_all : call_with_all)(&want, &got);
		for (i = 0; i < 16; i++)
			if ((want.reg[i] ^ got.reg[i]) & (i == 15 ? 0x8d5 : -1ul))
				die("%s was %#lx and is %#lx after a call (round %d)", names[i],
				    want.reg[i], got.reg[i], round);
	}
}

static KEEP void carry(long x)
{
	unsigned char c;

	__asm__ volatile("sub $128, %%rsp; call carry_if_positive; setc %0; lea 128(%%rsp), %%rsp"
			 : "=r"(c) : "D"(x) : "cc", "memory");
	check_eq(c, x > 0);
}

static KEEP void x87_and_mxcsr(void)
{
	unsigned want = 0x9fc0, old, got;
	unsigned short cw_want = 0x0e7f, cw_old, cw;
	double a, b, c;

	__asm__ volatile("stmxcsr %0" : "=m"(old));
	__asm__ volatile("fnstcw %0" : "=m"(cw_old));
	__asm__ volatile("ldmxcsr %4; fldcw %5; sub $128, %%rsp; fld1; fldpi; fldz\n"
			 " call asm_nonleaf\n"
			 "add $128, %%rsp; fstpl %0; fstpl %1; fstpl %2; stmxcsr %3"
			 : "=m"(a), "=m"(b), "=m"(c), "=m"(got) : "m"(want), "m"(cw_want)
			 : "memory", "cc");
	__asm__ volatile("fnstcw %0; fldcw %1" : "=m"(cw) : "m"(cw_old));
	__asm__ volatile("ldmxcsr %0" :: "m"(old));
	check(a == 0 && b > 3.1415 && b < 3.1416 && c == 1);
	check_eq(got & 0xffc0, want);
	check_eq(cw, cw_want);
}

/* V, Y and K load a zmm, ymm or mask register. W, Z and L store it. zmm() loads all zmm and mask
 * registers, makes a call, and stores these registers. ymm() does the same with ymm registers. */
#define V(k) "vmovdqu64 " #k "*64(%%rax), %%zmm" #k "\n"
#define W(k) "vmovdqu64 %%zmm" #k ", " #k "*64(%%rax)\n"
#define EACH32(F) EACH16(F) \
	F(16) F(17) F(18) F(19) F(20) F(21) F(22) F(23) \
	F(24) F(25) F(26) F(27) F(28) F(29) F(30) F(31)
#define Y(k) "vmovdqu " #k "*32(%%rax), %%ymm" #k "\n"
#define Z(k) "vmovdqu %%ymm" #k ", " #k "*32(%%rax)\n"
#define EACH16(F) EACH8(F) F(8) F(9) F(10) F(11) F(12) F(13) F(14) F(15)
#define K(k) "kmovq " #k "*8+2048(%%rax), %%k" #k "\n"
#define L(k) "kmovq %%k" #k ", " #k "*8+2048(%%rax)\n"
#define EACH8(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7)

static KEEP __attribute__((target("avx512f,avx512bw"))) void zmm(uint64_t *seed)
{
	unsigned char buf[2112], want[2112];
	size_t i;

	for (i = 0; i < sizeof(buf); i++)
		buf[i] = want[i] = next_random(seed);
	__asm__ volatile("sub $128, %%rsp\n" EACH32(V) EACH8(K)
			 "call asm_nonleaf\n" EACH32(W) EACH8(L)
			 "vzeroupper; add $128, %%rsp"
			 :: "a"(buf)
			 : "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
			 "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
			 "xmm15", "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22",
			 "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30",
			 "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7");
	for (i = 0; i < sizeof(buf); i++)
		if (buf[i] != want[i])
			die("byte %zu of %s%zu changed", i, i < 2048 ? "zmm" : "k",
			    i < 2048 ? i / 64 : (i - 2048) / 8);
}

static KEEP __attribute__((target("avx"))) void ymm(uint64_t *seed)
{
	unsigned char buf[512], want[512];
	size_t i;

	for (i = 0; i < sizeof(buf); i++)
		buf[i] = want[i] = next_random(seed);
	__asm__ volatile("sub $128, %%rsp\n" EACH16(Y) "call asm_nonleaf\n" EACH16(Z)
			 "vzeroupper; add $128, %%rsp"
			 :: "a"(buf)
			 : "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6",
			 "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
			 "xmm15");
	for (i = 0; i < sizeof(buf); i++)
		if (buf[i] != want[i])
			die("byte %zu of ymm%zu changed", i, i / 32);
}

/* With -fipa-ra, gcc knows which registers these functions don't change. So their callers keep
 * values in those registers during a call. */
static __attribute__((noinline)) int ra_leaf(int x) { __asm__ volatile(""); return x + 1; }
static __attribute__((noinline)) int ra_middle(int x) { return ra_leaf(x) * 2; }
static KEEP long ipa_ra(long a, long b, long c, long d, long e, long f)
{
	long g = a ^ b, h = c ^ d, i = e ^ f, r;

	r = ra_middle((int)a);
	r += ra_leaf((int)b) + ra_middle((int)c);
	return r + a + b + c + d + e + f + g + h + i;
}

static KEEP long nested_functions(long x)
{
	long y = x * 3;
	__attribute__((noinline)) long add(long z) { y += z; return y; }
	__attribute__((noinline)) long twice(long z) { return add(z) + add(z); }
	long (*volatile through)(long) = add;	/* points to gcc's trampoline on the stack */

	return twice(x) + through(1) + y;
}

static KEEP void all_checks(int n, uint64_t *seed)
{
	general(seed);
	carry(n - 200);
	x87_and_mxcsr();
	if (__builtin_cpu_supports("avx512bw"))
		zmm(seed);
	if (__builtin_cpu_supports("avx"))
		ymm(seed);
	check_eq(ipa_ra(n, 2, 3, 4, 5, 6), (n + 1) * 2 + 3 + 8 + n + 20 + (n ^ 2) + 7 + 3);
	check_eq(nested_functions(n), 4 * n + 5 * n + 2 * (5 * n + 1));
	check_eq(al_seen(1, 1.0, 2.0, 3), 2);
	check_eq(al_seen(1, 2), 0);
	marker_begin(n);
}

static KEEP int at_depth(int depth, int n, uint64_t *seed)
{
	if (depth)
		return opaque(at_depth(depth - 1, n, seed)) + 1;
	all_checks(n, seed);
	return 0;
}

static KEEP void *thread_main(void *arg)
{
	uint64_t seed = 12345;
	int n;

	for (n = 0; n < 200; n++)
		check_eq(at_depth(n * 5, n, &seed), n * 5);
	return NULL;
}

int main(void)
{
	pthread_t t;

	/* the checks run in a new thread, as its first calls, and then in the main thread */
	check(!pthread_create(&t, NULL, thread_main, NULL));
	check(!pthread_join(t, NULL));
	thread_main(NULL);
	puts("every register kept");
	return 0;
}
