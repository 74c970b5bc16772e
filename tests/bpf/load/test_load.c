/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Loads the objects in own/ and checks the results. The objects have an example of everything that
 * the loader handles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "bpf/map/map_file.h"
#include "bpf/map/map_sys.h"
#include "bpfload/load.h"
#include "bpfload/load_btf.h"
#include "bpfload/load_elf.h"
#include "bpfload/load_make.h"
#include "../common/reopen.h"

#define LD_IMM64 (BPF_LD | BPF_IMM | BPF_DW)

static struct pb_bpf_object *open_with(const char *path, const struct pb_bpf_object_opts *opts)
{
	struct pb_bpf_object *o;
	char err[256];

	if (pb_bpf_object_open(path, opts, &o, err, sizeof(err)))
		fail_msg("%s: %s", path, err);
	assert_string_equal(err, "");
	return o;
}

static const struct pb_bpf_object_map *map(const struct pb_bpf_object *o, const char *name)
{
	int i = pb_bpf_object_map(o, name);

	assert_true(i >= 0);
	return &o->maps[i];
}

static const struct pb_bpf_object_prog *prog(const struct pb_bpf_object *o, const char *name)
{
	int i = pb_bpf_object_prog(o, name);

	assert_true(i >= 0);
	return &o->progs[i];
}

static void refused(const struct pb_bpf_object *o, const char *name, const char *why)
{
	const struct pb_bpf_object_prog *p = prog(o, name);

	assert_non_null(p->why);
	if (!strstr(p->why, why))
		fail_msg("%s: \"%s\" doesn't say \"%s\"", name, p->why, why);
}

static void maps(void **state)
{
	struct pb_bpf_object *o = open_with(SHAPES, NULL);
	const struct pb_bpf_object_map *m = map(o, "counts");

	assert_int_equal(m->attr.type, BPF_MAP_TYPE_HASH);
	assert_int_equal(m->attr.key_size, 8);
	assert_int_equal(m->attr.value_size, 24);
	assert_int_equal(m->attr.max_entries, 16);
	assert_int_equal(m->attr.flags, BPF_F_NO_PREALLOC);
	assert_true(m->pin_by_name);
	assert_int_equal(m->types.spin_lock_off, 0);
	assert_int_equal(m->types.timer_off, 8);
	assert_int_not_equal(m->types.btf_key, 0);
	m = map(o, "outer");
	assert_int_equal(m->nr_slots, 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_false(m->slots[i].prog);
		assert_string_equal(o->maps[m->slots[i].number].name,
				    m->slots[i].index == 2 ? "first" : "second");
	}
	assert_non_null(m->inner);
	assert_int_equal(m->inner->attr.max_entries, 4);
	m = map(o, "jumps");
	assert_int_equal(m->nr_slots, 1);
	assert_int_equal(m->slots[0].index, 1);
	assert_true(m->slots[0].prog);
	assert_string_equal(o->progs[m->slots[0].number].name, "tail");
	assert_int_equal(pb_bpf_object_map_attr(map(o, "ring"), 3).max_entries, 8192);
	assert_int_equal(pb_bpf_object_map_attr(map(o, "events"), 3).max_entries, 3);
	pb_bpf_object_close(o);
}

static void variables(void **state)
{
	struct pb_bpf_object *o = open_with(SHAPES,
					    &(struct pb_bpf_object_opts){ .name = "longer_name" });
	const struct pb_bpf_object_map *m = map(o, "longer_n.rodata");
	int v;

	assert_int_equal(m->attr.flags, BPF_F_RDONLY_PROG | BPF_F_MMAPABLE);
	assert_int_equal(m->attr.max_entries, 1);
	memcpy(&v, m->contents, 4);
	assert_int_equal(v, 5);
	m = map(o, "longer_n.data");
	assert_int_equal(m->attr.flags, 0);	/* no BPF_F_MMAPABLE, because the section has only a
						 * static variable */
	memcpy(&v, m->contents, 4);
	assert_int_equal(v, 7);
	m = map(o, ".data.separate");
	memcpy(&v, m->contents, 4);
	assert_int_equal(v, 9);
	m = map(o, "longer_n.bss");
	assert_int_equal(m->attr.value_size, 4);
	assert_null(m->contents);
	pb_bpf_object_close(o);
}

