/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs our verifier on the kernel's table of verifier tests, and compares verdicts and messages.
 * Each test runs with privileges. Tests of socket filters and CGROUP_SKB programs also run without
 * privileges. Accepted programs run on both engines, and their results are compared with the table.
 *
 *   kernel_table [-v] [WORD-OF-A-NAME]
 *
 * Includes the files that make_table extracted from the installed package. Prints differences and
 * counts. Exit status 1: a verdict, a message or a result differs, or the verifier leaks memory.
 * `changes` lists the tests for which Linux 6.12 has another verdict or message than the table.
 */
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/btf.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/types.h>
#include <bpf/btf.h>
typedef __u8 u8;
typedef __u32 u32;
typedef __u64 u64;
#ifndef offsetofend
#define offsetofend(type, member) (offsetof(type, member) + sizeof(((type *)0)->member))
#endif
#include "bpf_rand.h"
#include "test_btf.h"
#include "table.h"
static struct bpf_test tests[] = {
#define FILL_ARRAY
#include "tests.h"
#undef FILL_ARRAY
};

#include "bpf/map/map_file.h"
#include "bpf/map/map_sys.h"
#include "bpf/run/fixup.h"
#include "bpf/run/test_run.h"
#include "bpf/verifier/verify.h"

static int loud;

/* ---- memory of the verifier; the count shows leaks ---------------------------------- */

static long allocated;

static void *mem_alloc(struct pb_bpf_mem *mem, size_t size)
{
	allocated += (long)size;
	return calloc(1, size);
}

static void mem_free(struct pb_bpf_mem *mem, void *p, size_t size)
{
	allocated -= (long)size;
	free(p);
}

static struct pb_bpf_mem mem = { mem_alloc, mem_free };

/* ---- maps; if Patchbay has the type, the map is real ---------------------------------- */

#define MAP(type_, key, value, max, flags_, ...) { \
	.attr = { (type_), (key), (value), (max), (flags_) }, .name = "test_map", .cpu_slots = 1, \
	.types = { .spin_lock_off = -1, .timer_off = -1, __VA_ARGS__ } }

static const struct pb_bpf_map_spec specs[MAX_NR_MAPS] = {
	MAP(BPF_MAP_TYPE_HASH, 8, 8, 1, BPF_F_NO_PREALLOC),
	MAP(BPF_MAP_TYPE_HASH, 8, sizeof(struct test_val), 1, BPF_F_NO_PREALLOC),
	MAP(BPF_MAP_TYPE_HASH, 8, sizeof(struct other_val), 1, BPF_F_NO_PREALLOC),
	MAP(BPF_MAP_TYPE_ARRAY, 4, sizeof(struct test_val), 1, 0),
	MAP(BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 4, 0),
	MAP(BPF_MAP_TYPE_PROG_ARRAY, 4, 4, 8, 0),
	{ .attr = { BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, 1, 0 },
	  .inner = { BPF_MAP_TYPE_ARRAY, 4, 4, 1, 0 },
	  .types = { .spin_lock_off = -1, .timer_off = -1 }, .cpu_slots = 1 },
	MAP(BPF_MAP_TYPE_CGROUP_STORAGE, 16, TEST_DATA_LEN, 0, 0),
	MAP(BPF_MAP_TYPE_PERCPU_CGROUP_STORAGE, 16, TEST_DATA_LEN, 0, 0),
	MAP(BPF_MAP_TYPE_SOCKMAP, 4, 4, 1, 0),
	MAP(BPF_MAP_TYPE_SOCKHASH, 4, 4, 1, 0),
	MAP(BPF_MAP_TYPE_XSKMAP, 4, 4, 1, 0),
	MAP(BPF_MAP_TYPE_STACK_TRACE, 4, 8, 1, 0),
	MAP(BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0, .spin_lock_off = 4, .btf_key = 1, .btf_value = 3),
	MAP(BPF_MAP_TYPE_ARRAY, 4, sizeof(struct test_val), 1, BPF_F_RDONLY_PROG),
	MAP(BPF_MAP_TYPE_ARRAY, 4, sizeof(struct test_val), 1, BPF_F_WRONLY_PROG),
	MAP(BPF_MAP_TYPE_ARRAY, 4, 1, 1, 0),
	MAP(BPF_MAP_TYPE_SK_STORAGE, 4, 8, 0, BPF_F_NO_PREALLOC, .spin_lock_off = 4, .btf_key = 1,
	    .btf_value = 3),
	MAP(BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, 1, 0),
	MAP(BPF_MAP_TYPE_REUSEPORT_SOCKARRAY, 4, 8, 1, 0),
	MAP(BPF_MAP_TYPE_RINGBUF, 0, 0, 4096, 0),
	MAP(BPF_MAP_TYPE_ARRAY, 4, 16, 1, 0, .timer_off = 0, .btf_key = 1, .btf_value = 5),
	MAP(BPF_MAP_TYPE_ARRAY, 4, 24, 1, 0, .btf_key = 1, .btf_value = 14, .nr_kptrs = 3,
	    .kptrs = { { 0, 6, 32, "prog_test_ref_kfunc", false },
		       { 8, 6, 32, "prog_test_ref_kfunc", true },
		       { 16, 7, 0, "prog_test_member", true } }),
};
static struct pb_bpf_map maps[MAX_NR_MAPS];
static bool real[MAX_NR_MAPS];

