/*
 * host/container: containers found by made cgroup trees and named by made state files of each engine,
 * and by an engine's socket.
 */
#include "base/base.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/mem.h"
#include "host/container/container.h"
#include "host/container/containerstate.h"
#include "host/container/enginesocket.h"
#include "host/container/members.h"

#define ID_A "aaaaaaaaaaaa1111111111111111111111111111111111111111111111111111"
#define ID_B "bbbbbbbbbbbb2222222222222222222222222222222222222222222222222222"
#define ID_C "cccccccccccc3333333333333333333333333333333333333333333333333333"

static char root[64]; /* ends with a slash */

static void put_bytes(const char *path, const char *text, size_t n)
{
	CLEANUP(free_p) char *full = xasprintf("%s%s", root, path);
	CLEANUP(free_p) char *dir = xstrdup(full);
	*strrchr(dir, '/') = '\0';
	CHECK(!dir_make(dir, 0755, NULL));
	int fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	CHECK(fd >= 0 && !file_write_all(fd, text, n, NULL));
	close_p(&fd);
}

static void put(const char *path, const char *text)
{
	put_bytes(path, text, strlen(text));
}

static void make_root(void)
{
	memset(root, 0, sizeof(root));
	(void)snprintf(root, sizeof(root), "/tmp/containers-XXXXXX");
	CHECK(mkdtemp(root) != NULL && !chmod(root, 0755));
	root[strlen(root)] = '/'; /* the array is longer, and zero behind */
}

static void drop_tree(void)
{
	pid_t pid = fork();
	if (!pid) {
		execl("/bin/rm", "rm", "-rf", root, (char *)NULL);
		_exit(127);
	}
	(void)waitpid(pid, NULL, 0);
}

static void put_process(int32_t pid, const char *cgroup)
{
	CLEANUP(free_p) char *path = xasprintf("proc/%d/cgroup", pid);
	put(path, cgroup);
}

static struct containers found(void)
{
	struct containers l = {0};
	CHECK(!containers_find(&l, root, NULL));
	return l;
}

static const struct container *by_id(const struct containers *l, const char *id)
{
	vec_foreach(c, &l->list)
		if (!strcmp(c->id, id))
			return c;
	return NULL;
}

static size_t nr_meant(const struct containers *l, const char *word, unsigned flags)
{
	struct container_matches m = containers_match(l, word, flags);
	size_t n = m.idx.n;
	vec_release(&m.idx);
	return n;
}

/* ---- cgroup paths ------------------------------------------------------------------------- */

static void check_path(const char *path, const char *id, const char *engine, size_t end)
{
	struct sv found_id = {0};
	const char *found_engine = "none";
	size_t found_end = 0;
	bool is_found = container_id_in(sv_from_str(path), 0, &found_id, &found_end, &found_engine);
	CHECK_U64(is_found, id != NULL);
	if (!id || !is_found)
		return;
	CHECK(sv_eq_str(found_id, id));
	CHECK_STR(found_engine, engine);
	CHECK_U64(found_end, end ? end : strlen(path));
}

TEST(container_ids_in_the_cgroup_paths_of_all_engines)
{
	check_path("/system.slice/docker-" ID_A ".scope", ID_A, "docker", 0);
	check_path("/docker/" ID_A, ID_A, "docker", 0);
	check_path("/docker/" ID_A "/init.scope", ID_A, "docker", 8 + 64);
	check_path("/machine.slice/libpod-" ID_A ".scope/container", ID_A, "podman",
		   strlen("/machine.slice/libpod-.scope") + 64);
	check_path("/libpod_parent/libpod-" ID_A, ID_A, "podman", 0);
	check_path("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice/"
		   "cri-containerd-" ID_A ".scope",
		   ID_A, "containerd", 0);
	check_path("/kubepods/besteffort/pod1-2/" ID_A, ID_A, "", 0);
	check_path("/kubelet/kubepods/pod1-2/crio-" ID_A, ID_A, "cri-o", 0);
	check_path("/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:" ID_A,
		   ID_A, "containerd", 0);
	check_path("/../" ID_A, ID_A, "", 0); /* of a sibling, in a cgroup namespace */
	check_path("/machine.slice/libpod-conmon-" ID_A ".scope", NULL, "", 0);
	check_path("/system.slice/crio-conmon-" ID_A ".scope", NULL, "", 0);
	check_path("/system.slice/" ID_A "0", NULL, "", 0);
	check_path("/x" ID_A, NULL, "", 0);
	check_path("/user.slice/user-0.slice", NULL, "", 0);
	check_path("/", NULL, "", 0);
	check_path("", NULL, "", 0);
}

