//! Fast integer formatting, where `write!` would dominate the cost.

/// Buffer for the digits of one number.
#[derive(Debug, Default)]
pub struct Decimal([u8; 20]);

impl Decimal {
    /// Formats a number in decimal.
    pub fn of(&mut self, number: u64) -> &str {
        let (mut rest, mut first) = (number, self.0.len());
        for digit in self.0.iter_mut().rev() {
            // The remainder is one digit.
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
            first -= 1;
            if rest == 0 {
                break;
            }
        }
        let digits = self.0.get(first..).unwrap_or_default();
        // Digits are ASCII.
        std::str::from_utf8(digits).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_they_are() {
        for number in [0, 9, 10, (1 << 40) + 7, u64::MAX] {
            assert_eq!(Decimal::default().of(number), number.to_string());
        }
    }
}
