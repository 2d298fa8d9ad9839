// SPDX-License-Identifier: Apache-2.0
// What a program in Java sees.
public class Lang {
	public static void main(String[] words) throws Exception {
		String act = words[0];
		if (act.equals("exit"))
			System.exit(7);
		if (act.equals("child")) {
			System.out.println(new ProcessBuilder("sh", "-c", "exit 4").start().waitFor());
			return;
		}
		if (act.equals("count"))
			Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook")));
		System.out.println("ready");
		System.out.flush();
		Thread.sleep(4000);
		System.exit(77);
	}
}
