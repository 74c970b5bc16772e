/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `patchbay completion SHELL` prints a completion script for bash, zsh or fish.
 *
 * The three scripts only ask `patchbay completion --words=N -- WORD...` for candidates. N is the
 * index of the word with the cursor. The command finds candidates in the tables that parse commands
 * and options, so all shells offer the same candidates. The answer has one candidate on each line.
 * The line ":files" asks the shell to find names of files, and ":commands" to find names of
 * commands.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"
#include "control/control.h"
#include "recorder/proc.h"
#include "recorder/session_dir.h"
#include "view/view.h"

extern char **environ;

static const char bash_script[] =
	"# bash completion for patchbay, made by `patchbay completion bash'\n"
	"_patchbay()\n"
	"{\n"
	"	local cur prefix line word before after at found\n"
	"	# COMP_WORDS is split at = and :, so the words come from the line. Without -r,\n"
	"	# `read' takes a blank after a backslash as a part of the word\n"
	"	read -a before <<<\"${COMP_LINE:0:COMP_POINT}\"\n"
	"	read -a after <<<\"${COMP_LINE:COMP_POINT}\"\n"
	"	line=${COMP_LINE:0:COMP_POINT}\n"
	"	[[ $line == *[[:space:]] && $line != *'\\ ' ]] && before+=('')\n"
	"	at=$((${#before[@]} - 1))\n"
	"	cur=${before[at]}\n"
	"	word=${COMP_WORDS[COMP_CWORD]//\\\\/}\n"
	"	prefix=${cur%\"$word\"}\n"
	"	[[ $word == = ]] && prefix=$cur\n"
	"	COMPREPLY=()\n"
	"	while IFS= read -r line; do\n"
	"		case $line in\n"
	"		:files) compopt -o filenames\n"
	"			mapfile -t found < <(compgen -f -- \"${cur#-*=}\")\n"
	"			COMPREPLY+=(\"${found[@]}\") ;;\n"
	"		:commands) mapfile -t found < <(compgen -c -- \"$cur\")\n"
	"			COMPREPLY+=(\"${found[@]}\") ;;\n"
	"		*=) compopt -o nospace\n"
	"			COMPREPLY+=(\"${line#\"$prefix\"}\") ;;\n"
	"		*) COMPREPLY+=(\"${line#\"$prefix\"}\") ;;\n"
	"		esac\n"
	"	done < <(\"${before[0]/#\\~/$HOME}\" completion --words=$at -- \\\n"
	"		\"${before[@]}\" \"${after[@]}\" 2>/dev/null)\n"
	"}\n"
	"complete -F _patchbay patchbay\n";

static const char zsh_script[] =
	"#compdef patchbay\n"
	"# zsh completion for patchbay, made by `patchbay completion zsh'\n"
	"_patchbay()\n"
	"{\n"
	"	local line\n"
	"	local -a given plain open\n"
	"	given=(\"${(@Q)words}\")\n"
	"	given[CURRENT]=${(Q)PREFIX}\n"
	"	for line in ${(f)\"$(${~given[1]} completion --words=$((CURRENT - 1)) -- \\\n"
	"			\"${(@)given}\" 2>/dev/null)\"}; do\n"
	"		case $line in\n"
	"		:files) compset -P '-*='; _files ;;\n"
	"		:commands) _command_names -e ;;\n"
	"		*=) open+=(\"$line\") ;;\n"
	"		*) plain+=(\"$line\") ;;\n"
	"		esac\n"
	"	done\n"
	"	(( $#plain )) && compadd -- \"${(@)plain}\"\n"
	"	(( $#open )) && compadd -S '' -- \"${(@)open}\"\n"
	"	return 0\n"
	"}\n"
	"if [ \"$funcstack[1]\" = _patchbay ]; then\n"
	"	_patchbay \"$@\"\n"
	"else\n"
	"	compdef _patchbay patchbay\n"
	"fi\n";

