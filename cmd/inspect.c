/* `rbsample inspect`: what was found in a process, and how. */
#include <stdio.h>

#include "cmd.h"
#include "view.h"

static error_t parse(int key, char *arg, struct argp_state *state)
{
	(void)arg;
	if (key != ARGP_KEY_INIT)
		return ARGP_ERR_UNKNOWN;
	state->child_inputs[0] = state->input;
	return 0;
}

static const struct argp_child children[] = { { &view_argp, 0, NULL, 0 }, { 0 } };
static const struct argp argp = {
	.parser = parse,
	.args_doc = "-p PID",
	.doc = "Print what was found in a process, by which step, and what was tried in vain.",
	.children = children,
};

/* The steps are printed also where something is missing: that is what they are for. */
static int inspect_one(void *arg, struct view *v, int pid)
{
	struct rbsp_err err = { 0 }, write_err = { 0 };
	struct rbsp_inspect *found = NULL;
	enum rbsp_status st = rbsp_inspect_process(pid, &found, &err), written = RBSP_OK;
	int status = EXIT_DONE;

	(void)arg;
	if (found && v->json)
		written = rbsp_inspect_json(found, stdout, &write_err);
	else if (found)
		written = rbsp_inspect_text(found, stdout, &write_err);
	if (st != RBSP_OK)
		status = say_attach_failed(pid, &err);
	else
		v->printed++;
	if (written != RBSP_OK)
		status = say_failed(&write_err);
	rbsp_inspect_free(found);
	return status;
}

int cmd_inspect(int argc, char **argv)
{
	struct view v = { 0 };

	argp_parse(&argp, argc, argv, 0, NULL, &v);
	return view_each(&v, inspect_one, NULL);
}
