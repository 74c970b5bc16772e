/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Interprets the context of a signal that interrupted the agent's own code. Changes the context so
 * that a handler sees the program's code as the interrupted code. If the hit path has saved a
 * register, the frame in the red zone (frame.h) has the program's value. The register itself has a
 * value of the agent. The handler is shown the program's value. After the handler, the register
 * gets the agent's value back. If the handler has changed the shown value, the frame gets the new
 * value. While registers are being saved or reloaded, a value may be in both places: see
 * doc/design/interrupted-stubs.md, "Registers that a handler changes".
 */
#include <asm/errno.h>
#include <asm/ptrace.h>
#include <signal.h>
#include "arch/arch.h"
#include "arch/x86_64/fault.h"
#include "arch/x86_64/hot.h"
#include "base/mem.h"

_Static_assert(sizeof(struct pt_regs) == R_SIZE, "frame.h");
#define SAME(member, offset) _Static_assert(offsetof(struct pt_regs, member) == (offset), "frame.h")
SAME(r15, R_R15); SAME(r14, R_R14); SAME(r13, R_R13); SAME(r12, R_R12); SAME(rbp, R_RBP);
SAME(rbx, R_RBX); SAME(r11, R_R11); SAME(r10, R_R10); SAME(r9, R_R9); SAME(r8, R_R8);
SAME(rax, R_RAX); SAME(rcx, R_RCX); SAME(rdx, R_RDX); SAME(rsi, R_RSI); SAME(rdi, R_RDI);
SAME(orig_rax, R_ORIG_RAX); SAME(rip, R_RIP); SAME(cs, R_CS); SAME(eflags, R_FLAGS);
SAME(rsp, R_RSP); SAME(ss, R_SS);

#define STATUS_FLAGS	0x8d5l
/* A stub's own instructions save r11, load an address into it, jump, and reload it (frame.h). If
 * the jump or the reload comes next, r11 doesn't have the program's value. The bytes at the PC show
 * this: the jump is the only one that doesn't begin with REX_W_R, and the reload is the only one
 * with MOV_LOAD as its second byte. */
#define REX_W_R		0x4c
#define MOV_LOAD	0x8b

/* ---- loads that may fault --------------------------------------------------- */

bool pb_fault_fixup(int sig, const siginfo_t *info, ucontext_t *uc)
{
	greg_t *g = uc->uc_mcontext.gregs;
	uint64_t pc = (uint64_t)g[REG_RIP];

	if (info->si_code <= 0)
		return false;
	for (const struct pb_fault_entry *e = pb_fault_table; e < pb_fault_table_end; e++) {
		if (pc != (uint64_t)&e->at + (uint64_t)(int64_t)e->at)
			continue;
		g[REG_RIP] = (greg_t)((uint64_t)&e->to + (uint64_t)(int64_t)e->to);
		g[REG_RAX] = sig == SIGSEGV && info->si_code == SEGV_MAPERR ? -EFAULT : -EACCES;
		return true;
	}
	return false;
}

/* ---- where the program counter is ------------------------------------------- */

bool pb_context_exit(const ucontext_t *uc, struct pb_hot_exit *e)
{
	const greg_t *g = uc->uc_mcontext.gregs;
	uint64_t pc = (uint64_t)g[REG_RIP];

	if (!pb_hot_holds(pc))
		return false;
	*e = (struct pb_hot_exit){ (uint64_t)g[REG_RCX], (uint64_t)g[REG_RSP], PB_OPEN_WRITTEN };
	for (const struct pb_hot_unwritten *u = __start_pb_hot_unwritten;
	     u < __stop_pb_hot_unwritten; u++)
		if (pc - ((uint64_t)u + (uint64_t)(int64_t)u->start) < u->length)
			e->record = (uint8_t)u->record;
	return true;
}

void pb_context_begin(struct pb_context *c, ucontext_t *uc)
{
	*c = (struct pb_context){ .g = uc->uc_mcontext.gregs };
	memcpy(c->real, c->g, sizeof(c->real));
}

bool pb_context_hit(struct pb_context *c, struct pb_hot_place *at)
{
	uint64_t pc = (uint64_t)c->g[REG_RIP], r11 = (uint64_t)c->g[REG_R11];

	for (const struct pb_hot_range *r = __start_pb_hot_ranges; r < __stop_pb_hot_ranges; r++) {
		uint64_t off = pc - ((uint64_t)r + (uint64_t)(int64_t)r->start);

		if (off >= r->end)
			continue;
		c->range = r;
		c->off = off;
		*at = (struct pb_hot_place){ r->of, (const struct pb_site *)r11, r11 };
		return true;
	}
	return false;
}

/* ---- what the handler is shown ---------------------------------------------- */

static uint64_t *frame(const struct pb_context *c, int offset)
{
	return (uint64_t *)((uint64_t)c->real[REG_RSP] + (uint64_t)(int64_t)offset);
}

static void show_saved(struct pb_context *c, int reg, int offset)
{
	c->frame[reg] = frame(c, offset);
	c->g[reg] = (greg_t)*c->frame[reg];
}

static void show_flags(struct pb_context *c)
{
	/* ah: from lahf; al: from seto */
	uint32_t saved = *(uint32_t *)(c->frame[REG_EFL] = frame(c, F_FLAGS));

	c->g[REG_EFL] = (c->g[REG_EFL] & ~STATUS_FLAGS) | (saved >> 8 & 0xd5) | (saved & 1) << 11;
}

