// Methods that are hot enough to be compiled, also one that calls itself, for so many milliseconds, or 3000.
// Build: javac Loops.java; run: java -cp . Loops [MS]
import java.util.HashMap;
import java.util.Map;

public class Loops {
    static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

    static int words(int n) {
        Map<String, Integer> seen = new HashMap<>();
        for (int i = 0; i < n; i++) seen.merge(Integer.toString(i % 977), 1, Integer::sum);
        return seen.size();
    }

    public static void main(String[] words) {
        long end = System.currentTimeMillis() + (words.length > 0 ? Long.parseLong(words[0]) : 3000), sum = 0;
        while (System.currentTimeMillis() < end) sum += fib(22) + words(3000);
        System.out.println(sum > 0);
    }
}
