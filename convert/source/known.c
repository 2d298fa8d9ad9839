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
#define CPU           "which samples the CPU and knows nothing of the GPU"
#define ROCPROF_TABLE "a table of rocprof: let rocprofv3 write --output-format rocpd or json"
#define SUMS(tool)                                                                                 \
	"sums of times by " tool ", which has no events: give the trace that it was made of"
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
	{ .begin = B("\x80\x02\x8a\nl\xfc\x9c"), .what = "a checkpoint of PyTorch: no trace" },
	{ .end = ".pt", .begin = B("\x80"), .what = "a checkpoint of PyTorch: no trace" },
	{ .end = ".pth", .begin = B("\x80"), .what = "a checkpoint of PyTorch: no trace" },
	{ .end = ".ckpt", .begin = B("\x80"), .what = "a checkpoint of PyTorch: no trace" },
	{ .begin = B("\0\0{\""), .at = 6, .what = "weights as safetensors: no trace" },
	{ .begin = B("\x80\x02"), .what = "a Python pickle that is no snapshot of memory" },
	{ .begin = B("\x80\x03"), .what = "a Python pickle that is no snapshot of memory" },
	{ .begin = B("\x80\x04"), .what = "a Python pickle that is no snapshot of memory" },
	{ .begin = B("\x80\x05"), .what = "a Python pickle that is no snapshot of memory" },
	{ .end = ".nsys-rep", .what = "a report of Nsight Systems: " NSYS },
	{ .end = ".qdrep", .what = "a report of Nsight Systems: " NSYS },
	{ .end = ".qdstrm",
	  .what = "a stream of Nsight Systems: open it once in nsys-ui, then " NSYS },
	{ .begin = B("\xff\xfe"), .what = "text in UTF-16: iconv -f UTF-16 -t UTF-8 FILE" },
	{ .begin = B("\xfe\xff"), .what = "text in UTF-16: iconv -f UTF-16 -t UTF-8 FILE" },
	{ .begin = B("NVR\0"),
	  .what = "a report of Nsight Compute, of single kernels: record the run with nsys, "
		  "PyTorch's profiler or tacho-record" },
	{ .end = ".ncu-rep",
	  .what = "a report of Nsight Compute, of single kernels: record the run with nsys, "
		  "PyTorch's profiler or tacho-record" },
	{ .end = ".nvvp",
	  .what = "a database of nvprof, which nsys has replaced: record with nsys" },
	{ .begin = B("PAR1"), .what = "a Parquet file; if Nsight Systems wrote it: " NSYS },
	{ .begin = B("ARROW1"), .what = "an Arrow file; if Nsight Systems wrote it: " NSYS },
	{ .begin = B("\x89HDF"), .what = "an HDF5 file; if Nsight Systems wrote it: " NSYS },
	{ .begin = B("SQLite format 3"),
	  .holds = "compute_workload",
	  .what = "a database of rocprof-compute, of counters of single kernels: record the run "
		  "with rocprofv3" },
	{ .begin = B("version https://git-lfs"),
	  .what = "a pointer of Git LFS in place of the file: git lfs pull fetches it" },
	{ .holds = "/annex/objects/",
	  .what = "a pointer of git-annex in place of the file: git annex get fetches it" },
	{ .begin = B("\x7f"
		     "ELF"),
	  .what = "a program or library: give the trace that it wrote" },
	{ .begin = B("PERFILE2"), .what = "a recording of perf, " CPU },
	{ .begin = B("FLR\0"), .what = "a recording of Java's Flight Recorder, " CPU },
	{ .begin = B("HPCTOOLKIT"), .what = "a database of HPCToolkit, which Tacho does not read" },
	{ .begin = B("HPCPROF"), .what = "a database of HPCToolkit, which Tacho does not read" },
	{ .begin = B("OTF2"),
	  .what = "an OTF2 trace: otf2-print shows it, Tacho does not read it" },
	{ .end = ".otf2", .what = "an OTF2 trace: otf2-print shows it, Tacho does not read it" },
	{ .end = ".et",
	  .what = "an execution trace of Chakra, for simulators: it has no measured GPU times" },
	{ .begin = B("\n\x04\x08"), .what = "a profile of pprof, which has sums and no times" },
	{ .holds = "brain.Event:2",
	  .what = "a TensorBoard file of scalars: give the folder's trace" },
	{ .holds = ":::MLL", .what = "a log of MLPerf: record a trace beside it" },
	{ .holds = " NCCL INFO ",
	  .what = "a log of NCCL, which has no times: TORCH_FR_BUFFER_SIZE makes PyTorch keep what "
		  "hung, NCCL's inspector how long collectives take" },
	{ .begin = B("memray"), .what = "a recording of memray, of allocations on the CPU" },
	{ .holds = "ncalls  tottime", .what = SUMS("Python's profiler") },
	{ .begin = B("\xfb"), .end = ".prof", .what = SUMS("Python's profiler") },
	{ .begin = B("{"), .end = ".prof", .what = SUMS("Python's profiler") },
	{ .begin = B("---"), .holds = "Self CPU %", .what = SUMS("PyTorch's profiler") },
	{ .holds = "Time (%),Total Time (ns)", .what = SUMS("nsys stats") },
	{ .holds = "NVPROF is profiling", .what = SUMS("nvprof") },
	{ .begin = B("==PROF== "), .what = SUMS("Nsight Compute") },
	{ .holds = "\"TotalDurationNs\"", .what = SUMS("rocprof") },
	{ .begin = B("HloModule "),
	  .what = "a program of XLA: jax.profiler.trace() writes what it took" },
	{ .holds = "<html",
	  .also = "Memory Timeline",
	  .what = "a page of PyTorch's memory timeline; torch.cuda.memory._dump_snapshot() makes a "
		  "file that Tacho reads" },
	{ .holds = "<html", .what = "a page for a browser: give the trace that it shows" },
	{ .begin = B("[["),
	  .what = "a memory timeline of PyTorch; torch.cuda.memory._dump_snapshot() makes a file "
		  "that Tacho reads" },
	{ .begin = B("{"),
	  .holds = "speedscope.app/file-format",
	  .what = "a profile for speedscope, which has samples of the CPU: record a trace" },
	{ .begin = B("{"),
	  .holds = "\"preprocessedProfileVersion\"",
	  .what = "a profile of Firefox, " CPU },
	{ .begin = B("{"), .holds = "\"timeDeltas\"", .what = "a CPU profile of Chrome, " CPU },
	{ .begin = B("{"),
	  .holds = "\"resourceSpans\"",
	  .what = "spans of OpenTelemetry: no GPU work is in them" },
	{ .begin = B("{"),
	  .holds = "\"schema\"",
	  .also = "\"nodes\"",
	  .what = "an execution trace of PyTorch, which has operators and no GPU work: export a "
		  "profile, export_chrome_trace()" },
	{ .begin = B("{"),
	  .holds = "\"timer_freq_hz\"",
	  .also = "\"capture_",
	  .what = "events of wprof as lines of JSON: let it write a Perfetto trace" },
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
