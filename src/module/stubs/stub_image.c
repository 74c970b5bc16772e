/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes a module's file of stubs (abi/stubs.h) from its analysis, for the recorder. There are two
 * passes. The first pass goes over functions and windows of exits together, in the order of their
 * addresses. It decides where each stub lies, and writes symbols and unwind rows. Then the file's
 * size is known, and so is the file's address in memory. The second pass writes the stubs of the
 * functions, and then the stubs of the windows of exits.
 */
#include <elf.h>
#include <errno.h>
#include "abi/stubs.h"
#include "arch/arch.h"
#include "base/base.h"
#include "module/stubs/stub_image.h"
#include "module/stubs/stub_rows.h"

#define STUB_PREFIX	"patchbay_stub_"
#define EXIT_PREFIX	"patchbay_exit_"
#define HANDLERS	"patchbay_handlers"	/* names the first PB_STUBS_HEAD bytes of .text,
						 * into which the agent copies handlers */
#define EXIT_ALIGN	4u	/* small, because most stubs of exits rarely run */
#define SITE_ALIGN	16u
#define NOTE_SIZE	32u
#define PHDRS		3
#define MAX_SIZE	(1u << 30)

static const char section_names[] =
	"\0.text\0.note.gnu.build-id\0.eh_frame_hdr\0.eh_frame\0.symtab\0.strtab\0.shstrtab";
static const uint8_t section_name_at[] = { 0, 1, 7, 26, 40, 50, 58, 66 };

struct image {
	const struct pb_analysis *a;
	const struct pb_cfi *cfi;
	struct pb_stubs head;
	uint32_t at;		/* offset of the next stub in the file */
	uint32_t *funcs, *windows;
	uint32_t func;		/* the function that lay_func() has handled last */
	uint32_t exit_name;	/* offset in `names` of the symbol name that func's exits share;
				 * 0: the name is not written yet */
	struct pb_rows rows;
	PB_VEC(Elf64_Sym) symbols;
	PB_VEC(char) names;
	Elf64_Shdr sections[PB_STUBS_NR_SECTIONS];
	uint8_t *file;
};

/* ---- where each stub lies -------------------------------------------------- */

static uint32_t put_name(struct image *im, const char *prefix, const char *name)
{
	uint32_t at = (uint32_t)im->names.n;

	pb_vec_append(&im->names, prefix, strlen(prefix));
	pb_vec_append(&im->names, name, strlen(name) + 1);
	return at;
}

static void put_symbol(struct image *im, uint32_t name, uint32_t at, size_t size)
{
	pb_vec_push(&im->symbols, (Elf64_Sym){
		.st_name = name, .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
		.st_shndx = PB_STUBS_TEXT, .st_value = at, .st_size = size,
	});
}

static void lay_func(struct image *im, uint32_t i)
{
	const struct pb_func *f = pb_analysis_funcs(im->a) + i;
	struct pb_place p;
	size_t size;

	im->func = i;
	im->exit_name = 0;
	if (f->refused != PB_REFUSED_NOT)
		return;
	p = pb_func_place(im->a, f);
	size = pb_stub_size(&p);
	im->at = pb_align_up(im->at, SITE_ALIGN);
	im->funcs[i] = im->at - im->head.text;
	put_symbol(im, put_name(im, STUB_PREFIX, pb_func_name(im->a, f)), im->at, size);
	pb_rows_stub(&im->rows, im->at, &p);
	im->at += (uint32_t)size;
}

static void lay_window(struct image *im, uint32_t i)
{
	const struct pb_exit_window *w = pb_analysis_windows(im->a) + i;
	struct pb_place p;
	size_t size;

	if (w->how == PB_EXIT_ENTRY) {
		im->windows[i] = im->at - im->head.text;
		return;
	}
	p = pb_window_place(im->a, w);
	size = pb_body_size(&p);
	im->at = pb_align_up(im->at, EXIT_ALIGN);
	im->windows[i] = im->at - im->head.text;
	if (!im->exit_name && im->a->nr_funcs)
		im->exit_name = put_name(im, EXIT_PREFIX,
					 pb_func_name(im->a, pb_analysis_funcs(im->a) + im->func));
	put_symbol(im, im->exit_name, im->at, size);
	pb_rows_exit(&im->rows, im->at, &p);
	im->at += (uint32_t)size;
}