/* The programs of the two program arrays. Ids 1, 2 and 3 are an array's three programs. */
static struct pb_bpf_prog *array_progs[2][3];

static void *find(const struct pb_bpf_objects *o, uint32_t kind, uint32_t id)
{
	struct pb_bpf_prog **progs = o->arg;

	return kind == PB_BPF_OBJECT_PROG && id && id <= 3 ? progs[id - 1] : NULL;
}

static int64_t get(const struct pb_bpf_objects *o, uint32_t kind, uint32_t handle)
{
	return handle;
}

static void put(const struct pb_bpf_objects *o, uint32_t kind, uint32_t id)
{
}

static const struct pb_bpf_objects objects[2] = {
	{ find, get, put, array_progs[0] }, { find, get, put, array_progs[1] },
};

/* Creates the maps and fills them, as the kernel's test runner does. */
static void open_maps(void)
{
	const struct test_val value = { .index = 7 * sizeof(int), .foo[6] = (int)0xabcdef12 };
	uint32_t zero = 0;

	for (int i = 0; i < MAX_NR_MAPS; i++) {
		real[i] = !pb_bpf_map_create(&maps[i], &specs[i]);
		if (!real[i])
			maps[i] = (struct pb_bpf_map){ .attr = specs[i].attr,
						       .types = specs[i].types,
						       .name = "test_map" };
	}
	/* the names of types aren't copied to shared memory, so the real map doesn't have them */
	maps[22].types = specs[22].types;
	maps[4].objects = &objects[0];
	maps[5].objects = &objects[1];
	for (int i = 0; i < MAX_NR_MAPS; i++)
		if (real[i] && specs[i].attr.type == BPF_MAP_TYPE_ARRAY &&
		    specs[i].attr.value_size == sizeof value &&
		    pb_bpf_map_update_elem(&maps[i], &zero, &value, 0))
			abort();
}

static void close_maps(void)
{
	for (int i = 0; i < MAX_NR_MAPS; i++)
		if (real[i])
			pb_bpf_map_close(&maps[i]);
	for (int i = 0; i < 6; i++) {
		pb_bpf_prog_free(array_progs[i / 3][i % 3]);
		array_progs[i / 3][i % 3] = NULL;
	}
}

/* Numbers less than FIRST_FD are no map's descriptor. Some tests need an invalid descriptor. */
#define FIRST_FD 50

/* Each map has a list of instructions. Stores the map's descriptor in these instructions. */
static int fix_up(struct bpf_test *t, struct bpf_insn *insns)
{
	int *const lists[MAX_NR_MAPS] = {
		t->fixup_map_hash_8b, t->fixup_map_hash_48b, t->fixup_map_hash_16b,
		t->fixup_map_array_48b,
		t->fixup_prog1, t->fixup_prog2, t->fixup_map_in_map, t->fixup_cgroup_storage,
		t->fixup_percpu_cgroup_storage, t->fixup_map_sockmap, t->fixup_map_sockhash,
		t->fixup_map_xskmap, t->fixup_map_stacktrace, t->fixup_map_spin_lock,
		t->fixup_map_array_ro,
		t->fixup_map_array_wo, t->fixup_map_array_small, t->fixup_sk_storage_map,
		t->fixup_map_event_output, t->fixup_map_reuseport_array, t->fixup_map_ringbuf,
		t->fixup_map_timer, t->fixup_map_kptr,
	};

	for (int m = 0; m < MAX_NR_MAPS; m++)
		for (int *i = lists[m]; *i; i++)
			insns[*i].imm = FIRST_FD + m;
	return 0;
}

