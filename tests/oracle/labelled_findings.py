# SPDX-License-Identifier: Apache-2.0
"""One small run for each finding, in which it is known what is to be changed and what it is worth.

A run has three steps of 10 ms on thread 1; the GPU computes all the time but for the first 10 us,
in kernels of 1 ms of four unremarkable names that are launched a kernel ahead. In each step
a scene puts something of its own into 4,000 to 8,000 us (the hole), and nothing else: so the saving
is known by construction. `Scene.companions` are rules that truly apply beside it; any other is a
false alarm.
"""
import json
from dataclasses import dataclass, field

STEP = 10000            # us
HOLE = (4000, 8000)
LATE = 10               # from the late launch to the kernel behind the hole
# Before its first kernel the GPU waits 10 us: us per step of that by cause
FIRST = {"host:other": 1 / 3, "launch": 5 / 3, "dispatch": 4 / 3}
PAUSE = 12000           # between two steps
COMPUTE = ("slow_kernels",)     # the first finding of a run that computes all the time
LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
OWN = ("tile_a", "tile_b", "tile_c", "tile_d")
SOFTMAX = "void cunn_SoftMaxForward<8, c10::BFloat16, float>(int)"
SGEMM = "ampere_sgemm_128x64_tn"
FILL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >(int)"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)"


@dataclass
class Scene:
    rule: str
    saving: float               # us per step
    build: object               # what it puts into each step: build(run, begin of the step)
    companions: tuple = ()      # rules that may stand beside it
    first: bool = True          # it has the largest saving
    verdict: str = "COMPUTE"
    advice: str = ""            # words that the advice must hold
    evidence: str = ""          # likewise
    unsaid: tuple = ()          # words that no advice of the run may hold
    also: str = None            # a second family of the verdict
    steps: int = 3
    every: int = 1              # of so many steps the first has all that the scene is about
    hole: tuple = HOLE
    launched_late: bool = False  # the kernel behind the hole is launched at its end
    gpu: str = "Example GPU"
    setup: object = None        # setup(run): what is in the run once
    before: object = None       # before(run): how long it takes until the first step begins
    is_marked: bool = True
    lead: int = 10              # from the begin of the first step to its first kernel
    pause: int = 0              # from one step to the next
    last_is_idle: bool = False  # nothing runs in the last step
    ranks: int = 1
    rank_build: object = None   # rank_build(run, begin, rank)


@dataclass
class Run:
    scene: Scene
    rank: int = 0
    rows: list = field(default_factory=list)
    id: int = 0
    memory_bytes: int = 16 << 30

    def row(self, category, name, begin, end, tid=1, pid=1, **args):
        self.rows.append({"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid,
                          "ts": begin, "dur": end - begin, "args": args})

    def host(self, name, begin, end, category="user_annotation", tid=1):
        self.row(category, name, begin, end, tid)

    def op(self, name, begin, end, tid=1):
        self.row("cpu_op", name, begin, end, tid)

    def call(self, name, begin, end, tid=1):
        self.id += 1
        self.row("cuda_runtime", name, begin, end, tid, correlation=self.id)

    def work(self, category, name, begin, end, launch=None, call="cudaLaunchKernel", stream=7,
             same=False, **args):
        """GPU work, launched at `launch` (from, to) or in good time."""
        if not same:
            self.id += 1
            launch = launch or (max(begin - 1000, 1), max(begin - 1000, 1) + 5)
            self.row("cuda_runtime", call, *launch, correlation=self.id)
        self.row(category, name, begin, end, tid=stream, pid=0, device=0, context=1,
                 stream=stream, correlation=self.id, **args)

    def kernel(self, name, begin, end, **more):
        self.work("kernel", name, begin, end, **more)

    def kernels(self, names, begin, end, **more):
        each = (end - begin) // len(names)
        for place, name in enumerate(names):
            self.kernel(name, begin + place * each, begin + (place + 1) * each, **more)

    def copy(self, name, begin, end, size, **more):
        self.work("gpu_memcpy", name, begin, end, call="cudaMemcpyAsync", bytes=size, **more)

    def memory(self, at, allocated, reserved, size):
        self.rows.append({"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]",
                          "pid": 1, "tid": 1, "ts": at,
                          "args": {"Device Type": 1, "Device Id": 0, "Addr": 4096 + at,
                                   "Bytes": size, "Total Allocated": allocated,
                                   "Total Reserved": reserved}})

    def step(self, number, begin):
        """Computes all the time but in the hole, where the scene does what it does."""
        scene, end = self.scene, begin + STEP
        is_on = number % scene.every == 1 % scene.every
        if scene.is_marked:
            self.host(f"ProfilerStep#{number}", begin, end)
        at, place = begin, 0
        if number == 1:
            at += scene.lead
        if scene.last_is_idle and number == scene.steps:
            at = end
        while at < end:
            until = min(at - at % 1000 + 1000, end)
            in_hole = is_on and scene.hole[0] <= at - begin < scene.hole[1]
            if not in_hole:
                launch = None
                if is_on and scene.launched_late and at == begin + scene.hole[1]:
                    launch = (at - LATE, at - LATE + 5)
                self.kernel(OWN[place % 4], at, until, launch=launch)
            at, place = until, place + 1
        if is_on and scene.build:
            scene.build(self, begin)
        if is_on and scene.rank_build:
            scene.rank_build(self, begin, self.rank)

    def trace(self):
        text = {"schemaVersion": 1,
                "deviceProperties": [{"id": 0, "name": self.scene.gpu,
                                      "totalGlobalMem": self.memory_bytes}],
                "traceEvents": self.rows}
        if self.scene.ranks > 1:
            text["distributedInfo"] = {"backend": "nccl", "rank": self.rank,
                                       "world_size": self.scene.ranks}
        return text


