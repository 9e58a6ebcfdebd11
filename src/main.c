/* Runs the command that argv names; see cmd/cmd.h. */
#include "base/base.h"

#include "cmd/cmd.h"

int main(int argc, char **argv)
{
	return cmd_main(argc, argv);
}
