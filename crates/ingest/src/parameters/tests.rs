use super::*;

/// Returns rows of values sent in text format.
fn texts(rows: &[u8]) -> Vec<u8> {
    [&[0, 0], rows].concat()
}

/// Returns one row with one binary value of type `oid`.
fn binary(oid: u32, value: &[u8]) -> Vec<u8> {
    let length = i32::try_from(value.len()).expect("short").to_be_bytes();
    [&[0, 1, 1][..], &oid.to_be_bytes(), &[0, 1], &length, value].concat()
}

fn read(bytes: &[u8]) -> Result<Vec<Vec<ParameterValue<'static>>>, EngineError> {
    let rows = ParameterRows::read(bytes)?;
    Ok(rows
        .iter()
        .map(|row| row.iter().cloned().map(ParameterValue::into_owned).collect())
        .collect())
}

fn one(oid: u32, value: &[u8]) -> Result<ParameterValue<'static>, EngineError> {
    read(&binary(oid, value)).map(|mut rows| rows.remove(0).remove(0))
}

fn refused(bytes: &[u8], code: ErrorCode, why: &str) {
    let error = read(bytes).expect_err("the rows must be rejected");
    assert_eq!(error.code, code, "{error}");
    assert!(error.reason().contains(why), "{}", error.reason());
}

#[test]
fn rows_are_read_without_copying() {
    let row = b"\0\x02\0\0\0\x02\xc3\xa9\xff\xff\xff\xff";
    let first = vec![ParameterValue::text("é"), ParameterValue::Null];
    assert_eq!(read(&texts(row)), Ok(vec![first.clone()]));
    assert_eq!(read(&texts(&row.repeat(2))), Ok(vec![first.clone(), first]));
    assert_eq!(read(b""), Ok(Vec::new()));
    assert_eq!(read(&texts(b"\0\x01\0\0\0\0")), Ok(vec![vec![ParameterValue::text("")]]));
}

#[test]
fn an_execution_with_more_than_one_row_is_rejected() {
    let row = b"\0\x01\0\0\0\x01a";
    let single = |bytes: &[u8]| ParameterRows::read(bytes).and_then(ParameterRows::into_single);
    assert_eq!(single(&texts(row)), Ok(vec![ParameterValue::text("a")]));
    assert_eq!(single(b""), Ok(Vec::new()));
    assert!(single(&texts(&row.repeat(2))).is_err());
}

#[test]
fn invalid_text_and_truncated_rows_are_rejected() {
    refused(&texts(b"\0\x01\0\0\0\x01\xff"), ErrorCode::InvalidEncoding, "UTF8");
    refused(&texts(b"\0\x01\0\0\0\x01\0"), ErrorCode::InvalidEncoding, "0x00");
    refused(&texts(b"\0\x01\0\0\0\x02a"), ErrorCode::Internal, "truncated");
    refused(&texts(b"\0\x01\0\0"), ErrorCode::Internal, "truncated");
    refused(&texts(b"\0\x01\0\0\0\x01a\0\x02"), ErrorCode::InvalidValue, "same number");
    refused(b"\0\x02\x01", ErrorCode::Internal, "truncated");
}

#[test]
fn boolean_strings_match_postgresql() {
    let boolean = |text: &[u8]| {
        let length = i32::try_from(text.len()).expect("short").to_be_bytes();
        let sent = [&[0, 1, 0][..], &oid::BOOL.to_be_bytes(), &[0, 1], &length, text].concat();
        read(&sent).map(|mut rows| rows.remove(0).remove(0))
    };
    for (text, value) in [("t", true), ("YES", true), ("1", true), ("off", false), ("F", false)] {
        assert_eq!(boolean(text.as_bytes()), Ok(ParameterValue::Boolean(value)), "{text}");
    }
    assert_eq!(boolean(b"maybe"), Ok(ParameterValue::text("maybe")));
}

