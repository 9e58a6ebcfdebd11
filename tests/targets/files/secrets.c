/* build: gcc -O1 -g -pthread */
/*
 * Waits for a file, and for a peer at a unix socket, in the folder $SECRETS_DIR; burns CPU time.
 * Arguments: how long, in ms; the others are ignored.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

static double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void *peer(void *listener)
{
	int fd = accept(*(int *)listener, NULL, NULL);
	while (write(fd, "x", 1) == 1)
		usleep(2000);
	return NULL;
}

__attribute__((noinline)) static void burn(void)
{
	for (unsigned long i = 0; i < 2000000; i++)
		sink += i * 7;
}

int main(int argc, char **argv)
{
	const char *dir = getenv("SECRETS_DIR");
	double end_ms = now_ms() + (argc > 1 ? atof(argv[1]) : 500);
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	char path[sizeof(name.sun_path)];
	pthread_t thread;
	char byte;
	snprintf(name.sun_path, sizeof(name.sun_path), "%.80s/s3cret.sock", dir ? dir : ".");
	snprintf(path, sizeof(path), "%.80s/s3cret.dat", dir ? dir : ".");
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);
	int s = socket(AF_UNIX, SOCK_STREAM, 0);
	int file = open(path, O_CREAT | O_RDWR, 0600);
	if (bind(listener, (struct sockaddr *)&name, sizeof(name)) || listen(listener, 1) ||
	    connect(s, (struct sockaddr *)&name, sizeof(name)) || file < 0)
		return 1;
	pthread_create(&thread, NULL, peer, &listener);
	while (now_ms() < end_ms) {
		burn();
		if (pwrite(file, "x", 1, 0) != 1 || fsync(file) || /* s3cret-in-source */
		    read(s, &byte, 1) != 1)
			return 1;
	}
	return 0;
}