static const char fish_script[] =
	"# fish completion for patchbay, made by `patchbay completion fish'\n"
	"function __patchbay_complete\n"
	"	set -l before (commandline -opc)\n"
	"	set -l cur (commandline -ct | string unescape; or commandline -ct)\n"
	"	# what follows the cursor is not known to a completion in fish\n"
	"	set -l n (count $before)\n"
	"	for line in ($before[1] completion --words=$n -- $before \"$cur\" 2>/dev/null)\n"
	"		switch $line\n"
	"			case :files\n"
	"				set -l option (string match -r -- '^-[^=]*=' $cur)\n"
	"				for path in (__fish_complete_path (string replace -r -- "
	"'^-[^=]*=' '' $cur))\n					echo -- \"$option$path\"\n"
	"				end\n"
	"			case :commands\n"
	"				__fish_complete_command\n"
	"			case '*'\n"
	"				echo -- $line\n"
	"		end\n"
	"	end\n"
	"end\n"
	"complete -c patchbay -f -a '(__patchbay_complete)'\n";

static const struct {
	const char *name, *script;
} shells[] = {
	{ "bash", bash_script }, { "zsh", zsh_script }, { "fish", fish_script },
};

/* The command line. `at` is the word with the cursor. */
struct line {
	char **words;
	int nr, at;
	const char *command;
	const struct argp *argp;	/* options of the command, or NULL */
	int first;			/* index of the word after the command */
	int prog;			/* index of the word that names the program; 0: none */
};

#define FUNCTIONS	":functions"
#define CONTROL_FILES	":control"
#define TRACE_OPTIONS	":options"
#define DUMP_FORMATS	":formats"
#define FILES		":files"
#define PROCESSES	":processes"
#define TOP_SORT	"self total calls name"

/* Values of options. The first matching row is used. A NULL command matches any command. */
static const struct {
	const char *command, *option, *values;
} option_values[] = {
	{ NULL, "tracer", "function_graph function nop" },
	{ NULL, "match", "glob regex simple" },
	{ NULL, "clock", "x86-tsc local global perf mono mono_raw boot uptime none" },
	{ NULL, "demangle", "simple full no" },
	{ NULL, "option", TRACE_OPTIONS },
	{ "live", "sort", TOP_SORT }, { "top", "sort", TOP_SORT },
	{ NULL, "sort", "total self calls min max avg func" },
	{ "dump", "format", DUMP_FORMATS },
	{ "info", "format", "text json" },
	{ NULL, "format", "text csv json" },
	{ NULL, "filter", FUNCTIONS }, { NULL, "notrace", FUNCTIONS },
	{ NULL, "caller-filter", FUNCTIONS },
	{ NULL, "patch", FUNCTIONS }, { NULL, "unpatch", FUNCTIONS },
	{ NULL, "set", CONTROL_FILES }, { NULL, "pid", PROCESSES },
	{ NULL, "directory", FILES }, { NULL, "data", FILES }, { NULL, "diff", FILES },
	{ NULL, "bpf", FILES },
	{ NULL, "btf", FILES }, { NULL, "session", FILES }, { NULL, "file", FILES },
	{ NULL, "data-in", FILES },
	{ NULL, "data-out", FILES }, { NULL, "ctx-in", FILES }, { NULL, "ctx-out", FILES },
};

static void offer(const char *before, const char *word, size_t len, const char *cur)
{
	if (len >= strlen(cur) && !strncmp(word, cur, strlen(cur)))
		printf("%s%.*s\n", before, (int)len, word);
}

/* --- options ---------------------------------------------------------------- */

/* Finds the option with this name or letter, in the parser or its child parsers. */
static const struct argp_option *find_option(const struct argp *argp, const char *name, size_t len,
					     int key)
{
	const struct argp_option *o = argp ? argp->options : NULL, *found = NULL;
	const struct argp_child *c = argp ? argp->children : NULL;

	for (; o && (o->name || o->key || o->doc); o++)
		if (name ? o->name && strlen(o->name) == len &&
		    !strncmp(o->name, name, len) : o->key == key)
			return o;
	for (; c && c->argp && !found; c++)
		found = find_option(c->argp, name, len, key);
	return found;
}

