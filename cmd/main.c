/* rbsample: the table of subcommands, and their dispatch. */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"

static const struct command {
	const char *name, *alias; /* alias NULL: none */
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{ "record", NULL, cmd_record,
	  "sample one or more processes, or a command, into a profile" },
	{ "dump", "snapshot", cmd_dump, "print what every thread does now" },
	{ "inspect", NULL, cmd_inspect, "print what was found in a process, and how" },
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

const char *argp_program_version = "rbsample " RBSAMPLE_VERSION;

struct outer {
	const struct command *command;
	int argc;
	char **argv;
};

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < N_COMMANDS; i++) {
		const struct command *c = &commands[i];

		if (strcmp(c->name, name) == 0 || (c->alias && strcmp(c->alias, name) == 0))
			return c;
	}
	return NULL;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct outer *o = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		o->command = find_command(arg);
		if (!o->command)
			argp_error(state, "there is no command '%s'", arg);
		o->argc = state->argc - state->next + 1;
		o->argv = &state->argv[state->next - 1];
		state->next = state->argc;
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "which command?");
		return EINVAL;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static char *list_commands(int key, const char *text, void *input)
{
	char *list = NULL;
	size_t size;
	FILE *f;

	(void)input;
	if (key != ARGP_KEY_HELP_EXTRA)
		return (char *)(uintptr_t)text;
	f = open_memstream(&list, &size);
	if (!f)
		return NULL;
	fputs("Commands:\n", f);
	for (size_t i = 0; i < N_COMMANDS; i++) {
		fprintf(f, "  %-9s %s", commands[i].name, commands[i].help);
		if (commands[i].alias)
			fprintf(f, " (alias: %s)", commands[i].alias);
		putc('\n', f);
	}
	fputs("\n`rbsample COMMAND --help' tells more.", f);
	return fclose(f) == 0 ? list : NULL;
}

static const struct argp argp = {
	.parser = parse,
	.args_doc = "COMMAND [OPTION...]",
	.doc = "Sampling profiler for running Ruby programs.",
	.help_filter = list_commands,
};

/* A closed stdin, stdout or stderr: keep its number from a file that is opened later, and closed
 * for a command. */
static void hold_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			(void)!open("/dev/null",
				    (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
	}
}

int main(int argc, char **argv)
{
	struct outer o = { 0 };
	char name[64];

	hold_standard_descriptors();
	argp_err_exit_status = EXIT_USAGE;
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &o);
	snprintf(name, sizeof(name), "rbsample %s", o.command->name);
	o.argv[0] = name;
	return o.command->run(o.argc, o.argv);
}
