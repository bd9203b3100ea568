//! Raw scores on disk: little-endian doubles in the frozen order of the dataset, nothing else, with their digest in
//! the checkpoint record.

use super::disk::In;
use super::durable::{DiskResult, write_file_with};
use super::fields::RecordError;
use proctor_protocol::canonical::hex;
use sha2::{Digest, Sha256};
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

/// Doubles converted at a time.
const CHUNK: usize = 8192;

/// Writes the scores durably; gives their digest.
///
/// # Errors
/// The system refused.
pub fn write_scores(path: &Path, scores: &[f64]) -> DiskResult<String> {
    let mut hash = Sha256::new();
    write_file_with(path, |file| {
        let mut file = BufWriter::with_capacity(CHUNK * 8, file);
        let mut bytes = Vec::with_capacity(CHUNK * 8);
        for chunk in scores.chunks(CHUNK) {
            bytes.clear();
            bytes.extend(chunk.iter().flat_map(|score| score.to_le_bytes()));
            hash.update(&bytes);
            file.write_all(&bytes)?;
        }
        file.flush()
    })?;
    Ok(hex(&hash.finalize()))
}

/// Reads `items` scores back and proves that they are the ones of the record.
///
/// # Errors
/// The file is unreadable, of another length, or of another digest.
pub fn read_scores(path: &Path, items: u64, sha256: &str) -> Result<Vec<f64>, RecordError> {
    let unreadable = |source: io::Error| RecordError::Unreadable {
        path: path.to_path_buf(),
        source,
    };
    let damaged = |problem: String| RecordError::Damaged {
        path: path.to_path_buf(),
        problem,
    };
    let mut file = match In::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(damaged(format!(
                "there is no such file where the checkpoint promises {items} scores of 8 bytes"
            )));
        }
        opened => opened.map_err(unreadable)?,
    };
    let length = file.length().map_err(unreadable)?;
    if Some(length) != items.checked_mul(8) {
        return Err(damaged(format!(
            "{length} bytes where the checkpoint promises {items} scores of 8 bytes"
        )));
    }
    let mut hash = Sha256::new();
    let mut scores = Vec::with_capacity(items as usize);
    let mut bytes = vec![0; CHUNK * 8];
    let mut left = length as usize;
    while left > 0 {
        let part = &mut bytes[..left.min(CHUNK * 8)];
        file.read_exact(part).map_err(unreadable)?;
        hash.update(&*part);
        let (doubles, _) = part.as_chunks::<8>();
        scores.extend(doubles.iter().map(|&double| f64::from_le_bytes(double)));
        left -= part.len();
    }
    if hex(&hash.finalize()) != sha256 {
        return Err(damaged(
            "the scores are not those of the checkpoint (SHA-256 differs)".into(),
        ));
    }
    Ok(scores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_come_back_to_the_last_bit_and_changes_are_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0-test.f64");
        let scores: Vec<f64> = (0..CHUNK as u32 + 5)
            .map(|n| f64::from(n) / 7.0)
            .chain([-0.0, 5e-324, f64::MAX])
            .collect();
        let sha256 = write_scores(&path, &scores).unwrap();
        let back = read_scores(&path, scores.len() as u64, &sha256).unwrap();
        let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&back), bits(&scores));
        assert!(read_scores(&path, scores.len() as u64 - 1, &sha256).is_err());
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[9] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        assert!(matches!(
            read_scores(&path, scores.len() as u64, &sha256),
            Err(RecordError::Damaged { .. })
        ));
    }

    #[test]
    fn the_form_is_little_endian_doubles() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let sha256 = write_scores(&path, &[1.0]).unwrap();
        assert_eq!(
            std::fs::read(&path).unwrap(),
            [0, 0, 0, 0, 0, 0, 0xf0, 0x3f]
        );
        assert_eq!(
            sha256,
            proctor_protocol::canonical::sha256_hex(&1.0f64.to_le_bytes())
        );
    }
}
