//! The message that has everything, by one of the generated modules: little-endian or big-endian.

macro_rules! everything {
    ($module:ident) => {{
        use crate::generated_support::{Generated, Say, said_items};
        use crate::$module::{EverythingDecoder, EverythingEncoder, InnerDecoder, InnerEncoder};

        fn inner(lines: &mut Vec<String>, from: InnerDecoder<'_>) {
            lines.extend([from.a().say(), from.result().raw().say(), from.later().say()]);
        }

        fn copied(from: InnerDecoder<'_>, mut to: InnerEncoder<'_>) -> Option<()> {
            to.a(from.a()).result(from.result()).later(from.later()?);
            Some(())
        }

        fn seen(bytes: &[u8]) -> Option<(Vec<String>, usize)> {
            let all = EverythingDecoder::decode(bytes).ok()?;
            let mut lines = vec![all.type_().say(), all.type_2().say(), all.decode2().say()];
            lines.extend([all.i32().say(), all.i64().say(), all.u64().say(), all.f32().say(), all.f64().say()]);
            lines.extend([all.opt_float().say(), all.opt_double().say(), all.percent().say(), all.opt_percent().say()]);
            lines.extend([all.at_least().say(), said_items(all.triple())]);
            lines.push(all.opt_triple().map_or_else(|| "null".into(), said_items));
            lines.extend([said_items(all.ranged()), all.raw().say(), all.opt_text().say(), all.result().raw().say()]);
            lines.extend([all.opt_result().map(|value| value.raw()).say(), all.wide().0.say()]);
            inner(&mut lines, all.inner());
            lines.extend([all.added().say(), all.opt_added().say()]);
            match all.outer() {
                Some(outer) => {
                    lines.push(outer.kept().say());
                    inner(&mut lines, outer.inner());
                }
                None => lines.push("null".into()),
            }
            lines.push(all.result_added().map(|value| value.raw()).say());
            lines.push(all.plain().len().to_string());
            for entry in all.plain() {
                lines.extend([entry.value().say(), entry.newer().say()]);
            }
            lines.push(all.nested().len().to_string());
            for entry in all.nested() {
                lines.extend([entry.value().say(), entry.deep().len().to_string()]);
                for deep in entry.deep() {
                    lines.push(deep.deeper().len().to_string());
                    deep.deeper().for_each(|deeper| inner(&mut lines, deeper.leaf()));
                    lines.push(format!("{:?}", deep.note()));
                }
                lines.push(format!("{:?}", entry.text()));
            }
            lines.push(all.fresh().len().to_string());
            lines.extend(all.fresh().map(|entry| entry.value().say()));
            lines.extend([format!("{:?}", all.first()), format!("{:?}", all.second())]);
            Some((lines, all.sbe_length()))
        }

        fn written_again(bytes: &[u8], buffer: &mut [u8]) -> Option<usize> {
            let from = EverythingDecoder::decode(bytes).ok()?;
            let mut to = EverythingEncoder::begin(buffer).ok()?;
            to.type_(from.type_()).type_2(from.type_2()).decode2(from.decode2()).i32(from.i32()).i64(from.i64());
            to.u64(from.u64()).f32(from.f32()).f64(from.f64()).opt_float(from.opt_float());
            to.opt_double(from.opt_double()).percent(from.percent()).ok()?;
            to.opt_percent(from.opt_percent()).and_then(|to| to.at_least(from.at_least())).ok()?;
            let triple: Vec<i16> = from.triple().collect();
            to.triple(triple[..].try_into().unwrap());
            let optional: Option<Vec<u32>> = from.opt_triple().map(Iterator::collect);
            to.opt_triple(optional.as_ref().map(|items| items[..].try_into().unwrap()));
            let ranged: Vec<i8> = from.ranged().collect();
            to.ranged(ranged[..].try_into().unwrap()).and_then(|to| to.raw(from.raw())).ok()?;
            to.opt_text(from.opt_text().map(|text| &text[..])).ok()?;
            to.result(from.result()).opt_result(from.opt_result()).wide(from.wide());
            copied(from.inner(), to.inner())?;
            to.added(from.added()?).opt_added(from.opt_added()).ok()?;
            let outer = from.outer()?;
            let mut slot = to.outer();
            slot.kept(outer.kept());
            copied(outer.inner(), slot.inner())?;
            to.result_added(from.result_added()?);
            to.plain(from.plain(), |to, from| {
                to.value(from.value()).newer(from.newer().unwrap());
                Ok(())
            })
            .ok()?;
            to.nested(from.nested(), |to, from| {
                to.value(from.value()).deep(from.deep(), |to, from| {
                    to.deeper(from.deeper(), |to, from| {
                        copied(from.leaf(), to.leaf()).unwrap();
                        Ok(())
                    })?;
                    to.note(from.note())?;
                    Ok(())
                })?;
                to.text(from.text())?;
                Ok(())
            })
            .ok()?;
            to.fresh(from.fresh(), |to, from| {
                to.value(from.value());
                Ok(())
            })
            .ok()?;
            to.first(from.first()).and_then(|to| to.second(from.second())).ok()?;
            to.finish().ok()
        }
        Generated { seen, written_again }
    }};
}
pub(crate) use everything;