static void sections(void **state)
{
	struct pb_bpf_object *o = open_with(SHAPES, NULL);
	const struct pb_bpf_object_prog *p = prog(o, "asked");

	assert_string_equal(o->name, "shapes");
	assert_string_equal(o->license, "Dual BSD/GPL");
	assert_true(o->gpl);
	assert_int_equal(o->version, 0x60102);
	assert_false(p->autoload);
	assert_string_equal(p->target, "function");
	assert_int_equal(p->type, BPF_PROG_TYPE_KPROBE);
	p = prog(o, "user");
	assert_true(p->user && p->returns && p->autoload);
	assert_string_equal(p->target, "/usr/bin/program:function+8");
	p = prog(o, "many");
	assert_true(p->multi && p->returns);
	assert_int_equal(p->attach_type, BPF_TRACE_KPROBE_MULTI);
	assert_string_equal(p->target, "a*");
	p = prog(o, "frags");
	assert_int_equal(p->type, BPF_PROG_TYPE_XDP);
	assert_int_equal(p->flags, BPF_F_XDP_HAS_FRAGS);
	p = prog(o, "old_name");
	assert_true(p->guessed && !p->why);
	assert_int_equal(p->type, BPF_PROG_TYPE_SOCKET_FILTER);
	refused(o, "no_type", "\"nothing\"");
	refused(o, "not_ours", "\"fentry\"");
	refused(o, "symbol", "nowhere");
	refused(o, "kfunc", "kernel_function");
	refused(o, "user", "CONFIG_HZ");
	refused(o, "asked", "CONFIG_NAME");
	pb_bpf_object_close(o);
	o = open_with(SHAPES, &(struct pb_bpf_object_opts){ .type = BPF_PROG_TYPE_XDP });
	assert_int_equal(prog(o, "no_type")->type, BPF_PROG_TYPE_XDP);
	assert_null(prog(o, "no_type")->why);
	assert_int_equal(prog(o, "old_name")->type, BPF_PROG_TYPE_XDP);
	assert_int_equal(prog(o, "tail")->type, BPF_PROG_TYPE_SOCKET_FILTER);
	pb_bpf_object_close(o);
}

static int target_of(const char *text, bool user, bool multi, struct pb_bpf_target *t)
{
	struct pb_bpf_object_prog p = { .type = BPF_PROG_TYPE_KPROBE, .target = text, .user = user,
		.multi = multi };

	return pb_bpf_object_target(&p, t);
}

static void targets(void **state)
{
	struct pb_bpf_target t;

	assert_int_equal(target_of("func+0x10", false, false, &t), 0);
	assert_int_equal(t.func_len, 4);
	assert_int_equal(t.off, 16);
	assert_null(t.path);
	assert_int_equal(target_of("/a:b/c:func+8", true, false, &t), 0);
	assert_int_equal(t.path_len, 6);
	assert_memory_equal(t.func, "func", t.func_len);
	assert_int_equal(t.off, 8);
	assert_int_equal(target_of("std::+*", false, true, &t), 0);
	assert_int_equal(t.func_len, 7);
	assert_int_equal(target_of("func", false, false, &t), 0);
	assert_int_equal(t.off, 0);
	assert_int_equal(target_of(NULL, false, false, &t), -ENOENT);
	assert_int_equal(target_of("func", true, false, &t), -EINVAL);
	assert_int_equal(target_of(":func", true, false, &t), -EINVAL);
	assert_int_equal(target_of("/path:", true, false, &t), -EINVAL);
	assert_int_equal(target_of("func+", false, false, &t), -EINVAL);
	assert_int_equal(target_of("func+-1", false, false, &t), -EINVAL);
	assert_int_equal(target_of("func+8x", false, false, &t), -EINVAL);
	assert_int_equal(target_of("+8", false, false, &t), -EINVAL);
	assert_int_equal(pb_bpf_object_target(&(struct pb_bpf_object_prog){
		.type = BPF_PROG_TYPE_XDP, .target = "devmap" }, &t), -EINVAL);
}

