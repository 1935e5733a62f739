//! From the rows of a recording to a plan: goes through the begins and ends of all calls in the
//! order of their times. At its begin a call becomes a step, or is counted as none; at its end it
//! takes effect on descriptors and names, and others may wait for it. Steps that write get the
//! contents that `joj record --data keep` kept. What may grow faster than the rows of the recording
//! has a limit: what calls wait for and have in common, copies of descriptors, texts.

use std::collections::{BTreeMap, HashMap};

use super::arguments::{self, CallDraft, PreparedCall, make_from_table};
use super::names::{Place, ReplayNames};
use super::order::{Resource, ResourceOrder, begins_and_ends, lanes, lives};
use super::scene::{DescriptorTarget, NoStep, RecordedThreads, Scene};
use super::special::{had_no_descriptor, special};
use crate::tables::recording::{Content, RecordedCall, RecordedThread};
use crate::workload::replay::plan::{
    Action, CallArgument, CallEffect, FileHandle, KeptPiece, Lane, PlanText, PlannedStep,
    RecordedEnd, ReplayPlan,
};
use crate::workload::threads::turns::Wait;

/// Errors above are the kernel's own: a call that a signal interrupted, and that is made again
/// (include/linux/errno.h).
const LAST_ERROR: i64 = 511;

/// A call between its begin and its end.
#[derive(Default)]
struct StepUnderWay {
    /// The lane of a call that is a step, and how many steps that has with it.
    step: Option<Wait>,
    resources: Vec<Resource>,
    began: usize,
    /// The description that its result is, where that is a descriptor.
    opened: Option<DescriptorTarget>,
}

/// A recording being read.
pub struct Builder<'a> {
    pub scene: Scene,
    calls: &'a [RecordedCall],
    pub threads: RecordedThreads<'a>,
    lanes: BTreeMap<i64, u32>,
    first_waits: HashMap<i64, Wait>,
    order: ResourceOrder,
    base_ns: Option<i64>,
    event: usize,
    grown: GrownBytes,
    pub plan: ReplayPlan,
}

impl<'a> Builder<'a> {
    /// Return the plan of calls in the order of their begins; None if more than `most_lanes`
    /// threads live at once. What may grow faster than the calls takes `most_bytes` at most.
    pub fn new(
        calls: &'a [RecordedCall],
        threads: &'a [RecordedThread],
        mut names: ReplayNames,
        most_lanes: usize,
        most_bytes: usize,
    ) -> Option<Self> {
        calls.iter().for_each(|call| arguments::note_changes(call, &mut names));
        let (lanes, count) = lanes(&lives(calls), most_lanes)?;
        let plan = ReplayPlan { lanes: vec![Lane::default(); count], ..ReplayPlan::default() };
        Some(Self {
            scene: Scene::new(names),
            calls,
            threads: RecordedThreads::new(threads),
            lanes,
            first_waits: HashMap::new(),
            order: ResourceOrder::default(),
            base_ns: None,
            event: 0,
            grown: GrownBytes { most: most_bytes, ..GrownBytes::default() },
            plan,
        })
    }

    /// A thread of which no call is known to have made it begins, unless it has.
    pub fn begin_thread(&mut self, thread: i64) {
        if !self.scene.tables.has(thread) {
            self.scene.tables.begin(thread);
            self.threads.begin(thread);
        }
    }

    /// Goes through all calls; false where that takes more bytes than it may.
    #[must_use]
    pub fn build(&mut self) -> bool {
        let mut under_way: HashMap<usize, StepUnderWay> = HashMap::new();
        for (event, (index, is_end)) in begins_and_ends(self.calls).enumerate() {
            self.event = event;
            if is_end {
                self.end(&self.calls[index], under_way.remove(&index).unwrap_or_default());
            } else {
                under_way.insert(index, self.begin(&self.calls[index]));
                if self.grown.is_too_much(&self.scene) {
                    return false;
                }
            }
        }
        self.plan.most_open = self.scene.most_open;
        self.plan.handles = self.scene.handles();
        self.plan.mappings = self.scene.mapped;
        self.plan.most_populated_bytes = self.scene.most_populated_bytes;
        true
    }

    fn begin(&mut self, row: &RecordedCall) -> StepUnderWay {
        let thread = row.thread_id;
        if !self.scene.tables.has(thread) {
            self.start(thread, row.begin_ns);
        }
        for child in self.threads.take_made_by(row.call_id) {
            let is_new = child != thread && !self.scene.tables.has(child);
            let is_own = self.threads.creator(child) == Some(thread);
            if is_new && is_own && !self.grown.is_too_much(&self.scene) {
                self.begin_child(child, thread, row.begin_ns);
            }
        }
        let mut under_way = StepUnderWay { began: self.event, ..StepUnderWay::default() };
        match self.prepare(row) {
            Ok(prepared) => self.add(row, prepared, &mut under_way),
            Err(why) => self.count(row, why, &mut under_way),
        }
        self.leave(row);
        under_way
    }