TEST(container_processes_of_nested_cgroups_belong_to_both)
{
	make_root();
	put_process(10, "1:cpu:/\n0::/docker/" ID_A "\n");
	put_process(11, "0::/docker/" ID_A "/system.slice/docker-" ID_B ".scope\n");
	put_process(12, "4:memory:/docker/" ID_C "\n1:name=systemd:/docker/" ID_C "\n0::/\n");
	put_process(13, "0::/user.slice\n");
	CLEANUP(containers_release) struct containers l = found();
	CHECK_U64(l.list.n, 3);
	CHECK_U64(by_id(&l, ID_A)->pids.pids.n, 2);
	CHECK_U64(by_id(&l, ID_B)->pids.pids.n, 1);
	CHECK_STR(containers_of(&l, 11)->id, ID_B);
	CHECK_STR(containers_of(&l, 10)->id, ID_A);
	CHECK(!containers_of(&l, 13));
	CHECK_STR(by_id(&l, ID_C)->controllers, "memory");
	drop_tree();
}

/* ---- state files -------------------------------------------------------------------------- */

TEST(container_names_of_docker_and_compose)
{
	make_root();
	put_process(10, "0::/system.slice/docker-" ID_A ".scope\n");
	put_process(11, "0::/system.slice/docker-" ID_B ".scope\n");
	put_process(12, "0::/system.slice/docker-" ID_C ".scope\n");
	put("var/lib/docker/containers/" ID_A "/config.v2.json",
	    "{\"State\":{\"Name\":\"no\",\"Pid\":7},\"Config\":{\"Image\":\"redis:7\",\"Env\":[\"A={\"],"
	    "\"Labels\":{\"com.docker.compose.service\":\"cache\","
	    "\"com.docker.compose.project\":\"shop\"}},\"Name\":\"/shop-cache-1\"}");
	put("var/lib/docker/containers/" ID_B "/config.v2.json",
	    "{\"Name\":\"/shop-cache-2\",\"Config\":{\"Labels\":{\"com.docker.compose.service\":"
	    "\"cache\"},\"Image\":\"redis:7\"}}");
	CLEANUP(containers_release) struct containers l = found();
	const struct container *a = by_id(&l, ID_A);
	CHECK_STR(a->name, "shop-cache-1");
	CHECK_STR(a->image, "redis:7");
	CHECK_STR(a->project, "shop");
	CHECK_U64(nr_meant(&l, "shop-cache-2", 0), 1);
	CHECK_U64(nr_meant(&l, "cache", 0), 2);
	CHECK_U64(nr_meant(&l, "shop-cache", 0), 0);
	CHECK_U64(nr_meant(&l, "cccccccccccc", 0), 1); /* no state file: by its id */
	CHECK_U64(nr_meant(&l, "cccc", 0), 0);
	CHECK_U64(nr_meant(&l, "cccc", CONTAINER_SHORT_ID), 1);
	CLEANUP(buf_release) struct buf text = {0};
	container_describe(&text, a);
	CHECK_STR(buf_str(&text),
		  "docker, image redis:7, service shop/cache, 1 process, id aaaaaaaaaaaa");
	drop_tree();
}

TEST(container_names_of_podman_by_conmon)
{
	static const char command[] = "/usr/bin/conmon\0-c\0" ID_A "\0-b\0"
				      "/graph/vfs-containers/" ID_A "/userdata\0-n\0web\0"
				      "--exit-command-arg\0-n\0--exit-command-arg\0other";
	make_root();
	put_process(10, "0::/machine.slice/libpod-" ID_A ".scope/container\n");
	put_process(11, "0::/machine.slice/libpod-" ID_B ".scope/container\n");
	put_process(20, "0::/machine.slice/libpod-conmon-" ID_A ".scope\n");
	put_bytes("proc/20/cmdline", command, sizeof(command));
	put("proc/20/comm", "conmon\n");
	put("proc/20/status", "Name:\tconmon\nUid:\t0\t0\t0\t0\n");
	put("graph/vfs-containers/containers.json",
	    "[{\"id\":\"" ID_A "\",\"names\":[\"web\"],\"image\":\"0123\",\"metadata\":"
	    "\"{\\\"image-name\\\":\\\"docker.io/library/nginx:1\\\",\\\"name\\\":\\\"web\\\"}\"},"
	    "{\"id\":\"" ID_B "\",\"names\":[\"db\",\"other\"],\"image\":\"4567\"}]");
	CLEANUP(containers_release) struct containers l = found();
	CHECK_STR(by_id(&l, ID_A)->name, "web");
	CHECK_STR(by_id(&l, ID_A)->image, "docker.io/library/nginx:1");
	CHECK_STR(by_id(&l, ID_A)->engine, "podman");
	CHECK_STR(by_id(&l, ID_B)->name, "db");
	drop_tree();
}

