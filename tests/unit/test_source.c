/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/folder.h"
#include "tests/unit/log_files.h"
#include "tests/unit/unit.h"

#include "convert/stage/filter/filter.h"
#include "convert/input/input.h"
#include "convert/source/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What opening these bytes says. */
static enum status source_of(const void *bytes, size_t len, struct error *err)
{
	char path[] = "/tmp/tacho-unit-XXXXXX";
	struct budget budget = { .opening = 8 << 20, .resident = 65536, .scratch = "/tmp" };
	struct source *source = NULL;
	struct input *in = NULL;
	struct trace *trace = NULL;
	enum status status = ST_IO;
	int fd = mkstemp(path);

	if (!CHECK(fd >= 0))
		return ST_IO;
	if (CHECK_U64((uint64_t)write(fd, bytes, len), len) &&
	    CHECK_OK(trace_new(&trace, 1 << 20, NULL), NULL) &&
	    CHECK_OK(input_open(&in, path, "/tmp", err), err))
		status = source_open(&source, in, trace, &budget, NULL, err);
	CHECK(!source == (status != ST_OK));
	source_close(source);
	input_close(in);
	trace_free(trace);
	close(fd);
	unlink(path);
	return status;
}

void test_source_empty(void)
{
	struct error err = { 0 };

	CHECK_U64(source_of("", 0, &err), ST_FORMAT);
	CHECK_STR(err.text, "the input is empty");
}

void test_source_unknown(void)
{
	struct error err = { 0 };

	CHECK_U64(source_of("step,loss\n1,0.5\n2,0.4\n", 22, &err), ST_FORMAT);
	CHECK_STR(err.text, "not a trace that Tacho reads (it begins with 'step,loss?1,0.5?' ...)");
	CHECK_U64(source_of("\x7f"
			    "ABC\x02\x01",
			    6, &err),
		  ST_FORMAT);
	CHECK_STR(err.text,
		  "not a trace that Tacho reads (it begins with the bytes 7f 41 42 43 02 01)");
	CHECK_U64(source_of("\x80\x04\x95 a snapshot", 14, &err), ST_FORMAT);
	CHECK(strstr(err.text, "but a Python pickle") != NULL);
	CHECK_U64(source_of("PAR1 and columns", 16, &err), ST_FORMAT);
	CHECK_STR(err.text, "not a trace that Tacho reads, but a Parquet file; if Nsight Systems "
			    "wrote it, run nsys "
			    "export --type sqlite FILE.nsys-rep");
	CHECK_U64(source_of("\n\nsome text", 11, &err), ST_FORMAT);
	CHECK(strstr(err.text, "begins with '") != NULL);
}

/* What people have beside their traces is named, and never called damaged. */
void test_source_known(void)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *says;
	} rows[] = {
#define ROW(bytes, says) { bytes, sizeof(bytes) - 1, says }
		ROW("\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19.", "a PyTorch checkpoint"),
		ROW("\x14\0\0\0\0\0\0\0{\"a\":{}}", "safetensors"),
		ROW("\x80\x05\x95 numbers", "a Python pickle that is not a memory snapshot"),
		ROW("\xff\xfe{\0\"\0", "text in UTF-16"),
		ROW("NVR\0\x10", "Nsight Compute"),
		ROW("ARROW1\0\0", "an Arrow file"),
		ROW("\x89HDF\r\n", "an HDF5 file"),
		ROW("SQLite format 3\0 CREATE TABLE compute_workload(", "rocprof-compute"),
		ROW("PERFILE2\0", "perf"),
		ROW("FLR\0\0\2", "Java's Flight Recorder"),
		ROW("HPCTOOLKITmeta", "HPCToolkit"),
		ROW("OTF2", "OTF2"),
		ROW("\n\x04\x08\x01\x10\x02", "pprof"),
		ROW("\x18\0\0\0\0\0\0\0abcd\x1a\x0d"
		    "brain.Event:2",
		    "TensorBoard"),
		ROW("version https://git-lfs.github.com/spec/v1\noid", "git lfs pull"),
		ROW("/annex/objects/SHA256E-s1--2.gz\n", "git annex get"),
		ROW("\177ELF\2\1\1", "a program or library"),
		ROW("start\n:::MLLOG {\"key\": 1}", "MLPerf"),
		ROW("n1:12:12 [0] NCCL INFO Bootstrap : Using eth0", "a log of NCCL"),
		ROW("memray\0\x0b", "memray"),
		ROW("------ -----\n  Name  Self CPU %  Self CPU\n", "PyTorch's profiler"),
		ROW("   ncalls  tottime  percall\n", "Python's profiler"),
		ROW("Time (%),Total Time (ns),Instances\n", "nsys stats"),
		ROW("==12== NVPROF is profiling process 12", "nvprof"),
		ROW("==PROF== Connected", "Nsight Compute"),
		ROW("\"Name\",\"Calls\",\"TotalDurationNs\"\n", "rocprof"),
		ROW("\"Index\",\"KernelName\",\"gpu-id\"\n", "rocprof"),
		ROW("HloModule jit_step", "an XLA program"),
		ROW("<html><title>GPU Memory Timeline HTML</title>", "memory timeline"),
		ROW("<!DOCTYPE html><html>", "an HTML page"),
		ROW("[[1, 2], [[3, 4]]]", "memory timeline"),
		ROW("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\"}",
		    "speedscope"),
		ROW("{\"meta\":{\"preprocessedProfileVersion\":47}}", "Firefox"),
		ROW("{\"nodes\":[],\"samples\":[],\"timeDeltas\":[]}", "a CPU profile of Chrome"),
		ROW("{\"resourceSpans\":[]}", "OpenTelemetry"),
		ROW("{\"schema\": \"1.1.1-chakra.0.0.4\", \"nodes\": []}",
		    "a PyTorch execution trace"),
		ROW("{\"version\": \"3.1\", \"timer_freq_hz\": 997, \"capture_ipis\": false}",
		    "wprof"),
		ROW("\"Kind\",\"Agent_Id\",\"Queue_Id\"", "rocprofv3"),
#undef ROW
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct error err = { 0 };

		CHECK_U64(source_of(rows[i].bytes, rows[i].len, &err), ST_FORMAT);
		if (!CHECK(strstr(err.text, "not a trace that Tacho reads, but") &&
			   strstr(err.text, rows[i].says)))
			CHECK_STR(err.text, rows[i].says);
	}
	CHECK_STR(source_known("a/b.nsys-rep", (const uint8_t *)"xx", 2),
		  "a report of Nsight Systems: export it with nsys export --type sqlite "
		  "FILE.nsys-rep");
	CHECK(source_known("a/ckpt.pth", (const uint8_t *)"\x80", 1) != NULL);
	CHECK(!source_known("a/b.nsys-report", (const uint8_t *)"xx", 2));
}

