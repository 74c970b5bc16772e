/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs our verifier on the kernel's table of verifier tests, and compares verdicts and messages.
 * Each test runs with privileges. Tests of socket filters and CGROUP_SKB programs also run without
 * privileges. Accepted programs run on both engines, and their results are compared with the table.
 *
 *   kernel_tests [-v] [WORD-OF-A-NAME]
 *
 * Includes the files that make_table extracted from Debian's package linux-source-6.1. Prints
 * differences and counts. Exit status 1: a verdict, a message or a result differs, or the verifier
 * leaks memory. kernel_changes_table.h lists tests for which a later kernel's verdict or message
 * differs from the table.
 */
#include "kernel_changes_table.h"
#include "kernel_tests.h"

static struct bpf_test tests[] = {
#define FILL_ARRAY
#include "tests.h"
#undef FILL_ARRAY
};

struct table_sum table_sum;
static int loud;

/* ---- memory of the verifier ------------------------------------------------------------------ */

long table_allocated;

static void *mem_alloc(struct pb_bpf_mem *mem, size_t size)
{
	table_allocated += (long)size;
	return calloc(1, size);
}

static void mem_free(struct pb_bpf_mem *mem, void *p, size_t size)
{
	table_allocated -= (long)size;
	free(p);
}

struct pb_bpf_mem table_mem = { mem_alloc, mem_free };

/* ---- functions, by the test's BTF ------------------------------------------------------------ */

static struct btf *btf_of(const struct bpf_test *t)
{
	uint32_t words = 0, types, size;
	struct btf_header *h;
	struct btf *btf;
	char *raw;

	if (!t->btf_types[0])
		return NULL;
	while (words < MAX_BTF_TYPES && t->btf_types[words] != BTF_END_RAW)
		words++;
	types = words * 4;
	size = (uint32_t)sizeof *h + types + MAX_BTF_STRINGS;
	raw = calloc(1, size);
	h = (struct btf_header *)raw;
	*h = (struct btf_header){ .magic = BTF_MAGIC, .version = BTF_VERSION, .hdr_len = sizeof *h,
				  .type_len = types, .str_off = types, .str_len = MAX_BTF_STRINGS };
	memcpy(raw + sizeof *h, t->btf_types, types);
	memcpy(raw + sizeof *h + types, t->btf_strings, MAX_BTF_STRINGS);
	btf = btf__new(raw, size);
	free(raw);
	return btf;
}

static void describe(const struct btf *btf, const struct bpf_func_info *info, struct pb_bpf_func *f)
{
	const struct btf_type *t = btf ? btf__type_by_id(btf, info->type_id) : NULL, *proto;

	*f = (struct pb_bpf_func){ .insn = info->insn_off, .name = "" };
	if (!t)
		return;
	proto = btf__type_by_id(btf, t->type);
	f->name = btf__name_by_offset(btf, t->name_off);
	f->global = BTF_INFO_VLEN(t->info) == BTF_FUNC_GLOBAL;
	f->returns_void = proto && !proto->type;
	f->nr_args = proto ? BTF_INFO_VLEN(proto->info) : 0;
	for (uint32_t i = 0; i < f->nr_args && i < 5; i++) {
		const struct btf_param *p = (const struct btf_param *)(proto + 1) + i;
		const struct btf_type *of = btf__type_by_id(btf, p->type);

		f->args[i].kind = of && BTF_INFO_KIND(of->info) == BTF_KIND_PTR ? PB_BPF_FUNC_CTX :
				  PB_BPF_FUNC_SCALAR;
	}
}

/* ---- what the table expects ------------------------------------------------------------------ */

/* Returns whether the test has an instruction of cpu v4. Linux 6.1 refuses this instruction, but
 * Patchbay must accept it. */
static bool newer_instruction(const struct bpf_test *t)
{
	return !strcmp(t->descr, "invalid 64-bit BPF_END");
}

/* Returns whether the test reads unwritten stack. Linux 6.1 allows this read if the loader is
 * privileged. But some of Debian's packages have older tests, which expect a refusal. */
static bool reads_uninit_stack(const struct bpf_test *t)
{
	static const char *const names[] = { "Can't use cmpxchg on uninit memory",
					     "uninitialized stack1",
					     "uninitialized stack2",
					     "raw_stack: no skb_load_bytes" };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (!strcmp(t->descr, names[i]))
			return true;
	return false;
}

static const struct change *change_of(const struct bpf_test *t)
{
	for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++)
		if (!strcmp(t->descr, changes[i].descr))
			return &changes[i];
	return NULL;
}

