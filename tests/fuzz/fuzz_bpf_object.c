/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Fuzzes the eBPF loader with hostile objects: ELF, BTF, .BTF.ext and CO-RE. An input is the
 * object's length in four bytes, the object, and the target's BTF. For any bytes, opening the
 * object must end soon. It must give either an error message, or programs and maps that can be used
 * without further checks.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/clean_text.h"
#include "bpfload/load.h"
#include "bpfload/load_btf.h"
#include "driver.h"

#define LD_IMM64 (BPF_LD | BPF_IMM | BPF_DW)

static volatile uint8_t fuzz_sum;	/* makes the compiler keep the reads of contents */

static void check_text(const char *text)
{
	FUZZ_CHECK(text && pb_text_printable(text));
}

static void check_map(const struct pb_bpf_object *o, const struct pb_bpf_object_map *m)
{
	struct pb_bpf_map_attr attr = pb_bpf_object_map_attr(m, 4);
	uint8_t sum = 0;

	check_text(m->name);
	check_text(m->section);
	FUZZ_CHECK(attr.type == m->attr.type);
	if (m->why) {
		check_text(m->why);
		return;
	}
	for (uint32_t i = 0; m->contents && i < m->attr.value_size; i++)
		sum |= ((const uint8_t *)m->contents)[i];
	fuzz_sum = sum;
	for (uint32_t i = 0; i < m->nr_slots; i++)
		FUZZ_CHECK(m->slots[i].number < (m->slots[i].prog ? o->nr_progs : o->nr_maps));
	FUZZ_CHECK(m->types.spin_lock_off < 0 ||
		   (uint32_t)m->types.spin_lock_off + 4 <= attr.value_size);
	FUZZ_CHECK(m->types.timer_off < 0 || (uint32_t)m->types.timer_off + 16 <= attr.value_size);
	FUZZ_CHECK(m->types.nr_kptrs <= PB_BPF_MAX_KPTRS);
	for (uint32_t i = 0; i < m->types.nr_kptrs; i++)
		FUZZ_CHECK(m->types.kptrs[i].off + 8 <= attr.value_size &&
			   m->types.kptrs[i].btf_id);
	if (m->inner) {
		FUZZ_CHECK(!m->inner->inner);
		check_map(o, m->inner);
	}
}

/* Checks an accepted program. */
static void check_insns(const struct pb_bpf_object *o, const struct pb_bpf_object_prog *p)
{
	FUZZ_CHECK(p->nr);
	for (uint32_t i = 0; i < p->nr; i++) {
		const struct bpf_insn *in = &p->insns[i];
		bool wide = in->code == LD_IMM64;
		bool map = in->src_reg == BPF_PSEUDO_MAP_FD || in->src_reg == BPF_PSEUDO_MAP_VALUE;

		if (wide && map)
			FUZZ_CHECK(in->imm >= 0 && (uint32_t)in->imm < o->nr_maps &&
				   !o->maps[in->imm].why);
		if ((wide && in->src_reg == BPF_PSEUDO_FUNC) ||
		    (in->code == (BPF_JMP | BPF_CALL) && in->src_reg == BPF_PSEUDO_CALL))
			FUZZ_CHECK((uint64_t)i + 1 + (uint64_t)(int64_t)in->imm < p->nr);
		i += wide;
	}
}

static void check_prog(const struct pb_bpf_object *o, const struct pb_bpf_object_prog *p)
{
	check_text(p->name);
	check_text(p->section);
	if (p->target)
		check_text(p->target);
	for (uint32_t i = 0; i < p->nr_funcs; i++) {
		check_text(p->funcs[i].name);
		FUZZ_CHECK(p->funcs[i].insn < p->nr &&
			   (!i || p->funcs[i].insn > p->funcs[i - 1].insn));
	}
	for (uint32_t i = 0; i < p->nr_lines; i++) {
		check_text(p->lines[i].text);
		FUZZ_CHECK(p->lines[i].insn < p->nr &&
			   (!i || p->lines[i].insn > p->lines[i - 1].insn));
	}
	for (uint32_t i = 0; i < p->nr_poison; i++) {
		check_text(p->poison[i].text);
		FUZZ_CHECK(p->poison[i].insn < p->nr);
	}
	if (p->why)
		check_text(p->why);
	else
		check_insns(o, p);
	pb_bpf_object_explain(p, "1: (85) call unknown#195896080\n");
}