/* What is left of a folder, without the folder's name and in its order. */
static void check_found(struct folder *s, size_t no_trace, size_t own, size_t twin,
			const char *expected)
{
	struct input_paths paths = { .count = 0 };
	struct passed_over passed;
	struct error err = { 0 };
	char found[1024] = "", *folder = s->folder;
	size_t at = 0;

	CHECK_OK(source_paths_find(&paths, &folder, 1, "/tmp", &passed, &err), &err);
	for (size_t i = 0; i < paths.count && at < sizeof(found); i++)
		at += (size_t)snprintf(found + at, sizeof(found) - at, "%s ",
				       paths.paths[i] + strlen(s->folder) + 1);
	CHECK_STR(found, expected);
	CHECK_U64(passed.no_trace, no_trace);
	CHECK_U64(passed.own, own);
	CHECK_U64(passed.twin, twin);
	input_paths_free(&paths);
}

static void write_text(struct folder *s, const char *name, const char *text)
{
	folder_write(s, name, text, strlen(text));
}

/* A log that says it was made of these files. */
static void write_log(struct folder *s, const char *name, const char *sources)
{
	struct buf log;
	struct log_run run;

	buf_init(&log, 1 << 20);
	if (!CHECK(log_run_make(&run, 1, 10, 0)))
		return;
	struct provenance *p = trace_provenance(run.trace);
	p->format = sources ? trace_name(run.trace, "Kineto JSON", 11, NULL) : 0;
	p->sources = sources ? trace_name(run.trace, sources, strlen(sources), NULL) : 0;
	CHECK(log_run_write(&run, 0, true, &log));
	folder_write(s, name, log.data, log.len);
	buf_release(&log);
	log_run_release(&run);
}

/* A log is an input, unless what it was made of is one. */
void test_source_paths_of_logs(void)
{
	struct folder s;

	folder_make(&s);
	write_log(&s, "all.tacho", "a.json 7\nrank0.json 19\nrank1.json 19\n");
	write_log(&s, "recorded.tacho", NULL);
	check_found(&s, 0, 0, 0, "all.tacho recorded.tacho ");
	write_text(&s, "a.json", "{\"traceEvents\": []}");
	check_found(&s, 0, 0, 0, "a.json all.tacho recorded.tacho ");
	write_text(&s, "rank1.json", "{\"traceEvents\": []}");
	check_found(&s, 0, 1, 0, "a.json rank1.json recorded.tacho ");
	write_log(&s, "self.tacho", "all.tacho 0\nrank1.json 19\n");
	check_found(&s, 0, 2, 0, "a.json rank1.json recorded.tacho ");
	folder_remove(&s);
}

void test_source_paths_of_folder(void)
{
	static const char kineto[] = "{\"traceEvents\": []}";
	static const char ours[] = "{\n  \"converted_by\": \"Tacho\",\n \"traceEvents\": []}";
	static const char plane[] = "\x0a\x0b\x12\x09/host:CPU";
	char database[100] = "SQLite format 3";
	struct folder s;

	folder_make(&s);
	memcpy(database + 68, SQLITE_OWN_ID, 4);
	write_text(&s, "ours.json", ours);
	folder_write(&s, "ours.sqlite", database, sizeof(database));
	check_found(&s, 0, 0, 0, "ours.json ours.sqlite "); /* there is nothing else */
	write_text(&s, "a.json", kineto);
	write_text(&s, "report.json", "{\"schema\": 1}");
	check_found(&s, 1, 2, 0, "a.json ");
	write_text(&s, "jax/h.xplane.pb", plane);
	write_text(&s, "jax/h.trace.json", kineto);
	write_text(&s, "jax/hh.trace.json", kineto);
	write_text(&s, "jax/perfetto_trace.json", kineto);
	folder_gzip(&s, "jax/h.trace.json.gz", kineto, strlen(kineto), 0);
	write_text(&s, "h.trace.json", kineto);
	check_found(&s, 1, 2, 3, "a.json h.trace.json jax/h.xplane.pb jax/hh.trace.json ");
	folder_remove(&s);
}