/* True if the file becomes too large. */
static bool is_full(const struct image *im)
{
	return im->at + (uint64_t)im->rows.out.n + pb_rows_hdr_size(&im->rows) + im->names.n +
	       im->symbols.n * sizeof(Elf64_Sym) >= MAX_SIZE;
}

/* Lays out all stubs. The stubs of a function's exits come after its entry's stub. */
static void lay_stubs(struct image *im)
{
	const struct pb_func *f = pb_analysis_funcs(im->a);
	const struct pb_exit_window *w = pb_analysis_windows(im->a);
	uint32_t window = 0;

	im->at = im->head.text + PB_STUBS_HEAD;
	pb_rows_begin(&im->rows, im->cfi);
	im->rows.plain = im->head.text;
	pb_vec_push(&im->symbols, (Elf64_Sym){ 0 });
	pb_vec_push(&im->names, '\0');
	put_symbol(im, put_name(im, HANDLERS, ""), im->head.text, PB_STUBS_HEAD);
	for (uint32_t i = 0; i < im->a->nr_funcs && !is_full(im); i++) {
		for (; window < im->a->nr_windows && w[window].start < f[i].addr &&
		     !is_full(im); window++)
			lay_window(im, window);
		lay_func(im, i);
	}
	for (; window < im->a->nr_windows && !is_full(im); window++)
		lay_window(im, window);
	pb_rows_end(&im->rows, im->at);
}

/* ---- the file -------------------------------------------------------------- */

static void put_section(struct image *im, unsigned i, uint32_t type, uint32_t *at, size_t size,
			uint32_t align)
{
	uint32_t start = pb_align_up(*at, align);

	im->sections[i] = (Elf64_Shdr){
		.sh_name = section_name_at[i], .sh_type = type, .sh_size = size,
		.sh_addralign = align, .sh_offset = start,
		.sh_flags = i <= PB_STUBS_EH_FRAME ? SHF_ALLOC : 0,
		.sh_addr = i <= PB_STUBS_EH_FRAME ? start : 0,
	};
	*at = start + (uint32_t)size;
}

/* Sets the place and size of each section in the file: first of .text, then of the other sections.
 * Sets the size of the file, too. */
static void lay_sections(struct image *im)
{
	uint32_t at = im->head.text;
	Elf64_Shdr *s = im->sections;

	put_section(im, PB_STUBS_TEXT, SHT_PROGBITS, &at, im->head.text_size, PB_STUBS_PAGE);
	s[PB_STUBS_TEXT].sh_flags |= SHF_EXECINSTR;
	put_section(im, PB_STUBS_NOTE, SHT_NOTE, &at, NOTE_SIZE, 8);
	put_section(im, PB_STUBS_EH_HDR, SHT_PROGBITS, &at, pb_rows_hdr_size(&im->rows), 8);
	put_section(im, PB_STUBS_EH_FRAME, SHT_PROGBITS, &at, im->rows.out.n, 8);
	put_section(im, PB_STUBS_SYMTAB, SHT_SYMTAB, &at, im->symbols.n * sizeof(Elf64_Sym), 8);
	s[PB_STUBS_SYMTAB].sh_link = PB_STUBS_STRTAB;
	s[PB_STUBS_SYMTAB].sh_info = (uint32_t)im->symbols.n;
	s[PB_STUBS_SYMTAB].sh_entsize = sizeof(Elf64_Sym);
	put_section(im, PB_STUBS_STRTAB, SHT_STRTAB, &at, im->names.n, 1);
	put_section(im, PB_STUBS_SHSTRTAB, SHT_STRTAB, &at, sizeof(section_names), 1);
	im->head.size = pb_align_up(at, 8u);
}

static void put_bytes(struct image *im, unsigned section, const void *bytes)
{
	memcpy(im->file + im->sections[section].sh_offset, bytes, im->sections[section].sh_size);
}

static Elf64_Phdr segment(const Elf64_Shdr *s, uint32_t type, uint32_t flags)
{
	return (Elf64_Phdr){
		.p_type = type, .p_flags = flags, .p_offset = s->sh_offset,
		.p_vaddr = s->sh_offset, .p_paddr = s->sh_offset, .p_filesz = s->sh_size,
		.p_memsz = s->sh_size,
		.p_align = s->sh_addralign,
	};
}

