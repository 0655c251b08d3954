/* Labels: one text on all versions, or what that Ruby's own caller_locations says. */
#include "ruby/internal.h"

/* The name of a C function whose ID could not be looked up. */
#define UNKNOWN_CFUNC "<unknown cfunc>"

void rbsp_label_levels(struct rbsp_buf *out, unsigned levels)
{
	if (levels == 1)
		rbsp_buf_str(out, "block in ");
	else if (levels)
		rbsp_buf_printf(out, "block (%u levels) in ", levels);
}

static void add_qualified(struct rbsp_buf *out, const struct rbsp_owner *o, const char *name)
{
	if (o && o->path)
		rbsp_buf_printf(out, "%s%c", o->path, o->separator);
	rbsp_buf_str(out, name);
}

/* Blocks between an iseq and the body of its define_method, which is @p hops environments out. */
static unsigned levels_within(struct rbsp_ruby *r, const struct rbsp_iseq *q, unsigned hops)
{
	struct rbsp_iseq_head h = { q->body, q->type, q->parent, q->local };
	unsigned levels = 0;

	for (unsigned i = 0; i < hops; i++) {
		levels += h.type == RBSP_ISEQ_BLOCK;
		if (!h.parent || rbsp_iseq_head(r, h.parent, &h) != RBSP_OK)
			break;
	}
	return levels;
}

static void default_label(struct rbsp_ruby *r, const struct rbsp_iseq *q, const struct rbsp_ment *m,
			  unsigned hops, struct rbsp_buf *out)
{
	if (m && m->def_type == RBSP_METHOD_BMETHOD && m->name) {
		rbsp_label_levels(out, levels_within(r, q, hops));
		add_qualified(out, &m->owner, m->name);
		return;
	}
	rbsp_label_levels(out, q->levels);
	add_qualified(out, m && q->local_type == RBSP_ISEQ_METHOD ? &m->owner : NULL,
		      q->local_label);
}

/* 3.4+ vm_backtrace.c, calculate_iseq_label and rb_gen_method_name; before, the stored label is
 * printed as it is. */
static void ruby_label(struct rbsp_ruby *r, const struct rbsp_iseq *q, const struct rbsp_ment *m,
		       struct rbsp_buf *out)
{
	if (!r->l->labels.qualified) {
		rbsp_buf_str(out, q->label);
		return;
	}
	rbsp_label_levels(out, q->levels);
	add_qualified(out,
		      m && m->owner.qualifies && q->local_type == RBSP_ISEQ_METHOD ? &m->owner
										   : NULL,
		      q->local_label);
}

void rbsp_label(struct rbsp_ruby *r, const struct rbsp_iseq *q, const struct rbsp_ment *m,
		unsigned hops, struct rbsp_buf *out)
{
	bool ruby = r->opt.labels == RBSP_LABELS_RUBY;

	if (q && ruby) {
		ruby_label(r, q, m, out);
	} else if (q) {
		default_label(r, q, m, hops, out);
	} else {
		bool qualified = !ruby || (r->l->labels.qualified && m->owner.qualifies);

		add_qualified(out, qualified ? &m->owner : NULL, m->name ? m->name : UNKNOWN_CFUNC);
	}
}
