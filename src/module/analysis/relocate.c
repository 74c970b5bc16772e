/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Writes recipes (relocate.h). A displaced instruction becomes:
 *
 *   nop, compiled-in call         nothing
 *   disp32(%rip)                  the same, displacement fixed up
 *   jmp rel8/rel32                jmp rel32
 *   jcc rel8/rel32                jcc rel32
 *   loop*, jrcxz, jecxz           the same, to 1f; jmp 2f; 1: jmp rel32; 2:
 *   call rel32 (last only)        push $lo; movl $hi,4(%rsp); jmp rel32
 *   call *reg (last only)         push $lo; movl $hi,4(%rsp); jmp *reg
 *   call *m (last only)           push m; pop -16(%rsp);
 *                                 push $lo; movl $hi,4(%rsp); jmp *-8(%rsp)
 *   other, not PC-relative        the same bytes
 *
 * A displaced call pushes the address after the original call. So the callee, an unwinder and the
 * return see the same stack as without tracing. The push stores the low half of the address
 * (sign-extended). After it, the movl stores the high half. Neither instruction changes flags. An
 * operand in memory is read before rsp moves, and is kept in the red zone below rsp. No signal
 * handler writes to the red zone, and the caller has no data there, because the callee's own frame
 * will lie there. So only the first instruction can fault: by reading the operand or by pushing.
 * All registers are then as at the original call. There are two exceptions, which fault after rsp
 * has moved. A call of a non-canonical address faults in the jmp, and not in the call. If the
 * return address can be written, but the word below it can't, because the stack ends there, the pop
 * faults. A signal handler sees rsp as at the original call (pb_body_original()). But if it stores
 * another target into the operand of such a call and returns, the jmp faults again.
 *
 * In the same way, a handler that interrupts the jumps after a loop sees where the loop leads.
 */
#include "module/analysis/relocate.h"
#include <Zydis/Zydis.h>
#include <string.h>
#include "abi/analysis_access.h"
#include "base/base.h"

struct state {
	const struct pb_window_in *in;
	struct pb_window_out *out;
	ZydisDecoder decoder;
	ZydisDecodedInstruction insn;
	unsigned off;		/* offset of the instruction in the window */
	unsigned len;		/* length of the code that has been written */
	bool ended;		/* control doesn't fall through the last instruction */
	bool wrote;		/* the code is more than nops */
};

static void put(struct state *s, const void *bytes, unsigned n)
{
	memcpy(s->out->code + s->len, bytes, n);
	s->len += n;
	s->wrote = true;
}

static void put_byte(struct state *s, uint8_t byte)
{
	put(s, &byte, 1);
}

static void fix(struct state *s, uint8_t kind, unsigned off, uint64_t value, unsigned addend)
{
	struct pb_fixup *f = &s->out->fixups[s->out->head.nr_fixups++];

	*f = (struct pb_fixup){ .value = value, .off = (uint8_t)off, .kind = kind,
				.addend = (uint8_t)addend };
}

/* Appends 4 bytes that a fixup fills in later. */
static void put_fixed(struct state *s, uint8_t kind, uint64_t value)
{
	static const uint8_t zero[4];

	fix(s, kind, s->len, value, 0);
	put(s, zero, 4);
}

static void put_jump(struct state *s, uint64_t target)
{
	put_byte(s, 0xe9);
	put_fixed(s, PB_FIX_REL32, target);
}

static void put_pair(struct state *s, unsigned orig)
{
	s->out->pairs[s->out->head.nr_pairs++] =
		(struct pb_pair){ (uint8_t)orig, (uint8_t)s->len };
}

static bool rip_relative(const ZydisDecodedInstruction *i)
{
	return i->raw.modrm.offset && i->raw.modrm.mod == 0 && i->raw.modrm.rm == 5 &&
	       i->raw.disp.size == 32;
}

static uint64_t next_addr(const struct state *s)
{
	return s->in->addr + s->off + s->insn.length;
}

/* Copies the instruction, or a variant of the same length, from `bytes`. Adds a fixup if the
 * instruction is RIP-relative. */
static enum pb_refused copy(struct state *s, const uint8_t *bytes, unsigned length)
{
	unsigned at = s->len;

