/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/main/open.h"

#include "convert/out.h"
#include "convert/temporary.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	GUESTS = 8,
	REQUEST_BYTES = 8192,
	PIECE_BYTES = 64 * 1024,
	TOKEN_BYTES = 16,
	PATH_BYTES = 300,
	GUEST_SECONDS = 10, /* without a byte from or to it */
	SECOND_NS = 1000000000,
};

#define VIEWER "https://ui.perfetto.dev"
const struct option open_rows[] = {
	{"open", 0, OPTION_FLAG, NULL, "with -t perfetto: show it in the browser; nothing is uploaded",
	 offsetof(struct open_options, open), NULL},
	{"viewer", 0, OPTION_TEXT, "URL", "where Perfetto's page is, for --open",
	 offsetof(struct open_options, viewer), VIEWER},
	{"open-timeout", 0, OPTION_TIME, "TIME", "how long --open waits for the browser",
	 offsetof(struct open_options, timeout_ns), "60s"},
	{.name = NULL},
};

struct guest { /* a connection */
	int fd; /* -1: none */
	uint64_t seen_ns;
	size_t filled, head_len, head_sent;
	uint64_t body_at, body_end; /* of the file */
	bool answers, is_whole;     /* is_whole: after this the trace was fetched, when */
	bool was_sent;              /* all is sent and the guest closes its side, too */
	char request[REQUEST_BYTES + 1], head[1024];
};
struct server {
	const struct open_options *o;
	int listener, file;
	uint64_t size;
	char path[PATH_BYTES]; /* of the trace in the address: "/<token>/<name>" */
	bool fetched;
	struct guest guests[GUESTS];
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

/* ---- answers ---- */

static void answer(struct server *s, struct guest *g, const char *status, const char *more,
		   uint64_t body, bool sends_body)
{
	int n = snprintf(g->head, sizeof(g->head),
			 "HTTP/1.1 %s\r\n"
			 "Access-Control-Allow-Origin: %s\r\n"
			 "Cross-Origin-Resource-Policy: cross-origin\r\n"
			 "Cache-Control: no-store\r\n"
			 "X-Content-Type-Options: nosniff\r\n"
			 "Connection: close\r\n"
			 "%sContent-Length: %llu\r\n\r\n",
			 status, s->o->viewer, more, (unsigned long long)body);

	g->head_len = (size_t)n < sizeof(g->head) ? (size_t)n : 0;
	g->answers = true;
	g->body_at = 0;
	g->body_end = sends_body ? body : 0;
	g->is_whole = sends_body;
}

static bool is_word(const char *at, const char *word)
{
	return strncmp(at, word, strlen(word)) == 0;
}

/* The line of the header by this name, without it; NULL: there is none. */
static const char *header(const char *request, const char *name)
{
	for (const char *at = strstr(request, "\r\n"); at; at = strstr(at + 2, "\r\n")) {
		if (strncasecmp(at + 2, name, strlen(name)) != 0 || at[2 + strlen(name)] != ':')
			continue;
		at += 3 + strlen(name);
		return at + strspn(at, " \t");
	}
	return NULL;
}

/* A page whose own name was made to mean this machine asks for that name. */
static bool is_for_us(const char *request)
{
	static const char *const names[] = {"127.0.0.1:9001\r\n", "localhost:9001\r\n"};
	const char *host = header(request, "Host");

	for (size_t i = 0; host && i < sizeof(names) / sizeof(*names); i++)
		if (is_word(host, names[i]))
			return true;
	return false;
}

/* The request is whole. */
static void understand(struct server *s, struct guest *g)
{
	const char *request = g->request, *path = strchr(request, ' ');
	size_t len = strlen(s->path);

	if (!path || strlen(request) != g->filled)
		answer(s, g, "400 Bad Request", "", 0, false);
	else if (!is_for_us(request))
		answer(s, g, "403 Forbidden", "", 0, false);
	else if (strncmp(path + 1, s->path, len) != 0 || path[1 + len] != ' ')
		answer(s, g, "404 Not Found", "", 0, false);
	else if (is_word(request, "OPTIONS "))
		answer(s, g, "204 No Content",
		       "Access-Control-Allow-Methods: GET, HEAD\r\n"
		       "Access-Control-Allow-Private-Network: true\r\n", 0, false);
	else if (is_word(request, "GET "))
		answer(s, g, "200 OK", "Content-Type: application/octet-stream\r\n", s->size, true);
	else if (is_word(request, "HEAD "))
		answer(s, g, "200 OK", "Content-Type: application/octet-stream\r\n", s->size, false);
	else
		answer(s, g, "405 Method Not Allowed", "Allow: GET, HEAD, OPTIONS\r\n", 0, false);
}

/* ---- guests ---- */

static void part_with(struct guest *g)
{
	close(g->fd);
	g->fd = -1;
}

static void take_guest(struct server *s)
{
	int fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return;
	for (size_t i = 0; i < GUESTS; i++) {
		struct guest *g = &s->guests[i];

		if (g->fd >= 0)
			continue;
		memset(g, 0, sizeof(*g));
		g->fd = fd;
		g->seen_ns = now_ns();
		return;
	}
	close(fd); /* the house is full */
}

static void listen_to(struct server *s, struct guest *g)
{
	ssize_t n = recv(g->fd, g->request + g->filled, REQUEST_BYTES - g->filled, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		part_with(g);
		return;
	}
	g->filled += (size_t)n;
	g->request[g->filled] = '\0';
	if (strstr(g->request, "\r\n\r\n") || memchr(g->request, '\0', g->filled))
		understand(s, g);
	else if (g->filled == REQUEST_BYTES)
		answer(s, g, "431 Request Header Fields Too Large", "", 0, false);
}

/* Bytes sent; 0: later; -1: the guest is gone. */
static ssize_t send_some(struct guest *g, const void *bytes, size_t len)
{
	ssize_t n = send(g->fd, bytes, len, MSG_NOSIGNAL);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n > 0)
		g->seen_ns = now_ns();
	return n < 0 ? -1 : n;
}

