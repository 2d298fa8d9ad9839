/* SPDX-License-Identifier: Apache-2.0 */
/* Acts of actor.c, one kind of kernel facility after the other; most end with exact counts of
 * steps. */

/* Continued by its child, which knows nothing of who waits for it. */
static void act_stop_self(int n)
{
	pid_t pid = fork();

	if (pid == 0) {
		sleep_ms(200);
		kill(getppid(), SIGCONT);
		_exit(0);
	}
	events(5);
	raise(SIGSTOP);
	events(5);
	printf("continued, %d\n", wait_for(pid));
}
static void act_filter_raw_fork(int kind)
{
	events(5);
	pid_t pid = (pid_t)syscall(SYS_fork);
	if (pid == 0) {
		forbid_most(kind, 0);
		for (int i = 0; i < 20 && step; i++)
			step();
		syscall(SYS_exit_group, 3);
	}
	printf("child %d\n", wait_for(pid));
	events(5);
}
/* No handler of pthread_atfork() runs for these children. */
static pid_t raw_clone(unsigned long flags)
{
	return (pid_t)syscall(SYS_clone, flags | SIGCHLD, NULL, NULL, NULL, NULL);
}
static volatile bool is_over;
static void *new_names(void *number)
{
	char name[32];

	for (int i = 0; push && !is_over && i < 100000; i++) {
		sprintf(name, "range %d of %d", i, (int)(intptr_t)number);
		push(name);
		pop();
	}
	return NULL;
}
/* Forked while other threads hold locks; the children make children, too. */
static void act_raw_storm(int count)
{
	char name[32];
	pthread_t t[3];
	int good = 0;

	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, new_names, (void *)(intptr_t)i);
	for (int i = 0; i < count; i++) {
		pid_t pid = raw_clone(0);
		if (pid == 0) {
			sprintf(name, "child %d", i);
			for (int k = 0; k < 5 && step; k++) {
				step();
				push(name);
				pop();
			}
			if (i % 4 == 0 && raw_clone(0) == 0)
				events(5);
			syscall(SYS_exit_group, 0);
		}
		good += wait_for(pid) == 0;
	}
	is_over = true;
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	printf("%d ended\n", good);
	sleep_ms(200); /* the children's children */
}
static int vm_child(void *arg)
{
	syscall(SYS_getpid);
	syscall(SYS_exit, 7);
	return 0;
}
/* Children with the memory of the parent, on a stack of their own, which goes on as if none had
 * been. */
static void act_shares_memory(int n)
{
	static char stack[65536];
	int status;

	for (int i = 0; i < 10; i++) {
		events(1);
		pid_t pid = clone(vm_child, stack + sizeof(stack),
				  CLONE_VM | (i % 2 ? CLONE_VFORK : 0) | SIGCHLD, NULL);
		waitpid(pid, &status, 0);
		printf("%d ", WEXITSTATUS(status));
	}
	puts("");
}
static void *five_steps(void *barrier)
{
	events(5);
	if (barrier)
		pthread_barrier_wait(barrier);
	return NULL;
}
/* One after the other, or all at once. */
static void crowd(int count, pthread_barrier_t *barrier, size_t stack)
{
	pthread_t t[1000];
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, stack);
	for (int i = 0; i < count; i++)
		if (pthread_create(&t[i], &attr, five_steps, barrier) != 0)
			_exit(98);
	for (int i = 0; i < count; i++)
		pthread_join(t[i], NULL);
	say("joined\n");
}
static void act_crowd(int count)
{
	crowd(count, NULL, 64 << 10);
}
static void act_crowd_at_once(int count)
{
	pthread_barrier_t barrier;

	pthread_barrier_init(&barrier, NULL, (unsigned)count);
	crowd(count, &barrier, 64 << 10);
	raise(SIGKILL);
}
static void act_small_stacks(int count)
{
	crowd(count, NULL, 16 << 10);
}
static void on_fault(int number)
{
	siglongjmp(back, 1);
}
/* A handler jumps out of the middle of a call of the library's. */
static void act_bad_pointer(int n)
{
	char name[32];

	signal(SIGSEGV, on_fault);
	for (volatile int i = 0; i < 20; i++) {
		if (!sigsetjmp(back, 1) && push)
			push((const char *)8);
		sprintf(name, "range %d", i);
		if (step) {
			step();
			push(name);
			pop();
		}
	}
	crowd(10, NULL, 64 << 10);
}
static void act_namespace(int flags)
{
	events(5);
	printf("unshare %d\n", unshare(flags));
	pid_t pid = fork();
	if (pid == 0) {
		events(5);
		_exit(4);
	}
	printf("child %d\n", wait_for(pid));
}
static void act_close_range(int n)
{
	events(5);
	for (int fd = 3; fd < 1000; fd++)
		dup2(1, fd);
	events(5);
	syscall(SYS_close_range, 3, ~0u, 2 /* in a table of its own */);
	act_fork(5);
}
static void act_traced(int n)
{
	int status;

	events(5);
	pid_t pid = fork();
	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		raise(SIGSTOP);
		events(5);
		_exit(9);
	}
	waitpid(pid, &status, 0);
	do
		ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
	printf("child %d\n", WEXITSTATUS(status));
}
static void step_once(void)
{
	if (step)
		step();
}
static void act_atfork(int n)
{
	pthread_atfork(step_once, step_once, step_once);
	act_fork(5);
}
static pthread_key_t key;
static void on_end(void *round)
{
	step_once();
	if ((intptr_t)round < 4)
		pthread_setspecific(key, (char *)round + 1);
}
static void *keep_key(void *arg)
{
	step_once();
	pthread_setspecific(key, (void *)1);
	return NULL;
}
/* Steps of destructors, which come after the library's own. */
static void act_thread_end(int n)
{
	pthread_t t;

	pthread_key_create(&key, on_end);
	pthread_create(&t, NULL, keep_key, NULL);
	pthread_join(t, NULL);
}
static void act_fork_storm(int count)
{
	int good = 0;

	for (int i = 0; i < count; i++)
		if (fork() == 0) {
			step_once();
			raise(SIGKILL);
		}
	while (wait(NULL) > 0)
		good++;
	printf("%d\n", good);
	raise(SIGKILL);
}
static void act_exec_again(int left)
{
	char text[16];

	step_once();
	sprintf(text, "%d", left - 1);
	if (left)
		execl("/proc/self/exe", "actor", "exec_again", text, NULL);
}
static void act_kill_group(int number)
{
	signal(number, count);
	events(5);
	kill(0, number);
	sleep_ms(100);
	printf("came %d times\n", counts[number]);
}