	if (rip_relative(&s->insn)) {
		if (s->insn.address_width != 64)
			return PB_REFUSED_RELOCATE;
		fix(s, PB_FIX_REL32, at + s->insn.raw.disp.offset,
		    next_addr(s) + (uint64_t)s->insn.raw.disp.value,
		    length - s->insn.raw.disp.offset - 4);
	}
	put(s, bytes, length);
	if (rip_relative(&s->insn))
		memset(s->out->code + at + s->insn.raw.disp.offset, 0, 4);
	return PB_REFUSED_NOT;
}

static void put_return_address(struct state *s)
{
	static const uint8_t movl[] = { 0xc7, 0x44, 0x24, 0x04 };

	put_byte(s, 0x68);
	put_fixed(s, PB_FIX_LO32, next_addr(s));
	put(s, movl, sizeof(movl));
	put_fixed(s, PB_FIX_HI32, next_addr(s));
}

/* Turns `call *r` into `jmp *r` (ff /4), or `call *m` into `push m` (ff /6), and adds the push of
 * the return address. */
static enum pb_refused indirect_call(struct state *s, const uint8_t *bytes)
{
	static const uint8_t pop_below[] = { 0x8f, 0x44, 0x24, 0xf0 };
	static const uint8_t jmp_below[] = { 0xff, 0x64, 0x24, 0xf8 };
	const ZydisDecodedInstruction *i = &s->insn;
	bool reg = i->raw.modrm.mod == 3;
	unsigned modrm = i->raw.modrm.offset;
	uint8_t as[ZYDIS_MAX_INSTRUCTION_LENGTH];
	enum pb_refused refused;

	if (i->opcode != 0xff || i->raw.modrm.reg != 2)
		return PB_REFUSED_RELOCATE;
	/* call *%rsp: the push would change the target */
	if (reg && i->raw.modrm.rm == 4 && !i->raw.rex.B)
		return PB_REFUSED_RELOCATE;
	memcpy(as, bytes, i->length);
	as[modrm] = (uint8_t)((as[modrm] & ~0x38) | (reg ? 4 : 6) << 3);
	if (reg) {
		put_return_address(s);
		return copy(s, as, i->length);
	}
	refused = copy(s, as, i->length);
	put(s, pop_below, sizeof(pop_below));
	put_return_address(s);
	put(s, jmp_below, sizeof(jmp_below));
	return refused;
}

static enum pb_refused call(struct state *s, const uint8_t *bytes)
{
	const ZydisDecodedInstruction *i = &s->insn;

	/* the callee would return into the middle of the patch's jump */
	if (s->off + i->length < s->in->jump_len)
		return PB_REFUSED_CALL;
	if (i->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR ||
	    i->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE)
		return PB_REFUSED_RELOCATE;
	s->ended = true;
	if (!i->raw.imm[0].is_relative)
		return indirect_call(s, bytes);
	put_return_address(s);
	put_jump(s, next_addr(s) + (uint64_t)i->raw.imm[0].value.s);
	return PB_REFUSED_NOT;
}

static enum pb_refused relative(struct state *s, const uint8_t *bytes)
{
	const ZydisDecodedInstruction *i = &s->insn;
	uint64_t target = next_addr(s) + (uint64_t)i->raw.imm[0].value.s;
	uint8_t opcode = i->opcode;