static void put_headers(struct image *im)
{
	Elf64_Shdr whole = { .sh_size = im->head.size, .sh_addralign = PB_STUBS_PAGE };
	Elf64_Ehdr eh = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
		.e_phoff = sizeof(eh), .e_phentsize = sizeof(Elf64_Phdr), .e_phnum = PHDRS,
		.e_shoff = im->head.sections, .e_ehsize = sizeof(eh),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = PB_STUBS_NR_SECTIONS, .e_shstrndx = PB_STUBS_SHSTRTAB,
	};
	Elf64_Phdr ph[PHDRS] = {
		segment(&whole, PT_LOAD, PF_R | PF_X),
		segment(&im->sections[PB_STUBS_NOTE], PT_NOTE, PF_R),
		segment(&im->sections[PB_STUBS_EH_HDR], PT_GNU_EH_FRAME, PF_R),
	};

	_Static_assert(sizeof(eh) + sizeof(ph) + sizeof(im->sections) <= PB_STUBS_AT,
		       "abi/stubs.h");
	memcpy(im->file, &eh, sizeof(eh));
	memcpy(im->file + sizeof(eh), ph, sizeof(ph));
	memcpy(im->file + im->head.sections, im->sections, sizeof(im->sections));
}

/* Chooses the address in memory for which the file's code is written. The address is within reach
 * of jumps between the module and the file. It is above a module that has a low fixed address, and
 * below any other module (abi/stubs.h). */
static void choose_place(struct image *im)
{
	uint64_t page = ~(uint64_t)(PB_STUBS_PAGE - 1);
	uint64_t size = im->head.front + pb_align_up(im->head.size, (uint64_t)PB_STUBS_PAGE);
	uint64_t at = (im->a->image_start & page) - PB_STUBS_BELOW;

	if (!(im->a->flags & PB_AN_PIE) && im->a->image_start < 2 * PB_STUBS_BELOW)
		at = (PB_STUBS_REACH - PB_STUBS_END - size) & page;
	im->head.place = at + im->head.front;
}

/* ---- code ------------------------------------------------------------------ */

static void put_code(struct image *im)
{
	uint64_t text = im->head.place + im->head.text, sites = im->head.place - im->head.front;
	const struct pb_returns *words = (void *)(sites + im->a->nr_funcs * sizeof(struct pb_site));
	uint8_t *out = im->file + im->head.text;

	memset(out, PB_STUBS_BAD, im->head.text_size);
	for (uint32_t i = 0; i < im->a->nr_funcs; i++) {
		const struct pb_func *f = pb_analysis_funcs(im->a) + i;
		uint32_t at = im->funcs[i];
		struct pb_place p;

		if (!at)
			continue;
		p = pb_func_place(im->a, f);
		if (pb_stub_emit(out + at, text + at,
				 (void *)(sites + i * sizeof(struct pb_site)), &p, words, 0))
			out[at] = PB_STUBS_BAD;
	}
	for (uint32_t i = 0; i < im->a->nr_windows; i++) {
		const struct pb_exit_window *w = pb_analysis_windows(im->a) + i;
		uint32_t at = im->windows[i];
		struct pb_place p;

		if (w->how == PB_EXIT_ENTRY)
			continue;
		p = pb_window_place(im->a, w);
		if (pb_body_emit(out + at, text + at, &p, words, 0))
			out[at] = PB_STUBS_BAD;
	}
}

uint64_t pb_stubs_sum(const struct pb_stubs *s)
{
	const uint64_t *word = (const uint64_t *)((const char *)s - PB_STUBS_AT);
	const uint64_t *not = &s->sum, *end = word + s->size / 8;
	uint64_t h[2] = { 0x9e3779b97f4a7c15ull, 0xc2b2ae3d27d4eb4full };

	for (; word < end; word++) {
		uint64_t v = word == not ? 0 : *word;

		h[0] = (h[0] ^ v) * 0x9fb21c651e98df25ull;
		h[1] = (h[1] + v) * 0xd6e8feb86659fd93ull;
		h[1] ^= h[1] >> 32;
	}
	return h[0] ^ h[0] >> 29 ^ h[1];
}

