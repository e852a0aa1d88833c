//! What becomes of answers.
