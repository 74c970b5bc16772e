/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writes the unwind table of stubs. The caller must add stubs in the order of their addresses.
 * Adjacent stubs share an FDE if the row of a function's entry is valid in all of their code.
 * Context: any thread. */
#ifndef PB_MODULE_STUB_ROWS_H
#define PB_MODULE_STUB_ROWS_H
#include "abi/analysis_place.h"
#include "module/elf/cfi_rules.h"
#include "module/elf/vec.h"

struct pb_rows_fde {
	uint32_t start;		/* offset of the code in the file */
	uint32_t fde;		/* offset of the FDE in the table */
};

/* The table that is being written. The caller must zero it first. Addresses in the table are
 * offsets in the file. */
struct pb_rows {
	PB_VEC(uint8_t) out;
	PB_VEC(struct pb_rows_fde) fdes;
	uint32_t plain;		/* start of the adjacent stubs that share an FDE, because each has
				 * only an entry's row; 0: none */
	struct pb_rules_cursor program;
	struct pb_rules gone;	/* the row at an entry and at an exit: the function has no frame
				 * there, only the return address */
	/* the current stub: */
	uint32_t start, end;
	bool is_open;		/* the stub has its own FDE, in which the row `now` is valid from
				 * the address `at` on */
	size_t fde;
	uint32_t at;
	struct pb_rules now;
};

/* Begins the table. cfi is the module's own table, or NULL. */
void pb_rows_begin(struct pb_rows *t, const struct pb_cfi *cfi);
/* pb_rows_stub() adds the rows of a site's stub. pb_rows_exit() adds the rows of the stub of a
 * window of exits. */
void pb_rows_stub(struct pb_rows *t, uint32_t stub, const struct pb_place *p);
void pb_rows_exit(struct pb_rows *t, uint32_t stub, const struct pb_place *p);
void pb_rows_end(struct pb_rows *t, uint32_t end);
/* Returns the size of .eh_frame_hdr. .eh_frame has t->out.n bytes after pb_rows_end(). */
static inline uint32_t pb_rows_hdr_size(const struct pb_rows *t)
{
	return (uint32_t)(12 + 8 * t->fdes.n);
}
/* Writes both sections into the file. */
void pb_rows_place(struct pb_rows *t, uint8_t *file, uint32_t hdr_at, uint32_t frame_at);
static inline bool pb_rows_failed(const struct pb_rows *t)
{
	return t->out.failed || t->fdes.failed;
}
void pb_rows_free(struct pb_rows *t);
#endif