TEST(container_names_are_not_taken_from_a_conmon_of_another_user)
{
	static const char command[] = "conmon\0--cid\0" ID_A "\0--name\0redis";
	make_root();
	put_process(10, "0::/machine.slice/libpod-" ID_A ".scope/container\n");
	put_process(20, "0::/user.slice/user-1000.slice/session-1.scope\n");
	put_bytes("proc/20/cmdline", command, sizeof(command));
	put("proc/20/comm", "conmon\n");
	put("proc/20/status", "Uid:\t1000\t1000\t1000\t1000\n");
	CLEANUP(containers_release) struct containers l = found();
	CHECK(!by_id(&l, ID_A)->name);
	put_process(10, "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID_A
			".scope/container\n");
	CLEANUP(containers_release) struct containers own = found();
	CHECK_STR(by_id(&own, ID_A)->name, "redis");
	drop_tree();
}

TEST(container_names_of_kubernetes_by_containerd)
{
	make_root();
	put_process(10, "0::/kubepods.slice/kubepods-pod1_2.slice/cri-containerd-" ID_A ".scope\n");
	put_process(11, "0::/kubepods.slice/kubepods-pod1_2.slice/cri-containerd-" ID_B ".scope\n");
	put_process(12, "0::/system.slice/docker-" ID_C ".scope\n");
#define TASKS "run/containerd/io.containerd.runtime.v2.task/"
	put(TASKS "k8s.io/" ID_A "/config.json",
	    "{\"ociVersion\":\"1.1\",\"process\":{\"args\":[\"x\"]},\"annotations\":{"
	    "\"io.kubernetes.cri.container-name\":\"app\",\"io.kubernetes.cri.container-type\":"
	    "\"container\",\"io.kubernetes.cri.sandbox-name\":\"web-1\","
	    "\"io.kubernetes.cri.sandbox-namespace\":\"prod\","
	    "\"io.kubernetes.cri.image-name\":\"registry/app:3\"}}");
	put(TASKS "k8s.io/" ID_B "/config.json",
	    "{\"annotations\":{\"io.kubernetes.cri.container-type\":\"sandbox\","
	    "\"io.kubernetes.cri.sandbox-name\":\"web-1\"}}");
	put(TASKS "moby/" ID_C "/config.json", "{\"annotations\":{}}");
	CLEANUP(containers_release) struct containers l = found();
	CHECK_STR(by_id(&l, ID_A)->name, "app");
	CHECK_STR(by_id(&l, ID_A)->image, "registry/app:3");
	CHECK(by_id(&l, ID_B)->is_pause);
	CHECK_STR(by_id(&l, ID_C)->engine, "docker");
	CHECK_U64(nr_meant(&l, "app", 0), 1);
	CHECK_U64(nr_meant(&l, "web-1", 0), 1); /* the pod, without its pause container */
	CHECK_U64(nr_meant(&l, "web-1/app", 0), 1);
	CHECK_U64(nr_meant(&l, "prod/web-1/app", 0), 1);
	CHECK_U64(nr_meant(&l, "test/web-1/app", 0), 0);
	drop_tree();
}

TEST(container_names_of_crio_and_of_log_files)
{
	make_root();
	put_process(10, "0::/kubepods.slice/kubepods-pod1.slice/crio-" ID_A ".scope\n");
	put_process(11, "0::/kubepods/besteffort/pod2/" ID_B "\n");
	put_process(12, "0::/kubepods.slice/kubepods-pod1.slice/crio-" ID_C ".scope\n");
#define CRIO "run/containers/storage/overlay-containers/"
	put(CRIO ID_A "/userdata/config.json",
	    "{\"annotations\":{\"io.kubernetes.container.name\":\"db\","
	    "\"io.kubernetes.pod.name\":\"pg-0\",\"io.kubernetes.pod.namespace\":\"data\","
	    "\"io.kubernetes.cri-o.ContainerType\":\"container\","
	    "\"io.kubernetes.cri-o.ImageName\":\"quay.io/pg:16\"}}");
	put(CRIO ID_C "/userdata/config.json",
	    "{\"annotations\":{\"io.kubernetes.cri-o.ContainerType\":\"sandbox\","
	    "\"io.kubernetes.pod.name\":\"pg-0\"}}");
	put("var/log/containers/front-7_default_nginx-" ID_B ".log", "");
	put("var/log/containers/front-7_default_" ID_B ".log", "");
	CLEANUP(containers_release) struct containers l = found();
	CHECK_STR(by_id(&l, ID_A)->name, "db");
	CHECK_STR(by_id(&l, ID_A)->pod, "pg-0");
	CHECK_STR(by_id(&l, ID_A)->image, "quay.io/pg:16");
	CHECK(by_id(&l, ID_C)->is_pause);
	CHECK_STR(by_id(&l, ID_B)->name, "nginx");
	CHECK_STR(by_id(&l, ID_B)->pod_namespace, "default");
	CHECK_U64(nr_meant(&l, "pg-0", 0), 1);
	drop_tree();
}

