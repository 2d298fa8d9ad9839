/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/cli/internal.h"

#include "convert/base/temporary.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	CLIENTS = 8, /* connections at a time */
	REQUEST_BYTES = 8192,
	TOKEN_BYTES = 16,
	CLIENT_SECONDS = 10, /* limit for a request, and for each part of the answer */
	WAIT_MS = 50,
};
#define SECOND_NS UINT64_C(1000000000)

#define VIEWER  "https://ui.perfetto.dev"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

const struct option open_rows[] = {
	{ "open", 0, OPTION_FLAG, NULL,
	  "with -t perfetto: open it in the browser; nothing is uploaded",
	  offsetof(struct open_options, open), NULL },
	{ "viewer", 0, OPTION_TEXT, "URL", "address of Perfetto's page, for --open",
	  offsetof(struct open_options, viewer), VIEWER },
	{ "open-timeout", 0, OPTION_TIME, "TIME", "how long --open waits for the browser",
	  offsetof(struct open_options, timeout_ns), "60s" },
	{ .name = NULL },
};

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* ---- one connection, in a process of its own ---- */

/* The file that is served, at a path with a random part: "/<token>/<name>". */
struct served {
	const char *viewer;
	int file;
	off_t size;
	char path[300];
};

/* Returns the first line of an answer, followed by its specific lines.  `request` is complete. */
static const char *find_answer(const struct served *s, const char *request)
{
	const char *path = strchr(request, ' '), *host;
	size_t len = strlen(s->path);

	if (!path)
		return "400 Bad Request\r\n";
	/* Against DNS rebinding: a page whose name resolves to this machine sends that name. */
	host = strcasestr(request, "\r\nHost:");
	host = host ? host + 7 + strspn(host + 7, " \t") : "";
	if (!begins(host, "127.0.0.1:9001\r\n") && !begins(host, "localhost:9001\r\n"))
		return "403 Forbidden\r\n";
	if (strncmp(path + 1, s->path, len) != 0 || path[1 + len] != ' ')
		return "404 Not Found\r\n";
	if (begins(request, "OPTIONS "))
		return "204 No Content\r\nAccess-Control-Allow-Methods: GET, HEAD\r\n"
		       "Access-Control-Allow-Private-Network: true\r\n";
	if (begins(request, "GET ") || begins(request, "HEAD "))
		return "200 OK\r\nContent-Type: application/octet-stream\r\n";
	return "405 Method Not Allowed\r\nAllow: GET, HEAD, OPTIONS\r\n";
}

/* Reads a request and returns the answer; NULL: the client closed the connection. */
static const char *read_request(const struct served *s, int fd, char request[REQUEST_BYTES + 1])
{
	for (size_t filled = 0; filled < REQUEST_BYTES;) {
		ssize_t n = recv(fd, request + filled, REQUEST_BYTES - filled, 0);

		if (n <= 0)
			return NULL;
		filled += (size_t)n;
		request[filled] = '\0';
		if (memchr(request, '\0', filled))
			return "400 Bad Request\r\n";
		if (strstr(request, "\r\n\r\n"))
			return find_answer(s, request);
	}
	return "431 Request Header Fields Too Large\r\n";
}

/* Serves one request.  Returns true if the client received the whole trace and closed its side
 * without an error, or keeps it open.  A client that leaves with unread bytes resets the
 * connection. */
static bool serve(const struct served *s, int fd)
{
	const struct timeval patience = { .tv_sec = CLIENT_SECONDS };
	char request[REQUEST_BYTES + 1], head[1024];
	const char *answer, *more;
	sigset_t all;
	off_t at = 0;
	ssize_t n;
	int len;
	bool is_good, has_body;

	/* The parent handles signals, and this process dies with it.  Only the alarm ends a slow
	 * client. */
	sigfillset(&all);
	sigdelset(&all, SIGALRM);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	alarm(CLIENT_SECONDS);
	answer = read_request(s, fd, request);
	alarm(0);
	if (!answer)
		return false;
	more = strchr(answer, '\n') + 1;
	is_good = begins(answer, "200");
	has_body = is_good && request[0] == 'G';
	len = snprintf(head, sizeof(head),
		       "HTTP/1.1 %.*sAccess-Control-Allow-Origin: %s\r\n"
		       "Cross-Origin-Resource-Policy: cross-origin\r\n"
		       "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
		       "Connection: close\r\n%sContent-Length: %lld\r\n\r\n",
		       (int)(more - answer), answer, s->viewer, more,
		       is_good ? (long long)s->size : 0LL);
	n = send(fd, head, (size_t)len, MSG_NOSIGNAL);
	while (n > 0 && has_body && at < s->size)
		n = sendfile(fd, s->file, &at, (size_t)(s->size - at));
	shutdown(fd, SHUT_WR);
	while (has_body && at == s->size && (n = recv(fd, head, sizeof(head), 0)) > 0)
		;
	return has_body && at == s->size && (n == 0 || errno == EAGAIN);
}

