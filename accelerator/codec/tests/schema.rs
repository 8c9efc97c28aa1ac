//! Schemas that are refused, with line and reason; hostile ones quickly.

#![allow(clippy::format_collect, clippy::format_push_string, reason = "texts of a few lines")]

use std::fs;
use std::path::PathBuf;

use relay_accel_codec::sbe::{Schema, SchemaFaults};

const CAR: &str = include_str!("car.xml");

fn refused(text: &str) -> SchemaFaults {
    Schema::from_text(text).expect_err("it has a fault")
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("sbe-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("parts")).unwrap();
    folder
}

#[test]
fn a_fault_says_its_line_its_element_and_what_was_expected() {
    let text = CAR.replace("name=\"octane\" id=\"12\" type=\"uint8\"", "name=\"octane\" id=\"12\" type=\"Octane\"");
    let faults = refused(&text);
    assert_eq!(faults.to_string(), "<schema>:48: <field name=\"octane\">: there is no type Octane");
}

#[test]
fn all_faults_are_told_in_the_order_of_the_schema() {
    let text = CAR
        .replace("primitiveType=\"uint16\" presence=\"optional\"", "primitiveType=\"uint15\"")
        .replace("<validValue name=\"B\">B<", "<validValue name=\"B\">BB<")
        .replace("id=\"9\" type=\"uint16\"", "id=\"x\" type=\"uint16\"");
    let lines: Vec<u32> = refused(&text).0.iter().map(|fault| fault.line).collect();
    assert_eq!(lines, [18, 22, 44]);
}

#[test]
fn the_layout_is_printed_with_every_place() {
    let text = Schema::from_text(CAR).unwrap().to_string();
    for line in [
        "schema cars id 7 version 2 little-endian",
        "header messageHeader 8 bytes",
        "composite Engine 5 bytes",
        "      4 extras set Extras",
        "message Car id 1 block 23",
        "      8 year id 2 uint16 null 65535",
        "      - discounted id 6 enum Model = 65",
        "    data usage id 10 text length uint16 UTF-8",
        "    group acceleration id 13 groupSizeEncoding block 6",
    ] {
        assert!(text.contains(line), "{line:?} in\n{text}");
    }
}

#[test]
fn document_types_and_entities_are_refused() {
    let bomb = "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;&a;\">]>\n<messageSchema package=\"&b;\"/>";
    assert!(refused(bomb).to_string().contains("DTD"));
    assert!(Schema::from_text("<messageSchema package=\"&unknown;\" id=\"1\"/>").is_err());
}

#[test]
fn hostile_schemas_end_at_once() {
    let deep = "<a>".repeat(1_000_000);
    assert!(refused(&deep).to_string().contains("deep"));
    let types = |inside: &str| {
        format!(
            "<messageSchema package=\"p\" id=\"1\"><types><composite name=\"messageHeader\">\
             <type name=\"blockLength\" primitiveType=\"uint16\"/><type name=\"templateId\" primitiveType=\"uint16\"/>\
             <type name=\"schemaId\" primitiveType=\"uint16\"/><type name=\"version\" primitiveType=\"uint16\"/>\
             </composite>{inside}</types></messageSchema>"
        )
    };
    assert!(Schema::from_text(&types("")).is_ok());
    // References to references: ten each time would be ten to the twentieth.
    let mut laughs = String::from("<composite name=\"c0\"><type name=\"x\" primitiveType=\"int8\"/></composite>");
    for level in 1..20 {
        let references: String = (0..10).map(|n| format!("<ref name=\"r{n}\" type=\"c{}\"/>", level - 1)).collect();
        laughs += &format!("<composite name=\"c{level}\">{references}</composite>");
    }
    assert!(refused(&types(&laughs)).to_string().contains("4096 elements"));
    let chain: String = (0..100)
        .map(|n| format!("<composite name=\"c{n}\"><ref name=\"r\" type=\"c{}\"/></composite>", (n + 1) % 100))
        .collect();
    assert!(Schema::from_text(&types(&chain)).is_err());
    let long = "<type name=\"t\" primitiveType=\"int64\" length=\"2147483647\"/>";
    assert!(refused(&types(long)).to_string().contains("at most"));
    assert!(refused("").to_string().contains("1:"));
    assert!(refused("<messageSchema/>").0.len() >= 3);
    let many: String = (0..500).map(|n| format!("<type name=\"t{n}\" primitiveType=\"x\"/>")).collect();
    assert_eq!(refused(&types(&many)).0.len(), 100, "what is told is bounded, too");
}

#[test]
fn bytes_that_are_no_text_are_refused_with_their_line() {
    let error = Schema::compile("s.xml", b"<a>\n\n\xff</a>", &relay_accel_codec::sbe::NoIncludes).unwrap_err();
    assert_eq!((error.0[0].line, error.0[0].file.as_str()), (3, "s.xml"));
}

#[test]
fn includes_are_read_from_the_folder_and_below_and_faults_name_their_file() {
    let folder = folder("includes");
    let (start, rest) = CAR.split_once("<types>").unwrap();
    let (inside, end) = rest.split_once("</types>").unwrap();
    let main =
        format!("{start}<xi:include xmlns:xi=\"http://www.w3.org/2001/XInclude\" href=\"parts/types.xml\"/>{end}");
    fs::write(folder.join("main.xml"), &main).unwrap();
    fs::write(folder.join("parts/types.xml"), format!("<types>{inside}</types>")).unwrap();
    assert_eq!(
        Schema::from_path(&folder.join("main.xml")).unwrap().to_string(),
        Schema::from_text(CAR).unwrap().to_string()
    );
    fs::write(folder.join("parts/types.xml"), "<types>\n<type name=\"x\" primitiveType=\"no\"/></types>").unwrap();
    let faults = Schema::from_path(&folder.join("main.xml")).unwrap_err();
    assert_eq!((faults.0[0].file.as_str(), faults.0[0].line), ("parts/types.xml", 2));
    assert!(refused(&main).to_string().contains("given as text"));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn includes_that_lead_out_of_the_folder_around_in_circles_or_nowhere_are_refused() {
    let folder = folder("hostile-includes");
    let including = |href: &str| {
        format!(
            "<messageSchema package=\"p\" id=\"1\">\
             <xi:include xmlns:xi=\"http://www.w3.org/2001/XInclude\" href=\"{href}\"/></messageSchema>"
        )
    };
    let parts = folder.join("parts");
    fs::write(folder.join("secret.xml"), "<types/>").unwrap();
    std::os::unix::fs::symlink(folder.join("secret.xml"), parts.join("link.xml")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", parts.join("endless.xml")).unwrap();
    for (href, reason) in [
        ("../secret.xml", "outside"),
        ("/etc/passwd", "relative"),
        ("file:///etc/passwd", "relative"),
        ("link.xml", "outside"),
        ("endless.xml", "outside"),
        ("nothing.xml", "cannot include"),
        ("main.xml", "includes itself"),
        (".", "includes"),
    ] {
        fs::write(parts.join("main.xml"), including(href)).unwrap();
        let faults = Schema::from_path(&parts.join("main.xml")).unwrap_err().to_string();
        assert!(faults.contains(reason) || href == ".", "{href}: {faults}");
    }
    // One file that includes another twice, which includes a third twice, and so on.
    for level in 0..12 {
        let twice = format!("<xi:include href=\"l{}.xml\"/>", level + 1).repeat(2);
        let text = format!("<types xmlns:xi=\"http://www.w3.org/2001/XInclude\">{twice}</types>");
        fs::write(parts.join(format!("l{level}.xml")), text).unwrap();
    }
    fs::write(parts.join("main.xml"), including("l0.xml")).unwrap();
    let faults = Schema::from_path(&parts.join("main.xml")).unwrap_err().to_string();
    assert!(faults.contains("64 includes, 8 deep"), "{faults}");
    fs::remove_dir_all(folder).unwrap();
}
