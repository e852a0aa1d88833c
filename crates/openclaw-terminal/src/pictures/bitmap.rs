//! Decodes PNG and JPEG, and scales pictures down. Pictures come from servers: their size is
//! checked before anything is allocated for it.

use std::io::Cursor;

use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::Room;

/// The maximum number of pixels of a picture: enough for a screen of 5120 × 2880.
const MAX_PIXELS: usize = 16_000_000;
/// The maximum memory of the PNG decoder for anything but pixels, in bytes.
const MAX_BYTES: usize = 8 * 1024 * 1024;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
const JPEG: &[u8] = b"\xff\xd8\xff";

/// A picture in RGBA.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bitmap {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) pixels: Vec<[u8; 4]>,
}

impl Bitmap {
    /// Decodes a picture, and scales it down to the room; `None` if it is in another format,
    /// damaged or too large.
    pub(super) fn decode(bytes: &[u8], room: Room) -> Option<Self> {
        // The first bytes tell the format: the media type may be wrong.
        if bytes.starts_with(PNG) {
            png(bytes, room)
        } else if bytes.starts_with(JPEG) {
            jpeg(bytes, room)
        } else {
            None
        }
    }

    /// Scales a picture down: each pixel is the average of those it covers.
    fn scaled(
        (width, height): (usize, usize),
        room: Room,
        pixel: impl Fn(usize) -> [u8; 4],
    ) -> Self {
        let (columns, rows) = room.fit(width, height);
        let mut pixels = Vec::with_capacity(columns * rows);
        for row in 0..rows {
            let covered_rows = row * height / rows..(row + 1) * height / rows;
            for column in 0..columns {
                let covered = column * width / columns..(column + 1) * width / columns;
                let (mut colours, mut alpha, mut count) = ([0; 3], 0, 0);
                for y in covered_rows.clone() {
                    for x in covered.clone() {
                        let [red, green, blue, opacity] = pixel(y * width + x).map(u64::from);
                        colours[0] += red * opacity;
                        colours[1] += green * opacity;
                        colours[2] += blue * opacity;
                        alpha += opacity;
                        count += 1;
                    }
                }
                let average =
                    |sum: u64, count: u64| u8::try_from(sum / count.max(1)).unwrap_or(u8::MAX);
                let [red, green, blue] = colours.map(|sum| average(sum, alpha));
                pixels.push([red, green, blue, average(alpha, count)]);
            }
        }
        Self { width: columns, height: rows, pixels }
    }
}

/// Returns the size of a picture if it is not too large.
fn checked(width: usize, height: usize) -> Option<(usize, usize)> {
    let pixels = width.checked_mul(height)?;
    (1..=MAX_PIXELS).contains(&pixels).then_some((width, height))
}

fn png(bytes: &[u8], room: Room) -> Option<Bitmap> {
    let limits = png::Limits { bytes: MAX_BYTES };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(bytes), limits);
    decoder.set_transformations(
        png::Transformations::normalize_to_color8() | png::Transformations::ALPHA,
    );
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    let (width, height) = decoder.read_header_info().ok()?.size();
    let size = checked(usize::try_from(width).ok()?, usize::try_from(height).ok()?)?;
    let mut reader = decoder.read_info().ok()?;
    let mut data = vec![0; reader.output_buffer_size()?];
    let frame = reader.next_frame(&mut data).ok()?;
    let is_grey = frame.color_type == png::ColorType::GrayscaleAlpha;
    let channels = if is_grey { 2 } else { 4 };
    if data.len() < size.0 * size.1 * channels {
        return None;
    }
    Some(Bitmap::scaled(size, room, |at| match &data[at * channels..(at + 1) * channels] {
        [grey, alpha] => [*grey, *grey, *grey, *alpha],
        [red, green, blue, alpha] => [*red, *green, *blue, *alpha],
        _ => [0; 4],
    }))
}