/* Returns the program's function that begins at instruction `insn`. */
static const struct pb_bpf_func *func_at(const struct pb_bpf_object_prog *p, uint32_t insn)
{
	for (uint32_t i = 0; i < p->nr_funcs; i++)
		if (p->funcs[i].insn == insn)
			return &p->funcs[i];
	fail_msg("%s: no function at %u", p->name, insn);
	return NULL;
}

static void functions(void **state)
{
	struct pb_bpf_object *o = open_with(SHAPES, NULL);
	const struct pb_bpf_object_prog *p = prog(o, "filter");
	const struct pb_bpf_func *f;
	unsigned twice = 0, callbacks = 0;

	assert_null(p->why);
	assert_int_equal(p->nr_funcs, 5);	/* filter, step, visible, twice, hidden */
	for (uint32_t i = 0; i < p->nr; i++) {
		const struct bpf_insn *in = &p->insns[i];

		if (in->code == (BPF_JMP | BPF_CALL) && in->src_reg == BPF_PSEUDO_CALL)
			twice += !strcmp(func_at(p, i + 1 + (uint32_t)in->imm)->name, "twice");
		if (in->code == LD_IMM64 && in->src_reg == BPF_PSEUDO_FUNC) {
			assert_string_equal(func_at(p, i + 1 + (uint32_t)in->imm)->name, "step");
			callbacks++;
		}
		if (in->code == LD_IMM64 && in->src_reg == BPF_PSEUDO_MAP_VALUE)
			assert_true(in->imm >= 0 && (uint32_t)in->imm < o->nr_maps);
		i += in->code == LD_IMM64;
	}
	assert_int_equal(twice, 2);
	assert_int_equal(callbacks, 1);
	for (uint32_t i = 0; i < p->nr_funcs; i++) {
		f = &p->funcs[i];
		assert_int_equal(f->global,
				 !strcmp(f->name, "filter") || !strcmp(f->name, "visible"));
		if (strcmp(f->name, "visible"))
			continue;
		assert_int_equal(f->nr_args, 4);
		assert_int_equal(f->args[0].kind, PB_BPF_FUNC_CTX);
		assert_int_equal(f->args[1].kind, PB_BPF_FUNC_MEM);
		assert_int_equal(f->args[1].size, 24);
		assert_int_equal(f->args[2].kind, PB_BPF_FUNC_SCALAR);
		assert_int_equal(f->args[3].kind, PB_BPF_FUNC_DYNPTR);
		assert_false(f->returns_void);
	}
	assert_true(p->nr_lines > 5);
	assert_string_equal(p->lines[0].text, "SEC(\"socket\") int filter(struct __sk_buff *skb)");
	assert_true(prog(o, "tail")->nr < p->nr);
	f = &prog(o, "tail")->funcs[2];		/* seven */
	assert_int_equal(f->nr_args, PB_BPF_FUNC_ARGS + 1);
	pb_bpf_object_close(o);
}

static void kconfig(void **state)
{
	struct pb_bpf_object_opts opts = {
		.kconfig = "CONFIG_HZ_X=3\nCONFIG_HZ=250\nCONFIG_NAME=\"none\"\n",
		.kernel_version = 0x060105,
	};
	struct pb_bpf_object *o = open_with(SHAPES, &opts);
	const struct pb_bpf_object_map *m = map(o, "shapes.kconfig");
	const struct pb_bpf_object_prog *p = prog(o, "user");
	int v;

	assert_null(p->why);
	assert_null(prog(o, "asked")->why);
	assert_int_equal(p->insns[0].code, LD_IMM64);
	assert_int_equal(p->insns[0].imm, m - o->maps);
	memcpy(&v, (const char *)m->contents + p->insns[1].imm, 4);
	assert_int_equal(v, 250);
	assert_int_equal(m->attr.value_size, 20);
	assert_memory_equal((const char *)m->contents + 12, "none\0\0\0", 8);
	pb_bpf_object_close(o);
	opts.kconfig = "CONFIG_HZ=y2\nCONFIG_NAME=5\n";	/* values of the wrong types */
	o = open_with(SHAPES, &opts);
	refused(o, "user", "CONFIG_HZ");
	refused(o, "asked", "CONFIG_NAME");
	pb_bpf_object_close(o);
}

