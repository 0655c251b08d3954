/* `rbsample record`: its options. */
#include "record.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"

#define MOST_HZ 20000.0

enum { KEY_COUNT = 0x200, KEY_THREAD_NAME, KEY_MAIN, KEY_NO_REALTIME, KEY_TAPE };

/* So that `rbsample record -p PID | flamegraph.pl` ends by itself. */
#define DEFAULT_DURATION_NS 30000000000u

static double rate_of(const struct argp_state *state, const char *given)
{
	char *end;
	double hz = strtod(given, &end);

	if (end == given || (strcmp(end, "") != 0 && strcasecmp(end, "hz") != 0) ||
	    !(hz >= 0.01 && hz <= MOST_HZ))
		argp_error(state, "--rate takes samples a second, at most %.0f, not '%s'", MOST_HZ,
			   given);
	return hz;
}

static void check_regex(const struct argp_state *state, const char *given)
{
	regex_t re;
	char why[128];
	int bad = regcomp(&re, given, REG_EXTENDED | REG_NOSUB);

	if (bad) {
		regerror(bad, &re, why, sizeof(why));
		argp_error(state, "--thread-name '%s': %s", given, why);
	}
	regfree(&re);
}

static const struct rbsp_format *format_of(const struct argp_state *state, const char *given)
{
	const struct rbsp_format *f = rbsp_format_find(given);

	if (!f)
		argp_error(state, "there is no format '%s' (--help lists them)", given);
	return f;
}

/* What does not go together, and what is missing. */
static void check(struct record *r, const struct argp_state *state)
{
	if (r->target.n && r->command)
		argp_error(state, "give -p PID or -- CMD, not both");
	if (!r->target.n && !r->command)
		argp_error(state, "what to sample? Give -p PID, or -- CMD ARG...");
	if (r->command && r->output && strcmp(r->output, "-") == 0)
		argp_error(state, "stdout is the command's own: with -- CMD, -o takes a file");
	if (r->sampler.idle && r->sampler.gvl_only)
		argp_error(
			state,
			"--idle adds threads that wait, --gvl leaves them out: give one of them");
	if (!r->limited && !r->count && !r->command)
		r->duration_ns = DEFAULT_DURATION_NS;
	if (r->sampler.tape && r->target.n > 1)
		argp_error(state, "--tape takes one process");
}

static error_t parse_what(int key, char *arg, struct argp_state *state, struct record *r)
{
	switch (key) {
	case 't':
		r->threads = true;
		return 0;
	case 'i':
		r->sampler.idle = true;
		return 0;
	case 'g':
		r->sampler.gvl_only = true;
		return 0;
	case KEY_THREAD_NAME:
		check_regex(state, arg);
		r->sampler.thread_name = arg;
		return 0;
	case KEY_MAIN:
		r->sampler.main_only = true;
		return 0;
	case KEY_NO_REALTIME:
		r->sampler.realtime = false;
		return 0;
	case KEY_TAPE:
		r->sampler.tape = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct record *r = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &r->target;
		state->child_inputs[1] = &r->stack;
		return 0;
	case 'r':
		r->sampler.rate_hz = rate_of(state, arg);
		return 0;
	case 'd':
		r->limited = true;
		if (strcmp(arg, "inf") != 0 && !parse_duration(arg, &r->duration_ns))
			argp_error(
				state,
				"--duration takes 30s, 500ms, 2m, plain seconds, or inf, not '%s'",
				arg);
		return 0;
	case KEY_COUNT:
		if (!parse_number(arg, 1, UINT64_MAX / 2, &r->count))
			argp_error(state, "--count takes a number of samples, not '%s'", arg);
		return 0;
	case 'o':
		if (!*arg)
			argp_error(state, "--output takes a file, or - for stdout");
		r->output = arg;
		return 0;
	case 'f':
		r->format = format_of(state, arg);
		return 0;
	case ARGP_KEY_ARG:
		if (!state->quoted || state->next - 1 < state->quoted)
			argp_error(state, "unexpected argument '%s' (-- goes before a command)",
				   arg);
		r->command = &state->argv[state->next - 1];
		state->next = state->argc;
		return 0;
	case ARGP_KEY_END:
		check(r, state);
		return 0;
	default:
		return parse_what(key, arg, state, r);
	}
}

static const struct argp_option options[] = {
	{ "rate", 'r', "HZ", 0, "Samples a second (default 99)", 1 },
	{ "duration", 'd', "TIME", 0,
	  "How long: 30s, 500ms, 2m; a plain number is seconds; inf: until the process ends, or Ctrl-C (default 30s; "
	  "inf with --count or a command)",
	  1 },
	{ "count", KEY_COUNT, "N", 0, "End after N samples", 1 },
	{ "output", 'o', "FILE", 0, "Where to; - is stdout", 2 },
	{ "format", 'f', "FORMAT", 0,
	  "One of the formats below; without it, what the suffix of FILE says", 2 },
	{ "tape", KEY_TAPE, "FILE", 0,
	  "Write what was read to FILE too, so that the run can be replayed without the process",
	  2 },
	{ "threads", 't', NULL, 0, "A root frame for each thread", 3 },
	{ "idle", 'i', NULL, 0, "Also threads that wait: wall time", 3 },
	{ "gvl", 'g', NULL, 0, "Only threads that hold the GVL", 3 },
	{ "thread-name", KEY_THREAD_NAME, "REGEX", 0, "Only threads whose name matches", 3 },
	{ "main", KEY_MAIN, NULL, 0, "Only the main thread", 3 },
	{ "no-realtime", KEY_NO_REALTIME, NULL, 0, "Never use real-time priority", 7 },
	{ 0 },
};
static const struct argp_child children[] = { { &target_argp, 0, NULL, 0 },
					      { &stack_argp, 0, NULL, 0 },
					      { 0 } };

static char *list_formats(int key, const char *text, void *input)
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
	fputs("Formats:\n", f);
	for (const struct rbsp_format *r = rbsp_formats; r->name; r++) {
		fprintf(f, "  %-9s %s", r->name, r->text);
		if (r->alias)
			fprintf(f, " (alias: %s)", r->alias);
		putc('\n', f);
	}
	return fclose(f) == 0 ? list : NULL;
}

static const struct argp argp = {
	.options = options,
	.parser = parse,
	.args_doc = "-p PID\n-- CMD [ARG...]",
	.doc = "Sample running Ruby processes, or a command from its start to its end, and write a profile.\v"
	       "Without -o the profile goes to stdout, or, if that is a terminal or the command's own, "
	       "to a new file in the current directory, which is named on stderr.",
	.children = children,
	.help_filter = list_formats,
};

int cmd_record(int argc, char **argv)
{
	struct record r = { 0 };
	int status;

	rbsp_sampler_options_init(&r.sampler);
	argp_parse(&argp, argc, argv, 0, NULL, &r);
	r.sampler.native = r.stack.native;
	r.sampler.labels = r.stack.labels;
	r.sampler.lines = !r.stack.no_lines;
	target_opts_log(&r.target);
	status = record_run(&r);
	target_opts_fini(&r.target);
	return status;
}