/* ---- functions, by the test's BTF ------------------------------------------------------ */

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

/* ---- one test ------------------------------------------------------------------------------ */

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

/* ---- running ----------------------------------------------------------------------------- */

static struct pb_bpf_prog *make(struct pb_bpf_verify *v)
{
	struct pb_bpf_resolved r;
	struct pb_bpf_prog *p = NULL;

	if (pb_bpf_resolve(v, &r))
		return NULL;
	r.spec.name = "test";
	if (pb_bpf_prog_make(&r.spec, &p))
		p = NULL;
	pb_bpf_resolved_free(&r);
	return p;
}

static struct pb_bpf_prog *make_insns(uint32_t type, const struct bpf_insn *insns, uint32_t nr,
				      struct pb_bpf_map *map)
{
	struct pb_bpf_verify v = { .type = pb_bpf_type_of(type), .caps = PB_BPF_CAP_ALL,
				   .gpl = true, .insns = insns, .nr = nr, .maps = &map,
				   .nr_maps = 1, .mem = &mem };
	struct pb_bpf_prog *p = pb_bpf_verify(&v) ? NULL : make(&v);

	pb_bpf_facts_free(&mem, v.facts);
	return p;
}

/* Fills a program array with three programs. The first returns 42, the third returns 24. The second
 * makes tail calls to itself and at last returns 41. */
static void fill_prog_array(uint32_t type, int n, const uint32_t keys[3])
{
	const struct bpf_insn first[] = { BPF_MOV64_IMM(BPF_REG_0, 42), BPF_EXIT_INSN() };
	const struct bpf_insn last[] = { BPF_MOV64_IMM(BPF_REG_0, 24), BPF_EXIT_INSN() };
	const struct bpf_insn loop[] = {
		BPF_MOV64_IMM(BPF_REG_3, (int)keys[1]), BPF_LD_MAP_FD(BPF_REG_2, 0),
		BPF_RAW_INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_tail_call),
		BPF_MOV64_IMM(BPF_REG_0, 41), BPF_EXIT_INSN(),
	};

	array_progs[n][0] = make_insns(type, first, 2, NULL);
	array_progs[n][1] = make_insns(type, loop, 6, &maps[4 + n]);
	array_progs[n][2] = make_insns(type, last, 2, NULL);
	for (uint32_t i = 0; i < 3; i++)
		if (!array_progs[n][i] ||
		    pb_bpf_map_update_elem(&maps[4 + n], &keys[i], &(uint32_t){ i + 1 }, BPF_ANY))
			abort();
}

static struct {
	int tests, verdicts, accepted, refused, verbose, messages, good_verdicts, good_messages,
	    counts, good_counts;
	int runnable, runs, good_runs, kernel_only, not_run;
} sum;

static bool run_once(const struct pb_bpf_prog *p, const struct pb_bpf_verify *v, const void *data,
		     uint32_t wanted, bool interpret, const char *name)
{
	char out[TEST_DATA_LEN << 2];
	struct pb_bpf_test_run run = {
		.prog = p, .host = pb_bpf_host_linux(), .interpret = interpret,
		.attach_type = v->attach_type, .ctx_needed = v->facts->ctx_needed, .data_in = data,
		.data_size_in = TEST_DATA_LEN, .repeat = 1,
		.data_out = out, .data_size_out = sizeof out,
	};
	int err = pb_bpf_test_run(&run);

	if (err == -ENOTSUPP) {
		sum.not_run++;
		return true;
	}
	sum.runs++;
	if (!err && (run.retval == wanted || wanted == POINTER_VALUE)) {
		sum.good_runs++;
		return true;
	}
	printf("RUN: \"%s\" on the %s: error %d, returns %u, expected %u\n", name,
	       interpret ? "interpreter" : "JIT", err, run.retval, wanted);
	return false;
}

