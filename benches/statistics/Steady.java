// Does the same all the time: four methods in a random order, each for its share. Steady SECONDS
import java.util.Arrays;

public class Steady {
    static long sum;
    static final int[] numbers = new int[20_000];
    static final StringBuilder text = new StringBuilder();

    static void sort() {
        for (int i = 0; i < numbers.length; i++) numbers[i] = (i * 7919 + (int) sum) % 10_007;
        Arrays.sort(numbers);
        sum += numbers[7];
    }

    static void add() {
        for (long i = 0; i < 400_000; i++) sum += i * i % 7;
    }

    static void write() {
        text.setLength(0);
        for (int i = 0; i < 20_000; i++) text.append(i % 1000);
        sum += text.length();
    }

    static long fib(int n) {
        return n < 2 ? n : fib(n - 1) + fib(n - 2);
    }

    public static void main(String[] args) {
        long end = System.nanoTime() + (long) (Double.parseDouble(args[0]) * 1e9);
        for (long state = 7; System.nanoTime() < end; ) {
            state = state * 6364136223846793005L + 1442695040888963407L;
            int chance = (int) (state >>> 33) % 100;
            if (chance < 40) sort();
            else if (chance < 70) add();
            else if (chance < 90) write();
            else sum += fib(20);
        }
        System.out.println(sum);
    }
}