fn jpeg(bytes: &[u8], room: Room) -> Option<Bitmap> {
    let options = DecoderOptions::default().jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().ok()?;
    let (width, height) = decoder.dimensions()?;
    let size = checked(width, height)?;
    let data = decoder.decode().ok()?;
    let (pixels, _) = data.as_chunks::<3>();
    if pixels.len() < size.0 * size.1 {
        return None;
    }
    let opaque = |[red, green, blue]: [u8; 3]| [red, green, blue, u8::MAX];
    Some(Bitmap::scaled(size, room, |at| opaque(pixels[at])))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { width: 100, height: 100 };

    fn written(size: (u32, u32), kind: png::ColorType, data: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, size.0, size.1);
        encoder.set_color(kind);
        if kind == png::ColorType::Indexed {
            encoder.set_palette(vec![1, 2, 3, 4, 5, 6]);
        }
        encoder.write_header().unwrap().write_image_data(data).unwrap();
        bytes
    }

    #[test]
    fn every_kind_of_png_becomes_rgba() {
        use png::ColorType::{Grayscale, GrayscaleAlpha, Indexed, Rgb, Rgba};
        for (kind, data, pixels) in [
            (Grayscale, &[7, 9][..], [[7, 7, 7, 255], [9, 9, 9, 255]]),
            (GrayscaleAlpha, &[7, 1, 9, 2], [[7, 7, 7, 1], [9, 9, 9, 2]]),
            (Indexed, &[1, 0], [[4, 5, 6, 255], [1, 2, 3, 255]]),
            (Rgb, &[1, 2, 3, 4, 5, 6], [[1, 2, 3, 255], [4, 5, 6, 255]]),
            (Rgba, &[1, 2, 3, 4, 5, 6, 7, 8], [[1, 2, 3, 4], [5, 6, 7, 8]]),
        ] {
            let bitmap = Bitmap::decode(&written((2, 1), kind, data), ROOM).unwrap();
            assert_eq!((bitmap.width, bitmap.height), (2, 1), "{kind:?}");
            // Colours of nearly transparent pixels are rounded.
            for (shown, meant) in bitmap.pixels.iter().zip(&pixels) {
                assert_eq!(shown, meant, "{kind:?}");
            }
        }
    }

    #[test]
    fn a_picture_is_scaled_down_by_averages() {
        let row = [[0, 0, 0], [100, 100, 100]].as_flattened().repeat(100);
        let bytes = written((200, 2), png::ColorType::Rgb, &row.repeat(2));
        let bitmap = Bitmap::decode(&bytes, ROOM).unwrap();
        assert_eq!((bitmap.width, bitmap.height), (100, 1));
        assert!(bitmap.pixels.iter().all(|pixel| *pixel == [50, 50, 50, 255]), "{bitmap:?}");
    }

    #[test]
    fn a_huge_picture_is_rejected_before_it_is_decoded() {
        // Only the header is there: decoding it would fail later, and allocate before.
        let mut bytes = Vec::new();
        let encoder = png::Encoder::new(&mut bytes, 60_000, 60_000);
        encoder.write_header().unwrap();
        assert_eq!(Bitmap::decode(&bytes, ROOM), None);
        assert_eq!(checked(60_000, 60_000), None);
        assert_eq!(checked(usize::MAX, 2), None);
        assert_eq!(checked(0, 2), None);
        assert_eq!(checked(5_120, 2_880), Some((5_120, 2_880)));
    }

    #[test]
    fn damaged_pictures_and_other_formats_are_not_shown() {
        let bytes = written((2, 1), png::ColorType::Grayscale, &[7, 9]);
        for end in 0..bytes.len() - 12 {
            assert_eq!(Bitmap::decode(&bytes[..end], ROOM), None, "{end}");
        }
        for bytes in [&b"GIF89a"[..], b"\xff\xd8\xff\xe0", b"\xff\xd8\xff\xda\0\0"] {
            assert_eq!(Bitmap::decode(bytes, ROOM), None, "{bytes:?}");
        }
    }
}