TEST(container_kubernetes_names_of_docker)
{
	struct containers l = {0};
	struct container *c = vec_add(&l.list);
	c->engine = "";
	CHECK(containerstate_kubernetes_name(c, SV("k8s_POD_web-1_default_12-34_0")));
	CHECK(c->is_pause);
	CHECK_STR(c->pod, "web-1");
	c = vec_add(&l.list);
	c->engine = "";
	CHECK(!containerstate_kubernetes_name(c, SV("k8s_app")));
	CHECK(!containerstate_kubernetes_name(c, SV("redis")) && !c->name);
	containers_release(&l);
}

TEST(container_state_that_is_damaged_or_hostile_names_nothing_false)
{
	static const char whole[] = "{\"Name\":\"/a\\u0000\\ud83d\\ude00\",\"Config\":{\"Image\":"
				    "\"i\",\"Labels\":{\"com.docker.compose.service\":\"s\"}}}";
	for (size_t n = 0; n < sizeof(whole); n++) {
		struct containers l = {0};
		struct container *c = vec_add(&l.list);
		c->engine = "";
		containerstate_docker(c, sv_from(whole, n));
		CHECK(!c->name || !strcmp(c->name, "a\xef\xbf\xbd\xf0\x9f\x98\x80"));
		CHECK(!c->service || !strcmp(c->service, "s"));
		containers_release(&l);
	}
	CLEANUP(buf_release) struct buf deep = {0};
	buf_add_repeat(&deep, '[', 1 << 20);
	struct containers l = {0};
	containerstate_list(&l, buf_sv(&deep), "docker");
	struct container *c = vec_add(&l.list);
	c->engine = "";
	buf_clear(&deep);
	buf_add_str(&deep, "{\"Name\":\"");
	buf_add_repeat(&deep, 'x', 100000);
	buf_add_str(&deep, "\"}");
	containerstate_docker(c, buf_sv(&deep));
	CHECK_U64(strlen(c->name), 256);
	containers_release(&l);
}

/* ---- members ------------------------------------------------------------------------------ */

TEST(members_of_a_cgroup_with_those_below_it)
{
	make_root();
	put("sys/fs/cgroup/system.slice/x.service/cgroup.procs", "10\n11\n0\nbad\n");
	put("sys/fs/cgroup/system.slice/x.service/sub/deeper/cgroup.procs", "12\n");
	put("sys/fs/cgroup/system.slice/cgroup.procs", "99\n");
	CLEANUP(members_release) struct members m = MEMBERS_INIT;
	CLEANUP(pid_list_release) struct pid_list l = {0};
	CHECK(!members_of_cgroup(&m, root, "/system.slice/x.service/", NULL));
	members_list(&l, &m, root);
	pid_list_sort(&l);
	CHECK(l.pids.n == 3 && l.pids.p[0] == 10 && l.pids.p[2] == 12);
	put("sys/fs/cgroup/system.slice/x.service/sub/cgroup.procs", "13\n");
	m.next_ns = 0;
	members_list(&l, &m, root);
	CHECK(l.pids.n == 4 && l.pids.p[3] == 13);
	struct members none = MEMBERS_INIT;
	CHECK(members_of_cgroup(&none, root, "/system.slice/y", NULL) == -ENOENT);
	drop_tree();
}