    /// A thread's first call, of which no call is known to have made it.
    fn start(&mut self, thread: i64, now_ns: i64) {
        // Those before it that have made no call yet begin with it; creators may be a circle.
        let mut line = vec![thread];
        while let Some(creator) = self.threads.creator(line[line.len() - 1])
            && self.threads.has(creator)
            && !self.scene.tables.has(creator)
            && !line.contains(&creator)
        {
            line.push(creator);
        }
        for thread in line.into_iter().rev() {
            match self.threads.creator(thread) {
                Some(creator) if creator != thread && self.scene.tables.has(creator) => {
                    self.begin_child(thread, creator, now_ns);
                }
                _ => self.begin_thread(thread),
            }
        }
    }

    /// A thread begins, with its creator's descriptors or copies of them. The copies are a step of
    /// the creator's: no other of its own comes between.
    fn begin_child(&mut self, child: i64, creator: i64, now_ns: i64) {
        self.threads.begin_child(child, creator);
        if self.threads.shares_descriptors(child) {
            self.scene.tables.share(child, creator);
        } else {
            let mut pairs: Vec<(FileHandle, FileHandle)> = Vec::new();
            let mut tables = std::mem::take(&mut self.scene.tables);
            tables.copy(child, creator, |from| {
                let to = self.scene.new_handle(self.scene.file_of(from));
                self.scene.note_open();
                pairs.push((from, to));
                to
            });
            self.scene.tables = tables;
            if !pairs.is_empty() {
                let handles: Vec<FileHandle> =
                    pairs.iter().flat_map(|(from, to)| [*from, *to]).collect();
                let action = Action::Inherit(pairs.into_boxed_slice());
                self.add_own(creator, now_ns, "inherit", action, &handles, &[]);
            }
        }
        if let Some(lane) = self.lanes.get(&creator) {
            let steps = self.plan.lanes[*lane as usize].steps.len() as u32;
            self.first_waits.insert(child, Wait { lane: *lane, steps });
        }
    }

    fn prepare(&mut self, row: &RecordedCall) -> Result<PreparedCall, NoStep> {
        let (arguments, resources) = (Vec::new(), Vec::new());
        let umask = self.threads.umask(row.thread_id);
        let process = self.threads.process(row.thread_id);
        let scene = &mut self.scene;
        let mut draft = CallDraft { scene, row, process, umask, arguments, resources };
        let found = match special(&mut draft) {
            Some(found) => found,
            None => make_from_table(&mut draft)
                .map(|(name, number)| (name, number, CallEffect::Nothing)),
        };
        let (name, number, effect) = found?;
        let CallDraft { arguments, resources, .. } = draft;
        // It is made again by the kernel, and recorded again.
        if row.result.is_some_and(|result| result < -LAST_ERROR) {
            return Err(NoStep::Carried);
        }
        Ok(PreparedCall { name, number, arguments, effect, resources })
    }

    fn count(&mut self, row: &RecordedCall, why: NoStep, under_way: &mut StepUnderWay) {
        let name = row.name.clone().into_owned();
        let is_carried = had_no_descriptor(why, row.error.as_deref());
        let why = if is_carried { NoStep::Carried } else { why };
        let counts = match why {
            NoStep::Elsewhere => {
                under_way.opened = Some(DescriptorTarget::Elsewhere);
                &mut self.plan.elsewhere
            }
            NoStep::Carried => &mut self.plan.carried,
            NoStep::LeftOut(why) => {
                *self.plan.left_out.entry((name, why)).or_default() += 1;
                return;
            }
        };
        *counts.entry(name).or_default() += 1;
    }

    fn add(&mut self, row: &RecordedCall, prepared: PreparedCall, under_way: &mut StepUnderWay) {
        let PreparedCall { name, number, arguments, effect, mut resources } = prepared;
        if let CallEffect::Opens(handle) = effect {
            under_way.opened = Some(DescriptorTarget::File(handle));
            resources.push(Resource::Handle(handle));
            self.scene.note_open();
        }
        let arguments = arguments.into_boxed_slice();
        let action = Action::Call { number, arguments, effect };
        under_way.step = self.push(
            row.thread_id,
            row.begin_ns,
            |due_ns, thread| PlannedStep {
                call: row.call_id,
                thread,
                due_ns,
                name,
                ended: arguments::end_of(row),
                writes: None,
                waits: (0, 0),
                action,
            },
            &resources,
        );
        under_way.resources = resources;
    }

