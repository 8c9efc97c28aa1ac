import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Image;
import io.aeron.Publication;
import io.aeron.Subscription;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ThreadingMode;
import io.aeron.logbuffer.FragmentHandler;
import java.io.File;
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.agrona.IoUtil;
import org.agrona.concurrent.SleepingIdleStrategy;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Aeron's IPC for the benchmark `rings`: one of two processes, whose works are those of rings_floor.c. The one that
 * publishes has the media driver, and prints a line for each stretch: the number of the work, then nanoseconds of the
 * median and of the 99th percentile for a round trip, else millions of messages a second.
 *
 *     AeronIpc publish|subscribe AERON_FOLDER KIND:PAYLOAD_BYTES:COUNT:STRETCHES:WARM_UPS...
 *
 * Both end when their standard input does.
 */
public final class AeronIpc implements AutoCloseable {
    private static final int BATCH = 64;
    private static final int LENGTH_MAX = 4096;
    private static final int SIGNAL_LENGTH = 16;
    private static final String SHORT_TERM = "1m";
    private static final String CHANNEL = "aeron:ipc";
    private static final long CONDUCTOR_SLEEP_NS = TimeUnit.MILLISECONDS.toNanos(1);
    private static final long PATIENCE_MS = 60_000;

    private final Work work;
    private final ExclusivePublication out;
    private final Subscription subscription;
    private final Image in;
    private final UnsafeBuffer payload = new UnsafeBuffer(new byte[LENGTH_MAX]);
    private final byte[] copy = new byte[LENGTH_MAX];
    private long sum;

    /** Copies the message out, as every reader has to that keeps it. */
    private final FragmentHandler keep = (buffer, offset, length, header) -> {
        buffer.getBytes(offset, copy, 0, length);
        sum += copy[9];
    };

    private record Work(String kind, int length, int count, int stretches, int warmUps) {
        static Work of(String text) {
            String[] words = text.split(":");
            return new Work(
                words[0],
                Integer.parseInt(words[1]),
                Integer.parseInt(words[2]),
                Integer.parseInt(words[3]),
                Integer.parseInt(words[4]));
        }

        boolean isRoundTrip() {
            return kind.equals("round_trip");
        }

        /** Messages that the reader asks for at once. */
        int limit() {
            return kind.equals("batched") ? BATCH : 1;
        }

        /**
         * The length that was quickest for each: a writer may be half a term ahead and is told of room by a thread that
         * sleeps, so that a quick one needs a long term; a short one stays in the processor's cache.
         */
        String termLength() {
            return isRoundTrip() ? SHORT_TERM : "64m";
        }
    }

    private AeronIpc(Aeron client, Work work, String termLength, int streamOut, int streamIn) {
        this.work = work;
        payload.setMemory(0, LENGTH_MAX, (byte)1);
        out = client.addExclusivePublication(CHANNEL + "?term-length=" + termLength, streamOut);
        subscription = client.addSubscription(CHANNEL, streamIn);
        while (subscription.imageCount() == 0 || !out.isConnected()) {
            Thread.yield();
        }
        in = subscription.imageAtIndex(0);
    }

    @Override
    public void close() {
        subscription.close();
        out.close();
    }

    public static void main(String[] arguments) {
        boolean isPublisher = arguments[0].equals("publish");
        String folder = arguments[1];
        endWithParent(isPublisher ? folder : null);
        Work[] works = Arrays.stream(arguments).skip(2).map(Work::of).toArray(Work[]::new);
        MediaDriver driver = isPublisher ? MediaDriver.launch(driverIn(folder)) : null;
        Aeron.Context context = new Aeron.Context().aeronDirectoryName(folder).driverTimeoutMs(PATIENCE_MS);
        try (driver; Aeron client = Aeron.connect(context)) {
            for (int index = 0; index < works.length; index++) {
                int there = 2 * index + 1;
                int back = there + 1;
                if (isPublisher) {
                    publish(client, index, works[index], there, back);
                } else {
                    subscribe(client, works[index], back, there);
                }
            }
        }
    }

    private static void publish(Aeron client, int index, Work work, int there, int back) {
        try (AeronIpc ipc = new AeronIpc(client, work, work.termLength(), there, back)) {
            for (int stretch = -work.warmUps; stretch < work.stretches; stretch++) {
                String figures = work.isRoundTrip() ? ipc.roundTrips() : ipc.rate();
                if (stretch >= 0) {
                    System.out.println(index + " " + figures);
                }
            }
        }
    }

    private static void subscribe(Aeron client, Work work, int back, int there) {
        try (AeronIpc ipc = new AeronIpc(client, work, SHORT_TERM, back, there)) {
            for (int stretch = -work.warmUps; stretch < work.stretches; stretch++) {
                if (work.isRoundTrip()) {
                    ipc.sendBack();
                } else {
                    ipc.keepAll();
                }
            }
            if (ipc.sum == 0) {
                throw new IllegalStateException("nothing was read");
            }
        }
    }

    /** All of the driver is one thread, that mostly sleeps: the processor is the publisher's. */
    private static MediaDriver.Context driverIn(String folder) {
        return new MediaDriver.Context()
            .aeronDirectoryName(folder)
            .dirDeleteOnStart(true)
            .dirDeleteOnShutdown(true)
            .threadingMode(ThreadingMode.SHARED)
            .sharedIdleStrategy(new SleepingIdleStrategy(CONDUCTOR_SLEEP_NS))
            .termBufferSparseFile(false);
    }

    /** A process that spins never ends by itself, nor does it remove its files. */
    private static void endWithParent(String folder) {
        Thread watch = new Thread(() -> {
            try {
                while (System.in.read() >= 0) {
                }
            } catch (java.io.IOException error) {
                // As good as the end of the input.
            }
            if (folder != null) {
                IoUtil.delete(new File(folder), true);
            }
            Runtime.getRuntime().halt(3);
        });
        watch.setDaemon(true);
        watch.start();
    }

    private void send(int length) {
        long position;
        while ((position = out.offer(payload, 0, length)) < 0) {
            if (position != Publication.BACK_PRESSURED && position != Publication.ADMIN_ACTION) {
                throw new IllegalStateException("the other process of the measurement ended early: " + position);
            }
        }
    }

    private void receive(int count, int limit) {
        for (int left = count; left > 0; ) {
            int got = in.poll(keep, Math.min(limit, left));
            if (got == 0 && in.isClosed()) {
                throw new IllegalStateException("the other process of the measurement ended early");
            }
            left -= got;
        }
    }

    private String rate() {
        receive(1, 1);
        long start = System.nanoTime();
        for (int n = 0; n < work.count; n++) {
            send(work.length);
        }
        receive(1, 1);
        return String.format(Locale.ROOT, "%.3f", work.count * 1e3 / (System.nanoTime() - start));
    }

    private void keepAll() {
        send(SIGNAL_LENGTH);
        receive(work.count, work.limit());
        send(SIGNAL_LENGTH);
    }

    private String roundTrips() {
        long[] times = new long[work.count];
        for (int n = 0; n < work.count; n++) {
            long start = System.nanoTime();
            send(work.length);
            receive(1, 1);
            times[n] = System.nanoTime() - start;
        }
        Arrays.sort(times);
        return times[work.count / 2] + " " + times[(int)(work.count * 99L / 100)];
    }

    private void sendBack() {
        for (int n = 0; n < work.count; n++) {
            receive(1, 1);
            send(work.length);
        }
    }
}
