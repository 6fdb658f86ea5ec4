//! Removes the metadata of pictures: texts, places, cameras and edits.
//!
//! Only PNG and JPEG are read. Pictures of other kinds are not changed. If a picture ends too early, its incomplete
//! last part is not changed.

/// Returns the picture `bytes` without its metadata. The colour profile is kept, because it changes the look of the
/// picture. The rotation is removed.
pub(super) fn plain(bytes: Vec<u8>) -> Vec<u8> {
    match () {
        () if bytes.starts_with(b"\x89PNG\r\n\x1a\n") => png(&bytes),
        () if bytes.starts_with(b"\xff\xd8") => jpeg(&bytes),
        () => bytes,
    }
}

/// The chunks of a PNG that contain texts, times and camera data.
const CHUNKS: [&[u8]; 5] = [b"tEXt", b"zTXt", b"iTXt", b"eXIf", b"tIME"];

fn png(bytes: &[u8]) -> Vec<u8> {
    let mut kept = bytes[..8].to_vec();
    let mut at = 8;
    while let Some(head) = bytes.get(at..at + 8) {
        let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let Some(end) =
            at.checked_add(length).and_then(|at| at.checked_add(12)).filter(|end| *end <= bytes.len())
        else {
            break;
        };
        if !CHUNKS.contains(&&head[4..8]) {
            kept.extend_from_slice(&bytes[at..end]);
        }
        at = end;
        // Bytes after the last chunk are not part of the picture.
        if head[4..8] == *b"IEND" {
            return kept;
        }
    }
    kept.extend_from_slice(&bytes[at..]);
    kept
}

fn jpeg(bytes: &[u8]) -> Vec<u8> {
    let mut kept = bytes[..2].to_vec();
    let mut at = 2;
    while let Some(&[0xff, marker, high, low]) = bytes.get(at..at + 4) {
        // The pixels begin here.
        if marker == 0xda {
            break;
        }
        let end = at + 2 + usize::from(u16::from_be_bytes([high, low]));
        if end > bytes.len() || end < at + 4 {
            break;
        }
        // JFIF, the colour profile, and Adobe's marker about the colour encoding are kept.
        let metadata = matches!(marker, 0xe1 | 0xe3..=0xed | 0xef | 0xfe);
        if !metadata {
            kept.extend_from_slice(&bytes[at..end]);
        }
        at = end;
    }
    kept.extend_from_slice(&bytes[at..]);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(name: &[u8], data: &[u8]) -> Vec<u8> {
        [&(data.len() as u32).to_be_bytes()[..], name, data, &[1, 2, 3, 4]].concat()
    }

    fn segment(marker: u8, data: &[u8]) -> Vec<u8> {
        [&[0xff, marker][..], &(data.len() as u16 + 2).to_be_bytes(), data].concat()
    }

    #[test]
    fn metadata_is_left_out_and_the_picture_stays() {
        let head = b"\x89PNG\r\n\x1a\n".to_vec();
        let [first, pixels, last] = [chunk(b"IHDR", b"13"), chunk(b"IDAT", b"pixels"), chunk(b"IEND", b"")];
        let whole = [head.clone(), first.clone(), pixels.clone(), last.clone()].concat();
        let told = [
            &head,
            &first,
            &chunk(b"tEXt", b"Comment\0s"),
            &chunk(b"eXIf", b"x"),
            &pixels,
            &last,
            &b"more".to_vec(),
        ];
        assert_eq!(plain(told.map(Vec::clone).concat()), whole);
        assert_eq!(plain(whole.clone()), whole);

        let [jfif, table, scan] =
            [segment(0xe0, b"JFIF"), segment(0xdb, b"table"), b"\xff\xda\0\x04xxpixels\xff\xd9".to_vec()];
        let whole = [b"\xff\xd8".to_vec(), jfif.clone(), table.clone(), scan.clone()].concat();
        let told =
            [b"\xff\xd8".to_vec(), jfif, segment(0xe1, b"Exif"), segment(0xfe, b"a comment"), table, scan];
        assert_eq!(plain(told.concat()), whole);
        assert_eq!(plain(whole.clone()), whole);
    }

    #[test]
    fn any_bytes_are_taken() {
        for text in ["", "GIF89a", "\u{7f}"] {
            assert_eq!(plain(text.into()), text.as_bytes());
        }
        for cut in [
            b"\x89PNG\r\n\x1a\n\0\0\0\x09tEXt".to_vec(),
            b"\xff\xd8\xff\xe1\0".to_vec(),
            b"\xff\xd8\xff\xe1\0\0zz".to_vec(),
        ] {
            assert_eq!(plain(cut.clone()), cut);
        }
    }
}
