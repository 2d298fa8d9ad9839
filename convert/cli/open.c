/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/cli/open.h"

#include "convert/output/output.h"
#include "convert/base/temporary.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	CLIENTS = 8, /* connections at a time */
	REQUEST_BYTES = 8192,
	TOKEN_BYTES = 16,
	CLIENT_SECONDS = 10, /* for a request; for each part of the answer */
	SECOND_NS = 1000000000,
};

#define VIEWER  "https://ui.perfetto.dev"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

const struct option open_rows[] = {
	{ "open", 0, OPTION_FLAG, NULL,
	  "with -t perfetto: show it in the browser; nothing is uploaded",
	  offsetof(struct open_options, open), NULL },
	{ "viewer", 0, OPTION_TEXT, "URL", "where Perfetto's page is, for --open",
	  offsetof(struct open_options, viewer), VIEWER },
	{ "open-timeout", 0, OPTION_TIME, "TIME", "how long --open waits for the browser",
	  offsetof(struct open_options, timeout_ns), "60s" },
	{ .name = NULL },
};

/* Shared by the threads of all connections; static, because one may outlive the wait for it. */
static struct server {
	const struct open_options *o;
	int file;
	off_t size;
	char path[300];             /* of the trace in the address: "/<token>/<name>" */
	_Atomic unsigned clients;   /* that are served now */
	_Atomic unsigned transfers; /* of these, those that are given the trace */
	_Atomic bool fetched;
} server;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* ---- one connection, on a thread of its own ---- */

/* A page whose own name was made to mean this machine asks for that name. */
static bool is_for_us(const char *request)
{
	for (const char *at = strstr(request, "\r\n"); at; at = strstr(at + 2, "\r\n")) {
		if (strncasecmp(at + 2, "Host:", 5) != 0)
			continue;
		at += 7 + strspn(at + 7, " \t");
		return begins(at, "127.0.0.1:9001\r\n") || begins(at, "localhost:9001\r\n");
	}
	return false;
}

struct answer {
	const char *status, *more; /* its first line; further lines */
	off_t length;
	bool sends_trace;
};

static struct answer find_answer(const char *request)
{
	static const char type[] = "Content-Type: application/octet-stream\r\n";
	const char *path = strchr(request, ' ');
	size_t len = strlen(server.path);

	if (!path)
		return (struct answer){ "400 Bad Request", "", 0, false };
	if (!is_for_us(request))
		return (struct answer){ "403 Forbidden", "", 0, false };
	if (strncmp(path + 1, server.path, len) != 0 || path[1 + len] != ' ')
		return (struct answer){ "404 Not Found", "", 0, false };
	if (begins(request, "OPTIONS "))
		return (struct answer){ "204 No Content",
					"Access-Control-Allow-Methods: GET, HEAD\r\n"
					"Access-Control-Allow-Private-Network: true\r\n",
					0, false };
	if (begins(request, "GET ") || begins(request, "HEAD "))
		return (struct answer){ "200 OK", type, server.size, request[0] == 'G' };
	return (struct answer){ "405 Method Not Allowed", "Allow: GET, HEAD, OPTIONS\r\n", 0,
				false };
}