/* Shows the program's values of all saved registers but r11. */
static void show_frame(struct pb_context *c)
{
	const struct pb_hot_range *r = c->range;

	if (c->off || c->off >= r->saved)
		show_saved(c, REG_RAX, F_RAX);
	if (c->off < r->saved)
		return;
	show_saved(c, REG_RCX, F_RCX);
	show_saved(c, REG_RDX, F_RDX);
	if (r->rdi_rsi)
		show_saved(c, REG_RDI, F_RDI);
	if (r->rdi_rsi == 1 || r->rdi_rsi == 2)
		show_saved(c, REG_RSI, F_RSI);
	if (r->rdi_rsi == 2)
		show_saved(c, REG_R8, F_R8);
	show_flags(c);
}

void pb_context_show_return(struct pb_context *c)
{
	show_frame(c);
	c->g[REG_RIP] = (greg_t)*frame(c, 0);
	c->g[REG_RSP] += 8;
}

void pb_context_show_jump(struct pb_context *c, uint64_t pc)
{
	show_frame(c);
	show_saved(c, REG_R11, F_R11);
	c->g[REG_RIP] = (greg_t)pc;
}

void pb_context_show_stub(struct pb_context *c, const struct pb_original *o)
{
	const uint8_t *code = (const uint8_t *)c->real[REG_RIP];

	c->own = o->own;
	/* after the lea, r11 no longer has the program's value */
	if (o->own && (code[0] != REX_W_R || code[1] == MOV_LOAD))
		show_saved(c, REG_R11, F_R11);
	c->g[REG_RIP] = (greg_t)o->next;
	c->g[REG_RSP] += o->pushed;
}

static uint32_t saved_flags(greg_t flags)
{
	return (uint32_t)((flags & 0xd5) << 8 | (flags >> 11 & 1));
}

void pb_context_shown(struct pb_context *c)
{
	memcpy(c->shown, c->g, sizeof(c->shown));
}

/* The handler has changed a register that still has the program's value. The register may have been
 * saved in the frame already, and may be reloaded from there. So the frame gets the new value, too.
 * If the register wasn't saved yet, this does no harm. */
static void change_frame_too(const struct pb_context *c, int reg)
{
	static const struct { int reg, offset; } saved[] = {
		{ REG_RCX, F_RCX }, { REG_RDX, F_RDX }, { REG_RDI, F_RDI }, { REG_RSI, F_RSI },
	};

	if (c->own && reg == REG_R11)
		*frame(c, F_R11) = (uint64_t)c->g[reg];
	if (!c->range)
		return;
	for (unsigned i = 0; i < sizeof(saved) / sizeof(saved[0]); i++)
		if (saved[i].reg == reg)
			*frame(c, saved[i].offset) = (uint64_t)c->g[reg];
	/* in ranges of another kind the word has something else */
	if (reg == REG_R8 && !c->range->rdi_rsi)
		*frame(c, F_R8) = (uint64_t)c->g[reg];
}

/* The flags that `save` has put into ax, or is about to. */
static void change_flags_in_ax(const struct pb_context *c)
{
	if (c->range && c->off && c->off < c->range->saved)
		c->g[REG_RAX] = (c->g[REG_RAX] & ~0xffffl) | saved_flags(c->g[REG_EFL]);
}

/* The frame has a new value. If the registers are being reloaded, this begins again. */
static void reload_again(const struct pb_context *c)
{
	uint64_t pc = (uint64_t)c->real[REG_RIP], begin;

	if (!c->range)
		return;
	begin = (uint64_t)c->range + (uint64_t)(int64_t)c->range->start;
	for (const struct pb_hot_restore *r = __start_pb_hot_restores; r < __stop_pb_hot_restores;
	     r++) {
		uint64_t start = (uint64_t)r + (uint64_t)(int64_t)r->start;

		if (start - begin < c->range->end && pc > start && pc - start <= r->length)
			c->g[REG_RIP] = (greg_t)start;
	}
}

bool pb_context_end(const struct pb_context *c)
{
	greg_t *g = c->g, flags = g[REG_EFL];
	bool again = false;

	if (g[REG_RIP] != c->shown[REG_RIP] || g[REG_RSP] != c->shown[REG_RSP])
		return false;
	for (int i = 0; i < NGREG; i++) {
		bool changed = g[i] != c->shown[i];

		if (i == REG_EFL)
			continue;
		if (changed && !c->frame[i]) {
			change_frame_too(c, i);
			continue;
		}
		if (changed)
			*c->frame[i] = (uint64_t)g[i];
		again |= changed;
		g[i] = c->real[i];
	}
	if (c->frame[REG_EFL]) {
		*(uint32_t *)c->frame[REG_EFL] = saved_flags(flags);
		again |= (flags ^ c->shown[REG_EFL]) & STATUS_FLAGS;
		g[REG_EFL] = (c->real[REG_EFL] & STATUS_FLAGS) | (flags & ~STATUS_FLAGS);
	} else if ((flags ^ c->shown[REG_EFL]) & STATUS_FLAGS) {
		change_flags_in_ax(c);
	}
	if (again)
		reload_again(c);
	return true;
}