    /// Adds a step of the replay's own, which is over as soon as it began.
    fn add_own(
        &mut self,
        thread: i64,
        now_ns: i64,
        name: &'static str,
        action: Action,
        handles: &[FileHandle],
        mappings: &[u32],
    ) {
        let mut resources: Vec<_> = mappings.iter().copied().map(Resource::Mapping).collect();
        handles.iter().for_each(|handle| self.scene.resources(*handle, &mut resources));
        let step = |due_ns, thread| PlannedStep {
            call: -1,
            thread,
            due_ns,
            name,
            ended: RecordedEnd::Unknown,
            writes: None,
            waits: (0, 0),
            action,
        };
        if let Some(made) = self.push(thread, now_ns, step, &resources) {
            self.order.end(made, &resources, self.event, self.event);
        }
    }

    fn push(
        &mut self,
        thread: i64,
        now_ns: i64,
        step: impl FnOnce(i64, u32) -> PlannedStep,
        resources: &[Resource],
    ) -> Option<Wait> {
        let lane = *self.lanes.get(&thread)?;
        let base_ns = *self.base_ns.get_or_insert(now_ns);
        let mut waits = self.order.begin(lane, resources);
        if let Some(wait) = self.first_waits.remove(&thread)
            && wait.lane != lane
            && wait.steps > 0
            && self.order.is_new(lane, wait)
        {
            waits.push(wait);
        }
        let step = step(now_ns.saturating_sub(base_ns), self.threads.index(thread));
        self.grown.add(&waits, resources);
        let into = &mut self.plan.lanes[lane as usize];
        into.push(step, &waits);
        Some(Wait { lane, steps: into.steps.len() as u32 })
    }

    /// Apply what takes effect when a call begins: nobody gets a number that is being closed
    /// before.
    fn leave(&mut self, row: &RecordedCall) {
        let (thread, tables) = (row.thread_id, &mut self.scene.tables);
        let succeeded = row.result.is_some_and(|result| result >= 0);
        match (&*row.name, row.descriptor) {
            ("close", Some(number)) if row.error.as_deref() != Some("EBADF") => {
                if let Some(DescriptorTarget::File(_)) = tables.at(thread, number) {
                    self.scene.note_closed(1);
                }
                self.scene.tables.remove(thread, number);
            }
            ("close_range", Some(first)) if succeeded => self.close_range(row, first),
            ("exit", _) => {
                let handles = tables.end(thread);
                self.release(thread, row.begin_ns, handles, false);
            }
            ("exit_group", _) => {
                let ended = self.threads.end_process(self.threads.process(thread));
                let handles = ended.iter().flat_map(|it| self.scene.tables.end(*it)).collect();
                self.release(thread, row.begin_ns, handles, true);
            }
            _ => {}
        }
    }

    fn close_range(&mut self, row: &RecordedCall, first: i64) {
        // The numbers are unsigned: -1 is the last of all.
        let last = row.descriptor2.filter(|last| *last >= 0).unwrap_or(i64::MAX);
        let numbers = self.scene.tables.between(row.thread_id, first, last);
        let marks = row.flags.unwrap_or(0) & i64::from(libc::CLOSE_RANGE_CLOEXEC) != 0;
        let mut handles = Vec::new();
        for number in numbers {
            if marks {
                self.scene.tables.mark(row.thread_id, number, true);
                continue;
            }
            if let Some(DescriptorTarget::File(handle)) =
                self.scene.tables.at(row.thread_id, number)
            {
                handles.push(handle);
            }
            self.scene.tables.remove(row.thread_id, number);
        }
        self.release(row.thread_id, row.begin_ns, handles, false);
    }

    /// Files are closed that no call closes; of a process that is over, or another program, its
    /// mappings go too.
    fn release(&mut self, thread: i64, now_ns: i64, handles: Vec<FileHandle>, unmaps: bool) {
        let process = self.threads.process(thread);
        let mappings = if unmaps { self.scene.unmap_all(process) } else { Vec::new() };
        if handles.is_empty() && mappings.is_empty() {
            return;
        }
        self.scene.note_closed(handles.len());
        let action = Action::Release(handles.clone().into(), mappings.clone().into());
        self.add_own(thread, now_ns, "release", action, &handles, &mappings);
    }

