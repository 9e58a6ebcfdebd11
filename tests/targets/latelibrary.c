/* build: gcc -O1 -g */
/*
 * latelibrary LIBRARY: waits for file "go", loads the library, creates file "loaded" and waits until
 * "go" is removed. Then fill_late allocates 5000 blocks of 100 bytes from the library and frees
 * 3000 of them. It creates file "made" and waits until that is removed.
 *
 * latelibrary LIBRARY again: then unloads the library, loads it again, and repeats this from "loaded"
 * on by fill_again.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NR_BLOCKS 5000
#define NR_FREED  3000

static void *(*late_malloc)(size_t n);
static void (*late_free)(void *p);
static void *blocks[NR_BLOCKS];

static void wait_for(const char *name, int is_there)
{
	while (!access(name, F_OK) != is_there)
		usleep(5000);
}

static void emit(const char *name)
{
	close(open(name, O_CREAT | O_WRONLY, 0644));
}

static void *find(void *library, const char *first, const char *second)
{
	void *p = dlsym(library, first);

	return p ? p : dlsym(library, second);
}

static void *load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	late_malloc = (void *(*)(size_t))find(library, "mi_malloc", "_rjem_malloc");
	late_free = (void (*)(void *))find(library, "mi_free", "_rjem_free");
	return library;
}

__attribute__((noinline)) static void *take(void)
{
	return memset(late_malloc(100), 1, 100);
}

__attribute__((noinline)) static void fill(void)
{
	for (int i = 0; i < NR_BLOCKS; i++)
		blocks[i] = take();
	for (int i = 0; i < NR_FREED; i++)
		late_free(blocks[i]);
}

__attribute__((noinline)) static void fill_late(void)
{
	fill();
	emit("made");
}

__attribute__((noinline)) static void fill_again(void)
{
	fill();
	emit("made");
}

int main(int argc, char **argv)
{
	wait_for("go", 1);
	void *library = load(argv[1]);
	emit("loaded");
	wait_for("go", 0);
	fill_late();
	wait_for("made", 0);
	if (argc > 2) {
		dlclose(library);
		load(argv[1]);
		emit("again");
		wait_for("again", 0);
		fill_again();
		wait_for("made", 0);
	}
	return 0;
}
