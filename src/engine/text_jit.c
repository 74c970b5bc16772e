/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a debugger needs to know about stubs, by gdb's JIT interface: for each
 * module with stubs one ELF image in memory, with a symbol patchbay_stub_NAME
 * for each stub and its unwind table. gdb reads it when it attaches, or when it is
 * told (base/debugger.h).
 *
 *   struct pb_debugger_entry
 *   ELF header, section headers and their names
 *   .symtab	of absolute addresses
 *   .strtab
 *   .eh_frame	addresses relative to .text, the region of stubs
 */
#include <elf.h>
#include <sys/mman.h>
#include "engine/text_priv.h"
#include "engine/text_rows.h"
#include "arch/x86_64/stub.h"
#include "base/base.h"
#include "base/debugger.h"
#include "base/pages.h"
#include "base/sys.h"

#define STUB_PREFIX	"patchbay_stub_"
#define EXIT_PREFIX	"patchbay_exit_"
#define STUB_STEP	4	/* stubs of exits begin so */

enum { NONE, TEXT, SYMTAB, STRTAB, EH_FRAME, SHSTRTAB, NR_SECTIONS };

/* All that comes before .symtab. */
struct image {
	struct pb_debugger_entry entry;
	Elf64_Ehdr ehdr;
	Elf64_Shdr sections[NR_SECTIONS];
	char names[48];
};

static const char section_names[] = "\0.text\0.symtab\0.strtab\0.eh_frame\0.shstrtab";
static const uint8_t section_name_at[] = { 0, 1, 7, 15, 23, 33 };

/* ---- the image ----------------------------------------------------------- */

struct sizes {
	uint32_t stubs;
	size_t names, table;
};

/* Stubs of exits one by one. Those of one function mostly follow each other: they have
 * its name in common. */
struct exit_names {
	const struct pb_func *func;	/* that the last one was in */
	size_t at;			/* of its name */
};

/* Whether the window is in another function than the one before. */
static bool next_exit(struct exit_names *n, const struct pb_module *m, uint32_t window)
{
	const struct pb_func *f = pb_analysis_funcs(m->analysis);
	uint64_t start = pb_analysis_windows(m->analysis)[window].start;
	int64_t i;

	if (n->func && start >= n->func->addr && (n->func + 1 == f + m->analysis->nr_funcs || start < n->func[1].addr))
		return false;
	i = pb_analysis_lower(m->analysis, start);
	n->func = f + (i < 0 ? 0 : i);
	return true;
}

static struct sizes sizes_of(const struct pb_module *m)
{
	struct sizes s = { 0, 1, PB_ROWS_BEGIN };
	struct exit_names n = { NULL, 0 };

	for (uint32_t i = 0; i < m->analysis->nr_funcs; i++) {
		const struct pb_func *f = pb_analysis_funcs(m->analysis) + i;
		const struct pb_recipe *r;

		if (!m->sites[i].stub)
			continue;
		r = pb_func_recipe(m->analysis, f);
		s.stubs++;
		s.names += sizeof(STUB_PREFIX) + strlen(pb_func_name(m->analysis, f));
		s.table += pb_rows_size(r);
	}
	for (uint32_t i = 0; i < m->nr_exit_stubs; i++) {
		const struct pb_exit_window *w = pb_analysis_windows(m->analysis) + m->exit_order[i];

		s.stubs++;
		if (next_exit(&n, m, m->exit_order[i]))
			s.names += sizeof(EXIT_PREFIX) + strlen(pb_func_name(m->analysis, n.func));
		s.table += pb_rows_size(pb_window_recipe(m->analysis, w));
	}
	return s;
}

static void put_section(struct image *im, unsigned i, uint32_t type, const void *start, size_t size)
{
	im->sections[i] = (Elf64_Shdr){
		.sh_name = section_name_at[i], .sh_type = type, .sh_size = size, .sh_addralign = 1,
		.sh_offset = (uint64_t)start - (uint64_t)&im->ehdr,
	};
}

static void put_headers(struct image *im, const struct pb_module *m)
{
	memcpy(im->names, section_names, sizeof(section_names));
	im->ehdr = (Elf64_Ehdr){
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_EXEC, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
		.e_shoff = offsetof(struct image, sections) - offsetof(struct image, ehdr),
		.e_ehsize = sizeof(Elf64_Ehdr), .e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = NR_SECTIONS, .e_shstrndx = SHSTRTAB,
	};
	put_section(im, TEXT, SHT_NOBITS, &im->ehdr, m->stubs_used);
	im->sections[TEXT].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	im->sections[TEXT].sh_addr = (uint64_t)m->stubs;
	put_section(im, SHSTRTAB, SHT_STRTAB, im->names, sizeof(im->names));
}

struct names {
	char *to;
	size_t size, at;
};

static size_t put_name(struct names *n, const char *prefix, const char *name)
{
	size_t at = n->at;

	pb_put_str(n->to, n->size, &n->at, prefix);
	pb_put_str(n->to, n->size, &n->at, name);
	n->at++;
	return at;
}

