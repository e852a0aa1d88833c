//! Encodes pictures as sixel graphics: bands of six rows, drawn once for each of their colours.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::bitmap::Bitmap;

/// The rows of a band.
const BAND: usize = 6;
/// Pixels with less opacity are left as they are on the screen.
const OPAQUE: u8 = 128;
/// The bits of a channel by which colours are counted.
const BITS: u32 = 6;

/// Encodes a picture with at most this many colours.
pub(super) fn encode(bitmap: &Bitmap, colours: usize) -> String {
    let Bitmap { width, height, pixels } = bitmap;
    let palette = Palette::of(pixels, colours);
    // Square pixels; what is not drawn stays as it is.
    let mut out = format!("\u{1b}P0;1q\"1;1;{width};{height}");
    for (number, colour) in palette.colours.iter().enumerate() {
        let [red, green, blue] = colour.map(percent);
        let _ = write!(out, "#{number};2;{red};{green};{blue}");
    }
    let indices: Vec<Option<usize>> = pixels.iter().map(|pixel| palette.index(*pixel)).collect();
    for band in indices.chunks(width * BAND) {
        draw(band, *width, &mut out);
        out.push('-');
    }
    out.push_str("\u{1b}\\");
    out
}

/// Draws a band: for each of its colours, a character per column with a bit per row.
fn draw(band: &[Option<usize>], width: usize, out: &mut String) {
    let mut used: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
    for (at, index) in band.iter().enumerate() {
        if let Some(colour) = index {
            let bits = used.entry(*colour).or_insert_with(|| vec![0; width]);
            bits[at % width] |= 1 << (at / width);
        }
    }
    for (nth, (colour, bits)) in used.into_iter().enumerate() {
        // Back to the start of the band.
        out.push_str(if nth == 0 { "" } else { "$" });
        let _ = write!(out, "#{colour}");
        repeated(&bits, out);
    }
}

/// Writes the bits of a row of columns, with the length of each run. Blanks at the end are left out.
fn repeated(bits: &[u8], out: &mut String) {
    let drawn = bits.iter().rposition(|bits| *bits != 0).map_or(0, |last| last + 1);
    for run in bits[..drawn].chunk_by(|a, b| a == b) {
        let c = char::from(b'?' + run[0]);
        match run.len() {
            count @ 0..=3 => out.extend(std::iter::repeat_n(c, count)),
            count => drop(write!(out, "!{count}{c}")),
        }
    }
}

/// A channel of a colour as sixel graphics write it.
fn percent(channel: u8) -> u32 {
    (u32::from(channel) * 100 + 127) / 255
}

/// The colours of a picture, reduced by median cut.
struct Palette {
    colours: Vec<[u8; 3]>,
    /// The index of the colour of each cell of the colour space.
    of_cells: Vec<usize>,
}

/// A cell of the colour space: the pixels in it, and the sums of their channels.
#[derive(Clone, Default)]
struct Cell {
    at: usize,
    count: u64,
    sums: [u64; 3],
}

impl Cell {
    fn mean(&self, channel: usize) -> u64 {
        self.sums[channel] / self.count.max(1)
    }
}

/// Returns the cell that a colour is counted in.
fn cell([red, green, blue, _]: [u8; 4]) -> usize {
    [red, green, blue].iter().fold(0, |at, channel| at << BITS | usize::from(channel >> (8 - BITS)))
}

impl Palette {
    fn of(pixels: &[[u8; 4]], colours: usize) -> Self {
        let mut cells = vec![Cell::default(); 1 << (3 * BITS)];
        for pixel in pixels.iter().filter(|pixel| pixel[3] >= OPAQUE) {
            let at = cell(*pixel);
            let cell = &mut cells[at];
            cell.at = at;
            cell.count += 1;
            for (sum, channel) in cell.sums.iter_mut().zip(pixel) {
                *sum += u64::from(*channel);
            }
        }
        cells.retain(|cell| cell.count > 0);
        let mut boxes = vec![cells];
        while boxes.len() < colours
            && let Some((widest, channel)) = widest(&boxes)
        {
            let upper = split(&mut boxes[widest], channel);
            boxes.push(upper);
        }
        let mut of_cells = vec![0; 1 << (3 * BITS)];
        let mut palette = Vec::with_capacity(boxes.len());
        for (number, cells) in boxes.iter().enumerate() {
            cells.iter().for_each(|cell| of_cells[cell.at] = number);
            let count = cells.iter().map(|cell| cell.count).sum::<u64>().max(1);
            let mean = |channel: usize| {
                let sum: u64 = cells.iter().map(|cell| cell.sums[channel]).sum();
                u8::try_from(sum / count).unwrap_or(u8::MAX)
            };
            palette.push([mean(0), mean(1), mean(2)]);
        }
        Self { colours: palette, of_cells }
    }

    fn index(&self, pixel: [u8; 4]) -> Option<usize> {
        (pixel[3] >= OPAQUE).then(|| self.of_cells[cell(pixel)])
    }
}

/// Returns the box to split next, and its longest channel; `None` if each has a single cell.
fn widest(boxes: &[Vec<Cell>]) -> Option<(usize, usize)> {
    let lengths = boxes.iter().enumerate().flat_map(|(at, cells)| {
        (0..3).map(move |channel| {
            let means = || cells.iter().map(|cell| cell.mean(channel));
            let length = means().max().unwrap_or(0) - means().min().unwrap_or(0);
            (length, at, channel)
        })
    });
    let (length, at, channel) = lengths.max()?;
    (length > 0).then_some((at, channel))
}

