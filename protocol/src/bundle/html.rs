//! The pages of a bundle.

pub(super) fn ranking_page(document: &super::Document, stem: &str) -> String {
    let _ = document;
    stem.to_owned()
}
pub(super) fn details_page(document: &super::Document, stem: &str) -> String {
    let _ = document;
    stem.to_owned()
}
