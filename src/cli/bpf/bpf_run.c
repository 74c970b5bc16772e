/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `patchbay bpf verify` prints a line with the verdict for each program. `patchbay bpf run` also
 * runs the program with a packet or a context, and prints a line with the result. For a program of
 * an object, the verdict's line begins with "NAME: ". The lines are:
 *
 *   ACCEPT xlated=<bytes> jited=<bytes> verified=<insns>  |  REJECT errno=<n> <reason>
 *   RUN retval=<n> data_out=<hex> ns=<n>                  |  RUN errno=<n> <text>
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "bpf/map/map.h"
#include "bpf/run/test_run.h"
#include "cli/bpf/bpf_pin.h"

#define PACKET_ROOM	(1u << 17)
#define CTX_ROOM	8192u

enum { OPT_DATA_IN = 0x3100, OPT_DATA_OUT, OPT_CTX_IN, OPT_CTX_OUT, OPT_PLUGIN, OPT_PROGRAM };

struct run {
	struct bpf_session s;
	uint8_t data[PACKET_ROOM], ctx[CTX_ROOM], data_out[PACKET_ROOM], ctx_out[CTX_ROOM];
	uint32_t data_len, ctx_len, repeat;
	bool has_data, has_ctx, no_run, plugin;
	const char *data_out_file, *ctx_out_file, *program;
};

static const struct argp_option run_options[] = {
	{ "data", 'd', "HEX", 0, "The packet (default: 64 zeros)", 2 },
	{ "ctx", 'c', "HEX", 0, "The context", 2 },
	{ "data-in", OPT_DATA_IN, "FILE", 0, "The packet, in binary", 2 },
	{ "data-out", OPT_DATA_OUT, "FILE", 0, "Write the packet to FILE after the run", 2 },
	{ "ctx-in", OPT_CTX_IN, "FILE", 0, "The context, in binary", 2 },
	{ "ctx-out", OPT_CTX_OUT, "FILE", 0, "Write the context to FILE after the run", 2 },
	{ "repeat", 'r', "N", 0,
		"Run the program N times (1); ns= in the output is the time of one run", 2 },
	{ "no-run", 'n', NULL, 0, "Only verify the program and print the verdict", 2 },
	{ "plugin", OPT_PLUGIN, NULL, 0,
		"Act as a plug-in of the bpf_conformance suite: read the memory from the first "
	  "argument and the program from --program or standard input, and print r0", 2 },
	{ "program", OPT_PROGRAM, "HEX", 0, "With --plugin: the program", 2 },
	{ 0 }
};

static uint32_t take_file(struct run *r, const char *path, uint8_t *to, size_t room)
{
	size_t size;
	uint8_t *p = bpf_read_file(r->s.command, path, &size);

	if (!p)
		exit(BPF_USAGE);
	if (size > room) {
		pb_error(r->s.command, "%s: more than %zu bytes", path, room);
		exit(BPF_USAGE);
	}
	memcpy(to, p, size);
	free(p);
	return (uint32_t)size;
}

static uint32_t take_hex(struct run *r, const char *text, uint8_t *to, size_t room)
{
	long n = bpf_unhex(r->s.command, text, to, room);

	if (n < 0)
		exit(BPF_USAGE);
	return (uint32_t)n;
}