/* Replaces words in a message of Linux 6.1 with the words of Linux 6.12. */
static const char *newer_words(const char *message)
{
	static const char *const words[][2] = {
		{ "(0x0; 0x0)", "0" }, { "alloc_mem", "ringbuf_mem" },
		{ "unknown func", "program of this type cannot use helper" }
	};
	static char out[2000];

	for (size_t i = 0; message && i < sizeof words / sizeof words[0]; i++) {
		const char *at = strstr(message, words[i][0]);

		if (!at)
			continue;
		snprintf(out, sizeof out, "%.*s%s%s", (int)(at - message), message, words[i][1],
			 at + strlen(words[i][0]));
		return out;
	}
	return message;
}

static int expected_of(const struct bpf_test *t, bool privileged)
{
	const struct change *c = change_of(t);

	if (newer_instruction(t) || (privileged && reads_uninit_stack(t)) ||
	    (c && c->accepted && (privileged || !c->privileged)))
		return ACCEPT;
	return !privileged && t->result_unpriv != UNDEF ? t->result_unpriv : t->result;
}

static const char *message_of(const struct bpf_test *t, bool privileged)
{
	const struct change *c = change_of(t);

	if (c && c->message)
		return c->unpriv && !privileged ? c->unpriv : c->message;
	return newer_words(!privileged && t->errstr_unpriv ? t->errstr_unpriv : t->errstr);
}

/* ---- one test -------------------------------------------------------------------------------- */

static char text[1 << 24];

/* Returns whether the log has the tab-separated pieces of `wanted`, in this order. */
static bool has_message(const char *log, const char *wanted)
{
	for (;;) {
		const char *end = strchrnul(wanted, '\t');
		char piece[300];

		snprintf(piece, sizeof piece, "%.*s", (int)(end - wanted), wanted);
		log = strstr(log, piece);
		if (!log)
			return false;
		log += strlen(piece);
		if (!*end)
			return true;
		wanted = end + 1;
	}
}

static int length_of(const struct bpf_insn *insns)
{
	int n = MAX_INSNS - 1;

	while (n > 0 && !insns[n].code && !insns[n].imm)
		n--;
	return n + 1;
}

/* One verification of a test, and its result. */
struct attempt {
	const struct bpf_test *t;
	bool privileged, good, said;	/* good: the verdict is right; said: the message is right */
	int expected, err;
	const char *message;
	struct btf *btf;
	struct pb_bpf_text log;
	struct pb_bpf_map *list[FIRST_FD + MAX_NR_MAPS];
	struct pb_bpf_func funcs[MAX_FUNC_INFOS];
	struct pb_bpf_verify v;
};

static uint32_t type_of(const struct bpf_test *t)
{
	return t->prog_type ? t->prog_type : BPF_PROG_TYPE_SOCKET_FILTER;
}

static void prepare(struct attempt *a)
{
	const struct bpf_test *t = a->t;

	a->expected = expected_of(t, a->privileged);
	a->message = message_of(t, a->privileged);
	a->log = (struct pb_bpf_text){ .buf = text, .size = sizeof text };
	a->btf = btf_of(t);
	a->v = (struct pb_bpf_verify){
		.type = pb_bpf_type_of(type_of(t)), .attach_type = t->expected_attach_type,
		.caps = a->privileged ? PB_BPF_CAP_ALL : 0, .gpl = true,
		.insns = t->fill_insns ? t->fill_insns : t->insns,
		.nr = (uint32_t)(t->fill_insns ? t->prog_len : length_of(t->insns)),
		.maps = a->list, .nr_maps = FIRST_FD + MAX_NR_MAPS, .log = &a->log,
		.mem = &table_mem,
		.log_level = loud > 1 ? 2 : loud ? 1 : a->expected == VERBOSE_ACCEPT ? 2 : 4,
	};
	text[0] = 0;
	a->v.flags = (t->flags & F_LOAD_WITH_STRICT_ALIGNMENT ? BPF_F_STRICT_ALIGNMENT : 0) |
		     (t->flags & F_NEEDS_EFFICIENT_UNALIGNED_ACCESS ? BPF_F_ANY_ALIGNMENT : 0) |
		     (t->flags & ~3 ? t->flags : 0);
	for (int i = 0; i < MAX_NR_MAPS; i++)
		a->list[FIRST_FD + i] = &table_maps[i];
	for (int i = 0; i < t->func_info_cnt; i++)
		describe(a->btf, &t->func_info[i], &a->funcs[i]);
	if (t->func_info_cnt) {
		a->v.funcs = a->funcs;
		a->v.nr_funcs = (uint32_t)t->func_info_cnt;
	}
}

static void count(const struct attempt *a)
{
	const struct bpf_test *t = a->t;

	table_sum.verdicts++;
	table_sum.good_verdicts += a->good;
	*(a->expected == ACCEPT ? &table_sum.accepted :
	  a->expected == REJECT ? &table_sum.refused : &table_sum.verbose) += 1;
	if (a->expected != ACCEPT && a->message) {
		table_sum.messages++;
		table_sum.good_messages += a->good && a->said;
	}
	if (a->privileged && t->insn_processed && a->good) {
		table_sum.counts++;
		table_sum.good_counts += a->v.stats.insns == t->insn_processed;
	}
}

