/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The stack, in slots of eight bytes. If a register is spilled to a slot, the slot keeps all that
 * the verifier knows of the register. A dynptr takes two slots, an iterator takes one slot. Each
 * other byte of the stack holds nothing, any data, or 0 (enum slot_type). Slot n begins at address
 * fp - 8(n + 1). type[7] describes the byte at this address, type[0] the slot's last byte.
 */
#include "bpf/verifier/env.h"
#include "bpf/verifier/fastcall.h"
#include "bpf/verifier/helper_call.h"
#include "bpf/verifier/live.h"
#include "bpf/verifier/log.h"
#include "bpf/verifier/precise.h"
#include "bpf/verifier/stack_slots.h"
#include "bpf/verifier/state.h"

static struct slot *slot_at(struct frame *f, int off, uint8_t **type)
{
	int at = -off - 1;
	struct slot *s = &f->slots[at / SLOT];

	*type = &s->type[at % SLOT];
	return s;
}

int pbv_stack_bounds(struct env *env, unsigned n, int off, int size, bool helper, bool write)
{
	const struct reg *r = &cur_regs(env)[n];
	struct frame *f = frame_of(env, r);
	const char *what = helper ? " indirect access to" : write ? " write to" : " read from";
	int64_t least = (int64_t)r->var.value + off, most = least + size, lowest;
	bool fixed = tnum_is_const(r->var);
	int err = 0;

	if (!fixed) {
		if (r->wide.smax >= MAX_VAR_OFF || r->wide.smin <= -MAX_VAR_OFF)
			return refuse(env, EACCES,
				      "invalid unbounded variable-offset%s stack R%d\n", what, n);
		least = r->wide.smin + off;
		most = r->wide.smax + off + size;
	}
	lowest = write || env->uninit_stack ? -PB_BPF_STACK : -(int64_t)f->nr_slots * SLOT;
	if (least < lowest || least > -1)
		err = -EACCES;
	else if (most > 0)
		err = -EINVAL;
	else if (size < 0)
		err = -EFAULT;
	pbv_touch_saved(env, f, least);
	if (!err)
		return pbv_frame_grow(env, f, (uint32_t)(-least + SLOT - 1) / SLOT);
	if (fixed)
		log(env, "invalid%s stack R%d off=%d size=%d\n", what, n, (int)off, size);
	else
		log(env, "invalid variable-offset%s stack R%d var_off=%s off=%d size=%d\n", what, n,
		    tnum_text(r->var), off, size);
	return err;
}

/* ---- writing --------------------------------------------------------------------------- */

/*
 * Spills r to the slot's lowest `size` bytes. Even if size is less than 8, the slot describes the
 * whole register; a fill truncates the number to the bytes that the fill reads. Bytes of the slot
 * that aren't spilled keep their types if they are zero or were never written. Otherwise they
 * become plain bytes (S_MISC).
 */
static void spill(struct slot *s, const struct reg *r, int size)
{
	int i = SLOT;

	pbv_reg_copy(&s->reg, r);
	if (size == SLOT)
		s->reg.live |= LIVE_WRITTEN;
	for (; i > SLOT - size; i--)
		s->type[i - 1] = S_SPILL;
	for (; i; i--)
		if (s->type[i - 1] != S_ZERO)
			slot_scrub(&s->type[i - 1]);
}

/* After a store, a processor may speculatively load the old contents (Spectre v4). So a store gets
 * a fence if it stores a pointer, or if the old bytes may hold a pointer. */
static void fence(struct env *env, const struct slot *s, int off, int size, const struct reg *value)
{
	bool needed = value && pbv_reg_spillable(value);

	if (env->trust_v4)
		return;
	for (int i = 0; i < size && !needed; i++) {
		uint8_t t = s->type[(-off - 1 - i) % SLOT];

		needed = t != S_MISC && t != S_ZERO;
	}
	if (needed)
		env->aux[env->insn].fact.fence = true;
}

