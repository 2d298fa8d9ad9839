/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/name/demangle.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

static char *(*demangle)(const char *mangled, char *cap, size_t *len, int *status);

/* The C++ runtime is looked up, because a tool in C has no other reason to need it. */
static void find(void)
{
	void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
	void *symbol = library ? dlsym(library, "__cxa_demangle") : NULL;

	memcpy(&demangle, &symbol, sizeof(symbol));
}

char *name_demangle(const char *name)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int status = 0;

	if (strncmp(name, "_Z", 2) != 0)
		return NULL;
	pthread_once(&once, find);
	return demangle ? demangle(name, NULL, NULL, &status) : NULL;
}
