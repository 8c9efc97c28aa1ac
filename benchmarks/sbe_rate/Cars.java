import cars.CarDecoder;
import cars.CarEncoder;
import cars.EngineDecoder;
import cars.EngineEncoder;
import cars.ExtrasEncoder;
import cars.MessageHeaderDecoder;
import cars.MessageHeaderEncoder;
import cars.Model;
import java.nio.charset.StandardCharsets;
import org.agrona.DirectBuffer;
import org.agrona.concurrent.UnsafeBuffer;

/** A car with three fuel figures, two performances of three accelerations each, and two texts. */
final class Cars implements SbeRate.Works<Cars.Car> {
    private final MessageHeaderDecoder headerDecoder = new MessageHeaderDecoder();
    private final MessageHeaderEncoder headerEncoder = new MessageHeaderEncoder();
    private final CarDecoder decoder = new CarDecoder();
    private final CarEncoder encoder = new CarEncoder();

    /** Texts are views of the message's bytes; an absent year is the null value. */
    static final class Car {
        long serial;
        int year;
        byte model;
        final byte[] code = new byte[6];
        short extras;
        int capacity;
        short engineExtras;
        final Fuel[] fuel = {new Fuel(), new Fuel(), new Fuel()};
        final Performance[] performance = {new Performance(), new Performance()};
        DirectBuffer manufacturer = new UnsafeBuffer(0, 0);
        DirectBuffer modelName = new UnsafeBuffer(0, 0);
    }

    static final class Fuel {
        int speed;
        DirectBuffer usage = new UnsafeBuffer(0, 0);
    }

    static final class Performance {
        short octane;
        final int[] mph = new int[3];
        final float[] seconds = new float[3];
    }

    @Override
    public String name() {
        return "car";
    }

    @Override
    public Car empty() {
        return new Car();
    }

    @Override
    public Car sample() {
        Car car = new Car();
        car.serial = 1234;
        car.year = 2013;
        car.model = 'A';
        System.arraycopy("abcdef".getBytes(StandardCharsets.US_ASCII), 0, car.code, 0, 6);
        car.extras = 6;
        car.capacity = 2000;
        car.engineExtras = 1;
        String[] usages = {"Urban Cycle", "Combined Cycle", "Highway Cycle"};
        int[] speeds = {30, 55, 75};
        for (int at = 0; at < 3; at++) {
            car.fuel[at].speed = speeds[at];
            car.fuel[at].usage = text(usages[at]);
        }
        fill(car.performance[0], 95, 4.0f, 7.5f, 12.2f);
        fill(car.performance[1], 99, 3.8f, 7.1f, 11.8f);
        car.manufacturer = text("Honda");
        car.modelName = text("Civic VTi");
        return car;
    }

    private static DirectBuffer text(String text) {
        return new UnsafeBuffer(text.getBytes(StandardCharsets.UTF_8));
    }

    private static void fill(Performance to, int octane, float... seconds) {
        to.octane = (short)octane;
        System.arraycopy(new int[] {30, 60, 100}, 0, to.mph, 0, 3);
        System.arraycopy(seconds, 0, to.seconds, 0, 3);
    }

    @Override
    public void decode(UnsafeBuffer from, Car to) {
        CarDecoder car = decoder.wrapAndApplyHeader(from, 0, headerDecoder);
        EngineDecoder engine = car.engine();
        to.serial = car.serial();
        to.year = car.year();
        to.model = car.modelRaw();
        car.getCode(to.code, 0);
        to.extras = car.extras().getRaw();
        to.capacity = engine.capacity();
        to.engineExtras = engine.extras().getRaw();
        CarDecoder.FuelDecoder fuels = car.fuel();
        for (int at = 0; fuels.hasNext(); at++) {
            CarDecoder.FuelDecoder fuel = fuels.next();
            to.fuel[at].speed = fuel.speed();
            fuel.wrapUsage(to.fuel[at].usage);
        }
        CarDecoder.PerformanceDecoder performances = car.performance();
        for (int at = 0; performances.hasNext(); at++) {
            decode(performances.next(), to.performance[at]);
        }
        car.wrapManufacturer(to.manufacturer);
        car.wrapModel_name(to.modelName);
    }

    private static void decode(CarDecoder.PerformanceDecoder from, Performance to) {
        to.octane = from.octane();
        CarDecoder.PerformanceDecoder.AccelerationDecoder accelerations = from.acceleration();
        for (int at = 0; accelerations.hasNext(); at++) {
            accelerations.next();
            to.mph[at] = accelerations.mph();
            to.seconds[at] = accelerations.seconds();
        }
    }

    @Override
    public int encode(Car from, UnsafeBuffer to) {
        CarEncoder car = encoder.wrapAndApplyHeader(to, 0, headerEncoder);
        car.serial(from.serial).year(from.year).model(Model.get(from.model)).putCode(from.code, 0);
        put(from.extras, car.extras());
        EngineEncoder engine = car.engine().capacity(from.capacity);
        put(from.engineExtras, engine.extras());
        CarEncoder.FuelEncoder fuels = car.fuelCount(from.fuel.length);
        for (Fuel fuel : from.fuel) {
            fuels.next().speed(fuel.speed).putUsage(fuel.usage, 0, fuel.usage.capacity());
        }
        CarEncoder.PerformanceEncoder performances = car.performanceCount(from.performance.length);
        for (Performance performance : from.performance) {
            encode(performance, performances.next());
        }
        car.putManufacturer(from.manufacturer, 0, from.manufacturer.capacity());
        car.putModel_name(from.modelName, 0, from.modelName.capacity());
        return MessageHeaderEncoder.ENCODED_LENGTH + car.encodedLength();
    }

    private static void put(short extras, ExtrasEncoder to) {
        to.clear().roof((extras & 1) != 0).sport((extras & 2) != 0).cruise((extras & 4) != 0);
    }

    private static void encode(Performance from, CarEncoder.PerformanceEncoder to) {
        CarEncoder.PerformanceEncoder.AccelerationEncoder accelerations =
            to.octane(from.octane).accelerationCount(from.mph.length);
        for (int at = 0; at < from.mph.length; at++) {
            accelerations.next().mph(from.mph[at]).seconds(from.seconds[at]);
        }
    }

    @Override
    public void decodeAll(UnsafeBuffer from, Car to, int messages) {
        for (int n = 0; n < messages; n++) {
            decode(SbeRate.opaque(from), to);
            SbeRate.publish(to);
        }
    }

    @Override
    public void encodeAll(Car from, UnsafeBuffer to, int messages) {
        for (int n = 0; n < messages; n++) {
            encode(SbeRate.opaque(from), to);
            SbeRate.publish(to);
        }
    }
}
