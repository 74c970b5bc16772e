/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Handles symbols that an object doesn't define. Variables in .kconfig become a map. Symbols in
 * .ksyms are the kernel's variables and functions. Of these, only the functions of kfunc.h exist in
 * user space. A weak variable or symbol has the value 0 if its value is unknown or if it doesn't
 * exist. If it isn't weak, functions that use it are rejected, and the reason names it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "bpf/helper/kfunc.h"
#include "bpfload/load_priv.h"

#define NAME_WORK	128	/* steps of work (load_work()) for the longest name of a symbol */

/* Returns the id of the variable or function with this name in a BTF section of externs, or 0.
 * *number: the variable's number in the section. */
static uint32_t in_section(const struct pb_bpf_btf *b, uint32_t datasec, const char *name,
			   uint32_t *number)
{
	const struct btf_type *t = datasec ? pb_bpf_btf_type(b, datasec) : NULL;

	for (uint32_t i = 0; t && i < pb_btf_vlen(t); i++) {
		uint32_t id = pb_btf_vars(t)[i].type;
		const struct btf_type *v = pb_bpf_btf_type(b, id);

		if (v && !strcmp(pb_bpf_btf_name(b, v), name)) {
			*number = i;
			return id;
		}
	}
	return 0;
}

static uint32_t align_of(const struct pb_bpf_btf *b, uint32_t id)
{
	for (int n = 0; n < PB_BPF_BTF_DEPTH; n++) {
		const struct btf_type *t = pb_bpf_btf_skip(b, id, true, &id);
		int64_t size = pb_bpf_btf_size(b, id);

		if (t && pb_btf_kind(t) == BTF_KIND_ARRAY)
			id = pb_btf_array(t)->type;
		else
			return size == 2 || size == 4 || size == 8 ? (uint32_t)size : size > 8 ? 8 :
			1;
	}
	return 8;
}

static int read_extern(struct load *l, struct load_extern *e, uint32_t kconfig, uint32_t ksyms)
{
	const struct pb_bpf_btf *b = l->object.btf;
	const struct btf_type *t;
	const char *spent = NULL;
	int64_t size;

	e->kind = LOAD_UNKNOWN;
	if (!b)
		return 0;
	if (!load_compare(l, (kconfig ? pb_btf_vlen(pb_bpf_btf_type(b, kconfig)) : 0) +
			     (ksyms ? pb_btf_vlen(pb_bpf_btf_type(b, ksyms)) : 0), e->name, &spent))
		return load_refuse(l, "%s", spent);
	e->btf = in_section(b, kconfig, e->name, &e->number);
	if (e->btf) {
		t = pb_bpf_btf_type(b, e->btf);
		size = pb_btf_kind(t) == BTF_KIND_VAR ? pb_bpf_btf_size(b, t->type) : -1;
		if (size <= 0 || size > 4096)
			return load_refuse(l, "extern (kconfig) %s: its size must be 1 to 4096 "
					      "bytes", e->name);
		e->kind = LOAD_KCONFIG;
		e->size = (uint32_t)size;
		e->align = align_of(b, t->type);
		return 0;
	}
	e->btf = in_section(b, ksyms, e->name, &e->number);
	if (e->btf)
		e->kind = pb_btf_kind(pb_bpf_btf_type(b, e->btf)) == BTF_KIND_FUNC ? LOAD_KFUNC :
			  LOAD_KSYM;
	if (e->kind == LOAD_KFUNC)
		e->kfunc = pb_bpf_kfunc_find(e->name);
	return 0;
}

/* --- values of .kconfig ----------------------------------------------------- */

/* Ubuntu and Debian write other numbers into `release` than the kernel's LINUX_VERSION_CODE has. */
uint32_t load_kernel_version(const char *signature, const struct utsname *u)
{
	const char *debian = strstr(u->version, "Debian ");
	unsigned a, b, c;

	if (sscanf(signature, "%*s %*s %u.%u.%u", &a, &b, &c) != 3 &&
	    (!debian || sscanf(debian, "Debian %u.%u.%u", &a, &b, &c) != 3) &&
	    sscanf(u->release, "%u.%u.%u", &a, &b, &c) != 3)
		return 0;
	return (a << 16) + (b << 8) + (c > 255 ? 255 : c);
}

static uint32_t kernel_version(const struct load *l)
{
	FILE *f = l->opts.kernel_version ? NULL : fopen("/proc/version_signature", "re");
	char signature[256] = "";
	struct utsname u;

	if (f) {
		if (!fgets(signature, sizeof(signature), f))
			signature[0] = 0;
		fclose(f);
	}
	if (l->opts.kernel_version)
		return l->opts.kernel_version;
	return uname(&u) ? 0 : load_kernel_version(signature, &u);
}