/* Opens an ELF file whose table of sections is larger than the available memory. */
static void elf_without_memory(void **state)
{
#ifdef __SANITIZE_ADDRESS__
	skip();
#else
	size_t size = 1ul << 30;
	Elf64_Ehdr *h = mmap(NULL, size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct rlimit before, limit;
	struct pb_bpf_elf e;
	const char *why;
	int err;

	assert_ptr_not_equal(h, MAP_FAILED);
	memcpy(h->e_ident, ELFMAG, SELFMAG);
	h->e_ident[EI_CLASS] = ELFCLASS64;
	h->e_ident[EI_DATA] = ELFDATA2LSB;
	h->e_shoff = sizeof(*h);
	h->e_shentsize = sizeof(Elf64_Shdr);
	((Elf64_Shdr *)(h + 1))->sh_size = (size - sizeof(*h)) / sizeof(Elf64_Shdr);
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	limit = (struct rlimit){ size + size / 2, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
	err = pb_bpf_elf_open(&e, h, size, &why);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	assert_int_equal(err, -ENOMEM);
	assert_string_equal(why, "out of memory");
	h->e_shoff = size;
	assert_int_equal(pb_bpf_elf_open(&e, h, size, &why), -EINVAL);
	munmap(h, size);
#endif
}

/* --- maps and programs of an object ----------------------------------------------- */

static struct pb_bpf_map kept;		/* a map that outlives its object */

static int find_kept(void *arg, const struct pb_bpf_object_map *map,
		     const struct pb_bpf_map_spec *spec, struct pb_bpf_map *found)
{
	int fd;

	if (strcmp(map->name, arg))
		return -ENOENT;
	assert_memory_equal(&spec->attr, &kept.attr, sizeof(spec->attr));
	fd = reopen(kept.fd);
	assert_true(fd >= 0);
	return pb_bpf_map_attach(found, fd, PB_BPF_MAP_READ | PB_BPF_MAP_WRITE);
}

static void made(void **state)
{
	struct pb_bpf_object *o = open_with(SHAPES, NULL);
	struct pb_bpf_make_opts opts = { .caps = PB_BPF_CAP_ALL, .cpu_slots = 2 };
	uint32_t zero = 0, one = 1, id, tail = (uint32_t)pb_bpf_object_prog(o, "tail");
	struct pb_bpf_made *m;
	int v;

	assert_int_equal(pb_bpf_make(o, &opts, &m), 0);
	for (uint32_t i = 0; i < o->nr_maps; i++)
		if (!m->maps[i].map)
			fail_msg("%s: %s", o->maps[i].name, m->maps[i].why);
	assert_int_equal(pb_bpf_map_lookup_elem(m->maps[pb_bpf_object_map(o, "shapes.data")].map,
						&zero, &v, 0), 0);
	assert_int_equal(v, 7);
	v = 1;
	assert_int_equal(pb_bpf_map_update_elem(m->maps[pb_bpf_object_map(o, "shapes.rodata")].map,
						&zero, &v, 0), -EPERM);
	assert_int_equal(pb_bpf_map_lookup_elem(m->maps[pb_bpf_object_map(o, "outer")].map, &one,
						&id, 0), -ENOENT);
	assert_int_equal(pb_bpf_map_lookup_elem(m->maps[pb_bpf_object_map(o, "outer")].map, &zero,
						&id, 0), 0);
	/* the array `jumps` contains the program only after the program is made */
	assert_int_equal(pb_bpf_map_lookup_elem(m->maps[pb_bpf_object_map(o, "jumps")].map, &one,
						&id, 0), -ENOENT);
	assert_int_equal(pb_bpf_make_prog(m, tail, NULL, 0), 0);
	assert_non_null(m->progs[tail].prog);
	assert_int_equal(pb_bpf_map_lookup_elem(m->maps[pb_bpf_object_map(o, "jumps")].map, &one,
						&id, 0), 0);
	assert_int_equal(id, tail + 1);
	id = (uint32_t)pb_bpf_object_prog(o, "not_ours");
	assert_true(pb_bpf_make_prog(m, id, NULL, 0) < 0);
	assert_non_null(strstr(m->progs[id].why, "fentry"));
	pb_bpf_made_free(m);
	pb_bpf_object_close(o);
}

/* A map that the caller supplies keeps its elements, and outlives the object. */
static void found(void **state)
{
	struct pb_bpf_object *o = open_with(SHAPES, NULL);
	struct pb_bpf_make_opts opts = { .caps = PB_BPF_CAP_ALL, .cpu_slots = 1, .find = find_kept,
		.arg = "first" };
	struct pb_bpf_map_spec spec = {
		.attr = { BPF_MAP_TYPE_ARRAY, 4, 4, 4, 0 },
		.types = { .spin_lock_off = -1, .timer_off = -1 }, .cpu_slots = 1,
	};
	struct pb_bpf_made *m;
	uint32_t zero = 0;
	int v = 42;

	assert_int_equal(pb_bpf_map_create(&kept, &spec), 0);
	assert_int_equal(pb_bpf_map_update_elem(&kept, &zero, &v, 0), 0);
	assert_int_equal(pb_bpf_make(o, &opts, &m), 0);
	assert_int_equal(pb_bpf_map_lookup_elem(m->maps[pb_bpf_object_map(o, "first")].map, &zero,
						&v, 0), 0);
	assert_int_equal(v, 42);
	v = 43;
	assert_int_equal(pb_bpf_map_update_elem(m->maps[pb_bpf_object_map(o, "first")].map, &zero,
						&v, 0), 0);
	pb_bpf_made_free(m);
	assert_int_equal(pb_bpf_map_lookup_elem(&kept, &zero, &v, 0), 0);
	assert_int_equal(v, 43);
	pb_bpf_map_close(&kept);
	pb_bpf_object_close(o);
}

/* --- CO-RE ------------------------------------------------------------------------ */

static const struct { const char *name; int64_t value; } values[] = {
	{ "off_b", 48 }, { "off_deep", 68 }, { "off_list", 24 }, { "size_grown", 4 },
	{ "size_list", 32 }, { "exists_a", 1 }, { "exists_missing", 0 }, { "signed_sign", 1 },
	{ "signed_bits", 0 }, { "lshift_more", 58 }, { "rshift_more", 58 }, { "off_more", 80 },
	{ "type_exists", 1 }, { "type_gone", 0 }, { "type_size", 88 }, { "type_size_gone", 0 },
	{ "exists_function", 1 }, { "enum_green", 4000 }, { "enum_exists", 1 }, { "enum_never", 0 },
	{ "enum_flavour", 77 },
	{ "exists_first", 1 },
};

static void core(void **state)
{
	struct pb_bpf_object_opts opts = { .target = TARGET };
	struct pb_bpf_object *o = open_with(CORE, &opts);
	const struct pb_bpf_object_prog *p;
	struct pb_bpf_btf *b;
	const char *why;

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		p = prog(o, values[i].name);
		assert_null(p->why);
		if (p->insns[0].imm != values[i].value || p->insns[0].dst_reg != 0)
			fail_msg("%s: %d", p->name, p->insns[0].imm);
	}
	assert_int_equal(pb_bpf_btf_open_file(TARGET, &b, &why), 0);
	assert_int_equal(prog(o, "id_target")->insns[0].imm,
			 pb_bpf_btf_find(b, "moved", BTF_KIND_STRUCT));
	pb_bpf_btf_close(b);
	p = prog(o, "load_grown");
	assert_int_equal(p->insns[0].code, BPF_LDX | BPF_MEM | BPF_W);
	assert_int_equal(p->insns[0].off, 72);
	refused(o, "ambiguous", "struct two.x");
	refused(o, "ambiguous_second", "struct third.second");
	pb_bpf_object_close(o);
	opts.target = "/nonexistent";
	o = open_with(CORE, &opts);
	refused(o, "off_b", "/nonexistent");
	assert_null(prog(o, "id_local")->why);
	pb_bpf_object_close(o);
	opts.types = TARGET;
	o = open_with(CORE, &opts);
	assert_null(prog(o, "off_b")->why);
	refused(o, "regs", "/nonexistent");	/* never from `types` */
	pb_bpf_object_close(o);
}

static void poison(void **state)
{
	struct pb_bpf_object *o = open_with(CORE, &(struct pb_bpf_object_opts){ .target = TARGET });
	const struct pb_bpf_object_prog *p = prog(o, "missing");

	assert_null(p->why);
	assert_int_equal(p->nr_poison, 1);
	assert_int_equal(p->insns[0].code, BPF_JMP | BPF_CALL);
	assert_int_equal(p->insns[0].imm, PB_BPF_POISON);
	assert_non_null(strstr(pb_bpf_object_explain(p, "; x\n0: (85) call unknown#195896080\n"
						     "invalid func unknown#195896080\n"),
			       "moved___absent.missing (0:0 @ offset 0)"));
	assert_null(pb_bpf_object_explain(p, "7: (85) call unknown#195896080\n"));
	assert_null(pb_bpf_object_explain(p, "0: (85) call unknown#1\n"));
	assert_null(pb_bpf_object_explain(p, NULL));
	p = prog(o, "enum_poison");
	/* the second half of the 64-bit load also has the poison */
	assert_int_equal(p->insns[1].imm, PB_BPF_POISON);
	assert_non_null(strstr(p->poison[0].text, "enum colour::NEVER = 3"));
	pb_bpf_object_close(o);
}

static uint8_t *read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = malloc(1 << 20);

	assert_true(f && data);
	*size = fread(data, 1, 1 << 20, f);
	fclose(f);
	return data;
}