/* Reads a request with its NUL; false: the client is gone or too slow. */
static bool read_request(int fd, char request[REQUEST_BYTES + 1], struct answer *answer)
{
	uint64_t end_ns = now_ns() + (uint64_t)CLIENT_SECONDS * SECOND_NS;
	size_t filled = 0;

	while (now_ns() < end_ns) {
		ssize_t n = recv(fd, request + filled, REQUEST_BYTES - filled, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		filled += (size_t)n;
		request[filled] = '\0';
		*answer = (struct answer){ "400 Bad Request", "", 0, false };
		if (memchr(request, '\0', filled))
			return true;
		if (strstr(request, "\r\n\r\n")) {
			*answer = find_answer(request);
			return true;
		}
		answer->status = "431 Request Header Fields Too Large";
		if (filled == REQUEST_BYTES)
			return true;
	}
	return false;
}

/* True once the client has the whole trace and has closed its side without an error, or keeps it
 * open: a client that goes away with a part of it unread resets the connection. */
static bool send_trace(int fd)
{
	char rest[256];
	off_t at = 0;
	ssize_t n;

	while (at < server.size) {
		n = sendfile(fd, server.file, &at, (size_t)(server.size - at));
		if (n == 0 || (n < 0 && errno != EINTR))
			return false;
	}
	shutdown(fd, SHUT_WR);
	while ((n = recv(fd, rest, sizeof(rest), 0)) > 0 || (n < 0 && errno == EINTR))
		;
	return n == 0 || errno == EAGAIN;
}

static void *serve(void *arg)
{
	char request[REQUEST_BYTES + 1], head[1024];
	int fd = (int)(intptr_t)arg;
	struct answer answer;
	sigset_t all;

	sigfillset(&all); /* SIGPIPE of a client that is gone, and what the main thread handles */
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	if (read_request(fd, request, &answer)) {
		int len = snprintf(head, sizeof(head),
				   "HTTP/1.1 %s\r\n"
				   "Access-Control-Allow-Origin: %s\r\n"
				   "Cross-Origin-Resource-Policy: cross-origin\r\n"
				   "Cache-Control: no-store\r\n"
				   "X-Content-Type-Options: nosniff\r\n"
				   "Connection: close\r\n"
				   "%sContent-Length: %lld\r\n\r\n",
				   answer.status, server.o->viewer, answer.more,
				   (long long)answer.length);
		bool was_sent = send(fd, head, (size_t)len, MSG_NOSIGNAL) == len;

		if (was_sent && answer.sends_trace) {
			server.transfers++;
			if (send_trace(fd))
				server.fetched = true;
			server.transfers--;
		} else {
			shutdown(fd, SHUT_WR);
		}
	}
	close(fd);
	server.clients--;
	return NULL;
}

/* ---- the server ---- */

static void take_client(int listener)
{
	const struct timeval patience = { .tv_sec = CLIENT_SECONDS };
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	pthread_t thread;

	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (server.clients < CLIENTS) {
		server.clients++;
		if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd) == 0) {
			pthread_detach(thread);
			return;
		}
		server.clients--;
	}
	close(fd);
}

/* Until the trace was fetched. */
static enum status run_server(int listener, struct error *err)
{
	uint64_t end_ns = now_ns() + server.o->timeout_ns;

	while (!server.fetched) {
		struct pollfd at = { .fd = listener, .events = POLLIN };

		if (poll(&at, 1, 50) < 0 && errno != EINTR)
			return fail(err, ST_IO, NOWHERE, "cannot wait for a browser: %s",
				    strerror(errno));
		if (at.revents)
			take_client(listener);
		if (!server.transfers && !server.fetched && now_ns() > end_ns)
			return fail(err, ST_IO, NOWHERE,
				    "no browser has fetched the trace in %llu s",
				    (unsigned long long)(server.o->timeout_ns / SECOND_NS));
	}
	return ST_OK;
}

/* ---- the address ---- */

enum status open_check(const struct open_options *o, const char *type, const char *output,
		       struct error *err)
{
	const char *v = o->viewer, *host = strstr(v, "//");
	size_t len = strlen(v);

	if (!o->open)
		return ST_OK;
	if (strcmp(type, "perfetto") != 0)
		return fail(err, ST_USAGE, NOWHERE, "--open needs -t perfetto");
	if (output && (strcmp(output, "-") == 0 || out_names_folder(output)))
		return fail(err, ST_USAGE, NOWHERE, "--open shows one file: -o FILE, or no -o");
	if ((begins(v, "https://") || begins(v, "http://")) && len < 200 &&
	    !strchr(host + 2, '/') && strspn(v, LETTERS ":/.-[]") == len)
		return ST_OK;
	return fail(err, ST_USAGE, NOWHERE, "--viewer %.60s: need an address as " VIEWER, v);
}

/* A random part, and what of the file's name can stand in an address as it is. */
static enum status make_path(const char *file, struct error *err)
{
	const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
	uint8_t token[TOKEN_BYTES];
	char *out = server.path;