    fn end(&mut self, row: &RecordedCall, under_way: StepUnderWay) {
        if let Some(made) = under_way.step {
            self.order.end(made, &under_way.resources, under_way.began, self.event);
        }
        let Some(result) = row.result.filter(|result| *result >= 0) else { return };
        let (thread, now_ns) = (row.thread_id, row.end_ns.unwrap_or(row.begin_ns));
        if let Some(closes) = arguments::sets_close_on_exec(row) {
            self.scene.tables.mark(thread, row.descriptor.unwrap_or(-1), closes);
            return;
        }
        match &*row.name {
            "execve" | "execveat" => {
                let handles = self.scene.tables.execute(thread);
                self.release(thread, now_ns, handles, true);
            }
            "umask" => self.threads.set_umask(thread, row.mode),
            "pipe" | "pipe2" | "socketpair" => {
                for number in [row.descriptor, row.descriptor2].into_iter().flatten() {
                    self.scene.tables.set(thread, number, DescriptorTarget::Elsewhere, false);
                }
            }
            _ if arguments::gives_descriptor(row) => self.install(row, result, under_way.opened),
            _ => arguments::rename(row, &mut self.scene.names),
        }
    }

    /// A descriptor is there once its call has returned.
    fn install(&mut self, row: &RecordedCall, number: i64, opened: Option<DescriptorTarget>) {
        let thread = row.thread_id;
        if let Some(DescriptorTarget::File(handle)) = self.scene.tables.at(thread, number)
            && row.descriptor != Some(number)
        {
            // dup2(2) closes it; else it was closed unseen.
            self.scene.tables.remove(thread, number);
            self.release(thread, row.end_ns.unwrap_or(row.begin_ns), vec![handle], false);
        }
        if row.name.starts_with("dup") && row.descriptor == Some(number) {
            return;
        }
        let closes = arguments::closes_on_exec(row);
        match opened {
            Some(opened) => self.scene.tables.set(thread, number, opened, closes),
            None => self.scene.tables.remove(thread, number),
        }
        if let Some(Place::Here(name)) = row.path_id.and_then(|id| self.scene.names.place(id)) {
            *self.scene.names.file_mut(name) = row.device.zip(row.inode);
        }
    }
}

/// The bytes of a descriptor that a new process has copied: in its table, of its own, and as a
/// step.
const COPY_BYTES: usize = 96;
/// The bytes of each thing that calls have in common: with the call, and in the order.
const RESOURCE_BYTES: usize = 48;

/// The sum so far.
#[derive(Debug, Default)]
pub struct GrownBytes {
    most: usize,
    of_order: usize,
    of_texts: usize,
    texts: usize,
}

impl GrownBytes {
    /// A step waits for others, and has things in common with others.
    pub fn add(&mut self, waits: &[Wait], resources: &[Resource]) {
        self.of_order += size_of_val(waits) + resources.len() * RESOURCE_BYTES;
    }

    /// Return whether the sum with what is in the scene is more than it may be.
    pub fn is_too_much(&mut self, scene: &Scene) -> bool {
        for text in &scene.texts[self.texts..] {
            let (PlanText::Plain(text) | PlanText::Inside(text)) = text;
            self.of_texts += text.len() + size_of::<PlanText>();
        }
        self.texts = scene.texts.len();
        self.of_order + self.of_texts + scene.tables.copied * COPY_BYTES > self.most
    }
}

/// Notes for each step that writes which contents it wrote, where they were kept whole.
///
/// # Errors
/// If a row of the contents has no place in a file.
pub fn note_contents(
    plan: &mut ReplayPlan,
    calls: &[RecordedCall],
    contents: &[Content],
) -> Result<(), String> {
    if contents.is_empty() {
        return Ok(());
    }
    let rows: HashMap<&str, &Content> = contents.iter().map(|row| (&*row.data, row)).collect();
    let hashes = calls.iter().filter_map(|call| Some((call.call_id, call.data.as_deref()?)));
    let written: HashMap<i64, &str> = hashes.collect();
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    for step in plan.lanes.iter_mut().flat_map(|lane| &mut lane.steps) {
        let Action::Call { arguments, .. } = &step.action else { continue };
        let bytes = arguments.iter().find_map(|argument| match argument {
            CallArgument::From(bytes) | CallArgument::VectorsFrom { bytes, .. } => Some(*bytes),
            _ => None,
        });
        let row = written.get(&step.call).and_then(|hash| rows.get(hash));
        let (Some(bytes @ 1..), Some(row)) = (bytes, row) else { continue };
        let Ok(offset) = u64::try_from(row.offset_bytes) else {
            let (hash, offset) = (&row.data, row.offset_bytes);
            return Err(format!("contents: data {hash}: offset_bytes is {offset}, below 0"));
        };
        // The recorder could not read all that the call wrote.
        if row.length_bytes != i64::from(bytes) {
            continue;
        }
        step.writes = Some(*numbers.entry(&row.data).or_insert_with(|| {
            plan.kept.push(KeptPiece { hash: row.data.clone(), offset, bytes });
            (plan.kept.len() - 1) as u32
        }));
    }
    Ok(())
}
