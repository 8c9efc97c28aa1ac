//! The schema's text as a small tree with lines, its includes resolved within limits. Document types and entities are refused.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use roxmltree::{Document, Node, NodeType, ParsingOptions};

use super::fault::{Fault, SchemaFaults};

/// All files of a schema together, in bytes.
const SCHEMA_BYTES_MAX: usize = 16 << 20;
const ELEMENTS_MAX: u32 = 1_000_000;
const ELEMENT_DEPTH_MAX: usize = 32;
const ATTRIBUTES_MAX: usize = 64;
const INCLUDES_MAX: usize = 64;
const INCLUDE_DEPTH_MAX: usize = 8;
const XINCLUDE: &str = "http://www.w3.org/2001/XInclude";

/// Where includes come from.
pub trait Source {
    /// Return a name that is the same for the same file, and its bytes.
    ///
    /// # Errors
    /// Why it is not there or not allowed.
    fn include(&self, from: &str, href: &str) -> Result<(String, Vec<u8>), String>;
}

/// For schemas that include nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoIncludes;

impl Source for NoIncludes {
    fn include(&self, _from: &str, href: &str) -> Result<(String, Vec<u8>), String> {
        Err(format!("includes {href:?}, but the schema was given as text: load it from its file"))
    }
}

/// Files of one folder and below.
#[derive(Clone, Debug)]
pub struct Folder {
    root: PathBuf,
}

impl Folder {
    /// The folder of a schema's file, and the file's name in it.
    ///
    /// # Errors
    /// The file is not there.
    pub fn around(path: &Path) -> Result<(Self, String), SchemaFaults> {
        let unreadable = |why: String| {
            let file = path.display().to_string();
            SchemaFaults(vec![Fault { file, line: 0, element: "<file>".into(), reason: why }])
        };
        let real = path.canonicalize().map_err(|error| unreadable(error.to_string()))?;
        match (real.parent(), real.file_name().and_then(|name| name.to_str())) {
            (Some(root), Some(name)) => Ok((Self { root: root.to_path_buf() }, name.to_owned())),
            _ => Err(unreadable("expected the path of a file with a name in UTF-8".into())),
        }
    }

    pub(super) fn bytes(&self, name: &str) -> Result<Vec<u8>, SchemaFaults> {
        read_limited(&self.root.join(name)).map_err(|reason| {
            SchemaFaults(vec![Fault { file: name.into(), line: 0, element: "<file>".into(), reason }])
        })
    }
}

impl Source for Folder {
    fn include(&self, from: &str, href: &str) -> Result<(String, Vec<u8>), String> {
        let beside = Path::new(from).parent().unwrap_or(Path::new(""));
        if href.contains(':') || href.contains('\\') || Path::new(href).is_absolute() {
            return Err(format!("expected a relative path to include, found {href:?}"));
        }
        let wanted = self.root.join(beside).join(href);
        let real = wanted.canonicalize().map_err(|error| format!("cannot include {href:?}: {error}"))?;
        // After links are followed: a link that leads out of the folder is out of it.
        let Ok(inside) = real.strip_prefix(&self.root) else {
            return Err(format!("{href:?} is outside of the schema's folder: put it there or below"));
        };
        let name = inside.to_str().ok_or("expected a name in UTF-8")?.to_owned();
        Ok((name, read_limited(&real)?))
    }
}

fn read_limited(path: &Path) -> Result<Vec<u8>, String> {
    let about = fs::metadata(path).map_err(|error| error.to_string())?;
    if !about.is_file() {
        return Err("expected a regular file".into());
    }
    if about.len() > SCHEMA_BYTES_MAX as u64 {
        return Err(format!("expected at most {SCHEMA_BYTES_MAX} bytes, it has {}", about.len()));
    }
    fs::read(path).map_err(|error| error.to_string())
}