/* Calls each of BTF's accessors, for each type. */
static void check_btf(struct pb_bpf_btf *b)
{
	const char *name;

	FUZZ_CHECK(!pb_bpf_btf_index(b));
	for (uint32_t id = 0; id < b->nr; id++) {
		const struct btf_type *t = pb_bpf_btf_type(b, id);
		uint32_t to = 0;

		pb_bpf_btf_skip(b, id, id % 2, &to);
		FUZZ_CHECK(to < b->nr && pb_bpf_btf_size(b, id) <= UINT32_MAX);
		pb_bpf_btf_kind_name(t);
		if (!t)
			continue;
		for (uint32_t i = 0; pb_btf_is_enum(t) && i < pb_btf_vlen(t); i++)
			pb_bpf_btf_enum(b, t, i, &name);
		if (id < 8 && pb_bpf_btf_name(b, t)[0] && strlen(pb_bpf_btf_name(b, t)) < 512)
			FUZZ_CHECK(pb_bpf_btf_find(b, pb_bpf_btf_name(b, t), pb_btf_kind(t)));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	struct pb_bpf_object_opts opts = { .target = "/dev/null",
					   .kconfig = "CONFIG_HZ=1000\nCONFIG_NAME=\"x\"\n" };
	struct pb_bpf_object *o;
	struct pb_bpf_btf *target;
	const char *why;
	char err[128];
	size_t bytes;
	const uint8_t *object = fuzz_take_block(&in, 4, &bytes);

	if (!pb_bpf_btf_open(in.p, in.left, &target, &why))
		check_btf(target);
	else
		check_text(why);
	opts.target_btf = target;
	if (pb_bpf_object_open_memory(object, bytes, &opts, &o, err, sizeof(err))) {
		check_text(err);
		FUZZ_CHECK(!o && err[0]);
	} else {
		check_text(o->name);
		check_text(o->license);
		for (uint32_t i = 0; i < o->nr_maps; i++)
			check_map(o, &o->maps[i]);
		for (uint32_t i = 0; i < o->nr_progs; i++)
			check_prog(o, &o->progs[i]);
		pb_bpf_object_close(o);
	}
	pb_bpf_btf_close(target);
	return 0;
}

/* --- mutations and seeds ------------------------------------------------------------ */

static size_t in_section(struct fuzz_rng *r, const uint8_t *v, size_t size, size_t base)
{
	Elf64_Ehdr eh;
	Elf64_Shdr sh;
	uint64_t at;

	if (size - base < sizeof(eh))
		return fuzz_below(r, size);
	memcpy(&eh, v + base, sizeof(eh));
	at = eh.e_shoff + fuzz_below(r, eh.e_shnum) * sizeof(sh);
	if (at > size - base || size - base - at < sizeof(sh))
		return fuzz_below(r, size);
	if (fuzz_random(r) % 4 == 0)
		return base + at + fuzz_below(r, sizeof(sh) / 4) * 4;
	memcpy(&sh, v + base + at, sizeof(sh));
	return (base + sh.sh_offset + fuzz_below(r, sh.sh_size / 4 + 1) * 4) % size;
}

size_t fuzz_mutate(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	struct fuzz_rng r;
	uint32_t object;

	fuzz_rng_seed(&r, seed);
	if (size < 5)
		return size;
	memcpy(&object, data, 4);
	for (unsigned n = 1 + (unsigned)fuzz_below(&r, 4); n; n--) {
		size_t target = 4 + (size_t)object;

		if (target < size && fuzz_random(&r) % 4 == 0)
			fuzz_poke(&r, data, size, target +
				  fuzz_below(&r, (size - target) / 4 + 1) * 4 % (size - target));
		else
			fuzz_poke(&r, data, size, in_section(&r, data, size, 4));
	}
	return size;
}

static void seed_pair(const char *path, const uint8_t *target, size_t target_size)
{
	size_t size;
	uint8_t *object = fuzz_read_file(path, 400000, &size), *both;

	if (!object)
		return;
	both = malloc(4 + size + target_size);
	memcpy(both, &(uint32_t){ (uint32_t)size }, 4);
	memcpy(both + 4, object, size);
	if (target_size)
		memcpy(both + 4 + size, target, target_size);
	fuzz_seed(both, 4 + size + target_size);
	free(both);
	free(object);
}

/* Each object in FUZZ_BPF_OBJECTS is a seed. The BTF of the last object is the target's BTF in all
 * seeds. */
void fuzz_seeds(void)
{
	char *list = strdup(FUZZ_BPF_OBJECTS), *rest = list, *path;
	struct pb_bpf_btf *target = NULL;
	const struct btf_header *h = NULL;
	const char *why, *last = strrchr(FUZZ_BPF_OBJECTS, ':');
	size_t size = 0;

	if (last && !pb_bpf_btf_open_file(last + 1, &target, &why)) {
		h = (const struct btf_header *)target->data;
		size = h->hdr_len + (h->str_off + h->str_len > h->type_off + h->type_len ?
				     h->str_off + h->str_len : h->type_off + h->type_len);
	}
	while ((path = strsep(&rest, ":")))
		if (path[0])
			seed_pair(path, (const uint8_t *)h, size);
	free(list);
	pb_bpf_btf_close(target);
}
