//! One answer from all outputs of a run: the rule of
//! [decision 30](../../../../docs/decisions/0030-one-answer.md).

/// Maximum size of an answer, in bytes. What exceeds it is cut off.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// Between two blocks.
const SEAM: &str = "\n\n";

/// Collects the outputs of a run, in the order in which they arrive.
#[derive(Debug, Default)]
pub(crate) struct CombinedAnswer {
    /// Blocks that are complete.
    closed: Vec<String>,
    /// The block that is being streamed.
    open: String,
    bytes: usize,
}

impl CombinedAnswer {
    /// Adds streamed text.
    pub(crate) fn partial(&mut self, text: &str) {
        let room = MAX_BYTES.saturating_sub(self.bytes);
        let text = &text[..text.floor_char_boundary(room)];
        self.bytes += text.len();
        self.open.push_str(text);
    }

    /// Replaces the text that was streamed since the last block.
    pub(crate) fn replace(&mut self, text: &str) {
        self.bytes -= self.open.len();
        self.open.clear();
        self.partial(text);
    }

    /// Adds a complete block. It may repeat the end of the streamed text, or complete it.
    pub(crate) fn block(&mut self, text: &str) {
        if !repeats_end(&self.open, text) {
            if !text.trim_start().starts_with(self.open.trim()) {
                self.end_block();
            }
            self.replace(text);
        }
        self.end_block();
    }

    /// Ends the streamed block: what follows is another one, even if it is equal.
    pub(crate) fn end_block(&mut self) {
        let block = std::mem::take(&mut self.open);
        if block.trim().is_empty() {
            self.bytes -= block.len();
        } else {
            self.closed.push(block);
        }
    }

    /// Returns the number of bytes so far.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// Returns all of it, given the text of the run's last message: empty if it has none.
    pub(crate) fn finish(mut self, last: &str) -> String {
        let is_streamed = repeats_end(&self.open, last);
        if last.trim().is_empty() || is_streamed {
            self.end_block();
        } else if self.is_beginning_of(last) {
            return last.to_owned();
        } else {
            self.block(last);
        }
        match &mut self.closed[..] {
            [only] => std::mem::take(only),
            blocks => {
                let blocks: Vec<&str> =
                    blocks.iter().map(|block| without_blank_lines(block)).collect();
                blocks.join(SEAM)
            }
        }
    }

    /// Whether a text begins with all of it, in order.
    fn is_beginning_of(&self, text: &str) -> bool {
        let mut rest = text;
        let mut blocks = self.closed.iter().chain(Some(&self.open));
        blocks.all(|block| match rest.trim_start().strip_prefix(block.trim()) {
            Some(after) => {
                rest = after;
                true
            }
            None => false,
        })
    }
}

/// Returns a block without blank lines around it. The indentation of its first line stays: it may be code.
fn without_blank_lines(block: &str) -> &str {
    let block = block.trim_end();
    let indented = block.len() - block.trim_start().len();
    let line = block[..indented].rfind('\n').map_or(0, |end| end + 1);
    &block[line..]
}

