/* What can be found in a process, for people. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rbsample/sampler.h>

#include "locate/locate.h"

/* The public struct first, so that one pointer serves both; what it points to lives in `loc`. */
struct inspection {
	struct rbsp_inspect pub;
	struct rbsp_target *target;
	struct rbsp_located loc;
	char layout[96];
};

static void publish(struct inspection *in)
{
	struct rbsp_inspect *pub = &in->pub;
	const struct rbsp_located *l = &in->loc;

	pub->ruby = l->version_text[0] ? l->version_text : NULL;
	pub->description = l->description[0] ? l->description : NULL;
	pub->module = l->path[0] ? l->path : NULL;
	if (l->layout) {
		snprintf(in->layout, sizeof(in->layout), "%u.%u%s (%s)", l->layout->from >> 16,
			 (l->layout->from >> 8) & 255, l->on_trial ? ", on trial" : "",
			 l->layout->source);
		pub->layout = in->layout;
		pub->layout_run = l->layout->run;
	}
	pub->step = calloc(l->n_steps + 1, sizeof(*pub->step));
	for (size_t i = 0; pub->step && i < l->n_steps; i++)
		pub->step[i] = (struct rbsp_inspect_step){ l->step[i].what, l->step[i].how,
							   l->step[i].detail, l->step[i].found };
	pub->n_steps = pub->step ? l->n_steps : 0;
}

enum rbsp_status rbsp_inspect_process(int pid, struct rbsp_inspect **out, struct rbsp_err *err)
{
	struct inspection *in = calloc(1, sizeof(*in));
	struct rbsp_ruby_thread *threads = NULL;
	struct rbsp_err why = { 0 };
	enum rbsp_status st;

	if (!in)
		return rbsp_fail(err, RBSP_E_NOMEM, "no memory");
	in->pub.pid = pid;
	st = rbsp_live_open(pid, &in->target, err);
	if (st != RBSP_OK) {
		free(in);
		return st;
	}
	st = rbsp_locate(in->target, &in->loc, &why);
	publish(in);
	if (st == RBSP_OK) {
		rbsp_ruby_threads(in->target, in->loc.layout, in->loc.addrs.vm, &threads,
				  &in->pub.ruby_threads);
		free(threads);
	} else {
		snprintf(in->pub.failure, sizeof(in->pub.failure), "%s", why.text);
		if (err)
			*err = why;
	}
	*out = &in->pub;
	return st;
}

void rbsp_inspect_free(struct rbsp_inspect *i)
{
	struct inspection *in = (struct inspection *)i;

	if (!in)
		return;
	free(in->pub.step);
	rbsp_located_fini(&in->loc);
	rbsp_target_free(in->target);
	free(in);
}
