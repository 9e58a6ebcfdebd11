/* argv -> command table -> exit code, nothing else. */
#include "base/base.h"

#include "cmd/cmd.h"

int main(int argc, char **argv)
{
	return cmd_main(argc, argv);
}