def waits(annotation=None, category="user_annotation", call=None, begin=4000, op=None,
          end=HOLE[1]):
    """The step thread does this through the hole and launches at its end."""
    def build(run, at):
        if annotation:
            run.host(annotation, at + begin, at + end - LATE, category)
        if op:
            run.op(op, at + begin, at + end)
        if call:
            run.call(call, at + begin, at + end - LATE)
    return build


def computes(*names, **more):
    return lambda run, at: run.kernels(names, at + HOLE[0], at + HOLE[1], **more)


def copies(name, **more):
    return lambda run, at: run.copy(name, at + HOLE[0], at + HOLE[1], 8 << 20, **more)


def in_training(build):
    """With a backward pass, in which the GPU is busy."""
    def both(run, at):
        run.host("backward", at + 9000, at + 9100)
        build(run, at)
    return both


def zero_grad(run, at):
    run.host("Optimizer.zero_grad#SGD.zero_grad", at + 4000, at + 8000)
    for i in range(40):
        begin = at + 4000 + 100 * i
        run.kernel(FILL, begin + 90, begin + 100, launch=(begin + 80, begin + 85))


def optimizer_loop(run, at):
    run.host("Optimizer.step#SGD.step", at + 4000, at + 8000)
    for i in range(50):
        begin = at + 4000 + 80 * i
        run.kernel("apply_sgd", begin + 65, begin + 80, launch=(begin + 55, begin + 60))


def in_no_phase(run, at):
    """40 kernels, each launched when the one before is over; nothing says what the host does."""
    for i in range(40):
        begin = at + 4000 + 100 * i
        run.kernel("few_rows", begin + 85, begin + 100, launch=(begin + 80, begin + 85))


def multiplies(dims, strides=None, kind="c10::BFloat16"):
    """A product of these two matrices."""
    def build(run, at):
        args = {"Input Dims": dims, "Input type": [kind, kind]}
        run.row("cpu_op", "aten::mm", at + 2990, at + 3010, **args,
                **({"Input Strides": strides} if strides else {}))
        run.kernel("sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_cublas", at + 4000, at + 8000)
    return build


def optimizer_host(run, at):
    run.host("Optimizer.step#Adam.step", at + 3995, at + 8000)
    run.kernel("multi_tensor_apply_kernel", at + 7990, at + 8000, launch=(at + 7980, at + 7985))


def attention(run, at):
    """A softmax and a product of batches, each for half of the hole."""
    run.kernel(SOFTMAX, at + 4000, at + 6000)
    run.op("aten::bmm", at + 4900, at + 5100)
    run.kernel("sm90_xmma_gemm_bf16bf16_bf16f32", at + 6000, at + 8000)


def in_range(annotation, build):
    """The work of the scene is launched in an annotation."""
    def both(run, at):
        run.host(annotation, at + 2500, at + 3500)
        build(run, at)
    return both


def communicates(operation, name="ncclDevKernel_SendRecv", elements=1024):
    return computes(name, **{"Collective name": operation, "Group size": 8, "dtype": "Float",
                             "In msg nelems": elements, "Out msg nelems": elements})


def uses(call):
    """The run has such a call before its first step."""
    return lambda run: run.call(call, 0, 5)


def blocking_copy(run, at):
    run.copy("Memcpy DtoH (Device -> Pageable)", at + 4000, at + 4010, 4,
             launch=(at + 3900, at + 8000 - LATE))


