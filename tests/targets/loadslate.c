/* build: gcc -O1 -g */
/* loadslate LIBRARY: loads it when "go" is there, then makes "loaded" and waits for "go" to go. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	while (access("go", F_OK))
		usleep(20000);
	if (argc < 2 || !dlopen(argv[1], RTLD_NOW)) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	close(open("loaded", O_CREAT | O_WRONLY, 0644));
	while (!access("go", F_OK))
		usleep(20000);
	return 0;
}