static void offer_options(const struct argp *argp, const char *cur)
{
	const struct argp_option *o = argp ? argp->options : NULL;
	const struct argp_child *c = argp ? argp->children : NULL;
	char text[64];

	for (; o && (o->name || o->key || o->doc); o++) {
		if ((o->flags & (OPTION_HIDDEN | OPTION_DOC)) || !o->name)
			continue;
		snprintf(text, sizeof(text), "--%s%s", o->name,
			 o->arg && !(o->flags & OPTION_ARG_OPTIONAL) ? "=" : "");
		offer("", text, strlen(text), cur);
	}
	for (; c && c->argp; c++)
		offer_options(c->argp, cur);
}

/* If the word is an option that takes the next word as its value ("-F", "--filter"), returns the
 * option. Else returns NULL. */
static const struct argp_option *waits_for_value(const struct line *l, const char *word)
{
	const struct argp_option *o = NULL;

	if (word[0] == '-' && word[1] == '-' && word[2])
		o = find_option(l->argp, word + 2, strlen(word + 2), 0);
	else if (word[0] == '-' && word[1] && !word[2])
		o = find_option(l->argp, NULL, 0, word[1]);
	return o && o->arg && !(o->flags & OPTION_ARG_OPTIONAL) ? o : NULL;
}

/* Returns the index of the first word, from word i on, that is neither an option nor an option's
 * value. Returns 0 if there is none. */
static int next_operand(const struct line *l, int i)
{
	for (; i < l->nr; i++) {
		if (!strcmp(l->words[i], "--"))
			return i + 1 < l->nr ? i + 1 : 0;
		if (waits_for_value(l, l->words[i]))
			i++;
		else if (l->words[i][0] != '-' && l->words[i][0])
			return i;
	}
	return 0;
}

/* --- values ----------------------------------------------------------------- */

/* Runs `patchbay ARGV`, and offers the name at the beginning of each line that it prints. A name
 * ends before one of the characters in `ends`. */
static void offer_output(char *const *argv, const char *ends, const char *before, const char *cur)
{
	posix_spawn_file_actions_t acts;
	char *text = NULL;
	size_t size = 0;
	pid_t pid;
	FILE *in;
	int fd[2];

	if (pipe2(fd, O_CLOEXEC))
		return;
	posix_spawn_file_actions_init(&acts);
	posix_spawn_file_actions_adddup2(&acts, fd[1], 1);
	posix_spawn_file_actions_addopen(&acts, 0, "/dev/null", O_RDONLY, 0);
	if (posix_spawn(&pid, "/proc/self/exe", &acts, NULL, argv, environ))
		pid = 0;
	posix_spawn_file_actions_destroy(&acts);
	close(fd[1]);
	in = fdopen(fd[0], "r");
	while (pid && in && getline(&text, &size, in) > 0)
		/* Leave out the first line of CSV, which has the columns' names. Leave out names
		 * that are made from addresses, unless the user has begun to type such a name. */
		if (strncmp(text, "function,module,", 16) &&
		    (strncmp(text, "sub_", 4) || !strncmp(cur, "sub_", 4)))
			offer(before, text, strcspn(text, ends), cur);
	free(text);
	if (in)
		fclose(in);
	else
		close(fd[0]);
	if (pid)
		waitpid(pid, NULL, 0);
}

static bool is_one_of(const char *word, const char *const *list)
{
	while (*list && strcmp(word, *list))
		list++;
	return *list;
}

/* True if the command takes a program and its arguments. */
static bool runs_program(const struct line *l)
{
	static const char *const commands[] = { "record", "flight", "live", "top", NULL };

	return is_one_of(l->command, commands);
}

/* Offers the functions of the program on the command line, or of the recording. */
static void offer_functions(const struct line *l, const char *before, const char *cur)
{
	char *list[] = { "patchbay", "list", "--demangle=no", "--", NULL, NULL };
	char *views[] = { "patchbay", "report", "--format=csv", "--no-pager", "-d", PB_DEFAULT_DIR,
		NULL };

	if (runs_program(l) || !strcmp(l->command, "trace")) {
		list[4] = l->prog ? l->words[l->prog] : NULL;
		for (int i = l->first; i < l->prog; i++)
			if (!strncmp(l->words[i], "--module", 8) || !strcmp(l->words[i], "--all"))
				list[3] = "--libs";
		if (list[4])
			offer_output(list, " \n", before, cur);
		return;
	}
	for (int i = l->first; i + 1 < l->nr; i++)
		if (!strcmp(l->words[i], "-d"))
			views[5] = l->words[i + 1];
	offer_output(views, ",\n", before, cur);
}

