//! Types of a schema: each is compiled once, on first use; references that lead back to themselves are refused.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::fault::Fault;
use super::layout::{
    Choice, Composite, Constant, Encoded, Enumeration, Member, Note, Options, Presence, Type, ValidValue,
};
use super::primitive::{Primitive, Scalar};
use super::xml::Element;

const FAULTS_MAX: usize = 100;
/// Bytes of a block, and items of an array: far beyond what any header can say.
pub(super) const BLOCK_LENGTH_MAX: usize = 1 << 24;
/// Primitive elements of one composite: references to references multiply.
const LEAVES_MAX: usize = 4_096;
const DEPTH_MAX: usize = 16;

/// Faults and warnings that were found so far.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) faults: Vec<Fault>,
    pub(super) warnings: Vec<Fault>,
}

impl Findings {
    pub(super) fn fault(&mut self, element: &Element, reason: impl Into<String>) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(element.fault(reason.into()));
        }
    }

    pub(super) fn warn(&mut self, element: &Element, reason: impl Into<String>) {
        if self.warnings.len() < FAULTS_MAX {
            self.warnings.push(element.fault(reason.into()));
        }
    }

    /// An attribute that has to be there and not empty.
    pub(super) fn required<'e>(&mut self, element: &'e Element, name: &str) -> Option<&'e str> {
        let found = element.attribute(name).filter(|value| !value.is_empty());
        if found.is_none() {
            self.fault(element, format!("expected an attribute {name}, it is missing or empty"));
        }
        found
    }

    pub(super) fn number(&mut self, element: &Element, name: &str) -> Option<u32> {
        let text = element.attribute(name)?;
        let number = text.parse::<u32>().ok().filter(|number| i32::try_from(*number).is_ok());
        if number.is_none() {
            self.fault(element, format!("expected {name} to be a whole number from 0 to 2147483647, found {text:?}"));
        }
        number
    }

    pub(super) fn presence(&mut self, element: &Element) -> Option<Presence> {
        match element.attribute("presence")? {
            "required" => Some(Presence::Required),
            "optional" => Some(Presence::Optional),
            "constant" => Some(Presence::Constant),
            other => {
                let reason = format!("expected presence required, optional or constant, found {other:?}");
                self.fault(element, reason);
                None
            }
        }
    }

    pub(super) fn note(&mut self, element: &Element, schema_version: u32) -> Note {
        let since_version = self.number(element, "sinceVersion").unwrap_or(0);
        if since_version > schema_version {
            let reason = format!("sinceVersion {since_version} is later than the schema's version {schema_version}");
            self.fault(element, reason);
        }
        let own = ["timeUnit", "epoch"].into_iter().filter_map(|key| Some((key, element.attribute(key)?)));
        let own = own.map(|(key, value)| (key.to_owned(), value.to_owned()));
        Note {
            description: element.attribute("description").map(str::to_owned),
            semantic_type: element.attribute("semanticType").map(str::to_owned),
            since_version,
            deprecated: self.number(element, "deprecated").unwrap_or(0),
            attributes: own.chain(element.foreign.iter().cloned()).collect(),
        }
    }

    pub(super) fn check_name(&mut self, element: &Element, name: &str) {
        let mut letters = name.chars();
        let starts = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
        if !starts || !letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
            self.warn(element, format!("expected a name of letters, digits and _, found {name:?}"));
        }
    }
}

/// All types of a schema.
pub(super) struct Types<'e> {
    elements: HashMap<&'e str, &'e Element>,
    order: Vec<&'e str>,
    done: HashMap<&'e str, Option<Arc<Type>>>,
    open: Vec<&'e str>,
    schema_version: u32,
    pub(super) findings: Findings,
}

impl<'e> Types<'e> {
    /// Collect the elements of all `<types>`; nothing is compiled yet.
    pub(super) fn of(schema: &'e Element, schema_version: u32) -> Self {
        let mut types = Self {
            elements: HashMap::new(),
            order: Vec::new(),
            done: HashMap::new(),
            open: Vec::new(),
            schema_version,
            findings: Findings::default(),
        };
        for element in schema.children.iter().filter(|child| child.name == "types").flat_map(|types| &types.children) {
            if !matches!(element.name.as_str(), "type" | "composite" | "enum" | "set") {
                types.findings.warn(element, "expected type, composite, enum or set inside of types: passed over");
                continue;
            }
            let Some(name) = types.findings.required(element, "name") else { continue };
            types.findings.check_name(element, name);
            if types.elements.insert(name, element).is_some() {
                types.findings.warn(element, format!("a type {name} exists already; this one takes its place"));
            } else {
                types.order.push(name);
            }
        }
        types
    }

