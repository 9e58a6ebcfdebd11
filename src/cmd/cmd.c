/* The table of commands; see cmd.h. */
#include "base/base.h"
#include "cmd/cmd.h"

static const struct cmd cmds[] = {
        {"help", "show help for a command", cmd_help},
};

int cmd_help(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	for (size_t i = 0; i < ARRAY_LEN(cmds); i++)
		printf("  %-10s %s\n", cmds[i].name, cmds[i].summary);
	return EXIT_OK;
}

int cmd_main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < ARRAY_LEN(cmds); i++)
		if (!strcmp(argv[1], cmds[i].name))
			return cmds[i].run(argc - 1, argv + 1);
	return cmd_help(argc, argv);
}