static ssize_t send_body(struct server *s, struct guest *g)
{
	static char piece[PIECE_BYTES];
	uint64_t left = g->body_end - g->body_at;
	ssize_t n = pread(s->file, piece, left < PIECE_BYTES ? (size_t)left : PIECE_BYTES,
			  (off_t)g->body_at);

	if (n <= 0)
		return -1;
	n = send_some(g, piece, (size_t)n);
	if (n > 0)
		g->body_at += (uint64_t)n;
	return n;
}

static void talk_to(struct server *s, struct guest *g)
{
	ssize_t n;

	if (g->head_sent < g->head_len) {
		n = send_some(g, g->head + g->head_sent, g->head_len - g->head_sent);
		if (n > 0)
			g->head_sent += (size_t)n;
	} else {
		n = g->body_at < g->body_end ? send_body(s, g) : -1;
	}
	if (n < 0) {
		part_with(g);
		return;
	}
	if (g->head_sent < g->head_len || g->body_at < g->body_end)
		return;
	shutdown(g->fd, SHUT_WR);
	g->was_sent = true;
	if (!g->is_whole)
		part_with(g);
}

/* Who goes away with a part of it unread resets the connection. */
static void wait_for_end(struct server *s, struct guest *g)
{
	char rest[256];
	ssize_t n = recv(g->fd, rest, sizeof(rest), 0);

	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	s->fetched |= n == 0;
	part_with(g);
}

static void serve(struct server *s, struct pollfd *fds)
{
	if (fds[GUESTS].revents)
		take_guest(s);
	for (size_t i = 0; i < GUESTS; i++) {
		struct guest *g = &s->guests[i];

		if (g->fd < 0 || g->fd != fds[i].fd)
			continue;
		if (fds[i].revents && g->was_sent)
			wait_for_end(s, g);
		else if (fds[i].revents && g->answers)
			talk_to(s, g);
		else if (fds[i].revents)
			listen_to(s, g);
		if (g->fd < 0 || now_ns() - g->seen_ns <= (uint64_t)GUEST_SECONDS * SECOND_NS)
			continue;
		s->fetched |= g->was_sent;
		part_with(g);
	}
}

