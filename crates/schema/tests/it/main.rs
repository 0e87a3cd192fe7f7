//! Schemas on anything.

use std::path::Path;
use std::time::{Duration, Instant};

use plenipo_schema::{Schema, SchemaFault};
use plenipo_testkit::Fuzz;
use plenipo_wire::Fragment;

const WORDS: [&str; 28] = [
    "\"$ref\":\"#\",",
    "\"$ref\":\"#/$defs/n\",",
    "\"$ref\":\"https://example.com/\",",
    "\"$dynamicRef\":\"#x\",",
    "\"$recursiveRef\":\"#\",",
    "\"$id\":\"y\",",
    "\"$schema\":\"http://json-schema.org/draft-04/schema#\",",
    "\"allOf\":[{},{\"$ref\":\"#\"}],",
    "\"anyOf\":[{\"$ref\":\"#/$defs/n\"},{\"type\":\"null\"}],",
    "\"oneOf\":[{\"$ref\":\"#/$defs/n\"},{\"$ref\":\"#/$defs/n\"}],",
    "\"not\":{},",
    "\"if\":{\"type\":\"string\"},\"then\":false,",
    "\"items\":{\"$ref\":\"#\"},",
    "\"prefixItems\":[true],",
    "\"contains\":{},",
    "\"uniqueItems\":true,",
    "\"unevaluatedItems\":{\"$ref\":\"#\"},",
    "\"patternProperties\":{\"^(a|a)*$\":{}},",
    "\"dependentSchemas\":{\"a\":{\"$ref\":\"#\"}},",
    "\"multipleOf\":1e-308,",
    "\"minimum\":1e308,",
    "\"exclusiveMinimum\":true,",
    "\"const\":null,",
    "{\"a\":{\"a\":[1,{}]}}",
    "[1,2.0,\"a\",null]",
    "\n",
    "{}",
    "1e400",
];

/// No schema and no value makes a check panic, hang or overflow its stack, and whether it matches is the same each time.
#[test]
fn fuzz_schemas() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/schemas");
    Fuzz::of(&corpus, &WORDS).rounds(600).run(|input| {
        let Some((schema, value)) = split(input) else { return "no two values".to_owned() };
        let begin = Instant::now();
        let schema = match Schema::read(schema.as_raw()) {
            Ok(schema) => schema,
            Err(fault) => return format!("{:?}", std::mem::discriminant(&fault)),
        };
        let first = schema.check(value.as_raw());
        assert_eq!(first, schema.check(value.as_raw()));
        if first.is_ok() {
            assert_eq!(schema.check_arguments(&value), Ok(()));
        }
        assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
        match first {
            Ok(()) => "matches".to_owned(),
            Err(SchemaFault::Mismatch(mismatch)) => {
                assert!(!mismatch.to_string().contains(char::is_control));
                // The place is the value's; what was expected tells mismatches apart.
                mismatch.expected.split(' ').take(3).collect()
            }
            Err(fault) => format!("{:?}", fault.kind()),
        }
    });
}

/// A schema and a value, one a line.
fn split(input: &[u8]) -> Option<(Fragment, Fragment)> {
    let (schema, value) = std::str::from_utf8(input).ok()?.split_once('\n')?;
    Some((Fragment::parse(schema).ok()?, Fragment::parse(value).ok()?))
}

/// The control: the corpus is read as it should be.
#[test]
fn the_corpus_has_schemas_that_match_and_that_do_not() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/schemas");
    let mut seen = Vec::new();
    for name in ["0", "1", "2", "3", "4"] {
        let (schema, value) = split(&std::fs::read(corpus.join(name)).unwrap()).unwrap();
        let schema = Schema::read(schema.as_raw()).unwrap();
        seen.push(schema.check(value.as_raw()).map_err(|fault| fault.to_string()));
    }
    insta::assert_debug_snapshot!(seen, @r#"
    [
        Ok(
            (),
        ),
        Ok(
            (),
        ),
        Ok(
            (),
        ),
        Err(
            "it should be one alternative, not several, found 3.0",
        ),
        Err(
            "it should be an object with other names: \"abcd\" is longer than 3 characters, found an object of 1",
        ),
    ]
    "#);
}