static Elf64_Sym symbol(size_t name, uint64_t value, uint64_t size)
{
	return (Elf64_Sym){
		.st_name = (uint32_t)name, .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC), .st_shndx = TEXT,
		.st_value = value, .st_size = size,
	};
}

/* Symbols, in the order of the functions; then those of exits. */
static char *put_symbols(struct image *im, const struct pb_module *m, const struct sizes *s)
{
	Elf64_Sym *sym = (Elf64_Sym *)(im + 1), *first = sym++;
	struct names n = { (char *)(first + s->stubs + 1), s->names, 1 };
	struct exit_names e = { NULL, 0 };

	for (uint32_t i = 0; i < m->analysis->nr_funcs; i++) {
		const struct pb_func *f = pb_analysis_funcs(m->analysis) + i;
		struct pb_place p;

		if (!m->sites[i].stub)
			continue;
		p = pb_func_place(m->analysis, f);
		*sym++ = symbol(put_name(&n, STUB_PREFIX, pb_func_name(m->analysis, f)),
				(uint64_t)m->stubs + m->sites[i].stub, pb_stub_size(&p));
	}
	for (uint32_t i = 0; i < m->nr_exit_stubs; i++) {
		uint32_t window = m->exit_order[i];
		struct pb_place p = pb_window_place(m->analysis, pb_analysis_windows(m->analysis) + window);

		if (next_exit(&e, m, window))
			e.at = put_name(&n, EXIT_PREFIX, pb_func_name(m->analysis, e.func));
		*sym++ = symbol(e.at, (uint64_t)m->stubs + m->exits[window].stub, pb_body_size(&p));
	}
	put_section(im, SYMTAB, SHT_SYMTAB, first, (size_t)((char *)sym - (char *)first));
	im->sections[SYMTAB].sh_link = STRTAB;
	im->sections[SYMTAB].sh_info = s->stubs + 1;
	im->sections[SYMTAB].sh_entsize = sizeof(Elf64_Sym);
	put_section(im, STRTAB, SHT_STRTAB, n.to, n.at);
	return n.to + n.at;
}

/* What stands at `at`: the site's stub or the next exit's; bytes to go on by. */
static size_t put_next(struct pb_rows *t, const struct pb_module *m, const uint8_t *at, uint32_t *exit)
{
	const struct pb_site *s = pb_stub_site(at);
	uint32_t window = *exit < m->nr_exit_stubs ? m->exit_order[*exit] : 0;
	struct pb_place p;

	if (*exit < m->nr_exit_stubs && m->exits[window].stub == (size_t)(at - m->stubs)) {
		++*exit;
		p = pb_window_place(m->analysis, pb_analysis_windows(m->analysis) + window);
		pb_rows_exit(t, (uint64_t)at, &p);
		return pb_align_up(pb_body_size(&p), (size_t)STUB_STEP);
	}
	if ((at - m->stubs) % 16 || s < m->sites || s >= m->sites + m->analysis->nr_funcs || !pb_stub_is(at, s))
		return STUB_STEP;
	p = pb_func_place(m->analysis, pb_site_func(m, s));
	pb_rows_stub(t, (uint64_t)at, &p);
	return pb_stub_size(&p);
}

/* In the order of the stubs: runs of plain ones share an entry. */
static uint8_t *put_table(struct image *im, const struct pb_module *m, uint8_t *start)
{
	struct pb_rows t = { .at = start, .text = (uint64_t)m->stubs };
	const uint8_t *at = m->stubs + 16, *end = m->stubs + m->stubs_used;
	uint32_t exit = 0;

	pb_rows_begin(&t);
	while (at < end)
		at += put_next(&t, m, at, &exit);
	pb_rows_end(&t, (uint64_t)end);
	put_section(im, EH_FRAME, SHT_PROGBITS, start, (size_t)(t.at - start));
	return t.at;
}

void pb_jit_withdraw(struct pb_module *m)
{
	struct pb_debugger_entry *e = m->jit;

	if (!e)
		return;
	m->jit = NULL;
	pb_debugger_remove(e);
	pb_pages_unmap((uint64_t)e, m->jit_size);
}

void pb_jit_announce(struct pb_module *m)
{
	struct sizes s = sizes_of(m);
	size_t size = sizeof(struct image) + (s.stubs + 1) * sizeof(Elf64_Sym) + s.names + s.table;
	struct image *im;
	long p;

	pb_jit_withdraw(m);
	p = pb_pages_map(0, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (pb_sys_failed(p))
		return;	/* a debugger sees less */
	pb_pages_dump((uint64_t)p, size);
	im = (struct image *)p;
	put_headers(im, m);
	im->entry.symfile = (const char *)&im->ehdr;
	im->entry.size = (uint64_t)put_table(im, m, (uint8_t *)put_symbols(im, m, &s)) -
				 (uint64_t)&im->ehdr;
	m->jit = &im->entry;
	m->jit_size = size;
	m->jit_stubs = m->stubs_used;
	pb_debugger_add(&im->entry);
}
