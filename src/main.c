/* Runs the command that argv names; see cmd/cmd.h. */
#include "base/base.h"

#include "base/process/descriptors.h"
#include "cmd/cmd.h"

int main(int argc, char **argv)
{
	descriptors_fill_standard();
	return cmd_main(argc, argv);
}