/* Until the trace was fetched. */
static enum status run_server(struct server *s, struct error *err)
{
	uint64_t end_ns = now_ns() + s->o->timeout_ns;
	struct pollfd fds[GUESTS + 1];

	while (!s->fetched) {
		bool is_busy = false;

		for (size_t i = 0; i < GUESTS; i++) {
			const struct guest *g = &s->guests[i];

			fds[i] = (struct pollfd){
				g->fd, g->answers && !g->was_sent ? POLLOUT : POLLIN, 0};
			is_busy |= g->fd >= 0 && g->is_whole;
		}
		fds[GUESTS] = (struct pollfd){s->listener, POLLIN, 0};
		if (poll(fds, GUESTS + 1, 200) < 0 && errno != EINTR)
			return fail(err, ST_IO, NOWHERE, "cannot wait for a browser: %s",
				    strerror(errno));
		serve(s, fds);
		if (!is_busy && !s->fetched && now_ns() > end_ns)
			return fail(err, ST_IO, NOWHERE, "no browser has fetched the trace in %llu s",
				    (unsigned long long)(s->o->timeout_ns / SECOND_NS));
	}
	return ST_OK;
}

/* ---- the address ---- */

static enum status check_viewer(const struct open_options *o, struct error *err)
{
	size_t len = strlen(o->viewer);

	if (is_word(o->viewer, "https://") || is_word(o->viewer, "http://")) {
		if (len < 200 && strspn(o->viewer, "abcdefghijklmnopqrstuvwxyz0123456789"
						   "ABCDEFGHIJKLMNOPQRSTUVWXYZ:/.-[]") == len &&
		    o->viewer[len - 1] != '/' && !strchr(strstr(o->viewer, "//") + 2, '/'))
			return ST_OK;
	}
	return fail(err, ST_USAGE, NOWHERE, "--viewer %.60s: need an address as " VIEWER,
		    o->viewer);
}

enum status open_check(const struct open_options *o, const char *type, const char *output,
		       struct error *err)
{
	if (!o->open)
		return ST_OK;
	if (strcmp(type, "perfetto") != 0)
		return fail(err, ST_USAGE, NOWHERE, "--open needs -t perfetto");
	if (output && (strcmp(output, "-") == 0 || out_names_folder(output)))
		return fail(err, ST_USAGE, NOWHERE, "--open shows one file: -o FILE, or no -o");
	return check_viewer(o, err);
}

/* What of a file's name can stand in an address as it is. */
static void put_name(char *out, const char *path)
{
	const char *slash = strrchr(path, '/'), *at = slash ? slash + 1 : path;
	size_t n = 0;

	for (; *at && n < 100; at++)
		if (strchr("abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ.-_", *at))
			out[n++] = *at;
	out[n] = '\0';
}

static enum status make_path(struct server *s, const char *file, struct error *err)
{
	uint8_t token[TOKEN_BYTES];
	char name[128], text[2 * TOKEN_BYTES + 1];

	if (getrandom(token, sizeof(token), 0) != (ssize_t)sizeof(token))
		return fail(err, ST_IO, NOWHERE, "cannot make a random number: %s", strerror(errno));
	for (size_t i = 0; i < TOKEN_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", token[i]);
	put_name(name, file);
	snprintf(s->path, sizeof(s->path), "/%s/%s", text, name[0] ? name : "trace");
	return ST_OK;
}

static enum status start_listening(struct server *s, struct error *err)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(OPEN_PORT),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int one = 1;

	s->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->listener < 0)
		return fail(err, ST_IO, NOWHERE, "cannot open a port: %s", strerror(errno));
	setsockopt(s->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(s->listener, (struct sockaddr *)&at, sizeof(at)) != 0 ||
	    listen(s->listener, GUESTS) != 0)
		return fail(err, ST_IO, NOWHERE, "cannot open port %d, the one that Perfetto's page "
			    "may ask: %s", OPEN_PORT, strerror(errno));
	return ST_OK;
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
	_exit(127); /* the address was told, and can be opened by hand */
}

