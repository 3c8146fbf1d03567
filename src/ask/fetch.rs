//! What a debuginfod server may have for a recording: the question of `pjit fetch`.

use std::collections::BTreeMap;

use super::{AskError, List, Question, Request, require_samples};
use crate::fetch::{Wanted, What, can_be_asked, together};
use crate::find::SourcePaths;
use crate::load::{Lacking, LackingBuild, Library, LoadOptions};
use crate::needs::Needs;

/// What may be fetched.
#[derive(Debug, Clone, Default)]
pub struct Fetch {
    /// Programs and libraries that are not here, whether stacks end in them or not.
    pub executables: bool,
    /// The sources of this function instead.
    pub sources: Option<String>,
}

/// What a server may have.
#[derive(Debug, Clone, Default)]
pub struct Fetchable {
    /// Samples of all recordings.
    pub samples: u64,
    /// The heaviest first.
    pub wanted: Vec<Wanted>,
    /// Files of which more would help, and no build ID is proven; with their samples.
    pub unproven: BTreeMap<String, u64>,
    /// Sources that nobody is asked for, by their names or since no build is known.
    pub unasked: Vec<String>,
}

impl Question for Fetch {
    type Answer = Fetchable;

    fn needs(&self) -> Needs {
        match &self.sources {
            Some(function) => List::of(function).needs(),
            None => Needs::STACKS | Needs::MARKS,
        }
    }

    /// Of each recording for itself: what belongs to one is not proven for another.
    fn answer(request: &Request<Self>, library: &Library<'_>) -> Result<Fetchable, AskError> {
        let mut fetchable = Fetchable::default();
        for load in request.load_options()?.apart() {
            library.once_more(|library| match &request.view.sources {
                Some(function) => fetchable.add_sources(load, function, library),
                None => fetchable.add(&load, request.view.executables, library),
            })?;
        }
        fetchable.wanted = together(std::mem::take(&mut fetchable.wanted));
        Ok(fetchable)
    }
}

impl Fetchable {
    fn add(
        &mut self,
        load: &LoadOptions,
        executables: bool,
        library: &Library<'_>,
    ) -> Result<(), AskError> {
        let (profile, lacking) = library.lacking(load)?;
        require_samples(&profile)?;
        let Lacking {
            samples,
            builds,
            unproven,
        } = lacking;
        self.samples += samples;
        for (name, count) in unproven {
            *self.unproven.entry(name).or_default() += count;
        }
        let files = builds
            .into_iter()
            .flat_map(|build| of_build(build, executables));
        self.wanted.extend(files);
        Ok(())
    }

    fn add_sources(
        &mut self,
        load: LoadOptions,
        function: &str,
        library: &Library<'_>,
    ) -> Result<(), AskError> {
        // What is on this machine is not asked for.
        let paths: SourcePaths = load.sources(&[]);
        let request = Request::of(load, List::of(function));
        let (_, sources) = request.lines(&paths, library)?;
        for (path, claim) in sources.missing {
            match claim.build.filter(|_| can_be_asked(&path)) {
                Some(build) => self.wanted.push(Wanted {
                    name: path.clone(),
                    build,
                    what: What::Source(path, claim),
                    samples: 0,
                }),
                None => self.unasked.push(path),
            }
        }
        Ok(())
    }
}

/// The files of a build that are worth asking for.
fn of_build(of: LackingBuild, executables: bool) -> impl Iterator<Item = Wanted> {
    let with_program = of.lacks_program && (of.ends_stacks || executables);
    let program = with_program.then_some(What::Program);
    [What::Debug]
        .into_iter()
        .chain(program)
        .map(move |what| Wanted {
            name: of.name.clone(),
            build: of.build,
            what,
            samples: of.samples,
        })
}