/* Prints the result if it differs from the table, or if the user wants all results. */
static void print(const struct attempt *a)
{
	const struct bpf_test *t = a->t;
	char *end = text + strlen(text);

	if (a->good && a->said && !loud &&
	    !(a->privileged && t->insn_processed && a->v.stats.insns != t->insn_processed))
		return;
	printf("%s%s: \"%s\": expected %s \"%s\" (%u insns), is %d (%u insns)\n",
	       !a->good ? "VERDICT" : !a->said ? "message" : "ok",
	       a->privileged ? "" : " (unprivileged)", t->descr,
	       a->expected == REJECT ? "refusal" : "acceptance", a->message ? a->message : "",
	       t->insn_processed, a->err, a->v.stats.insns);
	if (!loud && end - text > 600)
		printf("...%s\n", end - 600);
	else
		printf("%s\n", text);
}

static void run(struct bpf_test *t, bool privileged)
{
	struct attempt a = { .t = t, .privileged = privileged };

	prepare(&a);
	table_open_maps();
	if (*t->fixup_prog1)
		table_fill_prog_array(type_of(t), 0, (const uint32_t[]){ 0, 1, 2 });
	if (*t->fixup_prog2)
		table_fill_prog_array(type_of(t), 1, (const uint32_t[]){ 7, 1, 2 });
	a.err = pb_bpf_verify(&a.v);
	a.good = (a.expected == REJECT) == (a.err < 0);
	a.said = a.expected == ACCEPT || !a.message || has_message(text, a.message);
	count(&a);
	print(&a);
	/* the table has no results for programs that it expects to be refused */
	if (!a.err && a.good && t->runs >= 0 && !(reads_uninit_stack(t) && t->result == REJECT) &&
	    (t->result != REJECT || !change_of(t)))
		table_run(t, &a.v, privileged);
	pb_bpf_facts_free(&table_mem, a.v.facts);
	table_close_maps();
	if (table_allocated) {
		printf("LEAK: %ld bytes in \"%s\"\n", table_allocated, t->descr);
		table_sum.good_verdicts = -1000000;
		table_allocated = 0;
	}
	btf__free(a.btf);
}

static bool calls_kernel(const struct bpf_test *t)
{
	for (int i = 0; i < length_of(t->insns); i++)
		if (t->insns[i].code == (BPF_JMP | BPF_CALL) &&
		    t->insns[i].src_reg == BPF_PSEUDO_KFUNC_CALL)
			return true;
	return t->fixup_kfunc_btf_id[0].kfunc;
}

static bool ours(const struct bpf_test *t)
{
	const struct pb_bpf_type *p = pb_bpf_type_of(type_of(t));

	return p && type_of(t) != BPF_PROG_TYPE_SCHED_ACT && !calls_kernel(t);
}

int main(int argc, char **argv)
{
	const char *word = NULL;

	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "-v"))
			loud++;
		else
			word = argv[i];
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
		struct bpf_test *t = &tests[i];

		if (!ours(t) || (word && !strstr(t->descr, word)))
			continue;
		if (t->fill_helper) {
			t->fill_insns = calloc(MAX_TEST_INSNS, sizeof *t->fill_insns);
			t->fill_helper(t);
		}
		table_fix_up(t, t->insns);
		table_sum.tests++;
		if (!t->prog_type || t->prog_type == BPF_PROG_TYPE_SOCKET_FILTER ||
		    t->prog_type == BPF_PROG_TYPE_CGROUP_SKB)
			run(t, false);
		run(t, true);
		free(t->fill_insns);
	}
	printf("%d of %zu tests, %d verdicts (%d accepted, %d refused, %d with a log): "
	       "%d as the table's; %d of %d messages; %d of %d numbers of instructions looked at\n",
	       table_sum.tests, sizeof tests / sizeof *tests, table_sum.verdicts,
	       table_sum.accepted, table_sum.refused, table_sum.verbose, table_sum.good_verdicts,
	       table_sum.good_messages, table_sum.messages, table_sum.good_counts,
	       table_sum.counts);
	printf("%d programs run on both engines: %d of %d runs return what the table says; "
	       "%d have helpers or maps of the kernel alone, "
	       "%d runs have no meaning without a context\n",
	       table_sum.runnable, table_sum.good_runs, table_sum.runs, table_sum.kernel_only,
	       table_sum.not_run);
	return table_sum.good_verdicts != table_sum.verdicts ||
	       table_sum.good_messages != table_sum.messages ||
	       !table_sum.runs || table_sum.good_runs != table_sum.runs;
}
