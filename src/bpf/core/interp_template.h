/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The interpreter's body: one handler for each operation, under its label. interp.c includes this
 * file inside interpret(). i is the instruction, and r are the registers. DST, SRC and IMM are the
 * operands. NEXT and GO(by) end a handler. Byte-order operations assume a little-endian machine.
 */
#pragma once

/* Arithmetic, with IMM or SRC. The first expression is for 64 bits, the second expression for 32
 * bits. */
	ALU(ADD, d + s, d + s)
	ALU(SUB, d - s, d - s)
	ALU(MUL, d * s, d * s)
	ALU(DIV, s ? d / s : 0, s ? d / s : 0)
	ALU(SDIV, (uint64_t)sdiv64((int64_t)d, (int64_t)s), sdiv32((int32_t)d, (int32_t)s))
	ALU(OR, d | s, d | s)
	ALU(AND, d & s, d & s)
	ALU(LSH, d << (s & 63), d << (s & 31))
	ALU(RSH, d >> (s & 63), d >> (s & 31))
	ALU(MOD, s ? d % s : d, s ? d % s : d)
	ALU(SMOD, (uint64_t)smod64((int64_t)d, (int64_t)s), smod32((int32_t)d, (int32_t)s))
	ALU(XOR, d ^ s, d ^ s)
	ALU(ARSH, (uint64_t)((int64_t)d >> (s & 63)), (int32_t)d >> (s & 31))
	MOV64_K: DST = IMM; NEXT;
	MOV64_X: DST = SRC; NEXT;
	MOV32_K: DST = (uint32_t)i->imm; NEXT;
	MOV32_X: DST = (uint32_t)SRC; NEXT;
	MOVSX64_8: DST = (uint64_t)(int64_t)(int8_t)SRC; NEXT;
	MOVSX64_16: DST = (uint64_t)(int64_t)(int16_t)SRC; NEXT;
	MOVSX64_32: DST = (uint64_t)(int64_t)(int32_t)SRC; NEXT;
	MOVSX32_8: DST = (uint32_t)(int8_t)SRC; NEXT;
	MOVSX32_16: DST = (uint32_t)(int16_t)SRC; NEXT;
	NEG64: DST = -DST; NEXT;
	NEG32: DST = (uint32_t)-(uint32_t)DST; NEXT;
	LE16: DST = (uint16_t)DST; NEXT;
	LE32: DST = (uint32_t)DST; NEXT;
	LE64: NEXT;
	BE16: BSWAP16: DST = __builtin_bswap16((uint16_t)DST); NEXT;
	BE32: BSWAP32: DST = __builtin_bswap32((uint32_t)DST); NEXT;
	BE64: BSWAP64: DST = __builtin_bswap64(DST); NEXT;

/* Memory. */
	SIZES(MEMORY)
	MEMORY(DW, uint64_t, int64_t)
	SIZES(SIGNED)
	PROBE_DW: DST = pb_bpf_probe_DW(SRC + (uint64_t)(int64_t)i->off); NEXT;
	ATOMIC(ADD, fetch_add)
	ATOMIC(OR, fetch_or)
	ATOMIC(AND, fetch_and)
	ATOMIC(XOR, fetch_xor)
	XCHG_W: SRC = __atomic_exchange_n(AT(uint32_t), (uint32_t)SRC, __ATOMIC_SEQ_CST); NEXT;
	XCHG_DW: SRC = __atomic_exchange_n(AT(uint64_t), SRC, __ATOMIC_SEQ_CST); NEXT;
	CMPXCHG_W: {
		uint32_t old = (uint32_t)r[0];
		__atomic_compare_exchange_n(AT(uint32_t), &old, (uint32_t)SRC, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		r[0] = old;
		NEXT;
	}
	CMPXCHG_DW: {
		uint64_t old = r[0];
		__atomic_compare_exchange_n(AT(uint64_t), &old, SRC, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
		r[0] = old;
		NEXT;
	}

/* Jumps. Conditional jumps compare with IMM or SRC, in 64 or 32 bits. */
	NOSPEC: pb_cpu_no_speculation(); NEXT;
	JA: GO(i->off);
	JAL: GO(i->imm);
	IF(JEQ, uint64_t, uint32_t, d == s)
	IF(JNE, uint64_t, uint32_t, d != s)
	IF(JGT, uint64_t, uint32_t, d > s)
	IF(JGE, uint64_t, uint32_t, d >= s)
	IF(JLT, uint64_t, uint32_t, d < s)
	IF(JLE, uint64_t, uint32_t, d <= s)
	IF(JSET, uint64_t, uint32_t, d & s)
	IF(JSGT, int64_t, int32_t, d > s)
	IF(JSGE, int64_t, int32_t, d >= s)
	IF(JSLT, int64_t, int32_t, d < s)
	IF(JSLE, int64_t, int32_t, d <= s)

/* A lookup in an array (is_lookup() in interp.c). */
	ARRAY_LOOKUP: {
		uint64_t index = LOADED(uint32_t);
		if (index < (uint64_t)i[1].imm) {
			*(uint64_t *)((char *)r + i[2].dst) = (uint64_t)i[2].imm;
			DST = (uint64_t)i[2].imm + index * IMM;
		} else {
			DST = 0;
		}
		i += LOOKUP_LENGTH - 1;
		NEXT;
	}

/* Calls. */
	LD_IMM64: DST = IMM; GO(1);
	CALL:
	r[0] = prog->calls[i->imm](r[1], r[2], r[3], r[4], r[5], run);
	NEXT;
	CALL_PC:
	*frame++ = (struct frame){ i, { r[6], r[7], r[8], r[9] }, r[10] };
	r[10] -= (uint64_t)i->off;
	GO(i->imm);
	TAIL_CALL:
	enter = pb_bpf_tail_call((struct pb_bpf_map *)r[2], (uint32_t)r[3], run);
	if (!enter)
		NEXT;
	if (frame == frames && !run->prog->jited) {
		prog = run->prog;
		i = prog->code;
		r[1] = (uint64_t)run->ctx;
		goto *labels[i->op];
	}
	r[0] = enter(run->ctx, run);
	run->prog = prog;
	/* fall through */
	EXIT:
	if (frame == frames)
		return r[0];
	frame--;
	i = frame->back;
	for (int k = 0; k < 4; k++)
		r[6 + k] = frame->callee_saved[k];
	r[10] = frame->fp;
	NEXT;