static bool has_its_maps(const struct pb_bpf_verify *v)
{
	for (uint32_t i = 0; i < v->nr; i++)
		if (v->insns[i].code == (BPF_LD | BPF_IMM | BPF_DW) && v->facts->insns[i].map &&
		    !real[v->facts->insns[i].map - 1 - FIRST_FD])
			return false;
	return true;
}

static void run_accepted(const struct bpf_test *t, struct pb_bpf_verify *v, bool privileged)
{
	struct pb_bpf_prog *p = has_its_maps(v) ? make(v) : NULL;

	if (!p) {
		sum.kernel_only++;
		return;
	}
	sum.runnable++;
	for (int i = 0; i < (t->runs ? t->runs : 1); i++) {
		uint32_t wanted = !privileged && t->retvals[i].retval_unpriv ?
				  t->retvals[i].retval_unpriv : t->retvals[i].retval;

		run_once(p, v, t->retvals[i].data, wanted, false, t->descr);
		run_once(p, v, t->retvals[i].data, wanted, true, t->descr);
	}
	pb_bpf_prog_free(p);
}

/* ---- judging -------------------------------------------------------------------------------- */

static char text[1 << 24];

/* Returns whether the test has an instruction of cpu v4. Linux 6.1 refuses this instruction. */
static bool newer_instruction(const struct bpf_test *t)
{
	return !strcmp(t->descr, "invalid 64-bit BPF_END");
}

/* Returns whether the test reads unwritten stack. Linux 6.1 allows this to privileged loaders. Some
 * of Debian's packages have older tests, and these tests expect a refusal. */
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

#define ZERO_SIZED "R2 invalid zero-sized read: u64=[0,0]"

/* Tests for which Linux 6.12 and Linux 6.1 have different verdicts or messages. In one test, only
 * Patchbay's message differs. */
