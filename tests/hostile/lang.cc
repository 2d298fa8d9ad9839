// SPDX-License-Identifier: Apache-2.0
// What a program in C++ sees.
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

static volatile std::sig_atomic_t seen;
static void on_signal(int) { seen = seen + 1; }
struct global {
	~global() { std::cout << "global ends" << std::endl; }
} one;

int main(int, char **words)
{
	const std::string act = words[1];

	if (act == "exit")
		return 7;
	if (act == "throw") {
		try {
			throw std::runtime_error("caught");
		} catch (const std::exception &e) {
			std::cout << e.what() << std::endl;
		}
		return 0;
	}
	if (act == "terminate")
		throw std::runtime_error("not caught");
	if (act == "threads") {
		std::vector<std::thread> all;
		long sums[8] = {};
		for (int i = 0; i < 8; i++)
			all.emplace_back([i, &sums] { sums[i] = i * i; });
		long sum = 0;
		for (int i = 0; i < 8; i++) {
			all[i].join();
			sum += sums[i];
		}
		std::cout << sum << std::endl;
		return 0;
	}
	if (act == "count")
		std::signal(SIGTERM, on_signal);
	std::cout << "ready" << std::endl;
	for (int i = 0; i < 800 && !seen; i++)
		usleep(10000);
	if (!seen)
		return 77;
	usleep(250000);
	std::cout << "seen " << seen << std::endl;
	return 0;
}