/* Writes struct pb_stubs and the build-id, which consists of two checksums of the file. Then sets
 * `sum` in struct pb_stubs, which is a checksum of the file with this build-id. */
static void put_identity(struct image *im)
{
	uint8_t *note = im->file + im->sections[PB_STUBS_NOTE].sh_offset;
	struct pb_stubs *head = (struct pb_stubs *)(im->file + PB_STUBS_AT);
	static const uint32_t note_head[] = { 4, 16, NT_GNU_BUILD_ID, 0x554e47 };
	uint64_t id[2];

	*head = im->head;
	id[0] = pb_stubs_sum(head);
	memcpy(note, note_head, 16);
	memcpy(note + 16, &id[0], 8);
	id[1] = pb_stubs_sum(head);
	memcpy(note + 24, &id[1], 8);
	head->sum = pb_stubs_sum(head);
}

static int make(struct image *im)
{
	size_t end;

	lay_stubs(im);
	if (is_full(im))
		return -EFBIG;
	if (pb_rows_failed(&im->rows) || im->symbols.failed || im->names.failed)
		return -ENOMEM;
	im->head.text_size = pb_align_up(im->at, PB_STUBS_PAGE) - im->head.text;
	lay_sections(im);
	choose_place(im);
	im->file = aligned_alloc(PB_STUBS_PAGE,
				 pb_align_up(im->head.size, (uint64_t)PB_STUBS_PAGE));
	if (!im->file)
		return -ENOMEM;
	end = im->head.text + im->head.text_size;
	memset(im->file, 0, im->head.text);
	memset(im->file + end, 0, im->head.size - end);
	put_headers(im);
	memcpy(im->file + im->head.funcs, im->funcs, im->a->nr_funcs * sizeof(uint32_t));
	memcpy(im->file + im->head.windows, im->windows, im->a->nr_windows * sizeof(uint32_t));
	put_code(im);
	pb_rows_place(&im->rows, im->file, (uint32_t)im->sections[PB_STUBS_EH_HDR].sh_offset,
		      (uint32_t)im->sections[PB_STUBS_EH_FRAME].sh_offset);
	put_bytes(im, PB_STUBS_SYMTAB, im->symbols.v);
	put_bytes(im, PB_STUBS_STRTAB, im->names.v);
	put_bytes(im, PB_STUBS_SHSTRTAB, section_names);
	put_identity(im);
	return 0;
}

int pb_stub_image(const struct pb_analysis *a, const struct pb_cfi *cfi, uint8_t **file,
		  size_t *size)
{
	uint64_t tables = PB_STUBS_AT + sizeof(struct pb_stubs);
	uint64_t windows = tables + 4ull * a->nr_funcs;
	uint64_t words = a->nr_funcs * sizeof(struct pb_site) + sizeof(struct pb_returns);
	struct image im = { .a = a, .cfi = cfi };
	int err;

	im.head = (struct pb_stubs){
		.magic = PB_STUBS_MAGIC, .recipes_size = a->recipes_size,
		.nr_funcs = a->nr_funcs, .nr_windows = a->nr_windows,
		.front = pb_align_up(words, (uint64_t)PB_STUBS_PAGE), .funcs = (uint32_t)tables,
		.windows = (uint32_t)windows,
		.sections = sizeof(Elf64_Ehdr) + PHDRS * sizeof(Elf64_Phdr),
		.text = (uint32_t)pb_align_up(windows + 4ull * a->nr_windows,
					      (uint64_t)PB_STUBS_PAGE),
	};
	memcpy(im.head.build_id, a->build_id, sizeof(a->build_id));
	if (a->nr_funcs > MAX_SIZE / 16 || a->nr_windows > MAX_SIZE / 16)
		return -EFBIG;
	im.funcs = calloc(a->nr_funcs + 1ul, sizeof(uint32_t));
	im.windows = calloc(a->nr_windows + 1ul, sizeof(uint32_t));
	err = im.funcs && im.windows ? make(&im) : -ENOMEM;
	free(im.funcs);
	free(im.windows);
	pb_rows_free(&im.rows);
	pb_vec_free(&im.symbols);
	pb_vec_free(&im.names);
	if (err) {
		free(im.file);
		return err;
	}
	*file = im.file;
	*size = im.head.size;
	return 0;
}