	if (getrandom(token, sizeof(token), 0) != (ssize_t)sizeof(token))
		return fail(err, ST_IO, NOWHERE, "cannot make a random number: %s",
			    strerror(errno));
	*out++ = '/';
	for (size_t i = 0; i < TOKEN_BYTES; i++)
		out += sprintf(out, "%02x", token[i]);
	*out++ = '/';
	for (size_t n = 0; *name && n < 100; name++)
		if (strchr(LETTERS ".-_", *name))
			out[n++] = *name;
	if (!*out)
		memcpy(out, "trace", sizeof("trace"));
	return ST_OK;
}

static enum status start_listening(int *listener, struct error *err)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(OPEN_PORT),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int one = 1;

	*listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (*listener < 0)
		return fail(err, ST_IO, NOWHERE, "cannot open a port: %s", strerror(errno));
	setsockopt(*listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(*listener, (struct sockaddr *)&at, sizeof(at)) == 0 &&
	    listen(*listener, CLIENTS) == 0)
		return ST_OK;
	fail(err, ST_IO, NOWHERE, "cannot open port %d, the one that Perfetto's page may ask: %s",
	     OPEN_PORT, strerror(errno));
	close(*listener);
	return ST_IO;
}

/* The browser is not waited for; it may outlive us. */
static void start_browser(const char *address)
{
	pid_t pid = fork();
	int null;

	if (pid != 0) {
		if (pid > 0)
			waitpid(pid, NULL, 0);
		return;
	}
	if (fork() != 0)
		_exit(0);
	null = open("/dev/null", O_RDWR);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	execlp("xdg-open", "xdg-open", address, (char *)NULL);
	_exit(127); /* the address was printed, and can be opened by hand */
}

static enum status show(const struct open_options *o, const char *path, bool quiet,
			struct error *err)
{
	enum status status;
	char address[1024];
	struct stat st;
	int listener;

	server.o = o;
	server.file = open(path, O_RDONLY | O_CLOEXEC); /* the process closes it */
	if (server.file < 0 || fstat(server.file, &st) != 0 || !S_ISREG(st.st_mode))
		return fail(err, ST_IO, NOWHERE, "%s: cannot be read again for --open", path);
	server.size = st.st_size;
	TRY(make_path(path, err));
	TRY(start_listening(&listener, err));
	snprintf(address, sizeof(address),
		 "%s/#!/?url=http://127.0.0.1:%d%s&referrer=open_trace_in_ui", o->viewer, OPEN_PORT,
		 server.path);
	if (!quiet)
		fprintf(stderr,
			"tacho-convert: a browser can fetch the trace once, for %llu s, by\n%s\n",
			(unsigned long long)(o->timeout_ns / SECOND_NS), address);
	start_browser(address);
	status = run_server(listener, err);
	close(listener);
	return status;
}

/* ---- a trace that is not to be kept ---- */

enum status open_begin(struct open_options *o, const char **output, const char *scratch,
		       struct error *err)
{
	char *folder;

	if (!o->open || *output)
		return ST_OK;
	if (asprintf(&folder, "%s/tacho-XXXXXX", scratch) < 0)
		return fail_memory(err);
	if (!mkdtemp(folder)) {
		fail(err, ST_IO, NOWHERE, "cannot make a folder in %s: %s", scratch,
		     strerror(errno));
		free(folder);
		return ST_IO;
	}
	temporary_note(folder);
	if (asprintf(&o->temporary, "%s/trace.pftrace", folder) < 0) {
		o->temporary = NULL;
		rmdir(folder);
		free(folder);
		return fail_memory(err);
	}
	temporary_note(o->temporary);
	free(folder);
	*output = o->temporary;
	return ST_OK;
}

enum status open_end(struct open_options *o, const char *output, bool was_written, bool quiet,
		     struct error *err)
{
	enum status status = ST_OK;

	if (o->open && was_written && access(output, R_OK) == 0)
		status = show(o, output, quiet, err);
	if (o->temporary) {
		unlink(o->temporary);
		temporary_forget(o->temporary);
		*strrchr(o->temporary, '/') = '\0';
		rmdir(o->temporary);
		temporary_forget(o->temporary);
		free(o->temporary);
		o->temporary = NULL;
	}
	return status;
}