/* Looks in opts.kconfig for a line that begins with "NAME=", and copies the rest of this line to
 * `text`. Returns false if there is no such line. */
static bool config_text(const struct load *l, const char *name, char *text, size_t size)
{
	size_t n = strlen(name);

	for (const char *p = l->opts.kconfig; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 :
	     NULL) {
		if (strncmp(p, name, n) || p[n] != '=')
			continue;
		snprintf(text, size, "%.*s", (int)strcspn(p + n + 1, "\n"), p + n + 1);
		return true;
	}
	return false;
}

static bool store(uint8_t *at, uint32_t size, uint64_t v)
{
	if (size != 1 && size != 2 && size != 4 && size != 8)
		return false;
	if (size < 8 && v >> 8 * size && (int64_t)v >> (8 * size - 1) != -1)
		return false;
	memcpy(at, &v, size);
	return true;
}

/* Stores the value that the text stands for. The text is y, m or n, a string in quotes, or a
 * number. */
static bool store_text(const struct load *l, const struct load_extern *e, const char *text,
		       uint8_t *at)
{
	const struct pb_bpf_btf *b = l->object.btf;
	const struct btf_type *t = pb_bpf_btf_skip(b, pb_bpf_btf_type(b, e->btf)->type, true, NULL);
	size_t n = strlen(text);
	bool number;
	char *end;
	uint64_t v;

	if (!t)
		return false;
	if (text[0] == '"') {
		if (pb_btf_kind(t) != BTF_KIND_ARRAY || n < 2 || text[n - 1] != '"')
			return false;
		n = n - 2 < e->size - 1 ? n - 2 : e->size - 1;
		memcpy(at, text + 1, n);
		return true;
	}
	number = pb_btf_kind(t) == BTF_KIND_INT &&
		 !(BTF_INT_ENCODING(pb_btf_int(t)) & BTF_INT_BOOL);
	if (n == 1 && strchr("ymn", text[0])) {
		if (pb_btf_is_enum(t))		/* enum libbpf_tristate */
			return store(at, e->size, text[0] == 'y' ? 1 : text[0] == 'm' ? 2 : 0);
		if (pb_btf_kind(t) != BTF_KIND_INT || e->size != 1 || (!number && text[0] == 'm'))
			return false;
		return store(at, 1, number ? (uint64_t)text[0] : text[0] == 'y');
	}
	if (!number)
		return false;
	v = strtoull(text, &end, 0);
	return end != text && !*end && store(at, e->size, v);
}

static bool store_known(struct load *l, const struct load_extern *e, uint8_t *at)
{
	static const char *const machine[] = {	/* these variables have the value y, because
						 * Patchbay can run eBPF programs */
		"CONFIG_BPF", "CONFIG_BPF_SYSCALL", "CONFIG_BPF_JIT",
	};
	char text[256];
	uint32_t version;

	for (size_t i = 0; i < sizeof(machine) / sizeof(machine[0]); i++)
		if (!strcmp(e->name, machine[i]))
			return store_text(l, e, "y", at);	/* the variable may be a bool, a
								 * char or an enumeration */
	if (!strcmp(e->name, "LINUX_KERNEL_VERSION")) {
		version = kernel_version(l);
		return version && store(at, e->size, version);
	}
	if (!strcmp(e->name, "LINUX_HAS_BPF_COOKIE") ||
	    !strcmp(e->name, "LINUX_HAS_SYSCALL_WRAPPER"))
		return store(at, e->size, 1);
	return config_text(l, e->name, text, sizeof(text)) && store_text(l, e, text, at);
}

/* Sorts as libbpf does: .kconfig first, then by alignment (larger first), by size (smaller first)
 * and by name. */