/* Turns relocations with type_exists into relocations with type_matches, because clang may not have
 * type_matches. Returns how many were changed. */
static unsigned make_matches(uint8_t *data, size_t size)
{
	struct pb_bpf_elf e;
	const char *why;
	uint8_t *p, *end;
	uint32_t h[8], record;
	unsigned n = 0;
	size_t bytes;

	assert_int_equal(pb_bpf_elf_open(&e, data, size, &why), 0);
	p = (uint8_t *)pb_bpf_elf_data(&e, pb_bpf_elf_find(&e, ".BTF.ext"), &bytes);
	memcpy(h, p, sizeof(h));
	p += h[1] + h[6];
	end = p + h[7];
	memcpy(&record, p, 4);
	for (p += 4; p < end;) {
		uint32_t nr;

		memcpy(&nr, p + 4, 4);
		for (p += 8; nr; nr--, p += record)
			if (p[12] == BPF_CORE_TYPE_EXISTS) {
				p[12] = BPF_CORE_TYPE_MATCHES;
				n++;
			}
	}
	pb_bpf_elf_close(&e);
	return n;
}

static void matches(void **state)
{
	struct pb_bpf_object *o;
	size_t size;
	uint8_t *data = read_file(CORE, &size);
	char err[256];

	assert_int_equal(make_matches(data, size), 5);
	assert_int_equal(pb_bpf_object_open_memory(data, size,
						   &(struct pb_bpf_object_opts){ .target = TARGET },
						   &o, err, sizeof(err)), 0);
	assert_int_equal(prog(o, "matches")->insns[0].imm, 1);
	assert_int_equal(prog(o, "matches_not")->insns[0].imm, 0);
	/* a member is a short in the local type, and an int in the target, so the types don't
	 * match */
	assert_int_equal(prog(o, "type_exists")->insns[0].imm, 0);
	assert_int_equal(prog(o, "exists_function")->insns[0].imm, 1);
	pb_bpf_object_close(o);
	free(data);
}

