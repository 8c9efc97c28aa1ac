//! Market-data messages by the generated module.

use super::fix::{MarketDataIncrementalRefreshDecoder, MarketDataIncrementalRefreshEncoder};
use crate::generated_support::{Generated, Say};

pub(crate) const REFRESH: Generated = Generated { seen, written_again };

fn seen(bytes: &[u8]) -> Option<(Vec<String>, usize)> {
    let refresh = MarketDataIncrementalRefreshDecoder::decode(bytes).ok()?;
    let mut lines = vec![refresh.md_req_id().say(), refresh.transact_time().say()];
    lines.push(refresh.no_md_entries().len().to_string());
    for entry in refresh.no_md_entries() {
        lines.extend([
            entry.md_update_action().raw().say(),
            entry.md_entry_type().raw().say(),
            entry.symbol().say(),
            entry.md_entry_px().mantissa().say(),
            entry.md_entry_size().mantissa().say(),
            entry.rpt_seq().say(),
            entry.number_of_orders().say(),
            entry.md_price_level().say(),
        ]);
    }
    Some((lines, refresh.sbe_length()))
}

fn written_again(bytes: &[u8], buffer: &mut [u8]) -> Option<usize> {
    let from = MarketDataIncrementalRefreshDecoder::decode(bytes).ok()?;
    let mut to = MarketDataIncrementalRefreshEncoder::begin(buffer).ok()?;
    to.transact_time(from.transact_time()).md_req_id(from.md_req_id().map(|id| &id[..])).ok()?;
    to.no_md_entries(from.no_md_entries(), |to, from| {
        to.md_update_action(from.md_update_action()).md_entry_type(from.md_entry_type()).symbol(from.symbol())?;
        to.md_entry_px().mantissa(from.md_entry_px().mantissa());
        to.md_entry_size().mantissa(from.md_entry_size().mantissa());
        to.rpt_seq(from.rpt_seq()).number_of_orders(from.number_of_orders()).md_price_level(from.md_price_level());
        Ok(())
    })
    .ok()?;
    to.finish().ok()
}
