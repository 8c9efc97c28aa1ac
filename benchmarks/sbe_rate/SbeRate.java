import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.StringJoiner;
import java.util.stream.Collectors;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * How long does a message take by the Java that the reference tool generates? Prints two JSON objects, a line each: the
 * bytes of each message, so that others can be compared; then nanoseconds a message, one number a round, the ways in turns.
 *
 *     SbeRate ROUNDS MESSAGES
 *
 * As in the example codec_rate of the codec crate, every way of decoding fills one object, every way of encoding starts
 * from it. Nothing can be left out or moved out of a loop by the compiler: what a call made is published by a release
 * store, which costs no instruction on x86-64, and what it reads comes from an acquire load.
 */
public final class SbeRate {
    private static final int LENGTH_MAX = 512;
    private static final int WARM_UPS = 60;
    private static final int WARM_UP_MESSAGES = 20_000;
    private static final VarHandle PUBLISHED;
    private static final VarHandle INPUT;
    private static Object published;
    private static Object input;

    static {
        try {
            PUBLISHED = MethodHandles.lookup().findStaticVarHandle(SbeRate.class, "published", Object.class);
            INPUT = MethodHandles.lookup().findStaticVarHandle(SbeRate.class, "input", Object.class);
        } catch (ReflectiveOperationException error) {
            throw new ExceptionInInitializerError(error);
        }
    }

    /** One message, and both ways of it. */
    interface Works<T> {
        String name();

        T sample();

        T empty();

        void decode(UnsafeBuffer from, T to);

        /** Returns the length of the message. */
        int encode(T from, UnsafeBuffer to);

        /** Each class has loops of its own, that no other message's calls make slow. */
        void decodeAll(UnsafeBuffer from, T to, int messages);

        void encodeAll(T from, UnsafeBuffer to, int messages);
    }

    private SbeRate() {}

    /** Makes others able to see what was written to a value, so that it has to be written. */
    static void publish(Object value) {
        PUBLISHED.setRelease(value);
    }

    /** Says what is read next, in a way that the compiler does not know. */
    @SuppressWarnings("unchecked")
    static <T> T opaque(T value) {
        Object other = INPUT.getAcquire();
        return other == null ? value : (T)other;
    }

    public static void main(String[] arguments) {
        int rounds = Integer.parseInt(arguments[0]);
        int messages = Integer.parseInt(arguments[1]);
        Map<String, StringJoiner> figures = new LinkedHashMap<>();
        Measured<?> cars = new Measured<>(new Cars(), figures);
        Measured<?> refreshes = new Measured<>(new Refreshes(), figures);
        System.out.println("{" + cars.told() + ", " + refreshes.told() + "}");
        for (int warmUp = 0; warmUp < WARM_UPS; warmUp++) {
            cars.round(WARM_UP_MESSAGES);
            refreshes.round(WARM_UP_MESSAGES);
        }
        figures.clear();
        for (int round = 0; round < rounds; round++) {
            cars.round(messages);
            refreshes.round(messages);
        }
        System.out.println(figures.entrySet().stream()
            .map(figure -> "\"" + figure.getKey() + "\": " + figure.getValue())
            .collect(Collectors.joining(", ", "{", "}")));
    }

    private static final class Measured<T> {
        private final Works<T> works;
        private final Map<String, StringJoiner> figures;
        private final T sample;
        private final UnsafeBuffer bytes;

        Measured(Works<T> works, Map<String, StringJoiner> figures) {
            this.works = works;
            this.figures = figures;
            sample = works.sample();
            UnsafeBuffer to = room();
            bytes = new UnsafeBuffer(to.byteArray(), 0, works.encode(sample, to));
        }

        private static UnsafeBuffer room() {
            return new UnsafeBuffer(new byte[LENGTH_MAX]);
        }

        String told() {
            return "\"" + works.name() + "\": \"" + hex(bytes, bytes.capacity()) + "\"";
        }

        /** Times both ways; what the loops left must be whole. */
        void round(int messages) {
            T decoded = works.empty();
            UnsafeBuffer encoded = room();
            time("decode", messages, () -> works.decodeAll(bytes, decoded, messages));
            time("encode", messages, () -> works.encodeAll(sample, encoded, messages));
            UnsafeBuffer again = room();
            expect(again, works.encode(decoded, again));
            expect(encoded, bytes.capacity());
        }

        private void time(String way, int messages, Runnable loop) {
            long start = System.nanoTime();
            loop.run();
            double takenNs = (double)(System.nanoTime() - start) / messages;
            String name = works.name() + " " + way;
            figures.computeIfAbsent(name, made -> new StringJoiner(", ", "[", "]")).add(Double.toString(takenNs));
        }

        private void expect(UnsafeBuffer message, int length) {
            String expected = hex(bytes, bytes.capacity());
            if (!hex(message, length).equals(expected)) {
                throw new IllegalStateException("expected " + expected + ", it was " + hex(message, length));
            }
        }

        private static String hex(UnsafeBuffer buffer, int length) {
            byte[] bytes = new byte[length];
            buffer.getBytes(0, bytes);
            return HexFormat.of().formatHex(bytes);
        }
    }
}