/* If the slot holds a spilled register or an iterator, the slot's bytes become plain bytes. */
static void forget_spilled(struct slot *s)
{
	s->reg.type = NOT_INIT;
	s->reg.flags = 0;
	if (slot_spilled(s) || slot_iterates(s))
		for (int i = 0; i < SLOT; i++)
			slot_scrub(&s->type[i]);
}

static int write_plain(struct env *env, struct slot *s, int off, int size, const struct reg *value,
		       int n, bool zero)
{
	int err;

	forget_spilled(s);
	if (size == SLOT)
		s->reg.live |= LIVE_WRITTEN;
	if (zero && value) {
		/* mark the number as precise now, since no later walk can go from a zero byte back
		 * to the number */
		err = pbv_precise_reg(env, (unsigned)n);
		if (err)
			return err;
	}
	for (int i = 0; i < size; i++)
		s->type[(-off - 1 - i) % SLOT] = zero ? S_ZERO : S_MISC;
	return 0;
}

/* Whether the number may need more than `size` bytes. */
static bool wider_than(const struct reg *r, int size)
{
	return size < 8 && r->wide.umax >> size * 8;
}

/*
 * A store into one of a dynptr's two slots destroys the dynptr, and invalidates the pointers that
 * were obtained from it. If the dynptr is a ring buffer's record, the store is refused, since the
 * program could no longer release the record.
 */
static int overwrite_dynptr(struct env *env, struct frame *f, uint32_t slot)
{
	struct slot *s = &f->slots[slot];
	uint32_t id = s->reg.dynptr_id;

	if (s->type[0] != S_DYNPTR)
		return 0;
	if (s->reg.dynptr == RINGBUF_DYNPTR)
		return refuse(env, EINVAL, "cannot overwrite referenced dynptr\n");
	if (!s->reg.first_slot)
		s++;
	for (int i = -1; i <= 0; i++) {
		memset(s[i].type, S_INVALID, SLOT);
		pbv_reg_make_none(&s[i].reg, !env->capable);
		s[i].reg.live |= LIVE_WRITTEN;
	}
	for_each_reg(env->cur, g, r)
		if (r->type == TO_MEM && r->slice_of == id)
			pbv_reg_lost(env, r);
	return 0;
}

/* Spills the number to the slot's lowest bytes. If the number may be too large for these bytes, the
 * slot isn't a copy of the register, so the two aren't linked. */
static void spill_number(struct env *env, struct slot *s, struct reg *value, int size)
{
	bool fits = !wider_than(value, size);

	if (fits)
		reg_name(env, value);
	spill(s, value, size);
	if (!fits)
		reg_unlink(&s->reg);
}

static int write_fixed(struct env *env, struct frame *f, int off, int size, int n)
{
	const struct bpf_insn *insn = &env->insns[env->insn];
	bool immediate = n < 0 && pb_bpf_ops[env->ops[env->insn]].form == PB_BPF_ST;
	bool at_start = !(off % SLOT) && env->capable;
	struct reg *value = n >= 0 ? &cur_regs(env)[n] : NULL, constant;
	struct slot *s = &f->slots[(-off - 1) / SLOT];
	int err;

	if (!env->ptr_leaks && slot_spilled(s) && s->reg.type != SCALAR && size != SLOT)
		return refuse(env, EACCES, "attempt to corrupt spilled pointer on stack\n");
	fence(env, s, off, size, value);
	err = overwrite_dynptr(env, f, (uint32_t)(-off - 1) / SLOT);
	if (err)
		return err;
	touch_slot(env, (-off - 1) / SLOT);
	/* if the base isn't r10, a step must record the slot for backward walks */
	err = insn->dst_reg == FP ? 0 : pbv_step_stack(env, f->number, (uint32_t)(-off - 1) / SLOT);
	if (err)
		return err;
	if (at_start && value && value->type == SCALAR) {
		spill_number(env, s, value, size);
	} else if (at_start && immediate) {
		memset(&constant, 0, sizeof constant);
		pbv_reg_make_const(&constant, (uint64_t)(int64_t)insn->imm);
		spill(s, &constant, size);
	} else if (value && pbv_reg_spillable(value)) {
		if (size != SLOT) {
			pbv_log_line(env, env->insn, "; ");
			return refuse(env, EACCES, "invalid size of register spill\n");
		}
		if (f != cur_frame(env) && reg_is(value, TO_STACK))
			return refuse(env, EINVAL, "cannot spill pointers to stack into stack "
						   "frame of the caller\n");
		spill(s, value, size);
	} else {
		return write_plain(env, s, off, size, value, n,
				   value ? reg_is_null(value) : immediate && !insn->imm);
	}
	return 0;
}

