/* Runs the unit tests: all suites, or those named on the command line. */
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUITE(name) Suite *suite_##name(void);
#include "suites.inc"
#undef SUITE

static const struct {
	const char *name;
	Suite *(*make)(void);
} suites[] = {
#define SUITE(name) { #name, suite_##name },
#include "suites.inc"
#undef SUITE
};

#define N_SUITES (sizeof(suites) / sizeof(suites[0]))

static bool add(SRunner *runner, const char *name)
{
	for (size_t i = 0; i < N_SUITES; i++) {
		if (strcmp(suites[i].name, name) == 0) {
			srunner_add_suite(runner, suites[i].make());
			return true;
		}
	}
	fprintf(stderr, "rbsample-unit: no suite %s (--list shows them)\n", name);
	return false;
}

int main(int argc, char **argv)
{
	int failed;
	bool known = true;

	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		for (size_t i = 0; i < N_SUITES; i++)
			puts(suites[i].name);
		return EXIT_SUCCESS;
	}

	SRunner *runner = srunner_create(NULL);

	for (size_t i = 0; argc == 1 && i < N_SUITES; i++)
		srunner_add_suite(runner, suites[i].make());
	for (int i = 1; i < argc; i++)
		known = add(runner, argv[i]) && known;
	if (known)
		srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	/* A suite that runs nothing proves nothing. */
	if (known && srunner_ntests_run(runner) == 0) {
		fprintf(stderr, "rbsample-unit: no test ran\n");
		failed = 1;
	}
	srunner_free(runner);
	if (!known)
		return 64;
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