static enum status open_file(struct server *s, const char *path, struct error *err)
{
	struct stat st;

	s->file = open(path, O_RDONLY | O_CLOEXEC);
	if (s->file < 0 || fstat(s->file, &st) != 0 || !S_ISREG(st.st_mode))
		return fail(err, ST_IO, NOWHERE, "%s: cannot be read again for --open", path);
	s->size = (uint64_t)st.st_size;
	return ST_OK;
}

static enum status show(struct server *s, const char *path, bool quiet, struct error *err)
{
	char address[1024];

	TRY(open_file(s, path, err));
	TRY(make_path(s, path, err));
	TRY(start_listening(s, err));
	snprintf(address, sizeof(address),
		 "%s/#!/?url=http://127.0.0.1:%d%s&referrer=open_trace_in_ui", s->o->viewer, OPEN_PORT,
		 s->path);
	if (!quiet)
		fprintf(stderr, "tacho-convert: a browser can fetch the trace once, for %llu s, by\n%s\n",
			(unsigned long long)(s->o->timeout_ns / SECOND_NS), address);
	start_browser(address);
	return run_server(s, err);
}

static enum status show_file(const struct open_options *o, const char *path, bool quiet,
			     struct error *err)
{
	struct server *s = calloc(1, sizeof(*s));
	enum status status;

	if (!s)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for --open");
	s->o = o;
	s->listener = s->file = -1;
	for (size_t i = 0; i < GUESTS; i++)
		s->guests[i].fd = -1;
	status = show(s, path, quiet, err);
	for (size_t i = 0; i < GUESTS; i++)
		if (s->guests[i].fd >= 0)
			close(s->guests[i].fd);
	if (s->listener >= 0)
		close(s->listener);
	if (s->file >= 0)
		close(s->file);
	free(s);
	return status;
}

/* ---- a trace that is not to be kept ---- */

static enum status make_temporary(struct open_options *o, const char *scratch, struct error *err)
{
	enum status status = ST_OK;
	char *folder;

	if (asprintf(&folder, "%s/tacho-XXXXXX", scratch) < 0)
		return fail(err, ST_MEMORY, NOWHERE, "no memory for a file's name");
	if (!mkdtemp(folder))
		status = fail(err, ST_IO, NOWHERE, "cannot make a folder in %s: %s", scratch,
			      strerror(errno));
	else if (asprintf(&o->temporary, "%s/trace.pftrace", folder) < 0) {
		o->temporary = NULL;
		rmdir(folder);
		status = fail(err, ST_MEMORY, NOWHERE, "no memory for a file's name");
	}
	if (o->temporary) {
		temporary_note(folder);
		temporary_note(o->temporary);
	}
	free(folder);
	return status;
}

static void forget_temporary(struct open_options *o)
{
	if (!o->temporary)
		return;
	unlink(o->temporary);
	temporary_forget(o->temporary);
	*strrchr(o->temporary, '/') = '\0';
	rmdir(o->temporary);
	temporary_forget(o->temporary);
	free(o->temporary);
	o->temporary = NULL;
}

enum status open_begin(struct open_options *o, const char **output, const char *scratch)
{
	struct error err;

	if (!o->open || *output)
		return ST_OK;
	if (make_temporary(o, scratch, &err) != ST_OK) {
		fprintf(stderr, "tacho-convert: %s\n", err.text);
		return err.status;
	}
	*output = o->temporary;
	return ST_OK;
}

enum status open_end(struct open_options *o, const char *output, enum status status,
		     bool was_written, bool quiet)
{
	struct error err;
	enum status shown = ST_OK;

	if (o->open && was_written && access(output, R_OK) == 0)
		shown = show_file(o, output, quiet, &err);
	if (shown != ST_OK)
		fprintf(stderr, "tacho-convert: %s\n", err.text);
	forget_temporary(o);
	return status == ST_OK ? shown : status;
}
