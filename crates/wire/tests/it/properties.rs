use plenipo_wire::sse::EventReader;
use plenipo_wire::{Fragment, Incoming, LineReader, RawValue, RequestId, encode, object, views};
use proptest::prelude::*;

/// JSON text with odd spellings and white space, line breaks included.
fn json() -> impl Strategy<Value = String> {
    let space = || prop::sample::select(vec!["", " ", "\n", "\r\n", "\t"]);
    let leaf = prop_oneof![
        prop::sample::select(vec![
            "null",
            "true",
            "-0",
            "1.10",
            "1E2",
            "12345678901234567890123",
            "\"\\u00e9\\/\"",
            "\"\\r\\n\"",
            "\"\u{2028}\""
        ])
        .prop_map(str::to_owned),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<String>().prop_map(|text| Fragment::string(&text).to_string()),
    ];
    leaf.prop_recursive(4, 32, 4, move |inner| {
        prop_oneof![
            (prop::collection::vec(inner.clone(), 0..4), space()).prop_map(
                |(items, space)| format!("[{space}{}]", items.join(&format!("{space},")))
            ),
            (prop::collection::vec((any::<String>(), inner), 0..4), space()).prop_map(
                |(members, space)| {
                    let members: Vec<_> = members
                        .into_iter()
                        .map(|(name, value)| format!("{}{space}:{value}", Fragment::string(&name)))
                        .collect();
                    format!("{{{}{space}}}", members.join(","))
                }
            ),
        ]
    })
}

fn read_all(reader: &mut LineReader, out: &mut Vec<Result<Vec<u8>, usize>>) {
    while let Some(line) = reader.next_line() {
        out.push(line.map(<[u8]>::to_vec).map_err(|fault| fault.limit));
    }
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"\n".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\xef\xbb\xbf".to_vec()),
        Just("\u{2028}é".as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..40),
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

type EventText = Result<(Vec<u8>, Vec<u8>), usize>;

fn read_events(reader: &mut EventReader, out: &mut Vec<EventText>) {
    while let Some(event) = reader.next_event() {
        let owned = event.map(|event| (event.name.to_vec(), event.data.to_vec()));
        out.push(owned.map_err(|fault| fault.limit));
    }
}

fn line_end() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["\n", "\r", "\r\n"])
}