static const struct change {
	const char *descr, *message, *unpriv;	/* unpriv: the message without privileges, if it
						 * differs from `message` */
	bool accepted, privileged;	/* accepted: Linux 6.12 accepts the program; privileged: it
					 * does so with privileges only */
} changes[] = {
	/* 6.12 deduces signed bounds from unsigned bounds, and unsigned bounds from signed
	 * bounds */
	{ "bounds checks mixing signed and unsigned, variant 10", .accepted = true,
	  .privileged = true },
	/* 6.12 follows negations, so the number is known and the two paths have the same mask */
	{ "map access: known scalar += value_ptr unknown vs unknown (lt)", .accepted = true },
	{ "map access: known scalar += value_ptr unknown vs unknown (gt)", .accepted = true },
	{ "check deducing bounds from const, 10", "R0 tried to subtract pointer from scalar",
	  .unpriv = "R1 has pointer with unsupported alu operation" },
	/* 6.12 knows that the address of a map isn't NULL */
	{ "unpriv: cmp map pointer with zero", .accepted = true },
	/* 6.12 treats any backward jump as a loop, and finds recursion by the depth of frames */
	{ "bounded loop, start in the middle", .accepted = true, .privileged = true },
	{ "bounded recursion", "the call stack of 8 frames is too deep" },
	{ "calls: jump back loop", "the call stack of 9 frames is too deep" },
	{ "calls: recursive call. test1", "the call stack of 9 frames is too deep" },
	{ "calls: recursive call. test2", "the call stack of 9 frames is too deep" },
	/* in 6.12, a subprogram may return while it holds the lock */
	{ "spin_lock: test10 lock in subprog without unlock", .accepted = true,
	  .privileged = true },
	/* 6.12 checks a store of a constant like a store of a register */
	{ "context stores via ST", "invalid bpf_context access off=8 size=8" },
	{ "ringbuf: invalid reservation offset 1",
	  "R1 must have zero offset when passed to release func" },
	/* 6.12 also knows the low bytes of a spilled number (these two tests read two bytes) */
	{ "Spill a u32 const scalar.  Refill as u16.  Offset to skb->data", .accepted = true },
	{ "Spill u32 const scalars.  Refill as u64.  Offset to skb->data", .accepted = true },
	/* in 6.12, a spilled number has an id */
	{ "direct packet access: test23 (x += pkt_ptr, 4)", "R5(id=3,off=0,r=0)" },
	/* 6.12's backtracking marks copies that were bounded by the same branch; the log names
	 * registers */
	{ "precise: test 1",
	  "26: (85) call bpf_probe_read_kernel#113\t"
	  "mark_precise: frame0: last_idx 26 first_idx 20\tregs=r2 stack= before 25\t"
	  "regs=r2 stack= before 22\tregs=r2 stack= before 20\t"
	  "parent state regs=r2,r9 stack=:\tlast_idx 19 first_idx 10\t"
	  "regs=r2,r9 stack= before 19\tregs=r9 stack= before 18\t"
	  "regs=r8,r9 stack= before 17\tregs=r0,r9 stack= before 14\t"
	  "regs=r9 stack= before 10\tparent state regs= stack=:" },
	{ "precise: test 2",
	  "26: (85) call bpf_probe_read_kernel#113\t"
	  "mark_precise: frame0: last_idx 26 first_idx 22\tregs=r2 stack= before 25\t"
	  "regs=r2 stack= before 22\tparent state regs=r2 stack=:\t"
	  "last_idx 20 first_idx 20\tregs=r2 stack= before 20\t"
	  "parent state regs=r2,r9 stack=:\tlast_idx 19 first_idx 17\t"
	  "regs=r2,r9 stack= before 19\tregs=r9 stack= before 18\t"
	  "regs=r8,r9 stack= before 17\tparent state regs= stack=:" },
	/* 6.12's backtracking knows the slot that an instruction accessed */
	{ "precise: ST insn causing spi > allocated_stack",
	  "mark_precise: frame0: last_idx 5 first_idx 5\tparent state regs=r4 stack=:\t"
	  "last_idx 4 first_idx 2\tregs=r4 stack= before 4\tregs=r4 stack= before 3\t"
	  "last_idx 5 first_idx 5\tparent state regs=r0 stack=:\tlast_idx 4 first_idx 2\t"
	  "regs=r0 stack= before 4" },
	{ "precise: STX insn causing spi > allocated_stack",
	  "mark_precise: frame0: last_idx 6 first_idx 6\tparent state regs=r4 stack=:\t"
	  "last_idx 5 first_idx 3\tregs=r4 stack= before 5\tlast_idx 6 first_idx 6\t"
	  "parent state regs=r0 stack=:\tlast_idx 5 first_idx 3\tregs=r0 stack= before 5" },
	/* Patchbay doesn't know the kernel's structures, so a member of a structure is a number */
	{ "map_kptr: unref: inherit PTR_UNTRUSTED on struct walk",
	  "R1 type=scalar expected=percpu_ptr_" },
	/* the message is about the size */
	{ "helper access to map: empty range", ZERO_SIZED },
	{ "helper access to adjusted map (via const imm): empty range", ZERO_SIZED },
	{ "helper access to adjusted map (via const reg): empty range", ZERO_SIZED },
	{ "helper access to adjusted map (via variable): empty range", ZERO_SIZED },
};

static const struct change *change_of(const struct bpf_test *t)
{
	for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++)
		if (!strcmp(t->descr, changes[i].descr))
			return &changes[i];
	return NULL;
}

/* Replaces words in a message of Linux 6.1 by the words of Linux 6.12. */
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