static void offer_number(uint32_t nr, const char *before, const char *cur)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", nr);
	offer(before, text, strlen(text), cur);
}

struct processes {
	const char *before, *cur;
};

static bool offer_attached(void *arg, const char *path)
{
	const struct processes *p = arg;
	struct pb_control *c;
	char err[600];

	if (pb_control_open(&c, path, 0, err, sizeof(err)))
		return false;
	offer_number(pb_control_pid(c), p->before, p->cur);
	pb_control_close(c);
	return false;
}

static bool offer_own(void *arg, pid_t pid)
{
	const struct processes *p = arg;
	char path[40];
	struct stat st;

	/* leave out kernel threads, which have no executable */
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	if (pid != getpid() && pid != getppid() && !stat(path, &st))
		offer_number((uint32_t)pid, p->before, p->cur);
	return true;
}

/* Offers processes: for some commands only those that have control files, for other commands those
 * to which Patchbay may attach. */
static void offer_processes(const struct line *l, const char *before, const char *cur)
{
	static const char *const controls[] = { "detach", "control", "stack", "snapshot", NULL };
	struct processes p = { before, cur };

	if (is_one_of(l->command, controls))
		record_session_each(offer_attached, &p);
	else
		record_proc_each("/proc", offer_own, &p);
}

static void offer_control_files(const char *before, const char *cur, const char *after)
{
	char text[256];

	for (unsigned i = 0; i < PB_NR_CONTROL_FILES; i++) {
		snprintf(text, sizeof(text), "%s%s", pb_control_info(i)->path, after);
		offer(before, text, strlen(text), cur);
	}
}

static void offer_each(const char *(*name)(size_t i), const char *before, const char *cur)
{
	const char *n;

	for (size_t i = 0; (n = name(i)); i++)
		offer(before, n, strlen(n), cur);
}

/* Offers values of the option. `before` is the beginning of the word, up to the value. */
static void offer_value(const struct line *l, const char *option, const char *before,
			const char *cur)
{
	const char *v = NULL;

	for (size_t i = 0; i < pb_array_size(option_values) && !v; i++)
		if (!strcmp(option, option_values[i].option) &&
		    (!option_values[i].command || !strcmp(option_values[i].command, l->command)))
			v = option_values[i].values;
	if (!v)
		return;
	if (!strcmp(v, FUNCTIONS)) {
		offer_functions(l, before, cur);
	} else if (!strcmp(v, CONTROL_FILES)) {
		offer_control_files(before, cur, "=");
	} else if (!strcmp(v, TRACE_OPTIONS)) {
		offer_each(pb_fg_name, before, cur);
	} else if (!strcmp(v, DUMP_FORMATS)) {
		offer_each(pb_dump_format, before, cur);
	} else if (!strcmp(v, PROCESSES)) {
		offer_processes(l, before, cur);
	} else if (!strcmp(v, FILES)) {
		puts(FILES);
	} else {
		for (; *v; v += strspn(v, " ")) {
			offer(before, v, strcspn(v, " "), cur);
			v += strcspn(v, " ");
		}
	}
}

/* --- words ------------------------------------------------------------------ */

static void offer_commands(const char *cur)
{
	const struct pb_command *c = NULL;

	while ((c = pb_command_each(c)))
		offer("", c->name, strlen(c->name), cur);
}

static void offer_operand(const struct line *l, const char *cur)
{
	static const char *const processes[] = { "attach", "detach", "stack", "snapshot", NULL };

	if (!strcmp(l->command, "control")) {
		offer("", "list", 4, cur);
		offer_control_files("", cur, "");
	} else if (!strcmp(l->command, "completion")) {
		for (size_t i = 0; i < pb_array_size(shells); i++)
			offer("", shells[i].name, strlen(shells[i].name), cur);
	} else if (!strcmp(l->command, "graph")) {
		offer_functions(l, "", cur);
	} else if (is_one_of(l->command, processes)) {
		offer_processes(l, "", cur);
	} else if (strcmp(l->command, "doctor") && strcmp(l->command, "ps")) {
		puts(FILES);
		if (!strcmp(l->command, "list") ||
		    (runs_program(l) && (!l->prog || l->prog == l->at)))
			puts(":commands");
	}
}