/// An element with its place.
#[derive(Debug)]
pub(super) struct Element {
    pub(super) name: String,
    pub(super) attributes: Vec<(String, String)>,
    /// Attributes with a namespace: local name and value.
    pub(super) foreign: Vec<(String, String)>,
    pub(super) children: Vec<Element>,
    /// The first piece of text, if any.
    pub(super) text: Option<String>,
    pub(super) file: Arc<str>,
    pub(super) line: u32,
}

impl Element {
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn label(&self) -> String {
        match self.attribute("name") {
            Some(name) => format!("<{} name={name:?}>", self.name),
            None => format!("<{}>", self.name),
        }
    }

    pub(super) fn fault(&self, reason: String) -> Fault {
        Fault { file: self.file.to_string(), line: self.line, element: self.label(), reason }
    }
}

struct Reader<'s> {
    source: &'s dyn Source,
    bytes_read: usize,
    elements: u32,
    includes: usize,
    /// Files that are being read: a file in it again is a cycle.
    open: Vec<String>,
}

/// The tree of a schema.
pub(super) fn read(name: &str, bytes: &[u8], source: &dyn Source) -> Result<Element, SchemaFaults> {
    let mut reader = Reader { source, bytes_read: 0, elements: 0, includes: 0, open: Vec::new() };
    reader.file(name, bytes).map_err(|fault| SchemaFaults(vec![fault]))
}

impl Reader<'_> {
    fn file(&mut self, name: &str, bytes: &[u8]) -> Result<Element, Fault> {
        let at_line =
            |line: u32, reason: String| Fault { file: name.into(), line, element: "<document>".into(), reason };
        self.bytes_read += bytes.len();
        if self.bytes_read > SCHEMA_BYTES_MAX {
            return Err(at_line(1, format!("expected at most {SCHEMA_BYTES_MAX} bytes with all includes")));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let line = bytes[..error.valid_up_to()].split(|byte| *byte == b'\n').count() as u32;
            at_line(line, "expected XML in UTF-8, found other bytes: save the file as UTF-8".into())
        })?;
        // The parser walks into elements one in another: bound that before it does.
        if let Some((line, what)) = too_much(text) {
            return Err(at_line(line, what));
        }
        let options = ParsingOptions { allow_dtd: false, nodes_limit: ELEMENTS_MAX, ..ParsingOptions::default() };
        let document =
            Document::parse_with_options(text, options).map_err(|error| at_line(error.pos().row, error.to_string()))?;
        self.open.push(name.to_owned());
        let file: Arc<str> = name.into();
        let root = self.element(&Lines::of(text), document.root_element(), &file, 0);
        self.open.pop();
        root
    }

    fn element(
        &mut self,
        lines: &Lines<'_>,
        node: Node<'_, '_>,
        file: &Arc<str>,
        depth: usize,
    ) -> Result<Element, Fault> {
        let (mut attributes, mut foreign) = (Vec::new(), Vec::new());
        for attribute in node.attributes() {
            let list = if attribute.namespace().is_none() { &mut attributes } else { &mut foreign };
            list.push((attribute.name().to_owned(), attribute.value().to_owned()));
        }
        let line = lines.at(node.range().start);
        let text = node.children().find(Node::is_text).and_then(|child| child.text()).map(str::to_owned);
        let name = node.tag_name().name().to_owned();
        let mut element = Element { name, attributes, foreign, children: Vec::new(), text, file: file.clone(), line };
        self.elements += 1;
        if depth > ELEMENT_DEPTH_MAX || self.elements > ELEMENTS_MAX {
            return Err(element.fault(format!("expected at most {ELEMENTS_MAX} elements, {ELEMENT_DEPTH_MAX} deep")));
        }
        for child in node.children().filter(|child| child.node_type() == NodeType::Element) {
            let made = if child.tag_name().namespace() == Some(XINCLUDE) && child.tag_name().name() == "include" {
                self.included(lines, child, file)?
            } else {
                self.element(lines, child, file, depth + 1)?
            };
            element.children.push(made);
        }
        Ok(element)
    }

    fn included(&mut self, lines: &Lines<'_>, node: Node<'_, '_>, file: &Arc<str>) -> Result<Element, Fault> {
        let line = lines.at(node.range().start);
        let wrong = |reason: String| Fault { file: file.to_string(), line, element: "<include>".into(), reason };
        let href = node.attribute("href").ok_or_else(|| wrong("expected an attribute href".into()))?;
        if node.attribute("parse").is_some_and(|parse| parse != "xml") || node.attribute("xpointer").is_some() {
            return Err(wrong("expected a whole file of XML: attributes parse and xpointer are not supported".into()));
        }
        self.includes += 1;
        if self.includes > INCLUDES_MAX || self.open.len() > INCLUDE_DEPTH_MAX {
            return Err(wrong(format!("expected at most {INCLUDES_MAX} includes, {INCLUDE_DEPTH_MAX} deep")));
        }
        let (name, bytes) = self.source.include(file, href).map_err(wrong)?;
        if self.open.contains(&name) {
            return Err(wrong(format!("{name} includes itself")));
        }
        self.file(&name, &bytes)
    }
}

