/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads .eh_frame: where functions begin and end, and where the return address is at each
 * instruction. The bytes come from outside and are not trusted.
 * Source of the format: LSB 5.0 "Exception Frames", DWARF 5 section 6.4.
 *
 * Context: any thread; a table is read-only after pb_cfi_read().
 */
#ifndef PB_MODULE_CFI_H
#define PB_MODULE_CFI_H
#include <stdbool.h>
#include <stdint.h>
#include "module/elf/elf_file.h"
#include "module/elf/vec.h"

#define PB_REG_RBP	5	/* the registers' numbers in instructions, not in DWARF */
#define PB_REG_RSP	4
#define PB_REG_NONE	255

/* The canonical frame address (CFA) is cfa_reg + cfa_off. If an expression gives the CFA, or if the
 * CFA is unknown, cfa_reg is PB_REG_NONE. The return address is at CFA-8, unless ra_moved or
 * ra_undefined is set. */
struct pb_cfi_row {
	uint8_t cfa_reg;
	bool ra_undefined;	/* there is no caller to return to: _start, clone's child */
	bool ra_moved;		/* the return address is not at CFA-8 */
	int32_t cfa_off;
};

struct pb_cie {
	uint64_t off;		/* the CIE's offset in the section */
	const uint8_t *insns, *insns_end;
	uint64_t code_align;
	int64_t data_align;
	uint8_t ra_reg;
	uint8_t encoding;	/* encoding of the FDEs' addresses */
	uint8_t lsda_encoding;	/* encoding of the pointer to the LSDA, the personality routine's
				 * table */
	bool has_augmentation;
	bool signal;		/* the augmentation has 'S': the code is a signal frame's return
				 * trampoline */
};

struct pb_fde {
	uint64_t start, end;
	const uint8_t *insns, *insns_end;
	uint64_t lsda;		/* address of the LSDA, the table of landing pads, or 0 */
	uint32_t cie;
	bool signal;
	bool entry;		/* the first row is CFA = rsp+8, as at a function's entry */
	bool ra_undefined;
};

struct pb_cfi {
	PB_VEC(struct pb_cie) cies;
	PB_VEC(struct pb_fde) fdes;	/* sorted by start */
};

/* Reads the table up to its end, or to the first record whose length is invalid. Other broken
 * records are skipped. False: out of memory. */
bool pb_cfi_read(struct pb_cfi *c, struct pb_elf *e);
void pb_cfi_free(struct pb_cfi *c);
/* Returns the index of the last FDE that begins at or before addr. Returns -1 if that FDE doesn't
 * cover addr. */
long pb_cfi_find(const struct pb_cfi *c, uint64_t addr);

#define PB_CFI_STACK 8	/* largest number of rows that DW_CFA_remember_state can keep */

/* Walks an FDE's rows in the order of addresses. */
struct pb_cfi_cursor {
	const uint8_t *p, *end;
	uint64_t loc;		/* the row is valid for addresses below this */
	const struct pb_cie *cie;
	struct pb_cfi_row row, initial, stack[PB_CFI_STACK];
	unsigned depth;
};

void pb_cfi_start(struct pb_cfi_cursor *cur, const struct pb_cfi *c, const struct pb_fde *f);
/* Moves to the row of addr. addr must not be below the addr of the previous pb_cfi_advance(). */
void pb_cfi_advance(struct pb_cfi_cursor *cur, uint64_t addr);
/* True if the function's frame is, or may be, larger than the return address. */
static inline bool pb_cfi_has_frame(const struct pb_cfi_row *row)
{
	return row->cfa_reg != PB_REG_RSP || row->cfa_off != 8;
}
#endif
