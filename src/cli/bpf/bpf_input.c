/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reads instructions, bytes and options from the command line and files. */
#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/bpf/bpf_common.h"

enum { OPT_UNPRIV = 0x3000, OPT_CAPS, OPT_FLAGS, OPT_INTERPRET, OPT_JIT, OPT_GLOBAL, OPT_BTF };

static const struct argp_option options[] = {
	{ "type", 't', "TYPE", 0,
		"Type of the program: bpftool's name for it, or socket, cls, act, raw_tp, perf, or "
	  "a number (default: the type in the object; for instructions, socket_filter)", 1 },
	{ "attach-type", 'a', "NUMBER", 0, "Attach type of the program (expected_attach_type)", 1 },
	{ "map", 'm', "MAP", 0,
		"For an object: NAME:max_entries=N[,value_size=N,key_size=N] sets sizes of its map "
	  "NAME. For instructions: TYPE,KEY,VALUE,ENTRIES[,FLAGS], all numbers, makes a map; "
	  "instructions name the maps by 0, 1, ... in the order of -m", 1 },
	{ "global", OPT_GLOBAL, "NAME=VALUE", 0,
		"Set the object's variable NAME to VALUE: a number, true, false, or text "
	  "for an array of characters", 1 },
	{ "btf", OPT_BTF, "FILE", 0,
		"CO-RE looks for types in FILE first, then among the kernel's. FILE is a program "
	  "with BTF (gcc -gbtf), or a file of only BTF", 1 },
	{ "file", 'f', "FILE", 0, "Read instructions in binary from FILE", 1 },
	{ "log-level", 'l', "LEVEL", 0,
		"Level of the verifier's log: 0, 1, 2, or 4 for statistics (default: a log of "
	  "level 1, only if a program is rejected)", 1 },
	{ "quiet", 'q', NULL, 0, "No log", 1 },
	{ "unprivileged", OPT_UNPRIV, NULL, 0, "Verify as for a user without privileges", 1 },
	{ "caps", OPT_CAPS, "LIST", 0,
		"Verify as for a user with these capabilities: bpf, perfmon, net_admin, separated "
	  "by commas; or all (the default), or none", 1 },
	{ "load-flags", OPT_FLAGS, "NUMBER", 0,
		"The kernel's flags for loading a program, for example BPF_F_STRICT_ALIGNMENT", 1 },
	{ "interpret", OPT_INTERPRET, NULL, 0, "Run in the interpreter, not as native code", 1 },
	{ "jit", OPT_JIT, NULL, 0, "Compile to native code (the default)", 1 },
	{ 0 }
};

static void parse_caps(struct bpf_session *s, char *list, struct argp_state *state)
{
	static const struct { const char *name; uint32_t cap; } caps[] = {
		{ "bpf", PB_BPF_CAP_BPF }, { "perfmon", PB_BPF_CAP_PERFMON },
		{ "net_admin", PB_BPF_CAP_NET_ADMIN },
		{ "all", PB_BPF_CAP_ALL }, { "none", 0 },
	};
	char *save = NULL;

	s->caps = 0;
	for (char *word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		size_t i = 0;

		while (i < sizeof(caps) / sizeof(caps[0]) && strcmp(caps[i].name, word))
			i++;
		if (i == sizeof(caps) / sizeof(caps[0]))
			argp_failure(state, BPF_USAGE, 0,
				     "--caps=%s: choose bpf, perfmon, net_admin, all, none", word);
		s->caps |= caps[i].cap;
	}
}

uint32_t bpf_number(const struct bpf_session *s, const char *option, const char *text)
{
	unsigned long n;
	char *end;

	n = strtoul(text, &end, 0);	/* ULONG_MAX if even this type has no room */
	if (isdigit((unsigned char)*text) && !*end && n <= UINT32_MAX)
		return (uint32_t)n;
	pb_error(s->command, "%s %s: not a number from 0 to %u", option, text, UINT32_MAX);
	exit(argp_err_exit_status);
}