/* Sets variables in sections that have contents in the file, and in sections without contents. A
 * number is refused if it is malformed or out of range. A name is refused if it isn't a variable's
 * name. */
static void settings(void **state)
{
	struct pb_bpf_object *o = open_with(SHAPES, NULL);
	int32_t v;

	assert_null(map(o, "shapes.bss")->contents);
	assert_int_equal(pb_bpf_object_set(o, "separate", "-0x12"), 0);
	memcpy(&v, map(o, ".data.separate")->contents, sizeof(v));
	assert_int_equal(v, -18);
	assert_int_equal(pb_bpf_object_set(o, "separate", "4294967295"), 0);
	assert_int_equal(pb_bpf_object_set(o, "separate", "true"), 0);
	memcpy(&v, map(o, ".data.separate")->contents, sizeof(v));
	assert_int_equal(v, 1);
	assert_int_equal(pb_bpf_object_set(o, "total", "77"), 0);
	assert_non_null(map(o, "shapes.bss")->contents);
	assert_int_equal(pb_bpf_object_set(o, "limit", "9"), 0);
	for (const char *const *bad = (const char *[]){ "4294967296", "-2147483649",
							"99999999999999999999", NULL }; *bad;
	     bad++)
		assert_int_equal(pb_bpf_object_set(o, "limit", *bad), -ERANGE);
	for (const char *const *bad = (const char *[]){ "", "x", "1x", "yes", NULL }; *bad; bad++)
		assert_int_equal(pb_bpf_object_set(o, "limit", *bad), -EINVAL);
	assert_int_equal(pb_bpf_object_set(o, "limi", "1"), -ENOENT);
	assert_int_equal(pb_bpf_object_set(o, "counts", "1"), -ENOENT);
	assert_int_equal(pb_bpf_object_set(o, "CONFIG_HZ", "1"), -ENOENT);
	pb_bpf_object_close(o);
}

