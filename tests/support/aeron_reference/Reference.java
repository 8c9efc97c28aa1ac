import io.aeron.logbuffer.LogBufferDescriptor;
import java.io.*;
import java.lang.reflect.*;
import java.util.*;
import org.agrona.concurrent.UnsafeBuffer;

/** Answers lines of commands: frames that Aeron's own flyweights write and read, and its positions. */
public final class Reference {
    public static void main(String[] arguments) throws Exception {
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String answer;
            try {
                answer = answer(line.split("\t", -1));
            } catch (Throwable error) {
                Throwable cause = error instanceof InvocationTargetException ? error.getCause() : error;
                answer = "error " + String.valueOf(cause).replaceAll("\\s", " ");
            }
            System.out.println(answer);
            System.out.flush();
        }
    }

    private static String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "write":
                return written(words);
            case "read":
                return read(words);
            case "position":
                return Long.toString(LogBufferDescriptor.computePosition(
                    Integer.parseInt(words[1]), Integer.parseInt(words[2]), Integer.parseInt(words[3]), Integer.parseInt(words[4])));
            case "term":
                return Integer.toString(LogBufferDescriptor.computeTermIdFromPosition(
                    Long.parseLong(words[1]), Integer.parseInt(words[2]), Integer.parseInt(words[3])));
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    /** write, class, length, then a setter and its value each. */
    private static String written(String[] words) throws Exception {
        byte[] bytes = new byte[Integer.parseInt(words[2])];
        UnsafeBuffer frame = flyweight(words[1], bytes);
        for (int at = 3; at < words.length; at += 2) {
            setter(frame, words[at], words[at + 1]);
        }
        return HexFormat.of().formatHex(bytes);
    }

    /** read, class, bytes, then getters. */
    private static String read(String[] words) throws Exception {
        UnsafeBuffer frame = flyweight(words[1], HexFormat.of().parseHex(words[2]));
        StringJoiner values = new StringJoiner("\t");
        for (int at = 3; at < words.length; at++) {
            values.add(String.valueOf(frame.getClass().getMethod(words[at]).invoke(frame)));
        }
        return values.toString();
    }

    private static UnsafeBuffer flyweight(String name, byte[] bytes) throws Exception {
        UnsafeBuffer frame = (UnsafeBuffer)Class.forName("io.aeron.protocol." + name).getConstructor().newInstance();
        frame.wrap(bytes);
        return frame;
    }

    private static void setter(Object frame, String name, String value) throws Exception {
        for (Method method : frame.getClass().getMethods()) {
            if (method.getName().equals(name) && method.getParameterCount() == 1 && !Modifier.isStatic(method.getModifiers())) {
                method.invoke(frame, parsed(method.getParameterTypes()[0], value));
                return;
            }
        }
        throw new NoSuchMethodException(name);
    }

    private static Object parsed(Class<?> type, String value) {
        if (type == byte[].class) {
            return HexFormat.of().parseHex(value);
        }
        if (type == String.class) {
            return value;
        }
        if (value.equals("null")) {
            return null;
        }
        long number = Long.parseLong(value);
        if (type == int.class) {
            return (int)number;
        }
        if (type == short.class) {
            return (short)number;
        }
        return type == byte.class ? (Object)(byte)number : (Object)number;
    }
}