static error_t bpf_input_parse(int key, char *arg, struct argp_state *state)
{
	struct bpf_session *s = state->input;

	switch (key) {
	case 't': s->type = arg; return 0;
	case 'a': s->attach_type = bpf_number(s, "-a", arg); return 0;
	case 'm':
		if (bpf_is_size(arg))
			return bpf_sizes_add(&s->sizes, s->command, arg) ? EINVAL : 0;
		if (s->nr_map_specs == BPF_MAX_MAPS)
			argp_failure(state, BPF_USAGE, 0, "no more than %d maps", BPF_MAX_MAPS);
		s->map_spec[s->nr_map_specs++] = arg;
		return 0;
	case OPT_GLOBAL: return bpf_globals_add(s, arg) ? EINVAL : 0;
	case OPT_BTF: s->btf = arg; return 0;
	case 'f': s->file = arg; return 0;
	case 'l': s->log_level = (int)bpf_number(s, "-l", arg); return 0;
	case 'q': s->quiet = true; return 0;
	case OPT_UNPRIV: s->caps = 0; return 0;
	case OPT_CAPS: parse_caps(s, arg, state); return 0;
	case OPT_FLAGS: s->flags = bpf_number(s, "--load-flags", arg); return 0;
	case OPT_INTERPRET: s->interpret = true; return 0;
	case OPT_JIT: s->interpret = false; return 0;
	case ARGP_KEY_ARG: s->args[s->nr_args++] = arg; return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

const struct argp bpf_session_argp = { options, bpf_input_parse, NULL, NULL };

int bpf_session_parse(struct bpf_session *s, const struct argp *argp, int argc, char **argv,
		      void *input)
{
	s->args = calloc((size_t)argc + 1, sizeof(*s->args));
	s->nr_args = 0;
	return argp_parse(argp, argc, argv, 0, NULL, input) ? BPF_USAGE : 0;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

long bpf_unhex(const char *command, const char *text, uint8_t *out, size_t room)
{
	size_t n = 0;
	int high = -1;

	for (; *text; text++) {
		int v = hex_digit(*text);

		if (v < 0 && strchr(" ,\t\r\n", *text))
			continue;
		if (v < 0) {
			pb_error(command, "'%c' is not a hexadecimal digit", *text);
			return -1;
		}
		if (high < 0) {
			high = v;
			continue;
		}
		if (n == room) {
			pb_error(command, "more than %zu bytes", room);
			return -1;
		}
		out[n++] = (uint8_t)(high << 4 | v);
		high = -1;
	}
	if (high >= 0) {
		pb_error(command, "an odd number of hexadecimal digits");
		return -1;
	}
	return (long)n;
}

/* Returns the stream's bytes and a 0 after them, or NULL after an error. */
static uint8_t *read_stream(FILE *f, size_t *size)
{
	size_t room = 1 << 16, n = 0;
	uint8_t *p = malloc(room + 1);

	while (p && (n += fread(p + n, 1, room - n, f)) == room) {
		uint8_t *more = realloc(p, 2 * room + 1);

		if (!more) {
			free(p);
			return NULL;
		}
		p = more;
		room *= 2;
	}
	if (p && ferror(f)) {
		free(p);
		return NULL;
	}
	if (p)
		p[n] = 0;
	*size = n;
	return p;
}

uint8_t *bpf_read_file(const char *command, const char *path, size_t *size)
{
	FILE *f = !strcmp(path, "-") ? stdin : fopen(path, "rb");
	uint8_t *p = f ? read_stream(f, size) : NULL;

	if (!p)
		pb_error(command, "%s: %s", path, strerror(errno));
	if (f && f != stdin)
		fclose(f);
	return p;
}

bool bpf_is_object(const char *path)
{
	char magic[SELFMAG];
	FILE *f = fopen(path, "rb");
	bool is = f && fread(magic, 1, SELFMAG, f) == SELFMAG && !memcmp(magic, ELFMAG, SELFMAG);

	if (f)
		fclose(f);
	return is;
}

/* Returns whether all arguments consist of hexadecimal digits. If one doesn't, it is probably the
 * name of a file that can't be read or isn't an eBPF object, since the caller has handled objects.
 * Prints which of the two it is. */
static bool is_hexadecimal(const char *command, char **args, int nr)
{
	for (int i = 0; i < nr; i++) {
		if (!args[i][strspn(args[i], "0123456789abcdefABCDEF ,\t\r\n")])
			continue;
		if (access(args[i], R_OK))
			pb_error(command, "%s: %s", args[i], strerror(errno));
		else
			pb_error(command, "%s: neither an eBPF object nor hexadecimal digits",
				 args[i]);
		return false;
	}
	return true;
}

/* Joins the words of the command line into one text. */
static char *join(char **args, int nr)
{
	size_t size = 1;
	char *all;

	for (int i = 0; i < nr; i++)
		size += strlen(args[i]);
	all = calloc(1, size);
	for (int i = 0; all && i < nr; i++)
		strcat(all, args[i]);
	return all;
}

int bpf_read_insns(struct bpf_session *s, char **args, int nr_args, struct bpf_insn **insns,
		   uint32_t *nr)
{
	uint8_t *bytes = NULL, *text = NULL;
	size_t size = 0;
	long n = -1;

	if (s->file) {
		bytes = bpf_read_file(s->command, s->file, &size);
		n = bytes ? (long)size : -1;
	} else if (is_hexadecimal(s->command, args, nr_args)) {
		text = nr_args ? (uint8_t *)join(args, nr_args) :
		       bpf_read_file(s->command, "-", &size);
		bytes = text ? malloc(strlen((char *)text) / 2 + 1) : NULL;
		n = bytes ? bpf_unhex(s->command, (char *)text, bytes, strlen((char *)text) / 2) :
		    -1;
		free(text);
	}
	if (n < 0 || n % (long)sizeof(struct bpf_insn) ||
	    n / (long)sizeof(struct bpf_insn) > BPF_MAX_INSNS) {
		if (n >= 0)
			pb_error(s->command,
				 "%ld bytes are no whole number of instructions, or too many", n);
		free(bytes);
		return BPF_USAGE;
	}
	*insns = (struct bpf_insn *)bytes;
	*nr = (uint32_t)n / (uint32_t)sizeof(struct bpf_insn);
	return 0;
}