/* A store at a variable offset. Each byte of the range may be written, or may keep its value. If
 * zero is stored, bytes that are zero stay zero. */
static int write_variable(struct env *env, struct frame *f, const struct reg *ptr, int off,
			  int size, int n)
{
	const struct bpf_insn *insn = &env->insns[env->insn];
	bool zero = n >= 0 ? reg_is_null(&cur_regs(env)[n]) :
			     pb_bpf_ops[env->ops[env->insn]].form == PB_BPF_ST && !insn->imm;
	bool kept_zero = false;
	int least = (int)ptr->wide.smin + off, most = (int)ptr->wide.smax + off + size;

	for (int i = least; i < most; i++) {
		int err = overwrite_dynptr(env, f, (uint32_t)(-i - 1) / SLOT);

		if (err)
			return err;
	}
	for (int i = least; i < most; i++) {
		uint8_t *type, was;
		struct slot *s = slot_at(f, i, &type);

		was = *type;
		touch_slot(env, (-i - 1) / SLOT);
		if (!env->ptr_leaks && was != S_MISC && was != S_ZERO)
			return refuse(env, EINVAL,
				      "spilled ptr in range of var-offset stack write; insn %d, "
				      "ptr off: %d",
				      (int)env->insn, i);
		if (zero && was == S_SPILL && reg_is_null(&s->reg)) {
			kept_zero = true;
			continue;
		}
		forget_spilled(s);
		if (was == S_INVALID && !env->uninit_stack)
			return refuse(env, EINVAL, "uninit stack in range of var-offset write "
						   "prohibited for !root; insn %d, off: %d",
				      (int)env->insn, i);
		*type = zero && was == S_ZERO ? S_ZERO : S_MISC;
		kept_zero |= *type == S_ZERO;
	}
	return kept_zero && n >= 0 ? pbv_precise_reg(env, (unsigned)n) : 0;
}

int pbv_stack_write(struct env *env, unsigned n, int off, int size, int value)
{
	const struct reg *ptr = &cur_regs(env)[n];
	struct frame *f = frame_of(env, ptr);

	if (tnum_is_const(ptr->var))
		return write_fixed(env, f, off + (int)ptr->var.value, size, value);
	return write_variable(env, f, ptr, off, size, value);
}

/* ---- reading ------------------------------------------------------------------------------ */

static void load_known(struct env *env, struct reg *value, bool zero)
{
	pbv_reg_make_scalar(value, !env->capable);
	if (zero)
		pbv_reg_known_value(value, 0);
	value->live |= LIVE_WRITTEN;
}

/* Loads bytes that aren't exactly one spilled register. If all bytes are zero, the value is 0;
 * otherwise it is unknown. */
static void load_bytes(struct env *env, struct frame *f, int least, int most, int n)
{
	struct reg *value = &cur_regs(env)[n];
	bool zero = true;
	uint8_t *type;

	for (int i = least; i < most && zero; i++) {
		slot_at(f, i, &type);
		zero = *type == S_ZERO;
	}
	/* this load needs no backward walk (precise.c): the store that wrote the zeros has already
	 * marked its operand as precise */
	load_known(env, value, zero);
}

