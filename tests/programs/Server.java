// Short tasks of an executor, for half a minute. Makes the file `ready` when its methods were compiled.
// Build: javac Server.java; run: java -cp . Server. Not inlined, its methods have samples of their own:
// -XX:CompileCommand=dontinline,Server*::*
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

public class Server {
    static long busy(int n) {
        long sum = 0;
        for (int i = 0; i < n; i++) sum += i % 7 * sum + i;
        return sum;
    }

    static long work() {
        long sum = 0;
        for (int i = 0; i < 50; i++) sum += busy(300);
        return sum;
    }

    public static void main(String[] words) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(1);
        long began = System.currentTimeMillis(), sum = 0;
        boolean isWarm = false;
        while (System.currentTimeMillis() < began + 30000) {
            sum += pool.submit(Server::work).get();
            if (!isWarm && System.currentTimeMillis() > began + 3000) {
                isWarm = new java.io.File("ready").createNewFile();
            }
        }
        System.out.println(sum);
        pool.shutdown();
    }
}
