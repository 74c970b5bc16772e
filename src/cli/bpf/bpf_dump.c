/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `patchbay bpf dump`: prints instructions as bpftool does, or the native code that is made from
 * them. */
#include <Zydis/Zydis.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/core/disasm.h"
#include "bpf/helper/helper.h"
#include "cli/bpf/bpf_common.h"

enum { OPT_OPCODES = 0x3200 };

struct dump {
	struct bpf_session s;
	bool jited, opcodes;
};

static const struct argp_option options[] = {
	{ "opcodes", OPT_OPCODES, NULL, 0, "Also show the bytes", 2 },
	{ 0 }
};

static error_t bpf_dump_parse(int key, char *arg, struct argp_state *state)
{
	struct dump *d = state->input;

	switch (key) {
	case ARGP_KEY_INIT: state->child_inputs[0] = &d->s; return 0;
	case OPT_OPCODES: d->opcodes = true; return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_child children[] = { { &bpf_session_argp }, { 0 } };
static const struct argp argp = {
	options, bpf_dump_parse, "[xlated|jited] [OBJECT [PROGRAM...] | HEX...]",
	"Shows a program's instructions (xlated), or the native code after verification (jited).",
	children
};

static const char *helper_name(void *arg, int32_t id)
{
	return pb_bpf_helper_of((uint32_t)id)->name;
}

static bool show_imm64(void *arg, struct pb_bpf_text *t, const struct bpf_insn *i, uint64_t imm)
{
	switch (i->src_reg) {
	case BPF_PSEUDO_MAP_FD: case BPF_PSEUDO_MAP_IDX:
		pb_bpf_printf(t, "map[id:%d]", i->imm);
		return true;
	case BPF_PSEUDO_MAP_VALUE: case BPF_PSEUDO_MAP_IDX_VALUE:
		pb_bpf_printf(t, "map[id:%d][0]+%d", i->imm, i[1].imm);
		return true;
	case BPF_PSEUDO_FUNC:
		pb_bpf_printf(t, "subprog[%+d]", i->imm);
		return true;
	}
	return false;
}

static void show_bytes(const void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		printf(" %02x", ((const uint8_t *)p)[i]);
	putchar('\n');
}

static void show_xlated(const struct dump *d, const struct bpf_unit *u)
{
	static const struct pb_bpf_names names = { .helper = helper_name, .imm64 = show_imm64 };
	char buf[256];

	for (uint32_t i = 0; i < u->nr; i++) {
		bool wide = pb_bpf_decode(&u->insns[i]) == PB_BPF_OP_LD_IMM64 && i + 1 < u->nr;
		struct pb_bpf_text t = { .buf = buf, .size = sizeof(buf) };

		buf[0] = 0;
		/* if the last instruction is the first half of a 64-bit load, it can't be
		 * disassembled: the second half is missing */
		if (wide || pb_bpf_decode(&u->insns[i]) != PB_BPF_OP_LD_IMM64)
			pb_bpf_disasm(&t, &u->insns[i], &names);
		printf("%4u: %s\n", i, buf);
		if (d->opcodes) {
			printf("      ");
			show_bytes(&u->insns[i], wide ? 16 : 8);
		}
		i += wide;
	}
}

static void show_code(const struct dump *d, const struct pb_bpf_prog *p)
{
	const uint8_t *code = (const uint8_t *)(uintptr_t)p->jited;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction insn;
	ZydisFormatter formatter;
	ZydisDecoder decoder;
	char text[256];

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_ATT);
	for (uint32_t at = 0; at < p->jited_len; at += insn.length) {
		if (ZYAN_FAILED(ZydisDecoderDecodeFull(&decoder, code + at, p->jited_len - at,
						       &insn, operands))) {
			printf("%4x:\t(bad)\n", at);
			return;
		}
		/* jump targets are printed as offsets from the start of the code */
		ZydisFormatterFormatInstruction(&formatter, &insn, operands,
						insn.operand_count_visible, text, sizeof(text), at,
						NULL);
		printf("%4x:\t%s\n", at, text);
		if (d->opcodes) {
			putchar('\t');
			show_bytes(code + at, insn.length);
		}
	}
}

static int show_jited(const struct dump *d, const char *name, int err, const char *why,
		      const struct pb_bpf_prog *p)
{
	if (err)
		return pb_error(d->s.command, "%s: rejected: %s", name, why);
	if (!p->jited)
		return pb_error(d->s.command, "%s: it has no native form here", name);
	show_code(d, p);
	return 0;
}

static int dump_prog(struct dump *d, uint32_t nr)
{
	const struct pb_bpf_object_prog *p = &d->s.object->progs[nr];
	struct bpf_unit u = { .insns = p->insns, .nr = p->nr };
	struct bpf_loaded l;
	const char *why;
	int err;

	printf("%s:\n", p->name);
	if (d->jited) {
		err = bpf_object_verify(&d->s, nr, &l, &why);
		return show_jited(d, p->name, err, why, l.prog);
	}
	if (p->why)
		return pb_error(d->s.command, "%s: %s", p->name, p->why);
	show_xlated(d, &u);
	return 0;
}

static int dump_object(struct dump *d, char **args, int nr_args)
{
	int ret = bpf_read_object(&d->s, args[0]);
	bool lacks;

	if (ret)
		return ret;
	lacks = bpf_object_lacks(&d->s, args[0], args + 1, nr_args - 1);
	ret = bpf_make_object(&d->s, args[0]);
	if (ret)
		return ret;
	for (uint32_t i = 0; i < d->s.object->nr_progs; i++)
		if (bpf_object_wants(&d->s, i, args + 1, nr_args - 1))
			ret |= dump_prog(d, i);
	return lacks ? 1 : ret;
}

static int dump_raw(struct dump *d, char **args, int nr_args)
{
	struct bpf_unit u = { .name = "program", .gpl = true, .attach_type = d->s.attach_type };
	struct bpf_insn *insns;
	struct bpf_loaded l;
	int ret = bpf_session_maps(&d->s), err;

	u.type = bpf_type_of(d->s.type ? d->s.type : "socket_filter");
	if (!u.type) {
		pb_error(d->s.command, "-t %s: no such type", d->s.type);
		return 2;
	}
	if (!ret)
		ret = bpf_read_insns(&d->s, args, nr_args, &insns, &u.nr);
	if (ret)
		return 2;
	u.insns = insns;
	if (d->jited) {
		err = bpf_session_load(&d->s, &u, &l);
		ret = show_jited(d, u.name, err, err ? bpf_session_reason(&d->s) : NULL, l.prog);
	} else {
		show_xlated(d, &u);
	}
	free(insns);
	return ret;
}

static int bpf_dump_run(int argc, char **argv)
{
	static struct dump d;
	char **args;
	int n, ret;

	bpf_session_init(&d.s, "bpf dump");
	if (bpf_session_parse(&d.s, &argp, argc, argv, &d))
		return 2;
	args = d.s.args;
	n = d.s.nr_args;
	if (n && (!strcmp(*args, "xlated") || !strcmp(*args, "jited"))) {
		d.jited = !strcmp(*args++, "jited");
		n--;
	}
	ret = n && bpf_is_object(*args) ? dump_object(&d, args, n) : dump_raw(&d, args, n);
	bpf_session_end(&d.s);
	return fflush(stdout) ? 1 : ret;
}

const struct pb_command bpf_command_dump = {
	.name = "dump", .summary = "Show instructions or native code", .argp = &argp,
	.run = bpf_dump_run,
};
