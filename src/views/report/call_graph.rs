//! How call graphs are printed: the argument of `--call-graph`.

/// The argument of `--call-graph` and what `-G` adds.
#[derive(Debug, Clone, PartialEq)]
pub struct CallGraph {
    /// Style.
    pub mode: CallGraphMode,
    /// Which end comes first; `None` as perf chooses: callers first with children, else callees.
    pub order: Option<ChainOrder>,
    /// What makes two frames the same.
    pub key: ChainKey,
    /// What branches are labelled with.
    pub value: ChainValue,
    /// Branches below this share are not shown, in percent.
    pub threshold: f64,
    /// Branches for each node; 0 is no limit.
    pub print_limit: u32,
}

impl Default for CallGraph {
    fn default() -> Self {
        Self {
            mode: CallGraphMode::Graph,
            order: None,
            key: ChainKey::Function,
            value: ChainValue::Percent,
            threshold: 0.5,
            print_limit: 0,
        }
    }
}

/// How chains below a row are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallGraphMode {
    /// Not at all.
    None,
    /// A tree, shares of the whole event.
    Graph,
    /// A tree, shares of the parent.
    Fractal,
    /// Chain after chain.
    Flat,
    /// One line for each chain.
    Folded,
}

/// Which end of a chain comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainOrder {
    /// Outermost first.
    Caller,
    /// Leaf first.
    Callee,
}

/// What makes two frames the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainKey {
    /// The function.
    Function,
    /// The address.
    Address,
    /// The source line.
    Srcline,
}

/// What branches are labelled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainValue {
    /// Share.
    Percent,
    /// Sum of periods.
    Period,
    /// Number of chains.
    Count,
}

/// A part of `--call-graph`'s argument that means nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallGraphError {
    /// Means nothing in perf either.
    #[error(
        "--call-graph has no part '{0}': none, graph, flat, fractal, folded, caller, callee, function, address, srcline, \
         percent, period, count, or a number"
    )]
    Unknown(String),
    /// Branches of last-branch records in call graphs.
    #[error(
        "--call-graph has no part 'branch', which perf report has: pjit reads no branch records"
    )]
    Branch,
}

/// perf's meaning of a bare `-g`.
pub const BARE_CALL_GRAPH: &str = "graph,0.5,caller,function,percent";

impl CallGraph {
    /// Applies one `--call-graph` argument on top of what is set already, as perf does when the option
    /// is repeated. Returns whether it set the threshold.
    ///
    /// # Errors
    ///
    /// When a part is neither a word that perf knows nor a number, or asks for branches.
    pub fn apply(&mut self, argument: &str) -> Result<bool, CallGraphError> {
        let mut has_threshold = false;
        if self.mode == CallGraphMode::None && !argument.is_empty() {
            self.mode = CallGraphMode::Graph;
        }
        for word in argument.split(',').filter(|word| !word.is_empty()) {
            if "none".starts_with(word) {
                self.mode = CallGraphMode::None;
                return Ok(has_threshold);
            }
            if self.apply_word(word) {
                continue;
            }
            if "branch".starts_with(word) {
                return Err(CallGraphError::Branch);
            }
            let unknown = || CallGraphError::Unknown(word.to_owned());
            if has_threshold {
                self.print_limit = leading_number(word).ok_or_else(unknown)? as u32;
            } else {
                self.threshold = leading_number(word).ok_or_else(unknown)?;
                has_threshold = true;
            }
        }
        Ok(has_threshold)
    }

    fn apply_word(&mut self, word: &str) -> bool {
        let is = |name: &str| name.starts_with(word);
        match () {
            () if is("graph") => self.mode = CallGraphMode::Graph,
            () if is("flat") => self.mode = CallGraphMode::Flat,
            () if is("fractal") => self.mode = CallGraphMode::Fractal,
            () if is("folded") => self.mode = CallGraphMode::Folded,
            () if is("caller") => self.order = Some(ChainOrder::Caller),
            () if is("callee") => self.order = Some(ChainOrder::Callee),
            () if is("function") => self.key = ChainKey::Function,
            () if is("address") => self.key = ChainKey::Address,
            () if is("srcline") => self.key = ChainKey::Srcline,
            () if is("percent") => self.value = ChainValue::Percent,
            () if is("period") => self.value = ChainValue::Period,
            () if is("count") => self.value = ChainValue::Count,
            () => return false,
        }
        true
    }
}

/// The number at the start of a word, as `strtod` reads it.
fn leading_number(word: &str) -> Option<f64> {
    let end = word
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(word.len());
    word[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_graph_parts_come_in_any_order_and_may_be_cut() {
        let mut graph = CallGraph::default();
        assert_eq!(graph.apply("callee,fr,3,2,cou"), Ok(true));
        let expected = CallGraph {
            mode: CallGraphMode::Fractal,
            order: Some(ChainOrder::Callee),
            value: ChainValue::Count,
            threshold: 3.0,
            print_limit: 2,
            ..CallGraph::default()
        };
        assert_eq!(graph, expected);
        assert_eq!(graph.apply("none"), Ok(false));
        assert_eq!(graph.mode, CallGraphMode::None);
        assert_eq!(graph.apply("branch"), Err(CallGraphError::Branch));
    }
}