/// Splits a box at the median of its pixels; both halves have cells. Returns the upper half.
fn split(cells: &mut Vec<Cell>, channel: usize) -> Vec<Cell> {
    cells.sort_by_key(|cell| cell.mean(channel));
    let half = cells.iter().map(|cell| cell.count).sum::<u64>() / 2;
    let mut below = 0;
    let median = cells.iter().position(|cell| {
        below += cell.count;
        below > half
    });
    let at = median.unwrap_or(0).clamp(1, cells.len().saturating_sub(1).max(1));
    cells.split_off(at.min(cells.len()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Decodes sixel graphics as a terminal does: raster attributes, colours, runs and line breaks.
    fn decode(sequence: &str) -> Bitmap {
        let body = sequence.strip_prefix("\u{1b}P0;1q\"1;1;").unwrap();
        let body = body.strip_suffix("\u{1b}\\").unwrap();
        let (width, rest) = number(body);
        let (height, mut rest) = number(rest.strip_prefix(';').unwrap());
        let mut pixels = vec![[0; 4]; width * height];
        let (mut registers, mut colour) = (vec![[0; 4]; 256], 0);
        let (mut x, mut y) = (0, 0);
        while let Some(c) = rest.chars().next() {
            rest = &rest[1..];
            match c {
                '#' => {
                    (colour, rest) = number(rest);
                    let mut values = Vec::new();
                    while let Some(more) = rest.strip_prefix(';') {
                        let value;
                        (value, rest) = number(more);
                        values.push(value);
                    }
                    if let [2, red, green, blue] = values[..] {
                        let channel = |percent: usize| u8::try_from(percent * 255 / 100).unwrap();
                        registers[colour] = [channel(red), channel(green), channel(blue), 255];
                    }
                }
                '$' => x = 0,
                '-' => (x, y) = (0, y + BAND),
                _ => {
                    let (mut count, mut c) = (1, c);
                    if c == '!' {
                        (count, rest) = number(rest);
                        c = rest.chars().next().unwrap();
                        rest = &rest[1..];
                    }
                    let bits = u8::try_from(c).unwrap() - b'?';
                    for column in x..x + count {
                        for row in (0..BAND).filter(|row| bits & 1 << row != 0) {
                            pixels[(y + row) * width + column] = registers[colour];
                        }
                    }
                    x += count;
                }
            }
        }
        Bitmap { width, height, pixels }
    }

    fn number(text: &str) -> (usize, &str) {
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        (text[..end].parse().unwrap(), &text[end..])
    }

    /// The largest difference of a channel; transparent pixels must be the same.
    fn difference(a: &Bitmap, b: &Bitmap) -> u8 {
        assert_eq!((a.width, a.height), (b.width, b.height));
        let differ = |(a, b): (&[u8; 4], &[u8; 4])| match (a[3] >= OPAQUE, b[3] >= OPAQUE) {
            (true, true) => (0..3).map(|at| a[at].abs_diff(b[at])).max().unwrap(),
            (false, false) => 0,
            _ => u8::MAX,
        };
        a.pixels.iter().zip(&b.pixels).map(differ).max().unwrap()
    }

    fn picture(width: usize, height: usize, pixel: impl Fn(usize, usize) -> [u8; 4]) -> Bitmap {
        let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        Bitmap { width, height, pixels: places.map(|(x, y)| pixel(x, y)).collect() }
    }

    #[test]
    fn a_picture_of_few_colours_is_shown_as_it_is() {
        let colours = [[255, 0, 0, 255], [0, 255, 0, 255], [0, 0, 0, 0], [10, 20, 200, 255]];
        for (width, height) in [(1, 1), (5, 6), (7, 13), (40, 3)] {
            let drawn = picture(width, height, |x, y| colours[(x / 3 + y) % 4]);
            let shown = decode(&encode(&drawn, 16));
            // Colours are written in percent.
            assert!(difference(&drawn, &shown) <= 2, "{width} x {height}");
        }
    }

    #[test]
    fn a_picture_of_many_colours_is_reduced_to_those_that_the_terminal_has() {
        let byte = |value: usize| u8::try_from(value * 4).unwrap();
        let drawn = picture(64, 64, |x, y| [byte(x), byte(y), 128, 255]);
        for (colours, most) in [(256, 24), (16, 90), (2, 200)] {
            let shown = decode(&encode(&drawn, colours));
            let used: BTreeSet<[u8; 4]> = shown.pixels.iter().copied().collect();
            assert!(used.len() <= colours && used.len() > colours / 2, "{}", used.len());
            let difference = difference(&drawn, &shown);
            assert!(difference <= most, "{colours} colours: {difference}");
        }
    }

    #[test]
    fn runs_of_a_colour_are_short_and_transparent_pictures_are_empty() {
        let drawn = picture(1000, 6, |_, _| [255, 255, 255, 255]);
        assert!(encode(&drawn, 256).ends_with("#0!1000~-\u{1b}\\"), "{}", encode(&drawn, 256));
        let drawn = picture(10, 6, |_, _| [0; 4]);
        assert_eq!(difference(&drawn, &decode(&encode(&drawn, 256))), 0);
    }
}
