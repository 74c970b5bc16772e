/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* `patchbay completion bash`: made from the commands' own tables. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

static void print_options(const struct argp *argp)
{
	const struct argp_option *o = argp ? argp->options : NULL;
	const struct argp_child *c = argp ? argp->children : NULL;

	for (; o && (o->name || o->key || o->doc); o++) {
		if (o->flags & (OPTION_HIDDEN | OPTION_DOC))
			continue;
		if (o->name)
			printf("--%s%s ", o->name, o->arg && !(o->flags & OPTION_ARG_OPTIONAL) ? "=" : "");
		if (o->key > ' ' && o->key < 127)
			printf("-%c ", o->key);
	}
	for (; c && c->argp; c++)
		print_options(c->argp);
}

/* A command of commands: the second word chooses the options of the others. */
static void print_subs(const struct pb_command *c)
{
	printf("\t%s) if [ \"$COMP_CWORD\" = 2 ]; then\n\t\t\tCOMPREPLY=($(compgen -W '", c->name);
	for (size_t i = 0; c->subs[i]; i++)
		printf("%s ", c->subs[i]->name);
	printf("help --help' -- \"$cur\"))\n\t\t\treturn\n\t\tfi\n\t\tcase ${COMP_WORDS[2]} in\n");
	for (size_t i = 0; c->subs[i]; i++) {
		printf("\t\t%s) words='", c->subs[i]->name);
		print_options(c->subs[i]->argp);
		printf("--help --usage' ;;\n");
	}
	printf("\t\tesac ;;\n");
}

static int bash(void)
{
	const struct pb_command *c = NULL;

	printf("# bash completion for patchbay; made by `patchbay completion bash'\n"
	       "_patchbay()\n{\n"
	       "\tlocal cur=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} words= i\n"
	       "\tCOMPREPLY=()\n"
	       "\tif [ \"$COMP_CWORD\" = 1 ]; then\n"
	       "\t\tCOMPREPLY=($(compgen -W '--help --version help");
	while ((c = pb_command_each(c)))
		printf(" %s", c->name);
	printf("' -- \"$cur\"))\n\t\treturn\n\tfi\n\tcase $command in\n");
	while ((c = pb_command_each(c))) {
		if (c->subs) {
			print_subs(c);
			continue;
		}
		printf("\t%s) words='", c->name);
		print_options(c->argp);
		printf("--help --usage' ;;\n");
	}
	printf("\thelp) COMPREPLY=($(compgen -W '");
	while ((c = pb_command_each(c)))
		printf("%s ", c->name);
	printf("' -- \"$cur\")); return ;;\n\tesac\n"
	       "\tcase $cur in\n"
	       "\t-*)\n"
	       "\t\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
	       "\t\t[[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n"
	       "\t\treturn ;;\n"
	       "\tesac\n"
	       "\tcase $command in\n"
	       "\trecord|live)\n"
	       "\t\t# the first word that is no option is a command; behind it, files\n"
	       "\t\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
	       "\t\t\t[[ ${COMP_WORDS[i]} != -* && ${COMP_WORDS[i-1]} != -[bdtDFNCPUZ] ]] && break\n"
	       "\t\tdone\n"
	       "\t\tif [ $i = \"$COMP_CWORD\" ]; then\n"
	       "\t\t\tCOMPREPLY=($(compgen -c -- \"$cur\") $(compgen -f -- \"$cur\"))\n"
	       "\t\t\treturn\n"
	       "\t\tfi ;;\n"
	       "\tesac\n"
	       "\tCOMPREPLY=($(compgen -f -- \"$cur\"))\n"
	       "}\n"
	       "complete -o filenames -F _patchbay patchbay\n");
	return fflush(stdout) ? 1 : 0;
}

static const struct argp completion_argp = {
	.args_doc = "bash",
	.doc = "Print a completion script: source <(patchbay completion bash).",
};

static int run_completion(int argc, char **argv)
{
	int at = argc;

	if (argp_parse(&completion_argp, argc, argv, ARGP_NO_ARGS | ARGP_IN_ORDER, &at, NULL) && at == argc)
		return 2;
	if (at + 1 != argc || strcmp(argv[at], "bash")) {
		pb_error("completion", "for which shell? There is bash");
		return 2;
	}
	return bash();
}

const struct pb_command pb_command_completion = {
	.name = "completion",
	.summary = "Print shell completion (bash)",
	.argp = &completion_argp,
	.run = run_completion,
};