/// Whether the streamed text ends with this text.
fn repeats_end(streamed: &str, text: &str) -> bool {
    !streamed.trim().is_empty() && streamed.trim().ends_with(text.trim())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn join(blocks: &[String]) -> String {
        let blocks: Vec<&str> = blocks.iter().map(|block| without_blank_lines(block)).collect();
        blocks.join(SEAM).trim().to_owned()
    }

    #[test]
    fn the_indentation_of_a_block_stays() {
        let mut answer = CombinedAnswer::default();
        answer.block("First.\n");
        answer.block("  \n\n    code\n  \n");
        assert_eq!(answer.finish(""), "First.\n\n    code");
    }

    /// Streams a text in pieces of these sizes.
    fn stream(answer: &mut CombinedAnswer, text: &str, sizes: &[usize]) {
        let chars: Vec<char> = text.chars().collect();
        let mut sizes = sizes.iter().copied().cycle();
        let mut rest = &chars[..];
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(sizes.next().unwrap().clamp(1, rest.len()));
            answer.partial(&piece.iter().collect::<String>());
            rest = after;
        }
    }

    /// Text with something visible in it, few letters, so that texts repeat and contain each other.
    fn text() -> impl Strategy<Value = String> {
        "[ab \n]{0,4}[abé🦞][ab \n]{0,4}"
    }

    fn blocks() -> impl Strategy<Value = Vec<String>> {
        prop::collection::vec(text(), 1..6)
    }

    fn sizes() -> impl Strategy<Value = Vec<usize>> {
        prop::collection::vec(1_usize..5, 1..4)
    }

    /// Streams all blocks; the last one stays open.
    fn streamed(blocks: &[String], sizes: &[usize]) -> CombinedAnswer {
        let mut answer = CombinedAnswer::default();
        for (nth, block) in blocks.iter().enumerate() {
            if nth > 0 {
                answer.end_block();
            }
            stream(&mut answer, block, sizes);
        }
        answer
    }

    proptest! {
        #[test]
        fn every_block_appears_once_and_in_order_if_the_last_message_repeats_the_last_block(
            blocks in blocks(), sizes in sizes(),
        ) {
            let answer = streamed(&blocks, &sizes);
            let all = answer.finish(blocks.last().unwrap());
            prop_assert_eq!(all.trim(), join(&blocks));
        }

        #[test]
        fn a_block_that_repeats_the_stream_or_its_end_adds_nothing(
            blocks in blocks(), sizes in sizes(), cuts in prop::collection::vec(0_usize..9, 6),
        ) {
            let mut answer = CombinedAnswer::default();
            for (block, cut) in blocks.iter().zip(cuts) {
                stream(&mut answer, block, &sizes);
                let end: String = block.chars().skip(cut).collect();
                answer.block(if end.trim().is_empty() { block } else { &end });
            }
            let all = answer.finish("");
            prop_assert_eq!(all.trim(), join(&blocks));
        }

        #[test]
        fn blocks_without_a_stream_are_all_kept_even_if_they_are_equal(blocks in blocks()) {
            let mut answer = CombinedAnswer::default();
            blocks.iter().for_each(|block| answer.block(block));
            let all = answer.finish("");
            prop_assert_eq!(all.trim(), join(&blocks));
        }

        #[test]
        fn a_last_message_that_contains_everything_before_it_is_the_answer(
            blocks in blocks(), sizes in sizes(), seam in "[ \n]{0,3}", more in "[ab]{0,3}",
        ) {
            let whole = blocks.iter().map(|it| it.trim()).collect::<Vec<_>>().join(&seam) + &more;
            let all = streamed(&blocks, &sizes).finish(&whole);
            // Unless the last block alone ends with it, which then is the same text.
            prop_assert!(all == whole || (blocks.len() == 1 && all.trim() == whole.trim()));
        }

        #[test]
        fn a_last_message_completes_a_stream_that_was_cut_off(
            before in prop::collection::vec("#[ab]{1,4}", 0..4), last in "[ab]{2,9}", sizes in sizes(),
            cut in 1_usize..9,
        ) {
            let mut answer = streamed(&before, &sizes);
            answer.end_block();
            stream(&mut answer, &last[..cut.min(last.len())], &sizes);
            let expected = [before, vec![last.clone()]].concat();
            prop_assert_eq!(answer.finish(&last), join(&expected));
        }

        #[test]
        fn a_last_message_that_was_not_streamed_is_added(
            blocks in prop::collection::vec("[ab]{1,4}", 1..4), sizes in sizes(), last in "[cd]{1,4}",
        ) {
            let all = streamed(&blocks, &sizes).finish(&last);
            prop_assert_eq!(all, join(&[blocks, vec![last]].concat()));
        }
    }

    #[test]
    fn one_block_is_returned_as_it_is() {
        let mut answer = CombinedAnswer::default();
        answer.partial("  indented\n");
        assert_eq!(answer.finish("  indented\n"), "  indented\n");
        assert_eq!(CombinedAnswer::default().finish(" only the end "), " only the end ");
        assert_eq!(CombinedAnswer::default().finish(""), "");
    }

    #[test]
    fn an_answer_is_bounded() {
        let mut answer = CombinedAnswer::default();
        let piece = "é".repeat(MAX_BYTES / 4);
        (0..5).for_each(|_| answer.partial(&piece));
        assert_eq!(answer.len(), MAX_BYTES);
        assert_eq!(answer.finish("").len(), MAX_BYTES);
    }
}
