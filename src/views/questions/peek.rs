//! Who calls a function, and what it calls.
//!
//! As in pprof an edge counts once per sample, however often a stack has it. Other than there a function that calls itself is
//! its own caller and callee. Paths of several levels count once per sample, too.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::functions::tally::{Count, Tally};
use crate::functions::{FunctionId, Functions};
use crate::ids::{Idx, IndexVec, index_vec};
use crate::profile::{FrameId, Profile, StackEnd};
use crate::runtimes::query::{self, Fit, Query};

/// One step from a function, towards the root or the leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// A function.
    Function(FunctionId),
    /// The function itself is the innermost frame.
    Itself,
    /// The function is the outermost frame of a whole stack.
    Root,
    /// The stack ends with it, for a reason.
    End(StackEnd),
}

/// A step with its weight, and the steps behind it, the heaviest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Where to.
    pub step: Step,
    /// How much goes this way.
    pub count: Count,
    /// Whether the callee of this step was inlined wherever it was met.
    pub inlined: bool,
    /// Further steps.
    pub next: Vec<Node>,
}

/// A function with what is around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The function.
    pub function: FunctionId,
    /// Towards the root.
    pub callers: Vec<Node>,
    /// Towards the leaf.
    pub callees: Vec<Node>,
    /// Whether it calls itself.
    pub is_recursive: bool,
}

/// Functions that a word names, by id or as [`Query`] has it; the heaviest first.
///
/// # Errors
/// When the word is no expression and nothing has it in its name.
pub fn matches(
    profile: &Profile,
    functions: &Functions,
    tally: &Tally,
    labels: &[String],
    word: &str,
) -> Result<Vec<FunctionId>, String> {
    let met = |id: &FunctionId| tally.of_function(*id).inclusive.samples > 0;
    let ids = || functions.all.indices().filter(met);
    let has_id = |id: &FunctionId| {
        let function = functions.get(*id);
        function.identity.id() == word || function.id() == word
    };
    let mut found: Vec<FunctionId> = ids().filter(has_id).collect();
    if found.is_empty() {
        let query = Query::of(word);
        // As reports print it: a function has a name for each of the ways in which it was compiled.
        let printed: BTreeSet<FunctionId> = (profile.frames.indices())
            .filter(|frame| profile.frame_name(*frame) == word)
            .map(|frame| functions.of_frame(frame))
            .collect();
        let fit = |id: FunctionId| {
            let function = functions.get(id);
            let names = [labels[id.index()].as_str(), function.full.as_str()];
            if printed.contains(&id) {
                return Some(Fit::Printed);
            }
            functions.fit(profile, id, (&query, &names))
        };
        found = query::best(ids().map(|id| (id, fit(id))));
        if let (true, Some(problem)) = (found.is_empty(), query.problem()) {
            let text = format!("{word}: no function of this name, and no expression: {problem}");
            return Err(text);
        }
    }
    found.sort_by_cached_key(|id| {
        let weight = tally.of_function(*id).inclusive.period;
        (std::cmp::Reverse(weight), labels[id.index()].clone(), *id)
    });
    Ok(found)
}

/// What is around a function, so many levels each way.
#[must_use]
pub fn block(
    profile: &Profile,
    (functions, labels): (&Functions, &[String]),
    tally: &Tally,
    of: FunctionId,
    depth: usize,
) -> Block {
    let mut callers = Paths::new(profile, functions, depth);
    let mut callees = Paths::new(profile, functions, depth);
    let mut is_recursive = false;
    for (round, stack) in (1..).zip(&tally.stacks) {
        let frames = stack.frames(profile);
        let end = profile.stacks.end(stack.id());
        let is_whole = end.is_complete()
            || matches!(
                end,
                StackEnd::Recorded | StackEnd::CallerMissing | StackEnd::Skipped
            );
        let last = if is_whole { Step::Root } else { Step::End(end) };
        let mut met = 0;
        for (at, frame) in frames.iter().enumerate() {
            if functions.of_frame(*frame) != of {
                continue;
            }
            met += 1;
            callers.add(
                frames[at + 1..].iter(),
                Some(*frame),
                last,
                stack.count,
                round,
            );
            callees.add(
                frames[..at].iter().rev(),
                None,
                Step::Itself,
                stack.count,
                round,
            );
        }
        is_recursive |= met > 1;
    }
    Block {
        function: of,
        callers: callers.tree(Paths::START, labels),
        callees: callees.tree(Paths::START, labels),
        is_recursive,
    }
}

crate::ids::numbers! {
    /// Index into [`Paths::nodes`].
    struct PathId(u32);
}

/// Paths from a function, each prefix a node.
struct Paths<'p> {
    profile: &'p Profile,
    functions: &'p Functions,
    depth: usize,
    nodes: IndexVec<PathId, PathNode>,
    ids: FxHashMap<(PathId, Step), PathId>,
}

struct PathNode {
    step: Step,
    count: Count,
    inlined: bool,
    /// The stack that it was last met in.
    round: u32,
    next: Vec<PathId>,
}

impl<'p> Paths<'p> {
    /// The function itself.
    const START: PathId = PathId(0);

