/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kinds of files that users often keep next to their traces, and what to do with them instead.
 *
 * A row matches if all of its conditions hold: the end of the path, bytes at an offset, texts in
 * the head of the file.  The first matching row wins, so special rows precede general ones.
 */
#include "convert/source/source.h"

#include <string.h>

#define NSYS          "nsys export --type sqlite FILE.nsys-rep"
#define CPU           "which contains samples of the CPU and nothing about the GPU"
#define ROCPROF_TABLE "a table of rocprof: run rocprofv3 with --output-format rocpd or json"
#define SUMS(tool)                                                                                 \
	"a summary of " tool ", which contains no events: give the trace from which it was made"
#define B(text)                                                                                    \
	{                                                                                          \
		text, sizeof(text) - 1                                                             \
	}

static const struct {
	const char *end; /* end of the path, before an extension of compression */
	struct {
		const char *bytes;
		size_t len;
	} begin;
	size_t at; /* offset of `begin` in the file */
	const char *holds, *also, *what;
} rows[] = {
	{ .begin = B("\x80\x02\x8a\nl\xfc\x9c"),
	  .what = "a PyTorch checkpoint, which contains no events" },
	{ .end = ".pt",
	  .begin = B("\x80"),
	  .what = "a PyTorch checkpoint, which contains no events" },
	{ .end = ".pth",
	  .begin = B("\x80"),
	  .what = "a PyTorch checkpoint, which contains no events" },
	{ .end = ".ckpt",
	  .begin = B("\x80"),
	  .what = "a PyTorch checkpoint, which contains no events" },
	{ .begin = B("\0\0{\""),
	  .at = 6,
	  .what = "a safetensors file of weights, which contains no events" },
	{ .begin = B("\x80\x02"), .what = "a Python pickle that is not a memory snapshot" },
	{ .begin = B("\x80\x03"), .what = "a Python pickle that is not a memory snapshot" },
	{ .begin = B("\x80\x04"), .what = "a Python pickle that is not a memory snapshot" },
	{ .begin = B("\x80\x05"), .what = "a Python pickle that is not a memory snapshot" },
	{ .end = ".nsys-rep", .what = "a report of Nsight Systems: export it with " NSYS },
	{ .end = ".qdrep", .what = "a report of Nsight Systems: export it with " NSYS },
	{ .end = ".qdstrm",
	  .what = "a raw stream of Nsight Systems: open it in nsys-ui, then run " NSYS },
	{ .begin = B("\xff\xfe"),
	  .what = "a text in UTF-16: convert it with iconv -f UTF-16 -t UTF-8 FILE" },
	{ .begin = B("\xfe\xff"),
	  .what = "a text in UTF-16: convert it with iconv -f UTF-16 -t UTF-8 FILE" },
	{ .begin = B("NVR\0"),
	  .what = "a report of Nsight Compute, which covers single kernels: record the run with "
		  "nsys, "
		  "PyTorch's profiler or tacho-record" },
	{ .end = ".ncu-rep",
	  .what = "a report of Nsight Compute, which covers single kernels: record the run with "
		  "nsys, "
		  "PyTorch's profiler or tacho-record" },
	{ .end = ".nvvp", .what = "a database of nvprof, which nsys replaces: record with nsys" },
	{ .begin = B("PAR1"), .what = "a Parquet file; if Nsight Systems wrote it, run " NSYS },
	{ .begin = B("ARROW1"), .what = "an Arrow file; if Nsight Systems wrote it, run " NSYS },
	{ .begin = B("\x89HDF"), .what = "an HDF5 file; if Nsight Systems wrote it, run " NSYS },
	{ .begin = B("SQLite format 3"),
	  .holds = "compute_workload",
	  .what = "a database of rocprof-compute, with counters of single kernels: record the run "
		  "with rocprofv3" },
	{ .begin = B("version https://git-lfs"),
	  .what = "a Git LFS pointer instead of the file: fetch the file with git lfs pull" },
	{ .holds = "/annex/objects/",
	  .what = "a git-annex pointer instead of the file: fetch the file with git annex get" },
	{ .begin = B("\x7f"
		     "ELF"),
	  .what = "a program or library: give the trace that it wrote" },
	{ .begin = B("PERFILE2"), .what = "a recording of perf, " CPU },
	{ .begin = B("FLR\0"), .what = "a recording of Java's Flight Recorder, " CPU },
	{ .begin = B("HPCTOOLKIT"), .what = "a database of HPCToolkit, which Tacho does not read" },
	{ .begin = B("HPCPROF"), .what = "a database of HPCToolkit, which Tacho does not read" },
	{ .begin = B("OTF2"), .what = "an OTF2 trace, which Tacho does not read: use otf2-print" },
	{ .end = ".otf2", .what = "an OTF2 trace, which Tacho does not read: use otf2-print" },
	{ .end = ".et",
	  .what = "a Chakra execution trace for simulators, which has no measured GPU times" },
	{ .begin = B("\n\x04\x08"), .what = "a pprof profile, which contains sums and no events" },
	{ .holds = "brain.Event:2",
	  .what = "a TensorBoard file of scalars: give the trace in the same folder" },
	{ .holds = ":::MLL", .what = "an MLPerf log, which contains no GPU work: record a trace" },
	{ .holds = " NCCL INFO ",
	  .what = "a log of NCCL, which contains no times: set TORCH_FR_BUFFER_SIZE to analyze "
		  "hangs, or use NCCL's inspector for the times of collectives" },
	{ .begin = B("memray"),
	  .what = "a recording of memray, which contains allocations of the CPU only" },
	{ .holds = "ncalls  tottime", .what = SUMS("Python's profiler") },
	{ .begin = B("\xfb"), .end = ".prof", .what = SUMS("Python's profiler") },
	{ .begin = B("{"), .end = ".prof", .what = SUMS("Python's profiler") },
	{ .begin = B("---"), .holds = "Self CPU %", .what = SUMS("PyTorch's profiler") },
	{ .holds = "Time (%),Total Time (ns)", .what = SUMS("nsys stats") },
	{ .holds = "NVPROF is profiling", .what = SUMS("nvprof") },
	{ .begin = B("==PROF== "), .what = SUMS("Nsight Compute") },
	{ .holds = "\"TotalDurationNs\"", .what = SUMS("rocprof") },
	{ .begin = B("HloModule "),
	  .what = "an XLA program: record its times with jax.profiler.trace()" },
	{ .holds = "<html",
	  .also = "Memory Timeline",
	  .what = "a page of PyTorch's memory timeline: use torch.cuda.memory._dump_snapshot() for "
		  "a file that Tacho reads" },
	{ .holds = "<html", .what = "an HTML page: give the trace that it shows" },
	{ .begin = B("[["),
	  .what = "a memory timeline of PyTorch: use torch.cuda.memory._dump_snapshot() for a file "
		  "that Tacho reads" },
	{ .begin = B("{"),
	  .holds = "speedscope.app/file-format",
	  .what = "a speedscope profile, which contains samples of the CPU: record a trace" },
	{ .begin = B("{"),
	  .holds = "\"preprocessedProfileVersion\"",
	  .what = "a Firefox profile, " CPU },
	{ .begin = B("{"), .holds = "\"timeDeltas\"", .what = "a CPU profile of Chrome, " CPU },
	{ .begin = B("{"),
	  .holds = "\"resourceSpans\"",
	  .what = "OpenTelemetry spans, which contain no GPU work" },
	{ .begin = B("{"),
	  .holds = "\"schema\"",
	  .also = "\"nodes\"",
	  .what = "a PyTorch execution trace, which contains operators and no GPU work: export a "
		  "profile with export_chrome_trace()" },
	{ .begin = B("{"),
	  .holds = "\"timer_freq_hz\"",
	  .also = "\"capture_",
	  .what = "JSON lines of wprof: make wprof write a Perfetto trace" },
	{ .begin = B("\"Kind\",\"Agent_Id\""), .what = ROCPROF_TABLE },
	{ .holds = "\"KernelName\",\"gpu-id\"", .what = ROCPROF_TABLE },
};

static bool path_ends(const char *path, const char *end)
{
	const char *at = strstr(path, end);

	/* the path ends here, or an extension of compression follows */
	return at && (!at[strlen(end)] || at[strlen(end)] == '.');
}

const char *source_known(const char *path, const uint8_t *head, size_t len)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *words[] = { rows[i].holds, rows[i].also };
		bool holds = !rows[i].end || path_ends(path, rows[i].end);

		if (rows[i].begin.len)
			holds = holds && len >= rows[i].at + rows[i].begin.len &&
				!memcmp(head + rows[i].at, rows[i].begin.bytes, rows[i].begin.len);
		for (size_t k = 0; k < 2; k++)
			holds = holds &&
				(!words[k] || memmem(head, len, words[k], strlen(words[k])));
		if (holds)
			return rows[i].what;
	}
	return NULL;
}
