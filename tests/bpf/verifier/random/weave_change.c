/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* A part of the generator of weave.h. It changes a finished program a little, and collects the
 * program's constants. */
#include "weave_priv.h"

static void change_code(struct weave *w, struct bpf_insn *i)
{
	unsigned class = BPF_CLASS(i->code);

	switch (class) {
	case BPF_JMP: case BPF_JMP32:
		if (BPF_OP(i->code) == BPF_JA || BPF_OP(i->code) == BPF_CALL ||
		    BPF_OP(i->code) == BPF_EXIT)
			return;
		if (chance(w, 40))
			i->code ^= BPF_JMP ^ BPF_JMP32;
		else
			i->code = (uint8_t)((i->code & 15) | jumps[pick(w, 11)]);
		break;
	case BPF_ALU: case BPF_ALU64:
		if (BPF_OP(i->code) == BPF_END || BPF_OP(i->code) == BPF_NEG)
			return;
		if (chance(w, 60))
			i->code ^= BPF_ALU ^ BPF_ALU64;
		else
			i->code = (uint8_t)((i->code & 15) | (pick(w, 13) << 4));
		break;
	case BPF_LDX:
		if (chance(w, 40))
			i->code ^= BPF_MEM ^ BPF_MEMSX;
		else
			i->code = (uint8_t)((i->code & ~0x18) | sizes[pick(w, 4)]);
		break;
	case BPF_ST: case BPF_STX:
		i->code = (uint8_t)((i->code & ~0x18) | sizes[pick(w, 4)]);
		break;
	}
}

void weave_change(struct gen_program *p, uint64_t seed)
{
	struct weave all = { .seed = seed ^ 0x5bf0363546ull }, *w = &all;
	int at = pick(w, p->nr);
	struct bpf_insn *i = &p->insns[at];

	p->changed = true;
	if (i->code == (BPF_LD | BPF_IMM | BPF_DW) || !i->code)
		return;
	switch (pick(w, 10)) {
	case 0: case 1:
		i->imm += chance(w, 50) ? 1 : -1;
		break;
	case 2:
		if (BPF_CLASS(i->code) != BPF_JMP && BPF_CLASS(i->code) != BPF_JMP32)
			i->off = (int16_t)(i->off + (chance(w, 50) ? 1 : -1));
		else if (chance(w, 20))
			i->off = (int16_t)(i->off + pick(w, 5) - 2);
		break;
	case 3: case 4: case 5:
		change_code(w, i);
		break;
	case 6:
		if (i->code != (BPF_JMP | BPF_EXIT))
			*i = (struct bpf_insn){ .code = BPF_JMP | BPF_JA };
		break;
	case 7:
		i->dst_reg = (unsigned)pick(w, 11) & 15;
		break;
	case 8:
		i->src_reg = (unsigned)pick(w, 11) & 15;
		break;
	default:
		i->imm = (int32_t)weave_imm(w);
	}
}

int weave_words(const struct gen_program *p, uint64_t *words, int room)
{
	int n = 0;

	for (int i = 0; i < p->nr && n + 3 <= room; i++) {
		const struct bpf_insn *in = &p->insns[i];
		unsigned class = BPF_CLASS(in->code);
		uint64_t v = (uint64_t)(int64_t)in->imm;

		if (in->code == (BPF_LD | BPF_IMM | BPF_DW) && !in->src_reg) {
			v = (uint64_t)(uint32_t)in[1].imm << 32 | (uint32_t)in->imm;
			i++;
		} else if ((class != BPF_JMP && class != BPF_JMP32 && class != BPF_ALU &&
			    class != BPF_ALU64) ||
			   BPF_SRC(in->code) || BPF_OP(in->code) == BPF_JA ||
			   BPF_OP(in->code) == BPF_CALL) {
			continue;
		}
		words[n++] = v;
		words[n++] = v + 1;
		words[n++] = v - 1;
	}
	return n;
}