def item(run, at):
    run.op("aten::item", at + 3500, at + 8000 - LATE)
    run.call("cudaStreamSynchronize", at + 3600, at + 8000 - LATE)


def profiler(run, at):
    run.row("overhead", "Buffer Flush", at + 4000, at + 8000 - LATE, tid=0, pid=-1)


def graph_gaps(run, at):
    run.work("kernel", "node_a", at + 4000, at + 4100, call="cudaGraphLaunch")
    run.work("kernel", "node_b", at + 7900, at + 8000, same=True)


def stream_wait(run, at):
    run.call("cudaStreamWaitEvent", at + 3000, at + 3005)
    run.row("cuda_sync", "Stream Wait Event", at + 3000, at + 3005, tid=9, pid=0, device=0,
            context=1, stream=9, correlation=run.id)
    run.kernel("after_wait", at + 7990, at + 8000, launch=(at + 3100, at + 3105), stream=9)


def dispatch(run, at):
    for k in range(4):
        end = at + 5000 + 1000 * k
        run.kernel("begins_late", end - 100, end, launch=(at + 3100 + 10 * k, at + 3105 + 10 * k))


def slow_step(run):
    """A sixth step, twice as long as the five others."""
    begin = 5 * STEP
    run.host("ProfilerStep#6", begin, begin + 2 * STEP)
    for i in range(20):
        run.kernel(OWN[i % 4], begin + 1000 * i, begin + 1000 * (i + 1))


def warm_up(run):
    """The host has 6 ms to do before the first step."""
    run.host("prepare", 0, 6000)
    return 6000


def library_start(run):
    """Behind the last step, before the only kernel of a library."""
    run.call("cudaFree", 3 * STEP, 3 * STEP + 60000)
    run.kernel("of_a_library", 3 * STEP + 60010, 3 * STEP + 60100,
               launch=(3 * STEP + 60000, 3 * STEP + 60005))


def leak(run, at):
    number = at // STEP
    run.memory(max(at - 1, 0), (1 << 30) + number * (8 << 20), 2 << 30, 8 << 20)


def reserved(run, at):
    run.memory(at + 100, 4 << 30, 8 << 30, 1 << 20)


def small_peak(run, at):
    run.memory(at + 100, 1 << 30, 1 << 30, 1 << 20)
    run.op("aten::mm", at + 4000, at + 7000)


def unequal(run, at, rank):
    """Rank 1 takes 2 ms for what takes rank 0 one; rank 0 has other work for the rest."""
    if rank == 1:
        run.kernel("tile_e", at + 4000, at + 6000)
    else:
        run.kernel("tile_e", at + 4000, at + 5000)
        run.kernel("of_rank_0_alone", at + 5000, at + 6000)


def late_rank(run, at, rank):
    """Rank 1 comes to the collective of each step 3 ms after rank 0."""
    begin = at + 4000 + 3000 * rank
    if rank == 1:
        run.kernel("of_rank_1_alone", at + 4000, begin)
    run.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", begin, at + 8000, **{
        "Collective name": "allreduce", "Process Group Name": "0", "Group size": 2,
        "Process Group Ranks": "[0, 1]", "dtype": "Float", "In msg nelems": 1024,
        "Out msg nelems": 1024, "Seq": at // STEP})