/* --- malformed files ---------------------------------------------------------------- */

static void errors(void **state)
{
	struct pb_bpf_object *o;
	size_t size;
	uint8_t *data = read_file(SHAPES, &size);
	char err[256];

	assert_int_equal(pb_bpf_object_open("/nonexistent", NULL, &o, err, sizeof(err)), -ENOENT);
	assert_string_equal(err, "No such file or directory");
	assert_null(o);
	assert_int_equal(pb_bpf_object_open("/proc/self/exe", NULL, &o, err, sizeof(err)), -EINVAL);
	assert_string_equal(err, "not an eBPF object file");
	assert_int_equal(pb_bpf_object_open_memory("", 0, NULL, &o, NULL, 0), -EINVAL);
	data[5] = ELFDATA2MSB;
	assert_int_equal(pb_bpf_object_open_memory(data, size, NULL, &o, err, sizeof(err)),
			 -EINVAL);
	assert_non_null(strstr(err, "big-endian"));
	data[5] = ELFDATA2LSB;
	for (size_t n = 0; n < size; n += 7)	/* the table of sections is at the end of the file,
						 * so each cut removes a part of it */
		assert_int_equal(pb_bpf_object_open_memory(data, n, NULL, &o, err, sizeof(err)),
				 -EINVAL);
	free(data);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(maps), cmocka_unit_test(variables), cmocka_unit_test(sections),
		cmocka_unit_test(functions), cmocka_unit_test(targets), cmocka_unit_test(kconfig),
		cmocka_unit_test(elf_without_memory),
		cmocka_unit_test(made), cmocka_unit_test(found), cmocka_unit_test(core),
		cmocka_unit_test(poison), cmocka_unit_test(matches), cmocka_unit_test(settings),
		cmocka_unit_test(errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