fn event_stream() -> impl Strategy<Value = Vec<u8>> {
    let field = prop::sample::select(vec![
        "data: ",
        "data:",
        "data",
        "event: x",
        "event:message",
        "id: 7",
        "id",
        "id: a\0",
        "retry: 20",
        "retry: x",
        ": ping",
        ":",
        "vendor: y",
        "\u{feff}",
        "\u{feff}data: ",
    ]);
    let piece = prop_oneof![
        3 => field.prop_map(|field| field.as_bytes().to_vec()),
        4 => line_end().prop_map(|end| end.as_bytes().to_vec()),
        1 => Just("é\u{2028}".as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..40),
        1 => Just(vec![b'x'; 90]),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn splitting_a_stream_anywhere_gives_the_same_lines(
        bytes in stream(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12), limit in 1_usize..64,
    ) {
        let mut whole = LineReader::with_limit(limit);
        whole.push(&bytes);
        let mut expected = Vec::new();
        read_all(&mut whole, &mut expected);
        let rest = whole.finish().map(<[u8]>::to_vec);

        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let mut pieces = LineReader::with_limit(limit);
        let mut found = Vec::new();
        for (index, pair) in cuts.windows(2).enumerate() {
            let mut part = &bytes[pair[0]..pair[1]];
            while index % 2 == 0 && !part.is_empty() {
                let room = pieces.room();
                let count = (room.capacity() - room.len()).min(part.len());
                prop_assert!(count > 0);
                room.extend_from_slice(&part[..count]);
                part = &part[count..];
            }
            pieces.push(part);
            read_all(&mut pieces, &mut found);
        }
        prop_assert_eq!(found, expected);
        prop_assert_eq!(pieces.finish().map(<[u8]>::to_vec), rest);
    }

    #[test]
    fn a_fragment_keeps_its_text_and_has_no_line_break(text in json()) {
        let fragment = Fragment::parse(&text).unwrap();
        let expected = text.trim_matches([' ', '\t', '\r', '\n']).replace(['\r', '\n'], " ");
        prop_assert_eq!(fragment.as_str(), expected);
        prop_assert!(!fragment.as_str().contains(['\r', '\n']));
    }

    #[test]
    fn a_request_reads_back_as_it_was_written(
        method in any::<String>(), text in json(), number in any::<i64>(), name in any::<String>(),
    ) {
        let fragment = Fragment::parse(&text).unwrap();
        for id in [RequestId::Number(number), RequestId::Text(name.clone())] {
            let mut out = Vec::new();
            encode::write_request(&mut out, &id, &method, Some(&fragment));
            encode::write_success(&mut out, &id, &fragment);
            encode::write_failure(&mut out, Some(&id), number, &name, Some(&fragment));
            let mut reader = LineReader::new();
            reader.push(&out);
            match Incoming::parse(reader.next_line().unwrap().unwrap()).unwrap() {
                Incoming::Request { id: read, method: called, params } => {
                    prop_assert_eq!(read, id.clone());
                    prop_assert_eq!(called, method.as_str());
                    prop_assert_eq!(params.unwrap().get(), fragment.as_str());
                }
                other => prop_assert!(false, "{:?}", other),
            }
            match Incoming::parse(reader.next_line().unwrap().unwrap()).unwrap() {
                Incoming::Success { id: read, result } => {
                    prop_assert_eq!(read, id.clone());
                    prop_assert_eq!(result.get(), fragment.as_str());
                }
                other => prop_assert!(false, "{:?}", other),
            }
            match Incoming::parse(reader.next_line().unwrap().unwrap()).unwrap() {
                Incoming::Failure { id: read, error } => {
                    prop_assert_eq!(read, Some(id));
                    prop_assert_eq!(error.code, number);
                    prop_assert_eq!(error.message, name.as_str());
                }
                other => prop_assert!(false, "{:?}", other),
            }
            prop_assert!(reader.next_line().is_none() && reader.finish().is_none());
        }
    }

    #[test]
    fn reading_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), text in json()) {
        std::hint::black_box(Incoming::parse(&bytes).is_ok());
        let wrapped = format!("{{\"id\":{text},\"result\":{text},\"error\":{text}}}");
        std::hint::black_box(Incoming::parse(wrapped.as_bytes()).is_ok());
        let raw: Box<RawValue> = serde_json::from_str(&text).unwrap();
        std::hint::black_box(views::CallResult::from_raw(&raw).is_ok());
        std::hint::black_box(views::ToolView::from_raw(&raw).is_ok());
        std::hint::black_box(views::InitializeResult::from_raw(&raw).is_ok());
        std::hint::black_box(views::DiscoverResult::from_raw(&raw).is_ok());
        std::hint::black_box(views::Progress::from_raw(&raw).is_ok());
        let page = format!("{{\"tools\":[{text}]}}");
        let raw: Box<RawValue> = serde_json::from_str(&page).unwrap();
        prop_assert_eq!(views::ToolPage::from_raw(&raw).unwrap().tools.len(), 1);
        std::hint::black_box((object::integer(&raw), object::text(&raw), object::entries(&raw)));
    }

    #[test]
    fn splitting_an_event_stream_anywhere_gives_the_same_events(
        bytes in event_stream(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        limit in 1_usize..60,
    ) {
        let mut whole = EventReader::with_limit(limit);
        whole.push(&bytes);
        let mut expected = Vec::new();
        read_events(&mut whole, &mut expected);

        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let mut pieces = EventReader::with_limit(limit);
        let mut found = Vec::new();
        for pair in cuts.windows(2) {
            pieces.push(&bytes[pair[0]..pair[1]]);
            read_events(&mut pieces, &mut found);
        }
        prop_assert_eq!(found, expected);
        prop_assert_eq!(pieces.last_event_id(), whole.last_event_id());
        prop_assert_eq!(pieces.retry(), whole.retry());
    }

    #[test]
    fn an_event_reads_back_as_it_was_written(text in json(), end in line_end()) {
        let mut stream = String::from("event: message");
        stream.push_str(end);
        for line in text.split(['\r', '\n']) {
            stream.push_str("data: ");
            stream.push_str(line);
            stream.push_str(end);
        }
        stream.push_str(end);
        let mut reader = EventReader::new();
        reader.push(stream.as_bytes());
        let event = reader.next_event().unwrap().unwrap();
        prop_assert!(event.is_message());
        let expected = text.replace('\r', "\n");
        prop_assert_eq!(event.data, expected.as_bytes());
        prop_assert!(reader.next_event().is_none());
    }
}
