// HoldersMonitor SECONDS DOING WAITERS: one thread holds a Java monitor for 2 ms, the others briefly. DOING
// is burn or sleep. Prints its truth as holders.c does.
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.List;

public class HoldersMonitor {
    static final Object lock = new Object();
    static volatile boolean isOver;
    static final List<long[]> holds = new ArrayList<>();
    static final ThreadMXBean clocks = ManagementFactory.getThreadMXBean();
    static long sink;

    static class Waiter extends Thread {
        final List<long[]> waits = new ArrayList<>();

        Waiter(String name) {
            super(name);
        }

        public void run() {
            while (!isOver) {
                long from = System.nanoTime(), cpu = clocks.getCurrentThreadCpuTime();
                synchronized (lock) {
                    cpu = clocks.getCurrentThreadCpuTime() - cpu;
                    waits.add(new long[] {from, System.nanoTime(), cpu});
                }
                rest(200_000);
            }
        }
    }

    static void rest(long ns) {
        try {
            Thread.sleep(ns / 1_000_000, (int) (ns % 1_000_000));
        } catch (InterruptedException e) {
            throw new RuntimeException(e);
        }
    }

    static void hold(String doing) {
        if (doing.equals("sleep")) {
            rest(2_000_000);
            return;
        }
        for (long until = System.nanoTime() + 2_000_000; System.nanoTime() < until; )
            sink++;
    }

    static void holder(String doing) {
        while (!isOver) {
            synchronized (lock) {
                long from = System.nanoTime();
                hold(doing);
                holds.add(new long[] {from, System.nanoTime()});
            }
            rest(300_000);
        }
    }

    // Without the part in which the waiter spun on a CPU.
    static long overlap(List<long[]> waits) {
        double ns = 0;
        int first = 0;
        for (long[] w : waits) {
            double off = Math.max(0, 1 - (double) w[2] / (w[1] - w[0]));
            while (first < holds.size() && holds.get(first)[1] <= w[0])
                first++;
            for (int k = first; k < holds.size() && holds.get(k)[0] < w[1]; k++)
                ns += off * (Math.min(w[1], holds.get(k)[1]) - Math.max(w[0], holds.get(k)[0]));
        }
        return (long) ns;
    }

    public static void main(String[] args) throws Exception {
        String doing = args[1];
        List<Waiter> waiters = new ArrayList<>();
        Thread holder = new Thread(() -> holder(doing), "holder");
        holder.start();
        for (int i = 0; i < Integer.parseInt(args[2]); i++) {
            waiters.add(new Waiter("waiter-a" + (char) ('a' + i)));
            waiters.get(i).start();
        }
        rest((long) (Double.parseDouble(args[0]) * 1e9));
        isOver = true;
        holder.join();
        StringBuilder waits = new StringBuilder(), blame = new StringBuilder();
        for (Waiter w : waiters) {
            w.join();
            long all = 0, ns = overlap(w.waits);
            for (long[] x : w.waits)
                all += x[1] - x[0];
            String comma = waits.length() > 0 ? "," : "";
            waits.append(String.format("%s{\"waiter\":\"%s\",\"ns\":%d,\"n\":%d}", comma, w.getName(), all, w.waits.size()));
            blame.append(String.format("%s{\"waiter\":\"%s\",\"culprit\":\"holder\",\"doing\":\"%s\",\"ns\":%d},", comma,
                w.getName(), doing.equals("sleep") ? "timedwait" : doing, ns));
            blame.append(String.format("{\"waiter\":\"%s\",\"culprit\":\"\",\"doing\":\"\",\"ns\":%d}", w.getName(), all - ns));
        }
        System.out.println("{\"waits\":[" + waits + "]}");
        System.out.println("{\"blame\":[" + blame + "]}");
    }
}
