// SPDX-License-Identifier: Apache-2.0
//
// What simdjson takes for the text of a Kineto file: the whole tree (DOM), and on demand every
// number and text of each event, of which only sums are kept.
// usage: bench_simdjson FILE.json [REPEAT]      inflated text; CPU time, the best of REPEAT runs
#include <simdjson.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>

using namespace simdjson;

struct sums {
	uint64_t events = 0, texts = 0;
	double numbers = 0;
};

static double now_s()
{
	timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void take_value(ondemand::value value, sums &s)
{
	switch (value.type()) {
	case ondemand::json_type::number:
		s.numbers += value.get_double();
		break;
	case ondemand::json_type::string:
		s.texts += std::string_view(value.get_string()).size();
		break;
	case ondemand::json_type::object:
		for (auto field : value.get_object())
			take_value(field.value(), s);
		break;
	default:
		s.texts += std::string_view(value.raw_json_token()).size();
	}
}

static sums read_on_demand(ondemand::parser &parser, const padded_string &text)
{
	ondemand::document doc = parser.iterate(text);
	sums s;

	for (auto element : doc["traceEvents"]) {
		for (auto field : element.get_object())
			take_value(field.value(), s);
		s.events++;
	}
	return s;
}

static sums read_tree(dom::parser &parser, const padded_string &text)
{
	dom::element doc = parser.parse(text);
	sums s;

	s.events = dom::array(doc["traceEvents"]).size();
	return s;
}

int main(int argc, char **argv)
{
	int repeat = argc > 2 ? atoi(argv[2]) : 5;
	double tree_s = 1e9, demand_s = 1e9;
	dom::parser dom_parser;
	ondemand::parser demand_parser;
	sums tree, demand;

	if (argc < 2)
		return 64;
	try {
		padded_string text = padded_string::load(argv[1]);

		for (int i = 0; i < repeat; i++) {
			double begin_s = now_s(), middle_s;

			tree = read_tree(dom_parser, text);
			middle_s = now_s();
			demand = read_on_demand(demand_parser, text);
			tree_s = std::min(tree_s, middle_s - begin_s);
			demand_s = std::min(demand_s, now_s() - middle_s);
		}
		printf("simdjson tree: %llu elements, %.4f s, %.0f MB/s\n",
		       (unsigned long long)tree.events, tree_s, text.size() * 1e-6 / tree_s);
		printf("simdjson on demand: %llu elements, %.4f s, %.0f MB/s\n",
		       (unsigned long long)demand.events, demand_s, text.size() * 1e-6 / demand_s);
	} catch (const simdjson_error &e) {
		fprintf(stderr, "bench_simdjson: %s: %s\n", argv[1], e.what());
		return 1;
	}
	return 0;
}