static int bytes_readable(struct env *env, struct frame *f, int off, int size, bool spill_ok)
{
	for (int i = 0; i < size; i++) {
		uint8_t *type;

		slot_at(f, off + i, &type);
		if (*type == S_MISC || *type == S_ZERO || (spill_ok && *type == S_SPILL) ||
		    (*type == S_INVALID && env->uninit_stack))
			continue;
		return refuse(env, EACCES, "invalid read from stack off %d+%d size %d\n", off, i,
			      size);
	}
	return 0;
}

static bool all_bytes_are(struct frame *f, int off, int size, enum slot_type wanted)
{
	uint8_t *type;

	for (int i = 0; i < size; i++) {
		slot_at(f, off + i, &type);
		if (*type != wanted)
			return false;
	}
	return true;
}

/* Reads from a slot with a spilled number. The read doesn't begin at the number's lowest byte, or
 * it includes bytes after the number's spilled bytes. */
static int read_mixed(struct env *env, struct frame *f, struct slot *s, int off, int size,
		      struct reg *value)
{
	int err = bytes_readable(env, f, off, size, true);
	bool of_zero = !err && reg_is_null(&s->reg) && all_bytes_are(f, off, size, S_SPILL);

	if (err)
		return err;
	load_known(env, value, of_zero || all_bytes_are(f, off, size, S_ZERO));
	/* if the bytes are 0 only because the spilled register was 0, a backward walk must find the
	 * slot, so a step records it */
	return of_zero ? pbv_step_stack(env, f->number, (uint32_t)(-off - 1) / SLOT) : 0;
}

/* Reads from a slot with a spilled register, if fewer than 8 bytes were spilled or are read. The
 * register must be a number. */
static int read_part(struct env *env, struct frame *f, struct slot *s, int off, int size,
		     int spilled, int n)
{
	struct reg *value;

	if (s->reg.type != SCALAR) {
		pbv_log_line(env, env->insn, "; ");
		return refuse(env, EACCES, "invalid size of register fill\n");
	}
	pbv_live_read_slot(env, f, s);
	if (n < 0)
		return bytes_readable(env, f, off, size, true);
	value = &cur_regs(env)[n];
	if (off % SLOT || size > spilled)
		return read_mixed(env, f, s, off, size, value);
	pbv_reg_copy(value, &s->reg);
	value->live |= LIVE_WRITTEN;
	/* if the caller's truncation to `size` bytes may change the value, the value is no copy of
	 * the spilled number */
	if (wider_than(value, size))
		reg_unlink(value);
	return pbv_step_stack(env, f->number, (uint32_t)(-off - 1) / SLOT);
}

static int read_fixed(struct env *env, struct frame *f, int off, int size, int n)
{
	struct slot *s = &f->slots[(-off - 1) / SLOT];
	int spilled = 1, err;

	touch_slot(env, (-off - 1) / SLOT);
	if (!slot_spilled(s)) {
		err = bytes_readable(env, f, off, size, false);
		if (err)
			return err;
		pbv_live_read_slot(env, f, s);
		if (n >= 0)
			load_bytes(env, f, off, off + size, n);
		return 0;
	}
	for (int i = SLOT - 1; i > 0 && s->type[i - 1] == S_SPILL; i--)
		spilled++;
	if (size != SLOT || spilled != SLOT)
		return read_part(env, f, s, off, size, spilled, n);
	if (n >= 0) {
		pbv_reg_copy(&cur_regs(env)[n], &s->reg);
		cur_regs(env)[n].live |= LIVE_WRITTEN;
		err = s->reg.type == SCALAR ? pbv_step_stack(env, f->number,
							     (uint32_t)(-off - 1) / SLOT) : 0;
		if (err)
			return err;
	} else if (!env->ptr_leaks && s->reg.type != SCALAR) {
		return refuse(env, EACCES, "leaking pointer from stack off %d\n", off);
	}
	pbv_live_read_slot(env, f, s);
	return 0;
}