    fn new(profile: &'p Profile, functions: &'p Functions, depth: usize) -> Self {
        let root = PathNode {
            step: Step::Root,
            count: Count::default(),
            inlined: false,
            round: 0,
            next: Vec::new(),
        };
        Self {
            profile,
            functions,
            depth,
            nodes: index_vec![root],
            ids: FxHashMap::default(),
        }
    }

    /// Follows frames from the function; `callee` is the function's own frame on the way to the root.
    fn add<'f>(
        &mut self,
        frames: impl Iterator<Item = &'f FrameId>,
        mut callee: Option<FrameId>,
        last: Step,
        count: Count,
        round: u32,
    ) {
        let is_up = callee.is_some();
        let (mut at, mut levels) = (Self::START, 0);
        for frame in frames {
            if levels == self.depth {
                return;
            }
            let of = callee.filter(|_| is_up).unwrap_or(*frame);
            let inlined = self.profile.is_inlined(of);
            callee = Some(*frame);
            at = self.step(
                at,
                Step::Function(self.functions.of_frame(*frame)),
                inlined,
                count,
                round,
            );
            levels += 1;
        }
        // On deeper levels only functions are of interest.
        if levels == 0 {
            self.step(at, last, false, count, round);
        }
    }

    fn step(
        &mut self,
        from: PathId,
        step: Step,
        inlined: bool,
        count: Count,
        round: u32,
    ) -> PathId {
        let new = self.nodes.next_idx();
        let id = *self.ids.entry((from, step)).or_insert(new);
        if id == new {
            self.nodes.push(PathNode {
                step,
                count: Count::default(),
                inlined: true,
                round: 0,
                next: Vec::new(),
            });
            self.nodes[from].next.push(id);
        }
        let node = &mut self.nodes[id];
        node.inlined &= inlined;
        if node.round != round {
            node.round = round;
            node.count.add(count);
        }
        id
    }

    fn tree(&self, of: PathId, labels: &[String]) -> Vec<Node> {
        let next = self.nodes[of].next.iter();
        let mut nodes: Vec<Node> = next
            .map(|id| {
                let node = &self.nodes[*id];
                Node {
                    step: node.step,
                    count: node.count,
                    inlined: node.inlined,
                    next: self.tree(*id, labels),
                }
            })
            .collect();
        let label = |step: Step| match step {
            Step::Function(id) => labels[id.index()].as_str(),
            _ => "",
        };
        nodes.sort_by(|a, b| {
            let key = |node: &Node| std::cmp::Reverse(node.count.period);
            let by_name = label(a.step).cmp(label(b.step));
            key(a).cmp(&key(b)).then(by_name).then(a.step.cmp(&b.step))
        });
        nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::kinds::OwnRules;
    use crate::questions::summary::labels;
    use crate::report::testing::ProfileBuilder;

    fn peek(name: &str, depth: usize) -> Vec<String> {
        let mut builder = ProfileBuilder::default();
        builder.sample("x", "C;B;A;main", 10);
        builder.sample("x", "D;A;B;A;main", 20);
        builder.sample("x", "C;X;main", 5);
        builder.sample("x", "E(inlined);B;main", 7);
        let profile = builder.finish();
        let functions = Functions::of(&profile, &OwnRules::default());
        let tally = Tally::of(&profile, &functions, crate::profile::EventId(0));
        let labels = labels(&functions, false);
        let found = matches(&profile, &functions, &tally, &labels, name).expect("a name");
        let block = block(&profile, (&functions, &labels), &tally, found[0], depth);
        let mut lines = vec![format!(
            "{} {}",
            labels[found[0].index()],
            tally.of_function(found[0]).inclusive.period
        )];
        let mut todo: Vec<(usize, &str, &Node)> = Vec::new();
        todo.extend(block.callees.iter().rev().map(|n| (0, "calls", n)));
        todo.extend(block.callers.iter().rev().map(|n| (0, "by", n)));
        while let Some((level, word, node)) = todo.pop() {
            let name = match node.step {
                Step::Function(id) => labels[id.index()].clone(),
                other => format!("{other:?}"),
            };
            let mark = if node.inlined { " inlined" } else { "" };
            lines.push(format!(
                "{:level$}{word} {name} {}{mark}",
                "", node.count.period
            ));
            todo.extend(node.next.iter().rev().map(|n| (level + 1, word, n)));
        }
        lines
    }

    #[test]
    fn edges_are_pprofs() {
        assert_eq!(
            peek("A", 1),
            ["A 30", "by main 30", "by B 20", "calls B 30", "calls D 20"]
        );
        assert_eq!(
            peek("B", 1),
            [
                "B 37",
                "by A 30",
                "by main 7",
                "calls A 20",
                "calls C 10",
                "calls E 7 inlined"
            ]
        );
        assert_eq!(
            peek("main", 1),
            [
                "main 42",
                "by Root 42",
                "calls A 30",
                "calls B 7",
                "calls X 5"
            ]
        );
        assert_eq!(
            peek("^C$", 1),
            ["C 15", "by B 10", "by X 5", "calls Itself 15"]
        );
    }

    #[test]
    fn deeper_levels_are_paths() {
        let expected = [
            "C 15",
            "by B 10",
            " by A 10",
            "by X 5",
            " by main 5",
            "calls Itself 15",
        ];
        assert_eq!(peek("C", 2), expected);
    }
}
