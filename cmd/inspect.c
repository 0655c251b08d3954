/* `rbsample inspect`: what was found in a process, and how. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "target_opts.h"

struct inspect {
	struct target_opts target;
	bool json;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct inspect *n = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &n->target;
		return 0;
	case 'f':
		if (strcmp(arg, "text") != 0 && strcmp(arg, "json") != 0)
			argp_error(state, "--format takes text or json, not '%s'", arg);
		n->json = arg[0] == 'j';
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument '%s'", arg);
		return EINVAL;
	case ARGP_KEY_END:
		target_opts_require(&n->target, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option options[] = {
	{ "format", 'f', "FORMAT", 0,
	  "text (the default), or json: one object a process, on one line", 2 },
	{ 0 },
};
static const struct argp_child children[] = { { &target_argp, 0, NULL, 0 }, { 0 } };
static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "-p PID",
	.doc = "Print what was found in a process, by which step, and what was tried in vain.",
	.children = children,
};

/* The steps are printed also where something is missing: that is what they are for. */
static int inspect_one(const struct inspect *n, int pid)
{
	struct rbsp_err err = { 0 }, write_err = { 0 };
	struct rbsp_inspect *found = NULL;
	enum rbsp_status st = rbsp_inspect_process(pid, &found, &err), written = RBSP_OK;
	int status = EXIT_DONE;

	if (found && n->json)
		written = rbsp_inspect_json(found, stdout, &write_err);
	else if (found)
		written = rbsp_inspect_text(found, stdout, &write_err);
	if (st != RBSP_OK)
		status = say_attach_failed(pid, &err);
	if (written != RBSP_OK)
		status = say_failed(&write_err);
	rbsp_inspect_free(found);
	return status;
}

int cmd_inspect(int argc, char **argv)
{
	struct inspect n = { 0 };
	bool good = false;
	int first = EXIT_DONE;

	argp_parse(&argp, argc, argv, 0, NULL, &n);
	signal(SIGPIPE, SIG_IGN);
	target_opts_log(&n.target);
	for (size_t i = 0; i < n.target.n; i++) {
		int status = inspect_one(&n, n.target.pid[i]);

		good = good || status == EXIT_DONE;
		if (!first || status == EXIT_OUTPUT)
			first = status;
		if (status == EXIT_OUTPUT) {
			good = false;
			break;
		}
	}
	target_opts_fini(&n.target);
	return good ? EXIT_DONE : first;
}