def scenes():
    """name -> Scene. A wait through the hole that ends with a late launch is worth 1,990 us."""
    late = {"launched_late": True}
    hole = HOLE[1] - HOLE[0]
    host = hole - LATE
    bound = host + 5 + FIRST["launch"] + FIRST["host:other"]
    made = {
        "data_wait": Scene("data_wait", host, waits(
            "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"), verdict="INPUT",
            advice="num_workers", evidence="spends 4.0 ms of a step on input", **late),
        "data_wait of workers": Scene("data_wait", host, waits(
            "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"), verdict="INPUT",
            advice="prefetch_factor", **late),
        "data_wait without a loader": Scene(
            "data_wait", host, waits("dataloader"), verdict="INPUT", advice="in DataLoader workers",
            unsaid=("num_workers of 4",), **late),
        "launch_bound": Scene("launch_bound", bound, waits(op="aten::mul"), verdict="HOST",
                              advice="CUDA graphs", evidence="4.0 ms in forward", **late),
        "launch_bound by a library": Scene(
            "launch_bound", bound, waits(op="aten::mm"), verdict="HOST", advice="warm up",
            evidence="CPU work of aten::mm, which takes 4.0 ms per call", unsaid=("CUDA graphs",), **late),
        "launch_bound by a library in a range of its own": Scene(
            "launch_bound", bound, lambda run, at: (
                run.host("## embed ##", at + 4000, at + 8000 - LATE),
                run.op("aten::cudnn_convolution", at + 4001, at + 8000 - LATE)), verdict="HOST",
            advice="warm up", evidence="CPU work of aten::cudnn_convolution", unsaid=("CUDA graphs",), **late),
        "launch_bound beside graphs": Scene(
            "launch_bound", bound, waits(op="aten::mm"), verdict="HOST",
            advice="more of a step into one graph", setup=uses("cudaGraphLaunch"),
            unsaid=("CUDA graphs",), **late),
        "launch_bound in compiled code": Scene(
            "launch_bound", bound, waits("## Call CompiledFxGraph f5 ##"), verdict="HOST",
            advice="reduce-overhead", unsaid=("torch.compile",), **late),
        "launch_bound in a capture": Scene(
            "launch_bound", bound, waits(op="aten::mm"), verdict="HOST",
            advice="record the replays", setup=uses("cudaStreamBeginCapture"),
            unsaid=("CUDA graphs,",), **late),
        "launch_bound in backward": Scene("launch_bound", bound, lambda run, at: run.host(
            "backward", at + 4000, at + 8000), verdict="HOST",
            evidence="4.0 ms in backward", **late),
        "launch_bound in a range of its own": Scene(
            "launch_bound", bound, waits("## embed ##"), verdict="HOST",
            evidence="such as ## embed ##", **late),
        "long_launches": Scene("long_launches", 3995, lambda run, at: run.kernel(
            "first_of_its_kind", at + 7999, at + 8000, launch=(at + 3990, at + 7995)),
            verdict="HOST", advice="warm up", evidence="1 launch call"),
        "long_launches beside others": Scene("long_launches", 2996, lambda run, at: (
            run.op("aten::mm", at + 4000, at + 5000),
            run.kernel("first_of_its_kind", at + 7999, at + 8000, launch=(at + 4999, at + 7995))),
            verdict="HOST", companions=("launch_bound",)),
        "unused_parameters": Scene("unused_parameters", host, waits(
            "torch::distributed::reducer::search_unused_parameters", "cpu_op"), verdict="HOST",
            advice="find_unused_parameters=False", **late),
        "zero_grad": Scene("zero_grad", hole, zero_grad, verdict="HOST",
                           advice="set_to_none", evidence="40 fill kernels"),
        "optimizer_loop": Scene("optimizer_loop", 3250, optimizer_loop, verdict="HOST",
                                advice="foreach=True", evidence="51 kernels"),
        "optimizer_host": Scene("optimizer_host", hole - 10, optimizer_host, verdict="HOST",
                                advice="fused=True"),
        "host_sync": Scene("host_sync", host, waits(call="cudaStreamSynchronize", begin=3500),
                           verdict="SYNC", advice="synchronization", **late),
        "host_sync by item": Scene("host_sync", host, item, verdict="SYNC", advice=".item()",
                                   evidence="aten::item", **late),
        "host_sync of all": Scene("host_sync", host, waits(
            call="cudaDeviceSynchronize", begin=3500), verdict="SYNC",
            advice="torch.cuda.synchronize()", **late),
        "blocking_copy": Scene("blocking_copy", host - 10, blocking_copy, verdict="COPY",
                               advice="non_blocking=True", **late),
        "compile of torch.compile": Scene("compile", host, waits(
            "_compile.compile_inner (dynamo_timed)"), verdict="COMPILE", advice="mark_dynamic",
            **late),
        "compile in a function": Scene("compile", host, waits(
            "torch/_dynamo/convert_frame.py(7): __call__", "python_function"), verdict="COMPILE",
            advice="mark_dynamic", **late),
        "checkpoint in a function": Scene("checkpoint", host, waits(
            "torch/serialization.py(945): save", "python_function"), verdict="HOST",
            advice="asynchronously", **late),
        "compile": Scene("compile", host, waits(call="cuModuleLoadData"), verdict="COMPILE",
                         advice="mark_dynamic", **late),
        # each step launches a kernel that no other does; nobody has marked the steps
        "compile at a first use": Scene(
            "compile", 3 * 3995, lambda run, at: run.kernel(
                f"of_step_{at // STEP}", at + 7999, at + 8000, launch=(at + 3990, at + 7995)),
            verdict="COMPILE", is_marked=False,
            advice="record later steps", evidence="First use loads code",
            unsaid=("mark_dynamic",)),
        "a first use and launches as long": Scene(
            "long_launches", 2 * 3995, lambda run, at: run.kernel(
                "of_each_step", at + 7999, at + 8000, launch=(at + 3990, at + 7995)),
            ("compile",), verdict="HOST", is_marked=False),
        "compile at the first stream": Scene(
            "compile", 3 * host, waits(call="cudaStreamCreateWithFlags"),
            verdict="COMPILE", is_marked=False, advice="record later steps", **late),
        "compile where a library starts": Scene(
            "compile", 60000, None, verdict="COMPILE", is_marked=False, hole=(0, 0),
            setup=library_start, advice="record later steps", unsaid=("empty_cache",)),
        "allocator": Scene("allocator", host, waits(call="cudaMalloc"), verdict="HOST",
                           advice="empty_cache()", evidence="cudaMalloc", **late),
        "allocator at a first use": Scene(
            "allocator", 1000, None, ("dispatch", *COMPUTE), first=False, hole=(0, 0), lead=4000,
            setup=lambda run: run.call("cudaFree", 0, 3000), advice="this happens once",
            evidence="cudaFree", unsaid=("empty_cache",)),
        "checkpoint": Scene("checkpoint", host, waits("save_checkpoint"), verdict="HOST",
                            advice="asynchronously", **late),
        "validation": Scene("validation", host, waits("validation"), verdict="HOST",
                            advice="less often", **late),
        "loop_overhead": Scene("loop_overhead", host + FIRST["host:other"], None, verdict="HOST", advice="with_stack",
                               unsaid=("trace_python", "logging", "every N steps"), **late),
        "loop_overhead of logging": Scene(
            "loop_overhead", host + FIRST["host:other"], waits(
                "run.py(9): log_metrics", "python_function"), verdict="HOST",
            advice="every N steps", evidence="log_metrics", **late),
        "loop_overhead of something else": Scene(
            "loop_overhead", host + FIRST["host:other"], waits(
                "run.py(9): reorder", "python_function"), verdict="HOST",
            advice="shorten it", evidence="reorder", unsaid=("every N steps",), **late),
        "launch_bound in no phase": Scene(
            "launch_bound", hole - 40 * 15 + FIRST["launch"] + FIRST["host:other"],
            in_no_phase, verdict="HOST", advice="CUDA graphs", evidence="between launches",
            unsaid=("with_stack",)),
        "profiler": Scene("profiler", host, profiler, verdict="NO VERDICT", advice="record_shapes",
                          unsaid=("--kinds",), **late),
        "exposed_comm": Scene("exposed_comm", hole, in_training(computes(
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "ncclDevKernel_AllReduce_Sum_f32_TREE_LL")),
            verdict="COMM", advice="no_sync()", evidence="none of it is hidden by compute"),
        "exposed_comm of inference": Scene("exposed_comm", hole, computes(
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"), verdict="COMM",
            advice="larger batch", evidence="1 communication kernel a step"),
        "exposed_comm of all-to-all": Scene("exposed_comm", hole, in_training(
            communicates("all_to_allv")), verdict="COMM", evidence="4.0 ms, is all_to_all",
            advice="balance what the ranks send", unsaid=("no_sync", "bucket")),
        "exposed_comm of experts": Scene("exposed_comm", hole, in_training(computes(
            "void deep_ep::internode::dispatch<false, 4>(int)")), verdict="COMM",
            advice="balance the experts", unsaid=("no_sync", "bucket")),
        "exposed_comm of FSDP": Scene("exposed_comm", hole, in_training(in_range(
            "FSDP::pre_forward", communicates("_allgather_base", "ncclDevKernel_AllGather"))),
            verdict="COMM", advice="reshard_after_forward", unsaid=("no_sync", "bucket")),
        "exposed_comm of a pipeline": Scene("exposed_comm", hole, in_training(
            computes("ncclDevKernel_SendRecv")), verdict="COMM", advice="micro-batches", unsaid=("no_sync",)),
        # 8 MiB in 4 ms are 2.1 GB/s, times 2 * 7 / 8 on the bus
        "slow_link": Scene("slow_link", hole * (1 - 8 * 1.048576 / 4 * 7 / 4 / 450), in_training(
            communicates("allreduce", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 2 << 20)),
            ("exposed_comm",), first=False, verdict="COMM", gpu="NVIDIA H100 80GB HBM3",
            advice="NCCL_DEBUG", evidence="at least 3.7 GB/s, but the GPU's links carry 450"),
        "small_collectives": Scene("small_collectives", hole, in_training(computes(
            *["ncclDevKernel_AllReduce_Sum_bf16_RING_LL"] * 100)), ("exposed_comm", "short_kernels"), first=False,
            verdict="COMM", advice="bucket_cap_mb", evidence="100 of 100"),
        "pageable_copy": Scene("pageable_copy", hole, copies("Memcpy HtoD (Pageable -> Device)"),
                               verdict="COPY", advice="pin_memory=True",
                               evidence="1 copy a step, 8.0 MiB, "),
        "exposed_upload": Scene("exposed_upload", hole, copies("Memcpy HtoD (Pinned -> Device)"),
                                verdict="COPY", advice="prefetch"),
        "exposed_upload of parameters": Scene(
            "exposed_upload", hole, in_range("FSDP::pre_forward", lambda run, at: run.copy(
                "Memcpy HtoD (Pinned -> Device)", at + 4000, at + 8000, 1 << 30)),
            verdict="COPY", advice="FSDP offloads parameters", evidence="FSDP offload",
            unsaid=("next batch",)),
        "exposed_upload beside FSDP": Scene(
            "exposed_upload", hole, lambda run, at: (
                run.host("FSDP::pre_forward", at + 3100, at + 3500),
                run.copy("Memcpy HtoD (Pinned -> Device)", at + 4000, at + 8000, 1 << 30)),
            verdict="COPY", advice="prefetch", unsaid=("offload",)),
        "exposed_upload in an operator of FSDP": Scene(
            "exposed_upload", hole, lambda run, at: (
                run.host("FSDP::pre_forward", at + 2500, at + 3500),
                run.op("aten::copy_", at + 2900, at + 3100),
                run.copy("Memcpy HtoD (Pinned -> Device)", at + 4000, at + 8000, 1 << 30)),
            verdict="COPY", advice="FSDP offloads parameters"),
        "exposed_download": Scene("exposed_download", hole,
                                  copies("Memcpy DtoH (Device -> Pinned)"), verdict="COPY",
                                  advice="every N steps"),
        "device_copy": Scene("device_copy", hole, copies("Memcpy DtoD (Device -> Device)"),
                             verdict="COPY", advice=".contiguous()", unsaid=("gradient",)),
        "peer_copy": Scene("peer_copy", hole, copies("Memcpy PtoP (Device -> Device)"),
                           verdict="COPY", advice="collectives"),
        "memset_fill": Scene("memset_fill", hole, lambda run, at: run.work(
            "gpu_memset", "Memset (Device)", at + 4000, at + 8000, call="cudaMemsetAsync",
            bytes=1 << 20), verdict="COPY", advice="torch.empty", evidence="1 fill of"),
        "fp32_gemm": Scene("fp32_gemm", hole, computes(SGEMM, SGEMM),
                           advice="set_float32_matmul_precision", evidence="2 matrix kernels"),
        "fp32_gemm of an A100": Scene("fp32_gemm", hole * 15 / 16, computes(SGEMM),
                                      gpu="NVIDIA A100-SXM4-80GB", advice="bfloat16",
                                      evidence="up to 16 times as fast on this GPU, so at most 94 % of"),
        "fp32_gemm of an A10G": Scene("fp32_gemm", hole * (1 - 31.2 / 70), computes(SGEMM), gpu="NVIDIA A10G",
                                      advice="bfloat16", evidence="at most 55 % of"),
        "fp32_gemm of a V100": Scene("fp32_gemm", hole * (1 - 15.7 / 125), computes("volta_sgemm_128x64_nn"),
                                     gpu="Tesla V100-SXM2-16GB", advice="no TF32"),
        "fp32_gemm of a GPU without a name": Scene(
            "fp32_gemm", hole * 7 / 8, computes("volta_sgemm_128x64_nn"), gpu="",
            advice="no TF32", evidence="at most 88 % of"),
        "fp32_conv": Scene("fp32_conv", hole, computes(
            "void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>(int)",
            "turing_scudnn_128x128_stridedB_splitK_small_nn_v1"), advice="cudnn.benchmark=True"),
        "fp8": Scene("fp8", hole / 2, computes(
            "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_cublas"),
            gpu="NVIDIA H100 80GB HBM3", advice="FP8"),
        "fp8 of TF32": Scene("fp8", hole * 3 / 4, computes(
            "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_cublas"),
            gpu="NVIDIA H200", advice="FP8", evidence="3/4 of the 4.0 ms in TF32"),
        "fp8 of an L4": Scene("fp8", hole / 2, computes(
            "sm89_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_cublas"),
            gpu="NVIDIA L4", advice="FP8"),
        "unfused_attention": Scene("unfused_attention", hole, attention,
                                   evidence="1 product (2.0 ms)",
                                   advice="scaled_dot_product_attention"),
        "softmax of something else": Scene("slow_kernels", (3 * STEP - 10) / 9,
                                           computes(SOFTMAX)),
        "misaligned_gemm": Scene("misaligned_gemm", hole, computes(
            "cutlass_80_tensorop_bf16_s16816gemm_bf16_64x64_32x6_tn_align1"),
            gpu="NVIDIA H100 80GB HBM3", advice="multiples of 8", unsaid=("FP8 for",)),
        "misaligned_gemm by shapes": Scene(
            "misaligned_gemm", hole, multiplies([[512, 1024], [1024, 50257]]),
            gpu="NVIDIA H100 80GB HBM3", advice="multiples of 8", unsaid=("FP8 for",)),
        "misaligned_gemm inside": Scene(
            "misaligned_gemm", hole, multiplies([[512, 1023], [1023, 1024]]),
            gpu="NVIDIA H100 80GB HBM3", advice="multiples of 8"),
        "misaligned_gemm by strides": Scene(
            "misaligned_gemm", hole, multiplies([[512, 1024], [1024, 1024]],
                                                strides=[[1025, 1], [1024, 1]]),
            gpu="NVIDIA H100 80GB HBM3", advice="multiples of 8"),
        "an odd number of rows": Scene(
            "fp8", hole / 2, multiplies([[511, 1024], [1024, 1024]]), gpu="NVIDIA H100 80GB HBM3"),
        "an odd sum that lies well": Scene(
            "fp8", hole / 2, multiplies([[512, 1023], [1023, 1024]],
                                        strides=[[1, 512], [1024, 1]]),
            gpu="NVIDIA H100 80GB HBM3"),
        "a product with a vector": Scene(
            "fp8", hole / 2, multiplies([[512, 1024], [1024, 1]]), gpu="NVIDIA H100 80GB HBM3"),
        "odd sizes of 32 bits": Scene(
            "fp8", hole / 2, multiplies([[512, 1023], [1023, 1023]], kind="float"),
            gpu="NVIDIA H100 80GB HBM3"),
        "aligned to 16": Scene("fp8", hole / 2, computes(
            "cutlass_80_tensorop_bf16_s16816gemm_bf16_64x64_32x6_tn_align16"),
            gpu="NVIDIA H100 80GB HBM3"),
        "layout": Scene("layout", hole, computes("void cudnn::ops::nchwToNhwcKernel<float>(int)"),
                        advice="channels_last"),
        "short_kernels": Scene("short_kernels", hole, computes(*["tiny_a", "tiny_b"] * 400),
                               advice="torch.compile", evidence="800 of 806 kernels"),
        "elementwise": Scene("elementwise", hole, computes(*[ADD] * 4), advice="torch.compile",
                             evidence="4 kernels a step"),
        "one_kernel": Scene("one_kernel", 5000, lambda run, at: run.kernel(
            "my_scan", at + 3000, at + 8000), hole=(3000, 8000), evidence="50 %",
            advice="tune or replace"),
        "stream_wait": Scene("stream_wait", host, stream_wait, verdict="HOST",
                             advice="cross-stream"),
        "dispatch": Scene("dispatch", hole - 400 + FIRST["dispatch"], dispatch, verdict="HOST",
                          advice="launch further"),
        "graph_gaps": Scene("graph_gaps", hole - 200, graph_gaps, verdict="HOST", advice="nodes"),
        "slow_steps": Scene("slow_steps", STEP / 6, None, COMPUTE, first=False, steps=5, hole=(0, 0), setup=slow_step,
                            evidence="1 of 6 steps takes", advice="--report slow"),
        "late_start": Scene("late_start", 2000, None, COMPUTE, first=False, hole=(0, 0),
                            before=warm_up, evidence="2.0 ms of the window's 12.0 ms", advice="warm up"),
        # the host would win, were it about steps
        "late_start of a program": Scene(
            "late_start", 25010, None, COMPUTE, first=False, hole=(0, 0), is_marked=False,
            before=lambda run: run.host("load the data", 0, 25000) or 25000),
        "late_start without marks": Scene(
            "late_start", 5000, None, COMPUTE, first=False, hole=(0, 0), lead=5000,
            is_marked=False, setup=lambda run: run.host("prepare", 0, 4000), advice="warm up"),
        "work before the file begins": Scene(
            "slow_kernels", 24000 / 3, lambda run, at: at or run.kernel(
                "of_long_ago", 6000, 7000, launch=(10, 15)), hole=(0, 0), lead=7000,
            is_marked=False),
        "a late start in a step": Scene("loop_overhead", 5000 / 3, None,
                                        ("dispatch", *COMPUTE), first=False, hole=(0, 0),
                                        lead=6000),
        "pauses between steps": Scene(
            "loop_overhead", 2 * (PAUSE - 1000) / 3 + FIRST["host:other"], None, ("dispatch",),
            hole=(0, 0), pause=PAUSE, verdict="HOST"),
        "a pause before the first work": Scene(
            "loop_overhead", STEP, None, ("dispatch",), hole=(0, 0),   # no more than a step
            lead=STEP, pause=PAUSE, verdict="HOST", evidence="outside any phase"),
        "a pause behind the last work": Scene(
            "loop_overhead", STEP, None, ("dispatch",), hole=(0, 0),
            pause=PAUSE, verdict="HOST", last_is_idle=True),
        "imbalance": Scene("imbalance", 500, None, COMPUTE, first=False, ranks=2,
                           rank_build=unequal, hole=(4000, 6000), evidence="tile_e",
                           advice="balance the work"),
        "straggler": Scene("straggler", 3000, None, ("exposed_comm",), ranks=2,
                           rank_build=late_rank, verdict="UNBALANCED", also="COMPUTE",
                           advice="that rank's work", evidence="Rank 1 comes last in 3 of 3"),
        "memory_leak": Scene("memory_leak", 0, leak, COMPUTE, steps=24, hole=(0, 0), first=False,
                             evidence="8.0 MiB", advice="detach()"),
        "fragmentation": Scene("fragmentation", 0, reserved, COMPUTE, hole=(0, 0), first=False,
                               evidence="8.00 GiB", advice="expandable_segments"),
        "headroom": Scene("headroom", 0, small_peak, ("launch_bound",), first=False,
                          hole=(4000, 7000), verdict="HOST", evidence="1.00 of", advice="larger batch", **late),
        "slow_kernels": Scene("slow_kernels", (3 * STEP - 10) / 9, None, hole=(0, 0),
                              evidence="30 % of the time, is tile_b", advice="Nsight Compute"),
        "input beside compute": Scene("data_wait", 3000 - LATE, waits(LOADER, end=7000),
                                      verdict="INPUT", hole=(4000, 7000), launched_late=True),
        "compute and input": Scene("slow_kernels", (24000 - 2010) / 9, waits(LOADER, end=6000),
                                   ("data_wait", "dispatch", "loop_overhead"), also="INPUT",
                                      hole=(4000, 6000), lead=2010,
                                   launched_late=True),
    }
    return made


def traces(scene):
    """One trace for each rank."""
    made = []
    for rank in range(scene.ranks):
        run = Run(scene, rank)
        begin = scene.before(run) if scene.before else 0
        for number in range(1, scene.steps + 1):
            run.step(number, begin + (number - 1) * (STEP + scene.pause))
        if callable(scene.setup):
            scene.setup(run)
        made.append(run.trace())
    return made


def start_only():
    """A program that has just begun."""
    run = Run(Scene(None, 0, None))
    run.call("cudaFree", 0, 100000)
    run.copy("Memcpy HtoD (Pinned -> Device)", 100100, 100400, 1 << 20)
    return run.trace()


def start_that_copies():
    """A program that fills its memory before its first work, and then has little of it."""
    run = Run(Scene(None, 0, None))
    run.call("cudaMemcpy", 0, 100000)
    for at in range(100200, 101200, 100):
        run.kernel("sum", at, at + 50, launch=(at - 60, at - 50))
    return run.trace()


def cpu_only():
    run = Run(Scene(None, 0, None))
    run.host("ProfilerStep#1", 0, STEP)
    run.op("aten::mm", 100, 200)
    return run.trace()


def unrecorded_gpu():
    """Launches, and none of their work."""
    run = Run(Scene(None, 0, None))
    run.host("ProfilerStep#1", 0, STEP)
    for at in range(100, 1300):
        run.call("cudaLaunchKernel", at, at + 0.5)
    return run.trace()


def sampled(ranks=1, build=None):
    """Few of many correlation ids: what is not there may have been."""
    made = []
    for trace in traces(Scene(None, 0, None, ranks=ranks, rank_build=build)):
        for row in trace["traceEvents"]:
            if "correlation" in row["args"]:
                row["args"]["correlation"] *= 1000
        made.append(trace)
    return made


def write(path, trace):
    with open(path, "w", encoding="utf-8") as stream:
        json.dump(trace, stream)