	/* On a branch, prefix 66 has different effects on different processors. VEX branches exist
	 * only on Xeon Phi. */
	if (i->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE ||
	    i->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		return PB_REFUSED_RELOCATE;
	if (i->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && (opcode == 0xe9 || opcode == 0xeb)) {
		put_jump(s, target);
		s->ended = true;
	} else if ((i->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && (opcode & 0xf0) == 0x70) ||
		   (i->opcode_map == ZYDIS_OPCODE_MAP_0F && (opcode & 0xf0) == 0x80)) {
		put_byte(s, 0x0f);
		put_byte(s, 0x80 | (opcode & 0x0f));
		put_fixed(s, PB_FIX_REL32, target);
	} else if (i->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && opcode >= 0xe0 && opcode <= 0xe3) {
		static const uint8_t over[] = { 0x02, 0xeb, 0x05 };

		put(s, bytes, i->length - 1u);	/* prefixes are kept: with prefix 67, the
						 * instruction is a jecxz, or a loop that counts in
						 * ecx */
		put(s, over, sizeof(over));
		put_jump(s, target);
	} else {
		return PB_REFUSED_RELOCATE;	/* xbegin */
	}
	return PB_REFUSED_NOT;
}

/* True if the instruction uses its own address in a way that can't be fixed up, or leaves 64-bit
 * user mode. */
static bool knows_its_place(const ZydisDecodedInstruction *i)
{
	switch (i->mnemonic) {
	case ZYDIS_MNEMONIC_SYSCALL: case ZYDIS_MNEMONIC_SYSENTER:
	case ZYDIS_MNEMONIC_SYSRET: case ZYDIS_MNEMONIC_SYSEXIT:
	case ZYDIS_MNEMONIC_IRET: case ZYDIS_MNEMONIC_IRETD: case ZYDIS_MNEMONIC_IRETQ:
	case ZYDIS_MNEMONIC_UIRET:
		return true;
	default:
		return i->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
	}
}

/* True if the instruction raises an exception in almost every program. (`in` and `out` don't if the
 * program has asked for the ports, and vmfunc doesn't in some virtual machines.) The program uses
 * such an instruction to call a signal handler, and the handler may decode the bytes at the
 * instruction's address. So these bytes must stay as they are. */
static bool always_traps(const ZydisDecodedInstruction *i)
{
	if (i->attributes & ZYDIS_ATTRIB_IS_PRIVILEGED || i->meta.isa_set == ZYDIS_ISA_SET_SVM)
		return true;
	switch (i->meta.category) {
	case ZYDIS_CATEGORY_INTERRUPT: case ZYDIS_CATEGORY_IO: case ZYDIS_CATEGORY_IOSTRINGOP:
	case ZYDIS_CATEGORY_VTX:
		return true;
	default:
		break;
	}
	switch (i->mnemonic) {
	case ZYDIS_MNEMONIC_UD0: case ZYDIS_MNEMONIC_UD1: case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_CLI: case ZYDIS_MNEMONIC_STI: case ZYDIS_MNEMONIC_LGDT:
	case ZYDIS_MNEMONIC_LIDT: case ZYDIS_MNEMONIC_RSM:
		return true;
	default:
		return false;
	}
}

static bool never_falls_through(const ZydisDecodedInstruction *i)
{
	return i->mnemonic == ZYDIS_MNEMONIC_RET || i->mnemonic == ZYDIS_MNEMONIC_JMP;
}

/* True if the instruction is a nop that compilers use as padding. Zydis also calls 0f 0d /r and 0f
 * 19..1e nops, but these fault on some processors. */
static bool is_nop(const ZydisDecodedInstruction *i)
{
	return i->mnemonic == ZYDIS_MNEMONIC_NOP &&
	       i->opcode == (i->opcode_map == ZYDIS_OPCODE_MAP_0F ? 0x1f : 0x90);
}

static const struct pb_nop *hook_call(const struct state *s)
{
	uint64_t addr = s->in->addr + s->off;
	size_t low = pb_bisect(i, 0, s->in->nr_nops, s->in->nops[i].addr < addr);

	return low < s->in->nr_nops && s->in->nops[low].addr == addr ? &s->in->nops[low] : NULL;
}

static bool decode(struct state *s)
{
	return ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&s->decoder, NULL,
		s->in->bytes + s->off, s->in->avail - s->off, &s->insn));
}

static enum pb_refused displace(struct state *s)
{
	const uint8_t *bytes = s->in->bytes + s->off;
	const struct pb_nop *hook = hook_call(s);
	const ZydisDecodedInstruction *i = &s->insn;

