import java.nio.charset.StandardCharsets;
import org.agrona.concurrent.UnsafeBuffer;
import relay.fix.MDEntryType;
import relay.fix.MDUpdateAction;
import relay.fix.MarketDataIncrementalRefreshDecoder;
import relay.fix.MarketDataIncrementalRefreshEncoder;
import relay.fix.MessageHeaderDecoder;
import relay.fix.MessageHeaderEncoder;

/** A market-data refresh with ten entries. */
final class Refreshes implements SbeRate.Works<Refreshes.Refresh> {
    private static final int ENTRIES = 10;

    private final MessageHeaderDecoder headerDecoder = new MessageHeaderDecoder();
    private final MessageHeaderEncoder headerEncoder = new MessageHeaderEncoder();
    private final MarketDataIncrementalRefreshDecoder decoder = new MarketDataIncrementalRefreshDecoder();
    private final MarketDataIncrementalRefreshEncoder encoder = new MarketDataIncrementalRefreshEncoder();

    /** Absent values are the null values, as the generated classes have them. */
    static final class Refresh {
        final byte[] request = new byte[20];
        long time;
        final Entry[] entries = new Entry[ENTRIES];

        Refresh() {
            for (int index = 0; index < ENTRIES; index++) {
                entries[index] = new Entry();
            }
        }
    }

    static final class Entry {
        byte action;
        byte kind;
        final byte[] symbol = new byte[6];
        long price;
        long size;
        long sequence;
        long orders;
        short level;
    }

    @Override
    public String name() {
        return "refresh";
    }

    @Override
    public Refresh empty() {
        return new Refresh();
    }

    @Override
    public Refresh sample() {
        Refresh refresh = new Refresh();
        System.arraycopy("BOOK-17".getBytes(StandardCharsets.US_ASCII), 0, refresh.request, 0, 7);
        refresh.time = 1_700_000_000_000_000_000L;
        for (int index = 0; index < ENTRIES; index++) {
            Entry entry = refresh.entries[index];
            entry.action = '1';
            entry.kind = (byte)('0' + index % 2);
            System.arraycopy("BTCUSD".getBytes(StandardCharsets.US_ASCII), 0, entry.symbol, 0, 6);
            entry.price = 645_001_000_000L + index;
            entry.size = 12_500_000;
            entry.sequence = 1_000 + index;
            boolean isAbsent = index % 3 == 0;
            entry.orders = isAbsent ? MarketDataIncrementalRefreshEncoder.NoMDEntriesEncoder.numberOfOrdersNullValue() : 3;
            entry.level = (short)index;
        }
        return refresh;
    }

    @Override
    public void decode(UnsafeBuffer from, Refresh to) {
        MarketDataIncrementalRefreshDecoder refresh = decoder.wrapAndApplyHeader(from, 0, headerDecoder);
        refresh.getMDReqID(to.request, 0);
        to.time = refresh.transactTime();
        MarketDataIncrementalRefreshDecoder.NoMDEntriesDecoder entries = refresh.noMDEntries();
        for (int at = 0; entries.hasNext(); at++) {
            entries.next();
            Entry entry = to.entries[at];
            entry.action = entries.mDUpdateActionRaw();
            entry.kind = entries.mDEntryTypeRaw();
            entries.getSymbol(entry.symbol, 0);
            entry.price = entries.mDEntryPx().mantissa();
            entry.size = entries.mDEntrySize().mantissa();
            entry.sequence = entries.rptSeq();
            entry.orders = entries.numberOfOrders();
            entry.level = entries.mDPriceLevel();
        }
    }

    @Override
    public int encode(Refresh from, UnsafeBuffer to) {
        MarketDataIncrementalRefreshEncoder refresh = encoder.wrapAndApplyHeader(to, 0, headerEncoder);
        refresh.putMDReqID(from.request, 0).transactTime(from.time);
        MarketDataIncrementalRefreshEncoder.NoMDEntriesEncoder entries = refresh.noMDEntriesCount(from.entries.length);
        for (Entry entry : from.entries) {
            entries.next();
            entries.mDUpdateAction(MDUpdateAction.get(entry.action)).mDEntryType(MDEntryType.get(entry.kind));
            entries.putSymbol(entry.symbol, 0);
            entries.mDEntryPx().mantissa(entry.price);
            entries.mDEntrySize().mantissa(entry.size);
            entries.rptSeq(entry.sequence).numberOfOrders(entry.orders).mDPriceLevel(entry.level);
        }
        return MessageHeaderEncoder.ENCODED_LENGTH + refresh.encodedLength();
    }

    @Override
    public void decodeAll(UnsafeBuffer from, Refresh to, int messages) {
        for (int n = 0; n < messages; n++) {
            decode(SbeRate.opaque(from), to);
            SbeRate.publish(to);
        }
    }

    @Override
    public void encodeAll(Refresh from, UnsafeBuffer to, int messages) {
        for (int n = 0; n < messages; n++) {
            encode(SbeRate.opaque(from), to);
            SbeRate.publish(to);
        }
    }
}