static int by_layout(const void *a, const void *b)
{
	const struct load_extern *x = a, *y = b;

	if ((x->kind == LOAD_KCONFIG) != (y->kind == LOAD_KCONFIG))
		return x->kind == LOAD_KCONFIG ? -1 : 1;
	if (x->align != y->align)
		return x->align > y->align ? -1 : 1;
	if (x->size != y->size)
		return x->size < y->size ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int add_kconfig(struct load *l, uint32_t datasec)
{
	struct pb_bpf_object_map *map = NULL;
	size_t config = l->opts.kconfig ? strlen(l->opts.kconfig) : 0;
	const char *spent = NULL;
	uint64_t size = 0;
	uint8_t *values;
	char name[BPF_OBJ_NAME_LEN];

	for (uint32_t i = 0; i < l->nr_externs && l->externs[i].kind == LOAD_KCONFIG; i++) {
		struct load_extern *e = &l->externs[i];

		size = (size + e->align - 1) / e->align * e->align;
		e->off = (uint32_t)size;
		size += e->size;
		if (size > INT32_MAX)
			return load_refuse(l, "the variables in .kconfig are too large for a map");
	}
	if (!size)
		return 0;
	l->kconfig = (int32_t)l->object.nr_maps;
	map = load_map_add(l, 0, 0, 0);
	values = load_alloc(l, size);
	if (!map || !values)
		return -ENOMEM;
	snprintf(name, sizeof(name), "%.7s.kconfig", l->object.name);
	map->name = load_text(l, name);
	if (!map->name)
		return -ENOMEM;
	map->section = ".kconfig";
	map->kind = PB_BPF_MAP_KCONFIG;
	map->contents = values;
	map->types.btf_value = datasec;
	map->attr = (struct pb_bpf_map_attr){ BPF_MAP_TYPE_ARRAY, 4, (uint32_t)size, 1,
		BPF_F_RDONLY_PROG | BPF_F_MMAPABLE };
	for (uint32_t i = 0; i < l->nr_externs && l->externs[i].kind == LOAD_KCONFIG; i++) {
		if (!load_work(l, config, &spent))
			return load_refuse(l, "%s", spent);
		l->externs[i].known = store_known(l, &l->externs[i], values + l->externs[i].off);
		/* the compiler leaves the offset at 0, since the layout is the loader's */
		pb_bpf_btf_place(l->object.btf, datasec, l->externs[i].number, l->externs[i].off);
	}
	return 0;
}

static bool may_be_extern(const Elf64_Sym *s)
{
	return s->st_shndx == SHN_UNDEF && ELF64_ST_BIND(s->st_info) != STB_LOCAL;
}

static bool is_extern(const struct load *l, const Elf64_Sym *s)
{
	return may_be_extern(s) && pb_bpf_elf_sym_name(&l->elf, s)[0];
}

/* Returns the number of externs, or -1 if there is too much work. Symbols may have their names in
 * common. */
static int64_t nr_externs(struct load *l, const char **why)
{
	int64_t n = 0;

	for (uint32_t i = 1; i < l->elf.nr_syms; i++) {
		Elf64_Sym s = pb_bpf_elf_sym(&l->elf, i);

		if (may_be_extern(&s) && !load_work(l, NAME_WORK, why))
			return -1;
		n += is_extern(l, &s);
	}
	return n;
}

int load_externs(struct load *l)
{
	const struct pb_bpf_btf *b = l->object.btf;
	uint32_t kconfig = b ? pb_bpf_btf_find(b, ".kconfig", BTF_KIND_DATASEC) : 0;
	uint32_t ksyms = b ? pb_bpf_btf_find(b, ".ksyms", BTF_KIND_DATASEC) : 0;
	const char *spent = NULL;
	int64_t n = nr_externs(l, &spent);
	int ret = 0;

	if (n < 0)
		return load_refuse(l, "%s", spent);
	l->externs = load_alloc(l, (uint64_t)n * sizeof(l->externs[0]));
	l->extern_of = load_alloc(l, l->elf.nr_syms * sizeof(l->extern_of[0]));
	if (!l->externs || !l->extern_of)
		return -ENOMEM;
	for (uint32_t i = 1; i < l->elf.nr_syms && !ret; i++) {
		Elf64_Sym s = pb_bpf_elf_sym(&l->elf, i);
		struct load_extern *e = &l->externs[l->nr_externs];

		if (!is_extern(l, &s))
			continue;
		l->nr_externs++;
		e->sym = i;
		e->weak = ELF64_ST_BIND(s.st_info) == STB_WEAK;
		e->name = load_text(l, pb_bpf_elf_sym_name(&l->elf, &s));
		ret = e->name ? read_extern(l, e, kconfig, ksyms) : -ENOMEM;
	}
	if (ret)
		return ret;
	qsort(l->externs, l->nr_externs, sizeof(l->externs[0]), by_layout);
	for (uint32_t i = 0; i < l->nr_externs; i++)
		l->extern_of[l->externs[i].sym] = i + 1;
	return add_kconfig(l, kconfig);
}

struct load_extern *load_extern_of(const struct load *l, uint32_t sym)
{
	uint32_t n = sym < l->elf.nr_syms ? l->extern_of[sym] : 0;

	return n ? &l->externs[n - 1] : NULL;
}