TEST(members_of_a_container_without_its_folder)
{
	make_root();
	put_process(10, "0::/../" ID_A "\n");
	put_process(11, "0::/../" ID_A "/sub\n");
	put_process(12, "0::/../" ID_B "\n");
	CLEANUP(containers_release) struct containers l = found();
	CLEANUP(members_release) struct members m = MEMBERS_INIT;
	CLEANUP(pid_list_release) struct pid_list pids = {0};
	members_of_container(&m, root, by_id(&l, ID_A));
	CHECK(m.fd < 0);
	members_list(&pids, &m, root);
	CHECK(pids.pids.n == 2 && pids.pids.p[0] == 10 && pids.pids.p[1] == 11);
	drop_tree();
}

TEST(members_of_a_user_are_its_processes)
{
	CLEANUP(free_p) char *uid = xasprintf("%u", getuid());
	CLEANUP(members_release) struct members m = MEMBERS_INIT;
	CLEANUP(pid_list_release) struct pid_list l = {0};
	CHECK(!members_of_user(&m, uid, NULL));
	members_list(&l, &m, "/");
	CHECK(pid_list_has(&l, getppid()) && !pid_list_has(&l, getpid()));
	struct members none = MEMBERS_INIT;
	CHECK(members_of_user(&none, "no-such-user-here", NULL) == -ENOENT);
}

/* ---- sockets ------------------------------------------------------------------------------ */

static int parse(const char *text, struct buf *body)
{
	struct http_reply r;
	int rc = http_parse(&r, sv_from_str(text), NULL);
	if (!rc)
		*body = r.body;
	return rc;
}

TEST(http_replies_have_bodies_in_chunks_or_of_a_length)
{
	CLEANUP(buf_release) struct buf a = {0};
	CLEANUP(buf_release) struct buf b = {0};
	CLEANUP(buf_release) struct buf c = {0};
	CHECK(!parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		     "3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n",
		     &a));
	CHECK_STR(buf_str(&a), "abc0123456789");
	CHECK(!parse("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nabc", &b));
	CHECK_STR(buf_str(&b), "ab");
	CHECK(!parse("HTTP/1.0 404 no\n\nto the end", &c));
	CHECK_STR(buf_str(&c), "to the end");
	CHECK(parse("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", &c) == -EPROTO);
	CHECK(parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\nabc", &c) ==
	      -EPROTO);
	CHECK(parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		    "ffffffffffffffff\r\nabc",
		    &c) == -EPROTO);
	CHECK(parse("SSH-2.0-x\r\n", &c) == -EPROTO);
	CHECK(parse("", &c) == -EPROTO);
}

static void serve(int fd, const char *const *replies)
{
	char request[4096];
	for (; *replies; replies++) {
		int client = accept(fd, NULL, NULL);
		if (client < 0 || read(client, request, sizeof(request)) <= 0)
			_exit(1);
		(void)!write(client, *replies, strlen(*replies));
		close(client);
	}
	for (;;) /* then it never answers */
		pause();
}

static pid_t start_engine(const char *path, const char *const *replies)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	memcpy(address.sun_path, path, strlen(path));
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(!bind(fd, (struct sockaddr *)&address, sizeof(address)) && !listen(fd, 8));
	pid_t pid = fork();
	if (!pid) {
		alarm(30);
		serve(fd, replies);
	}
	close(fd);
	return pid;
}

TEST(engine_socket_names_containers_and_does_not_keep_us_waiting)
{
	static const char *const replies[] = {
		"HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nContent-Length: 2\r\n\r\nOK",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		"5\r\n[{\"Id\r\n"
		"6c\r\n\":\"" ID_A "\",\"Names\":[\"/a\",\"/b\"],\"Labels\":{\"x\":1},\"I\r\n"
		"d\r\nmage\":\"i:1\"}]\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nApi-Version: ../x\r\n\r\n", NULL};
	make_root();
	CLEANUP(free_p) char *path = xasprintf("%ssock", root);
	CLEANUP(err_release) struct err err = {0};
	struct containers l = {0};
	struct container *c = vec_add(&l.list);
	memcpy(c->id, ID_A, 64);
	c->engine = "";
	pid_t engine = start_engine(path, replies);
	int rc = enginesocket_ask(&l, path, "docker", &err);
	CHECK(!err.code);
	CHECK(!rc && c->name && c->image);
	if (c->name && c->image) {
		CHECK_STR(c->name, "a");
		CHECK_STR(c->image, "i:1");
	}
	CHECK(enginesocket_ask(&l, path, "docker", NULL) == -EPROTO);
	CHECK(enginesocket_ask(&l, path, "docker", NULL) == -ETIMEDOUT);
	kill(engine, SIGKILL);
	(void)waitpid(engine, NULL, 0);
	containers_release(&l);
	drop_tree();
}
