//! Rows in progress. When a request is issued, its completion and some names of its files are not
//! known yet. A draft keeps the keys of files, and becomes rows of requests and page_runs when it
//! is written.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::tables::rows::{self, Word};
use crate::tracer::causes::changes::Reason;
use crate::tracer::classify::{BlockType, Class, RunOwner};
use crate::tracer::files::file_kind;
use crate::tracer::files::{FileKey, Files, run_key};
use crate::tracer::records::Run;

/// The file that a run is of, or about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    None,
    File(FileKey),
    /// A file of which only filesystem and inode number are known.
    Number(u32, u64),
}

impl Subject {
    /// Return the subject of a run by what the rules said of it.
    pub fn new(run: &Run, class: &Class) -> Self {
        match class.owner {
            RunOwner::None => Self::None,
            RunOwner::Inode => Self::File(run_key(run)),
            RunOwner::Number(inode) => Self::Number(run.filesystem, inode),
        }
    }

    fn id(self, files: &Files, time_ns: u64) -> Option<i64> {
        match self {
            Self::None => None,
            Self::File(key) => files.id(key),
            Self::Number(filesystem, inode) => files.id_by_number(filesystem, inode, time_ns),
        }
    }
}

/// The things at the place where a block goes that the journal has a copy of.
#[derive(Debug, Clone, Copy, Default)]
pub struct Home {
    pub area: &'static str,
    pub first_inode: u64,
    /// The number of inodes; 0 outside inode tables.
    pub inodes: u64,
}

impl Home {
    /// As schema/page_runs.toml spells it.
    fn text(self) -> Option<String> {
        let Home { area, first_inode, inodes } = self;
        match (area, inodes) {
            ("", _) => None,
            (_, 0) => Some(area.to_owned()),
            _ => Some(format!("inodes {first_inode}..{}", first_inode + inodes - 1)),
        }
    }
}

/// A row of page_runs to be.
#[derive(Debug, Clone)]
pub struct DraftRun {
    pub sector: u64,
    pub length_bytes: u64,
    pub block_type: BlockType,
    pub subtype: Word,
    pub subject: Subject,
    pub file_offset_bytes: Option<i64>,
    pub home_sector: Option<i64>,
    /// The things at that place.
    pub home: Home,
    /// The time when its bio was queued.
    pub time_ns: u64,
}

impl DraftRun {
    /// Sectors that no bio was seen for.
    pub fn unknown(sector: u64, sectors: u64) -> Self {
        DraftRun {
            sector,
            length_bytes: sectors * 512,
            block_type: BlockType::Unknown,
            subtype: Word::default(),
            subject: Subject::None,
            file_offset_bytes: None,
            home_sector: None,
            home: Home::default(),
            time_ns: 0,
        }
    }

    /// Adds a run to those of its request; neighbours of one owner become one.
    pub fn push_onto(self, runs: &mut Vec<DraftRun>) {
        match runs.last_mut() {
            Some(last) if continues(last, &self) => {
                last.length_bytes += self.length_bytes;
                last.home.inodes += self.home.inodes;
            }
            _ => runs.push(self),
        }
    }
}

fn continues(last: &DraftRun, next: &DraftRun) -> bool {
    let follows = |last_begin: Option<i64>, next_begin: Option<i64>, length: u64| {
        next_begin == last_begin.map(|begin| begin + length as i64)
    };
    // Runs on raw NAND need not begin or end at sectors.
    let (whole, begun) = (last.length_bytes / 512, last.length_bytes.div_ceil(512));
    (last.sector + whole..=last.sector + begun).contains(&next.sector)
        && last.block_type == next.block_type
        && last.subtype == next.subtype
        && last.subject == next.subject
        && follows(last.file_offset_bytes, next.file_offset_bytes, last.length_bytes)
        && last.home.area == next.home.area
        && follows(last.home_sector, next.home_sector, last.length_bytes / 512)
}

/// A request whose names are not filled in.
#[derive(Debug)]
pub struct Draft {
    /// All but phase, files and what the page runs agree on.
    pub row: rows::Request,
    pub runs: Vec<DraftRun>,
    pub asker_file: Option<FileKey>,
    /// The reasons of its bios that carry changes to files.
    pub reasons: Vec<Rc<Reason>>,
    /// No more records of it will come.
    pub done: bool,
}

impl Draft {
    /// Return the request's row and add those of its runs to `page_runs`, with the files as they
    /// are known by now. `kinds` are those of files asked for before: to match a name with all
    /// patterns takes longer than all the rest.
    pub fn into_rows(
        self,
        files: &Files,
        kinds: &mut BTreeMap<i64, &'static str>,
        page_runs: &mut Vec<rows::PageRun>,
    ) -> rows::Request {
        let Draft { mut row, runs, asker_file, reasons, .. } = self;
        let request_id = row.request_id;
        let mut kind = |id: i64| *kinds.entry(id).or_insert_with(|| files.kind(id));
        let page_run = |run: DraftRun| {
            let file_id = run.subject.id(files, run.time_ns);
            rows::PageRun {
                request_id,
                sector: run.sector as i64,
                length_bytes: run.length_bytes as i64,
                block_type: run.block_type.as_str().into(),
                block_subtype: run.subtype,
                file_id,
                file_offset_bytes: run.file_offset_bytes,
                file_kind: file_id.map_or(file_kind::NONE, &mut kind).into(),
                home_sector: run.home_sector,
                home: run.home.text(),
            }
        };
        let first = page_runs.len();
        page_runs.extend(runs.into_iter().map(page_run));
        let runs = &page_runs[first..];
        row.asker_file_id = asker_file.and_then(|key| files.id(key));
        row.reason = Reason::text_of_all(&reasons, |key| files.path_of(key));
        if !runs.is_empty() {
            summarise(&mut row, runs);
        }
        row
    }
}

/// Set what a request's runs agree on; "mixed" where they do not.
fn summarise(request: &mut rows::Request, runs: &[rows::PageRun]) {
    let agree = |field: fn(&rows::PageRun) -> &Word| match runs {
        [first, rest @ ..] if rest.iter().all(|run| field(run) == field(first)) => {
            field(first).clone()
        }
        _ => "mixed".into(),
    };
    request.block_type = agree(|run| &run.block_type);
    request.block_subtype = agree(|run| &run.block_subtype);
    request.file_kind = agree(|run| &run.file_kind);
    request.one_run = matches!(runs, [run] if run.length_bytes == request.length_bytes
        && Some(run.sector) == request.sector
        && run.home_sector.is_none()
        && run.home.is_none());
    let file_id = runs.first().and_then(|run| run.file_id);
    if runs.iter().all(|run| run.file_id == file_id) {
        request.file_id = file_id;
        request.file_offset_bytes = runs.first().and_then(|run| run.file_offset_bytes);
    }
}
