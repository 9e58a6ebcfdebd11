/* build: gcc -O1 -g */
/* execchain N CMD...: executes itself N times, then CMD. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	long n = argc > 2 ? strtol(argv[1], NULL, 10) : -1;
	if (n < 0)
		return 2;
	if (n > 0) {
		char text[32];
		(void)snprintf(text, sizeof(text), "%ld", n - 1);
		argv[1] = text;
		execv("/proc/self/exe", argv);
	} else {
		execvp(argv[2], argv + 2);
	}
	perror("execchain");
	return 1;
}
