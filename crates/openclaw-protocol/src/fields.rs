//! How single fields are read and written where that differs from `serde`.

use serde::{Deserialize, Deserializer, Serializer};

/// Up to 2^53 every integer has an exact representation.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;

/// Writes numbers as other implementations do: `1000`, not `1000.0`.
#[expect(clippy::ref_option, reason = "the signature that `serialize_with` requires")]
#[expect(clippy::cast_possible_truncation, reason = "it is an integer within range")]
pub(crate) fn write_number<S: Serializer>(number: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
    match number {
        Some(number) if number.fract() == 0.0 && number.abs() <= MAX_WHOLE => {
            to.serialize_i64(*number as i64)
        }
        Some(number) => to.serialize_f64(*number),
        None => to.serialize_none(),
    }
}

/// Keeps an explicit `null`, which differs from an absent field.
pub(crate) fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    #[derive(Serialize)]
    struct Number(#[serde(serialize_with = "super::write_number")] Option<f64>);

    #[test]
    fn whole_numbers_have_no_fraction() {
        for (number, written) in [
            (Some(1_794_826_970_317.0), "1794826970317"),
            (Some(-3.0), "-3"),
            (Some(0.5), "0.5"),
            (Some(1e300), "1e+300"),
            (None, "null"),
        ] {
            assert_eq!(serde_json::to_string(&Number(number)).unwrap(), written);
        }
    }
}