    /// Compile everything that was collected.
    pub(super) fn compile_all(&mut self) -> Vec<Arc<Type>> {
        let order = self.order.clone();
        order.into_iter().filter_map(|name| self.named(name)).collect()
    }

    /// The type of this name: the schema's own, else a primitive. None: unknown, or it has faults of its own.
    pub(super) fn named(&mut self, name: &str) -> Option<Arc<Type>> {
        if let Some((&key, &element)) = self.elements.get_key_value(name) {
            if let Some(done) = self.done.get(key) {
                return done.clone();
            }
            self.open.push(key);
            let made = self.compiled(element).map(Arc::new);
            self.open.pop();
            self.done.insert(key, made.clone());
            return made;
        }
        Primitive::named(name).map(|primitive| Arc::new(Type::Encoded(plain(name, primitive))))
    }

    /// Whether there is a type of this name, with or without faults.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.elements.contains_key(name) || Primitive::named(name).is_some()
    }

    fn compiled(&mut self, element: &'e Element) -> Option<Type> {
        match element.name.as_str() {
            "type" => self.encoded(element).map(Type::Encoded),
            "enum" => self.enumeration(element).map(Type::Enumeration),
            "set" => self.options(element).map(Type::Options),
            _ => self.composite(element).map(Type::Composite),
        }
    }

    fn encoded(&mut self, element: &'e Element) -> Option<Encoded> {
        let name = self.findings.required(element, "name")?;
        let note = self.findings.note(element, self.schema_version);
        let primitive_name = self.findings.required(element, "primitiveType")?;
        let Some(primitive) = Primitive::named(primitive_name) else {
            self.findings.fault(element, format!("expected a primitive type, found {primitive_name:?}"));
            return None;
        };
        let mut made = plain(name, primitive);
        made.note = note;
        made.character_encoding = element.attribute("characterEncoding").map(|text| text.trim().to_owned());
        made.presence = self.findings.presence(element).unwrap_or(Presence::Required);
        let written_count = self.findings.number(element, "length").unwrap_or(1) as usize;
        made.count = written_count;
        made.is_variable = element.attribute("variableLength") == Some("true");
        if written_count.saturating_mul(primitive.size()) > BLOCK_LENGTH_MAX {
            let reason = format!("expected at most {BLOCK_LENGTH_MAX} bytes, found length {written_count}");
            self.findings.fault(element, reason);
            return None;
        }
        for (attribute, value) in
            [("minValue", &mut made.min), ("maxValue", &mut made.max), ("nullValue", &mut made.null)]
        {
            if let Some(text) = element.attribute(attribute) {
                match primitive.parse(text) {
                    Ok(parsed) => *value = parsed,
                    Err(reason) => self.findings.fault(element, format!("{attribute}: {reason}")),
                }
            }
        }
        if element.attribute("nullValue").is_some() && made.presence != Presence::Optional {
            self.findings.warn(element, "nullValue is set, but presence is not optional");
        }
        if let Some(reference) = element.attribute("valueRef") {
            if made.presence != Presence::Constant {
                self.findings.fault(element, format!("valueRef {reference:?} needs presence constant"));
                return None;
            }
            made.constant = Some(self.value_ref(element, reference, primitive, None)?);
        } else if made.presence == Presence::Constant {
            made.constant = Some(self.constant(element, &mut made.count)?);
        }
        Some(made)
    }

    fn constant(&mut self, element: &Element, count: &mut usize) -> Option<Constant> {
        let primitive = Primitive::named(element.attribute("primitiveType")?)?;
        let Some(text) = element.text.as_deref() else {
            self.findings.fault(element, "presence is constant, but the element has no value");
            return None;
        };
        if primitive != Primitive::Char || text.len() == 1 && *count == 1 {
            let parsed = primitive.parse(text);
            return parsed.map(Constant::Scalar).map_err(|reason| self.findings.fault(element, reason)).ok();
        }
        if element.attribute("length").is_some() && *count < text.len() {
            let reason = format!("length {count} is less than the {} bytes of the constant", text.len());
            self.findings.fault(element, reason);
            return None;
        }
        *count = (*count).max(text.len());
        Some(Constant::Text(text.to_owned()))
    }

    /// The value that `Enum.Value` names; its enum must be on the wire as `primitive` is.
    pub(super) fn value_ref(
        &mut self,
        element: &Element,
        reference: &str,
        primitive: Primitive,
        must_be: Option<&str>,
    ) -> Option<Constant> {
        let found = match reference.split_once('.') {
            Some((type_name, value_name)) if !type_name.is_empty() && !value_name.is_empty() => {
                match (must_be, self.named(type_name).as_deref()) {
                    (Some(name), _) if name != type_name => {
                        Err(format!("valueRef names enum {type_name}, the field's type is {name}"))
                    }
                    (_, Some(Type::Enumeration(one))) if one.encoding != primitive => Err(format!(
                        "valueRef names a value of {}, expected one of {}",
                        one.encoding.name(),
                        primitive.name()
                    )),
                    (_, Some(Type::Enumeration(one))) => match one.named(value_name) {
                        Some(value) => Ok(Constant::Scalar(value.value)),
                        None => Err(format!("valueRef: enum {type_name} has no value {value_name}")),
                    },
                    _ => Err(format!("valueRef: there is no enum {type_name}")),
                }
            }
            _ => Err(format!("expected valueRef as enum.value, found {reference:?}")),
        };
        found.map_err(|reason| self.findings.fault(element, reason)).ok()
    }

    /// What an enum or a set is on the wire: a primitive, or a type of one item.
    fn wire(&mut self, element: &'e Element, allowed: &[Primitive]) -> Option<Encoded> {
        let name = self.findings.required(element, "encodingType")?;
        if let Some(primitive) = Primitive::named(name).filter(|primitive| allowed.contains(primitive)) {
            return Some(plain(name, primitive));
        }
        let kind = if self.elements.get(name).is_some_and(|found| found.name == "type") && !self.open.contains(&name) {
            self.named(name)
        } else {
            None
        };
        match kind.as_deref() {
            Some(Type::Encoded(one)) if one.count == 1 && !one.primitive.is_float() => Some(one.clone()),
            _ => {
                let names: Vec<&str> = allowed.iter().map(|primitive| primitive.name()).collect();
                let names = names.join(", ");
                let reason = format!("expected encodingType to be {names} or a type of one such item, found {name:?}");
                self.findings.fault(element, reason);
                None
            }
        }
    }

    fn enumeration(&mut self, element: &'e Element) -> Option<Enumeration> {
        use Primitive::{Char, Int8, Int16, Int32, Uint8, Uint16};
        let name = self.findings.required(element, "name")?.to_owned();
        let note = self.findings.note(element, self.schema_version);
        let wire = self.wire(element, &[Char, Uint8, Int8, Int16, Uint16, Int32])?;
        let presence = self.findings.presence(element).unwrap_or(wire.presence);
        let mut null = wire.null;
        if let Some(text) = element.attribute("nullValue") {
            match wire.primitive.parse(text) {
                Ok(parsed) => null = parsed,
                Err(reason) => self.findings.fault(element, format!("nullValue: {reason}")),
            }
        }
        let mut values: Vec<ValidValue> = Vec::new();
        let (mut numbers, mut names) = (HashSet::new(), HashSet::new());
        for child in element.children.iter().filter(|child| child.name == "validValue") {
            let Some(value_name) = self.findings.required(child, "name") else { continue };
            self.findings.check_name(child, value_name);
            let child_note = self.findings.note(child, self.schema_version);
            let value = match child.text.as_deref().map(|text| wire.primitive.parse(text)) {
                Some(Ok(value)) => value,
                Some(Err(reason)) => {
                    self.findings.fault(child, reason);
                    continue;
                }
                None => {
                    self.findings.fault(child, "expected a value as text, the element is empty");
                    continue;
                }
            };
            if value.same(null) {
                self.findings.fault(child, format!("{} is the enum's null value", value.text()));
            } else if outside(value, &wire) {
                let range = format!("{} to {}", wire.min.text(), wire.max.text());
                self.findings.fault(child, format!("expected a value from {range}, found {}", value.text()));
            }
            if !numbers.insert(value.integer()) {
                self.findings.warn(child, format!("another name of the enum's value {}", value.text()));
            }
            if !names.insert(value_name) {
                self.findings.fault(child, format!("another value of the enum is named {value_name}"));
            }
            values.push(ValidValue { name: value_name.to_owned(), value, note: child_note });
        }
        Some(Enumeration { name, encoding: wire.primitive, null, presence, values, note })
    }

    fn options(&mut self, element: &'e Element) -> Option<Options> {
        use Primitive::{Uint8, Uint16, Uint32, Uint64};
        let name = self.findings.required(element, "name")?.to_owned();
        let note = self.findings.note(element, self.schema_version);
        let encoding = self.wire(element, &[Uint8, Uint16, Uint32, Uint64])?.primitive;
        if !encoding.is_unsigned() {
            self.findings.fault(element, format!("expected an unsigned type of a set, found {}", encoding.name()));
            return None;
        }
        let mut choices: Vec<Choice> = Vec::new();
        let mut names = HashSet::new();
        for child in element.children.iter().filter(|child| child.name == "choice") {
            let Some(choice_name) = self.findings.required(child, "name") else { continue };
            self.findings.check_name(child, choice_name);
            let child_note = self.findings.note(child, self.schema_version);
            let bits = 8 * encoding.size() as u32;
            let Some(bit) = child.text.as_deref().and_then(|text| text.parse::<u32>().ok()).filter(|bit| *bit < bits)
            else {
                let found = child.text.as_deref().unwrap_or("nothing");
                self.findings.fault(child, format!("expected a bit from 0 to {}, found {found:?}", bits - 1));
                continue;
            };
            if choices.iter().any(|one| one.bit == bit) {
                self.findings.warn(child, format!("another name of the set's bit {bit}"));
            }
            if !names.insert(choice_name) {
                self.findings.fault(child, format!("another choice of the set is named {choice_name}"));
            }
            choices.push(Choice { name: choice_name.to_owned(), bit, note: child_note });
        }
        Some(Options { name, encoding, choices, note })
    }

    fn composite(&mut self, element: &'e Element) -> Option<Composite> {
        let name = self.findings.required(element, "name")?.to_owned();
        let note = self.findings.note(element, self.schema_version);
        let mut members: Vec<Member> = Vec::new();
        let mut names = HashSet::new();
        let (mut length, mut leaf_count, mut sound) = (0_usize, 0_usize, true);
        for child in &element.children {
            if !matches!(child.name.as_str(), "type" | "enum" | "set" | "composite" | "ref") {
                if matches!(child.name.as_str(), "data" | "group") {
                    self.findings.fault(child, format!("{} is not allowed in a composite", child.name));
                    sound = false;
                }
                continue;
            }
            let Some(child_name) = self.findings.required(child, "name") else {
                sound = false;
                continue;
            };
            if !names.insert(child_name) {
                self.findings.fault(child, format!("composite {name} has another element named {child_name}"));
                sound = false;
            }
            self.findings.check_name(child, child_name);
            let Some(kind) = self.member(child) else {
                sound = false;
                continue;
            };
            if let Some(offset) = self.offset(child) {
                if offset < length {
                    self.findings.fault(child, format!("expected an offset of at least {length}, found {offset}"));
                    sound = false;
                }
                length = offset.max(length);
            }
            let member_note =
                if child.name == "ref" { self.findings.note(child, self.schema_version) } else { kind.note().clone() };
            leaf_count += if let Type::Composite(inner) = &*kind { inner.leaf_count } else { 1 };
            let end = length.saturating_add(kind.length());
            members.push(Member { name: child_name.to_owned(), offset: length, kind, note: member_note });
            length = end;
            if length > BLOCK_LENGTH_MAX || leaf_count > LEAVES_MAX {
                let limits = format!("{BLOCK_LENGTH_MAX} bytes and {LEAVES_MAX} elements");
                self.findings.fault(element, format!("expected at most {limits}, with those of its references"));
                return None;
            }
        }
        sound.then_some(Composite { name, members, length, leaf_count, note })
    }

    fn offset(&mut self, element: &Element) -> Option<usize> {
        if element.attribute("offset") == Some("-1") {
            return None;
        }
        self.findings.number(element, "offset").map(|offset| offset as usize)
    }

    fn member(&mut self, element: &'e Element) -> Option<Arc<Type>> {
        if element.name != "ref" {
            if self.open.len() > DEPTH_MAX {
                self.findings.fault(element, format!("expected composites at most {DEPTH_MAX} deep"));
                return None;
            }
            // A mark without a name keeps count of nesting; no reference can name it.
            self.open.push("");
            let made = self.compiled(element).map(Arc::new);
            self.open.pop();
            return made;
        }
        let name = self.findings.required(element, "type")?;
        if self.open.contains(&name) {
            self.findings.fault(element, format!("reference to {name} leads back to itself"));
            return None;
        }
        if self.open.len() > DEPTH_MAX {
            self.findings.fault(element, format!("expected references at most {DEPTH_MAX} deep"));
            return None;
        }
        if !self.elements.contains_key(name) {
            self.findings.fault(element, format!("there is no type {name}"));
            return None;
        }
        let found = self.named(name);
        if found.is_none() && self.findings.faults.is_empty() {
            self.findings.fault(element, format!("type {name} is not sound"));
        }
        found
    }
}

fn plain(name: &str, primitive: Primitive) -> Encoded {
    Encoded {
        name: name.to_owned(),
        primitive,
        count: 1,
        presence: Presence::Required,
        constant: None,
        min: primitive.min(),
        max: primitive.max(),
        null: primitive.null(),
        character_encoding: None,
        is_variable: false,
        note: Note::default(),
    }
}

/// Whether a value is outside of a range that a schema says; what a plain primitive can hold was checked before.
fn outside(value: Scalar, wire: &Encoded) -> bool {
    let (min, max) = (wire.min, wire.max);
    let said = !min.same(wire.primitive.min()) || !max.same(wire.primitive.max());
    match (value.integer(), min.integer(), max.integer()) {
        (Some(value), Some(min), Some(max)) => said && (value < min || value > max),
        _ => false,
    }
}
