use super::*;

fn form(schema: &str) -> Result<Form, FormFault> {
    Form::from_raw(Fragment::parse(schema).unwrap().as_raw())
}

fn of(properties: &str, required: &str) -> Form {
    form(&format!(r#"{{"type":"object","properties":{properties},"required":{required}}}"#))
        .unwrap()
}

fn complete(form: &Form, content: &str) -> Result<String, String> {
    let content = Fragment::parse(content).unwrap();
    let completed = form.complete(Some(content.as_raw()));
    completed.map(|content| content.to_string()).map_err(|fault| fault.to_string())
}

#[test]
fn form_defaults_and_validation() {
    let form = of(
        r##"{"name":{"type":"string","title":"Your name","default":"John","minLength":2,"maxLength":5},
            "mail":{"type":"string","format":"email"},
            "age":{"type":"integer","minimum":0,"maximum":150,"default":30},
            "score":{"type":"number","default":95.50},
            "sure":{"type":"boolean","default":true},
            "status":{"type":"string","enum":["on","off"],"enumNames":["On","Off"],"default":"on"},
            "colour":{"type":"string","oneOf":[{"const":"#f00","title":"Red"},{"const":"#0f0","title":"Green"}]},
            "tags":{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","enum":["a","b","c"]},"default":["b"]},
            "also":{"type":"array","items":{"anyOf":[{"const":"x","title":"Ex"}]}}}"##,
        r#"["mail"]"#,
    );
    assert_eq!(
        complete(&form, r#"{"mail":"a@b"}"#).unwrap(),
        r##"{"name":"John","mail":"a@b","age":30,"score":95.50,"sure":true,"status":"on","tags":["b"]}"##
    );
    let mut faults = Vec::new();
    for content in [
        "{}",
        "[]",
        r#"{"mail":"nobody"}"#,
        r#"{"mail":"a@b","other":1}"#,
        r#"{"mail":"a@b","name":"J"}"#,
        r#"{"mail":"a@b","name":"Johannes"}"#,
        r#"{"mail":"a@b","name":7}"#,
        r#"{"mail":"a@b","age":1.5}"#,
        r#"{"mail":"a@b","age":"30"}"#,
        r#"{"mail":"a@b","age":151}"#,
        r#"{"mail":"a@b","age":-1}"#,
        r#"{"mail":"a@b","sure":"yes"}"#,
        r#"{"mail":"a@b","status":"On"}"#,
        r#"{"mail":"a@b","colour":"Red"}"#,
        r#"{"mail":"a@b","tags":[]}"#,
        r#"{"mail":"a@b","tags":["a","b","c"]}"#,
        r#"{"mail":"a@b","tags":["d"]}"#,
        r#"{"mail":"a@b","also":"x"}"#,
    ] {
        faults.push(complete(&form, content).unwrap_err());
    }
    insta::assert_snapshot!(faults.join("\n"), @r"
    `mail` is required
    the answer is not a JSON object
    `mail` has to be an e-mail address
    `other` is not in the form
    `name` has to have at least 2 characters
    `name` may have at most 5 characters
    `name` has to be text
    `age` has to be a whole number
    `age` has to be a whole number
    `age` may be at most 150
    `age` has to be at least 0
    `sure` has to be yes or no
    `status` has to be one of on, off
    `colour` has to be one of #f00, #0f0
    `tags` has to have at least 1 of its choices
    `tags` may have at most 2 of its choices
    `tags` has to be some of a, b, c
    `also` has to be some of x
    ");
    let whole = r##"{"name":"Jo","mail":"a@b","age":1e2,"score":-1,"sure":false,"status":"off","colour":"#f00","tags":["a","c"],"also":["x"]}"##;
    assert_eq!(complete(&form, whole).unwrap(), whole, "what fits stays as it is written");
}

#[test]
fn what_is_typed_becomes_a_value_of_the_field() {
    let form = of(
        r#"{"text":{"type":"string"},"number":{"type":"number"},"flag":{"type":"boolean"},
            "one":{"type":"string","oneOf":[{"const":"2","title":"Two"},{"const":"r","title":"Red"}]},
            "some":{"type":"array","items":{"type":"string","enum":["a","b"]}}}"#,
        "[]",
    );
    let parse = |name: &str, text: &str| match form.field(name).unwrap().parse(text) {
        Ok(value) => value.to_string(),
        Err(fault) => fault.to_string(),
    };
    for (name, text, value) in [
        ("text", " a \"b\" ", r#"" a \"b\" ""#),
        ("number", " 1.50 ", "1.50"),
        ("number", "+3", "3"),
        ("number", "0x10", "`number` has to be a number"),
        ("number", "\"3\"", "`number` has to be a number"),
        ("flag", "Y", "true"),
        ("flag", "off", "false"),
        ("flag", "maybe", "`flag` has to be yes or no"),
        ("one", "2", r#""2""#),
        ("one", "red", r#""r""#),
        ("one", "1", r#""2""#),
        ("one", "3", "`one` has to be one of 2, r"),
        ("some", "b, 1,b", r#"["b","a"]"#),
        ("some", "", "[]"),
        ("some", "c", "`some` has to be some of a, b"),
    ] {
        assert_eq!(parse(name, text), value, "{name} {text:?}");
    }
}

#[test]
fn a_default_that_does_not_fit_is_none() {
    let form = of(
        r#"{"a":{"type":"integer","default":"x"},"b":{"type":"string","enum":["x"],"default":"y"},
            "c":{"type":"string","default":7},"d":{"type":"boolean","default":"true"},
            "e":{"type":"array","items":{"type":"string","enum":["x"]},"default":["y"]},
            "f":{"type":"number","maximum":1,"default":2},"g":{"type":"string","default":null}}"#,
        r#"["a"]"#,
    );
    assert_eq!(complete(&form, "{}").unwrap_err(), "`a` is required");
    assert_eq!(complete(&form, r#"{"a":1}"#).unwrap(), r#"{"a":1}"#);
}

#[test]
fn a_form_that_nobody_can_fill_in_is_a_fault() {
    for schema in [
        "[]",
        r#"{"type":"array"}"#,
        r#"{"type":"object","properties":[]}"#,
        r#"{"type":"object","properties":{"a":{"type":"object"}}}"#,
        r#"{"type":"object","properties":{"a":{"type":["string","null"]}}}"#,
        r#"{"type":"object","properties":{"a":true}}"#,
        r#"{"type":"object","properties":{"a":{"type":"string","enum":[]}}}"#,
        r#"{"type":"object","properties":{"a":{"type":"string","enum":[1]}}}"#,
        r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}}}}"#,
        r#"{"type":"object","properties":{"a":{"type":"string","minLength":-1}}}"#,
        r#"{"type":"object","properties":{"a":{"type":"string"},"\u0061":{"type":"string"}}}"#,
        r#"{"type":"object","properties":{},"required":["a"]}"#,
    ] {
        assert!(form(schema).is_err(), "{schema}");
    }
    let none = form(r#"{"type":"object"}"#).unwrap();
    assert_eq!(none.complete(None).unwrap().as_str(), "{}");
    let fields = (0..=MOST).map(|n| format!(r#""f{n}":{{"type":"boolean"}}"#)).collect::<Vec<_>>();
    let many = format!(r#"{{"type":"object","properties":{{{}}}}}"#, fields.join(","));
    assert!(form(&many).unwrap_err().to_string().contains("256"));
}