/// Lines of places that are asked for from the beginning on: the parser's own count begins anew for each.
struct Lines<'t> {
    text: &'t str,
    /// The last place, and its line.
    last: Cell<(usize, u32)>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str) -> Self {
        Self { text, last: Cell::new((0, 1)) }
    }

    fn at(&self, place: usize) -> u32 {
        let (before, line) = self.last.get();
        let (from, line) = if place < before { (0, 1) } else { (before, line) };
        let passed = self.text[from..place].matches('\n').count();
        self.last.set((place, line + passed as u32));
        line + passed as u32
    }
}

/// Where tags nest deeper, or have more attributes, than allowed, by counting alone: the parser's time grows with the
/// square of the latter. What is no XML is for the parser to say.
fn too_much(text: &str) -> Option<(u32, String)> {
    let (mut depth, mut rest, mut line) = (0_usize, text, 1_u32);
    while let Some(at) = rest.find('<') {
        line += rest[..at].matches('\n').count() as u32;
        let tag = &rest[at..];
        let end = if tag.starts_with("<!--") {
            tag.find("-->").map(|end| end + 3)
        } else if tag.starts_with("<![CDATA[") {
            tag.find("]]>").map(|end| end + 3)
        } else {
            tag_end(tag)
        };
        let end = end?;
        if attributes(&tag[..end]) > ATTRIBUTES_MAX {
            return Some((line, format!("expected an element with at most {ATTRIBUTES_MAX} attributes")));
        }
        if tag.starts_with("</") {
            depth = depth.saturating_sub(1);
        } else if !tag.starts_with("<!") && !tag.starts_with("<?") && !tag[..end].ends_with("/>") {
            depth += 1;
            if depth > ELEMENT_DEPTH_MAX + 1 {
                return Some((line, format!("expected elements at most {ELEMENT_DEPTH_MAX} deep")));
            }
        }
        line += tag[..end].matches('\n').count() as u32;
        rest = &tag[end..];
    }
    None
}

/// Attributes of a tag: equals signs that are not quoted. None of a comment or of text.
fn attributes(tag: &str) -> usize {
    let mut quote = None;
    let is_equals = |byte: u8| {
        match (quote, byte) {
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            (None, b'=') => return true,
            _ => {}
        }
        false
    };
    if tag.starts_with("<!") { 0 } else { tag.bytes().map(is_equals).filter(|is_one| *is_one).count() }
}

/// Where a tag ends; a `>` in a quoted attribute ends nothing.
fn tag_end(tag: &str) -> Option<usize> {
    let mut quote = None;
    for (index, byte) in tag.bytes().enumerate() {
        match (quote, byte) {
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            (None, b'>') => return Some(index + 1),
            _ => {}
        }
    }
    None
}
