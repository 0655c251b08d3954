/* Options that several subcommands share: processes and messages, and what stacks look like. */
#include "target_opts.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"

enum { KEY_LABELS = 0x100, KEY_INTERP, KEY_NO_LINES, KEY_COLOR };

/* Words that an option takes; the number of the one that was given. */
struct word {
	const char *name;
	int value;
};

static int word_of(const struct argp_state *state, const char *option, const struct word *words,
		   const char *given)
{
	char all[128] = "";

	for (const struct word *w = words; w->name; w++) {
		if (strcmp(w->name, given) == 0)
			return w->value;
		strncat(all, w == words ? "" : ", ", sizeof(all) - strlen(all) - 1);
		strncat(all, w->name, sizeof(all) - strlen(all) - 1);
	}
	argp_error(state, "%s takes one of %s, not '%s'", option, all, given);
	return 0;
}

static void add_pid(struct target_opts *o, const struct argp_state *state, const char *given)
{
	uint64_t pid;
	int *p;

	if (!parse_number(given, 1, INT_MAX, &pid))
		argp_error(state, "-p takes a process id, not '%s'", given);
	for (size_t i = 0; i < o->n; i++) {
		if (o->pid[i] == (int)pid)
			return;
	}
	p = realloc(o->pid, (o->n + 1) * sizeof(*p));
	if (!p) {
		argp_failure(state, EXIT_OTHER, 0, "out of memory");
		return;
	}
	o->pid = p;
	o->pid[o->n++] = (int)pid;
}

void target_opts_fini(struct target_opts *o)
{
	free(o->pid);
	*o = (struct target_opts){ 0 };
}

void target_opts_require(const struct target_opts *o, const struct argp_state *state)
{
	if (!o->n)
		argp_error(state, "which process? Give -p PID");
}

static void log_line(void *arg, enum rbsp_log_level level, const char *text)
{
	(void)arg;
	(void)level;
	say("%s", text);
}

void target_opts_log(const struct target_opts *o)
{
	static const enum rbsp_log_level by_verbosity[] = { RBSP_LOG_ERROR, RBSP_LOG_WARN,
							    RBSP_LOG_INFO, RBSP_LOG_DEBUG };

	rbsp_log_set(log_line, NULL, by_verbosity[o->verbose < 2 ? o->verbose + 1 : 3]);
}

static error_t parse_target(int key, char *arg, struct argp_state *state)
{
	struct target_opts *o = state->input;

	switch (key) {
	case 'p':
		add_pid(o, state, arg);
		return 0;
	case 'q':
		o->verbose = -1;
		return 0;
	case 'v':
		o->verbose = o->verbose < 0 ? 1 : o->verbose + 1;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option target_options[] = {
	{ "pid", 'p', "PID", 0, "The Ruby process; may be given several times", 0 },
	{ "quiet", 'q', NULL, 0, "Print errors only", 8 },
	{ "verbose", 'v', NULL, 0, "Say more; twice: much more", 8 },
	{ 0 },
};

const struct argp target_argp = { .options = target_options, .parser = parse_target };

static const struct word natives[] = {
	{ "leaf", RBSP_NATIVE_LEAF },
	{ "full", RBSP_NATIVE_FULL },
	{ "off", RBSP_NATIVE_OFF },
	{ NULL, 0 },
};
static const struct word label_modes[] = {
	{ "default", RBSP_LABEL_DEFAULT },
	{ "ruby", RBSP_LABEL_RUBY },
	{ NULL, 0 },
};
static const struct word colors[] = {
	{ "auto", COLOR_AUTO },
	{ "always", COLOR_ALWAYS },
	{ "never", COLOR_NEVER },
	{ NULL, 0 },
};

static error_t parse_stack(int key, char *arg, struct argp_state *state)
{
	struct stack_opts *o = state->input;

	switch (key) {
	case 'n':
		o->native = (enum rbsp_native_mode)word_of(state, "--native", natives, arg);
		o->native_given = true;
		return 0;
	case KEY_LABELS:
		o->labels = (enum rbsp_label_mode)word_of(state, "--labels", label_modes, arg);
		return 0;
	case KEY_INTERP:
		o->interp = true;
		return 0;
	case KEY_NO_LINES:
		o->no_lines = true;
		return 0;
	case KEY_COLOR:
		o->color = word_of(state, "--color", colors, arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option stack_options[] = {
	{ "native", 'n', "WHICH", 0,
	  "Native frames: leaf (the default), those above the newest Ruby frame; full, the whole native stack; off, none",
	  4 },
	{ "labels", KEY_LABELS, "HOW", 0,
	  "Names of Ruby frames: default, the same text on all versions; ruby, what that Ruby's own caller_locations says",
	  4 },
	{ "interp", KEY_INTERP, NULL, 0, "Show the interpreter's own frames too", 4 },
	{ "no-lines", KEY_NO_LINES, NULL, 0, "Leave out files and lines: one frame a method", 4 },
	{ "color", KEY_COLOR, "WHEN", 0, "Colours: auto (the default), always, never", 8 },
	{ 0 },
};

const struct argp stack_argp = { .options = stack_options, .parser = parse_stack };

bool stack_opts_color(const struct stack_opts *o, FILE *out)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	if (o->color != COLOR_AUTO)
		return o->color == COLOR_ALWAYS;
	return isatty(fileno(out)) && !(no_color && *no_color) &&
	       !(term && strcmp(term, "dumb") == 0);
}

struct rbsp_output_options stack_opts_output(const struct stack_opts *o)
{
	struct rbsp_output_options out;

	rbsp_output_options_init(&out);
	out.lines = !o->no_lines;
	out.interp = o->interp;
	out.caller_lines = o->labels == RBSP_LABEL_RUBY;
	return out;
}
