//! A requested schema to a form.

use plenipo_wire::object::{self, non_null};
use plenipo_wire::{Fragment, RawValue};

use super::{Choice, Field, FieldKind, Form, FormFault, MOST, TextFormat};

pub(super) fn form(schema: &RawValue) -> Result<Form, FormFault> {
    let [kind, properties, required] =
        object::select(schema, ["type", "properties", "required"])
            .ok_or_else(|| FormFault::new("the requested schema is not an object"))?;
    if kind.and_then(object::text).as_deref() != Some("object") {
        return Err(FormFault::new("the requested schema is not of type `object`"));
    }
    let properties = match properties {
        None => Vec::new(),
        Some(raw) => object::entries(raw)
            .ok_or_else(|| FormFault::new("the requested schema's `properties` are no object"))?,
    };
    if properties.len() > MOST {
        return Err(FormFault::new(format!("the form has more than {MOST} fields")));
    }
    let required = required.and_then(strings).unwrap_or_default();
    let mut fields: Vec<Field> = Vec::with_capacity(properties.len());
    for (name, schema) in properties {
        let name = name.into_owned();
        if fields.iter().any(|field| field.name == name) {
            return Err(FormFault::of(&name, "is there twice"));
        }
        let required = required.contains(&name);
        fields.push(field(name, schema, required)?);
    }
    if let Some(name) = required.iter().find(|name| fields.iter().all(|f| f.name != **name)) {
        return Err(FormFault::of(name, "is required and not in the form"));
    }
    Ok(Form { fields })
}

fn field(name: String, schema: &RawValue, required: bool) -> Result<Field, FormFault> {
    let [kind, title, description] = object::select(schema, ["type", "title", "description"])
        .ok_or_else(|| FormFault::of(&name, "has a schema that is not an object"))?;
    let kind = kind.and_then(object::text).unwrap_or_default();
    let kind = match &*kind {
        "string" => text(schema),
        "number" => number(schema, false),
        "integer" => number(schema, true),
        "boolean" => {
            let default = object::member(schema, "default").and_then(object::boolean);
            Ok(FieldKind::Boolean { default })
        }
        "array" => choices(schema),
        _ => Err("is neither text, number, boolean nor a choice"),
    };
    let kind = kind.map_err(|what| FormFault::of(&name, what))?;
    let words = |raw: Option<&RawValue>| raw.and_then(object::text).map(Into::into);
    let mut field =
        Field { name, title: words(title), description: words(description), required, kind };
    // A default that does not fit is none: who just agrees would send it.
    if field.default().is_some_and(|default| field.check(default.as_raw()).is_err()) {
        field.kind.forget_default();
    }
    Ok(field)
}

impl FieldKind {
    fn forget_default(&mut self) {
        match self {
            Self::Text { default, .. } | Self::Choice { default, .. } => *default = None,
            Self::Number { default, .. } => *default = None,
            Self::Boolean { default } => *default = None,
            Self::Choices { default, .. } => *default = None,
        }
    }
}

fn text(schema: &RawValue) -> Result<FieldKind, &'static str> {
    let names = ["enum", "enumNames", "oneOf", "default", "minLength", "maxLength", "format"];
    let [plain, names, titled, default, min, max, format] =
        object::select(schema, names).unwrap_or_default();
    let default = default.and_then(object::text).map(Into::into);
    if plain.is_some() || titled.is_some() {
        let options = options(plain, names, titled)?;
        return Ok(FieldKind::Choice { options, default });
    }
    let format = format.and_then(object::text);
    Ok(FieldKind::Text {
        min_length: length(min)?,
        max_length: length(max)?,
        format: format.and_then(|format| TextFormat::from_name(&format)),
        default,
    })
}

fn number(schema: &RawValue, integer: bool) -> Result<FieldKind, &'static str> {
    let [minimum, maximum, default] =
        object::select(schema, ["minimum", "maximum", "default"]).unwrap_or_default();
    let bound = |raw: Option<&RawValue>| match raw.and_then(non_null) {
        None => Ok(None),
        Some(raw) => object::number(raw).map(Some).ok_or("has a bound that is no number"),
    };
    Ok(FieldKind::Number {
        integer,
        minimum: bound(minimum)?,
        maximum: bound(maximum)?,
        default: default.and_then(non_null).map(Fragment::from_raw),
    })
}

fn choices(schema: &RawValue) -> Result<FieldKind, &'static str> {
    let [items, min, max, default] =
        object::select(schema, ["items", "minItems", "maxItems", "default"]).unwrap_or_default();
    let [plain, one_of, any_of] = items
        .and_then(|items| object::select(items, ["enum", "oneOf", "anyOf"]))
        .ok_or("is a list of something else than choices")?;
    let default = default.and_then(strings);
    Ok(FieldKind::Choices {
        options: options(plain, None, any_of.or(one_of))?,
        min_items: length(min)?,
        max_items: length(max)?,
        default,
    })
}

/// `enum` with or without `enumNames`, or a list of `{const, title}`.
fn options(
    plain: Option<&RawValue>,
    names: Option<&RawValue>,
    titled: Option<&RawValue>,
) -> Result<Vec<Choice>, &'static str> {
    const WRONG: &str = "has choices that are not strings";
    let options: Vec<Choice> = match (titled, plain) {
        (Some(titled), _) => {
            let items = object::items(titled).ok_or(WRONG)?;
            let choice = |item: &RawValue| {
                let [value, title] = object::select(item, ["const", "title"])?;
                let value = value.and_then(object::text)?.into_owned();
                let title = title.and_then(object::text).map(Into::into);
                Some(Choice { title: title.unwrap_or_else(|| value.clone()), value })
            };
            items.into_iter().map(choice).collect::<Option<_>>().ok_or(WRONG)?
        }
        (None, Some(plain)) => {
            let names = names.and_then(strings).unwrap_or_default();
            let values = strings(plain).ok_or(WRONG)?.into_iter().enumerate();
            let title = |index: usize, value: &String| names.get(index).unwrap_or(value).clone();
            values.map(|(index, value)| Choice { title: title(index, &value), value }).collect()
        }
        (None, None) => return Err("is a list of something else than choices"),
    };
    match options.len() {
        0 => Err("has nothing to choose from"),
        1..=MOST => Ok(options),
        _ => Err("has too many choices"),
    }
}

fn strings(raw: &RawValue) -> Option<Vec<String>> {
    object::items(raw)?.into_iter().map(|item| object::text(item).map(Into::into)).collect()
}

fn length(raw: Option<&RawValue>) -> Result<Option<u64>, &'static str> {
    match raw.and_then(non_null) {
        None => Ok(None),
        Some(raw) => object::integer(raw)
            .and_then(|number| u64::try_from(number).ok())
            .map(Some)
            .ok_or("has a length that is no number"),
    }
}