static error_t bpf_run_parse(int key, char *arg, struct argp_state *state)
{
	struct run *r = state->input;

	switch (key) {
	case ARGP_KEY_INIT: state->child_inputs[0] = &r->s; return 0;
	case 'd':
		r->data_len = take_hex(r, arg, r->data, sizeof(r->data));
		r->has_data = true;
		return 0;
	case 'c':
		r->ctx_len = take_hex(r, arg, r->ctx, sizeof(r->ctx));
		r->has_ctx = true;
		return 0;
	case OPT_DATA_IN:
		r->data_len = take_file(r, arg, r->data, sizeof(r->data));
		r->has_data = true;
		return 0;
	case OPT_CTX_IN:
		r->ctx_len = take_file(r, arg, r->ctx, sizeof(r->ctx));
		r->has_ctx = true;
		return 0;
	case OPT_DATA_OUT: r->data_out_file = arg; return 0;
	case OPT_CTX_OUT: r->ctx_out_file = arg; return 0;
	case 'r': r->repeat = bpf_number(&r->s, "-r", arg); return 0;
	case 'n': r->no_run = true; return 0;
	case OPT_PLUGIN: r->plugin = true; return 0;
	case OPT_PROGRAM: r->program = arg; return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static error_t bpf_verify_parse(int key, char *arg, struct argp_state *state)
{
	struct run *r = state->input;

	if (key == ARGP_KEY_INIT) {
		state->child_inputs[0] = &r->s;
		return 0;
	}
	/* ignored: a script may give run's options to `verify` too, where they have no effect */
	if (key == 'd' || key == 'c' || key == 'r' || key == 'n')
		return 0;
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_option verify_options[] = {
	{ "data", 'd', "HEX", OPTION_HIDDEN, NULL, 2 },
	{ "ctx", 'c', "HEX", OPTION_HIDDEN, NULL, 2 },
	{ "repeat", 'r', "N", OPTION_HIDDEN, NULL, 2 },
	{ "no-run", 'n', NULL, OPTION_HIDDEN, NULL, 2 },
	{ 0 }
};

static const struct argp_child children[] = { { &bpf_session_argp }, { 0 } };
static const struct argp run_argp = {
	run_options, bpf_run_parse, "[OBJECT [PROGRAM] | pinned PATH | HEX...]",
	"Verifies a program and runs it with a packet or a context, like the kernel's "
	"BPF_PROG_TEST_RUN. The program is one of an object's programs, or is given as "
	"instructions in hexadecimal digits.\vExit "
	"status: 0 it ran, 1 it was rejected, 2 the run failed, 3 usage error, or a file can't be "
	"used.", children
};
static const struct argp verify_argp = {
	verify_options, bpf_verify_parse, "[OBJECT [PROGRAM...] | HEX...]",
	"Says, in the kernel's words, whether programs may run. The programs are an object's, or "
	"one program is given as instructions in hexadecimal digits.\vExit status: 0 accepted, "
	"1 rejected, 3 usage error, or a file can't be used.", children
};

/* ---- output ------------------------------------------------------------------------- */

static bool put_file(const char *command, const char *path, const void *p, size_t n)
{
	FILE *f = fopen(path, "wb");
	bool ok = f && fwrite(p, 1, n, f) == n;

	if (f)
		ok &= !fclose(f);
	if (!ok)
		pb_error(command, "%s: %s", path, strerror(errno));
	return ok;
}

static void show_trace(struct pb_bpf_run *run, const char *text, uint32_t len)
{
	fprintf(stderr, "bpf_trace_printk: %.*s%s", (int)len, text, len &&
		text[len - 1] == '\n' ? "" : "\n");
}

static void show_hex(FILE *f, const uint8_t *p, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		fprintf(f, "%02x", p[i]);
}

static int show_event(struct pb_bpf_run *run, struct pb_bpf_map *map, uint32_t index, void *object,
		      const void *data, uint64_t size, const void *more, uint64_t more_size)
{
	fprintf(stderr, "event %s[%u]: ", map->name, index);
	show_hex(stderr, data, size);
	show_hex(stderr, more, more_size);
	fputc('\n', stderr);
	return 0;
}

static const struct pb_bpf_host *host(void)
{
	static struct pb_bpf_host h;

	h = *pb_bpf_host_linux();
	h.trace = show_trace;
	h.event_output = show_event;
	return &h;
}

/* Prints the verdict. why: the reason of a rejection; NULL: the log's last line is the reason. */
static int verdict(struct bpf_session *s, const char *name, int err, const char *why,
		   const struct bpf_loaded *l)
{
	const char *after = name ? ": " : "";

	if (!s->quiet)
		bpf_session_show_log(s);
	if (err) {
		printf("%s%sREJECT errno=%d %s\n", name ? name : "", after, -err,
		       why ? why : bpf_session_reason(s));
		return BPF_REJECTED;
	}
	printf("%s%sACCEPT xlated=%u jited=%u verified=%u\n", name ? name : "", after, l->xlated,
	       l->prog->jited_len, l->verified);
	return BPF_ACCEPTED;
}

/* ---- one program -------------------------------------------------------------------- */

static bool has_packet(uint32_t type)
{
	return type == BPF_PROG_TYPE_SOCKET_FILTER || type == BPF_PROG_TYPE_SCHED_CLS ||
	       type == BPF_PROG_TYPE_SCHED_ACT || type == BPF_PROG_TYPE_CGROUP_SKB ||
	       type == BPF_PROG_TYPE_XDP;
}

static int test(struct run *r, const struct bpf_loaded *l)
{
	uint32_t type = l->prog->type->type;
	bool packet = has_packet(type), raw = type == BPF_PROG_TYPE_RAW_TRACEPOINT;
	struct pb_bpf_test_run t = {
		.prog = l->prog, .host = host(), .interpret = r->s.interpret,
		.attach_type = r->s.attach_type, .repeat = raw ? 0 : r->repeat ? r->repeat : 1,
		.ctx_in = r->has_ctx ||
		raw ? r->ctx : NULL, .ctx_size_in = r->has_ctx ? r->ctx_len : raw ? 64 : 0,
	};
	int err;

	/* The default context of a raw tracepoint is 64 zeros. A packet has at least the 14 bytes
	 * of an Ethernet header; the default packet is 64 zeros. */
	if (r->ctx_out_file && !raw) {
		t.ctx_out = r->ctx_out;
		t.ctx_size_out = sizeof(r->ctx_out);
	}
	if (packet) {
		t.data_in = r->data;
		t.data_size_in = !r->has_data ? 64 : r->data_len < 14 ? 14 : r->data_len;
		t.data_out = r->data_out;
		t.data_size_out = sizeof(r->data_out);
	}
	err = pb_bpf_test_run(&t);
	if (err) {
		printf("RUN errno=%d %s\n", -err, err != -PB_BPF_ENOTSUPP ? strerror(-err) :
		       r->has_ctx ? "programs of this type can't be run" :
		       "programs of this type run only with a context (--ctx)");
		return BPF_RUN_FAILED;
	}
	printf("RUN retval=%u data_out=", t.retval);
	if (packet)
		show_hex(stdout, r->data_out, t.data_size_out);
	printf(" ns=%u\n", t.duration);
	if (r->data_out_file &&
	    !put_file(r->s.command, r->data_out_file, r->data_out, t.data_size_out))
		return BPF_USAGE;
	if (r->ctx_out_file && !put_file(r->s.command, r->ctx_out_file, r->ctx_out, t.ctx_size_out))
		return BPF_USAGE;
	return BPF_ACCEPTED;
}

static int do_raw(struct run *r, char **args, int nr_args)
{
	struct bpf_unit u = { .gpl = true, .attach_type = r->s.attach_type };
	struct bpf_loaded l;
	struct bpf_insn *insns;
	int ret;

	u.type = bpf_type_of(r->s.type ? r->s.type : "socket_filter");
	if (!u.type) {
		pb_error(r->s.command, "-t %s: no such type", r->s.type);
		return BPF_USAGE;
	}
	ret = bpf_session_maps(&r->s);
	if (!ret)
		ret = bpf_read_insns(&r->s, args, nr_args, &insns, &u.nr);
	if (ret)
		return ret;
	u.insns = insns;
	ret = verdict(&r->s, NULL, bpf_session_load(&r->s, &u, &l), NULL, &l);
	if (!ret && !r->no_run)
		ret = test(r, &l);
	pb_bpf_prog_free(l.prog);
	free(insns);
	return ret;
}

/* ---- objects ------------------------------------------------------------------------ */

static int do_prog(struct run *r, uint32_t nr)
{
	const char *name = r->s.object->progs[nr].name, *why;
	struct bpf_loaded l;
	int err = (r->no_run ? bpf_object_verify : bpf_object_load)(&r->s, nr, &l, &why), ret;

	ret = verdict(&r->s, name, err, err ? why : NULL, &l);
	return ret || r->no_run ? ret : test(r, &l);
}

static int do_object(struct run *r, char **args, int nr_args)
{
	int ret = bpf_read_object(&r->s, args[0]), worst = 0;

	if (ret)
		return ret;
	if (!r->no_run && nr_args > 2) {
		pb_error(r->s.command, "%s %s: give only one program", args[1], args[2]);
		return BPF_USAGE;
	}
	/* `run` needs the one program that it is to run; `verify` judges the others */
	if (bpf_object_lacks(&r->s, args[0], args + 1, nr_args - 1))
		worst = BPF_USAGE;
	ret = worst && !r->no_run ? worst : bpf_make_object(&r->s, args[0]);
	if (ret)
		return ret;
	for (uint32_t i = 0; i < r->s.object->nr_progs; i++) {
		if (!bpf_object_wants(&r->s, i, args + 1, nr_args - 1))
			continue;
		ret = do_prog(r, i);
		if (ret > worst)
			worst = ret;
		/* `run` runs only one program */
		if (!r->no_run)
			break;
	}
	return worst;
}

/* Verifies and runs a pinned program. Its file counts the runs. */
static int do_pinned(struct run *r, const char *name)
{
	struct bpf_pin_prog *file;
	char path[BPF_PIN_PATH];
	struct bpf_loaded l;
	struct bpf_unit u;
	int ret;

	if (bpf_pin_place(r->s.command, name, path))
		return BPF_USAGE;
	if (bpf_pin_unit(&r->s, path, &u, &file))
		ret = BPF_USAGE;
	else
		ret = verdict(&r->s, NULL, bpf_session_load(&r->s, &u, &l), NULL, &l);
	bpf_pin_unit_free(&u);
	if (ret || r->no_run)
		return ret;
	if (bpf_pin_elements(&r->s))
		return BPF_REJECTED;
	pb_bpf_settings.now = pb_now_ns;
	pb_bpf_settings.stats = 1;
	ret = test(r, &l);
	__atomic_add_fetch(&file->runs, l.prog->stats->runs, __ATOMIC_RELAXED);
	__atomic_add_fetch(&file->ns, l.prog->stats->ns, __ATOMIC_RELAXED);
	return ret;
}

static int do_all(struct run *r, const struct argp *argp, const char *command, int argc,
		  char **argv)
{
	int ret;

	argp_err_exit_status = BPF_USAGE;
	bpf_session_init(&r->s, command);
	ret = bpf_session_parse(&r->s, argp, argc, argv, r);
	if (ret)
		return ret;
	if (r->plugin)
		ret = bpf_plugin(&r->s, r->program, r->s.args, r->s.nr_args);
	else if (r->s.nr_args == 2 && !strcmp(r->s.args[0], "pinned"))
		ret = do_pinned(r, r->s.args[1]);
	else if (r->s.nr_args && bpf_is_object(r->s.args[0]))
		ret = do_object(r, r->s.args, r->s.nr_args);
	else
		ret = do_raw(r, r->s.args, r->s.nr_args);
	bpf_session_end(&r->s);
	if (fflush(stdout))
		return BPF_USAGE;
	return ret;
}

static int bpf_run_run(int argc, char **argv)
{
	static struct run r;

	return do_all(&r, &run_argp, "bpf run", argc, argv);
}

static int verify(int argc, char **argv)
{
	static struct run r = { .no_run = true };

	return do_all(&r, &verify_argp, "bpf verify", argc, argv);
}

const struct pb_command bpf_command_run = {
	.name = "run", .summary = "Run a program with a packet or a context", .argp = &run_argp,
	.run = bpf_run_run,
};
const struct pb_command bpf_command_verify = {
	.name = "verify", .summary = "Say whether programs may run", .argp = &verify_argp,
	.run = verify,
};