#[test]
fn numbers_times_and_identifiers_keep_their_types() {
    assert_eq!(one(oid::BOOL, &[1]), Ok(ParameterValue::Boolean(true)));
    assert_eq!(one(oid::INT2, &[0xff, 0xfe]), Ok(ParameterValue::Short(-2)));
    assert_eq!(one(oid::INT4, &7_i32.to_be_bytes()), Ok(ParameterValue::Int(7)));
    assert_eq!(one(oid::INT4, &i32::MIN.to_be_bytes()), Ok(ParameterValue::Null));
    assert_eq!(one(oid::INT8, &(-9_i64).to_be_bytes()), Ok(ParameterValue::Long(-9)));
    assert_eq!(one(oid::OID, &u32::MAX.to_be_bytes()), Ok(ParameterValue::Long(4_294_967_295)));
    assert_eq!(one(oid::FLOAT4, &1.5_f32.to_be_bytes()), Ok(ParameterValue::Float(1.5)));
    assert_eq!(one(oid::FLOAT8, &1.1_f64.to_be_bytes()), Ok(ParameterValue::Double(1.1)));
    assert_eq!(one(oid::FLOAT8, &f64::NAN.to_be_bytes()), Ok(ParameterValue::Null));
    assert_eq!(one(oid::DATE, &1_i32.to_be_bytes()), {
        Ok(ParameterValue::Timestamp(946_684_800_000_000 + 86_400_000_000))
    });
    assert_eq!(one(oid::TIMESTAMP, &0_i64.to_be_bytes()), {
        Ok(ParameterValue::Timestamp(946_684_800_000_000))
    });
    assert_eq!(one(oid::UUID, &[7; 16]), Ok(ParameterValue::Uuid([7; 16])));
    assert_eq!(one(oid::BYTEA, b"\0\xff"), Ok(ParameterValue::Binary(b"\0\xff"[..].into())));
    assert_eq!(one(oid::JSONB, b"\x01{}"), Ok(ParameterValue::text("{}")));
}

#[test]
fn unsupported_types_become_strings() {
    let text = |oid: u32, value: &[u8]| match one(oid, value) {
        Ok(ParameterValue::Text(text)) => text.into_owned(),
        other => panic!("{other:?}"),
    };
    let v4 = text(oid::INET, &[2, 32, 0, 4, 10, 0, 0, 1]);
    assert_eq!(v4, "10.0.0.1");
    assert_eq!(text(oid::CIDR, &[2, 8, 1, 4, 10, 0, 0, 0]), "10.0.0.0/8");
    let mut v6 = vec![3, 128, 0, 16];
    v6.extend([0; 15]);
    v6.push(1);
    assert_eq!(text(oid::INET, &v6), "::1");
    assert_eq!(text(oid::TIME, &45_296_000_007_i64.to_be_bytes()), "12:34:56.000007");
    let interval = |micros: i64, days: i32, months: i32| {
        let bytes = [&micros.to_be_bytes()[..], &days.to_be_bytes(), &months.to_be_bytes()];
        text(oid::INTERVAL, &bytes.concat())
    };
    assert_eq!(interval(0, 0, 0), "00:00:00");
    assert_eq!(interval(-1_500_000, 2, 14), "14 mons 2 days -00:00:01.500000");
    let numeric = |weight: i16, sign: u16, scale: i16, groups: &[i16]| {
        let mut bytes = Vec::new();
        bytes.extend(i16::try_from(groups.len()).expect("few").to_be_bytes());
        bytes.extend(weight.to_be_bytes());
        bytes.extend(sign.to_be_bytes());
        bytes.extend(scale.to_be_bytes());
        bytes.extend(groups.iter().flat_map(|group| group.to_be_bytes()));
        text(oid::NUMERIC, &bytes)
    };
    assert_eq!(numeric(1, 0x4000, 3, &[1, 2345, 6780]), "-12345.678");
    assert_eq!(numeric(-2, 0, 8, &[12]), "0.00000012");
    assert_eq!(numeric(2, 0, 0, &[1]), "100000000");
    assert_eq!(numeric(0, 0xc000, 0, &[]), "NaN");
}