	put_pair(s, s->off);
	if (hook && hook->len == i->length) {
		memcpy(s->out->rest + s->off, pb_nop_bytes(hook->len), hook->len);
		return PB_REFUSED_NOT;
	}
	if (is_nop(i))
		return PB_REFUSED_NOT;
	/* an indirect branch may lead to an endbr64 */
	if (i->mnemonic == ZYDIS_MNEMONIC_ENDBR64 && s->off)
		return PB_REFUSED_BRANCH;
	if (always_traps(i))
		return PB_REFUSED_TRAP;
	if (knows_its_place(i))
		return PB_REFUSED_RELOCATE;
	if (i->mnemonic == ZYDIS_MNEMONIC_CALL)
		return call(s, bytes);
	if (i->raw.imm[0].is_relative)
		return relative(s, bytes);
	s->ended = never_falls_through(i);
	return copy(s, bytes, i->length);
}

/* Adds padding to the window until it holds the jump. The padding is never executed: it comes right
 * after an instruction that does not fall through, and windows.c refuses windows with a branch into
 * their jump. Zeros are no padding: they may be data. */
static enum pb_refused pad(struct state *s)
{
	while (s->off < s->in->jump_len) {
		if (s->off >= s->in->avail || s->off >= s->in->room)
			return PB_REFUSED_SHORT;
		uint8_t b = s->in->bytes[s->off];

		if (b == 0xcc)
			s->off++;
		else if (decode(s) && is_nop(&s->insn))
			s->off += s->insn.length;
		else
			return PB_REFUSED_SHORT;
	}
	return PB_REFUSED_NOT;
}

/* True if a branch or a RIP-relative operand of the window refers to the window's own bytes after
 * the first. The window's start is allowed: like the original, the copy refers to the start. */
static bool refers_inside(const struct state *s)
{
	for (unsigned i = 0; i < s->out->head.nr_fixups; i++) {
		const struct pb_fixup *f = &s->out->fixups[i];

		if (f->kind == PB_FIX_REL32 && f->value > s->in->addr &&
		    f->value - s->in->addr < s->off)
			return true;
	}
	return false;
}

enum pb_refused pb_window_make(const struct pb_window_in *in, struct pb_window_out *out)
{
	struct state s = { .in = in, .out = out };
	enum pb_refused refused = PB_REFUSED_NOT;

	memset(out, 0, sizeof(*out));
	ZydisDecoderInit(&s.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	while ((s.off < in->jump_len || s.off < in->reach) && !s.ended) {
		if (s.off >= in->room)
			return PB_REFUSED_CROSSES;
		if (s.off >= in->avail || !decode(&s))
			return PB_REFUSED_DECODE;
		if (s.off + s.insn.length > in->room)
			return PB_REFUSED_CROSSES;
		if (s.off + s.insn.length > PB_WINDOW_MAX)
			return PB_REFUSED_RELOCATE;
		memcpy(out->rest + s.off, in->bytes + s.off, s.insn.length);
		refused = displace(&s);
		if (refused)
			return refused;
		s.off += s.insn.length;
	}
	unsigned code_end = s.off;

	refused = pad(&s);
	if (refused)
		return refused;
	if (s.off > in->room)
		return PB_REFUSED_CROSSES;
	if (refers_inside(&s))
		return PB_REFUSED_BRANCH;
	memcpy(out->orig, in->bytes, s.off);
	memcpy(out->rest + code_end, in->bytes + code_end, s.off - code_end);
	out->all_nops = !s.wrote;
	out->padded = s.off > code_end;
	if (!s.ended) {
		put_pair(&s, s.off);
		put_jump(&s, in->addr + s.off);
	}
	out->head.len = (uint8_t)s.len;
	out->head.window_len = (uint8_t)s.off;
	return s.len > PB_RECIPE_MAX ? PB_REFUSED_RELOCATE : PB_REFUSED_NOT;
}

size_t pb_window_store(const struct pb_window_out *w, uint8_t *to)
{
	const struct { const void *v; size_t n; } part[] = {
		{ &w->head, sizeof(w->head) },
		{ w->fixups, w->head.nr_fixups * sizeof(w->fixups[0]) },
		{ w->pairs, w->head.nr_pairs * sizeof(w->pairs[0]) },
		{ w->code, w->head.len },
		{ w->orig, w->head.window_len },
		{ w->rest, w->head.window_len },
	};
	size_t size = 0;

	for (size_t i = 0; i < sizeof(part) / sizeof(part[0]); i++) {
		memcpy(to + size, part[i].v, part[i].n);
		size += part[i].n;
	}
	return size;
}
