/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The stacks of coroutines are inside a frame of the main stack (by alloca, or in an array). So
 * the agent can't distinguish the stacks by mappings, or by the order of addresses. All coroutines
 * are abandoned while their calls are open.
 * @markers 2400 round_on/after_round
 * @calls ping >=1
 */
#include <alloca.h>
#include <ucontext.h>
#include "../hostile.h"

static ucontext_t main_ctx, co[4];
static int pings[4];

static KEEP int ping(int who, int depth)
{
	int r;

	if (depth)
		return opaque(ping(who, depth - 1)) + 1;
	pings[who]++;
	r = swapcontext(&co[who], &main_ctx);
	return opaque(r);
}

static KEEP void body(int who)
{
	for (;;)
		check_eq(ping(who, who * 3), who * 3);
}

static KEEP void after_round(int n) { marker_begin(n); opaque(n); }

static KEEP void round_on(char *mem, size_t each, int n)
{
	int i, k;

	memset(pings, 0, sizeof(pings));
	for (i = 0; i < 4; i++) {
		check(!getcontext(&co[i]));
		co[i].uc_stack.ss_sp = mem + i * each;
		co[i].uc_stack.ss_size = each;
		co[i].uc_link = NULL;
		makecontext(&co[i], (void (*)(void))body, 1, i);
	}
	for (k = 0; k < 3; k++)
		for (i = 3; i >= 0; i--) {
			check(!swapcontext(&main_ctx, &co[i]));
			after_round(n);
		}
	for (i = 0; i < 4; i++)
		check_eq(pings[i], 3);
	memset(mem, 0x5a, 4 * each);
}

static KEEP void in_alloca(int n)
{
	char *mem = alloca(4 * 32768);

	round_on(opaque(mem), 32768, n);
}

int main(void)
{
	char here[4 * 32768] __attribute__((aligned(16)));
	int n;

	for (n = 0; n < 100; n++) {
		in_alloca(n);
		round_on(here, 32768, n);
	}
	puts("200 rounds");
	return 0;
}