/* ---- the server ---- */

/* Serves clients until the trace was fetched. */
static enum status run_server(const struct served *s, int listener, uint64_t timeout_ns,
			      struct error *err)
{
	uint64_t waited_ns = 0;
	nfds_t clients = 0;

	for (;;) {
		struct pollfd at = { .fd = listener, .events = POLLIN };
		int code, fd, ready;
		pid_t pid;

		for (; clients && waitpid(-1, &code, WNOHANG) > 0; clients--)
			if (code == 0)
				return ST_OK;
		if (!clients && waited_ns >= timeout_ns)
			return fail(err, ST_IO, NOWHERE,
				    "no browser has fetched the trace in %llu s",
				    (unsigned long long)(timeout_ns / SECOND_NS));
		ready = poll(&at, clients < CLIENTS, WAIT_MS);
		if (ready < 0 && errno != EINTR)
			return fail(err, ST_IO, NOWHERE, "cannot wait for a browser: %s",
				    strerror(errno));
		waited_ns += ready == 0 ? WAIT_MS * UINT64_C(1000000) : 0;
		fd = at.revents ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
		if (fd < 0)
			continue;
		pid = fork();
		if (pid == 0)
			_exit(serve(s, fd) ? 0 : 1);
		clients += pid > 0;
		close(fd);
	}
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
		return fail(err, ST_USAGE, NOWHERE, "--open shows one file: use -o FILE or no -o");
	if ((begins(v, "https://") || begins(v, "http://")) && len < 200 &&
	    !strchr(host + 2, '/') && strspn(v, LETTERS ":/.-[]") == len)
		return ST_OK;
	return fail(err, ST_USAGE, NOWHERE, "--viewer %.60s: must be an address such as " VIEWER,
		    v);
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
	fail(err, ST_IO, NOWHERE,
	     "cannot open port %d, the only one that Perfetto's page may use: %s", OPEN_PORT,
	     strerror(errno));
	close(*listener);
	return ST_IO;
}

/* Starts the browser without waiting for it.  It may outlive this process. */
static void start_browser(const char *address)
{
	pid_t pid = fork();
	int null;

	if (pid > 0)
		waitpid(pid, NULL, 0);
	if (pid != 0)
		return;
	if (fork() != 0)
		_exit(0);
	null = open("/dev/null", O_RDWR);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	execlp("xdg-open", "xdg-open", address, (char *)NULL);
	_exit(127); /* users can open the printed address themselves */
}

static enum status show(const struct open_options *o, const char *path, bool quiet,
			struct error *err)
{
	struct served s = { .viewer = o->viewer, .file = open(path, O_RDONLY | O_CLOEXEC) };
	const char *slash = strrchr(path, '/');
	enum status status;
	char address[1024];
	struct stat st;
	int listener;

	if (s.file < 0 || fstat(s.file, &st) != 0 || !S_ISREG(st.st_mode))
		return fail(err, ST_IO, NOWHERE, "%s: cannot read it again for --open", path);
	s.size = st.st_size;
	/* The path is a random part and the characters of the file's name that need no escapes. */
	const char *name = o->temporary ? "trace.pftrace" : slash ? slash + 1 : path;
	char *out = s.path;
	uint8_t token[TOKEN_BYTES];

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
	TRY(start_listening(&listener, err));
	snprintf(address, sizeof(address),
		 "%s/#!/?url=http://127.0.0.1:%d%s&referrer=open_trace_in_ui", o->viewer, OPEN_PORT,
		 s.path);
	if (!quiet)
		fprintf(stderr,
			"tacho-convert: a browser can fetch the trace once within %llu s "
			"from\n%s\n",
			(unsigned long long)(o->timeout_ns / SECOND_NS), address);
	start_browser(address);
	status = run_server(&s, listener, o->timeout_ns, err);
	close(listener);
	close(s.file);
	return status;
}

/* ---- a trace that is not to be kept ---- */

enum status open_begin(struct open_options *o, const char **output, const char *scratch,
		       struct error *err)
{
	if (!o->open || *output)
		return ST_OK;
	TRY(temporary_make(&o->temporary, scratch, err));
	*output = o->temporary;
	return ST_OK;
}

enum status open_end(struct open_options *o, const char *output, bool was_written, bool quiet,
		     struct error *err)
{
	enum status status = ST_OK;
	struct stat st;

	if (o->open && was_written && stat(output, &st) == 0 && st.st_size)
		status = show(o, output, quiet, err);
	temporary_remove(&o->temporary);
	return status;
}
