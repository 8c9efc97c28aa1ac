//! Car messages by the generated module.

use super::car::{CarDecoder, CarEncoder};
use crate::generated_support::{Generated, Say};

pub(crate) const CAR: Generated = Generated { seen, written_again };

fn seen(bytes: &[u8]) -> Option<(Vec<String>, usize)> {
    let car = CarDecoder::decode(bytes).ok()?;
    let engine = car.engine();
    let mut lines = vec![
        car.serial().say(),
        car.year().say(),
        car.model().raw().say(),
        car.code().say(),
        car.extras().0.say(),
        engine.capacity().say(),
        engine.extras().0.say(),
    ];
    lines.push(car.fuel().len().to_string());
    for fuel in car.fuel() {
        lines.push(fuel.speed().say());
        lines.push(format!("{:?}", fuel.usage()));
    }
    lines.push(car.performance().len().to_string());
    for performance in car.performance() {
        lines.push(performance.octane().say());
        lines.push(performance.acceleration().len().to_string());
        for acceleration in performance.acceleration() {
            lines.extend([acceleration.mph().say(), acceleration.seconds().say()]);
        }
    }
    lines.extend([format!("{:?}", car.manufacturer()), format!("{:?}", car.model_name())]);
    Some((lines, car.sbe_length()))
}

fn written_again(bytes: &[u8], buffer: &mut [u8]) -> Option<usize> {
    let from = CarDecoder::decode(bytes).ok()?;
    let mut to = CarEncoder::begin(buffer).ok()?;
    to.serial(from.serial()).year(from.year()).model(from.model()).extras(from.extras()).code(from.code()).ok()?;
    to.engine().capacity(from.engine().capacity()).extras(from.engine().extras());
    to.fuel(from.fuel(), |to, from| {
        to.speed(from.speed()).usage(from.usage())?;
        Ok(())
    })
    .ok()?;
    to.performance(from.performance(), |to, from| {
        to.octane(from.octane()).acceleration(from.acceleration(), |to, from| {
            to.mph(from.mph()).seconds(from.seconds());
            Ok(())
        })?;
        Ok(())
    })
    .ok()?;
    to.manufacturer(from.manufacturer()).and_then(|to| to.model_name(from.model_name())).ok()?;
    to.finish().ok()
}
