/* `rbsample dump`: one look at every thread. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "target_opts.h"

struct dump {
	struct target_opts target;
	struct stack_opts stack;
	bool json;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct dump *d = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &d->target;
		state->child_inputs[1] = &d->stack;
		return 0;
	case 'f':
		if (strcmp(arg, "text") != 0 && strcmp(arg, "json") != 0)
			argp_error(state, "--format takes text or json, not '%s'", arg);
		d->json = arg[0] == 'j';
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument '%s'", arg);
		return EINVAL;
	case ARGP_KEY_END:
		target_opts_require(&d->target, state);
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
static const struct argp_child children[] = { { &target_argp, 0, NULL, 0 },
					      { &stack_argp, 0, NULL, 0 },
					      { 0 } };
static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "-p PID",
	.doc = "Print what every Ruby thread of a process does now, innermost frame first. "
	       "A stopped process stays stopped.",
	.children = children,
};

static enum rbsp_status print_one(const struct dump *d, const struct rbsp_dump *taken,
				  const struct rbsp_frames *frames, struct rbsp_err *err)
{
	struct rbsp_output_options o = stack_opts_output(&d->stack);

	if (d->json)
		return rbsp_dump_json(taken, frames, &o, stdout, err);
	return rbsp_dump_text(taken, frames, &o, stack_opts_color(&d->stack, stdout), stdout, err);
}

/* The exit status for one process; *printed is set if it is on stdout. */
static int dump_one(const struct dump *d, int pid, bool *printed)
{
	struct rbsp_dump_options o;
	struct rbsp_err err = { 0 };
	struct rbsp_dump *taken = NULL;
	struct rbsp_frames *frames = rbsp_frames_new();
	int status = EXIT_DONE;

	rbsp_dump_options_init(&o);
	o.native = d->stack.native;
	o.native_given = d->stack.native_given;
	o.labels = d->stack.labels;
	o.lines = !d->stack.no_lines;
	if (!frames) {
		say("out of memory");
		return EXIT_OTHER;
	}
	if (rbsp_dump_take(pid, &o, frames, &taken, &err) != RBSP_OK) {
		status = say_attach_failed(pid, &err);
	} else {
		if (*printed && !d->json)
			putchar('\n');
		*printed = true;
		if (print_one(d, taken, frames, &err) != RBSP_OK)
			status = say_failed(&err);
	}
	rbsp_dump_free(taken);
	rbsp_frames_free(frames);
	return status;
}

int cmd_dump(int argc, char **argv)
{
	struct dump d = { 0 };
	bool printed = false;
	int first = EXIT_DONE;

	argp_parse(&argp, argc, argv, 0, NULL, &d);
	signal(SIGPIPE, SIG_IGN); /* a reader that goes away is seen as EPIPE */
	target_opts_log(&d.target);
	for (size_t i = 0; i < d.target.n; i++) {
		int status = dump_one(&d, d.target.pid[i], &printed);

		if (status == EXIT_OUTPUT) {
			first = status;
			printed = false;
			break;
		}
		if (!first)
			first = status;
	}
	target_opts_fini(&d.target);
	return printed ? EXIT_DONE : first;
}
