/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The log's text: the kernel's words and forms, for those who know how to read them
 * and for the tools that do. Level 1 has the instructions of the path that was
 * refused, level 2 all paths and the marks.
 */
#include "bpf/disasm.h"
#include "bpf/verifier/env.h"

#define say(env, ...) pb_bpf_printf((env)->v->log, __VA_ARGS__)

void log_text(struct env *env, const char *format, ...)
{
	va_list ap;

	if (!env->v->log_level || log_none(env))
		return;
	va_start(ap, format);
	pb_bpf_vprintf(env->v->log, format, ap);
	va_end(ap);
}

const char *helper_name(int32_t id)
{
	const struct pb_bpf_helper *h = id >= 0 ? pb_bpf_helper_of((uint32_t)id) : NULL;

	return h && h->name ? h->name : "unknown";
}

struct type_text log_type_name(unsigned type, unsigned flags)
{
	static const char *const names[NR_REG_TYPES] = {
		[NOT_INIT] = "?", [SCALAR] = "scalar", [TO_CTX] = "ctx", [MAP_PTR] = "map_ptr",
		[TO_MAP_VALUE] = "map_value", [TO_MAP_KEY] = "map_key", [TO_STACK] = "fp",
		[TO_PACKET] = "pkt", [TO_PACKET_META] = "pkt_meta", [TO_PACKET_END] = "pkt_end",
		[TO_FLOW_KEYS] = "flow_keys", [TO_SOCKET] = "sock", [TO_SOCK_COMMON] = "sock_common",
		[TO_TCP_SOCK] = "tcp_sock", [TO_XDP_SOCK] = "xdp_sock", [TO_BTF] = "ptr_",
		[TO_MEM] = "mem", [TO_BUF] = "buf", [TO_FUNC] = "func", [TO_DYNPTR] = "dynptr_ptr",
	};
	struct type_text out;
	struct pb_bpf_text t = { .buf = out.s, .size = sizeof out.s };
	const char *prefix = flags & UNTRUSTED ? "untrusted_" : flags & PERCPU ? "percpu_" :
			     flags & USER ? "user_" : flags & RESERVED ? "alloc_" :
			     flags & RDONLY ? "rdonly_" : "";

	pb_bpf_printf(&t, "%s%s%s", prefix, names[type],
		      !(flags & MAYBE_NULL) ? "" : type == TO_BTF ? "or_null_" : "_or_null");
	return out;
}

struct tnum_text log_tnum_text(struct tnum v)
{
	struct tnum_text out;
	struct pb_bpf_text t = { .buf = out.s, .size = sizeof out.s };

	pb_bpf_printf(&t, "(%#lx; %#lx)", v.value, v.mask);
	return out;
}

static void say_live(struct env *env, unsigned live)
{
	if (!live)
		return;
	say(env, "_%s%s", live & LIVE_READ ? "r" : "", live & LIVE_WRITTEN ? "w" : "");
}

#define attribute(...) (say(env, "%s", comma), comma = ",", say(env, __VA_ARGS__))

/* The bounds that say more than those before them. */
static void say_value(struct env *env, const struct reg *r, const char *comma)
{
	const struct range *w = &r->wide, *l = &r->low;

	if (tnum_is_const(r->var)) {
		attribute("imm=%lx", r->var.value);
		return;
	}
	if (w->smin != (int64_t)w->umin && w->smin != INT64_MIN)
		attribute("smin=%ld", w->smin);
	if (w->smax != (int64_t)w->umax && w->smax != INT64_MAX)
		attribute("smax=%ld", w->smax);
	if (w->umin)
		attribute("umin=%lu", w->umin);
	if (w->umax != UINT64_MAX)
		attribute("umax=%lu", w->umax);
	if (!tnum_is_unknown(r->var))
		attribute("var_off=%s", tnum_text(r->var));
	if (l->smin != w->smin && l->smin != INT32_MIN)
		attribute("s32_min=%d", (int)l->smin);
	if (l->smax != w->smax && l->smax != INT32_MAX)
		attribute("s32_max=%d", (int)l->smax);
	if (l->umin != w->umin && l->umin)
		attribute("u32_min=%d", (int)l->umin);
	if (l->umax != w->umax && l->umax != UINT32_MAX)
		attribute("u32_max=%d", (int)l->umax);
}

static void say_reg(struct env *env, const struct reg *r)
{
	const char *comma = "";

	if (r->type == SCALAR && r->precise)
		say(env, "P");
	if ((r->type == SCALAR || r->type == TO_STACK) && tnum_is_const(r->var)) {
		say(env, "%s%ld", r->type == SCALAR ? "" : type_name(r), (int64_t)r->var.value + r->off);
		return;
	}
	say(env, "%s%s(", type_name(r), r->type == TO_BTF ? r->btf : "");
	if (r->id)
		attribute("id=%d", (int)r->id);
	if (r->ref && (r->type == TO_SOCKET || r->type == TO_TCP_SOCK || r->type == TO_MEM || r->type == TO_BTF))
		attribute("ref_obj_id=%d", (int)r->ref);
	if (r->type != SCALAR)
		attribute("off=%d", r->off);
	if (r->type == TO_PACKET || r->type == TO_PACKET_META)
		attribute("r=%d", r->range);
	else if (r->type == MAP_PTR || r->type == TO_MAP_KEY || r->type == TO_MAP_VALUE)
		attribute("ks=%d,vs=%d", (int)r->map->attr.key_size, (int)r->map->attr.value_size);
	say_value(env, r, comma);
	say(env, ")");
}

