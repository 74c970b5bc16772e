/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Distinguishes the agent's code, its copies near the program, stubs, and the program's code.
 * Prints the registers and callers that a handler sees, as far as they must be the same in each
 * run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>
#include "steps.h"

namespace steps {

#define FLAGS		0x8d5
#define MAX_FRAMES	40
#define HEAD_SIZE	8192	/* the part of a file of stubs that has copies of the agent's
				 * code */
#define ALIGN		64	/* each copy begins at a multiple of this number */

extern "C" char __executable_start, etext;

/* Some of the agent's functions have copies near the program. A copy has `size` bytes from `at` on.
 * `of` is the address of the function itself. */
static struct { uint64_t at, of, size; } copies[32];
static int nr_copies;
uint64_t agent;
char *ring;

/* Returns the offset of a symbol in the agent. The environment variable STEPS_SYMBOLS has the form
 * NAME=OFFSET,... */
uint64_t symbol(const char *name)
{
	const char *at = getenv("STEPS_SYMBOLS");
	size_t n = strlen(name);

	for (; at; at = strchr(at, ','), at += at ? 1 : 0)
		if (!strncmp(at, name, n) && at[n] == '=')
			return strtoul(at + n + 1, NULL, 16);
	die("no symbol");
	return 0;
}

/* The agent's table of the code that is copied: struct pb_near_range in src/arch/x86_64/hot.h. */
struct range {
	int32_t start;
	uint32_t length;
};

/* The copies come in the table's order. Each begins with the same bytes as the original. Loads of
 * the TLS word are the same, too. */
static void find_copies(const unsigned char *head)
{
	const struct range *r = (const struct range *)(agent + symbol("__start_pb_near_ranges"));
	const struct range *end = (const struct range *)(agent + symbol("__stop_pb_near_ranges"));

	if (memcmp(head, (const char *)r + r->start, r->length < 48 ? r->length : 48))
		return;
	for (uint64_t off = 0; r < end; off = (off + r++->length + ALIGN - 1) & -ALIGN) {
		if (nr_copies == sizeof(copies) / sizeof(*copies))
			die("too many copies");
		copies[nr_copies].at = (uint64_t)head + off;
		copies[nr_copies].of = (uint64_t)r + r->start;
		copies[nr_copies++].size = r->length;
	}
}

void find_agent(void)
{
	uint64_t start, end, here = (uint64_t)find_agent;
	FILE *f = fopen("/proc/self/maps", "r");
	char line[4096];

	while (f && fgets(line, sizeof(line), f)) {
		if (strstr(line, "/libpatchbay.so") && !agent)
			agent = strtoul(line, NULL, 16);
		if (strstr(line, "/memfd:patchbay-ring") && !ring)
			ring = (char *)strtoul(line, NULL, 16);
	}
	if (f && agent) {
		rewind(f);
		while (fgets(line, sizeof(line), f))
			if (sscanf(line, "%lx-%lx r-xp", &start, &end) == 2 &&
			    strstr(line, "r-xp") && here - start >= end - start &&
			    here - start + (1u << 31) < 1ul << 32 && end - start >= HEAD_SIZE)
				find_copies((unsigned char *)start);
	}
	if (f)
		fclose(f);
}

struct frames {
	uint64_t pc[MAX_FRAMES];
	int nr, programs;
	bool interrupted;	/* the walk has passed the handler's own frames */
};

bool in_program(uint64_t pc)
{
	return pc >= (uint64_t)&__executable_start && pc < (uint64_t)&etext;
}

bool in_agent(uint64_t pc)
{
	return agent && pc - agent < AGENT_MAX;
}

uint64_t original(uint64_t pc)
{
	for (int i = 0; i < nr_copies; i++)
		if (pc - copies[i].at < copies[i].size)
			return copies[i].of + (pc - copies[i].at);
	return pc;
}

static _Unwind_Reason_Code frame(struct _Unwind_Context *context, void *arg)
{
	struct frames *f = (struct frames *)arg;
	int exact = 0;
	uint64_t pc = _Unwind_GetIPInfo(context, &exact);

	f->interrupted |= exact;
	if (f->interrupted && f->nr < MAX_FRAMES) {
		f->pc[f->nr++] = pc;
		f->programs += !in_agent(pc);
	}
	return f->programs < 8 ? _URC_NO_REASON : _URC_END_OF_STACK;
}

void put_pc(char *buffer, size_t size, uint64_t pc)
{
	pc = original(pc);
	snprintf(buffer, size, "%s%lx", in_agent(pc) ? "+" : in_program(pc) ? "" : "?",
		 in_agent(pc) ? pc - agent : pc);
}

void look(const greg_t *g)
{
	static const int numbers[] = {
		REG_RAX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBX, REG_R8, REG_R9, REG_R10,
		REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RBP };
	static uint64_t first;		/* addresses on the stack are printed as offsets from it */
	uint64_t pc = (uint64_t)g[REG_RIP];
	struct frames f = {};
	char at[32];

	if (step == 1 || (uint64_t)g[REG_RSP] - first + 65536 > 2 * 65536)
		first = (uint64_t)g[REG_RSP];
	_Unwind_Backtrace(frame, &f);
	if (original(pc) == pc)
		put_pc(at, sizeof(at), pc);
	else
		snprintf(at, sizeof(at), "?%lx", pc);	/* a copy has no unwind table */
	if (cramped_at && (uint64_t)g[REG_RSP] - cramped_at + 1024 < 2048)
		first = cramped_at;
	print("o %s %s %ld %s %ld", function, state, step, at,
	      (long)((uint64_t)g[REG_RSP] - first));
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		uint64_t value = (uint64_t)g[numbers[i]];
		bool stack = value - first + 65536 < 2 * 65536;

		print(stack ? " s%lx" : " %lx", stack ? value - first : value);
	}
	/* leaves out PF and AF, which depend on the numbers in made[] */
	print(" %llx |", (unsigned long long)(g[REG_EFL] & FLAGS & ~0x14));
	for (int i = 0; i < f.nr; i++) {
		print(" %s%lx", in_agent(f.pc[i]) ? "+" : "",
		      in_agent(f.pc[i]) ? f.pc[i] - agent : f.pc[i]);
		if (!in_agent(f.pc[i]) && !in_program(f.pc[i]))
			break;
	}
	print("\n");
}

}
