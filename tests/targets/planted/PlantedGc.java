/** PlantedGc gc ill|well SECONDS: a small heap that is nearly full of what lives; well: with room. See planted.h. */
public class PlantedGc {
	static byte[][] kept;

	static void handleRequest(int i) {
		kept[i % kept.length] = new byte[512];
	}

	public static void main(String[] args) {
		boolean ill = args[1].equals("ill");
		kept = new byte[ill ? 85000 : 100][];
		long start = System.nanoTime(), spent = 0;
		int i = 0;
		while (System.nanoTime() - start < Double.parseDouble(args[2]) * 1e9)
			handleRequest(i++);
		for (var b : java.lang.management.ManagementFactory.getGarbageCollectorMXBeans())
			spent += b.getCollectionTime();
		System.out.printf("{\"planted\":\"gc\",\"form\":\"%s\",\"what\":\"wall time in pauses of the collector\",\"share\":%.3f}%n",
			args[1], spent / 1e3 / ((System.nanoTime() - start) / 1e9));
	}
}