/// Encodes an array: its dimensions, element type and elements.
fn array(dimensions: &[i32], element: u32, elements: &[Option<&[u8]>]) -> Vec<u8> {
    let count = i32::try_from(dimensions.len()).expect("few");
    let mut bytes = [count.to_be_bytes(), [0; 4], element.to_be_bytes()].concat();
    bytes
        .extend(dimensions.iter().flat_map(|length| [length.to_be_bytes(), [0, 0, 0, 1]].concat()));
    for element in elements {
        match element {
            Some(value) => {
                bytes.extend(i32::try_from(value.len()).expect("short").to_be_bytes());
                bytes.extend(*value);
            }
            None => bytes.extend((-1_i32).to_be_bytes()),
        }
    }
    bytes
}

#[test]
fn arrays_are_converted_to_strings() {
    let text = |bytes: &[u8]| {
        one(1009, bytes).map(|value| match value {
            ParameterValue::Items(items) => ParameterValue::text(items.text()),
            other => other,
        })
    };
    let words = array(&[4], oid::TEXT, &[Some(b"a"), None, Some(b"b \"c\""), Some(b"null")]);
    assert_eq!(text(&words), Ok(ParameterValue::text(r#"{a,NULL,"b \"c\"","null"}"#)));
    let doubles = [1.5_f64.to_be_bytes(), 1e300_f64.to_be_bytes()];
    let doubles = array(&[2, 1], oid::FLOAT8, &[Some(&doubles[0]), Some(&doubles[1])]);
    assert_eq!(one(1022, &doubles), Ok(ParameterValue::text("{{1.5},{1e300}}")));
    assert_eq!(text(&array(&[], oid::TEXT, &[])), Ok(ParameterValue::text("{}")));
    assert_eq!(text(&array(&[0, 3], oid::TEXT, &[])), Ok(ParameterValue::text("{}")));
    let hour = [&3_600_000_000_i64.to_be_bytes()[..], &[0; 3], &[2], &[0; 4]].concat();
    let lengths = one(1187, &array(&[2], oid::INTERVAL, &[Some(&hour), None]));
    assert_eq!(lengths, Ok(ParameterValue::text(r#"{"2 days 01:00:00",NULL}"#)));
}

/// Compares a one-dimensional array with a two-dimensional array that contains it as its only row.
/// Both must yield the same string, although only the items of the two-dimensional array are
/// decoded individually.
#[test]
fn array_items_are_formatted_like_single_values() {
    let numbers: [i64; 8] = [0, 1, -7, i64::MAX, i64::MIN, 1 << 31, -(1 << 31), 3_000_000_000];
    let of = |value: i64, oid: u32| match oid {
        oid::BOOL => vec![(value & 1) as u8],
        oid::INT2 => (value as i16).to_be_bytes().to_vec(),
        oid::INT4 | oid::OID => (value as i32).to_be_bytes().to_vec(),
        oid::DATE => i32::from(value as i16).to_be_bytes().to_vec(),
        oid::INT8 => value.to_be_bytes().to_vec(),
        oid::FLOAT4 => (value as f32 / 3.0).to_be_bytes().to_vec(),
        oid::FLOAT8 if value == 1 => f64::NAN.to_be_bytes().to_vec(),
        oid::FLOAT8 => (value as f64 / 3.0).to_be_bytes().to_vec(),
        oid::TIMESTAMP => (value >> 12).to_be_bytes().to_vec(),
        _ => ["", "null", "a b", "é", "{\"}", "\\", "x", "NULL"][value as usize & 7].into(),
    };
    for (array_oid, oid) in [
        (1000, oid::BOOL),
        (1005, oid::INT2),
        (1007, oid::INT4),
        (1028, oid::OID),
        (1016, oid::INT8),
        (1021, oid::FLOAT4),
        (1022, oid::FLOAT8),
        (1182, oid::DATE),
        (1115, oid::TIMESTAMP),
        (1009, oid::TEXT),
        (1015, oid::VARCHAR),
    ] {
        let values: Vec<Vec<u8>> = numbers.iter().map(|&value| of(value, oid)).collect();
        let mut elements: Vec<Option<&[u8]>> =
            values.iter().map(|value| Some(value.as_slice())).collect();
        elements.insert(2, None);
        let count = elements.len() as i32;
        let flat = array(&[count], oid, &elements);
        let Ok(ParameterValue::Items(items)) = one(array_oid, &flat) else {
            panic!("no items of {oid}")
        };
        let nested = one(array_oid, &array(&[1, count], oid, &elements)).unwrap();
        assert_eq!(ParameterValue::text(format!("{{{}}}", items.text())), nested, "{oid}");
        // Rejects an array that is truncated at any byte or has bytes after its last element.
        for length in 0..flat.len() {
            let error = one(array_oid, &flat[..length]).expect_err("array is truncated");
            assert_eq!(error.code, ErrorCode::InvalidBinary, "{oid}, {length}");
        }
        let longer = [&flat[..], &[0]].concat();
        assert_eq!(one(array_oid, &longer).expect_err("too long").code, ErrorCode::InvalidBinary);
    }
    let wide = array(&[1], oid::INT4, &[Some(&[0; 8])]);
    assert_eq!(one(1007, &wide).expect_err("too wide").code, ErrorCode::InvalidBinary);
    let infinite = i64::MAX.to_be_bytes();
    let infinite = array(&[1], oid::TIMESTAMP, &[Some(&infinite)]);
    assert_eq!(one(1115, &infinite).expect_err("infinite").code, ErrorCode::InvalidValue);
}

#[test]
fn arrays_longer_than_their_data_are_rejected() {
    let refused = |bytes: &[u8]| {
        let error = one(1009, bytes).expect_err("the array must be rejected");
        assert_eq!(error.code, ErrorCode::InvalidBinary);
    };
    refused(&array(&[i32::MAX], oid::TEXT, &[]));
    refused(&array(&[65_536, 65_536, 65_536, 65_536], oid::TEXT, &[Some(b"a")]));
    refused(&array(&[-1], oid::TEXT, &[]));
    refused(&array(&[1; 7], oid::TEXT, &[Some(b"a")]));
    refused(&array(&[1], 1009, &[Some(b"a")]));
    refused(&array(&[1], oid::TEXT, &[Some(b"a"), Some(b"b")]));
    refused(b"\0\0");
}

#[test]
fn values_with_a_wrong_size_or_unknown_type_are_rejected() {
    for oid in [oid::BOOL, oid::INT2, oid::INT4, oid::INT8, oid::FLOAT8, oid::UUID, oid::DATE] {
        refused(&binary(oid, &[1, 2, 3]), ErrorCode::InvalidBinary, "binary data format");
    }
    for oid in [oid::NUMERIC, oid::INET, oid::TIME, oid::INTERVAL, 1009] {
        refused(&binary(oid, &[9]), ErrorCode::InvalidBinary, "binary data format");
    }
    refused(&binary(600, &[0; 16]), ErrorCode::NotSupported, "OID 600");
    refused(&binary(oid::TIMESTAMP, &i64::MAX.to_be_bytes()), ErrorCode::InvalidValue, "range");
}

/// Random bytes of any type must produce a value or an error.
#[test]
fn random_bytes_never_crash_the_decoder() {
    use rand::{Rng, SeedableRng};
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(7);
    let mut oids = vec![oid::BOOL, oid::NUMERIC, oid::INET, oid::INTERVAL, oid::JSONB, 600];
    oids.extend(oid::ARRAYS);
    for _ in 0..100_000 {
        let oid = oids[random.random_range(0..oids.len())];
        let mut value = vec![0; random.random_range(0..64)];
        random.fill(&mut value[..]);
        if random.random_bool(0.5) {
            let filled = value.len().min(11);
            value[..filled].fill(0);
        }
        let _ = one(oid, &value);
    }
}