static void offer_arguments(struct line *l)
{
	const char *cur = l->words[l->at], *value = strchr(cur, '=');
	const struct argp_option *o = l->at > l->first ? waits_for_value(l, l->words[l->at - 1]) :
				      NULL;
	char option[64], before[80];

	l->prog = next_operand(l, l->first);
	/* in `patchbay bpf trace OBJECT PROG`, the program is the second word */
	if (l->prog && !strcmp(l->command, "trace"))
		l->prog = next_operand(l, l->prog + 1);
	if (l->prog && l->at > l->prog) {
		offer_operand(l, cur);
	} else if (o && o->name) {
		offer_value(l, o->name, "", cur);
	} else if (!strncmp(cur, "--", 2) && value && (size_t)(value - cur) < sizeof(option)) {
		snprintf(option, sizeof(option), "%.*s", (int)(value - cur - 2), cur + 2);
		snprintf(before, sizeof(before), "--%s=", option);
		offer_value(l, option, before, value + 1);
	} else if (*cur == '-') {
		offer_options(l->argp, cur);
		offer("", "--help", 6, cur);
	} else {
		offer_operand(l, cur);
	}
}

static void offer_words(char **words, int nr, int at)
{
	struct line l = { .words = words, .nr = nr, .at = at, .first = 2 };
	const struct pb_command *c = at > 1 ? pb_command_find(words[1]) : NULL;
	const char *cur = words[at];

	if (at == 1 || (at == 2 && !strcmp(words[1], "help")))
		offer_commands(cur);
	if (at == 1) {
		offer("", "help", 4, cur);
		offer("", "--help", 6, cur);
		offer("", "--version", 9, cur);
	}
	if (c && c->subs && at == 2) {
		for (size_t i = 0; c->subs[i]; i++)
			offer("", c->subs[i]->name, strlen(c->subs[i]->name), cur);
		return;
	}
	if (c && c->subs) {
		const struct pb_command *const *sub = c->subs;

		while (*sub && strcmp((*sub)->name, words[2]))
			sub++;
		c = *sub;
		l.first = 3;
	}
	if (!c)
		return;
	l.command = c->name;
	l.argp = c->argp;
	offer_arguments(&l);
}

/* --- the command ------------------------------------------------------------ */

struct completion {
	int at;			/* value of --words; 0: not given */
	const char *shell;
	int status;
};

static const struct argp_option options[] = {
	{ "words", 'w', "N", OPTION_HIDDEN, NULL, 0 },
	{ 0 }
};

static error_t completion_parse(int key, char *arg, struct argp_state *state)
{
	struct completion *c = state->input;

	if (key == 'w') {
		c->at = atoi(arg);
		return 0;
	}
	if (key == ARGP_KEY_ARG && c->at > 0) {
		int first = state->next - 1;

		if (c->at < state->argc - first)
			offer_words(state->argv + first, state->argc - first, c->at);
		state->next = state->argc;
		c->shell = "";
		return 0;
	}
	if (key == ARGP_KEY_ARG && !c->shell) {
		c->shell = arg;
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp completion_argp = {
	options, completion_parse, "bash|zsh|fish",
	"Prints a completion script. To use it at once in a running bash: source <(patchbay "
	"completion bash).\v"
	"`make install' installs all three where the shells look for them.", NULL, NULL, NULL,
};

static int completion_run(int argc, char **argv)
{
	struct completion c = { .at = 0 };

	if (argp_parse(&completion_argp, argc, argv, ARGP_IN_ORDER, NULL, &c))
		return 2;
	if (c.shell && !*c.shell)
		return 0;
	for (size_t i = 0; c.shell && i < pb_array_size(shells); i++)
		if (!strcmp(c.shell, shells[i].name)) {
			fputs(shells[i].script, stdout);
			return 0;
		}
	pb_error("completion", "%s: not a supported shell; give bash, zsh or fish",
		 c.shell ? c.shell : "no name");
	return 2;
}

const struct pb_command pb_command_completion = {
	.name = "completion",
	.summary = "Print shell completion for bash, zsh or fish",
	.argp = &completion_argp,
	.run = completion_run,
};