static void say_slot(struct env *env, const struct slot *s, unsigned n)
{
	static const char letters[] = { '?', 'r', 'm', '0', 'd' };
	char types[SLOT + 1] = { 0 };
	bool any = false;

	for (int i = 0; i < SLOT; i++) {
		any |= s->type[i] != S_INVALID;
		types[i] = letters[s->type[i]];
	}
	if (!any)
		return;
	say(env, " fp%d", -(int)(n + 1) * SLOT);
	say_live(env, s->reg.live);
	if (!slot_spilled(s)) {
		say(env, "=%s", types);
		return;
	}
	say(env, "=%s", s->reg.type == SCALAR ? "" : type_name(&s->reg));
	if (s->reg.type == SCALAR && s->reg.precise)
		say(env, "P");
	if (reg_is_const(&s->reg))
		say(env, "%ld", (int64_t)s->reg.var.value + s->reg.off);
}

void log_state(struct env *env, const struct frame *f, bool all)
{
	if (log_none(env))
		return;
	if (f->number)
		say(env, " frame%d:", (int)f->number);
	for (int i = 0; i < 11; i++) {
		if (f->regs[i].type == NOT_INIT || !(all || env->touched_regs >> i & 1))
			continue;
		say(env, " R%d", i);
		say_live(env, f->regs[i].live);
		say(env, "=");
		say_reg(env, &f->regs[i]);
	}
	for (uint32_t i = 0; i < f->nr_slots; i++)
		if (all || env->touched_slots >> i & 1)
			say_slot(env, &f->slots[i], i);
	for (uint32_t i = 0; i < f->nr_refs; i++)
		say(env, i ? ",%d" : " refs=%d", (int)f->refs[i].id);
	say(env, "%s%s\n", f->in_callback ? " cb" : "", f->in_async ? " async_cb" : "");
	if (!all) {
		env->touched_regs = 0;
		env->touched_slots = 0;
	}
}

static const char *name_of_helper(void *arg, int32_t id)
{
	return helper_name(id);
}

void log_disasm(struct env *env, uint32_t insn)
{
	const struct pb_bpf_names names = { .helper = name_of_helper, .hide = !env->ptr_leaks };

	if (log_none(env))
		return;
	say(env, "%d: ", (int)insn);
	pb_bpf_disasm(env->v->log, &env->insns[insn], &names);
	say(env, "\n");
}

void log_insn(struct env *env)
{
	uint64_t before;

	if (!log_on(env))
		return;
	before = pb_bpf_text_at(env->v->log);
	log_disasm(env, env->insn);
	env->insn_log_at = pb_bpf_text_at(env->v->log);
	env->insn_len = (uint32_t)(env->insn_log_at - before);
}

/* What changed, behind the instruction that did it if that is the last line. */
void log_insn_state(struct env *env)
{
	struct pb_bpf_text *t = env->v->log;

	if (!log_on(env))
		return;
	if (t->len && env->insn_log_at == pb_bpf_text_at(t)) {
		uint32_t at = env->insn_len, column = at + 4 > 40 ? at + 4 : 40;

		t->len--;
		for (column = pb_align_up(column, 8u) - at - 1; column; column--)
			say(env, " ");
		say(env, ";");
	} else {
		say(env, "%d:", (int)env->insn);
	}
	log_state(env, cur_frame(env), false);
}

void log_line(struct env *env, uint32_t insn, const char *prefix, ...)
{
	const struct pb_bpf_verify *v = env->v;
	size_t n = pb_bisect(i, 0, v->nr_lines, v->lines[i].insn <= insn);
	const char *text;
	va_list ap;

	if (!n || !v->log_level || log_none(env) || &v->lines[n - 1] == env->last_line)
		return;
	va_start(ap, prefix);
	pb_bpf_vprintf(v->log, prefix, ap);
	va_end(ap);
	for (text = v->lines[n - 1].text; *text == ' ' || *text == '\t'; text++)
		;
	say(env, "%s\n", text);
	env->last_line = &v->lines[n - 1];
}

void log_scalar(struct env *env, const struct reg *r, struct tnum wanted, const char *where)
{
	log(env, "At %s the register R0 ", where);
	if (tnum_is_unknown(r->var))
		log(env, "has unknown scalar value");
	else
		log(env, "has value %s", tnum_text(r->var));
	log(env, " should have been in %s\n", tnum_text(wanted));
}

void log_stats(struct env *env)
{
	const struct pb_bpf_verify *v = env->v;

	if (v->log_level & 4) {
		log(env, "stack depth ");
		for (uint32_t i = 0; i < env->nr_subs; i++)
			log(env, i ? "+%d" : "%d", (int)env->subs[i].stack);
		log(env, "\n");
	}
	log(env, "processed %d insns (limit %d) max_states_per_insn %d total_states %d peak_states %d "
	    "mark_read %d\n", (int)env->processed, PB_BPF_COMPLEXITY, (int)v->stats.max_states_per_insn,
	    (int)v->stats.total_states, (int)v->stats.peak_states, (int)v->stats.mark_read);
}
