/* rbsample-replay TAPE: prints a tape's stacks as folded lines; scripts/tapes keeps them as what
 * the tests expect. */
#include <stdio.h>

#include "replay.h"

int main(int argc, char **argv)
{
	struct rbsp_err err = { 0 };

	if (argc != 2) {
		fprintf(stderr, "usage: rbsample-replay TAPE\n");
		return 64;
	}
	if (replay(argv[1], stdout, &err) != RBSP_OK) {
		fprintf(stderr, "rbsample-replay: %s\n", err.text);
		return 1;
	}
	return 0;
}
