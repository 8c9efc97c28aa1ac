import java.io.*;
import java.lang.reflect.*;
import java.math.BigInteger;
import java.net.*;
import java.nio.file.*;
import java.util.*;
import javax.tools.*;
import org.agrona.*;
import org.agrona.concurrent.UnsafeBuffer;
import uk.co.real_logic.sbe.*;
import uk.co.real_logic.sbe.ir.*;
import uk.co.real_logic.sbe.otf.*;
import uk.co.real_logic.sbe.xml.*;

/** Answers lines of commands: verdicts on schemas, messages decoded to lines, messages written by generated encoders. */
public final class Reference {
    private static final Map<String, Ir> SCHEMAS = new HashMap<>();
    private static final Set<String> ASKED = Set.of("verdict", "decode", "generate", "done");
    private static String trouble;
    private static ClassLoader loader;
    private static String javaPackage;
    private static final ArrayDeque<Object> STACK = new ArrayDeque<>();
    private static final UnsafeBuffer BUFFER = new UnsafeBuffer(new byte[1 << 20]);
    private static int headerLength;

    public static void main(String[] arguments) throws Exception {
        System.setProperty("sbe.xinclude.aware", "true");
        PrintStream answers = System.out;
        System.setOut(System.err);
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split("\t", -1);
            String answer;
            try {
                answer = answer(words);
            } catch (Throwable error) {
                Throwable cause = error instanceof InvocationTargetException ? error.getCause() : error;
                answer = "error\t" + String.valueOf(cause).replaceAll("\\s", " ");
            }
            // A command without an answer keeps its trouble for the one that ends the message.
            if (answer != null && answer.startsWith("error") && !ASKED.contains(words[0])) {
                trouble = trouble == null ? answer : trouble;
                answer = null;
            } else if (answer != null && trouble != null) {
                answer = trouble;
                trouble = null;
            }
            if (answer != null) {
                answers.println(answer);
                answers.flush();
            }
        }
    }

    private static String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "verdict": return verdict(words[1]);
            case "decode": return decode(words[1], words[2]);
            case "generate": return generate(words[1], words[2]);
            case "message": return message(words[1]);
            case "done": return done();
            default: put(words); return null;
        }
    }

    private static MessageSchema parsed(String path) throws Exception {
        ParserOptions options =
            ParserOptions.builder().stopOnError(true).suppressOutput(true).xIncludeAware(true).build();
        try (InputStream in = new BufferedInputStream(Files.newInputStream(Paths.get(path)))) {
            org.xml.sax.InputSource source = new org.xml.sax.InputSource(in);
            source.setSystemId(Paths.get(path).toUri().toString());
            return XmlSchemaParser.parse(source, options);
        }
    }

    private static String verdict(String path) {
        try {
            new IrGenerator().generate(parsed(path));
            return "accepted";
        } catch (Throwable error) {
            return "refused\t" + String.valueOf(error.getMessage()).replaceAll("\\s", " ");
        }
    }

    private static Ir ir(String path) throws Exception {
        Ir known = SCHEMAS.get(path);
        if (known == null) {
            known = new IrGenerator().generate(parsed(path));
            SCHEMAS.put(path, known);
        }
        return known;
    }

    /** Every value with its path, one after the other: name=value, in the order of the message. */
    private static String decode(String path, String hex) throws Exception {
        Ir ir = ir(path);
        UnsafeBuffer buffer = new UnsafeBuffer(unhex(hex));
        OtfHeaderDecoder header = new OtfHeaderDecoder(ir.headerStructure());
        int template = header.getTemplateId(buffer, 0);
        StringBuilder out = new StringBuilder("decoded");
        int end = OtfMessageDecoder.decode(
            buffer, header.encodedLength(), header.getSchemaVersion(buffer, 0), header.getBlockLength(buffer, 0),
            ir.getMessage(template), new Lines(out));
        return out + "\tend=" + end;
    }

    private static final class Lines implements TokenListener {
        private final StringBuilder out;

        Lines(StringBuilder out) {
            this.out = out;
        }

        private void add(String name, Object value) {
            out.append('\t').append(name).append('=').append(value);
        }

        private static Object one(DirectBuffer buffer, int index, Encoding encoding) {
            java.nio.ByteOrder order = encoding.byteOrder();
            switch (encoding.primitiveType()) {
                case CHAR: return buffer.getByte(index) & 0xff;
                case INT8: return buffer.getByte(index);
                case UINT8: return buffer.getByte(index) & 0xff;
                case INT16: return buffer.getShort(index, order);
                case UINT16: return buffer.getShort(index, order) & 0xffff;
                case INT32: return buffer.getInt(index, order);
                case UINT32: return buffer.getInt(index, order) & 0xffffffffL;
                case INT64: return buffer.getLong(index, order);
                case UINT64: return Long.toUnsignedString(buffer.getLong(index, order));
                case FLOAT: return Integer.toHexString(Float.floatToIntBits(buffer.getFloat(index, order)));
                default: return Long.toHexString(Double.doubleToLongBits(buffer.getDouble(index, order)));
            }
        }

        /** Inside of a composite the field is the composite; outside the type is named after itself. */
        private int depth;

        private String name(Token field, Token type) {
            return depth > 0 ? type.name() : field.name();
        }

        private static boolean absent(Token field, int version) {
            return field.version() > version;
        }

        public void onEncoding(Token field, DirectBuffer buffer, int index, Token type, int version) {
            Encoding encoding = type.encoding();
            if (field.isConstantEncoding() || type.isConstantEncoding()) {
                return;
            }
            String name = name(field, type);
            if (absent(field, version) || absent(type, version)) {
                add(name, "absent");
                return;
            }
            StringJoiner items = new StringJoiner(",");
            for (int item = 0; item < type.arrayLength(); item++) {
                items.add(String.valueOf(one(buffer, index + item * encoding.primitiveType().size(), encoding)));
            }
            add(name, items);
        }

        public void onEnum(Token field, DirectBuffer buffer, int index, List<Token> tokens, int from, int to, int version) {
            if (!field.isConstantEncoding()) {
                add(name(field, tokens.get(from)), absent(field, version) ? "absent" : one(buffer, index, tokens.get(from + 1).encoding()));
            }
        }

        public void onBitSet(Token field, DirectBuffer buffer, int index, List<Token> tokens, int from, int to, int version) {
            add(name(field, tokens.get(from)), absent(field, version) ? "absent" : one(buffer, index, tokens.get(from + 1).encoding()));
        }

        public void onGroupHeader(Token group, int count) {
            add(group.name(), "group" + count);
        }

        public void onVarData(Token field, DirectBuffer buffer, int index, int length, Token type) {
            byte[] bytes = new byte[length];
            buffer.getBytes(index, bytes);
            add(field.name(), "0x" + hex(bytes, length));
        }

        public void onBeginMessage(Token token) { }
        public void onEndMessage(Token token) { }
        public void onBeginComposite(Token field, List<Token> tokens, int from, int to) { depth++; }
        public void onEndComposite(Token field, List<Token> tokens, int from, int to) { depth--; }
        public void onBeginGroup(Token token, int index, int count) { }
        public void onEndGroup(Token token, int index, int count) { }
    }

    /** Generated encoders of a schema, compiled and loaded. */
    private static String generate(String path, String folder) throws Exception {
        System.setProperty("sbe.output.dir", folder);
        System.setProperty("sbe.target.language", "Java");
        System.setProperty("sbe.validation.stop.on.error", "true");
        SbeTool.main(new String[] {path});
        List<String> options = new ArrayList<>(Arrays.asList("-proc:none", "-nowarn", "-d", folder));
        options.addAll(Arrays.asList("-cp", System.getProperty("java.class.path")));
        try (var walk = Files.walk(Paths.get(folder))) {
            walk.filter(file -> file.toString().endsWith(".java")).forEach(file -> options.add(file.toString()));
        }
        int result = ToolProvider.getSystemJavaCompiler().run(null, System.err, System.err, options.toArray(new String[0]));
        loader = new URLClassLoader(new URL[] {Paths.get(folder).toUri().toURL()}, Reference.class.getClassLoader());
        javaPackage = ir(path).applicableNamespace();
        return result == 0 ? "generated" : "error\tjavac";
    }

    private static String message(String name) throws Exception {
        STACK.clear();
        BUFFER.setMemory(0, BUFFER.capacity(), (byte)0);
        Object header = loader.loadClass(javaPackage + ".MessageHeaderEncoder").getConstructor().newInstance();
        headerLength = (Integer)header.getClass().getMethod("encodedLength").invoke(header);
        Object encoder = loader.loadClass(javaPackage + "." + name + "Encoder").getConstructor().newInstance();
        encoder.getClass().getMethod("wrapAndApplyHeader", MutableDirectBuffer.class, int.class, header.getClass())
            .invoke(encoder, BUFFER, 0, header);
        STACK.push(encoder);
        return null;
    }

    private static String done() throws Exception {
        Object encoder = STACK.getLast();
        int length = headerLength + (Integer)encoder.getClass().getMethod("encodedLength").invoke(encoder);
        byte[] bytes = new byte[length];
        BUFFER.getBytes(0, bytes);
        return "encoded\t" + hex(bytes, length);
    }

    private static void put(String[] words) throws Exception {
        Object encoder = STACK.peek();
        switch (words[0]) {
            case "composite": STACK.push(method(encoder, words[1], 0).invoke(encoder)); break;
            case "group":
                STACK.push(method(encoder, words[1] + "Count", 1).invoke(encoder, Integer.parseInt(words[2])));
                break;
            case "next": method(encoder, "next", 0).invoke(encoder); break;
            case "end": STACK.pop(); break;
            case "number": {
                Method method = method(encoder, words[1], 1);
                method.invoke(encoder, number(method.getParameterTypes()[0], words[2]));
                break;
            }
            case "item": {
                Method method = method(encoder, words[1], 2);
                method.invoke(encoder, Integer.parseInt(words[2]), number(method.getParameterTypes()[1], words[3]));
                break;
            }
            case "enum": {
                Method method = method(encoder, words[1], 1);
                Class<?> type = method.getParameterTypes()[0];
                for (Object constant : type.getEnumConstants()) {
                    if (constant.toString().equals(words[2])) {
                        method.invoke(encoder, constant);
                    }
                }
                break;
            }
            case "choices": {
                Object set = method(encoder, words[1], 0).invoke(encoder);
                method(set, "clear", 0).invoke(set);
                for (String choice : words[2].split(",")) {
                    if (!choice.isEmpty()) {
                        method(set, choice, 1).invoke(set, true);
                    }
                }
                break;
            }
            case "data": {
                byte[] bytes = unhex(words[2]);
                String name = "put" + Character.toUpperCase(words[1].charAt(0)) + words[1].substring(1);
                encoder.getClass().getMethod(name, byte[].class, int.class, int.class).invoke(encoder, bytes, 0, bytes.length);
                break;
            }
            default: throw new IllegalArgumentException(words[0]);
        }
    }

    private static Object number(Class<?> type, String text) {
        if (type == byte.class) return new BigInteger(text).byteValue();
        if (type == short.class) return new BigInteger(text).shortValue();
        if (type == int.class) return new BigInteger(text).intValue();
        if (type == long.class) return new BigInteger(text).longValue();
        if (type == float.class) return Float.intBitsToFloat((int)Long.parseLong(text, 16));
        return Double.longBitsToDouble(Long.parseUnsignedLong(text, 16));
    }

    private static Method method(Object encoder, String said, int parameters) {
        String name = Character.toLowerCase(said.charAt(0)) + said.substring(1);
        for (Method method : encoder.getClass().getMethods()) {
            if (method.getName().equals(name) && method.getParameterCount() == parameters) {
                Class<?> last = parameters == 0 ? int.class : method.getParameterTypes()[parameters - 1];
                if (last.isPrimitive() || last.isEnum()) {
                    return method;
                }
            }
        }
        throw new IllegalArgumentException(encoder.getClass() + " has no " + name);
    }

    private static byte[] unhex(String text) {
        byte[] bytes = new byte[text.length() / 2];
        for (int index = 0; index < bytes.length; index++) {
            bytes[index] = (byte)Integer.parseInt(text.substring(2 * index, 2 * index + 2), 16);
        }
        return bytes;
    }

    private static String hex(byte[] bytes, int length) {
        StringBuilder out = new StringBuilder();
        for (int index = 0; index < length; index++) {
            out.append(String.format("%02x", bytes[index]));
        }
        return out.toString();
    }
}