int pbv_stack_read(struct env *env, unsigned n, int off, int size, int value)
{
	const struct reg *ptr = &cur_regs(env)[n];
	struct frame *f = frame_of(env, ptr);
	int least, most, err;

	if (tnum_is_const(ptr->var))
		return read_fixed(env, f, off + (int)ptr->var.value, size, value);
	if (value < 0)
		return refuse(env, EACCES, "variable offset stack pointer cannot be passed into "
					   "helper function; var_off=%s off=%d size=%d\n",
			      tnum_text(ptr->var), off, size);
	least = (int)ptr->wide.smin + off;
	most = (int)ptr->wide.smax + off;
	err = pbv_stack_initialized(env, n, off, size, false, false, NULL);
	if (!err)
		load_bytes(env, f, least, most + size, value);
	return err;
}

/* ---- many bytes at once -------------------------------------------------------------------- */

/* Whether the byte may be read. If `clobber` is set, a helper may overwrite the byte, so the byte's
 * value becomes unknown. */
static bool byte_initialized(struct env *env, struct slot *s, uint8_t *type, bool clobber)
{
	if (*type == S_MISC)
		return true;
	if (*type == S_ZERO || (*type == S_INVALID && env->uninit_stack)) {
		if (clobber)
			*type = S_MISC;
		return true;
	}
	if (!slot_spilled(s) || (s->reg.type != SCALAR && !env->ptr_leaks))
		return false;
	if (clobber) {
		pbv_reg_make_scalar(&s->reg, !env->capable);
		for (int i = 0; i < SLOT; i++)
			slot_scrub(&s->type[i]);
	}
	return true;
}

int pbv_stack_initialized(struct env *env, unsigned n, int off, int size, bool zero_ok, bool helper,
			  struct helper_call *call)
{
	const struct reg *r = &cur_regs(env)[n];
	struct frame *f = frame_of(env, r);
	const char *what = helper ? " indirect" : "";
	bool fixed = tnum_is_const(r->var);
	int least, most, err;

	if (!size && !zero_ok)
		return refuse(env, EACCES, "invalid zero-sized read\n");
	err = pbv_stack_bounds(env, n, off, size, helper, helper);
	if (err)
		return err;
	if (!fixed && !env->trust_v1)
		return refuse(env, EACCES, "R%d%s variable offset stack access prohibited for "
					   "!root, var_off=%s\n",
			      n, what, tnum_text(r->var));
	least = fixed ? (int)r->var.value + off : (int)r->wide.smin + off;
	most = fixed ? least : (int)r->wide.smax + off;
	/* if the helper only writes the memory, at a known offset, the memory need not be
	 * initialised, but must not contain a dynptr */
	for (int i = least; fixed && call && call->raw && i < least + size; i++)
		if (-i - 1 < (int)f->nr_slots * SLOT &&
		    f->slots[(-i - 1) / SLOT].type[0] == S_DYNPTR)
			return refuse(env, EACCES,
				      "potential write to dynptr at off=%d disallowed\n", i);
	if (fixed && call && call->raw) {
		call->raw_size = size;
		call->raw_reg = (int)n;
		return 0;
	}
	for (int i = least; i < most + size; i++) {
		uint8_t *type;
		struct slot *s;

		if ((int)f->nr_slots * SLOT <= -i - 1)
			return refuse(env, EFAULT, "verifier bug: allocated_stack too small");
		s = slot_at(f, i, &type);
		if (byte_initialized(env, s, type, helper)) {
			pbv_live_read_slot(env, f, s);
			continue;
		}
		if (fixed)
			return refuse(env, EACCES,
				      "invalid%s read from stack R%d off %d+%d size %d\n", what, n,
				      least, i - least, size);
		return refuse(env, EACCES, "invalid%s read from stack R%d var_off %s+%d size %d\n",
			      what, n, tnum_text(r->var), i - least, size);
	}
	return 0;
}
