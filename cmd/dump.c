/* `rbsample dump`: one look at every thread. */
#include <stdio.h>

#include "cmd.h"
#include "view.h"

struct dump {
	struct view view;
	struct stack_opts stack;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct dump *d = state->input;

	(void)arg;
	if (key != ARGP_KEY_INIT)
		return ARGP_ERR_UNKNOWN;
	state->child_inputs[0] = &d->view;
	state->child_inputs[1] = &d->stack;
	return 0;
}

static const struct argp_child children[] = { { &view_argp, 0, NULL, 0 },
					      { &stack_argp, 0, NULL, 0 },
					      { 0 } };
static const struct argp argp = {
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

	if (d->view.json)
		return rbsp_dump_json(taken, frames, &o, stdout, err);
	return rbsp_dump_text(taken, frames, &o, stack_opts_color(&d->stack, stdout), stdout, err);
}

static int dump_one(void *arg, struct view *v, int pid)
{
	const struct dump *d = arg;
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
		if (v->printed++ && !v->json)
			putchar('\n');
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

	argp_parse(&argp, argc, argv, 0, NULL, &d);
	return view_each(&d.view, dump_one, &d);
}
