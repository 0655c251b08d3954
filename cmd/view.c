/* What `dump` and `inspect` share. */
#include "view.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "cmd.h"

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct view *v = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &v->target;
		return 0;
	case 'f':
		if (strcmp(arg, "text") != 0 && strcmp(arg, "json") != 0)
			argp_error(state, "--format takes text or json, not '%s'", arg);
		v->json = arg[0] == 'j';
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument '%s'", arg);
		return EINVAL;
	case ARGP_KEY_END:
		target_opts_require(&v->target, state);
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
const struct argp view_argp = { .options = options, .parser = parse, .children = children };

int view_each(struct view *v, int (*one)(void *arg, struct view *v, int pid), void *arg)
{
	int first = EXIT_DONE;

	signal(SIGPIPE, SIG_IGN); /* a reader that goes away is seen as EPIPE */
	target_opts_log(&v->target);
	for (size_t i = 0; i < v->target.n && first != EXIT_OUTPUT; i++) {
		int status = one(arg, v, v->target.pid[i]);

		if (!first || status == EXIT_OUTPUT)
			first = status;
	}
	target_opts_fini(&v->target);
	return v->printed && first != EXIT_OUTPUT ? EXIT_DONE : first;
}