static void run(struct bpf_test *t, bool privileged)
{
	struct bpf_insn *insns = t->fill_insns ? t->fill_insns : t->insns;
	uint32_t type = t->prog_type ? t->prog_type : BPF_PROG_TYPE_SOCKET_FILTER;
	int expected = expected_of(t, privileged);
	const char *message = message_of(t, privileged);
	struct pb_bpf_text log = { .buf = text, .size = sizeof text };
	struct pb_bpf_map *list[FIRST_FD + MAX_NR_MAPS] = { 0 };
	struct pb_bpf_func funcs[MAX_FUNC_INFOS];
	struct btf *btf = btf_of(t);
	struct pb_bpf_verify v = {
		.type = pb_bpf_type_of(type), .attach_type = t->expected_attach_type,
		.caps = privileged ? PB_BPF_CAP_ALL : 0, .gpl = true, .insns = insns,
		.nr = (uint32_t)(t->fill_insns ? t->prog_len : length_of(insns)),
		.maps = list, .nr_maps = FIRST_FD + MAX_NR_MAPS, .log = &log, .mem = &mem,
		.log_level = loud > 1 ? 2 : loud ? 1 : expected == VERBOSE_ACCEPT ? 2 : 4,
	};
	bool good, said;
	int err;

	text[0] = 0;
	v.flags = (t->flags & F_LOAD_WITH_STRICT_ALIGNMENT ? BPF_F_STRICT_ALIGNMENT : 0) |
		  (t->flags & F_NEEDS_EFFICIENT_UNALIGNED_ACCESS ? BPF_F_ANY_ALIGNMENT : 0) |
		  (t->flags & ~3 ? t->flags : 0);
	for (int i = 0; i < MAX_NR_MAPS; i++)
		list[FIRST_FD + i] = &maps[i];
	for (int i = 0; i < t->func_info_cnt; i++)
		describe(btf, &t->func_info[i], &funcs[i]);
	if (t->func_info_cnt) {
		v.funcs = funcs;
		v.nr_funcs = (uint32_t)t->func_info_cnt;
	}
	open_maps();
	if (*t->fixup_prog1)
		fill_prog_array(type, 0, (const uint32_t[]){ 0, 1, 2 });
	if (*t->fixup_prog2)
		fill_prog_array(type, 1, (const uint32_t[]){ 7, 1, 2 });
	err = pb_bpf_verify(&v);
	good = (expected == REJECT) == (err < 0);
	said = expected == ACCEPT || !message || has_message(text, message);
	sum.verdicts++;
	sum.good_verdicts += good;
	*(expected == ACCEPT ? &sum.accepted :
	  expected == REJECT ? &sum.refused : &sum.verbose) += 1;
	if (expected != ACCEPT && message) {
		sum.messages++;
		sum.good_messages += good && said;
	}
	if (privileged && t->insn_processed && good) {
		sum.counts++;
		sum.good_counts += v.stats.insns == t->insn_processed;
	}
	if (!good || !said || loud ||
	    (privileged && t->insn_processed && v.stats.insns != t->insn_processed)) {
		char *end = text + strlen(text);

		printf("%s%s: \"%s\": expected %s \"%s\" (%u insns), is %d (%u insns)\n",
		       !good ? "VERDICT" : !said ? "message" : "ok",
		       privileged ? "" : " (unprivileged)", t->descr,
		       expected == REJECT ? "refusal" : "acceptance", message ? message : "",
		       t->insn_processed, err, v.stats.insns);
		if (!loud && end - text > 600)
			printf("...%s\n", end - 600);
		else
			printf("%s\n", text);
	}
	/* if the table expects a refusal, it has no result for the program */
	if (!err && good && t->runs >= 0 && !(reads_uninit_stack(t) && t->result == REJECT) &&
	    (t->result != REJECT || !change_of(t)))
		run_accepted(t, &v, privileged);
	pb_bpf_facts_free(&mem, v.facts);
	close_maps();
	if (allocated) {
		printf("LEAK: %ld bytes in \"%s\"\n", allocated, t->descr);
		sum.good_verdicts = -1000000;
		allocated = 0;
	}
	btf__free(btf);
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
	uint32_t type = t->prog_type ? t->prog_type : BPF_PROG_TYPE_SOCKET_FILTER;
	const struct pb_bpf_type *p = pb_bpf_type_of(type);

	return p && type != BPF_PROG_TYPE_SCHED_ACT && !calls_kernel(t);
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
		fix_up(t, t->insns);
		sum.tests++;
		if (!t->prog_type || t->prog_type == BPF_PROG_TYPE_SOCKET_FILTER ||
		    t->prog_type == BPF_PROG_TYPE_CGROUP_SKB)
			run(t, false);
		run(t, true);
		free(t->fill_insns);
	}
	printf("%d of %zu tests, %d verdicts (%d accepted, %d refused, %d with a log): "
	       "%d as the table's; %d of %d messages; %d of %d numbers of instructions looked at\n",
	       sum.tests, sizeof tests / sizeof *tests, sum.verdicts, sum.accepted, sum.refused,
	       sum.verbose, sum.good_verdicts, sum.good_messages, sum.messages, sum.good_counts,
	       sum.counts);
	printf("%d programs run on both engines: %d of %d runs return what the table says; "
	       "%d have helpers or maps of the kernel alone, "
	       "%d runs have no meaning without a context\n",
	       sum.runnable, sum.good_runs, sum.runs, sum.kernel_only, sum.not_run);
	return sum.good_verdicts != sum.verdicts || sum.good_messages != sum.messages ||
	       !sum.runs || sum.good_runs != sum.runs;
}
