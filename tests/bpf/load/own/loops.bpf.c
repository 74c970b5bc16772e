/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Loops with may_goto and with numeric iterators: the verifier needn't walk these loops to their
 * end. The macros replace libbpf's bpf_for, bpf_repeat and bpf_for_each(num, ...), and the kernel's
 * can_loop and cond_break. An old installed libbpf may lack these macros. test_loops.c has the
 * expected results.
 */
#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>

struct bpf_iter_num {
	__u64 opaque[1];
} __attribute__((aligned(8)));
extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __weak __ksym;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __weak __ksym;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __weak __ksym;
/* a kfunc that doesn't exist in any kernel */
extern int bpf_no_such_function(int n) __weak __ksym;
extern void bpf_rcu_read_lock(void) __ksym;

#define NAMED(x, line)	x##line
#define NAME(x, line)	NAMED(x, line)
#define ITER		NAME(it_, __LINE__)
/* the initializer of the second variable calls bpf_iter_num_new() once, before the loop */
#define each_number(v, from, to) \
	for (struct bpf_iter_num ITER __attribute__((cleanup(bpf_iter_num_destroy))), \
	     *NAME(begun_, __LINE__) = (bpf_iter_num_new(&ITER, (from), (to)), \
					(void)bpf_iter_num_destroy, (void *)0); \
	     ((v) = bpf_iter_num_next(&ITER));)
#define count(i, from, to) \
	for (struct bpf_iter_num ITER __attribute__((cleanup(bpf_iter_num_destroy))), \
	     *NAME(begun_, __LINE__) = (bpf_iter_num_new(&ITER, (from), (to)), \
					(void)bpf_iter_num_destroy, (void *)0); \
	     ({ int *t = bpf_iter_num_next(&ITER); \
		(t && ((i) = *t, (i) >= (from) && (i) < (to))); });)
#define repeat(n) \
	for (struct bpf_iter_num ITER __attribute__((cleanup(bpf_iter_num_destroy))), \
	     *NAME(begun_, __LINE__) = (bpf_iter_num_new(&ITER, 0, (n)), \
					(void)bpf_iter_num_destroy, (void *)0); \
	     bpf_iter_num_next(&ITER);)

/* may_goto as bytes, for assemblers that don't have it */
#define MAY_GOTO(label) \
	asm volatile goto("1: .byte 0xe5; .byte 0; " \
			  ".long ((%l[" #label "] - 1b - 8) / 8) & 0xffff; .short 0" :::: label)
#define can_loop \
	({ __label__ out, on; \
	   bool may = true; \
	   MAY_GOTO(out); \
	   goto on; \
	   out: may = false; \
	   on:; \
	   may; })
#define cond_break \
	({ __label__ out, on; \
	   MAY_GOTO(out); \
	   goto on; \
	   out: break; \
	   on:; })

char _license[] SEC("license") = "GPL";
/* the verifier doesn't know the values of these variables */
int zero, limit = 1000;
int squares[64];

SEC("raw_tp")
int sum(void *ctx)
{
	int i, all = 0;

	count(i, 0, limit)
		all += i;
	return all;
}

SEC("raw_tp")
int sum_each(void *ctx)
{
	int *v, all = 0;

	each_number(v, -5, 11)
		all += *v;
	return all;
}

SEC("raw_tp")
int nested(void *ctx)
{
	int i, iterations = zero;

	repeat(20) {
		count(i, 0, 64) {
			if (i == 40)
				break;
			if (i & 1)
				continue;
			squares[i] = i * i;
			iterations++;
		}
		if (iterations > 300)
			break;
	}
	return iterations + squares[38];
}

SEC("raw_tp")
int until_the_bound(void *ctx)
{
	int n = zero;

	for (;;) {
		cond_break;
		n++;
	}
	return n;
}

SEC("raw_tp")
int before_the_bound(void *ctx)
{
	int i, all = 0;

	for (i = zero; i < limit && can_loop; i++)
		all += i;
	return all;
}

static int count_on(__u32 i, int *n)
{
	for (;;) {
		cond_break;
		*n += 1;
	}
	return 0;
}

SEC("raw_tp")
int in_callbacks(void *ctx)
{
	int n = zero;

	bpf_loop(2, count_on, &n, 0);
	return n;
}

static __noinline int part(struct bpf_iter_num *it, int most)
{
	int *v, n = 0;

	while ((v = bpf_iter_num_next(it)) && n < most)
		n += *v;
	return n;
}

SEC("raw_tp")
int in_parts(void *ctx)
{
	struct bpf_iter_num it;
	int n;

	bpf_iter_num_new(&it, 0, 20);
	n = part(&it, 30) * 1000;
	n += part(&it, 300);
	bpf_iter_num_destroy(&it);
	return n;
}

/* A million paths lead to the loop. The sum n depends on the path. The program returns n, but no
 * branch depends on n. */
#define PATH(k)	if (*(volatile int *)&zero == (k)) asm volatile("%0 += " #k : "+r"(n));
#define PATHS	PATH(1) PATH(2) PATH(3) PATH(4) PATH(5) PATH(6) PATH(7) PATH(8) PATH(9) PATH(10) \
		PATH(11) PATH(12) PATH(13) PATH(14) PATH(15) PATH(16) PATH(17) PATH(18) PATH(19) \
		PATH(20)

static int add(__u32 i, long *n)
{
	*n += i;
	return 0;
}

SEC("raw_tp")
int paths_to_callbacks(void *ctx)
{
	long n = 0, all = zero;

	PATHS
	bpf_loop(10, add, &all, 0);
	return n + all;
}

SEC("raw_tp")
int paths_to_loops(void *ctx)
{
	long n = 0, all = zero;
	int i;

	PATHS
	count(i, 0, 10)
		all += i;
	PATHS
	for (i = zero; i < 10 && can_loop; i++)
		all += i;
	return n + all;
}

SEC("raw_tp")
int asked_first(void *ctx)
{
	int n = 0;

	if (bpf_iter_num_new)
		n += 1;
	if (bpf_no_such_function)
		n += bpf_no_such_function(3);
	return n;
}

SEC("raw_tp")
int the_kernels(void *ctx)
{
	bpf_rcu_read_lock();
	return 0;
}
