/* The last line of a run. */
#ifndef RBSAMPLE_SUMMARY_H
#define RBSAMPLE_SUMMARY_H

#include <rbsample/sampler.h>

/** Print what a run counted. */
void summary_print(const struct rbsp_sampler_stats *s);
/** Print the counters of the sampler itself, for -v. */
void summary_print_more(const struct rbsp_sampler_stats *s);

#endif
